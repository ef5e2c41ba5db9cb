//! The heap while blocks come and go in program order: places that are taken, and gaps between them.

use std::collections::BTreeSet;

use super::block::ALIGNMENT;
use crate::model::NO_ROW;

/// Gaps that are kept in a plain list: searching and moving so few takes less time than following a tree.
const FEW: usize = 128;

/// A gap: usable bytes, start, row of the place. The order is that in which gaps are taken.
type Gap = (u64, u64, u32);

/// Gaps that contain an aligned address.
#[derive(Debug, Default)]
struct Usable {
    /// Sorted; empty while `many` is not.
    few: Vec<Gap>,
    many: BTreeSet<Gap>,
}

impl Usable {
    fn insert(&mut self, gap: Gap) {
        if !self.many.is_empty() {
            self.many.insert(gap);
        } else if self.few.len() < FEW {
            let at = self.few.partition_point(|known| *known < gap);
            self.few.insert(at, gap);
        } else {
            self.many = self.few.drain(..).chain([gap]).collect();
        }
    }

    fn remove(&mut self, gap: Gap) {
        if self.many.is_empty() {
            if let Ok(at) = self.few.binary_search(&gap) {
                self.few.remove(at);
            }
        } else if self.many.remove(&gap) && self.many.len() <= FEW / 4 {
            self.few = std::mem::take(&mut self.many).into_iter().collect();
        }
    }

    /// Takes out the smallest gap with so many usable bytes, the lowest of equal ones.
    fn take(&mut self, size: u64) -> Option<u32> {
        if self.many.is_empty() {
            let at = self.few.partition_point(|known| known.0 < size);
            return (at < self.few.len()).then(|| self.few.remove(at).2);
        }
        let best = self.many.range((size, 0, 0)..).next().copied()?;
        self.remove(best);
        Some(best.2)
    }
}

/// A range of addresses that is taken, or a gap; its neighbours touch it.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: u64,
    end: u64,
    /// Rows of the places before and after it, or `NO_ROW`.
    before: u32,
    after: u32,
    is_gap: bool,
}

/// The heap as a chain of places, up to its top, which is taken.
#[derive(Debug)]
pub(super) struct Heap {
    places: Vec<Place>,
    /// Rows of the places that are not in the chain.
    unused: Vec<u32>,
    /// Row of the place at the top, or `NO_ROW`.
    last: u32,
    gaps: Usable,
}

/// The next aligned address.
fn aligned(address: u64) -> u64 {
    address.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX)
}

impl Heap {
    /// An empty heap.
    pub fn new() -> Self {
        Self { places: Vec::new(), unused: Vec::new(), last: NO_ROW, gaps: Usable::default() }
    }

    fn add(&mut self, place: Place) -> u32 {
        if let Some(row) = self.unused.pop() {
            self.places[row as usize] = place;
            return row;
        }
        self.places.push(place);
        self.places.len() as u32 - 1
    }

    /// Lets one place come after another in the chain.
    fn link(&mut self, before: u32, after: u32) {
        if let Some(place) = self.places.get_mut(before as usize) {
            place.after = after;
        }
        match self.places.get_mut(after as usize) {
            Some(place) => place.before = before,
            None => self.last = before,
        }
    }

    /// The gap as it is listed; `None` where it contains no aligned address.
    fn listed(&self, row: u32) -> Option<Gap> {
        let Place { start, end, .. } = self.places[row as usize];
        let usable = end.saturating_sub(aligned(start));
        (usable > 0).then_some((usable, start, row))
    }

    /// Allocates a block: its place, with the slack before it, and its offset.
    pub fn take(&mut self, size: u64) -> (u32, u64) {
        let Some(row) = self.gaps.take(size) else {
            let start = self.places.get(self.last as usize).map_or(0, |place| place.end);
            let offset = aligned(start);
            let end = offset.saturating_add(size);
            let row = self.add(Place { start, end, before: self.last, after: NO_ROW, is_gap: false });
            self.link(self.last, row);
            self.last = row;
            return (row, offset);
        };
        let Place { start, end, after, .. } = self.places[row as usize];
        let offset = aligned(start);
        let own = &mut self.places[row as usize];
        own.end = offset.saturating_add(size);
        own.is_gap = false;
        let rest = own.end;
        if rest < end {
            let gap = self.add(Place { start: rest, end, before: row, after, is_gap: true });
            self.link(row, gap);
            self.link(gap, after);
            if let Some(listed) = self.listed(gap) {
                self.gaps.insert(listed);
            }
        }
        (row, offset)
    }

    /// Takes a gap out of the chain that another place has swallowed.
    fn swallow(&mut self, row: u32) {
        if let Some(listed) = self.listed(row) {
            self.gaps.remove(listed);
        }
        let Place { before, after, .. } = self.places[row as usize];
        self.link(before, after);
        self.unused.push(row);
    }

    /// Frees a place and merges it with the gaps beside it.
    pub fn give_back(&mut self, row: u32) {
        let Place { before, after, .. } = self.places[row as usize];
        if let Some(gap) = self.places.get(before as usize).copied().filter(|place| place.is_gap) {
            self.places[row as usize].start = gap.start;
            self.swallow(before);
        }
        if let Some(gap) = self.places.get(after as usize).copied().filter(|place| place.is_gap) {
            self.places[row as usize].end = gap.end;
            self.swallow(after);
        }
        if self.last == row {
            self.link(self.places[row as usize].before, NO_ROW);
            self.unused.push(row);
        } else {
            self.places[row as usize].is_gap = true;
            if let Some(listed) = self.listed(row) {
                self.gaps.insert(listed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_gaps_and_many_are_taken_in_the_same_order() {
        let mut gaps = Usable::default();
        let count = 3 * FEW as u64;
        for row in 0..count {
            gaps.insert((1 + row * 7 % 30, row, row as u32));
        }
        assert!(gaps.few.is_empty());
        gaps.remove((1, 0, 0));
        let mut taken: Vec<u32> = std::iter::from_fn(|| gaps.take(3)).collect();
        assert!(!gaps.few.is_empty() && gaps.many.is_empty());
        taken.extend(std::iter::from_fn(|| gaps.take(0)));
        let key = |row: u64| (1 + row * 7 % 30, row);
        let mut expected: Vec<u64> = (1..count).collect();
        expected.sort_by_key(|&row| (key(row).0 < 3, key(row)));
        assert_eq!(taken, expected.iter().map(|&row| row as u32).collect::<Vec<_>>());
    }
}
