//! Memory of an IPU by tile: bytes by tile, category and region, and liveness by program step.
//!
//! Every per-tile column has one value for each tile of the target, indexed by software tile: IPU × tiles per IPU +
//! tile. Evidence and grades of certainty of the formats: `formats/poplar.md` of the specification.

use super::ids::StringId;
use super::strings::Strings;

/// Rows kept for each tile of a [`TileRows`] whose cells are too many to keep.
pub const LARGEST_ROWS: usize = 8;

/// The memory of a Poplar program, tile by tile. A format fills in what it knows.
#[derive(Debug, Clone, Default)]
pub struct TileMemory {
    /// The machine it was compiled for.
    pub target: TileTarget,
    /// Bytes used, without gaps.
    pub total: Option<Vec<u64>>,
    /// Bytes up to the last one used: what must fit into the tile.
    pub including_gaps: Option<Vec<u64>>,
    /// Bytes by memory region (`interleaved`, `nonInterleaved`, `overflowed`), without gaps.
    pub regions: Vec<TileColumn>,
    /// The same with gaps.
    pub regions_including_gaps: Vec<TileColumn>,
    /// Bytes by storage category, in the file's order.
    pub categories: Vec<TileCategory>,
    /// Bytes that are live throughout.
    pub always_live: Option<Vec<u64>>,
    /// The most that is live only at times. Tiles peak at different steps, so the sum is above the peak.
    pub not_always_live_max: Option<Vec<u64>>,
    /// Liveness by program step.
    pub liveness: Liveness,
    /// Programs by id.
    pub programs: Vec<TileProgram>,
    /// Code and state by vertex type.
    pub vertex_types: TileRows,
    /// State in bytes of one vertex of each type, where known.
    pub vertex_sizes: Vec<u64>,
    /// Code by exchange.
    pub exchanges: TileRows,
    /// What compute sets need, where the file says.
    pub compute_sets: TileRows,
    /// Variables after lowering.
    pub variables: TileVariables,
    /// Software tile to physical tile id, where the profile carries it.
    pub physical: Option<Vec<u32>>,
    /// What the program was measured to do, joined by program.
    pub execution: Option<ExecutionProfile>,
    /// Whether per-category bytes tell apart what shares addresses; `profile.pop` cannot.
    pub overlap_known: bool,
}

/// The machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TileTarget {
    /// `IPU`, `IPU_MODEL`, `CPU`.
    pub kind: Option<String>,
    /// IPUs; at least 1.
    pub ipus: u32,
    /// Tiles of one IPU.
    pub tiles_per_ipu: u32,
    /// Memory of a tile.
    pub bytes_per_tile: Option<u64>,
    /// How `bytes_per_tile` is known.
    pub evidence: Option<String>,
    /// Cycles per second.
    pub clock_hz: Option<f64>,
    /// Offset in a tile at which interleaved memory begins.
    pub interleaved_start: Option<u64>,
}

/// One value for each tile, with a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileColumn {
    /// As the file calls it.
    pub name: String,
    /// Bytes by tile.
    pub bytes: Vec<u64>,
}

/// A storage category: what has its addresses alone, and what shares them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileCategory {
    /// As the file calls it: `variable`, `internalExchangeCode`.
    pub name: String,
    /// Bytes by tile that overlap nothing (all bytes, where the file does not tell).
    pub bytes: Vec<u64>,
    /// Bytes by tile that share addresses with others at other times. Never to be added to `bytes`.
    pub overlapped: Vec<u64>,
    /// The part of `bytes` that lies in interleaved memory.
    pub interleaved: Vec<u64>,
    /// The part of `bytes` that found no place.
    pub overflowed: Vec<u64>,
}

/// Bytes at the steps of a program.
#[derive(Debug, Clone, Default)]
pub struct Liveness {
    /// The forest of program visits, parents before children.
    pub nodes: Vec<LiveNode>,
    /// Nodes that are steps (they have no children, or bytes of their own), in order of execution.
    pub steps: Vec<u32>,
    /// Whether names of steps are matched with the programs by their order, which is a guess.
    pub names_are_guessed: bool,
    /// Names of steps and variables.
    pub strings: Strings,
    /// Variables that are live throughout: name and bytes.
    pub always_live_variables: Vec<(StringId, u64)>,
    /// Variables at a node of the forest: node, name, bytes; sorted by node.
    pub variables: Vec<(u32, StringId, u64)>,
}

/// A visit of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveNode {
    /// Bytes over all tiles that are live only at times.
    pub bytes: u64,
    /// Depth in the forest.
    pub depth: u32,
    /// Number of nodes below, which follow this one.
    pub below: u32,
    /// Name of the program; 0 where unknown.
    pub name: StringId,
    /// Id of the program, or [`NO_ROW`](super::NO_ROW).
    pub program: u32,
}

/// A program: a control-flow node or a lowered step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileProgram {
    /// `OnTileExecute`, `DoExchange`, `Sequence`; empty where the file says none.
    pub kind: String,
    /// Its name; may be empty.
    pub name: String,
    /// Ids of the programs below.
    pub children: Vec<u32>,
    /// Exchange, compute set, count or callee: key as in the file, and value.
    pub payload: Option<(String, u64)>,
    /// How often it ran, where an execution profile says.
    pub runs: Option<u64>,
}

/// Rows (vertex types, exchanges, compute sets) by tiles, folded into what is shown.
#[derive(Debug, Clone, Default)]
pub struct TileRows {
    /// One for each row.
    pub rows: Vec<TileRow>,
    /// Bytes of all rows by tile.
    pub by_tile: Vec<u64>,
    /// For each tile, up to [`LARGEST_ROWS`] rows with the most bytes, largest first.
    pub largest: Vec<Vec<(u32, u64)>>,
}

/// A row of [`TileRows`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileRow {
    /// Its name; may be empty.
    pub name: String,
    /// Bytes on all tiles.
    pub bytes: u64,
    /// The tile with the most, and its bytes.
    pub max: (u32, u64),
    /// Bytes by kind: `codeBytes`, `bytesSent`; index into the names that the file gave.
    pub parts: Vec<(&'static str, u64)>,
    /// Number of tiles that have any.
    pub tiles: u32,
}

/// Lowered variables, as columns.
#[derive(Debug, Clone, Default)]
pub struct TileVariables {
    /// Id in the file.
    pub id: Vec<u32>,
    /// Tile.
    pub tile: Vec<u32>,
    /// Name.
    pub name: Vec<StringId>,
    /// Category name.
    pub category: Vec<StringId>,
    /// Bytes.
    pub bytes: Vec<u64>,
    /// Offset in the tile; `u64::MAX` where unknown.
    pub offset: Vec<u64>,
    /// [`TileVariables::ALLOCATED`] and the others.
    pub flags: Vec<u8>,
    /// Names and categories.
    pub strings: Strings,
    /// Starts of the memory elements of a tile.
    pub memory_elements: Vec<u64>,
    /// Variables of the file that are not kept.
    pub left_out: u64,
}

impl TileVariables {
    /// It found a place.
    pub const ALLOCATED: u8 = 1;
    /// It lives throughout.
    pub const ALWAYS_LIVE: u8 = 2;
    /// It is constant.
    pub const CONSTANT: u8 = 4;
    /// It must lie in interleaved memory.
    pub const INTERLEAVED: u8 = 8;
    /// It is code.
    pub const EXECUTABLE: u8 = 16;

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }
}

/// What an execution profile says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionProfile {
    /// `NONE`, `COMPUTE_SETS`, …
    pub mode: Option<String>,
    /// Programs run, in all executions.
    pub runs: u64,
    /// Executions.
    pub executions: u32,
    /// Cycles of the simulation.
    pub cycles: Option<u64>,
    /// Cycles by kind: `compute`, `doExchange`, …
    pub tile_cycles: Vec<(String, u64)>,
    /// Steps of the simulation.
    pub steps: u64,
}

impl TileMemory {
    /// Number of tiles.
    #[must_use]
    pub fn tile_count(&self) -> usize {
        self.target.ipus as usize * self.target.tiles_per_ipu as usize
    }

    /// What must fit into a tile: including gaps where known.
    #[must_use]
    pub fn must_fit(&self) -> Option<&[u64]> {
        self.including_gaps.as_deref().or(self.total.as_deref())
    }

    /// The IPU of a tile.
    #[must_use]
    pub fn ipu_of(&self, tile: usize) -> usize {
        tile / (self.target.tiles_per_ipu as usize).max(1)
    }

    /// Name of a step of the liveness curve: the program's, or its kind.
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
