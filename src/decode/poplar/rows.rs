//! Arrays of rows by tile (exchange code, vertex state, cycle estimates), reduced while streaming.

use super::pull::{Pull, Result, Token, elements};
use crate::model::{LARGEST_ROWS, TileRow, TileRows};

/// A target has fewer tiles than this; what comes after is left out.
pub const MAX_TILES: usize = 1 << 20;

/// Rows beyond this number are left out.
pub const MAX_ROWS: usize = 1 << 20;

/// Cells (rows times tiles) kept while folding, to find the largest rows of each tile over several arrays.
const MAX_CELLS: usize = 12 << 20;

/// Folds arrays into [`TileRows`].
#[derive(Debug, Default)]
pub struct RowFolder {
    rows: Vec<TileRow>,
    by_tile: Vec<u64>,
    /// Bytes by row and tile, where several arrays add up.
    cells: Vec<Vec<u32>>,
    cell_count: usize,
    too_many_cells: bool,
    one_array: bool,
    least: Vec<u64>,
    largest: Vec<Vec<(u32, u64)>>,
    row: Vec<u64>,
}

impl RowFolder {
    /// For a table of which only one array counts as bytes: needs no cells.
    pub fn of_one_array() -> Self {
        Self { one_array: true, ..Self::default() }
    }

    /// Tiles seen.
    pub fn tiles(&self) -> usize {
        self.by_tile.len()
    }

    /// Whether the largest rows of each tile are not known, because there are too many cells.
    pub const fn lost_cells(&self) -> bool {
        self.too_many_cells
    }

    /// The row of an index, made if it is not there yet.
    pub fn row_mut(&mut self, index: usize) -> Option<&mut TileRow> {
        if index >= MAX_ROWS {
            return None;
        }
        if index >= self.rows.len() {
            self.rows.resize_with(index + 1, TileRow::default);
        }
        self.rows.get_mut(index)
    }

    /// Reads the value of a key, an array of arrays; `counts` says whether it is bytes of the row.
    ///
    /// # Errors
    /// When the input is damaged or ends early; the rows until then are folded.
    pub fn read(&mut self, pull: &mut dyn Pull, first: Token, part: &'static str, counts: bool) -> Result<()> {
        if first != Token::BeginArray {
            return pull.skip_rest(first);
        }
        elements(pull, &mut |pull, index, first| {
            let mut row = std::mem::take(&mut self.row);
            row.clear();
            let result = match first {
                Token::BeginArray => pull.row(&mut row, MAX_TILES).map(|_| ()),
                // One number instead of one for each tile: a total, on no tile in particular.
                other => match other.whole() {
                    Some(total) => {
                        self.add_total(index, part, total, counts);
                        Ok(())
                    }
                    None => pull.skip_rest(other),
                },
            };
            if !row.is_empty() {
                self.fold(index, part, &row, counts);
            }
            self.row = row;
            result
        })
    }

    fn add_total(&mut self, index: usize, part: &'static str, total: u64, counts: bool) {
        let Some(row) = self.row_mut(index) else { return };
        add_part(row, part, total);
        if counts {
            row.bytes = row.bytes.saturating_add(total);
        }
    }

    fn fold(&mut self, index: usize, part: &'static str, values: &[u64], counts: bool) {
        if self.row_mut(index).is_none() {
            return;
        }
        let (mut sum, mut max, mut busy) = (0u64, (0u32, 0u64), 0u32);
        for (tile, &value) in values.iter().enumerate() {
            sum = sum.saturating_add(value);
            busy += u32::from(value > 0);
            if value > max.1 {
                max = (tile as u32, value);
            }
        }
        let row = &mut self.rows[index];
        add_part(row, part, sum);
        if !counts {
            return;
        }
        row.bytes = row.bytes.saturating_add(sum);
        row.tiles = row.tiles.max(busy);
        if max.1 > row.max.1 {
            row.max = max;
        }
        if self.by_tile.len() < values.len() {
            self.by_tile.resize(values.len(), 0);
            self.least.resize(values.len(), 0);
            self.largest.resize(values.len(), Vec::new());
        }
        for (by_tile, &value) in self.by_tile.iter_mut().zip(values) {
            *by_tile = by_tile.saturating_add(value);
        }
        if self.one_array {
            for (tile, &value) in values.iter().enumerate() {
                if value > self.least[tile] {
                    self.insert(tile, index, value);
                }
            }
        } else if !self.too_many_cells {
            self.add_cells(index, values);
        }
    }

    fn insert(&mut self, tile: usize, index: usize, value: u64) {
        let list = &mut self.largest[tile];
        let at = list.partition_point(|&(_, bytes)| bytes >= value);
        list.insert(at, (index as u32, value));
        list.truncate(LARGEST_ROWS);
        if list.len() == LARGEST_ROWS {
            self.least[tile] = list.last().map_or(0, |last| last.1);
        }
    }

    fn add_cells(&mut self, index: usize, values: &[u64]) {
        if self.cells.len() <= index {
            self.cells.resize_with(index + 1, Vec::new);
        }
        let cells = &mut self.cells[index];
        if cells.len() < values.len() {
            self.cell_count += values.len() - cells.len();
            cells.resize(values.len(), 0);
        }
        for (cell, &value) in cells.iter_mut().zip(values) {
            *cell = cell.saturating_add(u32::try_from(value).unwrap_or(u32::MAX));
        }
        if self.cell_count > MAX_CELLS {
            self.too_many_cells = true;
            self.cells = Vec::new();
        }
    }

    /// The result.
    pub fn finish(mut self) -> TileRows {
        let cells = std::mem::take(&mut self.cells);
        for (index, row) in cells.iter().enumerate() {
            let mut max = (0u32, 0u64);
            for (tile, &value) in row.iter().enumerate() {
                let value = u64::from(value);
                if value > self.least[tile] {
                    self.insert(tile, index, value);
                }
                if value > max.1 {
                    max = (tile as u32, value);
                }
            }
            self.rows[index].max = max;
            self.rows[index].tiles = row.iter().filter(|&&value| value > 0).count() as u32;
        }
        if self.too_many_cells {
            self.largest = Vec::new();
        }
        TileRows { rows: self.rows, by_tile: self.by_tile, largest: self.largest }
    }
}

fn add_part(row: &mut TileRow, part: &'static str, bytes: u64) {
    match row.parts.iter_mut().find(|(name, _)| *name == part) {
        Some((_, sum)) => *sum = sum.saturating_add(bytes),
        None => row.parts.push((part, bytes)),
    }
}

/// Appends the rows of another table about the same tiles.
pub fn append(table: &mut TileRows, other: TileRows) {
    let base = table.rows.len() as u32;
    table.rows.extend(other.rows);
    if table.by_tile.len() < other.by_tile.len() {
        table.by_tile.resize(other.by_tile.len(), 0);
        table.largest.resize(other.by_tile.len(), Vec::new());
    }
    for (sum, bytes) in table.by_tile.iter_mut().zip(&other.by_tile) {
        *sum = sum.saturating_add(*bytes);
    }
    for (list, more) in table.largest.iter_mut().zip(other.largest) {
        list.extend(more.into_iter().map(|(row, bytes)| (row + base, bytes)));
        list.sort_by_key(|&(row, bytes)| (std::cmp::Reverse(bytes), row));
        list.truncate(LARGEST_ROWS);
    }
}
