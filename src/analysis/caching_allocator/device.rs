//! One device of a snapshot: its history, and questions about any moment of it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::beginning::{self, Beginning};
use super::category::{self, AllocationCategory, Evidence};
use super::end_state::{self, EndState};
use super::failure::{FailedRequest, Moment};
use super::problems;
use super::replay::{self, Lifetime, Replay};
use super::steps::{self, Span, Steps};
use super::tail::KeptGraphs;
use crate::model::{CachingAction, CachingDevice, CachingSnapshot};

/// Everything computed about one device of a snapshot.
#[derive(Debug)]
pub struct CachingAnalysis {
    /// The device, and its events.
    pub device: CachingDevice,
    /// Number of events by action.
    pub actions: BTreeMap<&'static str, u64>,
    /// Contradictions, one sentence for each kind.
    pub problems: Vec<String>,
    /// The state when the snapshot was taken.
    pub at_end: EndState,
    /// Blocks that are older than the history.
    pub old_blocks: u64,
    /// Segments that are older than the history, and their bytes.
    pub old_segments: (u64, u64),
    /// Requested bytes of the old blocks.
    pub old_bytes: u64,
    /// What the replay finds.
    pub replay: Replay,
    /// Whether the replay ends in the state of the file, block by block.
    pub replay_equals_end: bool,
    /// Category of each lifetime.
    pub categories: Vec<(AllocationCategory, Evidence)>,
    /// Whether the history has a backward pass.
    pub has_backward: bool,
    /// Graphs of forward passes that no backward pass follows.
    pub kept_graphs: Option<KeptGraphs>,
    /// Steps of the optimizer.
    pub spans: Vec<Span>,
    /// Steps of the run; `None` if there are none.
    pub steps: Option<Steps>,
    beginning: Beginning,
    by_category: OnceLock<Vec<(AllocationCategory, u64, u64)>>,
    /// The moment with the most allocated bytes of each run of [`RUN`] moments.
    highest: Vec<u32>,
}

/// Moments in a run of which the highest is known.
const RUN: usize = 256;

impl CachingAnalysis {
    /// Rebuilds the history of each device.
    #[must_use]
    pub fn of(snapshot: &CachingSnapshot) -> Vec<Self> {
        snapshot.devices.iter().map(|device| Self::new(snapshot, device)).collect()
    }

    fn new(snapshot: &CachingSnapshot, device: &CachingDevice) -> Self {
        let mut problems = problems::Problems::default();
        let beginning = beginning::beginning(snapshot, device, &mut problems);
        let replay = replay::replay(snapshot, device, &beginning);
        let mut sentences = problems.sentences();
        sentences.extend(replay.problems.sentences());
        let spans = steps::spans(snapshot, device, steps::is_optimizer_step);
        let events = &snapshot.events;
        let has_stacks = device.events.clone().any(|event| events.stack[event].is_known());
        let found = category::categories(snapshot, (&replay.lifetimes, &replay.failures), &spans, has_stacks);
        let steps = steps::steps(&spans, &replay.curves, &replay.lifetimes);
        let mut counts = [0u64; CachingAction::NAMED.len() + 1];
        for action in &events.action[device.events.clone()] {
            counts[*action as usize] += 1;
        }
        let named = CachingAction::NAMED.into_iter().chain([CachingAction::Other]);
        let actions = named.zip(counts).filter(|(_, count)| *count > 0);
        let allocated = &replay.curves.allocated;
        let runs = (0..allocated.len()).step_by(RUN);
        let highest = runs.filter_map(|run| highest_in(allocated, run, run + RUN)).map(|row| row as u32).collect();
        let mut own = Self {
            actions: actions.map(|(action, count)| (action.name(), count)).collect(),
            problems: sentences,
            at_end: EndState::new(snapshot, device.index),
            old_blocks: beginning.blocks.len() as u64,
            old_segments: (beginning.segments.by_address.len() as u64, beginning.segments.bytes()),
            old_bytes: beginning.blocks.values().fold(0u64, |sum, block| sum.saturating_add(block.requested)),
            replay_equals_end: end_state::equals_end(snapshot, device.index, &replay),
            replay,
            categories: found.of,
            has_backward: found.has_backward,
            kept_graphs: found.kept,
            spans,
            steps,
            device: device.clone(),
            beginning,
            by_category: OnceLock::new(),
            highest,
        };
        own.settle_cause(snapshot);
        own
    }

    /// Why the last request failed, with what is known of the whole history.
    fn settle_cause(&mut self, snapshot: &CachingSnapshot) {
        let Some(mut failure) = self.failure().cloned() else { return };
        let most = self.highest_reserved(0, failure.moment as usize + 1);
        let is_known = !snapshot.is_cut && snapshot.settings.expandable_segments != Some(true);
        let to_come = self.state_to_come(snapshot).unwrap_or(0);
        failure
            .settle((most, to_come), || is_known.then(|| self.in_expandable_segments(snapshot).with_request).flatten());
        if let Some(last) = self.replay.failures.last_mut() {
            *last = failure;
        }
    }

    /// Bytes of the optimizer's state that were still to be made when a request for it failed in the first step: as much as
    /// the gradients for each line that makes it, as Adam's two, less what is there. `None` where another request failed.
    #[must_use]
    pub fn state_to_come(&self, snapshot: &CachingSnapshot) -> Option<u64> {
        let failure = self.failure()?;
        let is_made = snapshot.frames(failure.stack).any(|frame| snapshot.strings.get(frame.name) == "_init_group");
        if !is_made || self.spans.iter().any(|span| span.end < failure.moment) {
            return None;
        }
        let (mut gradients, mut made) = (0u64, BTreeMap::<u32, u64>::new());
        for row in self.live_at(failure.moment) {
            let lifetime = &self.replay.lifetimes[row];
            match self.categories[row].0 {
                AllocationCategory::Gradient => gradients = gradients.saturating_add(lifetime.requested),
                AllocationCategory::OptimizerState => {
                    let sum = made.entry(lifetime.stack.0).or_default();
                    *sum = sum.saturating_add(lifetime.requested);
                }
                _ => {}
            }
        }
        // Without counters of steps.
        let largest = made.values().max().copied().unwrap_or(0);
        let lines = made.values().filter(|&&bytes| bytes > largest / 4).count() as u64;
        let whole = gradients.saturating_mul(lines.max(1));
        Some(whole.saturating_sub(made.values().fold(0, |sum, &bytes| sum.saturating_add(bytes))))
    }

    /// Number of moments: one more than there are events.
    #[must_use]
    pub fn moments(&self) -> u32 {
        self.replay.curves.requested.len() as u32
    }

    /// Lifetimes that are live at a moment, in the order of their beginnings.
    pub fn live_at(&self, moment: u32) -> impl Iterator<Item = usize> {
        let until = self.replay.lifetimes.partition_point(|lifetime| lifetime.start <= moment);
        (0..until).filter(move |&row| moment < self.replay.lifetimes[row].end)
    }

    /// The largest live lifetimes at a moment.
    #[must_use]
    pub fn largest_at(&self, moment: u32, count: usize) -> Vec<&Lifetime> {
        let mut rows: Vec<&Lifetime> = self.live_at(moment).map(|row| &self.replay.lifetimes[row]).collect();
        rows.sort_by_key(|lifetime| std::cmp::Reverse((lifetime.requested, lifetime.address)));
        rows.truncate(count);
        rows
    }

    /// Requested bytes by category at a moment, largest first.
    #[must_use]
    pub fn by_category_at(&self, moment: u32) -> Vec<(AllocationCategory, u64, u64)> {
        let mut sums: BTreeMap<AllocationCategory, (u64, u64)> = BTreeMap::new();
        for row in self.live_at(moment) {
            let (bytes, count) = sums.entry(self.categories[row].0).or_default();
            *bytes = bytes.saturating_add(self.replay.lifetimes[row].requested);
            *count += 1;
        }
        let mut rows: Vec<_> = sums.into_iter().map(|(category, (bytes, count))| (category, bytes, count)).collect();
        rows.sort_by_key(|&(category, bytes, _)| (std::cmp::Reverse(bytes), category));
        rows
    }

    /// The same at the main moment, found once.
    #[must_use]
    pub fn by_category(&self) -> &[(AllocationCategory, u64, u64)] {
        self.by_category.get_or_init(|| self.by_category_at(self.main_moment()))
    }

    /// Segments and free ranges at a moment.
    #[must_use]
    pub fn state_at(&self, snapshot: &CachingSnapshot, moment: u32) -> Moment {
        replay::state_at(snapshot, &self.device, &self.beginning, &self.replay.learned, moment)
    }

    /// The failed request that ended the run, or else the last: what a reader asks about first.
    #[must_use]
    pub fn failure(&self) -> Option<&FailedRequest> {
        self.replay.failures.last()
    }

    /// The most that the process could have had of the device when a request failed, which is the least that the device
    /// has; `None` where no request tells.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.replay.failures.iter().filter_map(FailedRequest::limit).max()
    }

    /// The most allocated bytes at the moments `from..to`, and the first moment with as many; `None` for no moment.
    #[must_use]
    pub fn highest_allocated(&self, from: u32, to: u32) -> Option<(u64, u32)> {
        let allocated = &self.replay.curves.allocated;
        let (from, to) = (from as usize, (to as usize).min(allocated.len()));
        let (first, last) = (from.div_ceil(RUN), to / RUN);
        let best = if first >= last {
            highest_in(allocated, from, to)
        } else {
            let before = highest_in(allocated, from, first * RUN);
            let runs = self.highest[first..last].iter().map(|&row| row as usize);
            let after = highest_in(allocated, last * RUN, to);
            let rows = before.into_iter().chain(runs).chain(after);
            rows.max_by_key(|&row| (allocated[row], std::cmp::Reverse(row)))
        };
        best.map(|row| (allocated[row], row as u32))
    }

    /// The most reserved bytes at the moments `from..to`.
    #[must_use]
    pub fn highest_reserved(&self, from: usize, to: usize) -> u64 {
        let reserved = &self.replay.curves.reserved;
        highest_in(reserved, from, to).map_or(0, |row| reserved[row])
    }

    /// The requested bytes at every moment without some lifetimes.
    fn requested_without(&self, dropped: impl Fn(usize) -> bool) -> Vec<u64> {
        let curve = &self.replay.curves.requested;
        let mut changes = vec![0i64; curve.len() + 1];
        for (_, lifetime) in self.replay.lifetimes.iter().enumerate().filter(|(row, _)| dropped(*row)) {
            let bytes = lifetime.requested as i64;
            let end = (lifetime.end as usize).min(curve.len());
            changes[lifetime.start as usize] = changes[lifetime.start as usize].wrapping_add(bytes);
            changes[end] = changes[end].wrapping_sub(bytes);
        }
        let mut less = 0i64;
        let left = curve.iter().zip(&changes).map(|(&bytes, change)| {
            less = less.wrapping_add(*change);
            bytes.saturating_sub(less.unsigned_abs())
        });
        left.collect()
    }

    /// The peak of the requested bytes without some lifetimes.
    #[must_use]
    pub fn requested_peak_without(&self, dropped: impl Fn(usize) -> bool) -> u64 {
        self.requested_without(dropped).into_iter().max().unwrap_or(0)
    }

    /// The same within the optimizer's steps.
    #[must_use]
    pub fn requested_at_step_without(&self, dropped: impl Fn(usize) -> bool) -> u64 {
        let left = self.requested_without(dropped);
        let of = |span: &Span| left.get(span.start as usize..=span.end as usize).unwrap_or_default().iter().max();
        self.spans.iter().filter_map(of).max().copied().unwrap_or(0)
    }

    /// Whether blocks wait for streams at the peak of the active bytes.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        self.replay.peaks.active.bytes > self.replay.peaks.allocated.bytes || self.at_end.pending > 0
    }
}

/// The first of the highest values at `from..to`.
fn highest_in(values: &[u64], from: usize, to: usize) -> Option<usize> {
    let to = to.min(values.len());
    (from..to).max_by_key(|&row| (values[row], std::cmp::Reverse(row)))
}
