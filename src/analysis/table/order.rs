//! Sorting and grouping of table rows.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;

use super::columns::{BufferTable, Column};
use crate::analysis::peak_contents::padding_in;
use crate::analysis::program::ProgramAnalysis;
use crate::model::{BufferId, Bytes, Program};

/// What counts for rows in sums: their size and padding, or less where buffers share memory.
#[derive(Debug, Clone, Default)]
pub struct Counted(HashMap<u32, (u64, i64)>);

impl Counted {
    /// The rows of a table that count with another number of bytes than their size, of those live at one point.
    #[must_use]
    pub fn new(program: &Program, analysis: &ProgramAnalysis, table: &BufferTable, live: &[(BufferId, Bytes)]) -> Self {
        let differs = |&&(buffer, bytes): &&(BufferId, Bytes)| bytes != program.buffers.size_of(buffer);
        let counted = live.iter().filter(differs).filter_map(|&(buffer, bytes)| {
            let padding = padding_in(program, &analysis.traces, buffer, bytes);
            Some((table.row_of(buffer)?, (bytes.0, i64::try_from(padding).unwrap_or(0))))
        });
        Self(counted.collect())
    }

    /// Whether every row counts with its size.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.0.is_empty()
    }

    /// Total size and padding in bytes.
    fn sums(&self, table: &BufferTable, rows: &[u32]) -> (u64, i64) {
        let of = |&row: &u32| {
            let plain = || (table.size[row as usize], table.padding[row as usize]);
            self.0.get(&row).copied().unwrap_or_else(plain)
        };
        let add = |sum: (u64, i64), row: (u64, i64)| (sum.0.saturating_add(row.0), sum.1.saturating_add(row.1));
        rows.iter().map(of).fold((0, 0), add)
    }
}

/// A sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Column to sort by.
    pub column: Column,
    /// Whether to sort in descending order.
    pub down: bool,
}

/// Sorting and grouping options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Order {
    /// Sort keys, most significant first; ties keep file order.
    pub keys: Vec<Key>,
    /// Column to group by.
    pub group: Option<Column>,
    /// Labels of expanded groups.
    pub open: HashSet<String>,
}

/// A visible line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// A group header.
    Group(u32),
    /// A table row.
    Row(u32),
}

/// A group with its subtotals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    /// Common value of its rows.
    pub name: String,
    /// Number of rows.
    pub count: usize,
    /// Total size in bytes.
    pub size: u64,
    /// Total padding in bytes.
    pub padding: i64,
    /// Whether it is expanded.
    pub open: bool,
}

/// The arranged lines and totals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// Groups in display order; empty if not grouped.
    pub groups: Vec<GroupRow>,
    /// Visible lines from top to bottom.
    pub lines: Vec<Line>,
    /// Number of rows, including those in collapsed groups.
    pub rows: usize,
    /// Total size in bytes.
    pub size: u64,
    /// Total padding in bytes.
    pub padding: i64,
}

/// Sorts and groups rows of a table; sums are of what counts for them.
#[must_use]
pub fn arrange(table: &BufferTable, mut rows: Vec<u32>, order: &Order, counted: &Counted) -> Shown {
    if order.keys.iter().any(|key| key.column == Column::Name) {
        table.name.rank();
    }
    sort(table, &mut rows, &order.keys);
    let (size, padding) = counted.sums(table, &rows);
    let mut shown = Shown { rows: rows.len(), size, padding, ..Shown::default() };
    let Some(column) = order.group else {
        shown.lines = rows.into_iter().map(Line::Row).collect();
        return shown;
    };
    // Rows of each group, in order.
    let words = if column == Column::Op { Some(&table.scope) } else { table.words(column) };
    let number = |row: u32| words.map_or(table.category[row as usize] as u32, |w| w.of[row as usize]);
    let mut members: Vec<Vec<u32>> = Vec::new();
    for row in rows {
        let group = number(row) as usize;
        if members.len() <= group {
            members.resize_with(group + 1, Vec::new);
        }
        members[group].push(row);
    }
    let mut heads: Vec<(GroupRow, Vec<u32>)> = members
        .into_iter()
        .enumerate()
        .filter(|(_, rows)| !rows.is_empty())
        .map(|(group, rows)| {
            let name = match words {
                Some(words) => words.values[group].clone(),
                None => rows.first().map_or("", |&row| table.category[row as usize].name()).to_owned(),
            };
            let (size, padding) = counted.sums(table, &rows);
            let head = GroupRow { open: order.open.contains(&name), count: rows.len(), size, padding, name };
            (head, rows)
        })
        .collect();
    let first = order.keys.first().copied().unwrap_or(Key { column: Column::Size, down: true });
    heads.sort_by(|(a, _), (b, _)| {
        let ascending = match first.column {
            Column::Padding | Column::Share => a.padding.cmp(&b.padding),
            Column::Size | Column::Useful => a.size.cmp(&b.size),
            own if own == column => a.name.cmp(&b.name),
            _ => b.size.cmp(&a.size),
        };
        let by_key = matches!(first.column, Column::Padding | Column::Share | Column::Size | Column::Useful)
            || first.column == column;
        let ordering = if by_key && first.down { ascending.reverse() } else { ascending };
        ordering.then_with(|| a.name.cmp(&b.name))
    });
    for (i, (head, rows)) in heads.into_iter().enumerate() {
        shown.lines.push(Line::Group(i as u32));
        if head.open {
            shown.lines.extend(rows.into_iter().map(Line::Row));
        }
        shown.groups.push(head);
    }
    shown
}

fn sort(table: &BufferTable, rows: &mut Vec<u32>, keys: &[Key]) {
    let value = |key: &Key, row: u32| {
        let value = table.key(key.column, row as usize);
        if key.down { value.saturating_neg() } else { value }
    };
    match keys {
        [] => rows.par_sort_unstable(),
        [first, rest @ ..] => {
            // The first key is computed once per row, the others only on ties.
            let mut keyed: Vec<(i64, u32)> = rows.par_iter().map(|&row| (value(first, row), row)).collect();
            keyed.par_sort_unstable_by(|a, b| {
                let later = || rest.iter().map(|key| value(key, a.1).cmp(&value(key, b.1))).find(|o| o.is_ne());
                a.0.cmp(&b.0).then_with(|| later().unwrap_or(a.1.cmp(&b.1)))
            });
            *rows = keyed.into_iter().map(|(_, row)| row).collect();
        }
    }
}
