//! Live memory over time by group. Each occupied byte belongs to the buffer placed there last, hence to one group, so
//! the groups add up to the reserved curve at every point.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use smallvec::{SmallVec, smallvec};

use super::map::{MapBox, MemoryMap};
use super::program::{ProgramAnalysis, SpaceAnalysis, unpadded};
use super::steps::Steps;
use crate::model::{BufferId, Program};

/// Curves by group.
#[derive(Debug, Clone, Default)]
pub struct GroupedCurves {
    /// Bytes over program points, one curve per group.
    pub groups: Vec<Steps>,
    /// Sum of all groups.
    pub total: Steps,
    /// Sum of all groups without padding.
    pub unpadded: Steps,
}

impl GroupedCurves {
    /// Peak bytes of live padding, and the first point that reaches it.
    #[must_use]
    pub fn most_padding(&self) -> (u64, u32) {
        let mut most = (0, 0);
        let points = self.total.changes().chain(self.unpadded.changes()).map(|(point, _)| point);
        for point in points {
            let padding = self.total.at(point).saturating_sub(self.unpadded.at(point));
            if padding > most.0 || (padding == most.0 && point < most.1) {
                most = (padding, point);
            }
        }
        most
    }

    /// Sweeps a map; `group_of` gives a buffer's group, below `groups`.
    #[must_use]
    pub fn new(
        program: &Program,
        analysis: &ProgramAnalysis,
        space: &SpaceAnalysis,
        map: &MemoryMap,
        groups: usize,
        group_of: &dyn Fn(BufferId) -> usize,
    ) -> Self {
        let mut sweep = Sweep {
            segments: BTreeMap::new(),
            bytes: vec![0; groups],
            wasted: 0,
            owners: map
                .boxes
                .iter()
                .map(|item| Owner {
                    group: group_of(item.buffer).min(groups.saturating_sub(1)),
                    size: item.size,
                    waste: item.size.saturating_sub(unpadded(program, &analysis.traces, item.buffer).0),
                })
                .collect(),
        };
        if groups == 0 {
            return Self::default();
        }
        for &buffer in &space.xprof.always_live_buffers {
            let Some(allocation) = program.buffers.allocation_of(buffer) else { continue };
            let size = program.allocations[allocation.index()].size.0;
            let waste = program.buffers.size_of(buffer).0.saturating_sub(unpadded(program, &analysis.traces, buffer).0);
            sweep.bytes[group_of(buffer).min(groups - 1)] += size;
            sweep.wasted += waste.min(size);
        }
        let mut result = Self { groups: vec![Steps::default(); groups], ..Self::default() };
        let heap: Vec<u32> = (0..map.boxes.len() as u32)
            .filter(|&row| map.regions.get(map.boxes[row as usize].region as usize).is_some_and(|r| !r.always_live))
            .collect();
        let starts = in_order(&heap, map.points, |row| map.boxes[row as usize].start);
        let ends = in_order(&heap, map.points, |row| map.boxes[row as usize].end);
        let (mut next_start, mut next_end) = (0, 0);
        for point in 0..map.points {
            let mut changed = point == 0;
            while let Some(&row) = ends.get(next_end).filter(|&&row| map.boxes[row as usize].end < point) {
                sweep.remove(row, &map.boxes[row as usize]);
                next_end += 1;
                changed = true;
            }
            while let Some(&row) = starts.get(next_start).filter(|&&row| map.boxes[row as usize].start == point) {
                sweep.add(row, &map.boxes[row as usize]);
                next_start += 1;
                changed = true;
            }
            if changed || point + 1 == map.points {
                result.push(point, &sweep);
            }
        }
        result
    }

    fn push(&mut self, point: u32, sweep: &Sweep) {
        for (curve, &bytes) in self.groups.iter_mut().zip(&sweep.bytes) {
            curve.push(point, bytes);
        }
        let total: u64 = sweep.bytes.iter().sum();
        self.total.push(point, total);
        self.unpadded.push(point, total.saturating_sub(sweep.wasted));
    }
}

/// Rows by the points at which they come, all below `points` or at the last; of one point in the order given.
fn in_order(rows: &[u32], points: u32, point_of: impl Fn(u32) -> u32) -> Vec<u32> {
    let slot = |row: u32| point_of(row).min(points) as usize;
    // How many come before each point.
    let mut next = vec![0u32; points as usize + 2];
    for &row in rows {
        next[slot(row) + 1] += 1;
    }
    for point in 1..next.len() {
        next[point] += next[point - 1];
    }
    let mut sorted = vec![0; rows.len()];
    for &row in rows {
        let place = &mut next[slot(row)];
        sorted[*place as usize] = row;
        *place += 1;
    }
    sorted
}

struct Owner {
    group: usize,
    size: u64,
    waste: u64,
}

impl Owner {
    /// Padding in a part of the buffer.
    fn waste_in(&self, bytes: u64) -> u64 {
        if self.size == 0 { 0 } else { (u128::from(bytes) * u128::from(self.waste) / u128::from(self.size)) as u64 }
    }
}

/// Rows of the buffers at one place, in order of arrival.
type Rows = SmallVec<[u32; 2]>;

struct Sweep {
    /// Start to (end, rows of the buffers there in order of arrival).
    segments: BTreeMap<u64, (u64, Rows)>,
    bytes: Vec<u64>,
    wasted: u64,
    owners: Vec<Owner>,
}

impl Sweep {
    fn gain(&mut self, row: u32, bytes: u64) {
        let owner = &self.owners[row as usize];
        self.bytes[owner.group] += bytes;
        self.wasted += owner.waste_in(bytes);
    }

    fn lose(&mut self, row: u32, bytes: u64) {
        let owner = &self.owners[row as usize];
        self.bytes[owner.group] = self.bytes[owner.group].saturating_sub(bytes);
        self.wasted = self.wasted.saturating_sub(owner.waste_in(bytes));
    }

    /// Splits the segment that spans an address. Padding is recomputed for both halves, as rounding may differ.
    fn split(&mut self, at: u64) {
        let Some((&start, (end, _))) = self.segments.range(..at).next_back() else { return };
        let end = *end;
        if end <= at {
            return;
        }
        let Some((_, rows)) = self.segments.remove(&start) else { return };
        if let Some(&top) = rows.last() {
            self.lose(top, end - start);
            self.gain(top, at - start);
            self.gain(top, end - at);
        }
        self.segments.insert(start, (at, rows.clone()));
        self.segments.insert(at, (end, rows));
    }

    fn add(&mut self, row: u32, item: &MapBox) {
        let (start, end) = (item.address, item.address.saturating_add(item.size));
        // Mostly nothing is there, or just what the buffer takes the place of.
        match self.segments.range_mut(..end).next_back().filter(|below| below.1.0 > start) {
            None if start < end => {
                self.segments.insert(start, (end, smallvec![row]));
                return self.gain(row, end - start);
            }
            Some((&below, (top, rows))) if (below, *top) == (start, end) => {
                let before = rows.last().copied();
                rows.push(row);
                if let Some(before) = before {
                    self.lose(before, end - start);
                }
                return self.gain(row, end - start);
            }
            _ => {}
        }
        self.split(start);
        self.split(end);
        let inside: Vec<(u64, u64)> = self.segments.range(start..end).map(|(&s, (e, _))| (s, *e)).collect();
        let mut at = start;
        for (segment_start, segment_end) in inside {
            if at < segment_start {
                self.segments.insert(at, (segment_start, smallvec![row]));
                self.gain(row, segment_start - at);
            }
            let mut before = None;
            if let Some((_, rows)) = self.segments.get_mut(&segment_start) {
                before = rows.last().copied();
                rows.push(row);
            }
            if let Some(before) = before {
                self.lose(before, segment_end - segment_start);
            }
            self.gain(row, segment_end - segment_start);
            at = segment_end;
        }
        if at < end {
            self.segments.insert(at, (end, smallvec![row]));
            self.gain(row, end - at);
        }
    }

    fn remove(&mut self, row: u32, item: &MapBox) {
        let (start, end) = (item.address, item.address.saturating_add(item.size));
        // Mostly it has been alone there.
        if let Entry::Occupied(entry) = self.segments.entry(start)
            && entry.get().0 == end
            && entry.get().1[..] == [row]
        {
            entry.remove();
            return self.lose(row, end - start);
        }
        let inside: Vec<(u64, u64)> = self.segments.range(start..end).map(|(&s, (e, _))| (s, *e)).collect();
        for (segment_start, segment_end) in inside {
            let bytes = segment_end - segment_start;
            let Some((_, rows)) = self.segments.get_mut(&segment_start) else { continue };
            let was_top = rows.last() == Some(&row);
            rows.retain(|other| *other != row);
            let top = rows.last().copied();
            if top.is_none() {
                self.segments.remove(&segment_start);
            }
            if was_top {
                self.lose(row, bytes);
                if let Some(top) = top {
                    self.gain(top, bytes);
                }
            }
        }
    }
}
