//! Buffer sizes after a change of dimensions or element type, keeping the layout.

use std::collections::HashSet;
use std::sync::Arc;

use crate::model::{Bytes, ElementType, Program, ShapeNode};

/// Whether a type of `new` bits makes a buffer of `old` bits per element smaller.
const fn is_narrower(new: u32, old: u32) -> bool {
    new > 0 && new < old
}

/// Sets a dimension. If the second-minor dimension becomes smaller than the rows of the tile, the compiler uses a tile
/// with fewer rows: the next power of two.
pub fn set_dimension(node: &mut ShapeNode, dimension: usize, size: i64) {
    let is_second_minor = node.dimensions.len() > 1 && node.minor(1) == Some(dimension);
    let Some(slot) = node.dimensions.get_mut(dimension) else { return };
    *slot = size;
    if !is_second_minor {
        return;
    }
    let Some(layout) = &mut node.layout else { return };
    // Rows packed together for types of less than 32 bits: `(2,1)` after the first tile.
    let least = layout.tiles.get(1).and_then(|tile| tile.first()).copied().unwrap_or(1).clamp(1, 8);
    if let Some(tile) = layout.tiles.first()
        && let Some(at) = tile.len().checked_sub(2)
        && size > 0
        && size < tile[at]
    {
        Arc::make_mut(layout).tiles[0][at] = (size as u64).next_power_of_two().max(least as u64) as i64;
    }
}

/// The same array with another dimension in the lanes, if a dimension is there that no longer fills them, or one of
/// pictures beside them does so now and did not with as many as there were `before`, and the array takes less memory so:
/// the compiler usually chooses that layout then.
#[must_use]
pub fn with_other_lanes(node: &ShapeNode, dimension: usize, before: i64) -> Option<ShapeNode> {
    let lanes = node.first_tile().last().copied().filter(|&lanes| lanes > 0)?;
    let size = *node.dimensions.get(dimension)?;
    let no_longer_fills = node.minor(0) == Some(dimension) && size < lanes;
    // Samples, height, width and channels.
    let fills_now =
        node.minor(1) == Some(dimension) && node.dimensions.len() >= 4 && size % lanes == 0 && before % lanes != 0;
    if !no_longer_fills && !fills_now {
        return None;
    }
    let mut other = node.clone();
    let layout = Arc::make_mut(other.layout.as_mut()?);
    (layout.minor_to_major.len() > 1).then(|| layout.minor_to_major.swap(0, 1))?;
    (other.padded_size()? < node.padded_size()?).then_some(other)
}

/// Sets the element type; the layout stays. Of arguments the compiler chooses another order of dimensions where this one
/// would be padded.
pub fn set_type(node: &mut ShapeNode, ty: ElementType) {
    node.element_type = ty;
    if let Some(layout) = node.layout.as_mut().map(Arc::make_mut) {
        layout.element_size_in_bits = 0;
    }
}

/// As [`set_type`], of a copy in the order of dimensions in which a loop's products read it: tiles have at least as many
/// rows as are packed together, 4 of 8-bit types and 2 of 16-bit types, so that 2 heads in 8 bits are padded to 4, and take
/// as much as in 16 bits.
pub fn set_type_of_copy(node: &mut ShapeNode, ty: ElementType) {
    set_type(node, ty);
    let packed = i64::from(32 / ty.storage_bits().clamp(1, 32));
    let layout = node.layout.as_mut().map(Arc::make_mut);
    if let Some([rows, _]) = layout.and_then(|layout| layout.tiles.first_mut()).map(Vec::as_mut_slice) {
        *rows = packed.max(*rows);
    }
}

/// Whether `dtype *` and `compute` apply to values of this type: wider floats if the new type is narrow, else narrower
/// ones.
#[must_use]
pub fn is_meant(old: ElementType, new: ElementType) -> bool {
    if !old.is_float() || !new.is_float() {
        return false;
    }
    let (old, new) = (old.storage_bits(), new.storage_bits());
    is_narrower(new, old) || (new >= 32 && is_narrower(old, new))
}

/// As [`set_type`], for a value that "everything in another type" means ([`is_meant`]); returns whether it does.
pub fn set_meant_type(node: &mut ShapeNode, ty: ElementType) -> bool {
    let meant = is_meant(node.element_type, ty);
    if meant {
        set_type(node, ty);
    }
    meant
}

/// Bytes of a buffer after a change, from those that the formula gives before and after it. Where the formula does not
/// give the present size, the size changes in proportion.
#[must_use]
pub fn resized(present: u64, before: Option<Bytes>, after: Option<Bytes>) -> u64 {
    let (Some(old), Some(new)) = (before, after) else { return present };
    if old.0 == present {
        return new.0;
    }
    if old.0 == 0 {
        return present;
    }
    u64::try_from(u128::from(present) * u128::from(new.0) / u128::from(old.0)).unwrap_or(u64::MAX)
}

/// Whether tiling pads a dimension of this size.
#[must_use]
pub fn is_padded_by(node: &ShapeNode, size: i64) -> bool {
    node.dimensions.contains(&size)
        && node.padding_by_dimension().iter().any(|d| d.padded > d.size && i64::try_from(d.size) == Ok(size))
}

/// Bytes of an array whose elements fill the rows of the tile without gaps, whatever its dimensions: the size after a
/// narrow dimension is merged with its neighbours.
#[must_use]
pub fn size_in_rows(node: &ShapeNode) -> u64 {
    let tile = node.first_tile().iter().fold(1u64, |product, &d| product.saturating_mul(d.max(1).unsigned_abs()));
    let bits = u64::from(node.element_bits());
    node.element_count().div_ceil(tile).saturating_mul(tile).saturating_mul(bits).div_ceil(8)
}

/// Dimension sizes that reshapes make of `from`: its products with neighbours in an argument, unless an argument has
/// such a dimension of its own.
#[must_use]
pub fn merged_sizes(arguments: &[&ShapeNode], from: i64) -> Vec<i64> {
    let mut sizes = Vec::new();
    for node in arguments {
        let dims = &node.dimensions;
        for start in 0..dims.len() {
            let mut product = 1i64;
            let mut has = false;
            for &d in &dims[start..] {
                product = product.saturating_mul(d.max(1));
                has |= d == from;
                if has && product > from {
                    sizes.push(product);
                }
            }
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    let own: HashSet<i64> = arguments.iter().flat_map(|node| node.dimensions.iter().copied()).collect();
    sizes.retain(|size| !own.contains(size));
    sizes
}

/// Replaces a dimension size, and its products, in a shape; returns whether anything changed.
pub fn replace_size(node: &mut ShapeNode, from: i64, to: i64, merged: &[i64]) -> bool {
    let mut changed = false;
    for dimension in 0..node.dimensions.len() {
        let size = node.dimensions[dimension];
        let new = if size == from {
            to
        } else if from > 0 && merged.contains(&size) {
            (size / from).saturating_mul(to)
        } else {
            continue;
        };
        set_dimension(node, dimension, new);
        changed = true;
    }
    changed
}

/// The shape of a buffer.
#[must_use]
pub fn node_of(program: &Program, buffer: crate::model::BufferId) -> Option<&ShapeNode> {
    program.buffer_node(buffer).filter(|node| node.element_type.is_array())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_second_minor_dimension_takes_a_small_tile() {
        let before = ShapeNode::tiled(ElementType::BF16, &[32, 4096, 8, 128], &[3, 2, 1, 0], &[&[8, 128], &[2, 1]]);
        let mut after = before.clone();
        set_dimension(&mut after, 2, 2);
        assert_eq!(after.first_tile(), [2, 128]);
        let size = before.padded_size().unwrap_or(Bytes(0)).0;
        let resized = |present| resized(present, before.padded_size(), after.padded_size());
        assert_eq!(resized(size), size / 4);
        // A size that the formula does not give changes in proportion.
        assert_eq!(resized(size + 1000), (size + 1000) / 4);
    }

    #[test]
    fn a_batch_that_no_longer_fills_the_lanes_leaves_them_where_that_is_less() {
        let image = |batch: i64, channels: i64| {
            let tiles: &[&[i64]] = &[&[8, 128], &[2, 1]];
            ShapeNode::tiled(ElementType::BF16, &[batch, 96, 96, channels], &[0, 3, 2, 1], tiles)
        };
        let other = with_other_lanes(&image(64, 192), 0, 128).expect("192 channels fill lanes better than 64 samples");
        assert_eq!(other.minor(0), Some(3));
        assert!(other.padded_size() < image(64, 192).padded_size());
        assert_eq!(with_other_lanes(&image(64, 32), 0, 128), None, "32 channels fill them less");
        assert_eq!(with_other_lanes(&image(128, 192), 0, 256), None, "the batch fills them");
        let mut of_channels = image(128, 192);
        if let Some(layout) = of_channels.layout.as_mut().map(Arc::make_mut) {
            layout.minor_to_major.swap(0, 1);
        }
        let other = with_other_lanes(&of_channels, 0, 64).expect("128 samples fill lanes better than 192 channels");
        assert_eq!(other, image(128, 192));
    }

    #[test]
    fn narrower_types_pack_more_rows_together() {
        // Key and value heads of a cache, as a loop reads them: compiled so by libtpu 0.0.52.
        let heads = |count: i64| {
            ShapeNode::tiled(ElementType::BF16, &[4, 8192, count, 128], &[3, 2, 1, 0], &[&[count, 128], &[2, 1]])
        };
        let f8 = ElementType::from_name("f8e4m3fn").expect("a type");
        let mut two = heads(2);
        set_type_of_copy(&mut two, f8);
        assert_eq!((two.first_tile(), two.padded_size()), ([4, 128].as_slice(), heads(2).padded_size()));
        let mut eight = heads(8);
        set_type_of_copy(&mut eight, f8);
        assert_eq!((eight.first_tile(), eight.padded_size()), ([8, 128].as_slice(), Some(Bytes(4 * 8192 * 8 * 128))));
    }

    #[test]
    fn a_merged_dimension_is_not_filled_up() {
        let table = ShapeNode::tiled(ElementType::F32, &[1000, 3], &[1, 0], &[&[8, 128]]);
        assert!(is_padded_by(&table, 3) && !is_padded_by(&table, 1000));
        assert_eq!(size_in_rows(&table), 3 * 1024 * 4);
    }

    #[test]
    fn products_are_replaced_with_their_factor() {
        let tokens = ShapeNode::array(ElementType::S32, vec![4, 520]);
        let table = ShapeNode::array(ElementType::F32, vec![520, 2048]);
        let merged = merged_sizes(&[&tokens, &table], 520);
        assert_eq!(merged, [2080, 520 * 2048]);
        let mut flat = ShapeNode::array(ElementType::F32, vec![2080, 64]);
        assert!(replace_size(&mut flat, 520, 512, &merged));
        assert_eq!(flat.dimensions, [2048, 64]);
    }

    #[test]
    fn everything_means_the_wider_floats() {
        let (f32, bf16, s32) = (ElementType::F32, ElementType::BF16, ElementType::S32);
        assert!(is_meant(f32, bf16) && is_meant(bf16, f32));
        assert!(!is_meant(bf16, bf16) && !is_meant(s32, bf16) && !is_meant(ElementType(20), bf16));
    }
}
