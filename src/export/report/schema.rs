//! The report as data. Sizes are bytes; what is not known is `null`, never 0.

use serde::Serialize;

use super::failure::FailureReport;
use super::runtime::{AllocatorReport, SnapshotReport};
use crate::analysis::live_at::Spans;

/// A whole report.
#[derive(Debug, Serialize)]
pub struct Report {
    /// `highwater.report/1`.
    pub schema: &'static str,
    /// Every file that was read, or could not be.
    pub sources: Vec<Source>,
    /// What was read.
    pub profiles: Vec<ProfileReport>,
}

/// A file.
#[derive(Debug, Serialize)]
pub struct Source {
    /// Path.
    pub path: String,
    /// Format.
    pub format: String,
    /// Unpacked size.
    pub bytes: u64,
    /// What is worth knowing about it.
    pub notes: Vec<String>,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// One profile.
#[derive(Debug, Serialize)]
pub struct ProfileReport {
    /// Name.
    pub name: String,
    /// Device.
    pub device: DeviceReport,
    /// Programs.
    pub programs: Vec<ProgramReport>,
    /// Allocator histories.
    pub runtime: Vec<AllocatorReport>,
    /// Live arrays without time.
    pub live: Option<SnapshotReport>,
    /// IPU tiles.
    pub tiles: Option<super::tiles::TilesReport>,
    /// Out-of-memory messages.
    pub failures: Vec<FailureReport>,
    /// The advisor's findings.
    pub findings: Vec<super::findings::FindingReport>,
    /// The shortest set of changes that makes each program fit which does not.
    pub plans: Vec<super::findings::PlanReport>,
    /// The largest batch of each program that has one.
    pub batches: Vec<super::findings::BatchReport>,
    /// What does not fit together.
    pub notes: Vec<String>,
}

/// Where a field of the JSON stands in the forms for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// In text and in Markdown.
    Both,
    /// In text alone, and why.
    Text(&'static str),
    /// In neither, and why.
    Json(&'static str),
}

/// Fields of a profile and where they are shown.
pub const PROFILE_FIELDS: &[(&str, Shown)] = &[
    ("name", Shown::Both),
    ("device", Shown::Both),
    ("programs", Shown::Both),
    ("runtime", Shown::Both),
    ("live", Shown::Both),
    ("tiles", Shown::Both),
    ("failures", Shown::Both),
    ("findings", Shown::Both),
    ("plans", Shown::Both),
    ("batches", Shown::Json("the advisor's findings name the largest batch in words")),
    ("notes", Shown::Both),
];

/// Fields of a memory space and where they are shown.
pub const SPACE_FIELDS: &[(&str, Shown)] = &[
    ("colour", Shown::Json("the name stands for it")),
    ("name", Shown::Both),
    ("capacity_bytes", Shown::Both),
    ("capacity_evidence", Shown::Both),
    ("verdict", Shown::Json("the headline says it in words")),
    ("over_by_bytes", Shown::Both),
    ("allocated_bytes", Shown::Both),
    ("always_live_bytes", Shown::Json("arguments and outputs are shown, which are most of it")),
    ("peak_bytes", Shown::Json("XProf's peak, for comparison; people read the peak of all buffers")),
    ("peak_event", Shown::Json("XProf's count of events; people read the step")),
    ("xprof_peak_unpadded_bytes", Shown::Json("XProf's way of counting, for comparison")),
    ("padding_at_peak_bytes", Shown::Both),
    ("time_count", Shown::Text("a table of sizes has no room for a place in the program")),
    ("reserved_peak_bytes", Shown::Both),
    ("reserved_peak_time", Shown::Text("a table of sizes has no room for a place in the program")),
    ("reserved_peak_instruction", Shown::Text("a table of sizes has no room for a place in the program")),
    ("content_peak_bytes", Shown::Json("a second peak beside the first confuses more than it tells")),
    ("fragmentation_bytes", Shown::Both),
    ("parameter_bytes", Shown::Both),
    ("output_bytes", Shown::Both),
    ("event_count", Shown::Json("for programs that read the curve")),
    ("buffer_count", Shown::Json("for programs that read the buffers")),
    ("buffers_without_lifetime", Shown::Json("for programs that read the buffers")),
    ("notes", Shown::Both),
    ("at_peak", Shown::Both),
    ("at_peak_count", Shown::Text("the rows that stand there are enough for an issue or a chat")),
    ("by_category", Shown::Both),
    ("by_class", Shown::Both),
    ("padding_by_shape", Shown::Both),
    ("packing", Shown::Json("how well the compiler's packing is reproduced, for tests of that")),
    ("what_if", Shown::Both),
    ("what_if_sets", Shown::Both),
    ("other_chips", Shown::Json("the window shows it beside the advice")),
    ("range", Shown::Both),
    ("trees", Shown::Both),
    ("curve", Shown::Json("thousands of points")),
    ("buffers", Shown::Json("every buffer; people read those at the peak")),
];

/// The device.
#[derive(Debug, Serialize)]
pub struct DeviceReport {
    /// Name.
    pub name: Option<String>,
    /// `tpu`, `gpu`, `ipu` or `cpu`.
    pub kind: Option<&'static str>,
    /// How it is known.
    pub evidence: Option<String>,
}

/// A program.
#[derive(Debug, Serialize)]
pub struct ProgramReport {
    /// Name of the module.
    pub name: String,
    /// Its number in a trace.
    pub id: Option<String>,
    /// Whether the file has a buffer assignment; without one there are no spaces.
    pub has_buffer_assignment: bool,
    /// Memory spaces, ascending by colour.
    pub spaces: Vec<SpaceReport>,
    /// Instructions that were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<super::instruction::InstructionReport>,
}

/// A memory space of a program.
#[derive(Debug, Serialize)]
pub struct SpaceReport {
    /// Colour.
    #[serde(rename = "colour")]
    pub color: i64,
    /// Name.
    pub name: String,
    /// How much there is.
    pub capacity_bytes: Option<u64>,
    /// How that is known.
    pub capacity_evidence: Option<String>,
    /// `fits`, `over` or `unknown`.
    pub verdict: &'static str,
    /// Allocated less capacity.
    pub over_by_bytes: Option<u64>,
    /// XProf's `totalBufferAllocationMib`.
    pub allocated_bytes: u64,
    /// XProf's `indefiniteBufferAllocationMib`.
    pub always_live_bytes: u64,
    /// XProf's `peakHeapMib`; `null` where a report holds sums alone.
    pub peak_bytes: Option<u64>,
    /// XProf's `peakHeapSizePosition`.
    pub peak_event: Option<u32>,
    /// XProf's `peakUnpaddedHeapMib`.
    pub xprof_peak_unpadded_bytes: Option<u64>,
    /// Padding of every buffer at the peak.
    pub padding_at_peak_bytes: Option<u64>,
    /// Points of the program.
    pub time_count: Option<u32>,
    /// Peak over all buffers, by address.
    pub reserved_peak_bytes: Option<u64>,
    /// First point of it.
    pub reserved_peak_time: Option<u32>,
    /// Name of the instruction at that point.
    pub reserved_peak_instruction: Option<String>,
    /// Peak of what holds something.
    pub content_peak_bytes: Option<u64>,
    /// Allocated less peak.
    pub fragmentation_bytes: Option<u64>,
    /// Arguments (XProf's `entryComputationParametersMib`).
    pub parameter_bytes: u64,
    /// Results (XProf's `maybeLiveOutMib`); overlaps with the arguments where those are donated.
    pub output_bytes: u64,
    /// Heap events.
    pub event_count: usize,
    /// Logical buffers assigned.
    pub buffer_count: usize,
    /// Those of which nothing says when they live.
    pub buffers_without_lifetime: usize,
    /// What is inconsistent, and where XProf's numbers differ from ours.
    pub notes: Vec<String>,
    /// What stands at the peak, largest first.
    pub at_peak: Vec<BufferReport>,
    /// How many rows `at_peak` has without the limit of rows.
    pub at_peak_count: usize,
    /// By category, largest first.
    pub by_category: Vec<CategoryReport>,
    /// By what the buffers are most likely for, largest first.
    pub by_class: Vec<ClassReport>,
    /// Shapes at the peak that waste something, those first that would save most.
    pub padding_by_shape: Vec<super::padding::PaddingReport>,
    /// How the compiler's packing is reproduced.
    pub packing: Option<super::what_if::PackingReport>,
    /// What the changes come to.
    pub what_if: Option<super::what_if::WhatIfReport>,
    /// What named sets of changes come to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub what_if_sets: Vec<super::what_if::SetReport>,
    /// Whether the program would fit other chips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_chips: Option<Vec<super::what_if::ChipReport>>,
    /// What happens in a range of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<super::range::RangeReport>,
    /// What is live, as trees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<super::tree::TreeReport>,
    /// XProf's curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<Vec<(usize, u64, u64)>>,
    /// Every buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers: Option<Vec<BufferReport>>,
}

/// A logical buffer.
#[derive(Debug, Serialize, Clone)]
pub struct BufferReport {
    /// Number in the file.
    pub id: i64,
    /// `instruction` or `instruction{i,j}`.
    pub name: String,
    /// Bytes with padding.
    pub bytes: u64,
    /// Bytes without.
    pub unpadded_bytes: Option<u64>,
    /// Shape with layout.
    pub shape: Option<String>,
    /// Category.
    pub category: &'static str,
    /// What it is most likely for.
    pub class: &'static str,
    /// By what that is told; `null` where it is no guess.
    pub class_guessed_from: Option<&'static str>,
    /// Framework's name of the operation.
    pub op_name: Option<String>,
    /// `file:line`.
    pub source: Option<String>,
    /// Offset in the allocation.
    pub offset: Option<u64>,
    /// Number of the allocation.
    pub allocation: Option<i64>,
    /// First heap event.
    pub start: Option<u32>,
    /// Last heap event.
    pub end: Option<u32>,
    /// First program point.
    pub live_start: Option<u32>,
    /// Last program point.
    pub live_end: Option<u32>,
    /// First and last program point at which memory is set aside for it; `null` where that is not known.
    pub reserved: Option<(u32, u32)>,
    /// Where the lifetime is known from.
    pub lifetime_from: Option<&'static str>,
}

impl BufferReport {
    /// When its memory is set aside and when it is written; `None` where that is not known.
    pub fn spans(&self) -> Option<Spans> {
        Some(Spans { reserved: self.reserved?, written: (self.live_start?, self.live_end?) })
    }
}

/// Bytes of a class at the peak.
#[derive(Debug, Serialize)]
pub struct ClassReport {
    /// Class.
    pub class: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// Buffers.
    pub buffers: usize,
}

/// Bytes of a category at the peak.
#[derive(Debug, Serialize)]
pub struct CategoryReport {
    /// Category.
    pub category: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// Buffers.
    pub buffers: usize,
}
