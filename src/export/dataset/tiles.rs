//! Rows of the tables of tiles: the memory of each tile, and what it holds.

use super::origin::Origin;
use super::rows::Rows;
use crate::model::Profile;

pub(super) fn add(profile: &Profile, origin: &Origin, rows: &mut Rows<'_>) {
    let Some(memory) = &profile.tiles else { return };
    let key = origin.key(None);
    let of = |column: &Option<Vec<u64>>, tile: usize| column.as_ref().and_then(|bytes| bytes.get(tile).copied());
    let tiles_per_ipu = (memory.target.tiles_per_ipu as usize).max(1);
    for tile in 0..memory.tile_count() {
        let [key, file, _] = origin.cells(&key, None);
        rows.push(&[
            key,
            file,
            tile.into(),
            (tile / tiles_per_ipu).into(),
            of(&memory.total, tile).into(),
            of(&memory.including_gaps, tile).into(),
            of(&memory.always_live, tile).into(),
            of(&memory.not_always_live_max, tile).into(),
            memory.target.bytes_per_tile.into(),
        ]);
    }
}

pub(super) fn add_categories(profile: &Profile, origin: &Origin, rows: &mut Rows<'_>) {
    let Some(memory) = &profile.tiles else { return };
    let key = origin.key(None);
    for tile in 0..memory.tile_count() {
        for category in &memory.categories {
            let bytes = category.bytes.get(tile).copied().unwrap_or(0);
            let overlapped = category.overlapped.get(tile).copied().unwrap_or(0);
            if bytes == 0 && overlapped == 0 {
                continue;
            }
            let [key, file, _] = origin.cells(&key, None);
            let overlapped = memory.overlap_known.then_some(overlapped);
            rows.push(&[key, file, tile.into(), (&category.name).into(), bytes.into(), overlapped.into()]);
        }
    }
}
