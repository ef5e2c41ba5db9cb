//! The union of address ranges that are added and removed; a range may be added several times.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Half-open address ranges; each byte counts once, however many ranges cover it.
#[derive(Debug, Default)]
pub struct AddressUnion {
    /// Disjoint segments: start to (end, number of ranges that cover it).
    segments: BTreeMap<u64, (u64, u32)>,
}

impl AddressUnion {
    /// Adds a range; returns how many bytes became occupied and passes on the segments that did.
    pub fn add(&mut self, start: u64, end: u64, gained: &mut impl FnMut(u64, u64)) -> u64 {
        if start >= end {
            return 0;
        }
        // Fast path: usually nothing overlaps.
        let before = self.segments.range(..end).next_back();
        if before.is_none_or(|(_, &(before_end, _))| before_end <= start) {
            self.segments.insert(start, (end, 1));
            gained(start, end);
            return end - start;
        }
        self.split(start);
        self.split(end);
        let mut added = 0;
        let mut at = start;
        let inside: Vec<(u64, u64)> = self.segments.range(start..end).map(|(&s, &(e, _))| (s, e)).collect();
        for (segment_start, segment_end) in inside {
            if at < segment_start {
                self.segments.insert(at, (segment_start, 1));
                gained(at, segment_start);
                added += segment_start - at;
            }
            if let Some((_, count)) = self.segments.get_mut(&segment_start) {
                *count += 1;
            }
            at = segment_end;
        }
        if at < end {
            self.segments.insert(at, (end, 1));
            gained(at, end);
            added += end - at;
        }
        added
    }

    /// Removes a range added before; returns how many bytes became free and passes on the segments that did.
    pub fn remove(&mut self, start: u64, end: u64, lost: &mut impl FnMut(u64, u64)) -> u64 {
        if start >= end {
            return 0;
        }
        if let Entry::Occupied(segment) = self.segments.entry(start)
            && *segment.get() == (end, 1)
        {
            segment.remove();
            lost(start, end);
            return end - start;
        }
        let mut freed = 0;
        let inside: Vec<(u64, u64, u32)> = self.segments.range(start..end).map(|(&s, &(e, n))| (s, e, n)).collect();
        for (segment_start, segment_end, count) in inside {
            if count <= 1 {
                self.segments.remove(&segment_start);
                lost(segment_start, segment_end);
                freed += segment_end - segment_start;
            } else if let Some((_, count)) = self.segments.get_mut(&segment_start) {
                *count -= 1;
            }
        }
        freed
    }

    /// Splits the segment that spans an address, if any.
    fn split(&mut self, at: u64) {
        let Some((&start, &(end, count))) = self.segments.range(..at).next_back() else { return };
        if end > at {
            self.segments.insert(start, (at, count));
            self.segments.insert(at, (end, count));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Adds and removes ranges in any order and compares with a byte-by-byte count.
        #[test]
        fn counts_every_byte_once(
            ranges in proptest::collection::vec((0u64..64, 1u64..24), 1..12),
            order in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut union = AddressUnion::default();
            let mut taken = vec![0u32; 128];
            let mut named = [0i32; 128];
            let mut open: Vec<(u64, u64)> = Vec::new();
            let mut occupied = 0u64;
            for &(start, len) in &ranges {
                occupied += union.add(start, start + len, &mut |from, to| for byte in from..to { named[byte as usize] += 1; });
                for byte in start..start + len { taken[byte as usize] += 1; }
                open.push((start, start + len));
                prop_assert_eq!(occupied, taken.iter().filter(|&&n| n > 0).count() as u64);
            }
            for index in order {
                if open.is_empty() { break; }
                let (start, end) = open.swap_remove(index.index(open.len()));
                occupied -= union.remove(start, end, &mut |from, to| for byte in from..to { named[byte as usize] -= 1; });
                for byte in start..end { taken[byte as usize] -= 1; }
                prop_assert_eq!(occupied, taken.iter().filter(|&&n| n > 0).count() as u64);
            }
            prop_assert!(named.iter().zip(&taken).all(|(&named, &taken)| named == i32::from(taken > 0)));
        }
    }

    #[test]
    fn an_empty_range_is_nothing() {
        let mut union = AddressUnion::default();
        assert_eq!(union.add(5, 5, &mut |_, _| ()), 0);
        assert_eq!(union.remove(5, 5, &mut |_, _| ()), 0);
    }
}
