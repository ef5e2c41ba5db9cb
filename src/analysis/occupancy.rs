//! Occupied bytes over program order: the union of the addresses of what is live, never a sum of sizes.
//!
//! Values that share memory touch at the point where one hands over to the next, and scratch of asynchronous work is
//! shared on purpose; adding sizes would count such bytes twice.

use std::collections::BTreeMap;

use super::live_range::LiveRanges;
use super::steps::Steps;
use crate::model::{BufferId, Bytes, Program};

/// Curves of one memory space over the points of the program, one value for each point and one for the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// What lives throughout plus the occupied part of the heap: what the compiler sets aside. XProf's peak is on this
    /// curve's scale.
    pub reserved: Steps,
    /// Occupied by buffers that hold something at the point, arguments and results included.
    pub content: Steps,
    /// Highest value of `reserved`, and the first point that reaches it.
    pub reserved_peak: Bytes,
    /// First point of the reserved peak.
    pub reserved_peak_point: u32,
    /// Highest value of `content`, and the first point that reaches it.
    pub content_peak: Bytes,
    /// First point of the content peak.
    pub content_peak_point: u32,
}

/// The union of half-open address ranges, each taken any number of times.
#[derive(Debug, Default)]
struct Union {
    /// Start to (end, how often taken); disjoint.
    segments: BTreeMap<u64, (u64, u32)>,
}

impl Union {
    /// Takes a range; returns how many bytes became occupied.
    fn add(&mut self, start: u64, end: u64) -> u64 {
        // Mostly nothing overlaps; one look tells.
        let before = self.segments.range(..end).next_back();
        if before.is_none_or(|(_, &(before_end, _))| before_end <= start) {
            self.segments.insert(start, (end, 1));
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
                added += segment_start - at;
            }
            if let Some((_, count)) = self.segments.get_mut(&segment_start) {
                *count += 1;
            }
            at = segment_end;
        }
        if at < end {
            self.segments.insert(at, (end, 1));
            added += end - at;
        }
        added
    }

    /// Gives a range back that was taken before; returns how many bytes became free.
    fn remove(&mut self, start: u64, end: u64) -> u64 {
        if self.segments.get(&start) == Some(&(end, 1)) {
            self.segments.remove(&start);
            return end - start;
        }
        let mut freed = 0;
        let inside: Vec<(u64, u64, u32)> = self.segments.range(start..end).map(|(&s, &(e, n))| (s, e, n)).collect();
        for (segment_start, segment_end, count) in inside {
            if count <= 1 {
                self.segments.remove(&segment_start);
                freed += segment_end - segment_start;
            } else if let Some((_, count)) = self.segments.get_mut(&segment_start) {
                *count -= 1;
            }
        }
        freed
    }

    /// Makes sure that no segment runs across an address.
    fn split(&mut self, at: u64) {
        let Some((&start, &(end, count))) = self.segments.range(..at).next_back() else { return };
        if end > at {
            self.segments.insert(start, (at, count));
            self.segments.insert(at, (end, count));
        }
    }
}

/// A buffer in the sweep.
struct Item {
    buffer: BufferId,
    offset: u64,
    /// Row of the allocation's union, or `u32::MAX` where nothing else is in the allocation.
    union: u32,
    is_heap: bool,
}

/// Sweeps one memory space; `baseline` is what stands under the reserved curve throughout. `None` without buffers.
#[must_use]
pub fn occupancy(program: &Program, live: &LiveRanges, color: i64, baseline: Bytes) -> Occupancy {
    let points = live.points() as usize;
    // Items by first and by last point, as chains through arrays: a counting sort without its second pass.
    let mut items = Vec::new();
    let mut first: Vec<u32> = vec![u32::MAX; points + 1];
    let mut last: Vec<u32> = vec![u32::MAX; points + 1];
    let mut next: Vec<(u32, u32)> = Vec::new();
    let mut unions = Vec::new();
    for allocation in &program.allocations {
        if allocation.color != color || allocation.is_thread_local {
            continue;
        }
        let before = items.len();
        let assigned = program.assigned_to(allocation);
        let shared = if assigned.len() > 1 {
            unions.push(Union::default());
            unions.len() as u32 - 1
        } else {
            u32::MAX
        };
        for assigned in assigned {
            let size = program.buffers.size_of(assigned.buffer).0;
            let Some((start, end)) = range_of(program, live, assigned.buffer, allocation.is_constant) else { continue };
            if size == 0 || start as usize > points {
                continue;
            }
            let row = items.len() as u32;
            items.push(Item {
                buffer: assigned.buffer,
                offset: assigned.offset,
                union: shared,
                is_heap: !allocation.is_indefinite(),
            });
            let end = (end as usize).min(points);
            next.push((first[start as usize], last[end]));
            first[start as usize] = row;
            last[end] = row;
        }
        debug_assert!(items.len() - before <= assigned.len());
    }
    let mut result = Occupancy::default();
    let (mut heap, mut content) = (0u64, 0u64);
    for point in 0..=points {
        let mut row = first[point];
        while let Some(item) = items.get(row as usize) {
            let size = program.buffers.size_of(item.buffer).0;
            let bytes = match unions.get_mut(item.union as usize) {
                Some(union) => union.add(item.offset, item.offset.saturating_add(size)),
                None => size,
            };
            content = content.saturating_add(bytes);
            if item.is_heap {
                heap = heap.saturating_add(bytes);
            }
            row = next[row as usize].0;
        }
        let reserved = heap.saturating_add(baseline.0);
        result.reserved.push(point as u32, reserved);
        result.content.push(point as u32, content);
        if reserved > result.reserved_peak.0 {
            result.reserved_peak = Bytes(reserved);
            result.reserved_peak_point = point as u32;
        }
        if content > result.content_peak.0 {
            result.content_peak = Bytes(content);
            result.content_peak_point = point as u32;
        }
        let mut row = last[point];
        while let Some(item) = items.get(row as usize) {
            let size = program.buffers.size_of(item.buffer).0;
            let bytes = match unions.get_mut(item.union as usize) {
                Some(union) => union.remove(item.offset, item.offset.saturating_add(size)),
                None => size,
            };
            content = content.saturating_sub(bytes);
            if item.is_heap {
                heap = heap.saturating_sub(bytes);
            }
            row = next[row as usize].1;
        }
    }
    result
}

/// Live range of a buffer; constants that only a comparator uses have none and are there throughout.
fn range_of(program: &Program, live: &LiveRanges, buffer: BufferId, is_constant: bool) -> Option<(u32, u32)> {
    let range = live.of(buffer);
    if range.is_none() && is_constant && program.buffers.instruction_of(buffer).is_some() {
        return Some((0, live.points()));
    }
    range
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The same ranges, taken and given back in any order, against a byte-by-byte count.
        #[test]
        fn union_counts_every_byte_once(
            ranges in proptest::collection::vec((0u64..64, 1u64..24), 1..12),
            order in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut union = Union::default();
            let mut taken = vec![0u32; 128];
            let mut open: Vec<(u64, u64)> = Vec::new();
            let mut occupied = 0u64;
            for &(start, len) in &ranges {
                occupied += union.add(start, start + len);
                for byte in start..start + len { taken[byte as usize] += 1; }
                open.push((start, start + len));
                prop_assert_eq!(occupied, taken.iter().filter(|&&n| n > 0).count() as u64);
            }
            for index in order {
                if open.is_empty() { break; }
                let (start, end) = open.swap_remove(index.index(open.len()));
                occupied -= union.remove(start, end);
                for byte in start..end { taken[byte as usize] -= 1; }
                prop_assert_eq!(occupied, taken.iter().filter(|&&n| n > 0).count() as u64);
            }
        }
    }
}
