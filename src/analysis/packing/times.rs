//! The times at which blocks begin, as the leaves of a tree, and the nodes of it that live ranges look at.

use std::ops::Range;

/// A live range: first and last time, both included.
pub type LiveRange = (u32, u32);

/// Ends of a live range's parts of the list of nodes.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    /// Nodes that span it.
    parts: usize,
    /// Nodes that are above some of those only.
    sides: usize,
    /// Nodes that are above all of those, up to the root.
    above: usize,
}

/// The tree: its root is node 1, below node `n` are `2 n` and `2 n + 1`. It is the same in whatever order blocks are placed.
#[derive(Debug)]
pub struct Times {
    /// The nodes that each live range looks at: those that together span it, then those above them.
    pub(super) looked_at: Vec<u32>,
    /// Where in `looked_at` are the nodes of each live range.
    ends: Vec<Ends>,
    /// By node: the live ranges that it is a part of, and those with a part below it.
    pub(super) counts: Vec<(u32, u32)>,
}

impl Times {
    /// The tree of some live ranges; one that ends before it starts looks at nothing.
    #[must_use]
    pub fn new(ranges: &[LiveRange]) -> Self {
        let mut times: Vec<u32> = ranges.iter().filter(|range| range.0 <= range.1).map(|range| range.0).collect();
        times.sort_unstable();
        times.dedup();
        let leaves = times.len().next_power_of_two();
        let mut counts = vec![(0, 0); 2 * leaves];
        let (mut looked_at, mut ends) = (Vec::with_capacity(16 * ranges.len()), Vec::with_capacity(ranges.len()));
        for &(start, end) in ranges {
            let (first, last) = (times.partition_point(|&t| t < start), times.partition_point(|&t| t <= end));
            if first < last {
                let (first, last) = (leaves + first, leaves + last - 1);
                for_each_node(first, last, |node| {
                    counts[node].0 += 1;
                    looked_at.push(node as u32);
                });
                let parts = looked_at.len();
                for_each_ancestor(first, last, |node| {
                    counts[node].1 += 1;
                    looked_at.push(node as u32);
                });
                let above = looked_at.len();
                let is_common = |node: &&u32| {
                    let shift = leaves.ilog2() - node.ilog2();
                    [first, last].iter().all(|leaf| leaf >> shift == **node as usize)
                };
                let common = looked_at[parts..].iter().rev().take_while(is_common).count();
                ends.push(Ends { parts, sides: above - common, above });
            } else {
                let end = looked_at.len();
                ends.push(Ends { parts: end, sides: end, above: end });
            }
        }
        Self { looked_at, ends, counts }
    }

    /// Where in the list are the nodes that together span a live range, and those above them.
    pub(super) fn looked_at(&self, range: usize) -> (Range<usize>, Range<usize>) {
        let start = range.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |ends| ends.above);
        let Ends { parts, above, .. } = self.ends.get(range).copied().unwrap_or_default();
        (start..parts, parts..above)
    }

    /// The nodes that are above all of a live range's, up to the root, and where in the list they begin.
    pub(super) fn common(&self, range: usize) -> Option<(usize, &[u32])> {
        let Ends { sides, above, .. } = self.ends.get(range).copied()?;
        Some((sides, self.looked_at.get(sides..above)?))
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

#[cfg(test)]
mod tests {
    use super::*;

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
