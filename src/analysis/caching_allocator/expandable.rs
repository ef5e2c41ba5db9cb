//! What expandable segments would reserve: the same allocations placed as PyTorch places them in segments that grow.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::device::CachingAnalysis;
use super::space::{Rounding, class_of};
use crate::model::{CachingSnapshot, NO_ROW, SizeClass};

/// Pages of a segment for small and for large requests.
const PAGES: (u64, u64) = (2 << 20, 20 << 20);

/// What a segment serves: stream, pool and size class.
type Home = (i64, (i64, i64), SizeClass);

/// One segment that grows.
#[derive(Debug, Default)]
struct Growing {
    page: u64,
    end: u64,
    by_size: BTreeSet<(u64, u64)>,
    by_address: BTreeMap<u64, u64>,
}

impl Growing {
    fn take(&mut self, address: u64, size: u64) {
        self.by_address.remove(&address);
        self.by_size.remove(&(size, address));
    }

    fn put(&mut self, address: u64, size: u64) {
        if size > 0 {
            self.by_address.insert(address, size);
            self.by_size.insert((size, address));
        }
    }

    /// Hands out the smallest range that is large enough, or grows. Returns its address and the bytes added.
    fn alloc(&mut self, bytes: u64) -> (u64, u64) {
        if let Some(&(size, address)) = self.by_size.range((bytes, 0)..).next() {
            self.take(address, size);
            self.put(address.saturating_add(bytes), size - bytes);
            return (address, 0);
        }
        // What is free at the end is used, too.
        let tail = self.by_address.iter().next_back().map(|(&address, &size)| (address, size));
        let (address, size) =
            tail.filter(|&(address, size)| address.checked_add(size) == Some(self.end)).unwrap_or((self.end, 0));
        self.take(address, size);
        let added = (bytes - size).checked_next_multiple_of(self.page).unwrap_or(bytes - size);
        self.end = self.end.saturating_add(added);
        let behind = address.saturating_add(bytes);
        self.put(behind, self.end.saturating_sub(behind));
        (address, added)
    }

    fn free(&mut self, mut address: u64, mut bytes: u64) {
        if let Some((&before, &size)) = self.by_address.range(..address).next_back()
            && before.checked_add(size) == Some(address)
        {
            self.take(before, size);
            (address, bytes) = (before, bytes.saturating_add(size));
        }
        let behind = address.saturating_add(bytes);
        if let Some(&size) = self.by_address.get(&behind) {
            self.take(behind, size);
            bytes = bytes.saturating_add(size);
        }
        self.put(address, bytes);
    }
}

/// What expandable segments would reserve. Sizes are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpandableUse {
    /// The most that is reserved.
    pub peak: u64,
    /// What is reserved with the last failed request served.
    pub with_request: Option<u64>,
}

impl CachingAnalysis {
    /// The allocations of the history in expandable segments. Pages stay once they are there, as in PyTorch while there is
    /// room.
    #[must_use]
    pub fn in_expandable_segments(&self, snapshot: &CachingSnapshot) -> ExpandableUse {
        let rounding = Rounding::new(&snapshot.settings);
        let lifetimes = &self.replay.lifetimes;
        // Ends before beginnings, should a moment have both.
        let mut changes: Vec<(u32, bool, usize)> =
            lifetimes.iter().enumerate().map(|(row, life)| (life.start, true, row)).collect();
        let ends = lifetimes.iter().enumerate().filter(|(_, life)| life.end != NO_ROW);
        changes.extend(ends.map(|(row, life)| (life.end, false, row)));
        changes.sort_unstable();
        let home =
            |event: usize, class: SizeClass| -> Home { (snapshot.stream_of(event), snapshot.pool_of(event), class) };
        let event_of = |moment: u32| self.device.events.start + (moment as usize).saturating_sub(1);
        let mut segments: HashMap<Home, Growing> = HashMap::new();
        let mut placed: HashMap<usize, (Home, u64)> = HashMap::new();
        let (mut reserved, mut found) = (0u64, ExpandableUse { peak: 0, with_request: None });
        let mut serve = |segments: &mut HashMap<Home, Growing>, home: Home, bytes: u64| {
            let (_, _, class) = home;
            let page = if class == SizeClass::Small { PAGES.0 } else { PAGES.1 };
            let segment: &mut Growing = segments.entry(home).or_insert_with(|| Growing { page, ..Growing::default() });
            let (address, added) = segment.alloc(bytes);
            reserved = reserved.saturating_add(added);
            (address, reserved)
        };
        let failed = self.failure().map(|failure| failure.moment);
        for (moment, is_begin, row) in changes {
            if failed.is_some_and(|failed| moment > failed) {
                break;
            }
            let life = &lifetimes[row];
            let bytes = rounding.block(life.requested).min(1 << 50);
            if is_begin {
                let class = class_of(life.requested);
                let home = if life.is_old() { (0, (0, 0), class) } else { home(event_of(moment), class) };
                let (address, now) = serve(&mut segments, home, bytes);
                placed.insert(row, (home, address));
                found.peak = found.peak.max(now);
            } else if let Some((home, address)) = placed.remove(&row)
                && let Some(segment) = segments.get_mut(&home)
            {
                segment.free(address, bytes);
            }
        }
        if let Some(failure) = self.failure() {
            let home = home(event_of(failure.moment), class_of(failure.requested));
            found.with_request = Some(serve(&mut segments, home, failure.requested.min(1 << 50)).1);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_grow_by_what_is_missing_at_their_end() {
        let mut segment = Growing { page: 20, ..Growing::default() };
        assert_eq!(segment.alloc(30), (0, 40));
        assert_eq!(segment.alloc(10), (30, 0));
        segment.free(0, 30);
        segment.free(30, 10);
        assert_eq!(segment.alloc(50), (0, 20));
        assert_eq!(segment.by_address.into_iter().collect::<Vec<_>>(), [(50, 10)]);
    }
}
