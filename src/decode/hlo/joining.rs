//! Joins the columns of the pieces in the order of the file, while later ones are still decoded: a copy out of memory
//! that was just written and is used again for the next piece.

use super::ids::ComputationEntry;
use super::instructions::{Columns, Decoded, Piece};
use crate::model::{NO_ROW, SparseLists};

/// The pieces that are joined, and those that wait for one before them.
pub struct Joining<'a> {
    pieces: &'a [Piece],
    decoded: Decoded,
    waiting: Vec<Option<Columns>>,
    /// The next piece to be joined.
    next: usize,
    /// Columns that were joined, whose memory is used again.
    spare: Vec<Columns>,
    /// The large computation of which the last piece is a part.
    open_part: Option<usize>,
    /// The computations that come in parts, as rows.
    in_parts: Vec<usize>,
}

impl<'a> Joining<'a> {
    /// Nothing joined yet; of so many computations, and about so many rows.
    pub fn new(pieces: &'a [Piece], computations: usize, rows: usize) -> Self {
        let mut decoded = Decoded { computations: Vec::with_capacity(computations), ..Decoded::default() };
        // Pages that are not used are never committed.
        decoded.records.reserve(rows);
        let all = &mut decoded.instructions;
        all.opcode.reserve(rows);
        all.shape.reserve(rows);
        all.argument.reserve(rows);
        all.operands.ends.reserve(rows);
        all.operands.items.reserve(2 * rows);
        let waiting = pieces.iter().map(|_| None).collect();
        Self { pieces, decoded, waiting, next: 0, spare: Vec::new(), open_part: None, in_parts: Vec::new() }
    }

    /// Takes the columns of a piece; returns empty ones for another.
    pub fn put(&mut self, piece: usize, columns: Columns) -> Columns {
        if let Some(place) = self.waiting.get_mut(piece) {
            *place = Some(columns);
        }
        while let Some(mut columns) = self.waiting.get_mut(self.next).and_then(Option::take) {
            self.join(&mut columns);
            self.next += 1;
            columns.clear();
            self.spare.push(columns);
        }
        self.spare.pop().unwrap_or_default()
    }

    fn join(&mut self, columns: &mut Columns) {
        let decoded = &mut self.decoded;
        let all = &mut decoded.instructions;
        let first_row = all.opcode.len() as u32;
        let first_computation = decoded.computations.len();
        let shift = |entry: &ComputationEntry| ComputationEntry {
            start: entry.start + first_row,
            end: entry.end + first_row,
            ..entry.clone()
        };
        let mut operand_base = first_row;
        match self.pieces[self.next] {
            Piece::Whole { .. } => decoded.computations.extend(columns.computations.iter().map(shift)),
            Piece::Part { computation, .. } => {
                let own = columns.computations.first().map(shift).unwrap_or_default();
                match decoded.computations.last_mut().filter(|_| self.open_part == Some(computation)) {
                    Some(entry) => {
                        entry.end = own.end;
                        entry.number = entry.number.max(own.number);
                        entry.root = entry.root.max(own.root);
                    }
                    None => {
                        self.in_parts.push(first_computation);
                        decoded.computations.push(own);
                    }
                }
                self.open_part = Some(computation);
                let entry = decoded.computations.last().cloned().unwrap_or_default();
                operand_base = entry.start;
                columns.odd_numbers.retain(|&(row, number)| {
                    let expected = entry.first_number.wrapping_add(i64::from(row + first_row - entry.start));
                    number != expected || number == i64::MIN
                });
            }
        }
        decoded.out_of_order |= columns.out_of_order;
        decoded.odd_numbers.extend(columns.odd_numbers.iter().map(|&(row, number)| (row + first_row, number)));
        append(&mut decoded.called, &mut columns.called, first_row);
        append(&mut all.output_aliases, &mut columns.aliases, first_row);
        all.opcode.extend_from_slice(&columns.opcode);
        all.shape.extend_from_slice(&columns.shape);
        all.argument.extend_from_slice(&columns.argument);
        decoded.records.extend_from_slice(&columns.records);
        let first = all.operands.items.len() as u32;
        all.operands.ends.extend(columns.operand_ends.iter().map(|end| end + first));
        let row = |&row: &u32| row.checked_add(operand_base).unwrap_or(NO_ROW);
        all.operands.items.extend(columns.operands.iter().map(row));
        if let Piece::Whole { .. } = self.pieces[self.next] {
            for row in first_computation..self.decoded.computations.len() {
                self.keep_inside(row);
            }
        }
    }

    /// An operand outside its computation is ignored.
    fn keep_inside(&mut self, computation: usize) {
        let Some(entry) = self.decoded.computations.get(computation) else { return };
        let inside = entry.start..entry.end;
        for row in self.decoded.instructions.operands.range_mut(inside.start as usize, inside.end as usize) {
            if !inside.contains(row) {
                *row = NO_ROW;
            }
        }
    }

    /// All columns.
    pub fn finish(mut self) -> Decoded {
        for row in std::mem::take(&mut self.in_parts) {
            self.keep_inside(row);
        }
        let mut decoded = self.decoded;
        zeros_left_out(&mut decoded.computations);
        decoded.records.shrink_to_fit();
        let all = &mut decoded.instructions;
        all.opcode.shrink_to_fit();
        all.shape.shrink_to_fit();
        all.argument.shrink_to_fit();
        all.operands.ends.shrink_to_fit();
        all.operands.items.shrink_to_fit();
        decoded
    }
}

impl Columns {
    fn clear(&mut self) {
        self.opcode.clear();
        self.shape.clear();
        self.argument.clear();
        self.odd_numbers.clear();
        self.records.clear();
        self.operand_ends.clear();
        self.operands.clear();
        self.computations.clear();
        self.out_of_order = false;
    }
}

/// A computation without a number has number 0, which the format leaves out; one of a damaged file has none.
fn zeros_left_out(computations: &mut [ComputationEntry]) {
    let has_zero = computations.iter().any(|entry| entry.number == 0);
    if let (false, Some(entry)) = (has_zero, computations.iter_mut().find(|entry| entry.number == i64::MIN)) {
        entry.number = 0;
    }
    for entry in computations.iter_mut().filter(|entry| entry.root == i64::MIN) {
        entry.root = 0;
    }
}

fn append<T>(to: &mut SparseLists<T>, from: &mut SparseLists<T>, first_row: u32) {
    let shift = to.items.len() as u32;
    to.rows.extend(from.rows.drain(..).map(|(row, start)| (row + first_row, start + shift)));
    to.items.append(&mut from.items);
}
