//! Occupancy of address rows during a sweep over time. Adding or removing a range takes constant time, however many rows
//! it covers.

use super::grid::HeatCell;
use crate::analysis::address_union::AddressUnion;
use crate::analysis::map::MapBox;

/// Resolution of padding fractions.
const PARTS: u128 = 1 << 16;

/// Sums over ranges by row: bytes in the partially covered end rows, and a difference array of ranges that cover whole
/// rows.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    /// Bytes in partially covered rows.
    ends: Sums,
    /// Change, relative to the row below, in the sum of ranges that cover whole rows.
    covers: Sums,
}

/// Byte counts with different weights.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// Each byte once.
    occupied: i128,
    /// Each byte as often as it is occupied.
    bytes: i128,
    /// Bytes times padding fraction times [`PARTS`].
    padded: i128,
    /// Bytes times the point at which they were allocated.
    placed: i128,
}

impl Sums {
    fn add(&mut self, more: Self, times: i128) {
        self.occupied = more.occupied.saturating_mul(times).saturating_add(self.occupied);
        self.bytes = more.bytes.saturating_mul(times).saturating_add(self.bytes);
        self.padded = more.padded.saturating_mul(times).saturating_add(self.padded);
        self.placed = more.placed.saturating_mul(times).saturating_add(self.placed);
    }
}

/// The rows between two addresses.
pub struct Sweep {
    first: u64,
    end: u64,
    row_bytes: u64,
    rows: Vec<Row>,
    union: AddressUnion,
}

impl Sweep {
    /// Empty rows of `row_bytes` each, starting at an address.
    pub fn new(rows: usize, first: u64, row_bytes: u64) -> Self {
        let end = first.saturating_add(row_bytes.saturating_mul(rows as u64));
        Self { first, end, row_bytes, rows: vec![Row::default(); rows + 1], union: AddressUnion::default() }
    }

    /// Adds a box allocated at the current point; `waste` is its padding in bytes.
    pub fn add(&mut self, item: &MapBox, waste: u64) {
        let Some((from, to)) = self.inside(item) else { return };
        let Self { first, row_bytes, rows, union, .. } = self;
        union.add(from, to, &mut |from, to| {
            spread(rows, *first, *row_bytes, (from, to), Sums { occupied: 1, ..Sums::default() }, 1);
        });
        spread(rows, *first, *row_bytes, (from, to), weights(item, waste), 1);
    }

    /// Removes a box.
    pub fn remove(&mut self, item: &MapBox, waste: u64) {
        let Some((from, to)) = self.inside(item) else { return };
        let Self { first, row_bytes, rows, union, .. } = self;
        union.remove(from, to, &mut |from, to| {
            spread(rows, *first, *row_bytes, (from, to), Sums { occupied: 1, ..Sums::default() }, -1);
        });
        spread(rows, *first, *row_bytes, (from, to), weights(item, waste), -1);
    }

    /// Appends the cells of a point.
    pub fn write(&self, point: u32, cells: &mut Vec<HeatCell>) {
        let mut covers = Sums::default();
        let count = self.rows.len() - 1;
        for row in &self.rows[..count] {
            covers.add(row.covers, 1);
            let mut sums = row.ends;
            sums.add(covers, i128::from(self.row_bytes));
            let bytes = sums.bytes.max(1) as f64;
            let age = f64::from(point) - sums.placed as f64 / bytes;
            cells.push(HeatCell {
                occupied: u64::try_from(sums.occupied).unwrap_or(0),
                padding: (sums.padded as f64 / (bytes * PARTS as f64)).clamp(0.0, 1.0) as f32,
                age: if sums.bytes > 0 { age.max(0.0) as f32 } else { 0.0 },
            });
        }
    }

    /// The part of a box inside the rows.
    fn inside(&self, item: &MapBox) -> Option<(u64, u64)> {
        let from = item.address.max(self.first);
        let to = item.address.saturating_add(item.size).min(self.end);
        (from < to).then_some((from, to))
    }
}

/// Weights of one byte of a box.
fn weights(item: &MapBox, waste: u64) -> Sums {
    let padded = u128::from(waste.min(item.size)) * PARTS / u128::from(item.size.max(1));
    Sums { occupied: 0, bytes: 1, padded: padded as i128, placed: i128::from(item.start) }
}

/// Adds the bytes `from..to` to the rows that contain them.
fn spread(rows: &mut [Row], first: u64, row_bytes: u64, (from, to): (u64, u64), of: Sums, sign: i128) {
    let row_of = |address: u64| ((address - first) / row_bytes) as usize;
    let (low, high) = (row_of(from), row_of(to - 1));
    if low == high {
        rows[low].ends.add(of, sign * i128::from(to - from));
        return;
    }
    let start_of = |row: usize| first.saturating_add(row_bytes.saturating_mul(row as u64));
    rows[low].ends.add(of, sign * i128::from(start_of(low + 1) - from));
    rows[high].ends.add(of, sign * i128::from(to - start_of(high)));
    rows[low + 1].covers.add(of, sign);
    rows[high].covers.add(of, -sign);
}
