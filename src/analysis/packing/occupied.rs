//! Occupied addresses by time: finds free ranges for a block without checking every block placed before it.

use std::ops::Range;

use smallvec::SmallVec;

use super::times::{Ends, GROUPS, Times, each, for_each_between};

/// Ranges of addresses, sorted, disjoint and not touching; the ends are aligned.
pub(super) type Ranges = SmallVec<[(u64, u64); 2]>;

/// Address ranges occupied at each time at which blocks begin: two blocks that are live at once are both live where the
/// later one begins.
///
/// What a block meets is live where it begins or where it ends, or begins or ends between. Ranges that lie side by side are
/// merged: packed blocks leave few gaps, so there is little to look at however many blocks there are.
#[derive(Debug)]
pub struct Occupied<'a> {
    /// By level and group of times: ranges of the blocks that live throughout the group, but not throughout the one above.
    levels: Vec<Vec<Known>>,
    /// Ranges of the blocks that begin or end in the times below a node of their tree.
    between: Vec<Known>,
    times: &'a Times,
    /// Whether every block lives at least as long as those after it: where two meet, the first then covers an end of the
    /// second, so that nobody needs to know what begins and ends between.
    is_longest_first: bool,
    /// Scratch space: the ranges met by a query.
    met: Met,
    /// Alignment of offsets in bytes.
    alignment: u64,
}

/// Ranges met by a query, with the room to put them together with others.
#[derive(Debug, Default)]
struct Met {
    ranges: Ranges,
    united: Ranges,
}

/// Part of the ranges met up to which others are added one by one.
const FEW: usize = 8;

impl Met {
    /// Adds sorted ranges: where there are many, in one walk along both lists.
    fn add(&mut self, others: &[(u64, u64)]) {
        let Some((first, last)) = others.first().zip(others.last()) else { return };
        if self.ranges.is_empty() {
            self.ranges.extend_from_slice(others);
        } else if self.ranges.len() == 1 && self.ranges[0].0 <= first.0 && last.1 <= self.ranges[0].1 {
            // Mostly what lives longest leaves no gap at all.
        } else if others.len() < self.ranges.len() / FEW {
            for &range in others {
                merge(&mut self.ranges, range);
            }
        } else {
            self.united.clear();
            unite(&self.ranges, others, &mut self.united);
            std::mem::swap(&mut self.ranges, &mut self.united);
        }
    }
}

/// Appends to `united` what two sorted lists of ranges come to.
fn unite(one: &[(u64, u64)], other: &[(u64, u64)], united: &mut Ranges) {
    united.reserve(one.len() + other.len());
    let (mut ones, mut others) = (one, other);
    let mut last: Option<(u64, u64)> = None;
    loop {
        let next = match (ones, others) {
            ([first, rest @ ..], [second, ..]) if first.0 <= second.0 => {
                ones = rest;
                *first
            }
            (_, [second, rest @ ..]) => {
                others = rest;
                *second
            }
            ([first, rest @ ..], []) => {
                ones = rest;
                *first
            }
            ([], []) => break,
        };
        match &mut last {
            Some(last) if next.0 <= last.1 => last.1 = last.1.max(next.1),
            _ => {
                if let Some(done) = last.replace(next) {
                    united.push(done);
                }
            }
        }
    }
    united.extend(last);
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
    fn add_to(&mut self, met: &mut Met) {
        self.to_come -= 1;
        met.add(&self.ranges);
    }
}

impl<'a> Occupied<'a> {
    /// Nothing is occupied yet; `times` knows the live ranges of all blocks to come. If `is_longest_first`, these come one
    /// by one, and none lives longer than one before it.
    #[must_use]
    pub fn new(times: &'a Times, is_longest_first: bool, alignment: u64) -> Self {
        let known = |counts: &[u32]| counts.iter().map(|&to_come| Known::new(to_come)).collect();
        Self {
            levels: times.ends_in.iter().map(|level| known(level)).collect(),
            between: if is_longest_first { Vec::new() } else { known(&times.looked_at) },
            times,
            is_longest_first,
            met: Met::default(),
            alignment,
        }
    }

    /// Occupies `size` bytes during some of the live ranges, by their numbers: at the smallest gap that fits them (the
    /// lowest of equal ones), or else at the end of the occupied addresses. Returns their offset.
    pub fn place(&mut self, size: u64, ranges: Range<usize>) -> u64 {
        let times = self.times;
        self.met.ranges.clear();
        for ends in ranges.clone().filter_map(|range| times.ends(range)) {
            self.meet(ends);
        }
        let offset = smallest_gap(size, &self.met.ranges);
        let top = offset.saturating_add(size).checked_next_multiple_of(self.alignment).unwrap_or(u64::MAX);
        for ends in ranges.filter_map(|range| times.ends(range)) {
            self.occupy(ends, (offset, top));
        }
        offset
    }

    /// Adds what is live at some time from one end to the other to what is met.
    fn meet(&mut self, (first, last): Ends) {
        // The longest-lived first, which are most.
        for (level, groups) in self.levels.iter_mut().enumerate().rev() {
            let shift = GROUPS * level as u32;
            each(first >> shift, last >> shift).for_each(|group| groups[group as usize].add_to(&mut self.met));
        }
        if !self.is_longest_first {
            for_each_between(self.times.leaves, first, last, |node| self.between[node as usize].add_to(&mut self.met));
        }
    }

    /// Occupies a range of addresses from one end to the other.
    fn occupy(&mut self, (first, last): Ends, range: (u64, u64)) {
        let (mut begin, mut end) = (first, last + 1);
        for groups in &mut self.levels {
            // Larger groups take all but what is before and after them.
            let (from, to) = ((begin + (1 << GROUPS) - 1) >> GROUPS, end >> GROUPS);
            let is_last = from >= to || groups.len() == 1;
            let (before, after) =
                if is_last { (begin..end, end..end) } else { (begin..from << GROUPS, to << GROUPS..end) };
            before.chain(after).for_each(|group| groups[group as usize].enter(range));
            if is_last {
                break;
            }
            (begin, end) = (from, to);
        }
        if !self.is_longest_first {
            for end in each(first, last) {
                let mut node = self.times.leaves + end;
                while node > 0 {
                    self.between[node as usize].enter(range);
                    node >>= 1;
                }
            }
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

    #[test]
    fn many_ranges_are_added_as_one_by_one() {
        let every = |step: u64, size: u64| (0..40).map(|k| (k * step, k * step + size)).collect::<Vec<_>>();
        let lists = [every(30, 7), every(42, 12), every(17, 2), vec![(5, 400)], every(30, 3), every(1000, 1)];
        let mut met = Met::default();
        let mut expected = Ranges::new();
        for list in lists {
            met.add(&list);
            for range in list {
                merge(&mut expected, range);
            }
            assert_eq!(met.ranges, expected);
        }
    }
}
