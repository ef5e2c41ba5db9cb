//! Occupied addresses by time: finds free ranges for a block without checking every block placed before it.

use std::ops::Range;

use smallvec::SmallVec;

use super::ALIGNMENT;
use super::times::{Ends, Times, for_each_between};

/// Ranges of addresses, sorted, disjoint and not touching; the ends are aligned.
pub(super) type Ranges = SmallVec<[(u64, u64); 1]>;

/// Address ranges occupied at each time, by groups of neighbouring times at which blocks begin: two blocks that are live at
/// once are both live where the later one begins.
///
/// What a block meets is live throughout the group in which it begins or throughout that in which it ends, or begins or
/// ends in one of those two or between them. Ranges that lie side by side are merged: packed blocks leave few gaps, so
/// there is little to look at however many blocks there are.
#[derive(Debug)]
pub struct Occupied<'a> {
    groups: Vec<Group>,
    /// Ranges of the blocks that live throughout [`SECTION`] groups.
    sections: Vec<Known>,
    /// Ranges of the blocks that begin or end in the groups below a node of their tree.
    between: Vec<Known>,
    times: &'a Times,
    /// Whether every block lives at least as long as those after it: where two meet, the first then covers an end of the
    /// second, so that nobody needs to know what begins and ends between.
    is_longest_first: bool,
    /// Scratch space: the ranges met by a query.
    met: Ranges,
}

/// Groups of a section, as a power of two.
const SECTION: u32 = 4;

/// Some neighbouring times.
#[derive(Debug)]
struct Group {
    /// The blocks that live throughout them, but not throughout their section.
    throughout: Known,
    /// The blocks that live at some of them only.
    partly: Vec<Part>,
}

/// Ranges that are known as long as somebody is to come who looks at them.
#[derive(Debug)]
struct Known {
    ranges: Ranges,
    /// Live ranges to come that look at them.
    to_come: u32,
}

impl Known {
    fn new(to_come: u32) -> Self {
        Self { ranges: Ranges::new(), to_come }
    }

    fn enter(&mut self, range: (u64, u64)) {
        if self.to_come > 0 {
            merge(&mut self.ranges, range);
        }
    }

    /// Adds them to what a live range meets.
    fn add_to(&mut self, met: &mut Ranges) {
        self.to_come -= 1;
        if met.is_empty() {
            met.extend_from_slice(&self.ranges);
        } else {
            self.ranges.iter().for_each(|&range| merge(met, range));
        }
    }
}

/// A block that begins or ends inside a group.
#[derive(Debug)]
struct Part {
    ends: Ends,
    range: (u64, u64),
}

impl<'a> Occupied<'a> {
    /// Nothing is occupied yet; `times` knows the live ranges of all blocks to come. If `is_longest_first`, these come one
    /// by one, and none lives longer than one before it.
    #[must_use]
    pub fn new(times: &'a Times, is_longest_first: bool) -> Self {
        let group = |&to_come: &u32| Group { throughout: Known::new(to_come), partly: Vec::new() };
        let section = |groups: &[u32]| Known::new(groups.iter().sum());
        let between: &[u32] = if is_longest_first { &[] } else { &times.looked_at };
        Self {
            groups: times.ends_in.iter().map(group).collect(),
            sections: times.ends_in.chunks(1 << SECTION).map(section).collect(),
            between: between.iter().map(|&to_come| Known::new(to_come)).collect(),
            times,
            is_longest_first,
            met: Ranges::new(),
        }
    }

    /// Occupies `size` bytes during some of the live ranges, by their numbers: at the smallest gap that fits them (the
    /// lowest of equal ones), or else at the end of the occupied addresses. Returns their offset.
    pub fn place(&mut self, size: u64, ranges: Range<usize>) -> u64 {
        let times = self.times;
        self.met.clear();
        for ends in ranges.clone().filter_map(|range| times.ends(range)) {
            self.meet(ends);
        }
        let offset = smallest_gap(size, &self.met);
        let top = offset.saturating_add(size).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        for ends in ranges.filter_map(|range| times.ends(range)) {
            self.occupy(ends, (offset, top));
        }
        offset
    }

    /// Adds what is live at some time from one end to the other to what is met.
    fn meet(&mut self, ends: Ends) {
        let (first, last) = self.times.groups(ends);
        for group in each(first, last) {
            let (section, group) = (&mut self.sections[(group >> SECTION) as usize], &mut self.groups[group as usize]);
            section.add_to(&mut self.met);
            group.throughout.add_to(&mut self.met);
            let is_met = |part: &&Part| part.ends.0 <= ends.1 && ends.0 <= part.ends.1;
            group.partly.iter().filter(is_met).for_each(|part| merge(&mut self.met, part.range));
        }
        if !self.is_longest_first {
            for_each_between(self.times.leaves, first, last, |node| {
                self.between[node as usize].add_to(&mut self.met);
            });
        }
    }

    /// Occupies a range of addresses from one end to the other.
    fn occupy(&mut self, ends: Ends, range: (u64, u64)) {
        let (first, last) = self.times.groups(ends);
        let (begin, end) = self.times.throughout(ends);
        // Whole sections, and the groups before and after them.
        let (from, to) = ((begin + (1 << SECTION) - 1) >> SECTION, end >> SECTION);
        let (before, after) = if from < to {
            self.sections[from as usize..to as usize].iter_mut().for_each(|section| section.enter(range));
            (begin..from << SECTION, to << SECTION..end)
        } else {
            (begin..end, end..end)
        };
        for group in before.chain(after) {
            self.groups[group as usize].throughout.enter(range);
        }
        for group in each(first, last) {
            let is_whole = (begin..end).contains(&group);
            if !is_whole {
                self.groups[group as usize].partly.push(Part { ends, range });
            }
            if !self.is_longest_first {
                let mut node = self.times.leaves + group;
                while node > 0 {
                    self.between[node as usize].enter(range);
                    node >>= 1;
                }
            }
        }
    }
}

/// Both, or one if they are the same.
fn each(first: u32, last: u32) -> impl Iterator<Item = u32> {
    std::iter::once(first).chain((first != last).then_some(last))
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
    // Often there is but one, or it is the last.
    let from = match known.last() {
        Some(last) if last.1 < range.0 => known.len(),
        Some(last) if last.0 <= range.0 => known.len() - 1,
        _ => known.partition_point(|known| known.1 < range.0),
    };
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
