//! Alternative forms of an array with less padding: other layouts, merged dimensions, the nearest unpadded sizes. Sizes
//! follow XLA's tile formula (`ShapeUtil::ArraySize`).

use std::sync::Arc;

use super::map::{MapBox, MemoryMap};
use super::shape_groups::{ShapeGroup, peak_with};
use super::steps::Steps;
use super::what_if::set_dimension;
use crate::model::{Bytes, ShapeNode, thousands};

/// An alternative form of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// What to change, in words.
    pub words: String,
    /// Bytes of one array in this form.
    pub each: Bytes,
    /// Consequence for the data: `same data`, `drops 4 of its 12 entries`, `the padding becomes data`.
    pub effect: String,
    /// Whether it holds the same data.
    pub is_same_data: bool,
    /// The array in this form.
    pub node: ShapeNode,
}

impl Alternative {
    fn new(words: String, effect: impl Into<String>, is_same_data: bool, node: ShapeNode) -> Option<Self> {
        Some(Self { words, each: node.padded_size()?, effect: effect.into(), is_same_data, node })
    }
}

/// Alternative forms of an array: other layouts, merged minor dimensions, the nearest unpadded sizes. Sizes are exact;
/// whether the compiler uses a layout is its own choice.
#[must_use]
pub fn alternatives(node: &ShapeNode) -> Vec<Alternative> {
    let (Some(now), rank) = (node.padded_size(), node.dimensions.len()) else { return Vec::new() };
    let mut found = Vec::new();
    if rank == 0 || node.first_tile().is_empty() {
        return found;
    }
    if let Some(best) = best_layout(node).filter(|other| other.each < now) {
        found.push(best);
    }
    for other in [merged(node), in_lanes(node)].into_iter().flatten().filter(|other| other.each < now) {
        if found.iter().all(|known: &Alternative| known.node.dimensions != other.node.dimensions) {
            found.push(other);
        }
    }
    let mut wasted = node.padding_by_dimension();
    wasted.retain(|p| p.padded > p.size && p.tile > 1);
    wasted.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
    for padding in wasted.into_iter().take(2) {
        let below = padding.size / padding.tile * padding.tile;
        let dropped = padding.size.saturating_sub(below);
        let fewer = format!("drops {} of its {} entries", thousands(dropped), thousands(padding.size));
        for (size, effect) in [(below, fewer), (padding.padded, "the padding becomes data".to_owned())] {
            // Nobody leaves out more than a few of them.
            if size == 0 || size == padding.size || size * 10 < padding.size * 9 {
                continue;
            }
            let mut other = node.clone();
            set_dimension(&mut other, padding.dimension as usize, size as i64);
            let (from, to) = (thousands(padding.size), thousands(size));
            let words = format!("dimension {}: {from} \u{2192} {to}", padding.dimension);
            found.extend(Alternative::new(words, effect, false, other));
        }
    }
    found
}

/// Rows of a full tile.
const ROWS: i64 = 8;

/// Sets the tile that the compiler uses for the second-minor dimension, with fewer rows if that is small.
fn retile(node: &mut ShapeNode) {
    let Some(second) = node.minor(1) else { return };
    let Some(&size) = node.dimensions.get(second) else { return };
    if let Some(tile) = node.layout.as_mut().and_then(|layout| Arc::make_mut(layout).tiles.first_mut())
        && let [rows, _] = &mut tile[..]
    {
        *rows = (*rows).max(ROWS);
    }
    set_dimension(node, second, size);
}

/// The dimension order that takes the fewest bytes with the same tile, or with fewer rows as the compiler would choose.
fn best_layout(node: &ShapeNode) -> Option<Alternative> {
    let rank = node.dimensions.len();
    if !(2..=8).contains(&rank) {
        return None;
    }
    let count = rank as u32;
    let pairs = (0..count).flat_map(|minor| (0..count).map(move |second| (minor, second)));
    let laid_out = pairs.filter(|(minor, second)| minor != second).filter_map(|(minor, second)| {
        let mut other = node.clone();
        if let Some(layout) = other.layout.as_mut().map(Arc::make_mut) {
            layout.minor_to_major = vec![minor, second];
            layout.minor_to_major.extend((0..count).rev().filter(|d| *d != minor && *d != second));
        }
        retile(&mut other);
        let layout = other.layout.as_ref().map(|layout| layout.text(rank)).unwrap_or_default();
        Alternative::new(format!("layout {layout}"), "same data", true, other)
    });
    laid_out.min_by_key(|other| other.each)
}

/// The form with the two most minor dimensions merged; `None` if they are no neighbours.
#[must_use]
pub fn merged(node: &ShapeNode) -> Option<Alternative> {
    let (first, second) = (node.minor(0)?, node.minor(1)?);
    // Only neighbours can be merged by a reshape.
    if first.abs_diff(second) != 1 {
        return None;
    }
    let (low, high) = (first.min(second), first.max(second));
    let mut other = node.clone();
    let product = node.dimensions.get(low)?.checked_mul(*node.dimensions.get(high)?)?;
    other.dimensions[low] = product;
    other.dimensions.remove(high);
    if let Some(layout) = other.layout.as_mut().map(Arc::make_mut) {
        layout.minor_to_major = layout
            .minor_to_major
            .iter()
            .filter(|d| **d as usize != high)
            .map(|&d| if d as usize > high { d - 1 } else { d })
            .collect();
        layout.splits.clear();
    }
    if other.dimensions.len() < 2 {
        // One dimension alone would get a tile of its own.
        return None;
    }
    retile(&mut other);
    let words = format!("merge dimensions {low} and {high}: [{}]", listed(&other.dimensions));
    Alternative::new(words, "same data, a reshape", true, other)
}

/// All elements in rows as wide as the tile: the best reshape if no dimension fits.
fn in_lanes(node: &ShapeNode) -> Option<Alternative> {
    let lanes = node.first_tile().last().copied().filter(|&lanes| lanes > 1)?;
    let count = i64::try_from(node.element_count()).ok().filter(|&count| count > lanes)?;
    let rows = count.checked_add(lanes - 1)? / lanes;
    let mut other = node.clone();
    other.dimensions = vec![rows, lanes];
    other.dynamic.clear();
    let layout = Arc::make_mut(other.layout.as_mut()?);
    if layout.tiles.first()?.len() != 2 {
        return None;
    }
    layout.minor_to_major = vec![1, 0];
    layout.splits.clear();
    retile(&mut other);
    let effect = match rows.checked_mul(lanes)? - count {
        0 => "same data, a reshape".to_owned(),
        fill => {
            format!("same data, a reshape with {} elements of padding", thousands(fill.unsigned_abs()))
        }
    };
    Alternative::new(format!("in rows of {lanes}: [{}]", listed(&other.dimensions)), effect, true, other)
}

fn listed(dimensions: &[i64]) -> String {
    let words: Vec<String> = dimensions.iter().map(ToString::to_string).collect();
    words.join(",")
}

/// An alternative with the resulting peak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// The other form.
    pub what: Alternative,
    /// Peak in bytes with all buffers of the shape in this form and all live ranges unchanged.
    pub peak: Bytes,
}

/// Alternative forms of a shape, each with the resulting peak.
#[must_use]
pub fn forms(group: &ShapeGroup, map: &MemoryMap, total: &Steps) -> Vec<Form> {
    let boxes: Vec<MapBox> = group.everywhere.iter().filter_map(|&buffer| map.box_of(buffer).copied()).collect();
    let with = |what: Alternative| {
        let less = group.each.saturating_sub(what.each);
        Form { peak: peak_with(map, total, &boxes, less), what }
    };
    alternatives(&group.node).into_iter().map(with).collect()
}

/// Alternative forms of a shape in a listing without steps, each with the total of what is listed.
#[must_use]
pub fn forms_of_listed(group: &ShapeGroup, listed: Bytes) -> Vec<Form> {
    let count = group.buffers.len() as u64;
    let total = |what: &Alternative| {
        let (before, after) = (group.each.0.saturating_mul(count), what.each.0.saturating_mul(count));
        Bytes(listed.0.saturating_sub(before).saturating_add(after))
    };
    alternatives(&group.node).into_iter().map(|what| Form { peak: total(&what), what }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ElementType;

    fn table() -> ShapeNode {
        ShapeNode::tiled(ElementType::F32, &[1_000_000, 3], &[1, 0], &[&[8, 128]])
    }

    #[test]
    fn a_narrow_table_is_better_the_other_way_round() {
        let all = alternatives(&table());
        let layout = all.iter().find(|a| a.words.starts_with("layout")).map(|a| (a.words.clone(), a.each));
        // 3 rows become 4, a million columns 1,000,064: what the compiler gives the argument p['table'] of that shape.
        assert_eq!(layout, Some(("layout {0,1:T(4,128)}".to_owned(), Bytes(4 * 1_000_064 * 4))));
        let lanes = all.iter().find(|a| a.words == "in rows of 128: [23438,128]").map(|a| (a.each, a.effect.clone()));
        // 23,438 rows become 23,440; 64 elements are too many.
        assert_eq!(
            lanes,
            Some((Bytes(23_440 * 128 * 4), "same data, a reshape with 64 elements of padding".to_owned()))
        );
        let wider = all.iter().find(|a| a.words == "dimension 1: 3 \u{2192} 128").map(|a| a.each);
        assert_eq!(wider, table().padded_size());
    }

    #[test]
    fn what_wastes_nothing_has_no_alternative() {
        let mut node = table();
        node.dimensions = vec![1024, 256];
        assert_eq!(alternatives(&node), Vec::new());
    }
}
