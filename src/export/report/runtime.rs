//! Allocator histories and snapshots of live objects in the report.

use serde::Serialize;

use crate::analysis::live_set::{Group, LiveAnalysis, bins, is_library, smallest};
use crate::analysis::runtime::AllocatorAnalysis;
use crate::analysis::runtime_breakdown::{BreakdownRow, breakdown};
use crate::model::{AllocatorTrace, Bin, Bytes, Clock, LiveAllocation, LiveSet, SourceLine};

/// An allocator's history (`ALLOCATOR`).
#[derive(Debug, Serialize)]
pub struct AllocatorReport {
    /// Name of the allocator, or the number of its device.
    pub name: String,
    /// Bytes the allocator could hand out at the peak.
    pub capacity_bytes: Option<u64>,
    /// Highest use in bytes, stack and heap together.
    pub peak_bytes: u64,
    /// Time of the peak in picoseconds; `null` if events are ordered but have no times.
    pub peak_time_ps: Option<i64>,
    /// Index of the event of the peak, for a file without times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_event: Option<i64>,
    /// Highest use since the allocator was created.
    pub lifetime_peak_bytes: Option<u64>,
    /// Number of events.
    pub events: usize,
    /// Fragmentation at the peak, 0 to 1.
    pub fragmentation_at_peak: Option<f64>,
    /// Bytes in use at the peak that were allocated before the trace began.
    pub before_trace_bytes: u64,
    /// Rise of the minimum use in bytes from the first whole step to the last, if it rose in each.
    pub floor_rises_by_bytes: Option<u64>,
    /// Allocations live at the peak, in XProf's rows.
    pub at_peak: Vec<AllocationReport>,
    /// Length of `at_peak` before `--top` cut it.
    pub at_peak_count: usize,
    /// Allocations of earlier steps live at the peak; XProf merges them with those before the trace.
    pub older_at_peak: Vec<AllocationReport>,
    /// What was in use at the peak, most bytes first, with its origin: the rows of the window, which add up to the peak.
    pub in_use_at_peak: Vec<InUseReport>,
    /// Length of `in_use_at_peak` before `--top` cut it.
    pub in_use_at_peak_count: usize,
}

/// Equal allocations in use at the peak.
#[derive(Debug, Serialize)]
pub struct InUseReport {
    /// Name in the window's table.
    pub name: String,
    /// When they were made: `this step`, `an earlier step`, `before the trace`, `older`, `stack`.
    pub origin: &'static str,
    /// Bytes of all of them.
    pub total_bytes: u64,
    /// Number of allocations.
    pub count: i64,
    /// Region type.
    pub region: String,
    /// Element type and shape; empty if the type is unknown.
    pub shape: String,
}

/// Equal allocations.
#[derive(Debug, Serialize)]
pub struct AllocationReport {
    /// Framework op name.
    pub op_name: String,
    /// Bytes of each.
    pub bytes: i64,
    /// Requested bytes of each.
    pub requested_bytes: i64,
    /// Number of allocations.
    pub count: i64,
    /// Region type: `output`, `temp`, `persist/dynamic`.
    pub region: String,
    /// Element type.
    pub dtype: String,
    /// Shape.
    pub shape: String,
}

/// A snapshot of live objects (`SNAPSHOT`).
#[derive(Debug, Serialize)]
pub struct SnapshotReport {
    /// Sum of all entries in bytes.
    pub total_bytes: u64,
    /// Bytes by kind, largest first.
    pub kinds: Vec<KindReport>,
    /// Bytes by device.
    pub devices: Vec<DeviceBytes>,
    /// Entries, largest first.
    pub top: Vec<LiveReport>,
    /// Length of `top` before `--top` cut it.
    pub top_count: usize,
    /// Address space of the allocator.
    pub heap: Option<HeapReport>,
}

/// Bytes of a kind.
#[derive(Debug, Serialize)]
pub struct KindReport {
    /// `buffer`, `executable` or another kind named in the file.
    pub kind: String,
    /// Bytes.
    pub bytes: u64,
    /// Number of objects.
    pub count: u64,
}

/// Bytes on a device.
#[derive(Debug, Serialize)]
pub struct DeviceBytes {
    /// Name of the device.
    pub device: String,
    /// Bytes.
    pub bytes: u64,
    /// Number of objects.
    pub count: u64,
}

/// Equal live objects.
#[derive(Debug, Serialize)]
pub struct LiveReport {
    /// Sum of their bytes.
    pub bytes: u64,
    /// Number of objects.
    pub count: u64,
    /// Their kind, as in `kinds`.
    pub kind: String,
    /// Name of their device.
    pub device: Option<String>,
    /// The innermost frame that is the program's own, not a library's, as in `stack`.
    pub at: Option<String>,
    /// Call stack, innermost frame first: `function file:line`.
    pub stack: Vec<String>,
}

/// An allocator's address space.
#[derive(Debug, Serialize)]
pub struct HeapReport {
    /// Name of the allocator.
    pub allocator: String,
    /// Bytes in all chunks.
    pub total_bytes: u64,
    /// Bytes in chunks in use.
    pub in_use_bytes: u64,
    /// Bytes requested for the chunks in use.
    pub requested_bytes: u64,
    /// Bytes in free chunks.
    pub free_bytes: u64,
    /// Size of the largest free chunk.
    pub largest_free_bytes: u64,
    /// Fragmentation as the allocator counts it, 0 to 1.
    pub fragmentation: Option<f64>,
    /// Number of contiguous address ranges.
    pub regions: usize,
    /// Number of chunks.
    pub chunks: usize,
    /// Bytes by which the largest free chunk is too small for the failed request.
    pub short_by_bytes: Option<u64>,
    /// Chunks by size, ascending; empty bins are left out.
    pub bins: Vec<BinReport>,
}

/// Chunks of similar size.
#[derive(Debug, Serialize)]
pub struct BinReport {
    /// Smallest chunk size of the bin.
    pub from_bytes: u64,
    /// Bytes in its chunks.
    pub bytes: u64,
    /// Bytes in its chunks in use.
    pub in_use_bytes: u64,
    /// Number of chunks.
    pub chunks: i64,
    /// Number of chunks in use.
    pub in_use: i64,
}

/// Describes an allocator's history.
pub fn allocator(trace: &AllocatorTrace, analysis: &AllocatorAnalysis, top: usize) -> AllocatorReport {
    let in_use = breakdown(trace, analysis);
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
        in_use_at_peak: in_use.iter().take(top).map(in_use_row).collect(),
        in_use_at_peak_count: in_use.len(),
    }
}

fn in_use_row(row: &BreakdownRow) -> InUseReport {
    let allocation = &row.allocation;
    // XProf writes this if the type is unknown.
    let kind = Some(allocation.data_type.as_str()).filter(|kind| *kind != "INVALID");
    InUseReport {
        name: row.name().to_owned(),
        origin: row.origin.name(),
        total_bytes: Bytes::from_wire(row.total()).0,
        count: allocation.count,
        region: allocation.region.clone(),
        shape: kind.map(|kind| format!("{kind}{}", allocation.shape)).unwrap_or_default(),
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

/// Describes a snapshot of live objects.
pub fn snapshot(set: &LiveSet, analysis: &LiveAnalysis, top: usize) -> SnapshotReport {
    let live = |&row: &u32| {
        let entry = &set.entries[row as usize];
        let words = |frame: &SourceLine| format!("{} {}:{}", frame.function, frame.file, frame.line);
        LiveReport {
            bytes: entry.bytes.0,
            count: entry.count,
            kind: set.strings.get(entry.kind).to_owned(),
            device: Some(set.strings.get(entry.device).to_owned()).filter(|device| !device.is_empty()),
            at: set.stack(entry).find(|frame| !is_library(&frame.file)).map(words),
            stack: set.stack(entry).map(words).collect(),
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
