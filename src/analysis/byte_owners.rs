//! Which buffer each byte in use belongs to at one point: the one placed there last.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::live_range::LiveRanges;
use crate::model::{BufferId, Bytes, MemorySpace, Program};

/// A buffer with its place in memory.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    /// The buffer.
    pub buffer: BufferId,
    /// First point at which it is live.
    pub start: u32,
    /// Its address; only addresses of one map compare.
    pub address: u64,
    /// Its size.
    pub size: u64,
}

/// The bytes that each buffer has for itself, its size minus what a buffer placed there later takes of it. Buffers
/// without a byte of their own are left out. In order of placement.
#[must_use]
pub fn own_bytes(mut placed: Vec<Placed>) -> Vec<(BufferId, Bytes)> {
    placed.sort_by_key(|item| (item.start, Reverse(item.size), item.buffer));
    let mut bytes: Vec<u64> = vec![0; placed.len()];
    for (start, (end, at)) in on_top(&placed) {
        bytes[at] += end - start;
    }
    let rows = placed.iter().zip(bytes).filter(|(_, bytes)| *bytes > 0);
    rows.map(|(item, bytes)| (item.buffer, Bytes(bytes))).collect()
}

/// Buffers of the heap that are live at a point.
#[must_use]
pub fn heap_at(program: &Program, live: &LiveRanges, color: MemorySpace, point: u32) -> Vec<Placed> {
    let mut placed = Vec::new();
    let mut base = 0u64;
    let is_heap = |row: &usize| {
        let allocation = &program.allocations[*row];
        allocation.color == color && !allocation.is_indefinite() && !allocation.is_thread_local
    };
    for allocation in (0..program.allocations.len()).filter(is_heap).map(|row| &program.allocations[row]) {
        let mut height = allocation.size.0;
        for assigned in program.assigned_to(allocation) {
            let (buffer, size) = (assigned.buffer, program.buffers.size_of(assigned.buffer).0);
            height = height.max(assigned.offset.saturating_add(size));
            let Some((start, end)) = live.of(buffer) else { continue };
            if size > 0 && (start..=end).contains(&point) {
                placed.push(Placed { buffer, start, address: base.saturating_add(assigned.offset), size });
            }
        }
        base = base.saturating_add(height);
    }
    placed
}

/// Always-live allocations, each as its largest buffer with the bytes of the whole allocation.
pub fn always_live<'a>(program: &'a Program, largest: &'a [BufferId]) -> impl Iterator<Item = (BufferId, Bytes)> + 'a {
    largest.iter().filter_map(|&buffer| {
        let allocation = program.allocations.get(program.buffers.allocation_of(buffer)?.index())?;
        Some((buffer, allocation.size))
    })
}

/// Disjoint address ranges: start to (end, index of the buffer placed there last).
fn on_top(placed: &[Placed]) -> BTreeMap<u64, (u64, usize)> {
    let mut top: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (at, item) in placed.iter().enumerate() {
        let (start, end) = (item.address, item.address.saturating_add(item.size));
        let covered: Vec<(u64, (u64, usize))> = {
            let before = top.range(..start).next_back().filter(|(_, (end, _))| *end > start);
            before.into_iter().chain(top.range(start..end)).map(|(&from, &below)| (from, below)).collect()
        };
        for (from, (to, below)) in covered {
            top.remove(&from);
            if from < start {
                top.insert(from, (start, below));
            }
            if to > end {
                top.insert(end, (to, below));
            }
        }
        if start < end {
            top.insert(start, (end, at));
        }
    }
    top
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_placed_last_has_the_bytes() {
        let item = |buffer, start, address, size| Placed { buffer: BufferId(buffer), start, address, size };
        let placed = vec![item(3, 0, 0, 100), item(1, 1, 20, 30), item(2, 2, 40, 100), item(4, 1, 60, 20)];
        let own: Vec<(u32, u64)> = own_bytes(placed).into_iter().map(|(buffer, bytes)| (buffer.0, bytes.0)).collect();
        // The last one lies wholly under another.
        assert_eq!(own, [(3, 20), (1, 20), (2, 100)]);
    }
}
