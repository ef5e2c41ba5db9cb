//! Occupied bytes over program order: the union of live address ranges, not the sum of buffer sizes.
//!
//! Live ranges of values that share memory meet at a common point, and scratch of asynchronous ops is shared on
//! purpose; adding sizes would count such bytes twice.

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

/// A buffer in the sweep.
struct Item {
    buffer: BufferId,
    offset: u64,
    /// Row of the allocation's union, or `u32::MAX` if the buffer is alone in its allocation.
    union: u32,
    is_heap: bool,
}

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
    let points = live.points() as usize;
    // Items by first and by last point, as linked lists in arrays: a counting sort without its second pass.
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
            unions.push(AddressUnion::default());
            unions.len() as u32 - 1
        } else {
            u32::MAX
        };
        for assigned in assigned {
            stop.check()?;
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
        stop.check()?;
        let mut row = first[point];
        while let Some(item) = items.get(row as usize) {
            let size = program.buffers.size_of(item.buffer).0;
            let bytes = match unions.get_mut(item.union as usize) {
                Some(union) => union.add(item.offset, item.offset.saturating_add(size), &mut |_, _| ()),
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
                Some(union) => union.remove(item.offset, item.offset.saturating_add(size), &mut |_, _| ()),
                None => size,
            };
            content = content.saturating_sub(bytes);
            if item.is_heap {
                heap = heap.saturating_sub(bytes);
            }
            row = next[row as usize].1;
        }
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
