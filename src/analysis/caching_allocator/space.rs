//! The address space of a caching allocator: segments, and the free ranges in them.

use std::collections::BTreeMap;

use crate::model::{AllocatorSettings, SizeClass};

/// Largest request of the small pool, and the rest that a large block keeps rather than splits.
pub const SMALL_LIMIT: u64 = 1 << 20;

/// A segment of the small pool, and a page of an expandable one.
pub const SMALL_SEGMENT: u64 = 2 << 20;

/// A segment for requests below [`LARGE_FROM`], and a page of an expandable one.
const LARGE_SEGMENT: u64 = 20 << 20;

/// Requests of at least this many bytes get a segment of their own size.
const LARGE_FROM: u64 = 10 << 20;

/// Smallest block.
const BLOCK: u64 = 512;

/// What the settings say about sizes.
#[derive(Debug, Clone, Default)]
pub struct Rounding {
    divisions: Vec<(u64, u64)>,
    max_split: u64,
    is_expandable: bool,
}

impl Rounding {
    /// From the settings.
    pub fn new(settings: &AllocatorSettings) -> Self {
        Self {
            divisions: settings.roundup_power2_divisions.clone(),
            max_split: settings.max_split_size.unwrap_or(u64::MAX),
            is_expandable: settings.expandable_segments == Some(true),
        }
    }

    /// Bytes of the smallest block for a request.
    pub fn block(&self, bytes: u64) -> u64 {
        if bytes < BLOCK {
            return BLOCK;
        }
        if !self.divisions.is_empty() {
            let power = bytes.ilog2();
            let row = 1u64 << power.saturating_sub(20).min(15);
            let count = self.divisions.iter().find(|(mib, _)| *mib == row).map_or(0, |(_, count)| *count);
            if count > 1 && bytes > BLOCK.saturating_mul(count) {
                let step = ((1u64 << power) / count).max(1);
                return bytes.checked_next_multiple_of(step).unwrap_or(u64::MAX);
            }
        }
        bytes.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX)
    }

    /// Bytes the driver is asked for when no free block fits.
    pub fn segment(&self, bytes: u64) -> u64 {
        let is_small = bytes <= SMALL_LIMIT;
        let page = match (self.is_expandable, is_small) {
            (_, true) => SMALL_SEGMENT,
            (true, false) => LARGE_SEGMENT,
            (false, false) if bytes < LARGE_FROM => LARGE_SEGMENT,
            (false, false) => SMALL_SEGMENT,
        };
        bytes.max(1).checked_next_multiple_of(page).unwrap_or(u64::MAX)
    }

    /// Whether the rest of a free range is split off a block.
    fn splits(&self, block: u64, rest: u64, is_expandable: bool) -> bool {
        if block <= SMALL_LIMIT || is_expandable { rest >= BLOCK } else { block < self.max_split && rest > SMALL_LIMIT }
    }
}

/// The size class that serves a request.
pub const fn class_of(bytes: u64) -> SizeClass {
    if bytes <= SMALL_LIMIT { SizeClass::Small } else { SizeClass::Large }
}

/// A range reserved from the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// Bytes.
    pub size: u64,
    /// Stream handle.
    pub stream: i64,
    /// Pool.
    pub pool: (i64, i64),
    /// Size class; known of every segment that the file lists, else by size.
    pub class: SizeClass,
    /// Whether it grows and shrinks.
    pub is_expandable: bool,
}

impl Reserved {
    /// Whether a neighbour belongs to the same expandable segment.
    fn joins(&self, other: &Self) -> bool {
        self.is_expandable && other.is_expandable && self.stream == other.stream
    }
}

/// Segments by address.
#[derive(Debug, Clone, Default)]
pub struct Segments {
    /// Segments by first byte.
    pub by_address: BTreeMap<u64, Reserved>,
}

impl Segments {
    /// Total bytes.
    pub fn bytes(&self) -> u64 {
        self.by_address.values().map(|segment| segment.size).fold(0, u64::saturating_add)
    }

    /// The segment that holds an address, with its first byte.
    pub fn holding(&self, address: u64) -> Option<(u64, Reserved)> {
        let (&start, &segment) = self.by_address.range(..=address).next_back()?;
        (address - start < segment.size).then_some((start, segment))
    }

    /// Adds pages, joined with the mapped pages beside them. Returns where the joined range begins.
    pub fn map(&mut self, address: u64, mut pages: Reserved) -> u64 {
        let mut start = address;
        if let Some((&before, &segment)) = self.by_address.range(..address).next_back()
            && before.saturating_add(segment.size) == address
            && segment.joins(&pages)
        {
            self.by_address.remove(&before);
            start = before;
            pages = Reserved { size: pages.size.saturating_add(segment.size), ..segment };
        }
        let end = start.saturating_add(pages.size);
        if let Some(&after) = self.by_address.get(&end)
            && after.joins(&pages)
        {
            self.by_address.remove(&end);
            pages.size = pages.size.saturating_add(after.size);
        }
        self.by_address.insert(start, pages);
        start
    }

    /// Takes pages out of the segment that holds them; whether there is one.
    pub fn unmap(&mut self, address: u64, size: u64) -> bool {
        let Some((start, segment)) = self.holding(address) else { return false };
        let end = start.saturating_add(segment.size);
        let Some(until) = address.checked_add(size).filter(|&until| until <= end) else { return false };
        self.by_address.remove(&start);
        if start < address {
            self.by_address.insert(start, Reserved { size: address - start, ..segment });
        }
        if until < end {
            self.by_address.insert(until, Reserved { size: end - until, ..segment });
        }
        true
    }
}

/// Free ranges by address.
#[derive(Debug, Clone, Default)]
pub struct Free {
    /// Bytes by first byte.
    pub by_address: BTreeMap<u64, u64>,
}

impl Free {
    /// Adds a range, joined with free neighbours between `floor` and `ceiling`, the bounds of its segment.
    pub fn add(&mut self, address: u64, size: u64, (floor, ceiling): (u64, u64)) {
        let (mut start, mut end) = (address, address.saturating_add(size));
        if let Some((&before, &length)) = self.by_address.range(..start).next_back()
            && before >= floor
            && before.saturating_add(length) == start
        {
            self.by_address.remove(&before);
            start = before;
        }
        if end < ceiling
            && let Some(length) = self.by_address.remove(&end)
        {
            end = end.saturating_add(length);
        }
        if end > start {
            self.by_address.insert(start, end - start);
        }
    }

    /// Takes the block for a request from the free range that starts there. Returns its size; `None` if no free range
    /// of at least that many bytes starts there.
    pub fn take(&mut self, address: u64, block: u64, rounding: &Rounding, is_expandable: bool) -> Option<u64> {
        let length = *self.by_address.get(&address)?;
        let rest = length.checked_sub(block)?;
        self.by_address.remove(&address);
        if !rounding.splits(block, rest, is_expandable) {
            return Some(length);
        }
        self.by_address.insert(address + block, rest);
        Some(block)
    }

    /// Cuts a range out of the free range that holds it.
    pub fn cut(&mut self, address: u64, size: u64) {
        let Some((&start, &length)) = self.by_address.range(..=address).next_back() else { return };
        let (end, until) = (start.saturating_add(length), address.saturating_add(size));
        if until > end {
            return;
        }
        self.by_address.remove(&start);
        if start < address {
            self.by_address.insert(start, address - start);
        }
        if until < end {
            self.by_address.insert(until, end - until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_rounded_as_the_settings_say() {
        let plain = Rounding::new(&AllocatorSettings::default());
        assert_eq!([0, 1, 512, 513, 4097].map(|bytes| plain.block(bytes)), [512, 512, 512, 1024, 4608]);
        let settings = AllocatorSettings { roundup_power2_divisions: vec![(1, 4), (2, 8)], ..Default::default() };
        let divided = Rounding::new(&settings);
        // Below 1 MiB the first row holds: a quarter of the power of two below.
        assert_eq!(divided.block(600 << 10), 640 << 10);
        assert_eq!(divided.block((2 << 20) + 1), (2 << 20) + (256 << 10));
        assert_eq!(divided.block((4 << 20) + 1), (4 << 20) + 512);
    }

    #[test]
    fn the_driver_is_asked_for_whole_segments() {
        let plain = Rounding::new(&AllocatorSettings::default());
        let mib = 1u64 << 20;
        assert_eq!([1, mib, mib + 1, 10 * mib, 57 * mib].map(|b| plain.segment(b) / mib), [2, 2, 20, 10, 58]);
        let settings = AllocatorSettings { expandable_segments: Some(true), ..Default::default() };
        let expandable = Rounding::new(&settings);
        assert_eq!([mib, mib + 1, 57 * mib].map(|bytes| expandable.segment(bytes) / mib), [2, 20, 60]);
        assert_eq!(plain.segment(u64::MAX), u64::MAX);
    }

    #[test]
    fn free_ranges_join_inside_their_segment_only() {
        let mut free = Free::default();
        free.add(100, 50, (100, 200));
        free.add(150, 50, (100, 200));
        free.add(200, 50, (200, 300));
        assert_eq!(free.by_address.into_iter().collect::<Vec<_>>(), [(100, 100), (200, 50)]);
    }
}
