//! The report's part on allocator histories and on what was alive at one moment.

use serde::Serialize;

use crate::analysis::live_set::{Group, LiveAnalysis, bins, smallest};
use crate::analysis::runtime::AllocatorAnalysis;
use crate::model::LiveAllocation;
use crate::model::{Bin, Clock, LiveSet};

/// An allocator's history (`ALLOCATOR`).
#[derive(Debug, Serialize)]
pub struct AllocatorReport {
    /// Name, or number of the device.
    pub name: String,
    /// Everything it may hand out, as of the peak.
    pub capacity_bytes: Option<u64>,
    /// Highest use, stack and heap.
    pub peak_bytes: u64,
    /// When; `null` where the file has an order of events but no times.
    pub peak_time_ps: Option<i64>,
    /// Number of the event of the peak, for a file without times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_event: Option<i64>,
    /// Highest use in its life.
    pub lifetime_peak_bytes: Option<u64>,
    /// How many events.
    pub events: usize,
    /// 0..=1.
    pub fragmentation_at_peak: Option<f64>,
    /// Bytes in use at the peak that were taken before the trace began.
    pub before_trace_bytes: u64,
    /// How much the lowest use of a step rose over all whole steps, where it rose every time.
    pub floor_rises_by_bytes: Option<u64>,
    /// What was alive: XProf's rows.
    pub at_peak: Vec<AllocationReport>,
    /// How many rows there are without the limit of rows.
    pub at_peak_count: usize,
    /// What earlier steps took and was alive at the peak; XProf has it in one row with what the trace never saw.
    pub older_at_peak: Vec<AllocationReport>,
}

/// Equal allocations.
#[derive(Debug, Serialize)]
pub struct AllocationReport {
    /// Framework's name of the operation.
    pub op_name: String,
    /// Bytes of each.
    pub bytes: i64,
    /// Bytes that were asked for, of each.
    pub requested_bytes: i64,
    /// How many.
    pub count: i64,
    /// Region.
    pub region: String,
    /// Element type.
    pub dtype: String,
    /// Shape.
    pub shape: String,
}

/// What was alive (`SNAPSHOT`).
#[derive(Debug, Serialize)]
pub struct SnapshotReport {
    /// Everything.
    pub total_bytes: u64,
    /// By kind.
    pub kinds: Vec<KindReport>,
    /// By device.
    pub devices: Vec<DeviceBytes>,
    /// Largest first.
    pub top: Vec<LiveReport>,
    /// How many rows `top` has without the limit of rows.
    pub top_count: usize,
    /// The allocator's address space.
    pub heap: Option<HeapReport>,
}

/// Bytes of a kind.
#[derive(Debug, Serialize)]
pub struct KindReport {
    /// Kind.
    pub kind: String,
    /// Bytes.
    pub bytes: u64,
    /// How many.
    pub count: u64,
}

/// Bytes on a device.
#[derive(Debug, Serialize)]
pub struct DeviceBytes {
    /// Device.
    pub device: String,
    /// Bytes.
    pub bytes: u64,
    /// How many.
    pub count: u64,
}

/// Equal things that are alive.
#[derive(Debug, Serialize)]
pub struct LiveReport {
    /// Bytes of all of them.
    pub bytes: u64,
    /// How many.
    pub count: u64,
    /// Kind.
    pub kind: String,
    /// Device.
    pub device: Option<String>,
    /// Innermost first: `function file:line`.
    pub stack: Vec<String>,
}

/// An allocator's address space.
#[derive(Debug, Serialize)]
pub struct HeapReport {
    /// The allocator.
    pub allocator: String,
    /// Bytes in chunks.
    pub total_bytes: u64,
    /// In use.
    pub in_use_bytes: u64,
    /// Asked for by what is in use.
    pub requested_bytes: u64,
    /// Free.
    pub free_bytes: u64,
    /// Largest free chunk.
    pub largest_free_bytes: u64,
    /// 0..=1.
    pub fragmentation: Option<f64>,
    /// Stretches of addresses.
    pub regions: usize,
    /// Chunks.
    pub chunks: usize,
    /// What the largest free chunk is short of the failed request.
    pub short_by_bytes: Option<u64>,
    /// Chunks by size, ascending; those without chunks are left out.
    pub bins: Vec<BinReport>,
}

/// Chunks of similar size.
#[derive(Debug, Serialize)]
pub struct BinReport {
    /// Smallest size.
    pub from_bytes: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes in use.
    pub in_use_bytes: u64,
    /// Chunks.
    pub chunks: i64,
    /// Chunks in use.
    pub in_use: i64,
}

/// Describes an allocator's history.
pub fn allocator(analysis: &AllocatorAnalysis, top: usize) -> AllocatorReport {
    let rows = |rows: &[LiveAllocation]| rows.iter().take(top).map(row).collect();
    AllocatorReport {
        name: analysis.name.clone(),
        capacity_bytes: analysis.capacity.map(|bytes| bytes.0),
        peak_bytes: analysis.peak.0,
        peak_time_ps: (analysis.clock == Clock::Picoseconds).then_some(analysis.peak_time_ps),
        peak_event: (analysis.clock == Clock::Order).then_some(analysis.peak_time_ps),
        lifetime_peak_bytes: analysis.lifetime_peak.map(|bytes| bytes.0),
        events: analysis.events,
        fragmentation_at_peak: analysis.fragmentation_at_peak(),
        before_trace_bytes: analysis.before_trace.0,
        floor_rises_by_bytes: analysis.rising_floor().map(|bytes| bytes.0),
        at_peak: rows(&analysis.at_peak),
        at_peak_count: analysis.at_peak.len(),
        older_at_peak: rows(&analysis.older_at_peak),
    }
}

fn row(allocation: &LiveAllocation) -> AllocationReport {
    AllocationReport {
        op_name: allocation.op.clone(),
        bytes: allocation.bytes,
        requested_bytes: allocation.requested,
        count: allocation.count,
        region: allocation.region.clone(),
        dtype: allocation.data_type.clone(),
        shape: allocation.shape.clone(),
    }
}

fn bin(bin: &Bin) -> BinReport {
    BinReport {
        from_bytes: smallest(bin).0,
        bytes: bin.bytes.0,
        in_use_bytes: bin.bytes_in_use.0,
        chunks: bin.chunks,
        in_use: bin.chunks_in_use,
    }
}

/// Describes what was alive.
pub fn snapshot(set: &LiveSet, analysis: &LiveAnalysis, top: usize) -> SnapshotReport {
    let live = |&row: &u32| {
        let entry = &set.entries[row as usize];
        LiveReport {
            bytes: entry.bytes.0,
            count: entry.count,
            kind: set.strings.get(entry.kind).to_owned(),
            device: Some(set.strings.get(entry.device).to_owned()).filter(|device| !device.is_empty()),
            stack: set.stack(entry).map(|frame| format!("{} {}:{}", frame.function, frame.file, frame.line)).collect(),
        }
    };
    let kind = |group: &Group| KindReport { kind: group.key.clone(), bytes: group.bytes.0, count: group.count };
    let device = |group: &Group| DeviceBytes { device: group.key.clone(), bytes: group.bytes.0, count: group.count };
    SnapshotReport {
        total_bytes: analysis.total.0,
        kinds: analysis.kinds.iter().map(kind).collect(),
        devices: analysis.devices.iter().map(device).collect(),
        top: analysis.order.iter().take(top).map(live).collect(),
        top_count: analysis.order.len(),
        heap: set.heap.as_ref().zip(analysis.heap.as_ref()).map(|(heap, analysis)| HeapReport {
            allocator: heap.allocator.clone(),
            total_bytes: analysis.total.0,
            in_use_bytes: analysis.in_use.0,
            requested_bytes: analysis.requested.0,
            free_bytes: analysis.free.0,
            largest_free_bytes: analysis.largest_free.0,
            fragmentation: analysis.fragmentation,
            regions: analysis.regions.len(),
            chunks: heap.chunks.len(),
            short_by_bytes: analysis.short_by.map(|bytes| bytes.0),
            bins: bins(heap).iter().map(bin).collect(),
        }),
    }
}
