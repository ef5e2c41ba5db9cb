//! What is live at one point: every reserved byte belongs to one buffer, as in [`super::grouping`], so that the bytes of
//! all of them are the height of the curve there.
//!
//! A result has its memory *reserved* from the first step to the last and is *written* later; both are known here.

use std::collections::{BTreeMap, HashMap};

use super::map::{MapBox, MemoryMap};
use super::program::SpaceAnalysis;
use crate::model::{BufferId, Bytes, Program, thousands};

/// A buffer that holds memory at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveBuffer {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes reserved for it alone: its size, less what a buffer placed in the same memory later has of it. For an
    /// allocation that lives throughout, its whole size.
    pub bytes: Bytes,
    /// Points from its first write to its last read, both included; `None` where nothing of the program touches it.
    pub written: Option<(u32, u32)>,
}

impl LiveBuffer {
    /// Whether it holds its value at a point; before and after, its memory is only set aside.
    #[must_use]
    pub fn is_written_at(&self, point: u32) -> bool {
        self.written.is_none_or(|(first, last)| (first..=last).contains(&point))
    }
}

/// When the memory of a buffer is set aside for it, and when it holds the buffer's value. Points, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spans {
    /// Set aside: of what lives throughout (arguments, constants, results) the whole program.
    pub reserved: (u32, u32),
    /// From its first write to its last read.
    pub written: (u32, u32),
}

impl Spans {
    /// Both spans of a buffer; `None` where nothing says when it lives.
    #[must_use]
    pub fn of(map: &MemoryMap, buffer: BufferId) -> Option<Self> {
        let item = map.box_of(buffer)?;
        let written = (item.start, item.end);
        let throughout = map.regions.get(item.region as usize).is_some_and(|region| region.always_live);
        let reserved = if throughout { (0, map.points.saturating_sub(1).max(item.end)) } else { written };
        Some(Self { reserved, written })
    }

    /// How the two differ, in words: `reserved from step 0, written at 5,843`. `None` where the memory is set aside no
    /// earlier than it is written.
    #[must_use]
    pub fn difference(&self, unit: &str) -> Option<String> {
        (self.written.0 > self.reserved.0).then(|| {
            let [reserved, written] = [self.reserved.0, self.written.0].map(|point| thousands(point.into()));
            format!("reserved from {unit} {reserved}, written at {written}")
        })
    }
}

/// The buffers that hold memory at a point, the largest first. Their bytes add up to the reserved curve.
#[must_use]
pub fn live_at(program: &Program, space: &SpaceAnalysis, map: &MemoryMap, point: u32) -> Vec<LiveBuffer> {
    let mut throughout: HashMap<BufferId, Option<(u32, u32)>> =
        space.xprof.always_live_buffers.iter().map(|&buffer| (buffer, None)).collect();
    for item in &map.boxes {
        if let Some(written) = throughout.get_mut(&item.buffer) {
            *written = Some((item.start, item.end));
        }
    }
    let mut live: Vec<LiveBuffer> = Vec::new();
    for &buffer in &space.xprof.always_live_buffers {
        let Some(allocation) = program.buffers.allocation_of(buffer) else { continue };
        let Some(allocation) = program.allocations.get(allocation.index()) else { continue };
        let written = throughout.get(&buffer).copied().flatten();
        live.push(LiveBuffer { buffer, bytes: allocation.size, written });
    }
    let mut boxes: Vec<(u32, MapBox)> = map
        .rows_in(point, point, 1)
        .into_iter()
        .map(|row| (row, map.boxes[row as usize]))
        .filter(|(_, item)| map.regions.get(item.region as usize).is_some_and(|region| !region.always_live))
        .collect();
    boxes.sort_by_key(|&(row, item)| (item.start, row));
    let mut bytes: Vec<u64> = vec![0; boxes.len()];
    for (start, (end, at)) in on_top(&boxes) {
        bytes[at] += end - start;
    }
    live.extend(boxes.iter().zip(bytes).map(|(&(_, item), bytes)| LiveBuffer {
        buffer: item.buffer,
        bytes: Bytes(bytes),
        written: Some((item.start, item.end)),
    }));
    live.sort_by_key(|found| (std::cmp::Reverse(found.bytes), found.buffer));
    live
}

/// Disjoint stretches of addresses, start to (end, place in the list of the box placed there last).
fn on_top(boxes: &[(u32, MapBox)]) -> BTreeMap<u64, (u64, usize)> {
    let mut top: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (at, (_, item)) in boxes.iter().enumerate() {
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
    fn the_box_placed_last_has_the_bytes() {
        let item = |address, size| (0, MapBox { buffer: BufferId(0), start: 0, end: 9, address, size, region: 0 });
        let boxes = [item(0, 100), item(20, 30), item(40, 100), item(0, 0)];
        let mut bytes = [0u64; 4];
        for (start, (end, at)) in on_top(&boxes) {
            bytes[at] += end - start;
        }
        assert_eq!(bytes, [20, 20, 100, 0]);
    }
}
