//! Occupied addresses by time: finds free ranges for a block without checking every block placed before it.

use smallvec::SmallVec;

use super::ALIGNMENT;

/// A live range: first and last time, both included.
pub type LiveRange = (u32, u32);

/// Ranges of addresses, sorted, disjoint and not touching; the ends are aligned.
type Ranges = SmallVec<[(u64, u64); 1]>;

/// Address ranges occupied at each time, in a segment tree over the times at which blocks begin or end.
///
/// A block is stored at the few nodes that together span its live range; adjacent ranges are merged. Packed blocks
/// leave few gaps, so each node stores little however many blocks there are.
#[derive(Debug)]
pub struct Occupied {
    /// Times at which a block begins or ends, ascending.
    times: Vec<u32>,
    /// Number of leaves of the tree: a power of two.
    leaves: usize,
    /// Ranges of the blocks stored at each node: those that live throughout the node's times.
    throughout: Vec<Ranges>,
    /// Ranges of the blocks stored at each node or below it: those that live at any of the node's times.
    within: Vec<Ranges>,
    /// Scratch space: the ranges met by a query.
    met: Vec<(u64, u64)>,
}

impl Occupied {
    /// An empty index; `ranges` are the live ranges of all blocks to be placed.
    #[must_use]
    pub fn new(ranges: impl Iterator<Item = LiveRange>) -> Self {
        let mut times: Vec<u32> = ranges.flat_map(|range| [range.0, range.1]).collect();
        times.sort_unstable();
        times.dedup();
        let leaves = times.len().next_power_of_two();
        Self {
            times,
            leaves,
            throughout: vec![Ranges::new(); 2 * leaves],
            within: vec![Ranges::new(); 2 * leaves],
            met: Vec::new(),
        }
    }

    /// First and last leaf of a live range; empty if its end is before its start.
    fn leaves_of(&self, (start, end): LiveRange) -> (usize, usize) {
        let rank = |time: u32| self.times.partition_point(|&t| t < time);
        (self.leaves + rank(start), self.leaves + rank(end))
    }

    /// Offset of the smallest gap that fits `size` bytes during some live ranges (the lowest of equal ones), or else of
    /// the end of the occupied addresses.
    pub fn smallest_gap(&mut self, size: u64, ranges: &[LiveRange]) -> u64 {
        self.met.clear();
        for &range in ranges {
            let (first, last) = self.leaves_of(range);
            for_each_node(first, last, |node| self.met.extend_from_slice(&self.within[node]));
            for_each_ancestor(first, last, |node| self.met.extend_from_slice(&self.throughout[node]));
        }
        // Ranges that begin at the same address leave the same gap before them, in whatever order.
        self.met.sort_by_key(|range| range.0);
        let mut best = u64::MAX;
        let mut best_at = None;
        // First address above all ranges so far.
        let mut free_from = 0u64;
        for &(offset, top) in &self.met {
            let room = offset.saturating_sub(free_from);
            if room >= size && room < best {
                best = room;
                best_at = Some(free_from);
            }
            free_from = free_from.max(top);
        }
        best_at.unwrap_or(free_from)
    }

    /// Occupies `size` bytes at an offset during some live ranges.
    pub fn insert(&mut self, size: u64, ranges: &[LiveRange], offset: u64) {
        let top = offset.saturating_add(size).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        for &range in ranges {
            let (first, last) = self.leaves_of(range);
            for_each_node(first, last, |node| {
                merge(&mut self.throughout[node], (offset, top));
                merge(&mut self.within[node], (offset, top));
            });
            for_each_ancestor(first, last, |node| merge(&mut self.within[node], (offset, top)));
        }
    }
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
fn merge(ranges: &mut Ranges, (mut offset, mut top): (u64, u64)) {
    let from = ranges.partition_point(|range| range.1 < offset);
    let to = from + ranges[from..].partition_point(|range| range.0 <= top);
    if from == to {
        ranges.insert(from, (offset, top));
        return;
    }
    offset = offset.min(ranges[from].0);
    top = top.max(ranges[to - 1].1);
    ranges[from] = (offset, top);
    ranges.drain(from + 1..to);
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
