//! The memory report of a selection of tiles.

use super::gaps::{GapSums, Gaps};
use crate::model::{TileMemory, TileRows};

/// The tiles a report is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All tiles.
    All,
    /// The tiles with these numbers.
    Tiles(Vec<u32>),
}

/// Bytes of a category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CategoryBytes {
    /// Name in the file.
    pub name: String,
    /// Non-overlapping bytes; all bytes if the file does not distinguish them.
    pub bytes: u64,
    /// Overlapping bytes, which must not be added to `bytes`; `None` if not in the file.
    pub overlapped: Option<u64>,
}

/// An entry of a list in the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Row of the table or of the variables.
    pub row: u32,
    /// Bytes on the selected tiles.
    pub bytes: u64,
}

/// Memory of the selected tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryReport {
    /// Number of tiles.
    pub tiles: usize,
    /// Bytes including gaps.
    pub including_gaps: Option<u64>,
    /// Bytes excluding gaps.
    pub excluding_gaps: Option<u64>,
    /// Bytes of gaps by cause.
    pub gaps: Option<GapSums>,
    /// Bytes by region; empty if not in the file.
    pub regions: Vec<(String, u64)>,
    /// Bytes by category, in file order.
    pub categories: Vec<CategoryBytes>,
    /// Always-live bytes.
    pub always_live: Option<u64>,
    /// Sum of each tile's peak not-always-live bytes; for several tiles an upper bound, as they peak at different steps.
    pub not_always_live_max: Option<u64>,
    /// Vertex types, largest first. For a selection of tiles, only the largest of each tile are known.
    pub vertex_types: Vec<Named>,
    /// Bytes of all vertex types.
    pub vertex_bytes: u64,
    /// Exchanges, most code first.
    pub exchanges: Vec<Named>,
    /// Code of all exchanges in bytes. Shared code counts once per exchange, so this may exceed the category.
    pub exchange_bytes: u64,
    /// Compute sets, largest first.
    pub compute_sets: Vec<Named>,
    /// Rows of the tiles' lowered variables, sorted by tile and address.
    pub variables: Vec<u32>,
}

impl MemoryReport {
    /// The report of a selection, with at most `top` rows in each list.
    #[must_use]
    pub fn new(memory: &TileMemory, gaps: Option<&Gaps>, selection: &Selection, top: usize) -> Self {
        let all: Vec<u32>;
        let tiles: &[u32] = match selection {
            Selection::All => {
                all = (0..memory.tile_count() as u32).collect();
                &all
            }
            Selection::Tiles(tiles) => tiles,
        };
        let of = |column: &[u64]| {
            tiles.iter().fold(0u64, |sum, &tile| sum.saturating_add(column.get(tile as usize).copied().unwrap_or(0)))
        };
        let of_known = |column: &Option<Vec<u64>>| column.as_deref().map(of);
        let rows = |table: &TileRows| rows(table, selection, tiles, top);
        Self {
            tiles: tiles.len(),
            including_gaps: of_known(&memory.including_gaps),
            excluding_gaps: of_known(&memory.total),
            gaps: gaps.map(|gaps| gaps.sums_of(&mut tiles.iter().map(|&tile| tile as usize))),
            regions: memory.regions.iter().map(|region| (region.name.clone(), of(&region.bytes))).collect(),
            categories: memory
                .categories
                .iter()
                .map(|category| CategoryBytes {
                    name: category.name.clone(),
                    bytes: of(&category.bytes),
                    overlapped: memory.overlap_known.then(|| of(&category.overlapped)),
                })
                .collect(),
            always_live: of_known(&memory.always_live),
            not_always_live_max: of_known(&memory.not_always_live_max),
            vertex_types: rows(&memory.vertex_types),
            vertex_bytes: of(&memory.vertex_types.by_tile),
            exchanges: rows(&memory.exchanges),
            exchange_bytes: of(&memory.exchanges.by_tile),
            compute_sets: rows(&memory.compute_sets),
            variables: variables(memory, selection, tiles),
        }
    }
}

/// The category that takes more than its share of the selected tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboveMean {
    /// Name in the file.
    pub category: String,
    /// Its bytes on the selected tiles.
    pub bytes: u64,
    /// Bytes above those of as many mean tiles.
    pub above: u64,
}

impl MemoryReport {
    /// The category that is furthest above the mean tile, given the bytes of all categories over `count` tiles; `None`
    /// where none is above it.
    #[must_use]
    pub fn most_above_mean(&self, all: &[CategoryBytes], count: usize) -> Option<AboveMean> {
        let share = self.tiles as f64 / count.max(1) as f64;
        let above = |own: &CategoryBytes, all: &CategoryBytes| AboveMean {
            category: own.name.clone(),
            bytes: own.bytes,
            above: (own.bytes as f64 - all.bytes as f64 * share).max(0.0).round() as u64,
        };
        let rows = self.categories.iter().zip(all).map(|(own, all)| above(own, all));
        rows.filter(|row| row.above > 0).max_by_key(|row| row.above)
    }
}

/// The largest rows of a table over the selected tiles.
fn rows(table: &TileRows, selection: &Selection, tiles: &[u32], top: usize) -> Vec<Named> {
    let mut named: Vec<Named> = if *selection == Selection::All {
        (0..).zip(&table.rows).map(|(row, of)| Named { row, bytes: of.bytes }).collect()
    } else {
        let mut pairs: Vec<(u32, u64)> =
            tiles.iter().filter_map(|&tile| table.largest.get(tile as usize)).flatten().copied().collect();
        pairs.sort_unstable();
        let mut named: Vec<Named> = Vec::new();
        for (row, bytes) in pairs {
            match named.last_mut() {
                Some(last) if last.row == row => last.bytes = last.bytes.saturating_add(bytes),
                _ => named.push(Named { row, bytes }),
            }
        }
        named
    };
    named.retain(|row| row.bytes > 0);
    named.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.row));
    named.truncate(top);
    named
}

/// Variables of some tiles, sorted by tile and address.
fn variables(memory: &TileMemory, selection: &Selection, tiles: &[u32]) -> Vec<u32> {
    if *selection == Selection::All {
        return Vec::new();
    }
    let mut wanted = tiles.to_vec();
    wanted.sort_unstable();
    let columns = &memory.variables;
    let mut found: Vec<u32> =
        (0..columns.len() as u32).filter(|&row| wanted.binary_search(&columns.tile[row as usize]).is_ok()).collect();
    found.sort_by_key(|&row| (columns.tile[row as usize], columns.offset[row as usize], row));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_is_explained_by_what_is_furthest_above_the_mean() {
        let row = |name: &str, bytes| CategoryBytes { name: name.to_owned(), bytes, overlapped: None };
        let memory = TileMemory::default();
        let mut report = MemoryReport::new(&memory, None, &Selection::Tiles(vec![0]), 1);
        report.categories = vec![row("code", 100), row("variable", 500), row("stack", 8)];
        let all = [row("code", 400), row("variable", 800), row("stack", 80)];
        let found = report.most_above_mean(&all, 4).expect("one above the mean");
        assert_eq!((found.category.as_str(), found.bytes, found.above), ("variable", 500, 300));
        let even = [row("code", 400), row("variable", 2000), row("stack", 32)];
        assert_eq!(report.most_above_mean(&even, 4), None);
    }
}
