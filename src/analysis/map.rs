//! The memory map of a space: every buffer by address and time.
//!
//! Allocations are stacked: first the always-live ones (arguments, constants, results), then the heap at its own
//! offsets, so the height of the map is the allocated bytes and the capacity is a line across it.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::live_range::LiveRanges;
use super::once::once;
use super::program::{ProgramAnalysis, SpaceAnalysis};
use super::span_index::SpanIndex;
use crate::model::{AllocationId, BufferId, Bytes, Category, NO_ROW, Program};
use rayon::slice::ParallelSliceMut as _;

/// Unit of the time axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimeAxis {
    /// Instructions in execution order.
    #[default]
    ProgramOrder,
    /// Events of the heap trace, if the program has no schedule.
    HeapEvents,
}

impl TimeAxis {
    /// Name of one unit.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ProgramOrder => "step",
            Self::HeapEvents => "heap event",
        }
    }
}

/// A buffer's rectangle in the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapBox {
    /// The buffer.
    pub buffer: BufferId,
    /// First program point or heap event at which it is live.
    pub start: u32,
    /// Last point, included.
    pub end: u32,
    /// Address on the map's axis.
    pub address: u64,
    /// Bytes, padding included.
    pub size: u64,
    /// Row of [`MemoryMap::regions`].
    pub region: u32,
}

/// An allocation on the axis of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The allocation.
    pub allocation: AllocationId,
    /// Start address on the map's axis.
    pub base: u64,
    /// Bytes of the allocation.
    pub size: u64,
    /// Whether it is always live.
    pub always_live: bool,
    /// Category of the allocation.
    pub category: Category,
    /// Its largest buffer.
    pub largest: Option<BufferId>,
    /// First point at which a buffer is live in it; `None` if none ever is.
    pub first: Option<u32>,
}

/// Every buffer of a space by address and time.
#[derive(Debug, Clone, Default)]
pub struct MemoryMap {
    /// Unit of the points.
    pub axis: TimeAxis,
    /// Number of points; boxes end before it.
    pub points: u32,
    /// Allocations from the bottom up.
    pub regions: Vec<Region>,
    /// Buffers, largest first.
    pub boxes: Vec<MapBox>,
    /// Start address of the heap: the sum of the always-live allocations.
    pub heap_base: u64,
    /// Height of the map: allocated bytes.
    pub height: u64,
    /// Rows of the boxes by time, once somebody looks for some.
    index: OnceLock<SpanIndex>,
    /// Row of the box of each buffer of the program; [`NO_ROW`] if it has none.
    rows: Vec<u32>,
    /// First and last point of the memory of buffers that others write in place after them, by buffer.
    held: HashMap<BufferId, (u32, u32)>,
}

impl MemoryMap {
    /// Rows of the boxes by time.
    #[must_use]
    pub fn index(&self) -> &SpanIndex {
        once(&self.index, || SpanIndex::new(self.boxes.iter().map(|item| (item.start, item.end))))
    }

    /// Number of steps; in program order the last point is the end of the program and not a step.
    #[must_use]
    pub fn steps(&self) -> u32 {
        match self.axis {
            TimeAxis::ProgramOrder => self.points.saturating_sub(1).max(1),
            TimeAxis::HeapEvents => self.points.max(1),
        }
    }

    /// Number of steps between two points, inclusive; the end of the program is not a step.
    #[must_use]
    pub fn length(&self, first: u32, last: u32) -> u32 {
        last.min(self.steps() - 1).saturating_sub(first).saturating_add(1)
    }

    /// Builds the map of a space.
    #[must_use]
    pub fn new(program: &Program, analysis: &ProgramAnalysis, space: &SpaceAnalysis) -> Self {
        let live = analysis.live.as_ref();
        let (axis, points) = match live {
            Some(live) => (TimeAxis::ProgramOrder, live.points() + 1),
            None => (TimeAxis::HeapEvents, (space.event_count() as u32).max(1)),
        };
        let mut rows: Vec<AllocationId> = (0..program.allocations.len())
            .map(AllocationId::from_index)
            .filter(|id| {
                let allocation = &program.allocations[id.index()];
                allocation.color == space.color && !allocation.is_thread_local
            })
            .collect();
        rows.sort_by_key(|id| {
            let allocation = &program.allocations[id.index()];
            (!allocation.is_indefinite(), allocation.category(), allocation.index)
        });
        let mut map = Self { axis, points, ..Self::default() };
        for id in rows {
            map.place(program, live, space, id);
        }
        map.hold(space);
        map.boxes.par_sort_unstable_by_key(|item| (std::cmp::Reverse(item.size), item.buffer));
        map.indexed()
    }

    /// Rebuilds the indexes after [`Self::boxes`] changed.
    fn indexed(mut self) -> Self {
        self.index = OnceLock::new();
        let buffers = self.boxes.iter().map(|item| item.buffer.index() + 1).max().unwrap_or(0);
        self.rows = vec![NO_ROW; buffers];
        for (row, item) in self.boxes.iter().enumerate() {
            self.rows[item.buffer.index()] = row as u32;
        }
        self
    }

    /// A map of one heap region with these boxes, for tests.
    #[cfg(test)]
    pub(super) fn of_boxes(points: u32, height: u64, boxes: Vec<MapBox>) -> Self {
        let region = Region {
            allocation: AllocationId(0),
            base: 0,
            size: height,
            always_live: false,
            category: Category::Temporary,
            largest: None,
            first: boxes.iter().map(|item| item.start).min(),
        };
        Self { points, height, regions: vec![region], boxes, ..Self::default() }.indexed()
    }

    /// Finds memory that outlives its first buffer: in the heap trace, what a loop writes in place shares it.
    fn hold(&mut self, space: &SpaceAnalysis) {
        let Some(events) = space.events.as_ref().filter(|_| self.axis == TimeAxis::ProgramOrder) else { return };
        let point = |event: u32| events.points.get(event as usize).copied();
        for item in &self.boxes {
            let Some((first, last)) = space.span(item.buffer) else { continue };
            let (Some(first), Some(last)) = (point(first), point(last)) else { continue };
            let held = (item.start.min(first), item.end.max(last).min(self.points - 1));
            if held.1 > item.end {
                self.held.insert(item.buffer, held);
            }
        }
    }

    /// First and last point at which a buffer's memory is in use, by it and by what is written in place of it after it;
    /// `None` if the buffer has no box.
    #[must_use]
    pub fn held(&self, buffer: BufferId) -> Option<(u32, u32)> {
        let item = self.box_of(buffer)?;
        Some(self.held.get(&buffer).copied().unwrap_or((item.start, item.end)))
    }

    fn place(&mut self, program: &Program, live: Option<&LiveRanges>, space: &SpaceAnalysis, id: AllocationId) {
        let allocation = &program.allocations[id.index()];
        let (always_live, region, base) = (allocation.is_indefinite(), self.regions.len() as u32, self.height);
        let before = self.boxes.len();
        let mut largest: Option<BufferId> = None;
        for assigned in program.assigned_to(allocation) {
            let buffer = assigned.buffer;
            if program.buffers.instruction_of(buffer).is_none() {
                continue;
            }
            let size = program.buffers.size_of(buffer).0;
            if size > largest.map_or(0, |b| program.buffers.size_of(b).0) {
                largest = Some(buffer);
            }
            let known = match live {
                Some(live) => live.of(buffer),
                None => space.span(buffer),
            };
            let range =
                known.or_else(|| (allocation.is_constant || (live.is_none() && always_live)).then_some((0, u32::MAX)));
            let Some((start, end)) = range else { continue };
            if size == 0 || start >= self.points {
                continue;
            }
            self.boxes.push(MapBox {
                buffer,
                start,
                end: end.min(self.points - 1),
                address: base.saturating_add(assigned.offset),
                size,
                region,
            });
        }
        let size = allocation.size.0;
        let first = self.boxes[before..].iter().map(|item| item.start).min();
        let category = allocation.category();
        self.regions.push(Region { allocation: id, base, size, always_live, category, largest, first });
        self.height = base.saturating_add(size);
        if always_live {
            self.heap_base = self.height;
        }
    }

    /// The boxes at a point, the largest first.
    #[must_use]
    pub fn live_at(&self, point: u32) -> Vec<MapBox> {
        self.rows_in(point, point, 1).into_iter().map(|row| self.boxes[row as usize]).collect()
    }

    /// Rows of the boxes that meet points `from..=to` and last at least `least` points, the largest box first.
    #[must_use]
    pub fn rows_in(&self, from: u32, to: u32, least: u32) -> Vec<u32> {
        if from == 0 && to + 1 >= self.points && least <= 1 {
            return (0..self.boxes.len() as u32).collect();
        }
        let meets = |row: &u32| {
            let item = &self.boxes[*row as usize];
            item.start <= to && from <= item.end && item.end - item.start >= least.saturating_sub(1)
        };
        let mut rows: Vec<u32> = self.index().near(from, to, least).filter(meets).collect();
        rows.sort_unstable();
        rows
    }

    /// Row of a buffer in [`Self::boxes`].
    #[must_use]
    pub fn row_of(&self, buffer: BufferId) -> Option<u32> {
        self.rows.get(buffer.index()).copied().filter(|&row| row != NO_ROW)
    }

    /// The box of a buffer.
    #[must_use]
    pub fn box_of(&self, buffer: BufferId) -> Option<&MapBox> {
        self.boxes.get(self.row_of(buffer)? as usize)
    }

    /// The smallest box at an address and point, which is drawn on top.
    #[must_use]
    pub fn hit(&self, point: u32, address: u64) -> Option<&MapBox> {
        let meets = |row: &u32| {
            let item = &self.boxes[*row as usize];
            item.start <= point && point <= item.end && item.address <= address && address - item.address < item.size
        };
        self.index().near(point, point, 1).filter(meets).max().map(|row| &self.boxes[row as usize])
    }

    /// The box with the most bytes at addresses `low..high` at a point.
    #[must_use]
    pub fn largest_in(&self, point: u32, low: u64, high: u64) -> Option<&MapBox> {
        let inside = |row: u32| {
            let item = &self.boxes[row as usize];
            let lives = item.start <= point && point <= item.end;
            let bytes = item.address.saturating_add(item.size).min(high).saturating_sub(item.address.max(low));
            if lives { bytes } else { 0 }
        };
        let rows = self.index().near(point, point, 1).map(|row| (inside(row), row)).filter(|(bytes, _)| *bytes > 0);
        rows.max_by_key(|&(bytes, row)| (bytes, std::cmp::Reverse(row))).map(|(_, row)| &self.boxes[row as usize])
    }

    /// Free ranges of the heap at a point: (address, bytes), ascending, up to the top of the heap.
    #[must_use]
    pub fn holes_at(&self, point: u32) -> Vec<(u64, u64)> {
        let mut taken: Vec<(u64, u64)> = self
            .live_at(point)
            .iter()
            .filter(|item| item.address >= self.heap_base)
            .map(|item| (item.address, item.address.saturating_add(item.size)))
            .collect();
        taken.sort_unstable();
        let mut holes = Vec::new();
        let mut at = self.heap_base;
        for (start, end) in taken {
            if start > at {
                holes.push((at, start - at));
            }
            at = at.max(end);
        }
        if at < self.height {
            holes.push((at, self.height - at));
        }
        holes
    }

    /// The largest free range of the heap at a point.
    #[must_use]
    pub fn largest_hole(&self, point: u32) -> Option<(u64, Bytes)> {
        self.holes_at(point).into_iter().max_by_key(|&(_, size)| size).map(|(at, size)| (at, Bytes(size)))
    }

    /// Other buffers that overlap a buffer in address and time, with the shared bytes; in order of time.
    #[must_use]
    pub fn sharing(&self, buffer: BufferId) -> Vec<(MapBox, Bytes)> {
        let Some(own) = self.box_of(buffer).copied() else { return Vec::new() };
        let own_end = own.address.saturating_add(own.size);
        let mut found: Vec<(MapBox, Bytes)> = self
            .boxes
            .iter()
            .filter(|item| {
                item.buffer != buffer && item.address < own_end && own.address < item.address.saturating_add(item.size)
            })
            .map(|item| {
                let common = own_end.min(item.address.saturating_add(item.size)) - own.address.max(item.address);
                (*item, Bytes(common))
            })
            .collect();
        found.sort_by_key(|(item, _)| (item.start, item.buffer));
        found
    }
}
