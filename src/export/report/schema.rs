//! The report as data. Sizes are in bytes; unknown values are `null`, never 0.

use serde::Serialize;

use super::failure::FailureReport;
use super::runtime::{AllocatorReport, SnapshotReport};
use crate::analysis::live_at::Residency;
use crate::model::Category;

/// Name and version of the schema.
pub const SCHEMA: &str = "highwater.report/1";

/// A whole report.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name and version of the schema: `highwater.report/1`.
    pub schema: &'static str,
    /// Every file that was read, or could not be.
    pub sources: Vec<Source>,
    /// Every profile that was read.
    pub profiles: Vec<ProfileReport>,
}

/// A file.
#[derive(Debug, Serialize)]
pub struct Source {
    /// Path as given, with the path inside an archive.
    pub path: String,
    /// Name of the format, as the decoder gives it.
    pub format: String,
    /// Unpacked size in bytes.
    pub bytes: u64,
    /// Notes of the decoder.
    pub notes: Vec<String>,
    /// Why it could not be read; `null` if it was.
    pub error: Option<String>,
}

/// One profile.
#[derive(Debug, Serialize)]
pub struct ProfileReport {
    /// Display name: that of the module or file.
    pub name: String,
    /// The device that the programs ran on, as far as the files name it.
    pub device: DeviceReport,
    /// Compiled programs, in the order of the file.
    pub programs: Vec<ProgramReport>,
    /// Allocator histories.
    pub runtime: Vec<AllocatorReport>,
    /// PyTorch's caching allocator, one for each device.
    pub caching_allocators: Vec<super::caching::CachingReport>,
    /// Arrays live at one moment, from a snapshot.
    pub live: Option<SnapshotReport>,
    /// Memory of IPU tiles.
    pub tiles: Option<super::tiles::TilesReport>,
    /// Out-of-memory messages.
    pub failures: Vec<FailureReport>,
    /// The advisor's findings.
    pub findings: Vec<super::findings::FindingReport>,
    /// For each program that does not fit, the smallest set of changes that makes it fit.
    pub plans: Vec<super::findings::PlanReport>,
    /// The largest batch that fits, for each program that has a batch dimension.
    pub batches: Vec<super::findings::BatchReport>,
    /// Where the file of the programs is cut, and how much is missing; `null` if it was read to its end.
    pub partly_read: Option<String>,
    /// Contradictions between the files.
    pub notes: Vec<String>,
}

/// In which human-readable formats a JSON field is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// In text, Markdown and HTML.
    Both,
    /// In text and HTML but not in Markdown, with the reason.
    Text(&'static str),
    /// In none of them, with the reason.
    Json(&'static str),
}

/// Fields of a profile and where they are shown.
pub const PROFILE_FIELDS: &[(&str, Shown)] = &[
    ("name", Shown::Both),
    ("device", Shown::Both),
    ("programs", Shown::Both),
    ("runtime", Shown::Both),
    ("caching_allocators", Shown::Both),
    ("live", Shown::Both),
    ("tiles", Shown::Both),
    ("failures", Shown::Both),
    ("findings", Shown::Both),
    ("plans", Shown::Both),
    ("partly_read", Shown::Both),
    ("batches", Shown::Json("the advisor's findings name the largest batch in words")),
    ("notes", Shown::Both),
];

/// Fields of a memory space and where they are shown.
pub const SPACE_FIELDS: &[(&str, Shown)] = &[
    ("colour", Shown::Json("shown by name")),
    ("name", Shown::Both),
    ("capacity_bytes", Shown::Both),
    ("capacity_evidence", Shown::Both),
    ("verdict", Shown::Json("the headline says it in words")),
    ("over_by_bytes", Shown::Both),
    ("allocated_bytes", Shown::Both),
    ("always_live_bytes", Shown::Json("arguments and outputs are shown, which are most of it")),
    ("peak_bytes", Shown::Json("XProf's peak, for comparison; people read the peak of all buffers")),
    ("peak_event", Shown::Json("XProf's event index; people read the step")),
    ("xprof_peak_unpadded_bytes", Shown::Json("XProf's way of counting, for comparison")),
    ("padding_at_peak_bytes", Shown::Json("of XProf's peak, for comparison; people read that of all buffers")),
    ("time_count", Shown::Text("a table of sizes has no room for a place in the program")),
    ("reserved_peak_bytes", Shown::Both),
    ("reserved_peak_time", Shown::Text("a table of sizes has no room for a place in the program")),
    ("reserved_peak_instruction", Shown::Text("a table of sizes has no room for a place in the program")),
    ("content_peak_bytes", Shown::Json("a second peak would only confuse")),
    (
        "fragmentation_bytes",
        Shown::Json("against XProf's peak, for comparison; people read it against that of all buffers"),
    ),
    ("parameter_bytes", Shown::Both),
    ("output_bytes", Shown::Both),
    ("event_count", Shown::Json("for programs that read the curve")),
    ("buffer_count", Shown::Json("for programs that read the buffers")),
    ("buffers_without_lifetime", Shown::Json("for programs that read the buffers")),
    ("notes", Shown::Both),
    ("peak", Shown::Both),
    ("at_peak", Shown::Json("XProf's rows, for comparison; people read what stands at the peak of all buffers")),
    ("at_peak_count", Shown::Json("of XProf's rows")),
    ("by_category", Shown::Json("sums of XProf's rows")),
    ("by_class", Shown::Json("sums of XProf's rows")),
    ("padding_by_shape", Shown::Both),
    ("packing", Shown::Json("only for tests of how well the compiler's packing is reproduced")),
    ("what_if", Shown::Both),
    ("what_if_undecided", Shown::Both),
    ("what_if_sets", Shown::Both),
    ("other_chips", Shown::Json("the window shows it with the advice")),
    ("range", Shown::Both),
    ("trees", Shown::Both),
    ("curve", Shown::Json("thousands of points")),
    ("buffers", Shown::Json("every buffer; people read those at the peak")),
];

/// The device.
#[derive(Debug, Serialize)]
pub struct DeviceReport {
    /// Marketing name, such as `TPU v5e`.
    pub name: Option<String>,
    /// `tpu`, `gpu`, `ipu` or `cpu`.
    pub kind: Option<&'static str>,
    /// Source of the name and kind.
    pub evidence: Option<String>,
    /// Chips of one host that the program was compiled for.
    pub chips_per_host: Option<u64>,
    /// Hosts that the program was compiled for.
    pub hosts: Option<u64>,
}

/// A program.
#[derive(Debug, Serialize)]
pub struct ProgramReport {
    /// Name of the module.
    pub name: String,
    /// Program id in the trace it came from.
    pub id: Option<String>,
    /// Devices it runs on: replicas times partitions; `null` if the file does not say.
    pub devices: Option<u32>,
    /// Whether the file has a buffer assignment; without one `spaces` is empty.
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
    /// XLA's number of the space (its color); 0 is HBM.
    #[serde(rename = "colour")]
    pub color: i64,
    /// Name of the space: `HBM`, `VMEM`.
    pub name: String,
    /// Bytes a program may use; `null` if unknown.
    pub capacity_bytes: Option<u64>,
    /// Where the capacity comes from.
    pub capacity_evidence: Option<String>,
    /// `fits`, `over` or `unknown`.
    pub verdict: &'static str,
    /// Allocated bytes beyond the capacity; `null` unless it is exceeded.
    pub over_by_bytes: Option<u64>,
    /// XProf's `totalBufferAllocationMib`.
    pub allocated_bytes: u64,
    /// XProf's `indefiniteBufferAllocationMib`.
    pub always_live_bytes: u64,
    /// XProf's `peakHeapMib`; `null` if the file has only totals.
    pub peak_bytes: Option<u64>,
    /// XProf's `peakHeapSizePosition`: index of the heap event.
    pub peak_event: Option<u32>,
    /// XProf's `peakUnpaddedHeapMib`.
    pub xprof_peak_unpadded_bytes: Option<u64>,
    /// Padding of the buffers in `at_peak`.
    pub padding_at_peak_bytes: Option<u64>,
    /// Number of steps in program order.
    pub time_count: Option<u32>,
    /// Peak of the bytes reserved at one step, counted by address.
    pub reserved_peak_bytes: Option<u64>,
    /// First step that reaches it.
    pub reserved_peak_time: Option<u32>,
    /// Name of the instruction at that step.
    pub reserved_peak_instruction: Option<String>,
    /// Peak of the bytes that hold live values.
    pub content_peak_bytes: Option<u64>,
    /// Allocated bytes minus `peak_bytes`.
    pub fragmentation_bytes: Option<u64>,
    /// Arguments (XProf's `entryComputationParametersMib`).
    pub parameter_bytes: u64,
    /// Results (XProf's `maybeLiveOutMib`); includes donated arguments.
    pub output_bytes: u64,
    /// Number of heap events.
    pub event_count: usize,
    /// Number of logical buffers assigned to the space.
    pub buffer_count: usize,
    /// Buffers whose live range is unknown.
    pub buffers_without_lifetime: usize,
    /// Inconsistencies, and differences from XProf's numbers.
    pub notes: Vec<String>,
    /// The peak that people read, and what stands at it.
    pub peak: PeakReport,
    /// Buffers live at XProf's peak with their sizes, largest first.
    pub at_peak: Vec<BufferReport>,
    /// Length of `at_peak` before `--top` cut it.
    pub at_peak_count: usize,
    /// Bytes of `at_peak` by category, largest first.
    pub by_category: Vec<CategoryReport>,
    /// Bytes of `at_peak` by class, a guess at their purpose, largest first.
    pub by_class: Vec<ClassReport>,
    /// Padded shapes at the peak, largest possible saving first.
    pub padding_by_shape: Vec<super::padding::PaddingReport>,
    /// How closely the compiler's packing is reproduced.
    pub packing: Option<super::what_if::PackingReport>,
    /// Result of the changes given with `--edit`.
    pub what_if: Option<super::what_if::WhatIfReport>,
    /// Why the changes given with `--edit` have no predicted result, where they have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what_if_undecided: Option<String>,
    /// The same with what can be told all the same.
    #[serde(skip)]
    pub what_if_unpredicted: Option<String>,
    /// Whether that is because one of them names nothing that is in the program.
    #[serde(skip)]
    pub what_if_names_nothing: bool,
    /// Result of each named set of changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub what_if_sets: Vec<super::what_if::SetReport>,
    /// Whether the program would fit other chips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_chips: Option<Vec<super::what_if::ChipReport>>,
    /// Statistics of the range given with `--from` and `--to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<super::range::RangeReport>,
    /// Live bytes as trees, one for each `--tree`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<super::tree::TreeReport>,
    /// XProf's curve, with `--curve`: heap event, bytes, unpadded bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<Vec<(usize, u64, u64)>>,
    /// What the pictures show, where they were asked for.
    #[serde(skip)]
    pub picture: Option<super::picture::Picture>,
    /// Every logical buffer, with `--buffers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers: Option<Vec<BufferReport>>,
}

/// The peak of all buffers, counted by address, where the program has a schedule, else XProf's; and what stands at it.
/// The bytes of the rows and of each division, and those unlisted, add up to the peak.
#[derive(Debug, Serialize)]
pub struct PeakReport {
    /// The peak; `null` if the file has only totals.
    pub bytes: Option<u64>,
    /// Its step; `null` without a schedule.
    pub step: Option<u32>,
    /// Padding in it.
    pub padding_bytes: Option<u64>,
    /// Allocated bytes minus the peak; `null` also for what a message lists, which may be a part of the program only.
    pub fragmentation_bytes: Option<u64>,
    /// Bytes of buffers that have memory then and are written only later; `null` without a schedule.
    pub unwritten_bytes: Option<u64>,
    /// Bytes in small buffers that the file only sums up.
    pub unlisted_bytes: u64,
    /// Buffers, most bytes first, limited by `--top`.
    pub buffers: Vec<PeakBufferReport>,
    /// Length of `buffers` before `--top` cut it.
    pub buffer_count: usize,
    /// Bytes by category, largest first.
    pub by_category: Vec<CategoryReport>,
    /// Bytes by class, a guess at their purpose, largest first.
    pub by_class: Vec<ClassReport>,
    /// Whether these are the rows of a message, which has no steps and so no peak.
    #[serde(skip)]
    pub is_listing: bool,
}

impl PeakReport {
    /// Where the rows stand, in words.
    pub fn place(&self) -> &'static str {
        if self.is_listing { "in the message" } else { "at the peak" }
    }
}

/// A buffer at the peak.
#[derive(Debug, Serialize)]
pub struct PeakBufferReport {
    /// The bytes that count for it: its size, less what others share of its memory.
    pub bytes_at_peak: u64,
    /// What the changes add, where it is no buffer of the program: `sums of all gradients`. The buffer is one that it goes
    /// with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<&'static str>,
    /// The buffer.
    #[serde(flatten)]
    pub buffer: BufferReport,
}

/// A logical buffer.
#[derive(Debug, Serialize, Clone)]
pub struct BufferReport {
    /// Number in the file.
    pub id: i64,
    /// `instruction` or `instruction{i,j}`.
    pub name: String,
    /// Size in bytes, padding included.
    pub bytes: u64,
    /// Size in bytes without padding.
    pub unpadded_bytes: Option<u64>,
    /// Shape with layout.
    pub shape: Option<String>,
    /// Category according to the compiler: `argument`, `temporary`.
    pub category: &'static str,
    /// Class, its most likely purpose: `weight`, `activation`.
    pub class: &'static str,
    /// Evidence for the class; `null` if certain.
    pub class_guessed_from: Option<&'static str>,
    /// Confidence in the class: `known`, `likely` or `guess`.
    pub class_certainty: &'static str,
    /// Framework op name.
    pub op_name: Option<String>,
    /// Label, where the op name does not tell what it is: `saved by the scan for 32 layers: mlp/wi`.
    pub label: Option<String>,
    /// Source position as `file:line`.
    pub source: Option<String>,
    /// Offset in its allocation in bytes.
    pub offset: Option<u64>,
    /// Index of its allocation.
    pub allocation: Option<i64>,
    /// Index of its first heap event.
    pub start: Option<u32>,
    /// Index of its last heap event.
    pub end: Option<u32>,
    /// First step at which it is live.
    pub live_start: Option<u32>,
    /// Last step at which it is live.
    pub live_end: Option<u32>,
    /// First and last step at which memory is reserved for it; `null` if unknown.
    pub reserved: Option<(u32, u32)>,
    /// Path of the argument whose memory it is in, where it is written after that was read; absent for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_memory_of: Option<String>,
    /// Whether it is memory that is only allocated until a loop begins to write it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_empty: bool,
    /// Of an argument, the step at which its memory is written again after its last read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_again: Option<u32>,
    /// Whether the compiler computes it a second time, for want of memory to keep it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_recomputed: bool,
    /// Where the live range comes from.
    pub lifetime_from: Option<&'static str>,
}

impl BufferReport {
    /// Its label, or else its framework op name.
    pub fn in_words(&self) -> &str {
        self.label.as_deref().or(self.op_name.as_deref()).unwrap_or_default()
    }

    /// What the framework calls it, and the compiler's own name; that alone where the framework has none.
    pub fn names(&self) -> (&str, &str) {
        match self.in_words() {
            "" => (&self.name, ""),
            words => (words, &self.name),
        }
    }

    /// Steps at which its memory is reserved and at which it is live; `None` if unknown, and of constants, which are there
    /// from the beginning.
    pub fn spans(&self) -> Option<Residency> {
        let in_argument = self.category == Category::Parameter.name();
        if self.category == Category::Constant.name() {
            return None;
        }
        let written = (self.live_start?, self.live_end?);
        Some(Residency {
            reserved: self.reserved?,
            written,
            in_argument,
            is_empty: self.is_empty,
            written_again: self.written_again,
            is_recomputed: self.is_recomputed,
        })
    }
}

/// Bytes of a class at the peak.
#[derive(Debug, Serialize)]
pub struct ClassReport {
    /// Name of the class.
    pub class: &'static str,
    /// Bytes at the peak.
    pub bytes: u64,
    /// Number of buffers.
    pub buffers: usize,
    /// Bytes of those whose class is only a guess.
    pub guess_bytes: u64,
}

impl ClassReport {
    /// How much of it is only a guess, in words; `None` if nothing is.
    pub fn guess_in_words(&self) -> Option<String> {
        match self.guess_bytes {
            0 => None,
            bytes if bytes >= self.bytes => Some(", a guess".to_owned()),
            bytes => Some(format!(", {} a guess", crate::model::Bytes(bytes).short())),
        }
    }
}

/// Bytes of a category at the peak.
#[derive(Debug, Serialize)]
pub struct CategoryReport {
    /// Name of the category.
    pub category: &'static str,
    /// Bytes at the peak.
    pub bytes: u64,
    /// Number of buffers.
    pub buffers: usize,
}
