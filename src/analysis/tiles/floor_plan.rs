//! Positions of tiles on the die: 23 rows of 64 for a Mk2 IPU, a plain grid for other targets.

use crate::model::TileMemory;

/// Tiles of a Mk2 IPU.
const MK2_TILES: usize = 1472;

/// Rows of a Mk2.
const MK2_ROWS: u32 = 23;

/// Positions of one IPU's tiles on a grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloorPlan {
    /// Columns.
    pub columns: u32,
    /// Rows.
    pub rows: u32,
    /// Whether the positions are known; otherwise the grid is in software order, unrelated to the die.
    pub is_physical: bool,
    /// Evidence for the positions, one sentence.
    pub evidence: &'static str,
    /// Cell (row × columns + column) of each tile of the IPU.
    pub cell: Vec<u32>,
}

/// The physical tile id of a software tile of a Mk2: row × 64 + column.
///
/// Pairs of tiles fill columns of 23 rows in a serpentine.
#[must_use]
pub const fn mk2_physical(tile: u32) -> u32 {
    let (pair, lane) = (tile / 2, tile % 2);
    let (block, row) = (pair / MK2_ROWS, pair % MK2_ROWS);
    let row = if block % 2 == 1 { MK2_ROWS - 1 - row } else { row };
    row * 64 + block / 2 * 4 + block % 2 + lane * 2
}

impl FloorPlan {
    /// The floor plan of one IPU. Physical ids from the profile take precedence, as row repair differs between devices.
    #[must_use]
    pub fn new(memory: &TileMemory, ipu: usize) -> Self {
        let tiles = memory.target.tiles_per_ipu as usize;
        if let Some(own) = memory.physical.as_deref().and_then(|ids| from_profile(ids, ipu, tiles)) {
            return own;
        }
        let is_model = memory.target.kind.as_deref().is_some_and(|kind| kind != "IPU");
        if tiles == MK2_TILES && !is_model {
            return Self {
                columns: 64,
                rows: MK2_ROWS,
                is_physical: true,
                evidence: "The layout of a Mk2 without repaired rows; a schematic, not the die's true picture",
                cell: (0..MK2_TILES as u32).map(mk2_physical).collect(),
            };
        }
        Self::plain(tiles)
    }

    /// A grid in software order, about twice as wide as high.
    #[must_use]
    pub fn plain(tiles: usize) -> Self {
        let columns = ((tiles as f64 * 2.0).sqrt().ceil() as u32).clamp(1, 1 << 12);
        Self {
            columns,
            rows: (tiles as u32).div_ceil(columns).max(1),
            is_physical: false,
            evidence: "Software order: where this machine's tiles lie is not known",
            cell: (0..tiles as u32).collect(),
        }
    }

    /// The tile in each cell; `None` for empty cells.
    #[must_use]
    pub fn tiles(&self) -> Vec<Option<u32>> {
        let mut tiles = vec![None; (self.columns * self.rows) as usize];
        for (tile, &cell) in (0..).zip(&self.cell) {
            if let Some(slot) = tiles.get_mut(cell as usize) {
                *slot = Some(tile);
            }
        }
        tiles
    }
}

/// Positions from the profile's physical ids; `None` unless they are distinct and fit rows of 64.
fn from_profile(ids: &[u32], ipu: usize, tiles: usize) -> Option<FloorPlan> {
    let ids = ids.get(ipu * tiles..(ipu + 1) * tiles)?;
    let first = ids.iter().min()? / 64 * 64;
    let most = ids.iter().max()? - first;
    let mut seen = ids.to_vec();
    seen.sort_unstable();
    seen.dedup();
    if seen.len() != ids.len() || most as usize >= tiles.saturating_mul(2) + 64 {
        return None;
    }
    Some(FloorPlan {
        columns: 64,
        rows: most / 64 + 1,
        is_physical: true,
        evidence: "Physical tile ids of the profile, in rows of 64",
        cell: ids.iter().map(|id| id - first).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TileTarget;

    #[test]
    fn mk2_is_a_bijection() {
        let mut seen: Vec<u32> = (0..1472).map(mk2_physical).collect();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..1472));
    }

    #[test]
    fn mk2_has_the_known_places() {
        for (tile, physical) in [(0, 0), (1, 2), (2, 64), (45, 1410), (46, 1409), (47, 1411), (1471, 63)] {
            assert_eq!(mk2_physical(tile), physical, "tile {tile}");
        }
    }

    fn target(tiles_per_ipu: u32) -> TileMemory {
        TileMemory { target: TileTarget { ipus: 2, tiles_per_ipu, ..TileTarget::default() }, ..TileMemory::default() }
    }

    #[test]
    fn every_tile_has_a_cell_of_its_own() {
        for tiles in [1, 2, 64, 100, 1216, 1472] {
            let plan = FloorPlan::new(&target(tiles), 1);
            assert_eq!(plan.is_physical, tiles == 1472);
            assert_eq!(plan.tiles().iter().flatten().count(), tiles as usize, "{tiles} tiles");
        }
    }

    #[test]
    fn the_profile_knows_better() {
        let mut memory = target(2);
        memory.physical = Some(vec![0, 2, 65, 1]);
        let plan = FloorPlan::new(&memory, 1);
        assert_eq!((plan.columns, plan.rows, plan.cell), (64, 2, vec![65, 1]));
        memory.physical = Some(vec![0, 2, 1, 1]);
        assert!(!FloorPlan::new(&memory, 1).is_physical);
    }
}
