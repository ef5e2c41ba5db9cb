//! What an allocator did over time, as a trace recorded it, and when programs ran meanwhile.

use super::ids::StringId;
use super::strings::Strings;

/// The history of one allocator.
#[derive(Debug, Clone, Default)]
pub struct AllocatorTrace {
    /// The allocator's name, or the number of its device.
    pub name: String,
    /// What happened, in the order of the file (not of time).
    pub events: Vec<AllocatorEvent>,
    /// Texts the events refer to.
    pub strings: Strings,
    /// What the times of the events are.
    pub clock: Clock,
    /// What another tool computed from all events, where the file holds only a sample of them.
    pub given: Option<GivenPeak>,
}

/// What the times of events are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// Picoseconds since the trace began.
    #[default]
    Picoseconds,
    /// The file has no times: the number of the event in it.
    Order,
}

/// Numbers of an allocator at one moment, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AllocatorStats {
    /// Reserved for the stack (`bytes_reserved`).
    pub stack: i64,
    /// In use on the heap (`bytes_allocated`).
    pub heap: i64,
    /// Free (`bytes_available`).
    pub free: i64,
    /// Free memory outside the largest free chunk, over free memory: 0..=1. Not a number when the pool is full.
    pub fragmentation: f64,
    /// Highest use since the allocator was made.
    pub lifetime_peak: i64,
}

impl AllocatorStats {
    /// Stack and heap together.
    #[must_use]
    pub const fn in_use(&self) -> i64 {
        self.stack.saturating_add(self.heap)
    }

    /// Everything the allocator may hand out.
    #[must_use]
    pub const fn capacity(&self) -> i64 {
        self.in_use().saturating_add(self.free)
    }
}

/// What an event did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllocatorActivity {
    /// Memory was taken.
    Allocation,
    /// Memory was given back.
    Deallocation,
    /// Anything else a file may name.
    #[default]
    Other,
}

/// One allocation or deallocation.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllocatorEvent {
    /// When, by [`AllocatorTrace::clock`]: in picoseconds from the begin of the trace.
    pub time_ps: i64,
    /// What.
    pub activity: AllocatorActivity,
    /// The allocator after it.
    pub stats: AllocatorStats,
    /// Bytes that were asked for.
    pub requested: i64,
    /// Bytes of the chunk.
    pub allocated: i64,
    /// Where.
    pub address: u64,
    /// Framework's name of the operation.
    pub op: StringId,
    /// `output`, `temp`, `persist/dynamic`, …
    pub region: StringId,
    /// Element type.
    pub data_type: StringId,
    /// Shape: `[512,1024]`.
    pub shape: StringId,
    /// Step of the training it belongs to, -1 where it is not known.
    pub step: i64,
}

/// What stood at the peak, as a tool that saw every event says.
#[derive(Debug, Clone, Default)]
pub struct GivenPeak {
    /// The allocator at the peak.
    pub stats: AllocatorStats,
    /// When, in picoseconds.
    pub time_ps: i64,
    /// Highest use in the allocator's life.
    pub lifetime_peak: i64,
    /// Everything it may hand out.
    pub capacity: i64,
    /// What was alive.
    pub rows: Vec<GivenRow>,
}

/// Equal allocations at the peak.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GivenRow {
    /// Framework's name of the operation.
    pub op: String,
    /// Bytes of each.
    pub bytes: i64,
    /// Bytes that were asked for, of each.
    pub requested: i64,
    /// How many there are.
    pub count: i64,
    /// Region.
    pub region: String,
    /// Element type.
    pub data_type: String,
    /// Shape.
    pub shape: String,
}

/// One run of a program on a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Execution {
    /// Name of the module, as the trace writes it.
    pub name: String,
    /// Begin, in picoseconds.
    pub start_ps: i64,
    /// End, in picoseconds.
    pub end_ps: i64,
    /// The device: `TPU:0`.
    pub device: String,
}
