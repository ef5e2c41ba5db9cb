//! The cells of the heat map add up to the occupancy curve, which other tests compare with the compiler's figures.

use highwater::analysis::heat::{HeatGrid, HeatWindow};
use highwater::analysis::map::MemoryMap;
use highwater::analysis::{ProgramAnalysis, unpadded};
use highwater::model::Device;

use crate::common::{self, Files};

/// Checks the heat map columns of every memory space; returns their number.
pub fn add_up_columns(files: &Files) -> usize {
    let mut columns_seen = 0;
    for path in files.programs() {
        let program = common::program(&path);
        let analysis = ProgramAnalysis::new(&program, &Device::default());
        for space in &analysis.spaces {
            let Some(occupancy) = &space.occupancy else { continue };
            let map = MemoryMap::new(&program, &analysis, space);
            let waste = |item: &highwater::analysis::map::MapBox| {
                item.size.saturating_sub(unpadded(&program, &analysis.traces, item.buffer).0)
            };
            let fullest = |from: u32, to: u32| {
                (from..to).max_by_key(|&point| (occupancy.content.at(point), std::cmp::Reverse(point))).unwrap_or(from)
            };
            let window = HeatWindow {
                points: (0.0, f64::from(map.points)),
                addresses: (0.0, map.height as f64),
                columns: 97,
                rows: 61,
            };
            let grid = HeatGrid::new(&map, window, &fullest, &waste, &|_| true);
            for column in 0..grid.columns() {
                let point = grid.points[column];
                let expected = occupancy.content.at(point);
                assert_eq!(grid.occupied_in(column), expected, "{} {} at {point}", path.display(), space.name);
                columns_seen += 1;
            }
            // The largest buffer of a cell is live in it.
            for column in (0..grid.columns()).step_by(7) {
                let (point, (low, high)) = (grid.points[column], grid.addresses_of(column % grid.rows));
                let inside = |item: &highwater::analysis::map::MapBox| {
                    (item.address + item.size).min(high).saturating_sub(item.address.max(low))
                };
                let slow = map.live_at(point).iter().map(inside).max().filter(|&bytes| bytes > 0);
                assert_eq!(map.largest_in(point, low, high).map(inside), slow);
            }
            // No peak is lost, however wide the columns.
            let highest = (0..grid.columns()).map(|column| grid.occupied_in(column)).max().unwrap_or(0);
            assert_eq!(highest, occupancy.content_peak.0, "{} {}", path.display(), space.name);
        }
    }
    columns_seen
}

#[test]
fn a_column_adds_up_to_the_occupancy_at_its_step() {
    assert!(add_up_columns(&Files::of_project()) >= 1_000);
}
