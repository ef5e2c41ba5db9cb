//! IPU tile memory in the report: as data, as text and in a document.

use std::fmt::Write as _;

use serde::Serialize;

use crate::analysis::tiles::TileAnalysis;
use crate::export::document::{Block, Document, Line, Table, Tone};
use crate::model::{Bytes, TileMemory, UnitSystem, percent, thousands};

/// The memory of an IPU.
#[derive(Debug, Serialize)]
pub struct TilesReport {
    /// Number of tiles of the target.
    pub tile_count: usize,
    /// Number of IPUs.
    pub ipu_count: u32,
    /// Memory of one tile in bytes.
    pub bytes_per_tile: Option<u64>,
    /// Where that number comes from.
    pub bytes_per_tile_evidence: Option<String>,
    /// Bytes on all tiles, without gaps.
    pub total_bytes: Option<u64>,
    /// Bytes on all tiles, with gaps.
    pub total_including_gaps_bytes: Option<u64>,
    /// Number of the fullest tile.
    pub max_tile: Option<u32>,
    /// Bytes on it, with gaps where they are known.
    pub max_tile_bytes: Option<u64>,
    /// Mean of the same over all tiles.
    pub mean_tile_bytes: Option<f64>,
    /// Tiles whose memory is exceeded.
    pub tiles_over: Vec<u32>,
    /// Excess of the fullest tile.
    pub worst_over_by_bytes: u64,
    /// Always-live bytes.
    pub always_live_bytes: Option<u64>,
    /// Peak over all steps of not-always-live bytes.
    pub peak_not_always_live_bytes: Option<u64>,
    /// Sum of the two.
    pub peak_live_bytes: Option<u64>,
    /// Step of that peak.
    pub peak_step: Option<u32>,
    /// Name of that step.
    pub peak_step_name: Option<String>,
    /// Bytes lost in gaps between variables.
    pub gap_bytes: Option<u64>,
    /// Of these, the bytes below the interleaved region.
    pub gap_below_interleaved_bytes: Option<u64>,
    /// Bytes by category, in the order of the file.
    pub by_category: Vec<TileCategoryReport>,
    /// Bytes by memory region.
    pub by_region: Option<Vec<RegionReport>>,
    /// The fullest tiles, fullest first.
    pub worst_tiles: Vec<WorstTile>,
}

/// A category.
#[derive(Debug, Serialize)]
pub struct TileCategoryReport {
    /// Name of the category.
    pub category: String,
    /// Bytes at addresses not shared with anything.
    pub bytes: u64,
    /// Bytes that share addresses over time.
    pub overlapped_bytes: Option<u64>,
}

/// A region.
#[derive(Debug, Serialize)]
pub struct RegionReport {
    /// Name of the region.
    pub region: String,
    /// Bytes.
    pub bytes: u64,
}

/// One of the fullest tiles.
#[derive(Debug, Serialize)]
pub struct WorstTile {
    /// Number of the tile in software order.
    pub tile: u32,
    /// Number of its IPU.
    pub ipu: usize,
    /// Bytes that must fit on the tile.
    pub bytes: u64,
}

/// Fills the report; `top` rows in lists.
pub fn report(memory: &TileMemory, tiles: &TileAnalysis, top: usize) -> TilesReport {
    let gaps = tiles.gaps.as_ref().map(|gaps| gaps.sums());
    let peak_name = tiles.peak.map(|peak| memory.step_name(peak.step as usize)).filter(|name| !name.is_empty());
    TilesReport {
        tile_count: memory.tile_count(),
        ipu_count: memory.target.ipus,
        bytes_per_tile: tiles.limit,
        bytes_per_tile_evidence: memory.target.evidence.clone(),
        total_bytes: tiles.total,
        total_including_gaps_bytes: tiles.total_including_gaps,
        max_tile: tiles.max.map(|max| max.0),
        max_tile_bytes: tiles.max.map(|max| max.1),
        mean_tile_bytes: tiles.max.map(|_| tiles.mean),
        tiles_over: tiles.over.clone(),
        worst_over_by_bytes: tiles.worst_over_by,
        always_live_bytes: tiles.always_live,
        peak_not_always_live_bytes: tiles.peak.map(|peak| peak.bytes),
        peak_live_bytes: tiles.peak_live(),
        peak_step: tiles.peak.map(|peak| peak.step),
        peak_step_name: peak_name.map(|name| {
            let guess = if memory.liveness.names_are_guessed { " (matched by order)" } else { "" };
            format!("{name}{guess}")
        }),
        gap_bytes: gaps.map(|gaps| gaps.bytes),
        gap_below_interleaved_bytes: gaps.and_then(|gaps| gaps.below_interleaved),
        by_category: tiles
            .categories
            .iter()
            .map(|category| TileCategoryReport {
                category: category.name.clone(),
                bytes: category.bytes,
                overlapped_bytes: category.overlapped,
            })
            .collect(),
        by_region: (!tiles.regions.is_empty()).then(|| {
            tiles.regions.iter().map(|(region, bytes)| RegionReport { region: region.clone(), bytes: *bytes }).collect()
        }),
        worst_tiles: TileAnalysis::worst_tiles(memory, top)
            .into_iter()
            .map(|(tile, bytes)| WorstTile { tile, ipu: memory.ipu_of(tile as usize), bytes })
            .collect(),
    }
}

/// The answer in one line.
pub fn headline(tiles: &TilesReport) -> String {
    let (Some(tile), Some(bytes)) = (tiles.max_tile, tiles.max_tile_bytes) else {
        return "Memory per tile is unknown".to_owned();
    };
    let bytes = Bytes(bytes);
    let Some(limit) = tiles.bytes_per_tile.map(Bytes) else {
        return format!("The fullest tile is {tile} with {}", bytes.short());
    };
    let units = UnitSystem::Binary;
    let (bytes, limit) = (units.beside(bytes, limit), units.capacity(limit));
    match tiles.tiles_over.len() {
        0 => format!("Fits: the fullest, tile {tile}, holds {bytes} of {limit}"),
        over => {
            let by = Bytes(tiles.worst_over_by_bytes).short();
            let of = thousands(tiles.tile_count as u64);
            let what = if over == 1 { "tile does" } else { "tiles do" };
            format!(
                "Does not fit: {} of {of} {what} not; the worst, tile {tile}, needs {bytes} of {limit}, {by} too much",
                thousands(over as u64)
            )
        }
    }
}

/// Label, bytes and remark of each line, for text and Markdown.
fn lines(tiles: &TilesReport) -> Vec<(String, u64, String)> {
    let mut lines = Vec::new();
    let mut line = |label: &str, bytes: Option<u64>, remark: String| {
        lines.extend(bytes.map(|bytes| (label.to_owned(), bytes, remark)));
    };
    line("used, without gaps", tiles.total_bytes, String::new());
    line("including gaps", tiles.total_including_gaps_bytes, String::new());
    let below = tiles.gap_below_interleaved_bytes;
    line(
        "gaps",
        tiles.gap_bytes,
        match (tiles.gap_bytes, below) {
            (Some(gaps), Some(below)) => format!(
                "{} below the interleaved region, {} fragmentation",
                Bytes(below).short(),
                Bytes(gaps.saturating_sub(below)).short()
            ),
            _ => String::new(),
        },
    );
    line("always live", tiles.always_live_bytes, String::new());
    let step = match (tiles.peak_step, &tiles.peak_step_name) {
        (Some(step), Some(name)) => format!("at step {step}, {name}"),
        (Some(step), None) => format!("at step {step}"),
        _ => String::new(),
    };
    line("peak of the rest", tiles.peak_not_always_live_bytes, step);
    line("peak live", tiles.peak_live_bytes, String::new());
    for region in tiles.by_region.iter().flatten() {
        line(&format!("region {}", region.region), Some(region.bytes), String::new());
    }
    lines
}

/// Categories, most bytes first.
fn by_size(tiles: &TilesReport) -> Vec<&TileCategoryReport> {
    let mut rows: Vec<&TileCategoryReport> = tiles.by_category.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    rows
}

/// As text.
pub fn write_text(out: &mut String, tiles: &TilesReport) {
    let _ = writeln!(out, "{}", headline(tiles));
    let ipus = if tiles.ipu_count == 1 { "IPU" } else { "IPUs" };
    let _ = writeln!(out, "  {} tiles on {} {ipus}", thousands(tiles.tile_count as u64), tiles.ipu_count);
    for (label, bytes, remark) in lines(tiles) {
        let _ = writeln!(out, "  {label:<26} {:>10}  {:>18}  {remark}", Bytes(bytes).short(), Bytes(bytes).exact());
    }
    let sum = tiles.by_category.iter().map(|row| row.bytes).sum::<u64>();
    if !tiles.by_category.is_empty() {
        let _ = writeln!(out, "  by category{}:", category_remark(tiles));
    }
    for row in by_size(tiles) {
        let overlapped = row.overlapped_bytes.filter(|&bytes| bytes > 0);
        let overlapped = overlapped.map(|bytes| format!("  and {} overlapped", Bytes(bytes).short()));
        let _ = writeln!(
            out,
            "    {:<28} {:>10}  {:>8}{}",
            row.category,
            Bytes(row.bytes).short(),
            percent(row.bytes, sum),
            overlapped.unwrap_or_default()
        );
    }
    if !tiles.worst_tiles.is_empty() {
        let _ = writeln!(out, "  fullest tiles:");
    }
    for worst in &tiles.worst_tiles {
        let over = tiles.bytes_per_tile.filter(|&limit| worst.bytes > limit);
        let over = over.map(|limit| format!("  {} too much", Bytes(worst.bytes - limit).short())).unwrap_or_default();
        let (tile, bytes) = (worst.tile, Bytes(worst.bytes).short());
        let _ = writeln!(out, "    {tile:>6} on IPU {:<3} {bytes:>10}{over}", worst.ipu);
    }
}

/// What the bytes of a category count.
fn category_remark(tiles: &TilesReport) -> &'static str {
    if tiles.by_category.iter().all(|row| row.overlapped_bytes.is_some()) {
        ", what overlaps nothing"
    } else {
        ", sizes of variables, shared addresses counted for each"
    }
}

/// Adds the tiles to a document.
pub fn document(out: &mut Document, tiles: &TilesReport) {
    let tone = match (tiles.bytes_per_tile, tiles.tiles_over.len()) {
        (None, _) => Tone::Neutral,
        (_, 0) => Tone::Fits,
        _ => Tone::Over,
    };
    out.blocks.push(Block::Answer(headline(tiles).into(), tone));
    let mut table = Table::new(["", ">size", ">bytes", ""]);
    for (label, bytes, remark) in lines(tiles) {
        table.row([label.into(), Line::size(bytes), Line::exact(bytes), remark.into()]);
    }
    out.table(table);
    let mut table = Table::new(["category", ">bytes", ">overlapped"]);
    for row in by_size(tiles) {
        let overlapped = row.overlapped_bytes.map(Line::exact).unwrap_or_default();
        table.row([Line::code(&row.category), Line::exact(row.bytes), overlapped]);
    }
    out.table(table);
}
