//! Shapes: arrays with element type, dimensions, layout and tiles, or tuples of shapes; and their sizes in bytes.

use std::sync::Arc;

use smallvec::SmallVec;

use super::element_type::ElementType;
use super::units::Bytes;

/// Marks a tile dimension that is combined with the next more minor one; printed as `*`.
pub const COMBINE: i64 = i64::MIN;

/// The place of a value in a tuple: the element at each level, from the outside in; empty for the whole.
pub type ShapeIndex = SmallVec<[i64; 2]>;

/// Memory layout of an array (`LayoutProto`).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Layout {
    /// Dimension numbers, most minor first.
    pub minor_to_major: Vec<u32>,
    /// Tiles, each with dimensions from major to minor. Only the first tile pads.
    pub tiles: Vec<Vec<i64>>,
    /// Bits per element; 0 means the natural size of the type.
    pub element_size_in_bits: u32,
    /// Number ("colour") of the memory space.
    pub memory_space: i64,
    /// The element count is rounded up to a multiple of this; 0 means 1.
    pub tail_padding_alignment: i64,
    /// Bytes before the data that hold the dynamic sizes.
    pub dynamic_prefix_bytes: i64,
    /// (dimension, indices at which it is split)
    pub splits: Vec<(i64, Vec<i64>)>,
}

/// A node in a tree of shapes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ShapeNode {
    /// Element type; [`ElementType::TUPLE`] for a tuple.
    pub element_type: ElementType,
    /// Dimension sizes; upper bounds of dynamic dimensions.
    pub dimensions: Vec<i64>,
    /// Which dimensions are dynamic; empty if none is.
    pub dynamic: Vec<bool>,
    /// Layout, if given; most arrays of a program share a few.
    pub layout: Option<Arc<Layout>>,
    /// Pre-order numbers of a tuple's elements.
    pub children: Vec<u32>,
    /// Pre-order number of the enclosing tuple; 0 for the root itself.
    pub parent: u32,
    /// Number of nodes in the subtree, including this one.
    pub subtree_len: u32,
}

/// A shape and its subshapes in pre-order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Nodes in pre-order; never empty.
    pub nodes: Vec<ShapeNode>,
}

impl Default for Shape {
    fn default() -> Self {
        Self { nodes: vec![ShapeNode { subtree_len: 1, ..ShapeNode::default() }] }
    }
}

/// The padding of one dimension of an array.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DimensionPadding {
    /// Dimension number.
    pub dimension: u32,
    /// Size in elements.
    pub size: u64,
    /// Padded size in elements.
    pub padded: u64,
    /// Size of the tile along it; 1 if not tiled.
    pub tile: u64,
}

impl DimensionPadding {
    /// Padded over unpadded size; 1.0 without padding.
    #[must_use]
    pub fn factor(&self) -> f64 {
        if self.size == 0 { 1.0 } else { self.padded as f64 / self.size as f64 }
    }
}

fn round_up(value: u64, multiple: u64) -> u64 {
    if multiple <= 1 { value } else { value.div_ceil(multiple).saturating_mul(multiple) }
}

fn extent(dimension: i64) -> u64 {
    u64::try_from(dimension).unwrap_or(0)
}

impl ShapeNode {
    /// The dimensions of more than one element in the order in which they lie in memory, most minor first; where the others
    /// are makes no difference. `None` without a layout.
    #[must_use]
    pub fn order_in_memory(&self) -> Option<Vec<u32>> {
        let is_above_1 = |d: &u32| self.dimensions.get(*d as usize).is_some_and(|&size| size != 1);
        Some(self.layout.as_ref()?.minor_to_major.iter().copied().filter(is_above_1).collect())
    }

    /// An array without a layout.
    #[must_use]
    pub fn array(element_type: ElementType, dimensions: Vec<i64>) -> Self {
        Self { element_type, dimensions, subtree_len: 1, ..Self::default() }
    }

    /// Whether this is a tuple.
    #[must_use]
    pub fn is_tuple(&self) -> bool {
        self.element_type == ElementType::TUPLE
    }

    /// Product of the dimensions; 1 for a scalar.
    #[must_use]
    pub fn element_count(&self) -> u64 {
        self.dimensions.iter().fold(1u64, |n, &d| n.saturating_mul(extent(d)))
    }

    /// Bits per element, from the layout or else the type.
    #[must_use]
    pub fn element_bits(&self) -> u32 {
        match &self.layout {
            Some(layout) if layout.element_size_in_bits != 0 => layout.element_size_in_bits,
            _ => self.element_type.storage_bits(),
        }
    }

    /// Bytes without padding, as counted by XProf: a tuple is a table of 8-byte pointers, a token is empty.
    #[must_use]
    pub fn unpadded_size(&self) -> Bytes {
        if self.is_tuple() {
            return Bytes(8 * self.children.len() as u64);
        }
        match self.element_type {
            ElementType::TOKEN => Bytes::ZERO,
            ElementType::OPAQUE => Bytes(8),
            _ => bits_to_bytes(self.element_count(), self.element_bits()),
        }
    }

    /// Dimensions of the first tile, from major to minor; empty if the array is not tiled.
    #[must_use]
    pub fn first_tile(&self) -> &[i64] {
        self.layout.as_ref().and_then(|layout| layout.tiles.first()).map_or(&[], Vec::as_slice)
    }

    /// Bytes with padding: every dimension covered by the first tile is rounded up to it. `None` if not an array.
    ///
    /// Follows XLA's `ShapeUtil::ArraySize`; verified against some 80,000 buffers in real dumps.
    #[must_use]
    pub fn padded_size(&self) -> Option<Bytes> {
        if !self.element_type.is_array() {
            return None;
        }
        let tile = self.first_tile();
        let mut count = 1u64;
        if tile.is_empty() {
            for k in 0..self.dimensions.len() {
                count = count.saturating_mul(self.split_extent(k));
            }
        } else {
            for k in 0..tile.len().max(self.dimensions.len()) {
                let size = self.minor(k).map_or(1, |dimension| self.split_extent(dimension));
                count = count.saturating_mul(round_up(size, tile_extent(tile, k)));
            }
        }
        let alignment = self.layout.as_ref().map_or(1, |layout| layout.tail_padding_alignment.max(1));
        Some(bits_to_bytes(round_up(count, extent(alignment)), self.element_bits()))
    }

    /// The number of the `k`-th most minor dimension; `None` if there are not that many.
    #[must_use]
    pub fn minor(&self, k: usize) -> Option<usize> {
        let rank = self.dimensions.len();
        if k >= rank {
            return None;
        }
        match &self.layout {
            Some(layout) if layout.minor_to_major.len() == rank => {
                layout.minor_to_major.get(k).map(|&d| d as usize).filter(|&d| d < rank)
            }
            _ => Some(rank - 1 - k),
        }
    }

    /// Size of a dimension, or of its largest piece if the layout splits it.
    fn split_extent(&self, dimension: usize) -> u64 {
        let size = self.dimensions.get(dimension).copied().map_or(1, extent);
        let Some(layout) = &self.layout else { return size };
        let mut largest = size;
        for (split, indices) in &layout.splits {
            if usize::try_from(*split) == Ok(dimension) && !indices.is_empty() {
                let mut start = 0;
                largest = 0;
                for &index in indices {
                    largest = largest.max(extent(index).saturating_sub(start));
                    start = extent(index);
                }
                largest = largest.max(size.saturating_sub(start));
            }
        }
        largest
    }

    /// The padding of every dimension, most minor first. Empty if not an array.
    #[must_use]
    pub fn padding_by_dimension(&self) -> Vec<DimensionPadding> {
        if !self.element_type.is_array() {
            return Vec::new();
        }
        let tile = self.first_tile();
        (0..self.dimensions.len())
            .filter_map(|k| {
                let dimension = self.minor(k)?;
                let size = self.split_extent(dimension);
                let tile = tile_extent(tile, k);
                Some(DimensionPadding {
                    dimension: u32::try_from(dimension).ok()?,
                    size,
                    padded: round_up(size, tile),
                    tile,
                })
            })
            .collect()
    }
}

/// Size of a tile along the `k`-th most minor dimension; 1 if the tile does not cover it or combines dimensions.
fn tile_extent(tile: &[i64], k: usize) -> u64 {
    tile.len()
        .checked_sub(k + 1)
        .and_then(|i| tile.get(i))
        .map_or(1, |&t| if t == COMBINE { 1 } else { extent(t).max(1) })
}

fn bits_to_bytes(count: u64, bits: u32) -> Bytes {
    let total = u128::from(count) * u128::from(bits);
    Bytes(u64::try_from(total.div_ceil(8)).unwrap_or(u64::MAX))
}

impl Shape {
    /// A shape that is a single array.
    #[must_use]
    pub fn from_array(mut node: ShapeNode) -> Self {
        node.subtree_len = 1;
        Self { nodes: vec![node] }
    }

    /// A tuple of `elements`.
    #[must_use]
    pub fn tuple(elements: &[Self]) -> Self {
        let mut nodes = vec![ShapeNode { element_type: ElementType::TUPLE, ..ShapeNode::default() }];
        for element in elements {
            let base = nodes.len() as u32;
            nodes[0].children.push(base);
            for node in &element.nodes {
                let mut node = node.clone();
                let is_root = node.parent == 0 && nodes.len() as u32 == base;
                node.parent = if is_root { 0 } else { node.parent + base };
                for child in &mut node.children {
                    *child += base;
                }
                nodes.push(node);
            }
        }
        nodes[0].subtree_len = nodes.len() as u32;
        Self { nodes }
    }

    /// The root node.
    #[must_use]
    pub fn root(&self) -> &ShapeNode {
        &self.nodes[0]
    }

    /// The pre-order number of the subshape at `index`; `None` if the index is invalid.
    #[must_use]
    pub fn find(&self, index: &[i64]) -> Option<u32> {
        let mut node = 0u32;
        for &step in index {
            node = *self.nodes.get(node as usize)?.children.get(usize::try_from(step).ok()?)?;
        }
        Some(node)
    }

    /// The shape index of a node; the inverse of [`Self::find`].
    #[must_use]
    pub fn index_of(&self, mut node: u32) -> ShapeIndex {
        let mut path = ShapeIndex::new();
        while node != 0 {
            let Some(parent) = self.nodes.get(node as usize).map(|n| n.parent) else { break };
            let Ok(step) = self.nodes[parent as usize].children.binary_search(&node) else { break };
            path.push(step as i64);
            node = parent;
        }
        path.reverse();
        path
    }

    /// Whether two subshapes have the same structure, types and dimensions, ignoring layouts.
    #[must_use]
    pub fn compatible(&self, a: u32, other: &Self, b: u32) -> bool {
        let (Some(x), Some(y)) = (self.nodes.get(a as usize), other.nodes.get(b as usize)) else { return false };
        if x.subtree_len != y.subtree_len {
            return false;
        }
        (0..x.subtree_len).all(|i| {
            let (Some(x), Some(y)) = (self.nodes.get((a + i) as usize), other.nodes.get((b + i) as usize)) else {
                return false;
            };
            x.element_type == y.element_type && x.dimensions == y.dimensions && x.children.len() == y.children.len()
        })
    }

    /// The subshape XProf uses for a buffer: the top-level element given by the *last* number of the index, even if the
    /// index is nested. Needed to reproduce XProf's unpadded sizes.
    #[must_use]
    pub fn xprof_node(&self, index: &[i64]) -> u32 {
        let Some(&last) = index.last() else { return 0 };
        usize::try_from(last).ok().and_then(|i| self.root().children.get(i)).copied().unwrap_or(0)
    }
}

/// Dimensions above 1, sorted: equal for arrays that differ in the order of their dimensions only.
#[must_use]
pub fn outline(dimensions: &[i64]) -> Vec<i64> {
    let mut outline: Vec<i64> = dimensions.iter().copied().filter(|&d| d > 1).collect();
    outline.sort_unstable();
    outline
}

#[cfg(test)]
impl ShapeNode {
    /// An array with a tiled layout.
    pub(crate) fn tiled(ty: ElementType, dims: &[i64], minor_to_major: &[u32], tiles: &[&[i64]]) -> Self {
        Self {
            layout: Some(Arc::new(Layout {
                minor_to_major: minor_to_major.to_vec(),
                tiles: tiles.iter().map(|t| t.to_vec()).collect(),
                ..Layout::default()
            })),
            ..Self::array(ty, dims.to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tile_pads() {
        // Sizes from public bug reports: 1 GiB of data is padded to 32, 128 and 4 times its size.
        let points = ShapeNode::tiled(ElementType::S32, &[8_388_608, 8, 4], &[2, 1, 0], &[&[8, 128]]);
        assert_eq!(points.unpadded_size(), Bytes(1 << 30));
        assert_eq!(points.padded_size(), Some(Bytes(32 << 30)));
        let column = ShapeNode::tiled(ElementType(8), &[12_582_912, 1], &[1, 0], &[&[8, 128]]);
        assert_eq!(column.padded_size(), Some(Bytes(12_582_912 * 128 * 4)));
        let rows = ShapeNode::tiled(ElementType::BF16, &[2048, 1, 2048, 128], &[0, 1, 3, 2], &[&[4, 128], &[2, 1]]);
        assert_eq!(rows.padded_size(), Some(Bytes(4 << 30)));
        assert_eq!(ShapeNode::tiled(ElementType::F32, &[], &[], &[&[128]]).padded_size(), Some(Bytes(512)));
    }

    #[test]
    fn padding_names_the_dimension() {
        let shape = ShapeNode::tiled(ElementType::F32, &[1_000_000, 3], &[1, 0], &[&[8, 128]]);
        let dims = shape.padding_by_dimension();
        assert_eq!((dims[0].dimension, dims[0].size, dims[0].padded, dims[0].tile), (1, 3, 128, 128));
        assert_eq!((dims[1].dimension, dims[1].padded, dims[1].tile), (0, 1_000_000, 8));
    }

    #[test]
    fn sub_byte_types_and_tails() {
        let mut s4 = ShapeNode::tiled(ElementType(21), &[1024, 1024], &[1, 0], &[]);
        assert_eq!(s4.unpadded_size(), Bytes(1 << 20));
        if let Some(layout) = s4.layout.as_mut().map(Arc::make_mut) {
            layout.element_size_in_bits = 4;
        }
        assert_eq!(s4.padded_size(), Some(Bytes(1 << 19)));
        let mut tail = ShapeNode::array(ElementType::BF16, vec![1000, 100]);
        tail.layout = Some(Arc::new(Layout { tail_padding_alignment: 1024, ..Layout::default() }));
        assert_eq!(tail.padded_size(), Some(Bytes(100_352 * 2)));
    }

    #[test]
    fn sizes_of_hostile_shapes_saturate() {
        let huge = ShapeNode::array(ElementType::F32, vec![i64::MAX, i64::MAX, 3]);
        assert_eq!(huge.padded_size(), Some(Bytes(u64::MAX)));
        assert_eq!(ShapeNode::array(ElementType::F32, vec![-1, 5]).padded_size(), Some(Bytes(0)));
    }

    #[test]
    fn find_follows_tuple_indices() {
        let leaf = |n| Shape::from_array(ShapeNode::array(ElementType::F32, vec![n]));
        let inner = Shape::tuple(&[leaf(1), leaf(2)]);
        let outer = Shape::tuple(&[leaf(7), inner.clone(), leaf(9)]);
        assert_eq!(outer.nodes.len(), 6);
        for node in 0..6 {
            assert_eq!(outer.find(&outer.index_of(node)), Some(node));
        }
        assert_eq!(outer.nodes[outer.find(&[1, 1]).unwrap_or(0) as usize].dimensions, vec![2]);
        assert_eq!(outer.find(&[3]), None);
        assert!(outer.compatible(2, &inner, 0));
        // XProf uses only the last number of a nested index.
        assert_eq!(outer.xprof_node(&[1, 0]), 1);
    }
}
