//! Buffers live at one point. Each reserved byte belongs to one buffer, as in [`super::grouping`], so their bytes add
//! up to the height of the curve there.
//!
//! Memory of a result is *reserved* from the first step to the last but *written* only later; both spans are given.

use std::collections::{BTreeMap, HashMap};

use super::map::{MapBox, MemoryMap};
use super::program::SpaceAnalysis;
use crate::model::{BufferId, Bytes, Program};

/// A buffer that holds memory at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveBuffer {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes reserved for it alone: its size minus the bytes that a buffer placed there later shares. For an
    /// always-live allocation, its whole size.
    pub bytes: Bytes,
    /// Points from its first write to its last read, inclusive; `None` if the program never touches it.
    pub written: Option<(u32, u32)>,
}

impl LiveBuffer {
    /// Whether it holds its value at a point; before and after that its memory is only reserved.
    #[must_use]
    pub fn is_written_at(&self, point: u32) -> bool {
        self.written.is_none_or(|(first, last)| (first..=last).contains(&point))
    }
}

/// When memory is reserved for a buffer and when it holds the buffer's value, as inclusive ranges of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residency {
    /// Reserved; for always-live buffers (arguments, constants, results) the whole program, for a buffer that a loop
    /// writes in place until the loop's result is read.
    pub reserved: (u32, u32),
    /// From its first write to its last read.
    pub written: (u32, u32),
}

impl Residency {
    /// Both spans of a buffer; `None` if its live range is unknown.
    #[must_use]
    pub fn of(map: &MemoryMap, buffer: BufferId) -> Option<Self> {
        let item = map.box_of(buffer)?;
        let written = (item.start, item.end);
        let throughout = map.regions.get(item.region as usize).is_some_and(|region| region.always_live);
        let held = map.held(buffer).unwrap_or(written);
        let reserved = if throughout { (0, map.points.saturating_sub(1).max(item.end)) } else { held };
        Some(Self { reserved, written })
    }

    /// How the two differ, in words: `reserved from step 0, written at 5,843`, or where others write the memory in place
    /// afterwards `written in place up to step 1,544`. `None` if the memory is reserved exactly while it is written.
    #[must_use]
    pub fn difference(&self, unit: &str) -> Option<String> {
        let number = |point: u32| point.to_string();
        if self.written.0 > self.reserved.0 {
            let [reserved, written] = [self.reserved.0, self.written.0].map(number);
            return Some(format!("reserved from {unit} {reserved}, written at {written}"));
        }
        let is_throughout = self.reserved.0 == 0 && self.written.0 == 0;
        (self.reserved.1 > self.written.1 && !is_throughout)
            .then(|| format!("written in place by others up to {unit} {}", number(self.reserved.1)))
    }
}

/// The buffers that hold memory at a point, largest first. Their bytes add up to the reserved curve.
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

/// Disjoint address ranges: start to (end, index of the box placed there last).
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
