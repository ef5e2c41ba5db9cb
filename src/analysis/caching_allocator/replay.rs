//! The events forwards: the size of every block, the four curves, what lived when.

use std::collections::{BTreeMap, HashMap};

use super::beginning::{Beginning, segment_of_event, segments_at_end};
use super::failure::{FailedRequest, Moment};
use super::problems::{Problem, Problems};
use super::space::{Free, Reserved, Rounding, Segments};
use crate::model::{CachingAction, CachingDevice, CachingSnapshot, NO_ROW, StackId};

/// Failed requests that are examined in full.
const MAX_FAILURES: usize = 256;

/// A block may be this much larger than its request says.
const MAX_LEARNED: u64 = 1 << 20;

/// Replays to learn the sizes of old blocks.
const MAX_PASSES: usize = 8;

/// One allocation from its beginning to its end. A moment is the number of events that have happened: the state after
/// event `i` is that of moment `i + 1`, and 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// First byte.
    pub address: u64,
    /// Bytes the program asked for.
    pub requested: u64,
    /// Bytes of its block.
    pub size: u64,
    /// First moment; 0 if it is older than the history.
    pub start: u32,
    /// First moment at which its bytes can be used again; [`NO_ROW`] if it lives at the end.
    pub end: u32,
    /// First moment at which its owner had let go of it; [`NO_ROW`] if never.
    pub released: u32,
    /// Who allocated it.
    pub stack: StackId,
}

impl Lifetime {
    /// Whether it is older than the history.
    #[must_use]
    pub const fn is_old(&self) -> bool {
        self.start == 0
    }

    /// The event that began it; -1 if it is older than the history.
    #[must_use]
    pub const fn event(&self) -> i64 {
        self.start as i64 - 1
    }
}

/// Bytes at every moment: one more than there are events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Curves {
    /// Bytes the program asked for, until they can be used again.
    pub requested: Vec<u64>,
    /// Bytes of blocks whose owner has not let go.
    pub allocated: Vec<u64>,
    /// Bytes of blocks that cannot be used again yet.
    pub active: Vec<u64>,
    /// Bytes of segments.
    pub reserved: Vec<u64>,
}

/// Bytes of the curves at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// See [`Curves::requested`].
    pub requested: u64,
    /// See [`Curves::allocated`].
    pub allocated: u64,
    /// Requested bytes of blocks whose owner has not let go.
    pub allocated_requested: u64,
    /// See [`Curves::active`].
    pub active: u64,
    /// See [`Curves::reserved`].
    pub reserved: u64,
}

/// The highest point of a curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes.
    pub bytes: u64,
    /// First moment with as many.
    pub moment: u32,
}

impl Peak {
    /// The event after which it is reached; -1 before the first.
    #[must_use]
    pub const fn event(&self) -> i64 {
        self.moment as i64 - 1
    }

    fn raise(&mut self, bytes: u64, moment: u32) {
        if bytes > self.bytes {
            *self = Self { bytes, moment };
        }
    }
}

/// Peaks of the curves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peaks {
    /// See [`Totals`].
    pub requested: Peak,
    /// See [`Totals`].
    pub allocated: Peak,
    /// See [`Totals`].
    pub allocated_requested: Peak,
    /// See [`Totals`].
    pub active: Peak,
    /// See [`Totals`].
    pub reserved: Peak,
}

/// What a replay finds.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// Every allocation, by beginning.
    pub lifetimes: Vec<Lifetime>,
    /// The four curves.
    pub curves: Curves,
    /// Their peaks.
    pub peaks: Peaks,
    /// Whether the file determines the size of every block.
    pub sizes_are_exact: bool,
    /// Failed requests.
    pub failures: Vec<FailedRequest>,
    /// Contradictions.
    pub problems: Problems,
    /// Segments and free ranges after the last event.
    pub last: Moment,
    /// Live lifetimes after the last event, by address.
    pub live_at_end: BTreeMap<u64, u32>,
    /// Bytes that old blocks have beyond what their requests say, by address.
    pub learned: HashMap<u64, u64>,
}

/// Replays the events of a device from their beginning, again where a pass shows that an old block was larger.
pub fn replay(snapshot: &CachingSnapshot, device: &CachingDevice, beginning: &Beginning) -> Replay {
    let rounding = Rounding::new(&snapshot.settings);
    let mut learned: HashMap<u64, u64> = HashMap::new();
    let mut pass = 0;
    loop {
        pass += 1;
        let mut run = Run::new(snapshot, device, &rounding, beginning, &learned);
        run.events();
        let more = std::mem::take(&mut run.learned);
        if more.is_empty() || pass == MAX_PASSES {
            return Replay { learned, ..run.finish() };
        }
        for (address, bytes) in more {
            *learned.entry(address).or_default() += bytes;
        }
    }
}

/// Segments and free ranges at a moment.
pub fn state_at(
    snapshot: &CachingSnapshot,
    device: &CachingDevice,
    beginning: &Beginning,
    learned: &HashMap<u64, u64>,
    moment: u32,
) -> Moment {
    let rounding = Rounding::new(&snapshot.settings);
    let until = device.events.start.saturating_add(moment as usize).min(device.events.end);
    let part = CachingDevice { index: device.index, events: device.events.start..until };
    let mut run = Run::new(snapshot, &part, &rounding, beginning, learned);
    run.events();
    Moment { segments: run.segments, free: run.free }
}

/// A replay as it goes.
struct Run<'a> {
    snapshot: &'a CachingSnapshot,
    device: &'a CachingDevice,
    rounding: &'a Rounding,
    segments: Segments,
    /// Segments of private pools that live at the end.
    private: Segments,
    free: Free,
    live: HashMap<u64, u32>,
    /// Old blocks of unknown size that are live, by their end as assumed.
    unsure_ends: HashMap<u64, u64>,
    learned: Vec<(u64, u64)>,
    totals: Totals,
    moment: u32,
    out: Replay,
}

impl<'a> Run<'a> {
    fn new(
        snapshot: &'a CachingSnapshot,
        device: &'a CachingDevice,
        rounding: &'a Rounding,
        beginning: &Beginning,
        learned: &HashMap<u64, u64>,
    ) -> Self {
        let mut run = Self {
            snapshot,
            device,
            rounding,
            segments: beginning.segments.clone(),
            private: segments_at_end(snapshot, device.index),
            free: Free::default(),
            live: HashMap::new(),
            unsure_ends: HashMap::new(),
            learned: Vec::new(),
            totals: Totals::default(),
            moment: 0,
            out: Replay { sizes_are_exact: true, ..Replay::default() },
        };
        run.private.by_address.retain(|_, segment| segment.pool != (0, 0));
        for (&address, block) in &beginning.blocks {
            let size = block.size.unwrap_or_else(|| {
                run.out.sizes_are_exact = false;
                let size = rounding.block(block.requested).saturating_add(learned.get(&address).copied().unwrap_or(0));
                run.unsure_ends.insert(address.saturating_add(size), address);
                size
            });
            let released = if block.is_allocated { NO_ROW } else { 0 };
            let lifetime = Lifetime {
                address,
                requested: block.requested,
                size,
                start: 0,
                end: NO_ROW,
                released,
                stack: block.stack,
            };
            run.begin(lifetime);
        }
        run.totals.reserved = run.segments.bytes();
        run.free_between(beginning);
        let capacity = device.events.len() + 1;
        let curves = &mut run.out.curves;
        for curve in [&mut curves.requested, &mut curves.allocated, &mut curves.active, &mut curves.reserved] {
            curve.reserve_exact(capacity);
        }
        run.point();
        run
    }

    /// The free ranges between the old blocks.
    fn free_between(&mut self, beginning: &Beginning) {
        for (&start, segment) in &self.segments.by_address {
            let end = start.saturating_add(segment.size);
            let mut at = start;
            for &address in beginning.blocks.range(start..end).map(|(address, _)| address) {
                let Some(&row) = self.live.get(&address) else { continue };
                if address > at {
                    self.free.by_address.insert(at, address - at);
                }
                at = at.max(address.saturating_add(self.out.lifetimes[row as usize].size));
            }
            if at < end {
                self.free.by_address.insert(at, end - at);
            }
        }
    }

    /// Adds a lifetime and its bytes.
    fn begin(&mut self, lifetime: Lifetime) {
        let row = u32::try_from(self.out.lifetimes.len()).unwrap_or(NO_ROW);
        if self.live.insert(lifetime.address, row).is_some() {
            self.out.problems.add(Problem::InUse);
        }
        let totals = &mut self.totals;
        totals.requested = totals.requested.saturating_add(lifetime.requested);
        totals.active = totals.active.saturating_add(lifetime.size);
        if lifetime.released == NO_ROW {
            totals.allocated = totals.allocated.saturating_add(lifetime.size);
            totals.allocated_requested = totals.allocated_requested.saturating_add(lifetime.requested);
        }
        self.out.lifetimes.push(lifetime);
    }

    fn events(&mut self) {
        for event in self.device.events.clone() {
            self.moment += 1;
            self.event(event);
            self.point();
        }
    }

    /// Adds a point to the curves.
    fn point(&mut self) {
        let (totals, curves, peaks) = (self.totals, &mut self.out.curves, &mut self.out.peaks);
        curves.requested.push(totals.requested);
        curves.allocated.push(totals.allocated);
        curves.active.push(totals.active);
        curves.reserved.push(totals.reserved);
        peaks.requested.raise(totals.requested, self.moment);
        peaks.allocated.raise(totals.allocated, self.moment);
        peaks.allocated_requested.raise(totals.allocated_requested, self.moment);
        peaks.active.raise(totals.active, self.moment);
        peaks.reserved.raise(totals.reserved, self.moment);
    }

    fn event(&mut self, event: usize) {
        let events = &self.snapshot.events;
        let (address, size) = (events.address[event], events.size[event]);
        match events.action[event] {
            CachingAction::Alloc => self.alloc(event, address, size),
            CachingAction::FreeRequested => match self.live.get(&address) {
                Some(&row) => self.release(row),
                None => self.problem(Problem::UnknownFree),
            },
            CachingAction::FreeCompleted => self.complete(address),
            CachingAction::SegmentAlloc => {
                let segment = self.with_pool(address, segment_of_event(self.snapshot, event, false));
                if let Some(old) = self.segments.by_address.insert(address, segment) {
                    self.totals.reserved = self.totals.reserved.saturating_sub(old.size);
                    self.problem(Problem::UnknownSegment);
                }
                self.free.by_address.insert(address, size);
                self.totals.reserved = self.totals.reserved.saturating_add(size);
            }
            CachingAction::SegmentFree => match self.segments.by_address.remove(&address) {
                Some(segment) => {
                    self.free.cut(address, segment.size);
                    self.totals.reserved = self.totals.reserved.saturating_sub(segment.size);
                }
                None => self.problem(Problem::UnknownSegment),
            },
            CachingAction::SegmentMap => {
                let pages = self.with_pool(address, segment_of_event(self.snapshot, event, true));
                let start = self.segments.map(address, pages);
                let bounds = self.segments.by_address.get(&start).map_or(size, |segment| segment.size);
                self.free.add(address, size, (start, start.saturating_add(bounds)));
                self.totals.reserved = self.totals.reserved.saturating_add(size);
            }
            CachingAction::SegmentUnmap => {
                if self.segments.unmap(address, size) {
                    self.free.cut(address, size);
                    self.totals.reserved = self.totals.reserved.saturating_sub(size);
                } else {
                    self.problem(Problem::UnknownSegment);
                }
            }
            CachingAction::OutOfMemory => {
                if self.out.failures.len() < MAX_FAILURES {
                    let asked = (size, address);
                    let request = (self.snapshot.stream_of(event), self.snapshot.pool_of(event));
                    let state = (&self.segments, &self.free);
                    let mut failed = FailedRequest::examine(asked, request, state, self.totals, self.rounding);
                    failed.moment = self.moment;
                    failed.stack = events.stack[event];
                    self.out.failures.push(failed);
                } else {
                    self.problem(Problem::TooManyFailures);
                }
            }
            CachingAction::Snapshot => {
                if size != 0 && size != self.totals.active && self.out.sizes_are_exact {
                    self.problem(Problem::ActiveDiffers);
                }
            }
            CachingAction::Annotate | CachingAction::Other => {}
        }
    }

    /// Counts a contradiction; in a cut file they are to be expected.
    fn problem(&mut self, problem: Problem) {
        if !self.snapshot.is_cut || problem == Problem::TooManyFailures {
            self.out.problems.add(problem);
        }
    }

    /// A segment with the pool that the file lists for its address, where events have none.
    fn with_pool(&self, address: u64, mut segment: Reserved) -> Reserved {
        if self.snapshot.events.pool.is_empty()
            && let Some((_, listed)) = self.private.holding(address)
        {
            segment.pool = listed.pool;
        }
        segment
    }

    fn alloc(&mut self, event: usize, address: u64, requested: u64) {
        let block = self.rounding.block(requested);
        let size = match self.segments.holding(address) {
            None => {
                self.problem(Problem::OutsideSegments);
                block
            }
            Some((_, segment)) => match self.free.take(address, block, self.rounding, segment.is_expandable) {
                Some(size) => size,
                None => {
                    self.misplaced(address, block);
                    block
                }
            },
        };
        let lifetime = Lifetime {
            address,
            requested,
            size,
            start: self.moment,
            end: NO_ROW,
            released: NO_ROW,
            stack: self.snapshot.events.stack[event],
        };
        self.begin(lifetime);
    }

    /// An allocation where no free range begins. If the range begins a little before, at the end of an old block, that
    /// block was larger.
    fn misplaced(&mut self, address: u64, block: u64) {
        let around = self.free.by_address.range(..=address).next_back().map(|(&start, &length)| (start, length));
        let Some((start, length)) = around.filter(|&(start, length)| address - start < length) else {
            self.problem(Problem::NotFree);
            return;
        };
        let gap = address - start;
        match self.unsure_ends.get(&start) {
            Some(&old) if gap > 0 && gap <= MAX_LEARNED => self.learned.push((old, gap)),
            _ => self.problem(Problem::NotFree),
        }
        self.free.cut(address, block.min(length - gap));
    }

    /// The owner lets go.
    fn release(&mut self, row: u32) {
        let Some(lifetime) = self.out.lifetimes.get_mut(row as usize) else { return };
        if lifetime.released == NO_ROW {
            lifetime.released = self.moment;
            self.totals.allocated = self.totals.allocated.saturating_sub(lifetime.size);
            self.totals.allocated_requested = self.totals.allocated_requested.saturating_sub(lifetime.requested);
        }
    }

    /// A block can be used again.
    fn complete(&mut self, address: u64) {
        let Some(row) = self.live.remove(&address) else {
            self.problem(Problem::UnknownFree);
            return;
        };
        self.release(row);
        let Some(lifetime) = self.out.lifetimes.get_mut(row as usize) else { return };
        lifetime.end = self.moment;
        let (size, requested) = (lifetime.size, lifetime.requested);
        self.totals.active = self.totals.active.saturating_sub(size);
        self.totals.requested = self.totals.requested.saturating_sub(requested);
        if lifetime.is_old() {
            self.unsure_ends.remove(&address.saturating_add(size));
        }
        if let Some((start, segment)) = self.segments.holding(address) {
            self.free.add(address, size, (start, start.saturating_add(segment.size)));
        }
    }

    fn finish(mut self) -> Replay {
        self.out.live_at_end = self.live.into_iter().collect();
        self.out.last = Moment { segments: self.segments, free: self.free };
        self.out
    }
}
