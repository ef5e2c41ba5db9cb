//! Marks: the parts of an array's dimensions that follow a dimension of an argument, and where views put them.

use crate::model::ShapeNode;

/// Most marks of one array.
const MOST: usize = 6;

/// A part of a dimension: of an index into it, `index / inner % size` is the followed index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// The dimension.
    pub dimension: u32,
    /// Number of elements of the dimension to one of the followed.
    pub inner: i64,
    /// Number of the followed elements.
    pub size: i64,
    /// Whether it is a length: divided into blocks, their number follows, not their size.
    pub is_length: bool,
}

impl Mark {
    /// A dimension may follow, but which cannot be told: rows that the program chooses as it runs, or what a kernel makes.
    pub const UNKNOWN: Self = Self { dimension: u32::MAX, inner: 0, size: 0, is_length: false };

    /// A dimension as a whole.
    #[must_use]
    pub const fn whole(dimension: u32, size: i64) -> Self {
        Self { dimension, inner: 1, size, is_length: false }
    }

    /// Whether it tells a dimension.
    #[must_use]
    pub fn is_known(&self) -> bool {
        *self != Self::UNKNOWN
    }
}

/// Adds a mark to those of an array.
pub fn add(marks: &mut Vec<Mark>, mark: Mark) {
    if marks.len() < MOST
        && let Err(place) = marks.binary_search(&mark)
    {
        marks.insert(place, mark);
    }
}

/// Most parts that a dimension is put together of.
const MOST_PARTS: i64 = 256;

/// A mark in a dimension that another dimension, `to` of size `size`, of another array corresponds to.
#[must_use]
pub fn carried(mark: Mark, (from, size): (i64, i64), to: usize) -> Option<Mark> {
    let dimension = u32::try_from(to).ok()?;
    if from == size {
        return Some(Mark { dimension, ..mark });
    }
    let left = size / mark.inner.max(1);
    // A few rows of a memory of many do not tell how many it has.
    if from > 0 && size / from > MOST_PARTS {
        return None;
    }
    // A dimension that follows as a whole does so where it is put together of several.
    let is_whole = mark.inner == 1 && mark.size == from && size > from;
    let size = if is_whole { size } else { mark.size.min(left) };
    (left > 0).then_some(Mark { dimension, size, ..mark })
}

/// A part of a dimension of an array: dimensions are divided where tiles lie in memory one after the other.
#[derive(Debug, Clone, Copy)]
struct Part {
    dimension: u32,
    /// Number of elements of the dimension to one of the part.
    inner: i64,
    size: i64,
    /// Elements of the array to one step.
    stride: i64,
}

impl Part {
    /// A dimension as a whole.
    fn whole((dimension, size): (usize, i64)) -> Self {
        Self { dimension: dimension as u32, inner: 1, size: size.max(1), stride: 1 }
    }
}

/// The parts in their order, most major first, with their strides; and the number of elements, padding included.
fn with_strides(mut parts: Vec<Part>) -> (Vec<Part>, i64) {
    let mut stride = 1i64;
    for part in parts.iter_mut().rev() {
        part.stride = stride;
        stride = stride.saturating_mul(part.size);
    }
    (parts, stride)
}

/// The dimensions of an array in their order.
fn in_order(dimensions: &[i64]) -> (Vec<Part>, i64) {
    with_strides(dimensions.iter().copied().enumerate().map(Part::whole).collect())
}

/// The dimensions of an array as they lie in memory, tile by tile.
fn in_memory(node: &ShapeNode) -> (Vec<Part>, i64) {
    let rank = node.dimensions.len();
    let order = (0..rank).rev().filter_map(|place| node.minor(place));
    let mut parts: Vec<Part> = order.filter_map(|at| Some(Part::whole((at, *node.dimensions.get(at)?)))).collect();
    for tile in node.layout.iter().flat_map(|layout| &layout.tiles) {
        let Some(start) = parts.len().checked_sub(tile.len()).filter(|_| tile.iter().all(|&size| size > 0)) else {
            continue;
        };
        let tiled = parts.split_off(start);
        let rows = |(part, &size): (&Part, &i64)| Part {
            inner: part.inner.saturating_mul(size),
            size: part.size / size + i64::from(part.size % size != 0),
            ..*part
        };
        parts.extend(tiled.iter().zip(tile).map(rows));
        parts.extend(tiled.iter().zip(tile).map(|(part, &size)| Part { size, ..*part }));
    }
    with_strides(parts)
}

/// What two ranges of strides, each from a stride to its product with a size, have in common.
fn common(a: (i64, i64), b: (i64, i64)) -> Option<(i64, i64)> {
    let (low, high) = (a.0.max(b.0), a.0.saturating_mul(a.1).min(b.0.saturating_mul(b.1)));
    (low < high).then_some((low, high / low.max(1))).filter(|found| found.1 > 1)
}

/// The mark of one element that lies at a stride, where that is a dimension of its own.
fn place_of_one(to: &[Part], stride: i64) -> Option<Mark> {
    let part = to.iter().find(|part| part.size == 1 && part.inner == 1 && part.stride == stride)?;
    Some(Mark::whole(part.dimension, 1))
}

/// The ranges of strides that a mark has in the parts of its array.
fn ranges(mark: Mark, from: &[Part]) -> Vec<(i64, i64)> {
    let own = from.iter().filter(|part| part.dimension == mark.dimension);
    let range = |part: &Part| {
        let (low, size) = common((mark.inner, mark.size), (part.inner, part.size))?;
        Some((part.stride.saturating_mul(low / part.inner.max(1)), size))
    };
    own.filter_map(range).collect()
}

/// The marks of an array whose elements lie in the same order in other parts.
fn moved(marks: &[Mark], (from, count): (Vec<Part>, i64), (to, others): (Vec<Part>, i64), sizes: &[i64]) -> Vec<Mark> {
    let mut found = Vec::new();
    if count != others {
        return found;
    }
    for &mark in marks.iter().filter(|mark| mark.is_known()) {
        if mark.size <= 1 {
            let own = from.iter().find(|part| part.dimension == mark.dimension && part.inner == mark.inner);
            if let Some(mark) = own.and_then(|part| place_of_one(&to, part.stride)) {
                add(&mut found, mark);
            }
            continue;
        }
        // Most major first.
        let mut pieces: Vec<Mark> = Vec::new();
        for range in ranges(mark, &from) {
            for part in &to {
                let Some((low, size)) = common(range, (part.stride, part.size)) else { continue };
                let inner = part.inner.saturating_mul(low / part.stride.max(1));
                pieces.push(Mark { dimension: part.dimension, inner, size, ..mark });
            }
        }
        let pieces = joined(pieces);
        // Divided into parts that are dimensions of their own, such as micro-batches: the last of them follows. Where the
        // rest of the last is something else, it has a fixed size, such as rows of a tile: the first follows. A length is
        // divided into blocks of a fixed size.
        let is_whole = |mark: &&Mark| mark.inner == 1 && sizes.get(mark.dimension as usize) == Some(&mark.size);
        let last = pieces.last().filter(|piece| !mark.is_length && is_whole(piece));
        if let Some(&mark) = last.or_else(|| pieces.first()) {
            add(&mut found, mark);
        }
    }
    found
}

/// Marks with those of one dimension that continue each other made one; in their order otherwise.
fn joined(pieces: Vec<Mark>) -> Vec<Mark> {
    let mut found: Vec<Mark> = Vec::new();
    for piece in pieces {
        let next = |mark: &Mark| mark.inner.saturating_mul(mark.size);
        let before = found.iter_mut().find(|mark| {
            mark.dimension == piece.dimension && (next(&piece) == mark.inner || next(mark) == piece.inner)
        });
        match before {
            Some(mark) => {
                mark.inner = mark.inner.min(piece.inner);
                mark.size = mark.size.saturating_mul(piece.size);
            }
            None => found.push(piece),
        }
    }
    found
}

/// The marks of an array after a reshape, which leaves the elements in row-major order.
#[must_use]
pub fn reshaped(marks: &[Mark], from: &[i64], to: &[i64]) -> Vec<Mark> {
    moved(marks, in_order(from), in_order(to), to)
}

/// The marks of an array after a bitcast, which leaves the elements where they lie.
#[must_use]
pub fn bitcast(marks: &[Mark], from: &ShapeNode, to: &ShapeNode) -> Vec<Mark> {
    let is_alike = |place: usize| from.minor(place) == to.minor(place);
    if from.dimensions == to.dimensions && (0..from.dimensions.len()).all(is_alike) {
        return marks.to_vec();
    }
    moved(marks, in_memory(from), in_memory(to), &to.dimensions)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{ElementType, Layout};

    fn mark(dimension: u32, inner: i64, size: i64) -> Mark {
        Mark { inner, ..Mark::whole(dimension, size) }
    }

    #[test]
    fn a_batch_is_found_again_in_what_it_is_folded_into() {
        let folded = reshaped(&[mark(0, 1, 8)], &[8, 1024, 512], &[8192, 512]);
        assert_eq!(folded, [mark(0, 1024, 8)]);
        assert_eq!(reshaped(&folded, &[8192, 512], &[8, 1024, 4, 128]), [mark(0, 1, 8)]);
        assert_eq!(reshaped(&[mark(0, 1, 4)], &[4, 12, 64], &[48, 64]), [mark(0, 12, 4)]);
        assert_eq!(reshaped(&[mark(1, 1, 4)], &[12, 4, 64], &[48, 64]), [mark(0, 1, 4)]);
        assert_eq!(reshaped(&[mark(0, 1, 4)], &[4, 12], &[7, 7]), [], "not the same elements");
    }

    #[test]
    fn of_micro_batches_the_last_part_follows_and_of_rows_of_tiles_the_first() {
        assert_eq!(reshaped(&[mark(0, 1, 32)], &[32, 100], &[4, 8, 100]), [mark(1, 1, 8)]);
        assert_eq!(reshaped(&[mark(0, 64, 4)], &[256], &[2, 128]), [mark(0, 1, 2)]);
        let length = |dimension, size| Mark { is_length: true, ..Mark::whole(dimension, size) };
        assert_eq!(reshaped(&[length(1, 4096)], &[2, 4096, 64], &[2, 16, 256, 64]), [length(1, 16)], "blocks");
        assert_eq!(reshaped(&[length(1, 4096)], &[2, 4096, 64], &[8192, 64]), [length(0, 4096)]);
    }

    #[test]
    fn one_sample_is_followed_while_it_has_a_dimension_of_its_own() {
        assert_eq!(reshaped(&[mark(0, 1, 1)], &[1, 512, 64], &[1, 512, 8, 8]), [mark(0, 1, 1)]);
        assert_eq!(reshaped(&[mark(0, 1, 1)], &[1, 512, 64], &[512, 64]), []);
    }

    #[test]
    fn a_bitcast_follows_the_elements_as_they_lie() {
        let array = |dims: &[i64], order: &[u32]| {
            let mut node = ShapeNode::array(ElementType::F32, dims.to_vec());
            node.layout = Some(Arc::new(Layout { minor_to_major: order.to_vec(), ..Layout::default() }));
            node
        };
        let (from, to) = (array(&[8, 16, 128], &[2, 0, 1]), array(&[16, 8, 128], &[2, 1, 0]));
        assert_eq!(bitcast(&[mark(0, 1, 8)], &from, &to), [mark(1, 1, 8)]);
        let (from, to) = (array(&[4, 4, 2048], &[2, 1, 0]), array(&[4, 4, 2048], &[2, 0, 1]));
        assert_eq!(bitcast(&[mark(0, 1, 4)], &from, &to), [mark(1, 1, 4)], "equal sizes, other dimensions");
        let from = array(&[8, 16, 128], &[2, 0, 1]);
        let merged = array(&[128, 128], &[1, 0]);
        assert_eq!(bitcast(&[mark(0, 1, 8)], &from, &merged), [mark(0, 1, 8)]);
        let tiled = ShapeNode::tiled(ElementType::S32, &[4, 2048], &[1, 0], &[&[4, 128]]);
        let tiles = ShapeNode::tiled(ElementType::S32, &[1, 16, 4, 128], &[3, 2, 1, 0], &[&[4, 128]]);
        assert_eq!(bitcast(&[mark(0, 1, 4)], &tiled, &tiles), [mark(2, 1, 4)], "tile by tile");
        assert_eq!(bitcast(&[mark(2, 1, 4)], &tiles, &tiled), [mark(0, 1, 4)]);
    }

    #[test]
    fn a_slice_has_its_part_and_what_is_put_together_all_of_it() {
        assert_eq!(carried(mark(0, 1, 8), (8, 1), 0), Some(mark(0, 1, 1)));
        assert_eq!(carried(mark(0, 1, 8), (8, 4), 0), Some(mark(0, 1, 4)));
        assert_eq!(carried(mark(0, 1, 8), (8, 32), 1), Some(mark(1, 1, 32)), "gathered from four devices");
        assert_eq!(carried(mark(0, 12, 8), (96, 192), 0), Some(mark(0, 12, 8)));
        assert_eq!(carried(mark(0, 1024, 8), (8192, 512), 0), None);
    }
}
