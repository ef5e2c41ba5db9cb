//! XProf's memory-viewer numbers, computed as xprof 2.24.2 does, for one memory space.
//!
//! Replays one heap trace on top of the always-live allocations. Where XProf would show nothing, the replay continues
//! and reports the inconsistency.

use super::stop::{Stop, Stopped};
use crate::model::{AllocationId, BufferId, Bytes, EventKind, MemorySpace, NO_ROW, Program, ReportedSpace};

/// Results for one memory space.
#[derive(Debug, Clone, Default)]
pub struct XprofSpace {
    /// The memory space.
    pub color: MemorySpace,
    /// The trace that was replayed.
    pub trace: Option<usize>,
    /// Σ of all allocations that are not thread-local (`totalBufferAllocationMib`).
    pub allocated: Bytes,
    /// Σ of the always-live ones (`indefiniteBufferAllocationMib`).
    pub always_live: Bytes,
    /// Σ of the arguments (`entryComputationParametersMib`).
    pub parameters: Bytes,
    /// Σ of possible results (`maybeLiveOutMib`); includes donated arguments.
    pub live_out: Bytes,
    /// Σ of thread-local and tuple allocations (`nonReusableMib`).
    pub non_reusable: Bytes,
    /// Always-live bytes under the curve.
    pub baseline: Bytes,
    /// Highest point of the curve (`peakHeapMib`).
    pub peak: Bytes,
    /// The event that reaches it (`peakHeapSizePosition`); the curve shows it one point later.
    pub peak_event: u32,
    /// Unpadded size at that moment, over the padded baseline (`peakUnpaddedHeapMib`).
    pub peak_unpadded: Bytes,
    /// (bytes, unpadded bytes) before each event and after the last, baseline included.
    pub curve: Vec<(u64, u64)>,
    /// First and last event of each buffer that has a span: (buffer, first, last).
    pub spans: Vec<(BufferId, u32, u32)>,
    /// The largest buffer of each always-live allocation, by ascending allocation.
    pub always_live_buffers: Vec<BufferId>,
    /// Buffers live at the peak, in order of placement; a buffer that reused another's memory replaces it.
    pub live_at_peak: Vec<BufferId>,
    /// Whether the peak is known; a report may contain only totals.
    pub peak_is_known: bool,
    /// Inconsistencies, one sentence each.
    pub inconsistencies: Vec<String>,
}

/// Inconsistencies beyond this number are not listed.
const MAX_INCONSISTENCIES: usize = 20;

/// Data shared by all memory spaces: allocations in order, and each allocation's trace.
#[derive(Debug, Default)]
pub struct Traces {
    /// Allocations by ascending index.
    order: Vec<AllocationId>,
    /// Trace by allocation row.
    of_allocation: Vec<Option<usize>>,
    /// XProf's unpadded size of every node of every shape.
    unpadded: Vec<Vec<u64>>,
}

impl Traces {
    /// Finds each allocation's trace: the last whose first event concerns one of its buffers.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let mut order: Vec<AllocationId> = (0..program.allocations.len()).map(AllocationId::from_index).collect();
        order.sort_by_key(|&id| program.allocations[id.index()].index);
        let mut of_allocation = vec![None; program.allocations.len()];
        for (i, trace) in program.traces.iter().enumerate() {
            if let Some(first) = trace.events.first()
                && let Some(buffer) = existing(program, first.buffer)
                && let Some(allocation) = program.buffers.allocation_of(buffer)
            {
                of_allocation[allocation.index()] = Some(i);
            }
        }
        let unpadded = program
            .shapes
            .iter()
            .map(|shape| {
                // XProf looks only at the last number of the index, among the top-level elements.
                let root = shape.root();
                let mut sizes = vec![root.unpadded_size().0; shape.nodes.len()];
                for node in &shape.nodes {
                    for (k, &child) in node.children.iter().enumerate() {
                        let taken = root.children.get(k).map_or(root, |&element| &shape.nodes[element as usize]);
                        sizes[child as usize] = taken.unpadded_size().0;
                    }
                }
                sizes
            })
            .collect();
        Self { order, of_allocation, unpadded }
    }

    /// XProf's unpadded size of a buffer. For a nested place in a tuple it is that of another element, as XProf's is.
    #[must_use]
    pub fn unpadded_size(&self, program: &Program, buffer: BufferId) -> Bytes {
        let Some(instruction) = program.buffers.instruction_of(buffer) else { return Bytes::ZERO };
        let shape_id = program.instructions.shape[instruction.index()];
        let node = program.buffers.node[buffer.index()];
        if node == NO_ROW {
            let Some(shape) = program.shape_of(instruction) else { return Bytes::ZERO };
            let index = program.buffer_index(buffer);
            return shape.nodes[shape.xprof_node(&index) as usize].unpadded_size();
        }
        Bytes(self.unpadded.get(shape_id.index()).and_then(|s| s.get(node as usize)).copied().unwrap_or(0))
    }

    /// The trace that represents a memory space.
    fn choose(&self, program: &Program, color: MemorySpace) -> Option<usize> {
        let of_space = self.order.iter().find_map(|&id| {
            let allocation = &program.allocations[id.index()];
            let is_heap = allocation.color == color && !allocation.is_indefinite();
            if is_heap { self.of_allocation[id.index()] } else { None }
        });
        if of_space.is_some() {
            return of_space;
        }
        let mut best = (0, None);
        for (i, trace) in program.traces.iter().enumerate() {
            let count = trace
                .events
                .iter()
                .filter(|event| {
                    existing(program, event.buffer).is_some_and(|b| program.buffers.color[b.index()] == color)
                })
                .count();
            if count > best.0 {
                best = (count, Some(i));
            }
        }
        best.1
    }
}

/// A buffer that XProf knows: assigned to an allocation and defined by a known instruction.
fn existing(program: &Program, row: u32) -> Option<BufferId> {
    let known = row != NO_ROW
        && program.buffers.allocation[row as usize] != NO_ROW
        && program.buffers.instruction[row as usize] != NO_ROW;
    known.then_some(BufferId(row))
}

/// Colours of the memory spaces that have an allocation, ascending.
#[must_use]
pub fn colors(program: &Program) -> Vec<MemorySpace> {
    let mut colors: Vec<MemorySpace> = program.allocations.iter().map(|allocation| allocation.color).collect();
    colors.sort_unstable();
    colors.dedup();
    colors
}

/// Computes XProf's numbers for a memory space.
#[must_use]
pub fn space(program: &Program, traces: &Traces, color: MemorySpace) -> XprofSpace {
    space_with(program, traces, color, &mut Scratch::default(), Stop::NEVER).unwrap_or_default()
}

/// State of the buffers during a replay, reused for the next space.
#[derive(Default)]
pub struct Scratch(Vec<State>);

/// As [`space`], with memory from an earlier call, unless it is stopped.
///
/// # Errors
/// If it was.
pub fn space_with(
    program: &Program,
    traces: &Traces,
    color: MemorySpace,
    scratch: &mut Scratch,
    stop: Stop<'_>,
) -> Result<XprofSpace, Stopped> {
    let mut space = XprofSpace { color, trace: traces.choose(program, color), ..XprofSpace::default() };
    for &id in &traces.order {
        stop.check()?;
        let allocation = &program.allocations[id.index()];
        if allocation.color != color {
            continue;
        }
        if !allocation.is_thread_local {
            space.allocated += allocation.size;
            if allocation.is_indefinite() {
                space.always_live += allocation.size;
            }
        }
        if allocation.is_parameter {
            space.parameters += allocation.size;
        }
        if allocation.maybe_live_out {
            space.live_out += allocation.size;
        }
        if allocation.is_thread_local || allocation.is_tuple {
            space.non_reusable += allocation.size;
        }
        if allocation.is_indefinite() {
            let mut largest: Option<BufferId> = None;
            for assigned in program.assigned_to(allocation) {
                let Some(buffer) = existing(program, assigned.buffer.0) else { continue };
                if program.buffers.size_of(buffer) > largest.map_or(Bytes::ZERO, |b| program.buffers.size_of(b)) {
                    largest = Some(buffer);
                }
            }
            if let Some(buffer) = largest {
                space.baseline += allocation.size;
                space.always_live_buffers.push(buffer);
            }
        }
    }
    space.peak = space.baseline;
    space.peak_unpadded = space.baseline;
    if let Some(trace) = space.trace {
        let replay = Replay::new(program, traces, trace, std::mem::take(&mut scratch.0));
        scratch.0 = replay.run(&mut space, stop)?;
    } else if program.is_listing {
        listed(program, traces, &mut space);
    }
    space.peak_is_known = true;
    if let Some(reported) = program.reported.iter().find(|reported| reported.color == color) {
        take_reported(&mut space, reported);
    }
    Ok(space)
}

/// A listing has no times: all that it names is live at once.
fn listed(program: &Program, traces: &Traces, space: &mut XprofSpace) {
    for row in 0..program.buffers.len() as u32 {
        let Some(buffer) = existing(program, row) else { continue };
        let Some(allocation) = program.buffers.allocation_of(buffer).map(|id| &program.allocations[id.index()]) else {
            continue;
        };
        if allocation.color == space.color && !allocation.is_indefinite() {
            space.peak += program.buffers.size_of(buffer);
            space.peak_unpadded += traces.unpadded_size(program, buffer);
            space.live_at_peak.push(buffer);
        }
    }
}

/// Replaces numbers that cannot be computed from a report by those printed in it.
fn take_reported(space: &mut XprofSpace, reported: &ReportedSpace) {
    let sums = [
        (&mut space.allocated, reported.allocated),
        (&mut space.always_live, reported.always_live),
        (&mut space.parameters, reported.parameters),
        (&mut space.live_out, reported.live_out),
        (&mut space.non_reusable, reported.non_reusable),
    ];
    for (ours, theirs) in sums {
        if let Some(theirs) = theirs {
            *ours = theirs;
        }
    }
    space.peak_is_known = reported.peak.is_some();
    if let Some(peak) = &reported.peak {
        space.peak = peak.bytes;
        space.peak_unpadded = peak.unpadded;
        space.peak_event = peak.event;
        space.curve.clone_from(&peak.curve);
        space.spans.clone_from(&peak.spans);
        space.always_live_buffers.clone_from(&peak.always_live);
        space.live_at_peak.clone_from(&peak.heap);
    }
}

/// A period during which memory is allocated.
struct Stay {
    root: u32,
    /// The buffer shown for it.
    display: u32,
    enter: u32,
    /// Event at which it is freed; [`NO_ROW`] until then.
    leave: u32,
}

/// State of one buffer during the replay.
#[derive(Clone, Copy)]
struct State {
    /// The buffer whose memory it shares, itself for a root.
    canonical: u32,
    /// Users of a root's memory.
    users: i32,
    /// The current stay.
    stay: u32,
    /// Row of its span.
    span: u32,
    /// Shown instead of the root once another buffer reuses its memory.
    display: u32,
    closed: bool,
}

impl State {
    const fn fresh(row: u32) -> Self {
        Self { canonical: row, users: 0, stay: NO_ROW, span: NO_ROW, display: row, closed: false }
    }
}

struct Replay<'a> {
    program: &'a Program,
    traces: &'a Traces,
    trace: usize,
    states: Vec<State>,
    stays: Vec<Stay>,
    heap: u64,
    unpadded: u64,
    peak: u64,
    peak_unpadded: u64,
    peak_event: u32,
    last_event: u32,
}

impl<'a> Replay<'a> {
    /// `states` are fresh: empty, or what an earlier run gave back.
    fn new(program: &'a Program, traces: &'a Traces, trace: usize, mut states: Vec<State>) -> Self {
        if states.len() != program.buffers.len() {
            states = (0..program.buffers.len() as u32).map(State::fresh).collect();
        }
        Self {
            program,
            traces,
            trace,
            states,
            stays: Vec::new(),
            heap: 0,
            unpadded: 0,
            peak: 0,
            peak_unpadded: 0,
            peak_event: 0,
            last_event: 0,
        }
    }

    /// The buffer at the end of the sharing chain. Bounded, as a damaged file may contain a cycle.
    fn root(&self, mut row: u32) -> u32 {
        for _ in 0..4096 {
            let next = self.states[row as usize].canonical;
            if next == row {
                break;
            }
            row = next;
        }
        row
    }

    /// Replays the trace; returns the states, fresh again.
    ///
    /// # Errors
    /// If it was stopped.
    fn run(mut self, space: &mut XprofSpace, stop: Stop<'_>) -> Result<Vec<State>, Stopped> {
        let events = &self.program.traces[self.trace].events;
        let baseline = space.baseline.0;
        self.last_event = (events.len() as u32).saturating_sub(1);
        space.curve.reserve_exact(events.len() + 1);
        let mut allocation = None;
        for (t, event) in events.iter().enumerate() {
            stop.check()?;
            let t = t as u32;
            space.curve.push((self.heap.saturating_add(baseline), self.unpadded.saturating_add(baseline)));
            let Some(buffer) = existing(self.program, event.buffer) else { continue };
            let own = self.program.buffers.allocation[buffer.index()];
            if *allocation.get_or_insert(own) != own {
                note(space, || "its heap trace touches more than one allocation; XProf shows nothing then".to_owned());
            }
            match event.kind {
                EventKind::Alloc => {
                    let root = self.root(buffer.0);
                    self.states[root as usize].users += 1;
                    self.enter(t, buffer.0, buffer.0);
                    self.open_span(buffer, t, space);
                }
                EventKind::Free => self.free(t, buffer, space),
                EventKind::ShareWith => {
                    if let Some(canonical) = existing(self.program, event.canonical) {
                        self.share(t, buffer, canonical, space);
                    }
                }
                EventKind::Other => note(space, || format!("event {t} is of an unknown kind")),
            }
        }
        space.curve.push((self.heap.saturating_add(baseline), self.unpadded.saturating_add(baseline)));
        space.peak = Bytes(self.peak.saturating_add(baseline));
        space.peak_unpadded = Bytes(self.peak_unpadded.saturating_add(baseline));
        space.peak_event = self.peak_event;
        if self.peak > 0 {
            space.live_at_peak = self
                .stays
                .iter()
                .filter(|stay| stay.enter <= self.peak_event && self.peak_event < stay.leave)
                .map(|stay| BufferId(stay.display))
                .collect();
        }
        // A buffer may be opened more than once; the last span holds.
        let mut spans = std::mem::take(&mut space.spans);
        let states = &self.states;
        let mut i = 0;
        spans.retain(|&(buffer, _, _)| {
            i += 1;
            states[buffer.index()].span == i - 1
        });
        space.spans = spans;
        let mut states = self.states;
        for event in events {
            for row in [event.buffer, event.canonical] {
                if let Some(state) = states.get_mut(row as usize) {
                    *state = State::fresh(row);
                }
            }
        }
        Ok(states)
    }

    /// Allocates the memory of `root`, shown as `display`.
    fn enter(&mut self, t: u32, root: u32, display: u32) {
        let buffer = BufferId(root);
        let display = if root == display { self.states[root as usize].display } else { display };
        self.states[root as usize].stay = self.stays.len() as u32;
        self.stays.push(Stay { root, display, enter: t, leave: NO_ROW });
        self.heap = self.heap.saturating_add(self.program.buffers.size_of(buffer).0);
        self.unpadded = self.unpadded.saturating_add(self.traces.unpadded_size(self.program, buffer).0);
        if self.heap > self.peak {
            self.peak = self.heap;
            self.peak_unpadded = self.unpadded;
            self.peak_event = t;
        }
    }

    fn open_span(&mut self, buffer: BufferId, t: u32, space: &mut XprofSpace) {
        let state = &mut self.states[buffer.index()];
        state.span = space.spans.len() as u32;
        state.closed = false;
        space.spans.push((buffer, t, self.last_event));
    }

    fn close_span(&mut self, buffer: u32, t: u32, space: &mut XprofSpace) {
        if let Some(span) = space.spans.get_mut(self.states[buffer as usize].span as usize) {
            span.2 = t;
        }
    }

    fn free(&mut self, t: u32, buffer: BufferId, space: &mut XprofSpace) {
        let root = self.root(buffer.0);
        if self.states[root as usize].users <= 0 {
            note(space, || {
                format!("event {t} frees {} a second time; XProf shows nothing then", self.program.buffer_name(buffer))
            });
            return;
        }
        self.states[root as usize].users -= 1;
        if self.states[root as usize].users == 0 {
            let size = self.program.buffers.size_of(BufferId(root)).0;
            let stay = self.states[root as usize].stay;
            if let Some(stay) = self.stays.get_mut(stay as usize) {
                debug_assert_eq!(stay.root, root);
                stay.leave = t;
            }
            self.states[root as usize].stay = NO_ROW;
            if size > self.heap {
                note(space, || format!("event {t} frees more than is allocated; XProf shows nothing then"));
            }
            self.heap = self.heap.saturating_sub(size);
            let unpadded = self.traces.unpadded_size(self.program, BufferId(root)).0;
            self.unpadded = self.unpadded.saturating_sub(unpadded);
            if !self.states[root as usize].closed {
                self.states[root as usize].closed = true;
                self.close_span(root, t, space);
            }
        }
        if buffer.0 != root && self.states[buffer.index()].span != NO_ROW {
            self.close_span(buffer.0, t, space);
        }
    }

    fn share(&mut self, t: u32, buffer: BufferId, canonical: BufferId, space: &mut XprofSpace) {
        if self.root(canonical.0) == buffer.0 {
            note(space, || format!("event {t} makes a buffer share memory with itself"));
            return;
        }
        self.states[buffer.index()].canonical = canonical.0;
        let root = self.root(canonical.0);
        self.states[root as usize].users += 1;
        if self.states[root as usize].users == 1 {
            // The memory was free and is reused.
            self.states[root as usize].display = buffer.0;
            self.open_span(buffer, t, space);
            self.enter(t, root, buffer.0);
        }
    }
}

fn note(space: &mut XprofSpace, text: impl FnOnce() -> String) {
    if space.inconsistencies.len() < MAX_INCONSISTENCIES {
        let text = text();
        if !space.inconsistencies.contains(&text) {
            space.inconsistencies.push(text);
        }
    }
}

#[cfg(test)]
#[path = "xprof_tests.rs"]
mod tests;
