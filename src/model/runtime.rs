//! Allocator events and program executions over time, as recorded in a trace.

use super::ids::StringId;
use super::strings::Strings;

/// The history of one allocator.
#[derive(Debug, Clone, Default)]
pub struct AllocatorTrace {
    /// Allocator name or device number.
    pub name: String,
    /// Events in file order, which may differ from time order.
    pub events: Vec<AllocatorEvent>,
    /// Interned strings of the events.
    pub strings: Strings,
    /// Unit of the event times.
    pub clock: Clock,
    /// Another tool's result from all events, if the file has only a sample of them.
    pub given: Option<GivenPeak>,
}

/// Unit of event times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// Picoseconds since the start of the trace.
    #[default]
    Picoseconds,
    /// Event numbers, because the file has no times.
    Order,
}

/// State of an allocator at one moment, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AllocatorStats {
    /// Bytes reserved for the stack (`bytes_reserved`).
    pub stack: i64,
    /// Bytes in use on the heap (`bytes_allocated`).
    pub heap: i64,
    /// Free bytes (`bytes_available`).
    pub free: i64,
    /// Fraction of free memory outside the largest free chunk, 0..=1; NaN if nothing is free.
    pub fragmentation: f64,
    /// Peak use since the allocator was created.
    pub lifetime_peak: i64,
}

impl AllocatorStats {
    /// Bytes in use on the stack and the heap.
    #[must_use]
    pub const fn in_use(&self) -> i64 {
        self.stack.saturating_add(self.heap)
    }

    /// Total bytes managed by the allocator.
    #[must_use]
    pub const fn capacity(&self) -> i64 {
        self.in_use().saturating_add(self.free)
    }
}

/// Kind of allocator event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllocatorActivity {
    /// Memory was allocated.
    Allocation,
    /// Memory was freed.
    Deallocation,
    /// Any other kind.
    #[default]
    Other,
}

/// One allocation or deallocation.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllocatorEvent {
    /// Time in the unit of [`AllocatorTrace::clock`].
    pub time_ps: i64,
    /// Kind of event.
    pub activity: AllocatorActivity,
    /// State after the event.
    pub stats: AllocatorStats,
    /// Requested bytes.
    pub requested: i64,
    /// Bytes allocated for the request.
    pub allocated: i64,
    /// Address.
    pub address: u64,
    /// Framework op name.
    pub op: StringId,
    /// Region type: `output`, `temp`, `persist/dynamic`, …
    pub region: StringId,
    /// Element type.
    pub data_type: StringId,
    /// Shape, such as `[512,1024]`.
    pub shape: StringId,
    /// Training step; -1 if unknown.
    pub step: i64,
}

/// Live allocations at the peak, from a tool that saw every event.
#[derive(Debug, Clone, Default)]
pub struct GivenPeak {
    /// State at the peak.
    pub stats: AllocatorStats,
    /// Time in picoseconds.
    pub time_ps: i64,
    /// Peak use over the allocator's lifetime, in bytes.
    pub lifetime_peak: i64,
    /// Total bytes managed by the allocator.
    pub capacity: i64,
    /// Live allocations.
    pub rows: Vec<LiveAllocation>,
}

/// Identical allocations that are live.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveAllocation {
    /// Framework op name.
    pub op: String,
    /// Bytes of each.
    pub bytes: i64,
    /// Requested bytes of each.
    pub requested: i64,
    /// Number of allocations.
    pub count: i64,
    /// Region type.
    pub region: String,
    /// Element type.
    pub data_type: String,
    /// Shape.
    pub shape: String,
}

/// One execution of a program on a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Execution {
    /// Module name as written in the trace.
    pub name: String,
    /// Start time in picoseconds.
    pub start_ps: i64,
    /// End time in picoseconds.
    pub end_ps: i64,
    /// Device, such as `TPU:0`.
    pub device: String,
}
