//! IPU memory by tile, category and region, and liveness by program step.
//!
//! Every per-tile column has one value for each tile of the target, indexed by software tile: IPU × tiles per IPU +
//! tile.

use super::ids::StringId;
use super::strings::Strings;

/// Number of largest rows kept for each tile in [`TileRows`].
pub const LARGEST_ROWS: usize = 8;

/// The memory of a Poplar program by tile. Columns that a format does not have are empty.
#[derive(Debug, Clone, Default)]
pub struct TileMemory {
    /// Target machine.
    pub target: TileTarget,
    /// Bytes used by tile, excluding gaps.
    pub total: Option<Vec<u64>>,
    /// Bytes up to the last one used, by tile: what must fit in the tile.
    pub including_gaps: Option<Vec<u64>>,
    /// Bytes by memory region (`interleaved`, `nonInterleaved`, `overflowed`), excluding gaps.
    pub regions: Vec<TileColumn>,
    /// Bytes by memory region, including gaps.
    pub regions_including_gaps: Vec<TileColumn>,
    /// Bytes by storage category, in file order.
    pub categories: Vec<TileCategory>,
    /// Always-live bytes by tile.
    pub always_live: Option<Vec<u64>>,
    /// Peak not-always-live bytes by tile. Tiles peak at different steps, so the sum exceeds the overall peak.
    pub not_always_live_max: Option<Vec<u64>>,
    /// Liveness by program step.
    pub liveness: Liveness,
    /// Programs, indexed by id.
    pub programs: Vec<TileProgram>,
    /// Vertex code and state by vertex type.
    pub vertex_types: TileRows,
    /// Bytes of state per vertex, by vertex type, if known.
    pub vertex_sizes: Vec<u64>,
    /// Exchange code by exchange.
    pub exchanges: TileRows,
    /// Memory of compute sets, if in the file.
    pub compute_sets: TileRows,
    /// Lowered variables.
    pub variables: TileVariables,
    /// Physical tile id by software tile, if in the file.
    pub physical: Option<Vec<u32>>,
    /// Execution profile, matched by program.
    pub execution: Option<ExecutionProfile>,
    /// Whether bytes by category distinguish overlapping from non-overlapping data; `profile.pop` does not.
    pub overlap_known: bool,
}

/// The target machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TileTarget {
    /// `IPU`, `IPU_MODEL`, `CPU`.
    pub kind: Option<String>,
    /// Number of IPUs, at least 1.
    pub ipus: u32,
    /// Tiles per IPU.
    pub tiles_per_ipu: u32,
    /// Memory of a tile in bytes.
    pub bytes_per_tile: Option<u64>,
    /// Evidence for `bytes_per_tile`, in words.
    pub evidence: Option<String>,
    /// Clock frequency in Hz.
    pub clock_hz: Option<f64>,
    /// Offset of interleaved memory in a tile, in bytes.
    pub interleaved_start: Option<u64>,
}

/// A named column with one value per tile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileColumn {
    /// Name in the file.
    pub name: String,
    /// Bytes by tile.
    pub bytes: Vec<u64>,
}

/// Bytes of a storage category by tile, split into non-overlapping and overlapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileCategory {
    /// Name in the file, such as `variable` or `internalExchangeCode`.
    pub name: String,
    /// Non-overlapping bytes by tile; all bytes if the file does not distinguish them.
    pub bytes: Vec<u64>,
    /// Overlapping bytes by tile: addresses reused at other times. Must not be added to `bytes`.
    pub overlapped: Vec<u64>,
    /// The part of `bytes` in interleaved memory.
    pub interleaved: Vec<u64>,
    /// The part of `bytes` that does not fit in the tile.
    pub overflowed: Vec<u64>,
}

/// Live bytes by program step.
#[derive(Debug, Clone, Default)]
pub struct Liveness {
    /// Forest of program visits in pre-order.
    pub nodes: Vec<LiveNode>,
    /// Nodes that are steps (leaves, and nodes with bytes of their own), in execution order.
    pub steps: Vec<u32>,
    /// Whether step names were guessed by matching programs in order.
    pub names_are_guessed: bool,
    /// Interned names of steps and variables.
    pub strings: Strings,
    /// Always-live variables: (name, bytes).
    pub always_live_variables: Vec<(StringId, u64)>,
    /// Variables live at a node: (node, name, bytes), sorted by node.
    pub variables: Vec<(u32, StringId, u64)>,
}

/// A visit of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveNode {
    /// Not-always-live bytes summed over all tiles.
    pub bytes: u64,
    /// Depth in the forest.
    pub depth: u32,
    /// Number of descendants, which directly follow this node.
    pub below: u32,
    /// Name of the program; 0 if unknown.
    pub name: StringId,
    /// Id of the program; [`NO_ROW`](super::NO_ROW) if unknown.
    pub program: u32,
}

/// A program: a control-flow node or a lowered step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileProgram {
    /// Kind: `OnTileExecute`, `DoExchange`, `Sequence`, …; empty if not in the file.
    pub kind: String,
    /// Its name; may be empty.
    pub name: String,
    /// Ids of child programs.
    pub children: Vec<u32>,
    /// (key in the file, value) of the exchange, compute set, count or callee.
    pub payload: Option<(String, u64)>,
    /// Number of executions, from an execution profile.
    pub runs: Option<u64>,
}

/// Bytes of rows (vertex types, exchanges or compute sets) by tile, reduced to totals and the largest.
#[derive(Debug, Clone, Default)]
pub struct TileRows {
    /// Rows.
    pub rows: Vec<TileRow>,
    /// Total bytes of all rows by tile.
    pub by_tile: Vec<u64>,
    /// By tile, up to [`LARGEST_ROWS`] rows with the most bytes, largest first.
    pub largest: Vec<Vec<(u32, u64)>>,
}

/// A row of [`TileRows`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileRow {
    /// Its name; may be empty.
    pub name: String,
    /// Bytes summed over all tiles.
    pub bytes: u64,
    /// (tile with the most bytes, its bytes)
    pub max: (u32, u64),
    /// (key in the file such as `codeBytes`, bytes)
    pub parts: Vec<(&'static str, u64)>,
    /// Number of tiles with any bytes.
    pub tiles: u32,
}

/// Columns of lowered variables.
#[derive(Debug, Clone, Default)]
pub struct TileVariables {
    /// Ids in the file.
    pub id: Vec<u32>,
    /// Tile.
    pub tile: Vec<u32>,
    /// Name.
    pub name: Vec<StringId>,
    /// Category name.
    pub category: Vec<StringId>,
    /// Bytes.
    pub bytes: Vec<u64>,
    /// Offset in the tile in bytes; `u64::MAX` if unknown.
    pub offset: Vec<u64>,
    /// Flags: [`TileVariables::ALLOCATED`] and the other constants.
    pub flags: Vec<u8>,
    /// Interned names and categories.
    pub strings: Strings,
    /// Start offsets of a tile's memory elements in bytes.
    pub memory_elements: Vec<u64>,
    /// Number of variables in the file that were not kept.
    pub left_out: u64,
}

impl TileVariables {
    /// Has an address.
    pub const ALLOCATED: u8 = 1;
    /// Always live.
    pub const ALWAYS_LIVE: u8 = 2;
    /// Constant.
    pub const CONSTANT: u8 = 4;
    /// Requires interleaved memory.
    pub const INTERLEAVED: u8 = 8;
    /// Executable code.
    pub const EXECUTABLE: u8 = 16;

    /// Number of variables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there are no variables.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }
}

/// An execution profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionProfile {
    /// `NONE`, `COMPUTE_SETS`, …
    pub mode: Option<String>,
    /// Number of program runs in all executions.
    pub runs: u64,
    /// Number of executions.
    pub executions: u32,
    /// Simulated cycles.
    pub cycles: Option<u64>,
    /// Cycles by kind such as `compute` and `doExchange`.
    pub tile_cycles: Vec<(String, u64)>,
    /// Number of simulated steps.
    pub steps: u64,
}

impl TileMemory {
    /// Number of tiles.
    #[must_use]
    pub fn tile_count(&self) -> usize {
        self.target.ipus as usize * self.target.tiles_per_ipu as usize
    }

    /// Bytes by tile that must fit in the tile, including gaps if known; `None` if there are no bytes by tile.
    #[must_use]
    pub fn must_fit(&self) -> Option<&[u64]> {
        self.including_gaps.as_deref().or(self.total.as_deref())
    }

    /// The IPU of a tile.
    #[must_use]
    pub fn ipu_of(&self, tile: usize) -> usize {
        tile / (self.target.tiles_per_ipu as usize).max(1)
    }

    /// Name of a step in the liveness curve: the program's name or else its kind.
    #[must_use]
    pub fn step_name(&self, step: usize) -> &str {
        let Some(node) = self.liveness.steps.get(step).and_then(|&node| self.liveness.nodes.get(node as usize)) else {
            return "";
        };
        let name = self.liveness.strings.get(node.name);
        if !name.is_empty() {
            return name;
        }
        self.programs.get(node.program as usize).map_or("", |program| &program.kind)
    }
}

/// A camel-case key of a file as words: `internalExchangeCode` is "Internal exchange code".
#[must_use]
pub fn in_words(key: &str) -> String {
    let mut words = String::with_capacity(key.len() + 4);
    for (i, c) in key.chars().enumerate() {
        if i == 0 {
            words.extend(c.to_uppercase());
        } else if c.is_uppercase() {
            words.push(' ');
            words.extend(c.to_lowercase());
        } else {
            words.push(c);
        }
    }
    words
}
