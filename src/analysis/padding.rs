//! Padding of one array by dimension, and its description in words.

use crate::model::{Bytes, DimensionPadding, ShapeNode, factor, thousands};

/// Cost of one dimension's padding.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionWaste {
    /// Size, padded size and tile.
    pub padding: DimensionPadding,
    /// Bytes saved if only this dimension were not padded.
    pub bytes: Bytes,
}

/// The dimensions of an array, most minor first, with the cost of their padding.
#[must_use]
pub fn by_dimension(node: &ShapeNode) -> Vec<DimensionWaste> {
    let Some(total) = node.padded_size() else { return Vec::new() };
    node.padding_by_dimension()
        .into_iter()
        .map(|padding| {
            let without = if padding.padded == 0 {
                total.0
            } else {
                (u128::from(total.0) * u128::from(padding.size) / u128::from(padding.padded)) as u64
            };
            DimensionWaste { padding, bytes: Bytes(total.0 - without.min(total.0)) }
        })
        .collect()
}

/// The padding of an array in a sentence or two, where each buffer takes so many bytes.
#[must_use]
pub fn in_words(node: &ShapeNode, each: Bytes) -> String {
    if node.is_tuple() {
        return format!("A table of {}, no data of its own.", addresses(node.children.len() as u64));
    }
    let Some(padded) = node.padded_size() else { return "Not an array: nothing to pad.".to_owned() };
    let unpadded = node.unpadded_size();
    let tile = node.first_tile();
    if padded <= unpadded {
        if each > padded {
            return format!("The buffer is larger than its data: {} for {}.", each.short(), padded.short());
        }
        if tile.is_empty() {
            return "Not tiled: nothing is wasted.".to_owned();
        }
        let tiled: Vec<String> =
            by_dimension(node).iter().filter(|d| d.padding.tile > 1).map(|d| multiple(&d.padding)).collect();
        return match tiled.as_slice() {
            [] => "Nothing is wasted.".to_owned(),
            words => format!("Nothing is wasted: {}.", words.join(" and ")),
        };
    }
    let mut wasted: Vec<DimensionWaste> =
        by_dimension(node).into_iter().filter(|d| d.padding.padded > d.padding.size).collect();
    wasted.sort_by_key(|d| std::cmp::Reverse(d.bytes));
    let sentences: Vec<String> = wasted
        .iter()
        .map(|d| {
            let p = &d.padding;
            format!(
                "Dimension {}: {} \u{2192} {} to fill tiles of {} ({}), {}",
                p.dimension,
                thousands(p.size),
                thousands(p.padded),
                p.tile,
                factor(p.factor()),
                d.bytes.short()
            )
        })
        .collect();
    if sentences.is_empty() {
        return format!("{} of {} is padding to full tiles.", (padded - unpadded).short(), padded.short());
    }
    format!("{}.", sentences.join(". "))
}

fn addresses(count: u64) -> String {
    if count == 1 { "one address".to_owned() } else { format!("{} addresses", thousands(count)) }
}

fn multiple(padding: &DimensionPadding) -> String {
    format!("{} is a multiple of {}", padding.size, padding.tile)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{ElementType, Layout};

    fn tiled(dimensions: Vec<i64>, tile: Vec<i64>) -> ShapeNode {
        let rank = dimensions.len() as u32;
        let mut node = ShapeNode::array(ElementType::F32, dimensions);
        node.layout = Some(Arc::new(Layout {
            minor_to_major: (0..rank).rev().collect(),
            tiles: vec![tile],
            ..Layout::default()
        }));
        node
    }

    #[test]
    fn words_name_the_dimension_that_costs_most() {
        let node = tiled(vec![64, 129], vec![8, 128]);
        let words = in_words(&node, Bytes(64 * 256 * 4));
        assert!(words.starts_with("Dimension 1: 129 \u{2192} 256 to fill tiles of 128"), "{words}");
        assert_eq!(by_dimension(&node)[0].bytes, Bytes((256 - 129) * 64 * 4));
        assert_eq!(by_dimension(&node)[1].bytes, Bytes::ZERO);
    }

    #[test]
    fn a_buffer_larger_than_its_data_does_not_say_that_nothing_is_wasted() {
        let node = ShapeNode::array(ElementType::F32, Vec::new());
        assert_eq!(in_words(&node, Bytes(4096)), "The buffer is larger than its data: 4.00 KiB for 4 B.");
        assert_eq!(in_words(&node, Bytes(4)), "Not tiled: nothing is wasted.");
    }

    #[test]
    fn a_full_tile_says_so() {
        assert_eq!(
            in_words(&tiled(vec![16, 256], vec![8, 128]), Bytes(16 * 256 * 4)),
            "Nothing is wasted: 256 is a multiple of 128 and 16 is a multiple of 8."
        );
    }
}
