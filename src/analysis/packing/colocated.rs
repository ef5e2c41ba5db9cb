//! The fallback packer exactly as the compiler runs it (XLA's `GlobalDecreasingSizeBestFitHeap`): buffers that share
//! memory are packed together but each with a live range of its own, so that the memory is free between them; equal
//! sizes are ordered by the live range of the buffer that was allocated, then by id.

use std::ops::Range;

use super::occupied::Occupied;
use super::times::{LiveRange, Times};
use super::{Families, MAX_BLOCKS, Order, Placement, smaller_heap};
use crate::model::{BufferId, EventKind, NO_ROW, Program};

/// A family with the live ranges of its members, in events of buffers that take space; both ends are inclusive.
struct Group {
    /// Row of the families.
    family: usize,
    size: u64,
    id: i64,
    /// Live range of the allocated buffer itself.
    own: LiveRange,
    ranges: Vec<LiveRange>,
}

impl Group {
    /// First and last time of all members.
    fn span(&self) -> u32 {
        let first = self.ranges.iter().map(|range| range.0).min().unwrap_or(0);
        self.ranges.iter().map(|range| range.1).max().unwrap_or(0).saturating_sub(first)
    }
}

/// Live ranges of the families of a trace.
fn groups(program: &Program, trace: usize, families: &Families) -> Vec<Group> {
    let Some(trace) = program.traces.get(trace) else { return Vec::new() };
    let mut time = 0u32;
    let mut range_of: Vec<(u32, u32)> = vec![(NO_ROW, NO_ROW); program.buffers.len()];
    for event in &trace.events {
        let buffer = BufferId(event.buffer);
        let Some(range) = range_of.get_mut(buffer.index()) else { continue };
        if program.buffers.size_of(buffer).0 == 0 {
            continue;
        }
        match event.kind {
            EventKind::Alloc | EventKind::ShareWith => *range = (time, NO_ROW),
            EventKind::Free => range.1 = time,
            EventKind::Other => continue,
        }
        time = time.saturating_add(1);
    }
    let closed = |buffer: u32| {
        let range = range_of.get(buffer as usize).copied().filter(|range| range.0 != NO_ROW)?;
        Some((range.0, if range.1 == NO_ROW { time } else { range.1 }))
    };
    let mut groups: Vec<Option<Group>> = families
        .list
        .iter()
        .enumerate()
        .map(|(family, row)| {
            let own = closed(row.root.0)?;
            let id = program.buffers.number.get(row.root.index()).copied().unwrap_or(0);
            Some(Group { family, size: row.size, id, own, ranges: Vec::new() })
        })
        .collect();
    for &(buffer, family) in &families.member_of {
        if let (Some(Some(group)), Some(range)) = (groups.get_mut(family as usize), closed(buffer)) {
            group.ranges.push(range);
        }
    }
    groups.into_iter().flatten().filter(|group| group.size > 0).collect()
}

/// Packs the families of a dump in the order of their sizes and in that of their spans, and keeps the smaller heap;
/// `None` if there are more than `MAX_BLOCKS` of them.
#[must_use]
pub fn colocated(program: &Program, trace: usize, families: &Families, alignment: u64) -> Option<Placement> {
    if families.list.len() > MAX_BLOCKS {
        return None;
    }
    let groups = groups(program, trace, families);
    // The compiler compares heaps in whole steps of the alignment, the last block's too.
    let in_steps = |heap: u64| heap.div_ceil(alignment);
    let times = times(&groups);
    Some(smaller_heap(|order| packed(&groups, &times, (order, alignment), families.list.len()), in_steps))
}

/// The live ranges of all groups, one group after the other.
fn times(groups: &[Group]) -> Times {
    let ranges: Vec<LiveRange> = groups.iter().flat_map(|group| group.ranges.iter().copied()).collect();
    Times::new(&ranges)
}

fn packed(groups: &[Group], times: &Times, (order, alignment): (Order, u64), families: usize) -> Placement {
    let mut ranked: Vec<(&Group, Range<usize>)> = Vec::with_capacity(groups.len());
    for group in groups {
        let first = ranked.last().map_or(0, |(_, ranges)| ranges.end);
        ranked.push((group, first..first + group.ranges.len()));
    }
    ranked.sort_by_cached_key(|(group, _)| {
        let own = u64::from(group.own.1.saturating_sub(group.own.0));
        let (first, second) = match order {
            Order::Size => (group.size, own),
            Order::Span => (u64::from(group.span()), group.size),
        };
        (std::cmp::Reverse((first, second)), group.id)
    });
    let mut placement = Placement { heap: 0, offsets: vec![0; families] };
    let mut occupied = Occupied::new(times, false, alignment);
    for (group, ranges) in ranked {
        let offset = occupied.place(group.size, ranges);
        placement.offsets[group.family] = offset;
        placement.heap = placement.heap.max(offset.saturating_add(group.size));
    }
    placement
}

#[cfg(test)]
mod tests {
    use super::super::ALIGNMENT;
    use super::*;

    fn group(family: usize, size: u64, own: (u32, u32), ranges: &[(u32, u32)]) -> Group {
        Group { family, size, id: family as i64, own, ranges: ranges.to_vec() }
    }

    #[test]
    fn memory_is_free_between_buffers_that_share_it() {
        let groups = [
            group(0, 3 * ALIGNMENT, (0, 2), &[(0, 2), (8, 9)]),
            group(1, 2 * ALIGNMENT, (4, 6), &[(4, 6)]),
            group(2, ALIGNMENT, (1, 9), &[(1, 9)]),
        ];
        let placement = packed(&groups, &times(&groups), (Order::Size, ALIGNMENT), 3);
        assert_eq!(placement.offsets, [0, 0, 3 * ALIGNMENT]);
        assert_eq!(placement.heap, 4 * ALIGNMENT);
    }

    #[test]
    fn equal_sizes_are_ordered_by_the_range_of_the_allocated_buffer() {
        let short = group(0, ALIGNMENT, (0, 1), &[(0, 1), (2, 9)]);
        let long = group(1, ALIGNMENT, (1, 5), &[(1, 5)]);
        let groups = [short, long];
        assert_eq!(packed(&groups, &times(&groups), (Order::Size, ALIGNMENT), 2).offsets, [ALIGNMENT, 0]);
    }
}
