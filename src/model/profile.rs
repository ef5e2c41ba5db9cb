//! A profile: everything known about one run or program, with its sources.

use super::caching::CachingSnapshot;
use super::device::Device;
use super::failure::{Failure, Shortage};
use super::lazy::LazyProgram;
use super::live_set::LiveSet;
use super::note::Note;
use super::program::Program;
use super::runtime::{AllocatorTrace, Execution};
use super::tiles::TileMemory;

/// Everything read about one run or program. Decoders fill in what their format has; the rest stays empty.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Display name.
    pub name: String,
    /// Files it was read from, the one the user opened first.
    pub sources: Vec<SourceInfo>,
    /// Device the programs were compiled for.
    pub device: Device,
    /// Decoded programs.
    pub programs: Vec<Program>,
    /// Programs not decoded yet; a trace may have hundreds.
    pub modules: Vec<LazyProgram>,
    /// Allocator histories.
    pub runtime: Vec<AllocatorTrace>,
    /// Program executions on devices, on the time axis of [`Self::runtime`].
    pub executions: Vec<Execution>,
    /// PyTorch's caching allocator.
    pub caching: Option<CachingSnapshot>,
    /// What was live when the file was written.
    pub live: Option<LiveSet>,
    /// XLA's live ranges of the first program, from a text report beside the dump.
    pub live_ranges: Option<LiveRangeTable>,
    /// Out-of-memory messages, in text order.
    pub failures: Vec<Failure>,
    /// IPU memory by tile.
    pub tiles: Option<TileMemory>,
    /// Display-only facts from the files: versions, command line, settings.
    pub facts: Vec<Fact>,
    /// What could not be read or is inconsistent.
    pub notes: Vec<Note>,
}

impl Profile {
    /// The worst of its out-of-memory messages, warnings left out: its row and its numbers.
    #[must_use]
    pub fn shortage(&self) -> Option<(usize, Shortage)> {
        let failures = self.failures.iter().enumerate().filter(|(_, failure)| failure.is_error);
        let known = failures.map(|(row, failure)| (row, failure.shortage()));
        known.max_by_key(|(row, shortage)| (shortage.over_by, shortage.needed, std::cmp::Reverse(*row)))
    }
}

/// A fact from a file that is only displayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// File or section it is from, such as `framework`.
    pub group: String,
    /// Path of keys.
    pub key: String,
    /// Value as text.
    pub value: String,
}

impl Profile {
    /// Whether a dump was read that shows the buffers of a program, rather than a message that lists some.
    #[must_use]
    pub fn shows_buffers(&self) -> bool {
        self.programs.iter().any(|program| program.has_buffer_assignment && !program.is_listing)
    }
}

/// A file that was read.
#[derive(Debug, Clone, Default)]
pub struct SourceInfo {
    /// Path, or a label for an input in memory.
    pub path: String,
    /// Format, such as `XLA HLO proto`.
    pub format: String,
    /// Size in bytes, decompressed if known.
    pub bytes: u64,
    /// Notes on the file.
    pub notes: Vec<String>,
    /// Why it could not be read, or not to its end; `None` if it was.
    pub error: Option<String>,
    /// Byte offset at which it was cut; everything before it could be read.
    pub cut_at: Option<u64>,
}

/// XLA's live ranges from a `*-live-range.txt`.
#[derive(Debug, Clone, Default)]
pub struct LiveRangeTable {
    /// Path of the file.
    pub path: String,
    /// `max N`.
    pub max: u32,
    /// Instruction names in schedule order.
    pub sequence: Vec<String>,
    /// (value as `name{index}`, first point, last point), in file order.
    pub rows: Vec<(String, u32, u32)>,
}
