//! The analysis of one program: each memory space with XProf's numbers and our own.

use std::sync::OnceLock;

use super::byte_owners;
use super::chosen_layout::ChosenLayouts;
use super::class::{Class, Classes};
use super::events::{EventPoints, event_points};
use super::flow::label::{Arguments, Label, Labels};
use super::layer_of::LayerOf;
use super::live_range::LiveRanges;
use super::names::lookup;
use super::occupancy::{Occupancy, occupancy};
use super::once::once;
use super::peak_contents::PeakContents;
pub(super) use super::sizes::{category, unpadded};
use super::stop::{Stop, Stopped};
use super::xprof::{self, Traces, XprofSpace};
use crate::model::{BufferId, Bytes, Capacity, Device, FastMap, MemorySpace, NO_ROW, Program};

/// Everything computed about a program.
#[derive(Debug, Default)]
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
    /// Layers that operations belong to, looked for on first use.
    layer_of: OnceLock<LayerOf>,
    /// Arrays whose layout the compiler chooses, looked for on first use.
    chosen_layouts: OnceLock<ChosenLayouts>,
    /// Paths of the entry's arguments, read on first use.
    argument_paths: OnceLock<FastMap<i64, String>>,
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
    /// What stands at [`Self::peak`].
    pub at_peak: PeakContents,
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
    /// Steps that [`Self::unless`] counts, at most: those of the live ranges, and those of each memory space.
    #[must_use]
    pub fn steps(program: &Program) -> u64 {
        4 + 4 * xprof::colors(program).len() as u64
    }

    /// Analyses a program.
    #[must_use]
    pub fn new(program: &Program, device: &Device) -> Self {
        Self::unless(program, device, Stop::NEVER).unwrap_or_default()
    }

    /// As [`Self::new`], unless it is stopped.
    ///
    /// # Errors
    /// If it was.
    pub fn unless(program: &Program, device: &Device, stop: Stop<'_>) -> Result<Self, Stopped> {
        let colors = xprof::colors(program);
        // The live ranges and XProf's replay are independent of each other.
        let (live, (traces, replays)) = rayon::join(
            || LiveRanges::unless(program, stop),
            || {
                let traces = Traces::new(program);
                let mut scratch = xprof::Scratch::default();
                let replay = |&color: &MemorySpace| {
                    let mut replay = xprof::space_with(program, &traces, color, &mut scratch, stop)?;
                    sort_spans(&mut replay.spans, program.buffers.len());
                    stop.step()?;
                    Ok(replay)
                };
                let replays: Result<Vec<XprofSpace>, Stopped> = colors.iter().map(replay).collect();
                (traces, replays)
            },
        );
        let (live, replays) = (live?, replays?);
        let spaces = {
            use rayon::prelude::*;
            replays
                .into_par_iter()
                .map(|replay| SpaceAnalysis::unless(program, device, (live.as_ref(), &traces), replay, stop))
                .collect::<Result<_, Stopped>>()?
        };
        let (classes, labels, argument_paths) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (layer_of, chosen_layouts) = (OnceLock::new(), OnceLock::new());
        Ok(Self { live, spaces, traces, classes, labels, layer_of, chosen_layouts, argument_paths })
    }

    /// Classes of the buffers. The first call is slow: not for the window's thread.
    pub fn classes(&self, program: &Program) -> &Classes {
        once(&self.classes, || Classes::new(program, self))
    }

    /// Labels of temporaries. The first call analyses all loops.
    pub fn labels(&self, program: &Program) -> &Labels {
        once(&self.labels, || Labels::new(program))
    }

    /// The label of a buffer, with the layer where its op name shows none; `None` if its op name is good enough.
    pub fn label(&self, program: &Program, buffer: BufferId) -> Option<Label> {
        self.label_of_next(program, buffer, &mut Arguments::default())
    }

    /// As [`Self::label`], for one after the other of a program's buffers.
    pub fn label_of_next(&self, program: &Program, buffer: BufferId, known: &mut Arguments) -> Option<Label> {
        let labels = self.labels(program);
        let label = labels.of_next(program, buffer, known);
        let (Some(live), Some(at)) = (&self.live, program.buffers.instruction_of(buffer)) else { return label };
        let layer_of = once(&self.layer_of, || LayerOf::new(program, labels, live.sequence()));
        layer_of.tell(program, at, label)
    }

    /// Full name of a buffer: its label with the layer, else its framework op name; a copy has that of its source.
    pub fn op_name(&self, program: &Program, buffer: BufferId) -> String {
        self.label(program, buffer)
            .map_or_else(|| self.labels(program).source_name(program, buffer), |label| label.text)
    }

    /// Short name of a buffer: its label with the layer, else the end of its op name, else the instruction's name.
    pub fn buffer_name(&self, program: &Program, buffer: BufferId) -> String {
        self.label(program, buffer).map_or_else(|| lookup::buffer_name(program, buffer), |label| label.text)
    }

    /// Arrays whose layout the compiler chooses. The first call reads the name of every operation.
    pub fn chosen_layouts(&self, program: &Program) -> &ChosenLayouts {
        once(&self.chosen_layouts, || ChosenLayouts::new(program))
    }

    /// Paths of the entry's arguments by their numbers, as [`lookup::argument_paths`].
    pub fn argument_paths(&self, program: &Program) -> &FastMap<i64, String> {
        once(&self.argument_paths, || lookup::argument_paths(program))
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

/// Sorts spans by buffer. Each buffer has one, so that there is a place for it.
fn sort_spans(spans: &mut Vec<(BufferId, u32, u32)>, buffers: usize) {
    /// Of fewer spans than this part of the buffers, sorting takes less.
    const FEW: usize = 16;
    if spans.len() >= buffers / FEW && !spans.is_sorted_by_key(|span| span.0) {
        let mut places = vec![NO_ROW; buffers];
        for (i, span) in spans.iter().enumerate() {
            if let Some(place) = places.get_mut(span.0.index()) {
                *place = i as u32;
            }
        }
        let sorted: Vec<_> = places.into_iter().filter_map(|i| spans.get(i as usize).copied()).collect();
        if sorted.len() == spans.len() {
            *spans = sorted;
            return;
        }
    }
    spans.sort_unstable_by_key(|span| span.0);
}

impl SpaceAnalysis {
    fn unless(
        program: &Program,
        device: &Device,
        (live, traces): (Option<&LiveRanges>, &Traces),
        xprof: XprofSpace,
        stop: Stop<'_>,
    ) -> Result<Self, Stopped> {
        let (color, baseline) = (xprof.color, xprof.baseline);
        let (occupancy, mut space) = rayon::join(
            || live.map(|live| occupancy(program, live, color, baseline, stop)).transpose(),
            || Self::without_occupancy(program, device, live, xprof),
        );
        space.occupancy = occupancy?;
        stop.step()?;
        let rows = space.rows_at_peak(program, live);
        stop.step()?;
        space.at_peak = PeakContents::new(program, traces, rows);
        stop.step()?;
        if space.occupancy.is_none() && space.xprof.peak_is_known {
            space.at_peak.unlisted = space.peak().saturating_sub(space.at_peak.bytes());
        }
        Ok(space)
    }

    /// Buffers at [`Self::peak`] with the bytes that each adds to it; none where the peak is not known.
    fn rows_at_peak(&self, program: &Program, live: Option<&LiveRanges>) -> Vec<(BufferId, Bytes)> {
        let mut rows: Vec<_> = byte_owners::always_live(program, &self.xprof.always_live_buffers).collect();
        match self.occupancy.as_ref().zip(live) {
            Some((occupancy, live)) => {
                let heap = byte_owners::heap_at(program, live, self.color, occupancy.reserved_peak_point);
                rows.extend(byte_owners::own_bytes(heap));
            }
            None if self.xprof.peak_is_known => {
                rows.extend(self.xprof.live_at_peak.iter().map(|&buffer| (buffer, program.buffers.size_of(buffer))));
            }
            None => rows.clear(),
        }
        rows
    }

    /// What stands at XProf's peak, as XProf lists it: each buffer with its whole size. Without that peak, what stands
    /// at [`Self::peak`].
    #[must_use]
    pub fn at_xprof_peak(&self, program: &Program, traces: &Traces) -> PeakContents {
        if !self.xprof.peak_is_known {
            return self.at_peak.clone();
        }
        let buffers = self.xprof.always_live_buffers.iter().chain(&self.xprof.live_at_peak);
        let rows = buffers.map(|&buffer| (buffer, program.buffers.size_of(buffer))).collect();
        PeakContents::new(program, traces, rows)
    }

    fn without_occupancy(program: &Program, device: &Device, live: Option<&LiveRanges>, xprof: XprofSpace) -> Self {
        let color = xprof.color;
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
        Self {
            color,
            name: color.name(device.kind),
            capacity: device.capacity(color).cloned(),
            is_listing: program.is_listing,
            occupancy: None,
            events,
            buffers,
            without_lifetime,
            at_peak: PeakContents::default(),
            xprof,
        }
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

    /// Bytes allocated but not in use at the peak.
    #[must_use]
    pub fn fragmentation(&self) -> Bytes {
        self.xprof.allocated.saturating_sub(self.peak())
    }

    /// Bytes allocated but not in use at XProf's peak.
    #[must_use]
    pub fn xprof_fragmentation(&self) -> Bytes {
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
