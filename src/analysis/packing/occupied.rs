//! Occupied addresses by time: finds free ranges for a block without checking every block placed before it.

use std::ops::Range;

use smallvec::SmallVec;

use super::ALIGNMENT;
use super::settled::Settled;
use super::times::Times;

/// Ranges of addresses, sorted, disjoint and not touching; the ends are aligned.
pub(super) type Ranges = SmallVec<[(u64, u64); 1]>;

/// Address ranges occupied at each time, in a segment tree over the times at which blocks begin: two blocks that are live
/// at once are both live where the later one begins.
///
/// A block is stored at the few nodes that together span its live range; adjacent ranges are merged. Packed blocks
/// leave few gaps, so each node stores little however many blocks there are. As every block is known beforehand, a node
/// is kept up to date only as long as blocks are to come that look at it: long blocks alone look at the upper nodes, where
/// most ranges are. Once none of those are to come, short blocks need not look at each range there: the gaps between them
/// are known by size.
#[derive(Debug)]
pub struct Occupied<'a> {
    nodes: Vec<Node>,
    times: &'a Times,
    /// Scratch space: the ranges met by a query. Packed blocks leave few gaps, so these are fewer than the nodes have.
    met: Ranges,
}

/// Live ranges to come for which it is worth while to know the gaps above a node by size.
const MANY: u32 = 32;

/// A node of the tree.
#[derive(Debug, Default)]
struct Node {
    /// Ranges of the blocks stored at it: those that live throughout the node's times.
    throughout: Ranges,
    /// Ranges of the blocks stored at it or below it: those that live at any of the node's times.
    within: Ranges,
    /// Live ranges to come that the node is a part of; they look at what is within it.
    parts: u32,
    /// Live ranges to come with a part below the node, which look at what lives throughout it. No longer counted once it is
    /// settled, or a node is that is nearer to them.
    below: u32,
    /// Gaps between what lives throughout the node or one above it, once no more blocks are to come that do.
    settled: Option<Box<Settled>>,
}

impl<'a> Occupied<'a> {
    /// Nothing is occupied yet; `times` knows the live ranges of all blocks to come.
    #[must_use]
    pub fn new(times: &'a Times) -> Self {
        let node = |&(parts, below): &(u32, u32)| Node { parts, below, ..Node::default() };
        Self { nodes: times.counts.iter().map(node).collect(), times, met: Ranges::new() }
    }

    /// The lowest node above all of a live range whose gaps are worth knowing and no longer change, and where in the list
    /// of nodes it is.
    fn settled_above(&mut self, range: usize) -> Option<usize> {
        let (sides, path) = self.times.common(range)?;
        let node = |at: &u32| &self.nodes[*at as usize];
        let still = path.iter().rev().take_while(|at| node(at).parts == 0).count();
        let is_worth_while = |at: &u32| node(at).settled.is_some() || node(at).below >= MANY;
        let place = path[path.len() - still..].iter().position(is_worth_while)? + path.len() - still;
        if node(&path[place]).settled.is_none() {
            self.met.clear();
            for at in &path[place..] {
                self.nodes[*at as usize].throughout.iter().for_each(|&range| merge(&mut self.met, range));
            }
            let settled = Settled::new(&self.met);
            self.nodes[path[place] as usize].settled = Some(Box::new(settled));
        }
        Some(sides + place)
    }

    /// Occupies `size` bytes during some of the live ranges, by their numbers: at the smallest gap that fits them (the
    /// lowest of equal ones), or else at the end of the occupied addresses. Returns their offset.
    pub fn place(&mut self, size: u64, ranges: Range<usize>) -> u64 {
        let times = self.times;
        let settled = if ranges.len() == 1 { self.settled_above(ranges.start) } else { None };
        self.met.clear();
        for range in ranges.clone() {
            let (parts, above) = times.looked_at(range);
            for &node in &times.looked_at[parts] {
                let node = &mut self.nodes[node as usize];
                node.parts -= 1;
                node.within.iter().for_each(|&range| merge(&mut self.met, range));
            }
            for &node in &times.looked_at[above.start..settled.unwrap_or(above.end)] {
                let node = &mut self.nodes[node as usize];
                node.below -= 1;
                node.throughout.iter().for_each(|&range| merge(&mut self.met, range));
            }
        }
        let gaps = settled.and_then(|place| self.nodes[times.looked_at[place] as usize].settled.as_deref());
        let offset = match gaps {
            Some(gaps) => gaps.smallest_gap(size, &self.met),
            None => smallest_gap(size, &self.met),
        };
        let top = offset.saturating_add(size).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        for range in ranges {
            let (parts, above) = times.looked_at(range);
            for &node in &times.looked_at[parts] {
                let node = &mut self.nodes[node as usize];
                if node.below > 0 {
                    merge(&mut node.throughout, (offset, top));
                }
                node.keep_within((offset, top));
            }
            // No more blocks look at what is within nodes above that are settled.
            for &node in &times.looked_at[above.start..settled.unwrap_or(above.end)] {
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
pub(super) fn smallest_gap(size: u64, ranges: &[(u64, u64)]) -> u64 {
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

/// Adds a range to others.
#[inline]
pub(super) fn merge(ranges: &mut Ranges, range: (u64, u64)) {
    let known = ranges.as_mut_slice();
    let from = known.partition_point(|known| known.1 < range.0);
    let Some(first) = known.get_mut(from).filter(|first| first.0 <= range.1) else {
        ranges.insert(from, range);
        return;
    };
    first.0 = first.0.min(range.0);
    // Mostly it has been there.
    if first.1 < range.1 {
        first.1 = range.1;
        let next = from + 1;
        let end = next + known[next..].iter().take_while(|next| next.0 <= range.1).count();
        if end > next {
            known[from].1 = known[end - 1].1.max(range.1);
            ranges.drain(next..end);
        }
    }
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
}
