//! State of reading a Poplar report, whose parts may come in any order; and its conversion to the model.

use super::rows::{RowFolder, append};
use crate::decode::Reporter;
use crate::model::{
    ExecutionProfile, Fact, LiveNode, Liveness, TileCategory, TileColumn, TileMemory, TileProgram, TileVariables,
};

/// Maximum total bytes of names.
const MAX_NAMES: usize = 64 << 20;

/// Names are truncated to this many bytes.
const MAX_NAME: usize = 1024;

/// Most unknown keys that are kept.
const MAX_UNKNOWN: usize = 60;

/// Everything read so far.
#[derive(Debug, Default)]
pub struct State {
    /// `target.type`.
    pub target_kind: Option<String>,
    /// `target.numIPUs`.
    pub ipus: Option<u64>,
    /// `target.tilesPerIPU`.
    pub tiles_per_ipu: Option<u64>,
    /// `target.numTiles`.
    pub tiles: Option<u64>,
    /// `target.bytesPerTile`.
    pub bytes_per_tile: Option<u64>,
    /// `target.clockFrequency`.
    pub clock_hz: Option<f64>,
    /// `targetMemoryInfo.interleavedMemoryStart`.
    pub interleaved_start: Option<u64>,
    /// `memory.byTile`, by key.
    pub by_tile: Vec<TileColumn>,
    /// `memory.byCategory`.
    pub categories: Vec<TileCategory>,
    /// Whether any category distinguishes overlapped bytes.
    pub overlap_known: bool,
    /// `memory.byVertexType`.
    pub vertex_types: RowFolder,
    /// `vertexTypes.names`.
    pub vertex_names: Vec<String>,
    /// `vertexTypes.sizes`.
    pub vertex_sizes: Vec<u64>,
    /// `memory.byComputeSet`, cycle estimates.
    pub compute_sets: RowFolder,
    /// `computeSets.names`.
    pub compute_set_names: Vec<String>,
    /// Exchanges inside an IPU, between IPUs, with the host.
    pub exchanges: [Option<RowFolder>; 3],
    /// `programs`.
    pub programs: Vec<TileProgram>,
    /// `memory.liveness.alwaysLive.bytesByTile`.
    pub always_live: Option<Vec<u64>>,
    /// `memory.liveness.notAlwaysLive.maxBytesByTile`.
    pub not_always_live_max: Option<Vec<u64>>,
    /// `memory.liveness`.
    pub liveness: Liveness,
    /// Lowered variables.
    pub variables: TileVariables,
    /// ExecutionProfile profiles.
    pub execution: Option<ExecutionProfile>,
    /// How often each program ran.
    pub runs: Vec<u64>,
    /// Physical ids.
    pub physical: Option<Vec<u32>>,
    /// For reading.
    pub facts: Vec<Fact>,
    /// Unknown keys, with the type of their value.
    pub unknown: Vec<String>,
    unknown_more: usize,
    names: usize,
}

impl State {
    /// Keeps a name, within bounds.
    pub fn name(&mut self, text: &str) -> String {
        let end = text.floor_char_boundary(MAX_NAME);
        if self.names + end > MAX_NAMES {
            return String::new();
        }
        self.names += end;
        text[..end].to_owned()
    }

    /// Keeps an unknown key.
    pub fn unknown(&mut self, path: &str, holds: &str) {
        if self.unknown.iter().any(|known| known.split(' ').next() == Some(path)) {
            return;
        }
        if self.unknown.len() < MAX_UNKNOWN {
            self.unknown.push(format!("{path} ({holds})"));
        } else {
            self.unknown_more += 1;
        }
    }

    /// Keeps a fact.
    pub fn fact(&mut self, group: &str, key: &str, value: String) {
        if self.facts.len() < 4000 {
            self.facts.push(Fact { group: group.to_owned(), key: key.to_owned(), value });
        }
    }

    /// A column of `memory.byTile`.
    fn take_column(&mut self, name: &str) -> Option<Vec<u64>> {
        let at = self.by_tile.iter().position(|column| column.name == name)?;
        Some(self.by_tile.remove(at).bytes)
    }

    /// Whether something about tiles was found.
    fn has_tiles(&self) -> bool {
        self.bytes_per_tile.is_some()
            || self.tiles.is_some()
            || !self.by_tile.is_empty()
            || !self.categories.is_empty()
            || !self.liveness.nodes.is_empty()
            || !self.variables.is_empty()
    }

    /// Converts to the model; contradictions go to the reporter.
    pub fn finish(mut self, reporter: &Reporter) -> (Option<TileMemory>, Vec<Fact>) {
        if !self.unknown.is_empty() {
            let more = if self.unknown_more > 0 { format!(" and {} more", self.unknown_more) } else { String::new() };
            reporter.info(format!("Not understood and ignored: {}{more}", self.unknown.join(", ")));
        }
        if !self.has_tiles() && self.programs.is_empty() && self.execution.is_none() {
            return (None, self.facts);
        }
        let tiles = self.tile_count(reporter);
        let mut memory = TileMemory { overlap_known: self.overlap_known, ..TileMemory::default() };
        let per_ipu = self.tiles_per_ipu(tiles);
        memory.target.ipus = u32::try_from(tiles.checked_div(per_ipu).unwrap_or(1).max(1)).unwrap_or(1);
        memory.target.tiles_per_ipu = per_ipu as u32;
        memory.target.kind = self.target_kind.take();
        memory.target.clock_hz = self.clock_hz;
        memory.target.interleaved_start = self.interleaved_start;
        (memory.target.bytes_per_tile, memory.target.evidence) = match (self.bytes_per_tile, tiles) {
            (Some(bytes), _) => (Some(bytes), Some("target.bytesPerTile of the profile".to_owned())),
            _ => guess_bytes_per_tile(per_ipu),
        };
        if memory.target.interleaved_start.is_none() {
            memory.target.interleaved_start = interleaved_start(memory.target.bytes_per_tile);
        }
        let fit = |column: Option<Vec<u64>>, name: &str| column.map(|column| fitted(column, tiles, name, reporter));
        memory.total = fit(self.take_column("total"), "memory.byTile.total");
        memory.including_gaps = fit(self.take_column("totalIncludingGaps"), "memory.byTile.totalIncludingGaps");
        memory.always_live = fit(self.always_live.take(), "memory.liveness.alwaysLive.bytesByTile");
        memory.not_always_live_max =
            fit(self.not_always_live_max.take(), "memory.liveness.notAlwaysLive.maxBytesByTile");
        for column in std::mem::take(&mut self.by_tile) {
            let bytes = fitted(column.bytes, tiles, &column.name, reporter);
            match column.name.strip_suffix("IncludingGaps") {
                Some(name) => {
                    memory.regions_including_gaps.push(TileColumn { name: name.to_owned(), bytes });
                }
                None => memory.regions.push(TileColumn { name: column.name, bytes }),
            }
        }
        memory.categories = std::mem::take(&mut self.categories);
        for category in &mut memory.categories {
            for part in
                [&mut category.bytes, &mut category.overlapped, &mut category.interleaved, &mut category.overflowed]
            {
                part.resize(tiles, 0);
            }
        }
        memory.vertex_types =
            named(std::mem::take(&mut self.vertex_types), &self.vertex_names, reporter, "vertex types");
        memory.compute_sets =
            named(std::mem::take(&mut self.compute_sets), &self.compute_set_names, reporter, "compute sets");
        memory.vertex_sizes = std::mem::take(&mut self.vertex_sizes);
        self.finish_exchanges(&mut memory, reporter);
        memory.programs = std::mem::take(&mut self.programs);
        if memory.programs.is_empty() {
            // An execution profile alone: the programs' names are in the graph profile.
            memory.programs.resize(self.runs.len(), TileProgram::default());
        }
        for (program, runs) in memory.programs.iter_mut().zip(&self.runs) {
            program.runs = Some(*runs);
        }
        memory.liveness = self.finish_liveness(&memory.programs);
        memory.variables = std::mem::take(&mut self.variables);
        memory.execution = self.execution.take();
        memory.physical = self.physical.take();
        check(&memory, reporter);
        (Some(memory), self.facts)
    }

    /// Number of tiles of the target; if not stated, the length of the longest column.
    fn tile_count(&self, reporter: &Reporter) -> usize {
        let longest = self
            .by_tile
            .iter()
            .map(|column| column.bytes.len())
            .chain(self.categories.iter().map(|category| category.bytes.len().max(category.overlapped.len())))
            .chain(self.always_live.as_ref().map(Vec::len))
            .chain([self.vertex_types.tiles()])
            .chain(self.variables.tile.iter().map(|&tile| tile as usize + 1))
            .max()
            .unwrap_or(0)
            .min(super::rows::MAX_TILES);
        let said = self.tiles.or_else(|| self.ipus?.checked_mul(self.tiles_per_ipu?));
        match said {
            Some(said) if said as usize >= longest && said <= super::rows::MAX_TILES as u64 => said as usize,
            Some(said) => {
                reporter.warn(format!("The target has {said} tiles, but there are values for {longest}"), None);
                longest
            }
            None => longest,
        }
    }

    fn tiles_per_ipu(&self, tiles: usize) -> usize {
        if let Some(per_ipu) = self.tiles_per_ipu.filter(|&per| per > 0 && tiles.is_multiple_of(per as usize)) {
            return per_ipu as usize;
        }
        if let Some(ipus) = self.ipus.filter(|&ipus| ipus > 0 && tiles.is_multiple_of(ipus as usize)) {
            return tiles / ipus as usize;
        }
        [1472, 1216].into_iter().find(|per| tiles > 0 && tiles.is_multiple_of(*per)).unwrap_or(tiles)
    }

    fn finish_exchanges(&mut self, memory: &mut TileMemory, reporter: &Reporter) {
        for (kind, folder) in ["exchange", "external exchange", "host exchange"].iter().zip(&mut self.exchanges) {
            let Some(folder) = folder.take() else { continue };
            let mut table = named(folder, &[], reporter, "exchanges");
            for (index, row) in table.rows.iter_mut().enumerate() {
                row.name = format!("{kind} {index}");
            }
            if *kind == "exchange" {
                for program in &self.programs {
                    if let Some((key, id)) = &program.payload
                        && key.to_ascii_lowercase().contains("exchange")
                        && let Some(row) = table.rows.get_mut(*id as usize)
                        && !program.name.is_empty()
                    {
                        row.name = format!("{} ({kind} {id})", program.name);
                    }
                }
            }
            append(&mut memory.exchanges, table);
        }
    }

    /// Counts the descendants of each node and names the steps.
    fn finish_liveness(&mut self, programs: &[TileProgram]) -> Liveness {
        let mut liveness = std::mem::take(&mut self.liveness);
        let mut open: Vec<usize> = Vec::new();
        for at in 0..=liveness.nodes.len() {
            let depth = liveness.nodes.get(at).map_or(0, |node| node.depth);
            while open.len() > depth as usize {
                if let Some(parent) = open.pop() {
                    liveness.nodes[parent].below = (at - parent - 1) as u32;
                }
            }
            open.push(at);
        }
        liveness.steps = (0..liveness.nodes.len() as u32)
            .filter(|&node| {
                let node = &liveness.nodes[node as usize];
                node.below == 0 || node.bytes > 0
            })
            .collect();
        super::step_names::name_steps(&mut liveness, programs);
        liveness.variables.sort_by_key(|&(node, _, bytes)| (node, std::cmp::Reverse(bytes)));
        liveness
    }

    /// A new node of the liveness forest.
    pub fn push_node(&mut self, depth: u32) -> usize {
        self.liveness.nodes.push(LiveNode {
            bytes: 0,
            depth,
            below: 0,
            name: crate::model::StringId(0),
            program: crate::model::NO_ROW,
        });
        self.liveness.nodes.len() - 1
    }
}

fn named(folder: RowFolder, names: &[String], reporter: &Reporter, what: &str) -> crate::model::TileRows {
    if folder.lost_cells() {
        reporter.info(format!("Too many {what} × tiles to keep each value: only totals are shown"));
    }
    let mut table = folder.finish();
    for (row, name) in table.rows.iter_mut().zip(names) {
        row.name.clone_from(name);
    }
    table
}

/// A column with one value for each tile.
fn fitted(mut column: Vec<u64>, tiles: usize, name: &str, reporter: &Reporter) -> Vec<u64> {
    if column.len() < tiles {
        reporter.warn(format!("{name} has values for {} of {tiles} tiles; the others count as 0", column.len()), None);
    }
    column.resize(tiles, 0);
    column
}

/// Memory of a tile in bytes by the number of tiles of an IPU, for files that do not state it.
pub fn guess_bytes_per_tile(tiles_per_ipu: usize) -> (Option<u64>, Option<String>) {
    match tiles_per_ipu {
        1472 => (Some(638_976), Some("guessed: 1472 tiles to an IPU are a Mk2".to_owned())),
        1216 => (Some(262_144), Some("guessed: 1216 tiles to an IPU are a Mk1".to_owned())),
        _ => (None, None),
    }
}

/// Offset of interleaved memory on the two real machines.
const fn interleaved_start(bytes_per_tile: Option<u64>) -> Option<u64> {
    match bytes_per_tile {
        Some(638_976) => Some(212_992),
        Some(262_144) => Some(131_072),
        _ => None,
    }
}

/// Checks invariants between the columns and warns if they do not hold.
fn check(memory: &TileMemory, reporter: &Reporter) {
    let below = |low: Option<&[u64]>, high: Option<&[u64]>, text: &str| {
        let (Some(low), Some(high)) = (low, high) else { return };
        let wrong = low.iter().zip(high).filter(|(low, high)| low > high).count();
        if wrong > 0 {
            reporter.warn(format!("On {wrong} tiles {text}"), None);
        }
    };
    let total = memory.total.as_deref();
    below(total, memory.including_gaps.as_deref(), "the total without gaps is above the one with gaps");
    below(memory.always_live.as_deref(), total, "the bytes that are always live are above the total");
    let names: Vec<&str> = memory.regions.iter().map(|region| region.name.as_str()).collect();
    if let Some(total) = total
        && ["interleaved", "nonInterleaved", "overflowed"].iter().all(|name| names.contains(name))
    {
        let differ = (0..total.len())
            .filter(|&tile| {
                let sum = memory.regions.iter().fold(0, |sum: u64, region| sum.saturating_add(region.bytes[tile]));
                sum != total[tile]
            })
            .count();
        if differ > 0 {
            reporter.warn(format!("On {differ} tiles the regions do not add up to the total"), None);
        }
    }
}
