//! Occupied bytes over program order: the union of live address ranges, not the sum of buffer sizes.
//!
//! Live ranges of values that share memory meet at a common point, and scratch of asynchronous ops is shared on
//! purpose; adding sizes would count such bytes twice.

use std::ops::Range;

use super::address_union::AddressUnion;
use super::live_range::LiveRanges;
use super::steps::Steps;
use super::stop::{Stop, Stopped};
use crate::model::{BufferId, Bytes, MemorySpace, Program};

/// Curves of one memory space: a value for each program point and one for the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Reserved bytes: always-live allocations plus the occupied part of the heap. Comparable with XProf's peak.
    pub reserved: Steps,
    /// Bytes of buffers that hold a value at the point, including arguments and results.
    pub content: Steps,
    /// Highest value of `reserved`.
    pub reserved_peak: Bytes,
    /// First point of the reserved peak.
    pub reserved_peak_point: u32,
    /// Highest value of `content`.
    pub content_peak: Bytes,
    /// First point of the content peak.
    pub content_peak_point: u32,
}

impl Occupancy {
    /// Highest value of `reserved` if some buffers took no memory, given with their first and last points and bytes.
    #[must_use]
    pub fn peak_without(&self, buffers: &[(u32, u32, u64)]) -> Bytes {
        let ends = buffers.iter().flat_map(|&(first, last, _)| [first, last.saturating_add(1)]);
        let mut borders: Vec<u32> = ends.chain([0, self.reserved.end()]).collect();
        borders.sort_unstable();
        borders.dedup();
        let highest = borders.windows(2).map(|part| {
            let is_there = |buffer: &&(u32, u32, u64)| (buffer.0..=buffer.1).contains(&part[0]);
            let gone = buffers.iter().filter(is_there).map(|buffer| buffer.2).fold(0, u64::saturating_add);
            self.reserved.highest(part[0], part[1]).saturating_sub(gone)
        });
        Bytes(highest.max().unwrap_or(0))
    }
}

/// A buffer in the sweep.
struct Item {
    size: u64,
    offset: u64,
    /// Last point.
    end: u32,
    /// Row of the allocation's union, or `u32::MAX` if the buffer is alone in its allocation.
    union: u32,
    is_heap: bool,
}

/// The buffers of a memory space, by first and by last point: as linked lists in arrays, a counting sort without its
/// second pass.
#[derive(Default)]
struct Items {
    rows: Vec<Item>,
    /// First item that begins at each point.
    first: Vec<u32>,
    /// First item that ends at each point.
    last: Vec<u32>,
    /// The next items that begin and that end at the same point.
    next: Vec<(u32, u32)>,
    /// How many allocations have several buffers.
    unions: usize,
}

impl Items {
    fn new(program: &Program, live: &LiveRanges, color: MemorySpace, stop: Stop<'_>) -> Result<Self, Stopped> {
        let points = live.points() as usize;
        let mut all = Self { first: vec![u32::MAX; points + 1], last: vec![u32::MAX; points + 1], ..Self::default() };
        for allocation in &program.allocations {
            if allocation.color != color || allocation.is_thread_local {
                continue;
            }
            let assigned = program.assigned_to(allocation);
            let union = if assigned.len() > 1 {
                all.unions += 1;
                all.unions as u32 - 1
            } else {
                u32::MAX
            };
            let is_heap = !allocation.is_indefinite();
            for assigned in assigned {
                stop.check()?;
                let size = program.buffers.size_of(assigned.buffer).0;
                let Some((start, end)) = range_of(program, live, assigned.buffer, allocation.is_constant) else {
                    continue;
                };
                if size == 0 || start as usize > points {
                    continue;
                }
                let row = all.rows.len() as u32;
                let end = end.min(points as u32);
                all.rows.push(Item { size, offset: assigned.offset, end, union, is_heap });
                all.next.push((all.first[start as usize], all.last[end as usize]));
                all.first[start as usize] = row;
                all.last[end as usize] = row;
            }
        }
        Ok(all)
    }

    fn begin_at(&self, point: u32) -> impl Iterator<Item = &Item> {
        self.linked(self.first[point as usize], |next| next.0)
    }

    fn end_at(&self, point: u32) -> impl Iterator<Item = &Item> {
        self.linked(self.last[point as usize], |next| next.1)
    }

    /// The items of a linked list from a row on.
    fn linked(&self, mut row: u32, after: impl Fn((u32, u32)) -> u32) -> impl Iterator<Item = &Item> {
        std::iter::from_fn(move || {
            let item = self.rows.get(row as usize)?;
            row = after(self.next[row as usize]);
            Some(item)
        })
    }
}

/// Bytes in use at the current point of the sweep.
struct InUse {
    unions: Vec<AddressUnion>,
    heap: u64,
    content: u64,
}

impl InUse {
    fn begin(&mut self, item: &Item) {
        let bytes = match self.unions.get_mut(item.union as usize) {
            Some(union) => union.add(item.offset, item.offset.saturating_add(item.size), &mut |_, _| ()),
            None => item.size,
        };
        self.content = self.content.saturating_add(bytes);
        if item.is_heap {
            self.heap = self.heap.saturating_add(bytes);
        }
    }

    fn end(&mut self, item: &Item) {
        let bytes = match self.unions.get_mut(item.union as usize) {
            Some(union) => union.remove(item.offset, item.offset.saturating_add(item.size), &mut |_, _| ()),
            None => item.size,
        };
        self.content = self.content.saturating_sub(bytes);
        if item.is_heap {
            self.heap = self.heap.saturating_sub(bytes);
        }
    }
}

/// Buffers from which the two halves of the program are swept at the same time.
const HALVES_FROM: usize = 2048;

/// Sweeps one memory space; `baseline` are the always-live bytes under the reserved curve. `None` without buffers.
///
/// # Errors
/// If it was stopped.
pub fn occupancy(
    program: &Program,
    live: &LiveRanges,
    color: MemorySpace,
    baseline: Bytes,
    stop: Stop<'_>,
) -> Result<Occupancy, Stopped> {
    let items = Items::new(program, live, color, stop)?;
    let end = live.points() + 1;
    if items.rows.len() < HALVES_FROM {
        return sweep(&items, 0..end, baseline, stop);
    }
    // Cut where half of the work is done, which is beginning and ending buffers.
    let (mut begun, mut middle) = (0, 0);
    while begun < items.rows.len() / 2 && middle < end {
        begun += items.begin_at(middle).count();
        middle += 1;
    }
    let (front, back) =
        rayon::join(|| sweep(&items, 0..middle, baseline, stop), || sweep(&items, middle..end, baseline, stop));
    let (mut result, back) = (front?, back?);
    if back.reserved_peak > result.reserved_peak {
        (result.reserved_peak, result.reserved_peak_point) = (back.reserved_peak, back.reserved_peak_point);
    }
    if back.content_peak > result.content_peak {
        (result.content_peak, result.content_peak_point) = (back.content_peak, back.content_peak_point);
    }
    result.reserved.append(back.reserved);
    result.content.append(back.content);
    Ok(result)
}

/// Sweeps some points, not necessarily from the first on.
fn sweep(items: &Items, points: Range<u32>, baseline: Bytes, stop: Stop<'_>) -> Result<Occupancy, Stopped> {
    let mut result = Occupancy::default();
    let mut in_use = InUse { unions: Vec::new(), heap: 0, content: 0 };
    in_use.unions.resize_with(items.unions, AddressUnion::default);
    for before in 0..points.start {
        stop.check()?;
        items.begin_at(before).filter(|item| item.end >= points.start).for_each(|item| in_use.begin(item));
    }
    for point in points {
        stop.check()?;
        items.begin_at(point).for_each(|item| in_use.begin(item));
        let reserved = in_use.heap.saturating_add(baseline.0);
        result.reserved.push(point, reserved);
        result.content.push(point, in_use.content);
        if reserved > result.reserved_peak.0 {
            result.reserved_peak = Bytes(reserved);
            result.reserved_peak_point = point;
        }
        if in_use.content > result.content_peak.0 {
            result.content_peak = Bytes(in_use.content);
            result.content_peak_point = point;
        }
        items.end_at(point).for_each(|item| in_use.end(item));
    }
    Ok(result)
}

/// Live range of a buffer; constants used only by a comparator have none and count as always live.
fn range_of(program: &Program, live: &LiveRanges, buffer: BufferId, is_constant: bool) -> Option<(u32, u32)> {
    let range = live.of(buffer);
    if range.is_none() && is_constant && program.buffers.instruction_of(buffer).is_some() {
        return Some((0, live.points()));
    }
    range
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_what_makes_a_peak_another_one_is_the_highest() {
        let mut reserved = Steps::default();
        for (point, value) in [(0, 10), (2, 30), (5, 90), (7, 80), (8, 20), (10, 0)] {
            reserved.push(point, value);
        }
        let occupancy = Occupancy { reserved, ..Occupancy::default() };
        let peak = |buffers: &[(u32, u32, u64)]| occupancy.peak_without(buffers).0;
        assert_eq!(peak(&[]), 90);
        assert_eq!(peak(&[(5, 6, 60)]), 80, "what is there afterwards");
        assert_eq!(peak(&[(5, 7, 60)]), 30);
        assert_eq!(peak(&[(5, 7, 30), (4, 6, 20)]), 50);
    }
}
