//! PyTorch's caching allocator in the report.

use std::collections::BTreeMap;

use serde::Serialize;

use super::options::Options;
use crate::analysis::caching_allocator::{
    CachingAnalysis, EndState, FailedRequest, Peak, SegmentUse, StackGroup, Steps, own_frame, tell_apart,
};
use crate::model::{CachingSnapshot, Frame, StackId};

/// Largest allocations at the peak that are listed.
const LARGEST: usize = 10;

/// One device of a snapshot (`CACHING`).
#[derive(Debug, Serialize)]
pub struct CachingReport {
    /// Device number: `cuda:N`.
    pub device: u32,
    /// Number of events.
    pub events: usize,
    /// Number of events by action.
    pub actions: BTreeMap<&'static str, u64>,
    /// Contradictions between the events and the state, one sentence for each kind.
    pub problems: Vec<String>,
    /// The state when the snapshot was taken.
    pub at_end: EndReport,
    /// What is older than the history.
    pub before: BeforeReport,
    /// Peaks of the curves.
    pub peak: PeaksReport,
    /// Whether the file determines the size of every block.
    pub block_sizes_exact: bool,
    /// Failed requests.
    #[serde(rename = "ooms")]
    pub failures: Vec<FailedReport>,
    /// The failed requests in words, in the same order.
    pub failure_details: Vec<FailureDetail>,
    /// What the process could have had of the device when a request failed: reserved, and free in the driver. `null` if
    /// no request tells.
    pub limit_at_least_bytes: Option<u64>,
    /// Whether the replay ends in the state of the file, block by block.
    pub replay_equals_end: bool,
    /// What lives at the peak of the requested bytes.
    pub live_at_peak: LiveAtPeakReport,
    /// Requested bytes at that peak by category.
    pub by_category_at_peak: BTreeMap<&'static str, u64>,
    /// Steps of the optimizer; `null` if the file has none.
    pub steps: Option<StepsReport>,
    /// What lives when the last request failed, or else at that peak.
    pub standing: MomentReport,
    /// Blocks that hold back free memory at the last failed request, or else at the peak of the reserved bytes.
    pub pins: Vec<PinReport>,
    /// Segments and free memory at the same moment.
    pub segments: SegmentsReport,
    /// Who allocates what every step leaves behind.
    pub leak_by_stack: Vec<LeakReport>,
    /// The curves, with `--curve`: event, requested, allocated, active and reserved bytes after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<Vec<CurvePoint>>,
}

/// An event (-1 before the first), and the requested, allocated, active and reserved bytes after it.
pub type CurvePoint = (i64, u64, u64, u64, u64);

/// The state when the snapshot was taken. Sizes are bytes.
#[derive(Debug, Serialize)]
pub struct EndReport {
    /// Number of segments.
    pub segments: u64,
    /// Bytes of segments.
    pub reserved_bytes: u64,
    /// Bytes of blocks in use.
    pub allocated_bytes: u64,
    /// The same with blocks that a stream still uses.
    pub active_bytes: u64,
    /// Bytes the program asked for, of active blocks.
    pub requested_bytes: u64,
    /// The same of blocks in use.
    pub allocated_requested_bytes: u64,
    /// Bytes of blocks that a stream still uses after they were freed.
    pub pending_free_bytes: u64,
    /// Bytes of free blocks.
    pub inactive_bytes: u64,
    /// Bytes of the largest free block.
    pub largest_free_block: u64,
    /// Bytes of segments without a block in use.
    pub whole_free_segments_bytes: u64,
    /// Bytes lost to rounding.
    pub rounding_bytes: u64,
    /// Number of active blocks.
    pub blocks: u64,
    /// Number of streams that segments serve.
    pub streams: u64,
    /// Number of private pools.
    pub pools: u64,
    /// Bytes of segments in private pools.
    pub private_pool_bytes: u64,
}

/// What is older than the history.
#[derive(Debug, Serialize)]
pub struct BeforeReport {
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes the program asked for.
    pub requested_bytes: u64,
    /// Bytes of segments.
    pub reserved_bytes: u64,
    /// Number of segments.
    pub segments: u64,
}

/// The highest point of a curve.
#[derive(Debug, Serialize)]
pub struct PeakPoint {
    /// Bytes.
    pub bytes: u64,
    /// The event that reaches it; -1 before the first.
    pub event: i64,
}

/// Peaks of the curves.
#[derive(Debug, Serialize)]
pub struct PeaksReport {
    /// Bytes the program asked for, until they can be used again.
    pub requested: PeakPoint,
    /// Bytes of blocks that cannot be used again yet.
    pub active: PeakPoint,
    /// Bytes of blocks in use; PyTorch's "allocated".
    pub allocated: PeakPoint,
    /// Requested bytes of blocks in use.
    pub allocated_requested: PeakPoint,
    /// Bytes of segments.
    pub reserved: PeakPoint,
}

/// A failed request. Sizes are bytes.
#[derive(Debug, Serialize)]
pub struct FailedReport {
    /// The event.
    pub event: i64,
    /// Requested, rounded.
    pub requested_bytes: u64,
    /// What the driver was asked for.
    pub segment_bytes: u64,
    /// What the driver had free.
    pub device_free_bytes: u64,
    /// Bytes of segments.
    pub reserved_bytes: u64,
    /// Bytes of blocks in use.
    pub allocated_bytes: u64,
    /// The same with blocks that a stream still uses.
    pub active_bytes: u64,
    /// Bytes the program had asked for.
    pub live_requested_bytes: u64,
    /// Free in segments.
    pub inactive_bytes: u64,
    /// Free in segments that could serve the request.
    pub free_same_pool_bytes: u64,
    /// Free in segments of other streams or pools.
    pub free_other_stream_or_pool_bytes: u64,
    /// Free in segments for requests of the other size.
    pub free_other_size_class_bytes: u64,
    /// Largest free block.
    pub largest_free_block: u64,
    /// Largest free block that could have served the request.
    pub largest_free_same_pool: u64,
    /// `limit`, `fragmentation`, `wrong_pool` or `shortage`.
    pub verdict: &'static str,
    /// What would have been missing with all free memory in one place.
    pub short_by_bytes: u64,
}

/// A failed request in words.
#[derive(Debug, Serialize)]
pub struct FailureDetail {
    /// The event.
    pub event: i64,
    /// The verdict in one line.
    pub headline: String,
    /// The verdict in a sentence.
    pub why: String,
    /// Free blocks that could have served the request, had they been larger.
    pub holes: u64,
    /// Call stack, innermost frame first: `function file:line`.
    pub stack: Vec<String>,
}

/// What lives at the peak.
#[derive(Debug, Serialize)]
pub struct LiveAtPeakReport {
    /// Number of allocations.
    pub blocks: u64,
    /// Bytes the program asked for.
    pub requested_bytes: u64,
    /// The ten largest.
    pub largest: Vec<AllocationRow>,
}

/// An allocation.
#[derive(Debug, Serialize)]
pub struct AllocationRow {
    /// Bytes the program asked for.
    pub bytes: u64,
    /// Address.
    pub addr: u64,
    /// The event that began it; -1 if it is older than the history.
    pub event: i64,
}

/// Steps of the optimizer.
#[derive(Debug, Serialize)]
pub struct StepsReport {
    /// Requested bytes that are live after each step.
    pub live_at_end: Vec<u64>,
    /// Change from one step to the next.
    pub growth: Vec<i64>,
    /// Bytes that every step leaves behind; 0 if there is no leak.
    pub leak_bytes_per_step: u64,
}

/// What lives at the moment that a reader asks about first.
#[derive(Debug, Serialize)]
pub struct MomentReport {
    /// The event before the moment.
    pub event: i64,
    /// The moment in words.
    pub moment: &'static str,
    /// Bytes the program asked for.
    pub requested_bytes: u64,
    /// By category, largest first.
    pub by_category: Vec<CategoryRow>,
    /// By stack and category, largest first.
    pub by_stack: Vec<StackReport>,
    /// Length of `by_stack` before `--top` cut it.
    pub by_stack_count: usize,
}

/// Live allocations of one category.
#[derive(Debug, Serialize)]
pub struct CategoryRow {
    /// Category.
    pub category: &'static str,
    /// Bytes the program asked for.
    pub bytes: u64,
    /// Number of allocations.
    pub count: u64,
}

/// Live allocations of one stack.
#[derive(Debug, Serialize)]
pub struct StackReport {
    /// Bytes the program asked for.
    pub bytes: u64,
    /// Number of allocations.
    pub count: u64,
    /// Category.
    pub category: &'static str,
    /// Whether the category is only the most likely one.
    pub is_guess: bool,
    /// The innermost frame of the program's own: `function file:line`.
    pub at: Option<String>,
    /// What tells it from other rows of the same `at` and category: `in function file:line`, or `from function file:line`
    /// for what calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
    /// Call stack, innermost frame first.
    pub stack: Vec<String>,
}

/// A block in a segment that is partly free.
#[derive(Debug, Serialize)]
pub struct PinReport {
    /// Bytes of the block.
    pub bytes: u64,
    /// Free bytes of its segment.
    pub free_bytes: u64,
    /// Bytes of its segment.
    pub segment_bytes: u64,
    /// Whether it is the only block in its segment.
    pub is_alone: bool,
    /// The event that allocated it.
    pub event: i64,
    /// The innermost frame of the program's own.
    pub at: Option<String>,
}

/// Segments and free memory at a moment.
#[derive(Debug, Serialize)]
pub struct SegmentsReport {
    /// The event before the moment.
    pub event: i64,
    /// Number of segments.
    pub count: u64,
    /// Bytes of segments.
    pub bytes: u64,
    /// Free bytes in segments.
    pub free_bytes: u64,
    /// Of these, bytes of segments without any block, which can be returned to the driver.
    pub whole_free_bytes: u64,
    /// Number of free ranges.
    pub holes: u64,
    /// Largest free range.
    pub largest_hole_bytes: u64,
}

/// Allocations that every step leaves behind.
#[derive(Debug, Serialize)]
pub struct LeakReport {
    /// Bytes a step.
    pub bytes_per_step: u64,
    /// Allocations a step.
    pub count: u64,
    /// The innermost frame of the program's own.
    pub at: Option<String>,
}

/// A device of a snapshot.
pub fn report(snapshot: &CachingSnapshot, device: &CachingAnalysis, options: &Options) -> CachingReport {
    let replay = &device.replay;
    let peaks = &replay.peaks;
    let moment = peaks.requested.moment;
    let live: Vec<usize> = device.live_at(moment).collect();
    let (place, segments) = device.fragmentation(snapshot);
    let at = |stack: StackId| own_frame(snapshot, stack).map(|frame| words(snapshot, frame));
    CachingReport {
        device: device.device.index,
        events: device.device.events.len(),
        actions: device.actions.clone(),
        problems: device.problems.clone(),
        at_end: end(&device.at_end),
        before: BeforeReport {
            blocks: device.old_blocks,
            requested_bytes: device.old_bytes,
            reserved_bytes: device.old_segments.1,
            segments: device.old_segments.0,
        },
        peak: PeaksReport {
            requested: peak(peaks.requested),
            active: peak(peaks.active),
            allocated: peak(peaks.allocated),
            allocated_requested: peak(peaks.allocated_requested),
            reserved: peak(peaks.reserved),
        },
        block_sizes_exact: replay.sizes_are_exact,
        failures: replay.failures.iter().map(failed).collect(),
        failure_details: replay.failures.iter().map(|failure| detail(snapshot, failure)).collect(),
        limit_at_least_bytes: device.limit(),
        replay_equals_end: device.replay_equals_end,
        live_at_peak: LiveAtPeakReport {
            blocks: live.len() as u64,
            requested_bytes: peaks.requested.bytes,
            largest: device
                .largest_at(moment, LARGEST)
                .into_iter()
                .map(|life| AllocationRow { bytes: life.requested, addr: life.address, event: life.event() })
                .collect(),
        },
        by_category_at_peak: device.by_category_at(moment).into_iter().map(|row| (row.0.name(), row.1)).collect(),
        steps: device.steps.as_ref().map(steps),
        standing: standing(snapshot, device, options),
        pins: device
            .pins(&segments, options.rows())
            .into_iter()
            .map(|pin| {
                let lifetime = &replay.lifetimes[pin.lifetime];
                PinReport {
                    bytes: lifetime.size,
                    free_bytes: pin.free,
                    segment_bytes: pin.segment,
                    is_alone: pin.is_alone,
                    event: lifetime.event(),
                    at: at(lifetime.stack),
                }
            })
            .collect(),
        segments: segments_report(i64::from(place) - 1, &segments),
        leak_by_stack: device
            .steps
            .iter()
            .flat_map(|steps| &steps.blamed)
            .take(options.rows())
            .map(|&(stack, bytes, count)| LeakReport { bytes_per_step: bytes, count, at: at(stack) })
            .collect(),
        curve: options.curve.then(|| {
            let curves = &replay.curves;
            let point = |row: usize| {
                let at = |curve: &[u64]| curve.get(row).copied().unwrap_or(0);
                let bytes = [&curves.requested, &curves.allocated, &curves.active, &curves.reserved].map(|c| at(c));
                (row as i64 - 1, bytes[0], bytes[1], bytes[2], bytes[3])
            };
            (0..curves.requested.len()).map(point).collect()
        }),
    }
}

fn standing(snapshot: &CachingSnapshot, device: &CachingAnalysis, options: &Options) -> MomentReport {
    let moment = device.main_moment();
    let mut groups = device.by_stack_at(moment);
    tell_apart(snapshot, &mut groups);
    let categories = device.by_category_at(moment);
    let row = |group: &StackGroup| StackReport {
        bytes: group.bytes,
        count: group.count,
        category: group.category.name(),
        is_guess: group.is_guess(),
        at: own_frame(snapshot, group.stack).map(|frame| words(snapshot, frame)),
        apart: group.apart.map(|apart| apart.in_words(snapshot)),
        stack: stack(snapshot, group.stack),
    };
    MomentReport {
        event: i64::from(moment) - 1,
        moment: device.main_moment_in_words(),
        requested_bytes: categories.iter().map(|row| row.1).fold(0, u64::saturating_add),
        by_category: categories
            .into_iter()
            .map(|(category, bytes, count)| CategoryRow { category: category.name(), bytes, count })
            .collect(),
        by_stack: groups.iter().take(options.rows()).map(row).collect(),
        by_stack_count: groups.len(),
    }
}

fn peak(peak: Peak) -> PeakPoint {
    PeakPoint { bytes: peak.bytes, event: peak.event() }
}

fn end(state: &EndState) -> EndReport {
    EndReport {
        segments: state.segments,
        reserved_bytes: state.reserved,
        allocated_bytes: state.allocated,
        active_bytes: state.active,
        requested_bytes: state.requested,
        allocated_requested_bytes: state.allocated_requested,
        pending_free_bytes: state.pending,
        inactive_bytes: state.inactive,
        largest_free_block: state.largest_free,
        whole_free_segments_bytes: state.whole_free_segments,
        rounding_bytes: state.rounding(),
        blocks: state.blocks,
        streams: state.streams,
        pools: state.pools,
        private_pool_bytes: state.private_pools,
    }
}

fn failed(failure: &FailedRequest) -> FailedReport {
    FailedReport {
        event: failure.event(),
        requested_bytes: failure.requested,
        segment_bytes: failure.segment,
        device_free_bytes: failure.device_free,
        reserved_bytes: failure.totals.reserved,
        allocated_bytes: failure.totals.allocated,
        active_bytes: failure.totals.active,
        live_requested_bytes: failure.totals.requested,
        inactive_bytes: failure.inactive(),
        free_same_pool_bytes: failure.free_same_pool,
        free_other_stream_or_pool_bytes: failure.free_other_pool,
        free_other_size_class_bytes: failure.free_other_class,
        largest_free_block: failure.largest_free,
        largest_free_same_pool: failure.largest_free_same_pool,
        verdict: failure.cause.name(),
        short_by_bytes: failure.short_by,
    }
}

fn detail(snapshot: &CachingSnapshot, failure: &FailedRequest) -> FailureDetail {
    FailureDetail {
        event: failure.event(),
        headline: failure.headline(),
        why: failure.sentence(),
        holes: failure.holes_same_pool,
        stack: stack(snapshot, failure.stack),
    }
}

fn steps(steps: &Steps) -> StepsReport {
    StepsReport {
        live_at_end: steps.live_at_end.clone(),
        growth: steps.growth.clone(),
        leak_bytes_per_step: steps.leak,
    }
}

fn segments_report(event: i64, segments: &[SegmentUse]) -> SegmentsReport {
    let sum = |of: fn(&SegmentUse) -> u64| segments.iter().map(of).fold(0, u64::saturating_add);
    SegmentsReport {
        event,
        count: segments.len() as u64,
        bytes: sum(|segment| segment.reserved.size),
        free_bytes: sum(|segment| segment.free),
        whole_free_bytes: sum(|segment| if segment.is_whole() { segment.free } else { 0 }),
        holes: sum(|segment| segment.holes),
        largest_hole_bytes: segments.iter().map(|segment| segment.largest_hole).max().unwrap_or(0),
    }
}

/// `function file:line` of a stack, innermost first.
fn stack(snapshot: &CachingSnapshot, stack: StackId) -> Vec<String> {
    snapshot.frames(stack).map(|frame| words(snapshot, frame)).collect()
}

/// `function file:line`.
fn words(snapshot: &CachingSnapshot, frame: &Frame) -> String {
    snapshot.frame_words(frame)
}
