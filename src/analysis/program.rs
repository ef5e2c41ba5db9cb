//! The analysis of one program: each memory space with XProf's numbers and our own.

use std::sync::OnceLock;

use super::class::{Class, Classes};
use super::events::{EventPoints, event_points};
use super::flow::label::Labels;
use super::live_range::LiveRanges;
use super::occupancy::{Occupancy, occupancy};
use super::once::once;
use super::xprof::{self, Traces, XprofSpace};
use crate::model::{BufferId, Bytes, Capacity, Category, Device, MemorySpace, Program};

/// Everything computed about a program.
#[derive(Debug)]
pub struct ProgramAnalysis {
    /// Live ranges; `None` if the program has no schedule.
    pub live: Option<LiveRanges>,
    /// Memory spaces with at least one allocation, ascending by colour.
    pub spaces: Vec<SpaceAnalysis>,
    /// XProf's unpadded sizes and traces, for looking up single buffers.
    pub traces: Traces,
    /// Classes of the buffers, computed on first use.
    classes: OnceLock<Classes>,
    /// Labels of temporaries, computed on first use.
    labels: OnceLock<Labels>,
}

/// Whether a program fits a memory space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It fits.
    Fits {
        /// Bytes left.
        spare: Bytes,
    },
    /// It does not fit.
    Over {
        /// Bytes over capacity.
        by: Bytes,
    },
    /// The capacity is unknown.
    Unknown,
}

impl Verdict {
    /// The word in reports: `fits`, `over`, `unknown`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fits { .. } => "fits",
            Self::Over { .. } => "over",
            Self::Unknown => "unknown",
        }
    }
}

/// One memory space of a program.
#[derive(Debug)]
pub struct SpaceAnalysis {
    /// Which memory space.
    pub color: MemorySpace,
    /// Its name on the device: `HBM`.
    pub name: String,
    /// Its capacity.
    pub capacity: Option<Capacity>,
    /// XProf's numbers.
    pub xprof: XprofSpace,
    /// Whether the program is what an out-of-memory message lists, which may be a part of it only.
    pub is_listing: bool,
    /// Occupied bytes over program order; `None` without a schedule.
    pub occupancy: Option<Occupancy>,
    /// The replayed trace on program order.
    pub events: Option<EventPoints>,
    /// Buffers assigned in the space.
    pub buffers: Vec<BufferId>,
    /// Number of those whose live range is unknown.
    pub without_lifetime: usize,
    /// Buffers at XProf's peak, largest first: the largest buffer of each always-live allocation, and the live heap
    /// buffers.
    pub at_peak: Vec<BufferId>,
    /// Padding in bytes, summed over [`Self::at_peak`].
    pub padding_at_peak: Bytes,
    /// Bytes and buffers at the peak by category, largest first.
    pub by_category: Vec<(Category, Bytes, usize)>,
}

/// Source of a buffer's live range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifetimeFrom {
    /// Program order.
    LiveRange,
    /// The heap trace.
    HeapTrace,
    /// It is an argument, a constant or a result.
    WholeProgram,
}

impl LifetimeFrom {
    /// The word in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LiveRange => "live_range",
            Self::HeapTrace => "heap_trace",
            Self::WholeProgram => "whole_program",
        }
    }
}

impl ProgramAnalysis {
    /// Analyses a program.
    #[must_use]
    pub fn new(program: &Program, device: &Device) -> Self {
        let colors = xprof::colors(program);
        // The live ranges and XProf's replay are independent of each other.
        let (live, (traces, replays)) = rayon::join(
            || LiveRanges::new(program),
            || {
                let traces = Traces::new(program);
                let mut scratch = xprof::Scratch::default();
                let replays: Vec<XprofSpace> =
                    colors.iter().map(|&color| xprof::space_with(program, &traces, color, &mut scratch)).collect();
                (traces, replays)
            },
        );
        let spaces = {
            use rayon::prelude::*;
            replays
                .into_par_iter()
                .map(|replay| SpaceAnalysis::new(program, device, live.as_ref(), &traces, replay))
                .collect()
        };
        Self { live, spaces, traces, classes: OnceLock::new(), labels: OnceLock::new() }
    }

    /// Classes of the buffers. The first call is slow: not for the window's thread.
    pub fn classes(&self, program: &Program) -> &Classes {
        once(&self.classes, || Classes::new(program, self))
    }

    /// Labels of temporaries. The first call analyses all loops.
    pub fn labels(&self, program: &Program) -> &Labels {
        once(&self.labels, || Labels::new(program))
    }

    /// Class of a buffer; from its category alone until the classes are computed.
    #[must_use]
    pub fn class_now(&self, program: &Program, buffer: BufferId) -> Class {
        self.classes.get().map_or_else(|| Class::of_category(category(program, buffer)), |classes| classes.of(buffer))
    }

    /// The classes, once computed.
    #[must_use]
    pub fn known_classes(&self) -> Option<&Classes> {
        self.classes.get()
    }

    /// The space with a colour.
    #[must_use]
    pub fn space(&self, color: MemorySpace) -> Option<&SpaceAnalysis> {
        self.spaces.iter().find(|space| space.color == color)
    }

    /// The space to show first: the one furthest over capacity, else HBM, else the largest.
    #[must_use]
    pub fn main_space(&self) -> Option<&SpaceAnalysis> {
        let over = |space: &&SpaceAnalysis| matches!(space.verdict(), Verdict::Over { .. });
        self.spaces
            .iter()
            .find(|space| space.color == MemorySpace::HBM && over(space))
            .or_else(|| self.spaces.iter().find(over))
            .or_else(|| self.space(MemorySpace::HBM))
            .or_else(|| self.spaces.iter().max_by_key(|space| space.xprof.allocated))
    }

    /// Source of a buffer's live range; `None` for memory of called computations.
    #[must_use]
    pub fn lifetime_from(&self, program: &Program, space: &SpaceAnalysis, buffer: BufferId) -> Option<LifetimeFrom> {
        if self.live.as_ref().and_then(|live| live.of(buffer)).is_some() {
            return Some(LifetimeFrom::LiveRange);
        }
        if space.span(buffer).is_some() {
            return Some(LifetimeFrom::HeapTrace);
        }
        let allocation = &program.allocations[program.buffers.allocation_of(buffer)?.index()];
        (allocation.is_indefinite() && !allocation.is_thread_local).then_some(LifetimeFrom::WholeProgram)
    }
}

impl SpaceAnalysis {
    fn new(program: &Program, device: &Device, live: Option<&LiveRanges>, traces: &Traces, xprof: XprofSpace) -> Self {
        let (color, baseline) = (xprof.color, xprof.baseline);
        let (occupancy, mut space) = rayon::join(
            || live.map(|live| occupancy(program, live, color, baseline)),
            || Self::without_occupancy(program, device, live, traces, xprof),
        );
        space.occupancy = occupancy;
        if !space.xprof.peak_is_known {
            space.stand_at_own_peak(program, live, traces);
        }
        space
    }

    /// For a report without heap events: the buffers at the peak of the live ranges, or none without those.
    fn stand_at_own_peak(&mut self, program: &Program, live: Option<&LiveRanges>, traces: &Traces) {
        let Some((occupancy, live)) = self.occupancy.as_ref().zip(live) else {
            self.set_at_peak(program, traces, Vec::new());
            return;
        };
        let point = occupancy.reserved_peak_point;
        let mut at_peak = self.xprof.always_live_buffers.clone();
        at_peak.extend(self.buffers.iter().copied().filter(|&buffer| {
            let is_heap = program.buffers.allocation_of(buffer).is_some_and(|id| {
                let allocation = &program.allocations[id.index()];
                !allocation.is_indefinite() && !allocation.is_thread_local
            });
            is_heap && live.of(buffer).is_some_and(|(start, end)| (start..=end).contains(&point))
        }));
        self.set_at_peak(program, traces, at_peak);
    }

    fn without_occupancy(
        program: &Program,
        device: &Device,
        live: Option<&LiveRanges>,
        traces: &Traces,
        mut xprof: XprofSpace,
    ) -> Self {
        let color = xprof.color;
        xprof.spans.sort_unstable_by_key(|&(buffer, _, _)| buffer);
        let events = live.zip(xprof.trace).map(|(live, trace)| event_points(program, live, &program.traces[trace]));
        let in_space = |buffer: BufferId| {
            let allocation = &program.allocations[program.buffers.allocation_of(buffer)?.index()];
            (allocation.color == color && program.buffers.instruction_of(buffer).is_some()).then_some(allocation)
        };
        let mut buffers = Vec::new();
        let mut without_lifetime = 0;
        for row in 0..program.buffers.len() {
            let buffer = BufferId::from_index(row);
            let Some(allocation) = in_space(buffer) else { continue };
            buffers.push(buffer);
            let known = live.is_some_and(|live| live.of(buffer).is_some())
                || (allocation.is_indefinite() && !allocation.is_thread_local)
                || xprof.spans.binary_search_by_key(&buffer, |s| s.0).is_ok();
            if !known {
                without_lifetime += 1;
            }
        }
        let at_peak = xprof.always_live_buffers.iter().chain(&xprof.live_at_peak).copied().collect();
        let mut space = Self {
            color,
            name: color.name(device.kind),
            capacity: device.capacity(color).cloned(),
            is_listing: program.is_listing,
            occupancy: None,
            events,
            buffers,
            without_lifetime,
            at_peak: Vec::new(),
            padding_at_peak: Bytes::ZERO,
            by_category: Vec::new(),
            xprof,
        };
        space.set_at_peak(program, traces, at_peak);
        space
    }

    /// Sorts and sums the buffers at the peak.
    fn set_at_peak(&mut self, program: &Program, traces: &Traces, mut at_peak: Vec<BufferId>) {
        at_peak.sort_by_key(|&b| (std::cmp::Reverse(program.buffers.size_of(b)), program.buffers.number[b.index()]));
        let mut padding = 0i128;
        let mut by_category: Vec<(Category, Bytes, usize)> =
            Category::ALL.iter().map(|&category| (category, Bytes::ZERO, 0)).collect();
        for &buffer in &at_peak {
            let size = program.buffers.size_of(buffer);
            padding += i128::from(size.0) - i128::from(unpadded(program, traces, buffer).0);
            let row = &mut by_category[category(program, buffer) as usize];
            row.1 += size;
            row.2 += 1;
        }
        by_category.retain(|row| row.2 > 0);
        by_category.sort_by_key(|row| (std::cmp::Reverse(row.1), row.0));
        self.at_peak = at_peak;
        self.padding_at_peak = Bytes(u64::try_from(padding).unwrap_or(0));
        self.by_category = by_category;
    }

    /// Allocated bytes against the capacity.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict_against(self.capacity.as_ref().map(|capacity| capacity.bytes))
    }

    /// Allocated bytes against some capacity.
    #[must_use]
    pub fn verdict_against(&self, capacity: Option<Bytes>) -> Verdict {
        let Some(has) = capacity else { return Verdict::Unknown };
        let needs = self.xprof.allocated;
        if needs > has {
            Verdict::Over { by: needs - has }
        } else if self.is_listing {
            // The message says that it did not fit: beside something else, or with what it does not list.
            Verdict::Unknown
        } else {
            Verdict::Fits { spare: has - needs }
        }
    }

    /// Bytes allocated but not in use at XProf's peak.
    #[must_use]
    pub fn fragmentation(&self) -> Bytes {
        let peak = if self.xprof.peak_is_known { self.xprof.peak } else { self.peak() };
        self.xprof.allocated.saturating_sub(peak)
    }

    /// Whether the peak is known; a report may contain only totals.
    #[must_use]
    pub const fn peak_is_known(&self) -> bool {
        self.xprof.peak_is_known || self.occupancy.is_some()
    }

    /// First and last heap event of a buffer, both included.
    #[must_use]
    pub fn span(&self, buffer: BufferId) -> Option<(u32, u32)> {
        let row = self.xprof.spans.binary_search_by_key(&buffer, |s| s.0).ok()?;
        let (_, start, end) = self.xprof.spans[row];
        Some((start, end))
    }

    /// Events of the replayed trace.
    #[must_use]
    pub fn event_count(&self) -> usize {
        self.xprof.curve.len().saturating_sub(1)
    }

    /// The peak to show: that of all buffers if the program has a schedule, else XProf's.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.occupancy.as_ref().map_or(self.xprof.peak, |occupancy| occupancy.reserved_peak)
    }

    /// [`Self::peak`]; `None` where it is not known.
    #[must_use]
    pub fn known_peak(&self) -> Option<Bytes> {
        self.peak_is_known().then(|| self.peak())
    }

    /// Program point of [`Self::peak`]; without a schedule, the heap event.
    #[must_use]
    pub fn peak_point(&self) -> u32 {
        self.occupancy.as_ref().map_or(self.xprof.peak_event, |occupancy| occupancy.reserved_peak_point)
    }
}

/// Class of a buffer.
#[must_use]
pub fn category(program: &Program, buffer: BufferId) -> Category {
    program.buffers.allocation_of(buffer).map_or(Category::Temporary, |id| program.allocations[id.index()].category())
}

/// Bytes of a buffer without padding. Equal to XProf's, except for nested places in tuples, where XProf takes the size
/// of another element.
#[must_use]
pub fn unpadded(program: &Program, traces: &Traces, buffer: BufferId) -> Bytes {
    if has_no_shape(program, buffer) {
        return program.buffers.size_of(buffer);
    }
    program.buffer_node(buffer).map_or_else(|| traces.unpadded_size(program, buffer), |node| node.unpadded_size())
}

/// Whether a report names the buffer without its shape, so its padding is unknown.
#[must_use]
pub fn has_no_shape(program: &Program, buffer: BufferId) -> bool {
    !program.reported.is_empty() && program.buffer_node(buffer).is_none()
}
