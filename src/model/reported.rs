//! Results read from another tool's report, for files that lack the data to recompute them.

use super::device::MemorySpace;
use super::ids::BufferId;
use super::units::Bytes;

/// Totals of one memory space as printed in a report; `None` if not printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedSpace {
    /// Memory space.
    pub color: MemorySpace,
    /// Total of all allocations that are not thread-local.
    pub allocated: Option<Bytes>,
    /// Total of always-live allocations.
    pub always_live: Option<Bytes>,
    /// Total of the parameters.
    pub parameters: Option<Bytes>,
    /// Total of possible results.
    pub live_out: Option<Bytes>,
    /// Total of thread-local and tuple allocations.
    pub non_reusable: Option<Bytes>,
    /// Peak.
    pub peak: Option<ReportedPeak>,
}

/// A peak as printed in a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedPeak {
    /// Bytes.
    pub bytes: Bytes,
    /// Bytes without padding, as counted by that tool.
    pub unpadded: Bytes,
    /// Heap event at which it is reached.
    pub event: u32,
    /// Always-live buffers, in the tool's order.
    pub always_live: Vec<BufferId>,
    /// Heap buffers, in the tool's order.
    pub heap: Vec<BufferId>,
    /// (live bytes, live unpadded bytes) before each event and after the last.
    pub curve: Vec<(u64, u64)>,
    /// (buffer, first event, last event)
    pub spans: Vec<(BufferId, u32, u32)>,
    /// Total bytes of buffers at the peak that the tool folded into one row.
    pub folded: Bytes,
}

/// Live ranges from a report, for a program without instructions.
#[derive(Debug, Clone, Default)]
pub struct ReportedRanges {
    /// Number of program points.
    pub points: u32,
    /// Instruction rows in schedule order.
    pub sequence: Vec<u32>,
    /// (first point, last point) by buffer row; `None` for a buffer without a range.
    pub ranges: Vec<Option<(u32, u32)>>,
}

/// A use of a buffer, from a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportedUse {
    /// The buffer.
    pub buffer: BufferId,
    /// Instruction, operand and shape index, such as `fusion.5, operand 2 {0}`.
    pub text: String,
}
