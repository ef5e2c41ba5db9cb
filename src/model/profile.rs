//! A profile: everything known about one run or one program, with where each piece comes from.

use std::fmt;

use super::failure::Failure;
use super::lazy::LazyProgram;
use super::live_set::LiveSet;
use super::program::Program;
use super::runtime::{AllocatorTrace, Execution};
use super::tiles::TileMemory;
use super::units::Bytes;

/// A bag of evidence; a format fills in what it knows.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// What to call it: the file's or the case's name.
    pub name: String,
    /// Files it was read from, the one that was asked for first.
    pub sources: Vec<SourceInfo>,
    /// The device.
    pub device: Device,
    /// Programs with their memory.
    pub programs: Vec<Program>,
    /// Programs that are there but not decoded yet; a trace may have hundreds.
    pub modules: Vec<LazyProgram>,
    /// Allocator histories.
    pub runtime: Vec<AllocatorTrace>,
    /// Runs of programs on devices, on the time axis of [`Self::runtime`].
    pub executions: Vec<Execution>,
    /// What was alive when the file was written.
    pub live: Option<LiveSet>,
    /// XLA's own live ranges of the first program, where a text report beside the dump gives them.
    pub live_ranges: Option<LiveRangeTable>,
    /// Out-of-memory messages, in the order of the text.
    pub failures: Vec<Failure>,
    /// Memory of an IPU by tile.
    pub tiles: Option<TileMemory>,
    /// Other things the files say, for reading: versions, command line, settings.
    pub facts: Vec<Fact>,
    /// What could not be read, or does not fit together.
    pub notes: Vec<Note>,
}

/// Something a file says that is only shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Which file or part it is from: `framework`.
    pub group: String,
    /// What it is, as a path of keys.
    pub key: String,
    /// Its value as text.
    pub value: String,
}

/// One file that was read.
#[derive(Debug, Clone, Default)]
pub struct SourceInfo {
    /// Path, or what stands for it.
    pub path: String,
    /// What it is: `XLA HLO proto`.
    pub format: String,
    /// Its size, unpacked.
    pub bytes: u64,
    /// What is worth knowing about it.
    pub notes: Vec<String>,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// The accelerator a program was compiled for.
#[derive(Debug, Clone, Default)]
pub struct Device {
    /// `TPU v5e`; `None` where nothing says.
    pub name: Option<String>,
    /// What kind it is.
    pub kind: Option<DeviceKind>,
    /// How it is known.
    pub evidence: Option<String>,
    /// Memory spaces whose capacity is known, by colour.
    pub capacities: Vec<Capacity>,
}

impl Device {
    /// Capacity of a memory space.
    #[must_use]
    pub fn capacity(&self, color: MemorySpace) -> Option<&Capacity> {
        self.capacities.iter().find(|capacity| capacity.color == color)
    }
}

/// How much of a memory space a program may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// Memory space.
    pub color: MemorySpace,
    /// Bytes a program may use.
    pub bytes: Bytes,
    /// How it is known.
    pub evidence: String,
}

/// Kinds of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// Google's TPU.
    Tpu,
    /// A graphics processor.
    Gpu,
    /// Graphcore's IPU.
    Ipu,
    /// The host's processor.
    Cpu,
}

impl DeviceKind {
    /// Lower-case name, as the report writes it.
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

/// A memory space of a device, by the number that XLA calls its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MemorySpace(pub i64);

impl fmt::Display for MemorySpace {
    /// The number; [`Self::name`] has the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl MemorySpace {
    /// The main memory of every device: HBM of a TPU or GPU, RAM of a CPU.
    pub const HBM: Self = Self(0);
    /// A TPU core's vector memory.
    pub const VMEM: Self = Self(1);
    /// The common memory of some TPU generations' cores.
    pub const CMEM: Self = Self(3);
    /// A TPU core's scalar memory.
    pub const SMEM: Self = Self(4);

    /// Name on a kind of device: XProf's for the colours it knows, with what real dumps show for the rest.
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

    /// Whether `text` names the space: its name, XProf's name, or its number.
    #[must_use]
    pub fn is_named(self, text: &str, kind: Option<DeviceKind>) -> bool {
        text.eq_ignore_ascii_case(&self.name(kind))
            || text.eq_ignore_ascii_case(&self.name(None))
            || (self.0 == 6 && text.eq_ignore_ascii_case("SparseCore"))
            || text.parse() == Ok(self.0)
    }
}

/// How grave a [`Note`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteLevel {
    /// Worth knowing.
    Info,
    /// Something is missing or inconsistent; the rest holds.
    Warning,
    /// A file could not be read.
    Error,
}

/// What a [`Note`] is about, where the program acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoteCode {
    /// For people only.
    #[default]
    Other,
    /// A Poplar file that has no bytes by tile; another file of the same report may have them.
    NoTileBytes,
    /// A text was searched for out-of-memory messages and has none.
    NoFailureFound,
}

/// Something a person should know about what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub code: NoteCode,
    /// How grave it is.
    pub level: NoteLevel,
    /// One sentence, without a full stop.
    pub text: String,
    /// Byte offset in the file, where there is one.
    pub offset: Option<u64>,
}

impl Note {
    /// A note about the file as a whole.
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

/// The rows of a `*-live-range.txt`: XLA's own live ranges.
#[derive(Debug, Clone, Default)]
pub struct LiveRangeTable {
    /// File it comes from.
    pub path: String,
    /// `max N`.
    pub max: u32,
    /// Instruction names in order.
    pub sequence: Vec<String>,
    /// Value (`name{index}`), first and last point, in the file's order.
    pub rows: Vec<(String, u32, u32)>,
}
