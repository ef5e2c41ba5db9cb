//! What another tool's report says of a program, where the file holds its results and not what they came from.

use super::ids::BufferId;
use super::profile::MemorySpace;
use super::units::Bytes;

/// Numbers of one memory space as a report prints them. What the report leaves out is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedSpace {
    /// Memory space.
    pub color: MemorySpace,
    /// Σ of all allocations that are not thread-local.
    pub allocated: Option<Bytes>,
    /// Σ of those that live throughout.
    pub always_live: Option<Bytes>,
    /// Σ of the arguments.
    pub parameters: Option<Bytes>,
    /// Σ of possible results.
    pub live_out: Option<Bytes>,
    /// Σ of thread-local and tuple allocations.
    pub non_reusable: Option<Bytes>,
    /// The peak.
    pub peak: Option<ReportedPeak>,
}

/// A peak that a report prints.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedPeak {
    /// Bytes.
    pub bytes: Bytes,
    /// Bytes without padding, in that tool's way of counting.
    pub unpadded: Bytes,
    /// The heap event that reaches it.
    pub event: u32,
    /// Buffers that live throughout, in the tool's order.
    pub always_live: Vec<BufferId>,
    /// Buffers of the heap, in the tool's order.
    pub heap: Vec<BufferId>,
    /// (bytes, unpadded bytes) before each event and after the last.
    pub curve: Vec<(u64, u64)>,
    /// First and last event of a buffer.
    pub spans: Vec<(BufferId, u32, u32)>,
    /// Buffers at the peak that the tool folded into one row, in bytes.
    pub folded: Bytes,
}

/// Live ranges as a report prints them, for a program whose instructions the file does not have.
#[derive(Debug, Clone, Default)]
pub struct ReportedRanges {
    /// Number of program points.
    pub points: u32,
    /// Instruction rows in the order they run.
    pub sequence: Vec<u32>,
    /// First and last point by buffer row; `None` for one without a range.
    pub ranges: Vec<Option<(u32, u32)>>,
}

/// A place that reads a buffer, as a report prints it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportedUse {
    /// The buffer.
    pub buffer: BufferId,
    /// Instruction, operand and index: `fusion.5, operand 2 {0}`.
    pub text: String,
}
