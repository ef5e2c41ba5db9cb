//! Collects the rows of a table and hands them on a limited number at a time.

use super::chunk::{Cell, Chunk};
use super::schema::Table;

/// Rows that are handed on at a time.
const ROWS_AT_A_TIME: usize = 1 << 15;

/// Bytes of text that are handed on at a time, even with fewer rows.
const TEXT_AT_A_TIME: usize = 8 << 20;

/// Rows of one table, handed on when there are enough.
pub(super) struct Rows<'a> {
    chunk: Chunk,
    emit: &'a mut dyn FnMut(Chunk),
}

impl<'a> Rows<'a> {
    /// No rows of a table yet.
    pub fn new(table: Table, emit: &'a mut dyn FnMut(Chunk)) -> Self {
        Self { chunk: Chunk::new(table), emit }
    }

    pub fn push(&mut self, cells: &[Cell<'_>]) {
        self.chunk.push(cells);
        if self.chunk.rows() >= ROWS_AT_A_TIME || self.chunk.text_bytes() >= TEXT_AT_A_TIME {
            let full = self.chunk.take();
            (self.emit)(full);
        }
    }

    pub fn finish(self) {
        if self.chunk.rows() > 0 {
            (self.emit)(self.chunk);
        }
    }
}
