//! Rows of a table as columns of plain values, text kept once.

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;

use super::schema::{Kind, Table};

/// A value in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'a> {
    /// Not known.
    Null,
    /// Text.
    Text(&'a str),
    /// A whole number: bytes, a count, a step, a time.
    Int(i64),
    /// Whether something is so.
    Bool(bool),
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u32> for Cell<'_> {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<u64> for Cell<'_> {
    /// Numbers too large for the column become the largest that it holds.
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell<'_> {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

impl From<bool> for Cell<'_> {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Text that is not known is an empty string in the model.
pub(super) fn word(text: &str) -> Cell<'_> {
    if text.is_empty() { Cell::Null } else { Cell::Text(text) }
}

/// The row of a text in [`Texts`] that stands for no text.
pub(super) const NO_TEXT: u32 = u32::MAX;

/// Texts in one string, equal ones once.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    pub all: String,
    /// One past the last byte of each.
    pub ends: Vec<usize>,
    known: HashMap<u64, u32, RandomState>,
    hasher: RandomState,
}

impl Texts {
    pub fn at(&self, row: u32) -> &str {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before as usize)).copied().unwrap_or(0);
        self.ends.get(row as usize).and_then(|&end| self.all.get(start..end)).unwrap_or_default()
    }

    fn add(&mut self, text: &str) -> u32 {
        let hash = self.hasher.hash_one(text);
        if let Some(&row) = self.known.get(&hash)
            && self.at(row) == text
        {
            return row;
        }
        let row = self.ends.len() as u32;
        self.all.push_str(text);
        self.ends.push(self.all.len());
        self.known.insert(hash, row);
        row
    }
}

/// A column of a chunk.
#[derive(Debug, Clone)]
pub(super) enum Values {
    /// Rows of the texts, or [`NO_TEXT`].
    Text(Texts, Vec<u32>),
    Int(Vec<Option<i64>>),
    Bool(Vec<Option<bool>>),
}

/// Rows of one table.
#[derive(Debug, Clone)]
pub struct Chunk {
    table: Table,
    rows: usize,
    pub(super) columns: Vec<Values>,
}

impl Chunk {
    /// No rows of a table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        let empty = |kind: Kind| match kind {
            Kind::Text => Values::Text(Texts::default(), Vec::new()),
            Kind::Int | Kind::Time => Values::Int(Vec::new()),
            Kind::Bool => Values::Bool(Vec::new()),
        };
        Self { table, rows: 0, columns: table.columns().iter().map(|column| empty(column.kind)).collect() }
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> Table {
        self.table
    }

    /// Takes the rows out.
    pub(super) fn take(&mut self) -> Self {
        let empty = Self::new(self.table);
        std::mem::replace(self, empty)
    }

    /// Number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of its texts.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let bytes = |values: &Values| if let Values::Text(texts, _) = values { texts.all.len() } else { 0 };
        self.columns.iter().map(bytes).sum()
    }

    /// Adds a row, one cell for each column in the order of the schema; a cell that is missing or of another kind
    /// is null.
    pub fn push(&mut self, cells: &[Cell<'_>]) {
        debug_assert_eq!(cells.len(), self.columns.len(), "{:?}", self.table);
        for (place, values) in self.columns.iter_mut().enumerate() {
            match (values, cells.get(place).copied().unwrap_or(Cell::Null)) {
                (Values::Text(texts, rows), Cell::Text(text)) => rows.push(texts.add(text)),
                (Values::Text(_, rows), _) => rows.push(NO_TEXT),
                (Values::Int(rows), Cell::Int(number)) => rows.push(Some(number)),
                (Values::Int(rows), _) => rows.push(None),
                (Values::Bool(rows), Cell::Bool(is)) => rows.push(Some(is)),
                (Values::Bool(rows), _) => rows.push(None),
            }
        }
        self.rows += 1;
    }

    /// Adds the rows of another chunk of the same table.
    pub(super) fn append(&mut self, other: &Self) {
        for (values, more) in self.columns.iter_mut().zip(&other.columns) {
            match (values, more) {
                (Values::Text(texts, rows), Values::Text(more, more_rows)) => {
                    let place: Vec<u32> = (0..more.ends.len() as u32).map(|row| texts.add(more.at(row))).collect();
                    rows.extend(more_rows.iter().map(|&row| place.get(row as usize).copied().unwrap_or(NO_TEXT)));
                }
                (Values::Int(rows), Values::Int(more)) => rows.extend(more),
                (Values::Bool(rows), Values::Bool(more)) => rows.extend(more),
                _ => {}
            }
        }
        self.rows += other.rows;
    }

    /// A value of a row.
    pub(super) fn cell(&self, column: usize, row: usize) -> Cell<'_> {
        match self.columns.get(column) {
            Some(Values::Text(texts, rows)) => match rows.get(row) {
                Some(&text) if text != NO_TEXT => Cell::Text(texts.at(text)),
                _ => Cell::Null,
            },
            Some(Values::Int(rows)) => rows.get(row).copied().flatten().into(),
            Some(Values::Bool(rows)) => rows.get(row).copied().flatten().into(),
            None => Cell::Null,
        }
    }
}
