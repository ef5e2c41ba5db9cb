//! XProf's `memory_profile` as JSON: sampled allocator histories, with the peak that XProf found among all events.

use serde_json::Value;

use super::value::{self, double, get, int, list, text};
use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{
    AllocatorActivity, AllocatorEvent, AllocatorStats, AllocatorTrace, Execution, GivenPeak, LiveAllocation, Profile,
};
use crate::source::Input;

/// `memory_profile` as JSON.
pub struct MemoryProfileDecoder;

impl Decoder for MemoryProfileDecoder {
    fn format(&self) -> &'static str {
        "XProf memory profile (JSON)"
    }

    fn reads(&self) -> Reads {
        Reads { family: Family::Run, words: "XProf's memory profile", patterns: &["*memory_profile*.json"] }
    }

    fn recognises(&self, input: &Input) -> bool {
        value::has_key(input.head(), &["memoryProfilePerAllocator"])
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let root = value::parse(&bytes)?;
        let mut runtime: Vec<AllocatorTrace> = get(&root, "memoryProfilePerAllocator")
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, allocator)| trace(name, allocator))
            .collect();
        runtime.sort_by(|a, b| a.name.cmp(&b.name));
        if runtime.is_empty() {
            context.reporter.info("This memory profile holds no allocator: the trace had no allocator events");
        }
        let executions = list(&root, "hloModules")
            .iter()
            .map(|run| Execution {
                name: text(run, "name").to_owned(),
                start_ps: int(run, "startTimePs"),
                end_ps: int(run, "endTimePs"),
                device: text(run, "planeName").to_owned(),
            })
            .collect();
        Ok(Profile { runtime, executions, ..Profile::default() })
    }
}

fn stats(value: &Value) -> AllocatorStats {
    AllocatorStats {
        stack: int(value, "stackReservedBytes"),
        heap: int(value, "heapAllocatedBytes"),
        free: int(value, "freeMemoryBytes"),
        fragmentation: double(value, "fragmentation"),
        lifetime_peak: int(value, "peakBytesInUse"),
    }
}

fn trace(name: &str, allocator: &Value) -> AllocatorTrace {
    let mut trace = AllocatorTrace { name: name.to_owned(), ..AllocatorTrace::default() };
    let snapshots = list(allocator, "memoryProfileSnapshots");
    // Old versions have no sampled list; the snapshots are all there is then.
    let sampled = match list(allocator, "sampledTimelineSnapshots") {
        [] => snapshots,
        sampled => sampled,
    };
    for snapshot in sampled {
        let activity = get(snapshot, "activityMetadata");
        let mut intern = |key: &str| trace.strings.intern(text(activity, key));
        let (op, region) = (intern("tfOpName"), intern("regionType"));
        let (data_type, shape) = (intern("dataType"), intern("tensorShape"));
        trace.events.push(AllocatorEvent {
            time_ps: int(snapshot, "timeOffsetPs"),
            activity: match text(activity, "memoryActivity") {
                "ALLOCATION" => AllocatorActivity::Allocation,
                "DEALLOCATION" => AllocatorActivity::Deallocation,
                _ => AllocatorActivity::Other,
            },
            stats: stats(get(snapshot, "aggregationStats")),
            requested: int(activity, "requestedBytes"),
            allocated: int(activity, "allocationBytes"),
            address: int(activity, "address") as u64,
            op,
            region,
            data_type,
            shape,
            step: int(activity, "stepId"),
        });
    }
    let summary = get(allocator, "profileSummary");
    let specials = list(allocator, "specialAllocations");
    let rows = list(allocator, "activeAllocations")
        .iter()
        .filter_map(|active| {
            let special = usize::try_from(int(active, "specialIndex")).ok();
            let snapshot = usize::try_from(int(active, "snapshotIndex")).ok();
            let row = match (special.and_then(|row| specials.get(row)), snapshot) {
                // Both indices are 0 where zeros are left out; a negative snapshot marks a special one.
                (Some(special), None) => special,
                (_, Some(row)) => get(snapshots.get(row)?, "activityMetadata"),
                (None, None) => return None,
            };
            Some(LiveAllocation {
                op: text(row, "tfOpName").to_owned(),
                bytes: int(row, "allocationBytes"),
                requested: int(row, "requestedBytes"),
                count: int(active, "numOccurrences"),
                region: text(row, "regionType").to_owned(),
                data_type: text(row, "dataType").to_owned(),
                shape: text(row, "tensorShape").to_owned(),
            })
        })
        .collect();
    trace.given = Some(GivenPeak {
        stats: stats(get(summary, "peakStats")),
        time_ps: int(summary, "peakStatsTimePs"),
        lifetime_peak: int(summary, "peakBytesUsageLifetime"),
        capacity: int(summary, "memoryCapacity"),
        rows,
    });
    trace
}
