//! A profile: everything known about one run or program, with its sources.

use std::fmt;

use super::failure::Failure;
use super::lazy::LazyProgram;
use super::live_set::LiveSet;
use super::program::Program;
use super::runtime::{AllocatorTrace, Execution};
use super::tiles::TileMemory;
use super::units::Bytes;

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
    /// Why it could not be read; `None` if it was.
    pub error: Option<String>,
}

/// The accelerator a program was compiled for.
#[derive(Debug, Clone, Default)]
pub struct Device {
    /// Such as `TPU v5e`; `None` if unknown.
    pub name: Option<String>,
    /// Kind of device; `None` if unknown.
    pub kind: Option<DeviceKind>,
    /// Evidence for this, in words.
    pub evidence: Option<String>,
    /// Known capacities, at most one per memory space.
    pub capacities: Vec<Capacity>,
    /// How many chips the program was compiled for, where the file says.
    pub topology: Option<Topology>,
}

/// Chips that a program was compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    /// Chips of one host.
    pub chips_per_host: u64,
    /// Hosts.
    pub hosts: u64,
}

impl Topology {
    /// All chips.
    #[must_use]
    pub const fn chips(&self) -> u64 {
        self.chips_per_host.saturating_mul(self.hosts)
    }
}

impl Device {
    /// Capacity of a memory space; `None` if unknown.
    #[must_use]
    pub fn capacity(&self, color: MemorySpace) -> Option<&Capacity> {
        self.capacities.iter().find(|capacity| capacity.color == color)
    }
}

/// Capacity of a memory space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// Memory space.
    pub color: MemorySpace,
    /// Bytes available to a program.
    pub bytes: Bytes,
    /// Evidence for this, in words.
    pub evidence: String,
}

/// Kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// Google's TPU.
    Tpu,
    /// A GPU.
    Gpu,
    /// Graphcore's IPU.
    Ipu,
    /// The host CPU.
    Cpu,
}

impl DeviceKind {
    /// Lower-case name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tpu => "tpu",
            Self::Gpu => "gpu",
            Self::Ipu => "ipu",
            Self::Cpu => "cpu",
        }
    }
}

/// A memory space of a device, identified by what XLA calls its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MemorySpace(pub i64);

impl fmt::Display for MemorySpace {
    /// Writes the number; see [`Self::name`] for the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl MemorySpace {
    /// Main memory: HBM on a TPU or GPU, RAM on a CPU.
    pub const HBM: Self = Self(0);
    /// Vector memory of a TPU core.
    pub const VMEM: Self = Self(1);
    /// Common memory of the cores in some TPU generations.
    pub const CMEM: Self = Self(3);
    /// Scalar memory of a TPU core.
    pub const SMEM: Self = Self(4);

    /// Name on a kind of device: XProf's name where it has one, otherwise inferred from real dumps.
    #[must_use]
    pub fn name(self, kind: Option<DeviceKind>) -> String {
        let name = match (self.0, kind) {
            (0, Some(DeviceKind::Cpu)) => "RAM",
            (1, Some(DeviceKind::Gpu)) => "Collective",
            (2, Some(DeviceKind::Gpu)) => "Temp buffers",
            (0, _) => "HBM",
            (1, _) => "VMEM",
            (2, _) => "Sflag",
            (3, _) => "CMEM",
            (4, _) => "SMEM",
            (5, _) => "Host",
            (6, _) => "Scalar/SC",
            _ => return format!("Colour {self}"),
        };
        name.to_owned()
    }

    /// Whether `text` is the space's name, XProf's name for it, or its number. Case-insensitive.
    #[must_use]
    pub fn is_named(self, text: &str, kind: Option<DeviceKind>) -> bool {
        text.eq_ignore_ascii_case(&self.name(kind))
            || text.eq_ignore_ascii_case(&self.name(None))
            || (self.0 == 6 && text.eq_ignore_ascii_case("SparseCore"))
            || text.parse() == Ok(self.0)
    }
}

/// Severity of a [`Note`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteLevel {
    /// Useful background.
    Info,
    /// Something is missing or inconsistent; the rest is valid.
    Warning,
    /// A file could not be read.
    Error,
}

/// Machine-readable subject of a [`Note`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoteCode {
    /// Only for display.
    #[default]
    Other,
    /// A Poplar file lacks bytes by tile; another file of the same report may have them.
    NoTileBytes,
    /// A text contains no out-of-memory messages.
    NoFailureFound,
}

/// A remark for the user about what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Subject.
    pub code: NoteCode,
    /// Severity.
    pub level: NoteLevel,
    /// One sentence without a full stop.
    pub text: String,
    /// Byte offset in the file, if it applies to one.
    pub offset: Option<u64>,
}

impl Note {
    /// A display-only note on the file as a whole.
    #[must_use]
    pub fn new(level: NoteLevel, text: impl Into<String>) -> Self {
        Self { code: NoteCode::Other, level, text: text.into(), offset: None }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if let Some(offset) = self.offset {
            write!(f, " (at byte {offset})")?;
        }
        Ok(())
    }
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
