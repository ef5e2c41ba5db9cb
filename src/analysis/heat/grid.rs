//! Divides a window of time and addresses into cells.

use super::sweep::Sweep;
use crate::analysis::map::{MapBox, MemoryMap};

/// The part of a memory map that a grid covers, and its maximum resolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeatWindow {
    /// Visible range of program points; may be fractional.
    pub points: (f64, f64),
    /// Visible range of addresses.
    pub addresses: (f64, f64),
    /// Maximum number of columns, not counting a partial one at each end.
    pub columns: usize,
    /// Maximum number of rows, counted the same way.
    pub rows: usize,
}

/// A cell of a grid.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HeatCell {
    /// Occupied bytes, each counted once.
    pub occupied: u64,
    /// Fraction of the occupied bytes that is padding, 0 to 1.
    pub padding: f32,
    /// Steps since allocation, averaged over the occupied bytes.
    pub age: f32,
}

/// The cells of a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeatGrid {
    /// Program points per column, a power of two.
    pub stride: u32,
    /// Bytes per row, a power of two.
    pub row_bytes: u64,
    /// First point of the first column.
    pub first_point: u32,
    /// Start address of the lowest row.
    pub first_address: u64,
    /// Number of rows.
    pub rows: usize,
    /// The program point that each column shows.
    pub points: Vec<u32>,
    /// Cells in column-major order, lowest row first.
    pub cells: Vec<HeatCell>,
}

impl HeatGrid {
    /// Divides a window. `fullest` returns the point in `from..to` with the most live bytes, `waste` the padding of a box in
    /// bytes; only boxes accepted by `keep` are counted. The cost depends on the number of cells and visible boxes.
    #[must_use]
    pub fn new(
        map: &MemoryMap,
        window: HeatWindow,
        fullest: &dyn Fn(u32, u32) -> u32,
        waste: &dyn Fn(&MapBox) -> u64,
        keep: &dyn Fn(&MapBox) -> bool,
    ) -> Self {
        let low = window.points.0.max(0.0) as u32;
        let high = (window.points.1.max(0.0).ceil() as u32).min(map.points).max(low);
        let stride = coarsest(u64::from(high - low), window.columns).min(1 << 31) as u32;
        let first_point = low / stride * stride;
        let columns = (high - first_point).div_ceil(stride) as usize;
        let bottom = window.addresses.0.max(0.0) as u64;
        let top = (window.addresses.1.max(0.0).ceil() as u64).max(bottom);
        let row_bytes = coarsest(top - bottom, window.rows);
        let first_address = bottom / row_bytes * row_bytes;
        let rows = (top - first_address).div_ceil(row_bytes) as usize;
        let mut grid = Self { stride, row_bytes, first_point, first_address, rows, ..Self::default() };
        if columns == 0 || rows == 0 {
            return grid;
        }
        grid.points = (0..columns as u32)
            .map(|column| {
                let from = first_point + column * stride;
                let to = from.saturating_add(stride).min(map.points);
                fullest(from, to).clamp(from, to - 1)
            })
            .collect();
        grid.fill(map, waste, keep);
        grid
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.points.len()
    }

    /// The cell at a column and row; empty if outside the grid.
    #[must_use]
    pub fn cell(&self, column: usize, row: usize) -> HeatCell {
        if row >= self.rows {
            return HeatCell::default();
        }
        self.cells.get(column * self.rows + row).copied().unwrap_or_default()
    }

    /// (column, row) of a program point and an address.
    #[must_use]
    pub fn place_of(&self, point: u32, address: u64) -> Option<(usize, usize)> {
        let column = (point.checked_sub(self.first_point)? / self.stride.max(1)) as usize;
        let row = (address.checked_sub(self.first_address)? / self.row_bytes.max(1)) as usize;
        (column < self.columns() && row < self.rows).then_some((column, row))
    }

    /// Address range of a row.
    #[must_use]
    pub const fn addresses_of(&self, row: usize) -> (u64, u64) {
        let from = self.first_address.saturating_add(self.row_bytes.saturating_mul(row as u64));
        (from, from.saturating_add(self.row_bytes))
    }

    /// Range of points of a column; that of the last column may extend beyond the end of the program.
    #[must_use]
    pub const fn points_of(&self, column: usize) -> (u32, u32) {
        let from = self.first_point.saturating_add(self.stride.saturating_mul(column as u32));
        (from, from.saturating_add(self.stride))
    }

    /// Bytes occupied in a column.
    #[must_use]
    pub fn occupied_in(&self, column: usize) -> u64 {
        let cells = self.cells.get(column * self.rows..(column + 1) * self.rows).unwrap_or_default();
        cells.iter().fold(0, |sum, cell| sum.saturating_add(cell.occupied))
    }

    /// Sweeps over the columns, adding boxes at their first column and removing them after their last.
    fn fill(&mut self, map: &MemoryMap, waste: &dyn Fn(&MapBox) -> u64, keep: &dyn Fn(&MapBox) -> bool) {
        let (Some(&first), Some(&last)) = (self.points.first(), self.points.last()) else { return };
        let columns = self.columns();
        let (mut comes, mut goes): (Vec<Vec<u32>>, Vec<Vec<u32>>) =
            (vec![Vec::new(); columns], vec![Vec::new(); columns]);
        let end = self.addresses_of(self.rows).0;
        for row in map.rows_in(first, last, 1) {
            let item = &map.boxes[row as usize];
            if item.address >= end || item.address.saturating_add(item.size) <= self.first_address {
                continue;
            }
            let Some((from, to)) = self.columns_of(item).filter(|_| keep(item)) else { continue };
            comes[from].push(row);
            goes[to].push(row);
        }
        let mut sweep = Sweep::new(self.rows, self.first_address, self.row_bytes);
        self.cells.reserve_exact(columns * self.rows);
        for column in 0..columns {
            for &row in &comes[column] {
                let item = &map.boxes[row as usize];
                sweep.add(item, waste(item));
            }
            sweep.write(self.points[column], &mut self.cells);
            for &row in &goes[column] {
                let item = &map.boxes[row as usize];
                sweep.remove(item, waste(item));
            }
        }
    }

    /// First and last column at whose point a box is live.
    fn columns_of(&self, item: &MapBox) -> Option<(usize, usize)> {
        let column_of = |point: u32| (point.saturating_sub(self.first_point) / self.stride) as usize;
        let mut from = column_of(item.start);
        if *self.points.get(from)? < item.start {
            from += 1;
        }
        let mut to = column_of(item.end).min(self.columns() - 1);
        if self.points[to] > item.end {
            to = to.checked_sub(1)?;
        }
        (from <= to && from < self.columns()).then_some((from, to))
    }
}

/// The smallest power of two whose multiples divide a length into at most `parts` parts.
const fn coarsest(length: u64, parts: usize) -> u64 {
    let parts = if parts == 0 { 1 } else { parts as u64 };
    match length.div_ceil(parts).checked_next_power_of_two() {
        Some(size) => size,
        None => 1 << 63,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::BufferId;

    const POINTS: u32 = 40;
    const HEIGHT: u64 = 100;

    fn map(boxes: &[(u32, u32, u64, u64)]) -> MemoryMap {
        let boxes: Vec<MapBox> = boxes
            .iter()
            .enumerate()
            .map(|(row, &(start, more, address, size))| MapBox {
                buffer: BufferId(row as u32),
                start,
                end: (start + more).min(POINTS - 1),
                address,
                size,
                region: 0,
            })
            .collect();
        MemoryMap::of_boxes(POINTS, HEIGHT, boxes)
    }

    /// Occupied bytes in an address range at a point, counted byte by byte.
    fn slowly(map: &MemoryMap, point: u32, from: u64, to: u64) -> u64 {
        let lives = |byte: u64| {
            map.boxes.iter().any(|item| {
                item.start <= point && point <= item.end && item.address <= byte && byte < item.address + item.size
            })
        };
        (from..to).filter(|&byte| lives(byte)).count() as u64
    }

    proptest! {
        #[test]
        fn every_cell_counts_its_bytes_and_a_column_all_of_them(
            boxes in proptest::collection::vec((0u32..POINTS, 0u32..20, 0u64..80, 1u64..20), 0..30),
            points in (0.0f64..30.0, 1.0f64..20.0),
            addresses in (0.0f64..60.0, 1.0f64..60.0),
            columns in 1usize..20,
            rows in 1usize..20,
            pick in 0u32..7,
        ) {
            let map = map(&boxes);
            let fullest = |from: u32, to: u32| from + pick % (to - from);
            let waste = |item: &MapBox| item.size / 4;
            let window = HeatWindow {
                points: (points.0, points.0 + points.1),
                addresses: (addresses.0, addresses.0 + addresses.1),
                columns,
                rows,
            };
            let grid = HeatGrid::new(&map, window, &fullest, &waste, &|_| true);
            prop_assert_eq!(grid.cells.len(), grid.columns() * grid.rows);
            prop_assert!(grid.columns() <= columns + 1 && grid.rows <= rows + 1);
            for column in 0..grid.columns() {
                let point = grid.points[column];
                for row in 0..grid.rows {
                    let (from, to) = grid.addresses_of(row);
                    let cell = grid.cell(column, row);
                    prop_assert_eq!(cell.occupied, slowly(&map, point, from, to), "column {} row {}", column, row);
                    let inside: Vec<(u64, &MapBox)> = map
                        .boxes
                        .iter()
                        .filter(|item| item.start <= point && point <= item.end)
                        .map(|item| ((item.address + item.size).min(to).saturating_sub(item.address.max(from)), item))
                        .filter(|(bytes, _)| *bytes > 0)
                        .collect();
                    let bytes: u64 = inside.iter().map(|(bytes, _)| bytes).sum();
                    let mean = |of: &dyn Fn(&MapBox) -> f64| {
                        inside.iter().map(|(bytes, item)| *bytes as f64 * of(item)).sum::<f64>() / bytes.max(1) as f64
                    };
                    let padding = mean(&|item| waste(item) as f64 / item.size as f64);
                    let age = mean(&|item| f64::from(point - item.start));
                    prop_assert!((f64::from(cell.padding) - padding).abs() < 1e-3, "{} {}", cell.padding, padding);
                    prop_assert!((f64::from(cell.age) - age).abs() < 1e-2, "{} {}", cell.age, age);
                }
            }
            let few = HeatGrid::new(&map, window, &fullest, &waste, &|item| item.buffer.0 % 2 == 0);
            prop_assert!(few.cells.iter().zip(&grid.cells).all(|(few, all)| few.occupied <= all.occupied));
            let whole = HeatWindow { points: (0.0, f64::from(POINTS)), addresses: (0.0, HEIGHT as f64), columns, rows };
            let grid = HeatGrid::new(&map, whole, &fullest, &waste, &|_| true);
            for column in 0..grid.columns() {
                prop_assert_eq!(grid.occupied_in(column), slowly(&map, grid.points[column], 0, HEIGHT));
            }
        }
    }

    #[test]
    fn cells_are_powers_of_two_and_stand_still() {
        let map = map(&[(0, 39, 0, 100)]);
        let at = |from: f64| {
            let window = HeatWindow { points: (from, from + 16.0), addresses: (3.0, 70.0), columns: 5, rows: 9 };
            HeatGrid::new(&map, window, &|from, _| from, &|_| 0, &|_| true)
        };
        let grid = at(5.5);
        assert_eq!((grid.stride, grid.row_bytes, grid.first_point, grid.first_address), (4, 8, 4, 0));
        assert_eq!(at(7.9).first_point, 4);
        assert_eq!(grid.place_of(9, 17), Some((1, 2)));
        assert_eq!(grid.place_of(3, 0), None);
    }

    #[test]
    fn hostile_sizes_and_empty_windows_are_no_harm() {
        let map = map(&[(0, 5, u64::MAX - 10, u64::MAX), (0, 5, 0, u64::MAX)]);
        let window = |points, addresses| HeatWindow { points, addresses, columns: 4, rows: 4 };
        for (points, addresses) in [
            ((0.0, 40.0), (0.0, 2e19)),
            ((5.0, 5.0), (0.0, 0.0)),
            ((99.0, 120.0), (0.0, 10.0)),
            ((f64::NAN, f64::INFINITY), (f64::NEG_INFINITY, f64::NAN)),
        ] {
            let grid = HeatGrid::new(&map, window(points, addresses), &|from, _| from, &|item| item.size, &|_| true);
            assert_eq!(grid.cells.len(), grid.columns() * grid.rows);
        }
    }
}
