//! Occupied addresses by time: finds free ranges for a block without checking every block placed before it.

use std::ops::Range;

use smallvec::SmallVec;

use super::ALIGNMENT;

/// A live range: first and last time, both included.
pub type LiveRange = (u32, u32);

/// Ranges of addresses, sorted, disjoint and not touching; the ends are aligned.
type Ranges = SmallVec<[(u64, u64); 1]>;

/// Address ranges occupied at each time, in a segment tree over the times at which blocks begin: two blocks that are live
/// at once are both live where the later one begins.
///
/// A block is stored at the few nodes that together span its live range; adjacent ranges are merged. Packed blocks
/// leave few gaps, so each node stores little however many blocks there are. As every block is known beforehand, a node
/// is kept up to date only as long as blocks are to come that look at it: long blocks alone look at the upper nodes, where
/// most ranges are.
#[derive(Debug)]
pub struct Occupied {
    nodes: Vec<Node>,
    /// The nodes that each live range looks at: those that together span it, then those above them.
    looked_at: Vec<u32>,
    /// Where in `looked_at` the nodes end that span each live range, and those above them.
    ends: Vec<(usize, usize)>,
    /// Scratch space: the ranges met by a query. Packed blocks leave few gaps, so these are fewer than the nodes have.
    met: Ranges,
}

/// A node of the tree.
#[derive(Debug, Default)]
struct Node {
    /// Ranges of the blocks stored at it: those that live throughout the node's times.
    throughout: Ranges,
    /// Ranges of the blocks stored at it or below it: those that live at any of the node's times.
    within: Ranges,
    /// Live ranges to come that the node is a part of; they look at what is within it.
    parts: u32,
    /// Live ranges to come with a part below the node; they look at what lives throughout it.
    below: u32,
}

impl Occupied {
    /// An empty index; `ranges` are the live ranges of all blocks, in the order in which they will be placed.
    #[must_use]
    pub fn new(ranges: &[LiveRange]) -> Self {
        let mut times: Vec<u32> = ranges.iter().map(|range| range.0).collect();
        times.sort_unstable();
        times.dedup();
        let leaves = times.len().next_power_of_two();
        let mut nodes: Vec<Node> = std::iter::repeat_with(Node::default).take(2 * leaves).collect();
        let (mut looked_at, mut ends) = (Vec::new(), Vec::with_capacity(ranges.len()));
        for &(start, end) in ranges {
            // A live range that ends before it starts spans nothing.
            let (first, last) = (times.partition_point(|&t| t < start), times.partition_point(|&t| t <= end));
            if first < last {
                let (first, last) = (leaves + first, leaves + last - 1);
                for_each_node(first, last, |node| {
                    nodes[node].parts += 1;
                    looked_at.push(node as u32);
                });
                let parts = looked_at.len();
                for_each_ancestor(first, last, |node| {
                    nodes[node].below += 1;
                    looked_at.push(node as u32);
                });
                ends.push((parts, looked_at.len()));
            } else {
                ends.push((looked_at.len(), looked_at.len()));
            }
        }
        Self { nodes, looked_at, ends, met: Ranges::new() }
    }

    /// The nodes that together span a live range, and those above them.
    fn looked_at(&self, range: usize) -> (Range<usize>, Range<usize>) {
        let start = range.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |ends| ends.1);
        let (parts, above) = self.ends.get(range).copied().unwrap_or((start, start));
        (start..parts, parts..above)
    }

    /// Occupies `size` bytes during some of the live ranges, by their numbers: at the smallest gap that fits them (the
    /// lowest of equal ones), or else at the end of the occupied addresses. Returns their offset.
    pub fn place(&mut self, size: u64, ranges: Range<usize>) -> u64 {
        self.met.clear();
        for range in ranges.clone() {
            let (parts, above) = self.looked_at(range);
            for &node in &self.looked_at[parts] {
                let node = &mut self.nodes[node as usize];
                node.parts -= 1;
                node.within.iter().for_each(|&range| merge(&mut self.met, range));
            }
            for &node in &self.looked_at[above] {
                let node = &mut self.nodes[node as usize];
                node.below -= 1;
                node.throughout.iter().for_each(|&range| merge(&mut self.met, range));
            }
        }
        let offset = smallest_gap(size, &self.met);
        let top = offset.saturating_add(size).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        for range in ranges {
            let (parts, above) = self.looked_at(range);
            for &node in &self.looked_at[parts] {
                let node = &mut self.nodes[node as usize];
                if node.below > 0 {
                    merge(&mut node.throughout, (offset, top));
                }
                node.keep_within((offset, top));
            }
            for &node in &self.looked_at[above] {
                self.nodes[node as usize].keep_within((offset, top));
            }
        }
        offset
    }
}

impl Node {
    fn keep_within(&mut self, range: (u64, u64)) {
        if self.parts > 0 {
            merge(&mut self.within, range);
        }
    }
}

/// Start of the smallest gap of at least `size` bytes between ranges, the lowest of equal ones, or else their end.
fn smallest_gap(size: u64, ranges: &[(u64, u64)]) -> u64 {
    let mut best = u64::MAX;
    let mut best_at = None;
    // First address above all ranges so far.
    let mut free_from = 0u64;
    for &(offset, top) in ranges {
        let room = offset.saturating_sub(free_from);
        if room >= size && room < best {
            best = room;
            best_at = Some(free_from);
            if room == size {
                break;
            }
        }
        free_from = top;
    }
    best_at.unwrap_or(free_from)
}

/// Calls `each` with the fewest nodes that together span some leaves, both ends included.
fn for_each_node(first: usize, last: usize, mut each: impl FnMut(usize)) {
    let (mut low, mut high) = (first, last + 1);
    while low < high {
        if low & 1 == 1 {
            each(low);
            low += 1;
        }
        if high & 1 == 1 {
            high -= 1;
            each(high);
        }
        low >>= 1;
        high >>= 1;
    }
}

/// Calls `each` once with every node above those of [`for_each_node`].
fn for_each_ancestor(first: usize, last: usize, mut each: impl FnMut(usize)) {
    // Above the first leaf: those nodes whose span does not begin at the first leaf or reaches past the last one.
    let (mut low, mut high, mut shift) = (first >> 1, last >> 1, 1u32);
    while low > 0 {
        let is_above = |node: usize| {
            let (begin, end) = (node << shift, ((node + 1) << shift) - 1);
            begin < first || end > last
        };
        if is_above(low) {
            each(low);
        }
        if high != low && is_above(high) {
            each(high);
        }
        low >>= 1;
        high >>= 1;
        shift += 1;
    }
}

/// Adds a range to others.
fn merge(ranges: &mut Ranges, range: (u64, u64)) {
    let (from, to) = touched(ranges, range);
    if from == to {
        ranges.insert(from, range);
        return;
    }
    ranges[from] = (range.0.min(ranges[from].0), range.1.max(ranges[to - 1].1));
    if to > from + 1 {
        ranges.drain(from + 1..to);
    }
}

/// Which of some ranges a range overlaps or touches; mostly none or one.
fn touched(ranges: &[(u64, u64)], (offset, top): (u64, u64)) -> (usize, usize) {
    let from = ranges.partition_point(|range| range.1 < offset);
    (from, from + ranges[from..].iter().take_while(|range| range.0 <= top).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_ranges_become_one() {
        let mut ranges = Ranges::new();
        for range in [(10, 20), (40, 50), (20, 30), (60, 70), (25, 60)] {
            merge(&mut ranges, range);
        }
        assert_eq!(ranges[..], [(10, 70)]);
    }

    #[test]
    fn nodes_and_what_lies_above_them_are_told_apart() {
        // Eight leaves, 8 to 15; leaves 9 to 13 are spanned by 9, 5 and 6.
        let mut nodes = Vec::new();
        for_each_node(9, 13, |node| nodes.push(node));
        nodes.sort_unstable();
        assert_eq!(nodes, [5, 6, 9]);
        let mut above = Vec::new();
        for_each_ancestor(9, 13, |node| above.push(node));
        above.sort_unstable();
        assert_eq!(above, [1, 2, 3, 4]);
    }
}
