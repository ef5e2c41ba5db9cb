//! The tables and their columns. Columns may be added at the end; none is renamed, removed or changed in meaning.

use std::fmt::{self, Write as _};
use std::str::FromStr;

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// Memory spaces of programs, tile memories and allocators.
    Programs,
    /// Logical buffers.
    Buffers,
    /// Tiles of IPUs.
    Tiles,
    /// What each tile holds.
    TileCategories,
    /// Heap and allocator events.
    Events,
    /// What the advisor found.
    Findings,
    /// Files that could not be read.
    Errors,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8 text.
    Text,
    /// A signed 64-bit number.
    Int,
    /// True or false.
    Bool,
    /// Milliseconds since 1970, UTC.
    Time,
}

impl Kind {
    /// Its name in the documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int => "int64",
            Self::Bool => "bool",
            Self::Time => "timestamp",
        }
    }
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// What it means, with its unit.
    pub meaning: &'static str,
}

const fn text(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Text, meaning }
}

const fn int(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Int, meaning }
}

const fn flag(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Bool, meaning }
}

const KEY: Column = text("program_key", "Joins the tables; the same in every export of the same path");
const FILE: Column = text("file", "Path of the file, as it was found");
const PROGRAM: Column = text("program", "Name of the module");
const SPACE: Column = text("space", "Memory space: `HBM`, `VMEM`");

/// Columns of [`Table::Programs`].
pub(super) const PROGRAMS: [Column; 31] = [
    KEY,
    FILE,
    PROGRAM,
    Column { name: "file_time", kind: Kind::Time, meaning: "When the file, or the archive it is in, was modified" },
    text("profile", "Name of the profile, as the report gives it"),
    text("program_id", "Program id in the trace"),
    text("kind", "`program` for a memory space of a program, `tiles` for an IPU, `allocator` for a history"),
    text("space", "Memory space: `HBM`, `VMEM`; `tile` for an IPU, the allocator's name for a history"),
    text("device", "Device, such as `TPU v5e`"),
    text("device_kind", "`tpu`, `gpu`, `ipu` or `cpu`"),
    int("replicas", "Number of replicas"),
    int("partitions", "Number of partitions"),
    int("instructions", "Number of instructions"),
    text("verdict", "`fits`, `over` or `unknown`: allocated bytes against the capacity"),
    int("capacity_bytes", "Bytes that a program may use"),
    int("allocated_bytes", "Allocated bytes (XProf's `totalBufferAllocationMib`); of the fullest tile for an IPU"),
    int("over_by_bytes", "Allocated bytes beyond the capacity; 0 if it fits"),
    int("always_live_bytes", "Bytes that live throughout (XProf's `indefiniteBufferAllocationMib`)"),
    int("argument_bytes", "Bytes of the arguments"),
    int("output_bytes", "Bytes of the results, donated arguments included"),
    int("peak_bytes", "Highest use (XProf's `peakHeapMib`)"),
    int("reserved_peak_bytes", "Highest use counted by address, over every buffer"),
    int("content_peak_bytes", "Highest number of bytes that hold live values"),
    int("padding_at_peak_bytes", "Padding of the buffers live at the peak"),
    int("fragmentation_bytes", "Allocated bytes less the highest use counted by address"),
    int("peak_step", "First step of the peak; picoseconds for an allocator"),
    int("steps", "Number of steps in program order"),
    int("buffers", "Number of logical buffers; of tiles for an IPU, of events for an allocator"),
    int("tiles_over", "Number of tiles over their capacity"),
    int("rematerialised", "Number of instructions whose names say that the compiler recomputes them"),
    int("file_bytes", "Size of the file, decompressed if that is known"),
];

/// Columns of [`Table::Buffers`].
pub(super) const BUFFERS: [Column; 23] = [
    KEY,
    FILE,
    PROGRAM,
    SPACE,
    int("buffer_id", "Number in the file"),
    text("name", "`instruction` or `instruction{i,j}`"),
    int("bytes", "Size, padding included"),
    int("unpadded_bytes", "Size without padding"),
    int("padding_bytes", "Size less size without padding; negative for a few tuple tables"),
    text("shape", "Element type and dimensions"),
    text("element_type", "Element type: `bf16`"),
    text("category", "Category according to the compiler: `Parameter`, `Temporary`"),
    text("class", "Most likely purpose: `weight`, `activation`"),
    text("class_certainty", "`known`, `likely` or `guess`"),
    text("opcode", "Kind of the instruction that makes it"),
    text("op_name", "The framework's name of the operation, or the label where that does not tell what it is"),
    text("scope", "Name scope with equal layers folded: `layer_*/attn`"),
    text("source", "`file:line`"),
    int("allocation", "Index of its allocation"),
    int("offset", "Offset in its allocation in bytes"),
    int("first_step", "First step at which memory is reserved for it"),
    int("last_step", "Last step at which memory is reserved for it"),
    int("at_peak_bytes", "Bytes that it contributes to the peak; 0 if it is not live there"),
];

/// Columns of [`Table::Tiles`].
pub(super) const TILES: [Column; 9] = [
    KEY,
    FILE,
    int("tile", "Number of the tile: IPU times tiles of an IPU, plus tile"),
    int("ipu", "Number of the IPU"),
    int("bytes", "Bytes in use, without gaps"),
    int("bytes_including_gaps", "Bytes up to the last one in use, which must fit"),
    int("always_live_bytes", "Bytes that live throughout"),
    int("not_always_live_bytes", "Most bytes of what does not live throughout"),
    int("capacity_bytes", "Memory of a tile"),
];

/// Columns of [`Table::TileCategories`].
pub(super) const TILE_CATEGORIES: [Column; 6] = [
    KEY,
    FILE,
    int("tile", "Number of the tile"),
    text("category", "Storage category, as the file names it: `variable`"),
    int("bytes", "Bytes that share their addresses with nothing else"),
    int("overlapped_bytes", "Bytes at addresses used by others at other times; never to be added to `bytes`"),
];

/// Columns of [`Table::Events`].
pub(super) const EVENTS: [Column; 15] = [
    KEY,
    FILE,
    PROGRAM,
    text("space", "Memory space, or the allocator's name"),
    text("source", "`heap` for the compiler's simulation, `allocator` for what ran"),
    int("event", "Number of the event"),
    int("step", "Step in program order; training step for an allocator"),
    int("time_ps", "Time in picoseconds since the start of the trace; null for the compiler's simulation"),
    text("action", "`allocate`, `free`, `share` or `other`"),
    int("buffer_id", "Number of the buffer in the file"),
    int("address", "Address, for an allocator"),
    int("bytes", "Bytes of the buffer"),
    int("live_bytes", "Bytes live after the event"),
    int("live_unpadded_bytes", "The same without padding"),
    text("op_name", "The framework's name of the operation, for an allocator"),
];

/// Columns of [`Table::Findings`].
pub(super) const FINDINGS: [Column; 15] = [
    KEY,
    FILE,
    PROGRAM,
    SPACE,
    text("rule", "Name of the rule: `donation`"),
    text("severity", "`critical`, `warning` or `hint`"),
    text("title", "What, and how much"),
    text("why", "The evidence"),
    text("advice", "What to do, a line for each piece of advice"),
    int("saves_bytes", "Bytes by which the peak falls"),
    int("peak_after_bytes", "The peak after the change"),
    flag("fits_after", "Whether the program fits after the change"),
    text("changes_results", "Whether results may change: `no`, `maybe` or `yes`"),
    flag("is_guess", "Whether it rests on names alone"),
    text("reference", "Page to read"),
];

/// Columns of [`Table::Errors`].
pub(super) const ERRORS: [Column; 2] = [FILE, text("error", "Why it could not be read, or not to its end")];

impl Table {
    /// All tables.
    pub const ALL: [Self; 7] =
        [Self::Programs, Self::Buffers, Self::Tiles, Self::TileCategories, Self::Events, Self::Findings, Self::Errors];

    /// Its name, which is that of its file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Programs => "programs",
            Self::Buffers => "buffers",
            Self::Tiles => "tiles",
            Self::TileCategories => "tile_categories",
            Self::Events => "events",
            Self::Findings => "findings",
            Self::Errors => "errors",
        }
    }

    /// What a row of it is.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Programs => "A row for each memory space of a program, each IPU profile and each allocator's history",
            Self::Buffers => "A row for each logical buffer of a memory space",
            Self::Tiles => "A row for each tile of an IPU profile",
            Self::TileCategories => "A row for each tile and storage category that has bytes",
            Self::Events => "A row for each event of a heap simulation or an allocator's history",
            Self::Findings => "A row for each finding of the advisor, the most severe of a file first",
            Self::Errors => "A row for each file that could not be read, or not to its end",
        }
    }

    /// Its columns.
    #[must_use]
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Programs => &PROGRAMS,
            Self::Buffers => &BUFFERS,
            Self::Tiles => &TILES,
            Self::TileCategories => &TILE_CATEGORIES,
            Self::Events => &EVENTS,
            Self::Findings => &FINDINGS,
            Self::Errors => &ERRORS,
        }
    }
}

/// Every table with its columns, as Markdown.
#[must_use]
pub fn describe() -> String {
    let mut out = String::new();
    for table in Table::ALL {
        let _ = write!(out, "\n## {table}\n\n{}.\n\n| column | type | meaning |\n|---|---|---|\n", table.meaning());
        for column in table.columns() {
            let _ = writeln!(out, "| `{}` | {} | {} |", column.name, column.kind.name(), column.meaning);
        }
    }
    out
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Table {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|table| table.name() == text);
        found.ok_or_else(|| format!("'{text}' is none of {}", Self::ALL.map(Self::name).join(", ")))
    }
}
