//! What the two peaks hold, equal layers folded into one row: which rows are new, gone, larger, smaller.

use std::collections::HashMap;

use super::identity::Rows;
use super::matching::Matching;
use crate::analysis::class::Class;
use crate::analysis::scene::Scene;
use crate::model::BufferId;

/// Buffers of one class with the same folded scope, at the two peaks.
#[derive(Debug, Clone)]
pub struct GroupRow {
    /// Class, after where it differs.
    pub class: Class,
    /// Folded scope or argument: `layer_*/attn/softmax`, `params[…]`; the kind of instruction where names tell none.
    pub scope: String,
    /// Bytes at the peak before.
    pub before: u64,
    /// Bytes at the peak after.
    pub after: u64,
    /// Buffers at the peak before.
    pub count_before: usize,
    /// Buffers at the peak after.
    pub count_after: usize,
    /// Shape of the largest one before; empty if there is none.
    pub shape_before: String,
    /// Shape of the largest one after.
    pub shape_after: String,
    /// Whether some take less than the largest of their side.
    pub is_mixed: bool,
    /// The largest one before; `None` if there is none.
    pub largest_before: Option<BufferId>,
    /// The largest one after.
    pub largest_after: Option<BufferId>,
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing of it stood at the peak before.
    Appeared,
    /// Nothing of it stands at the peak after.
    Gone,
    /// It has more bytes than before.
    Grew,
    /// It has fewer.
    Shrank,
    /// As many as before.
    Equal,
}

impl Change {
    /// What became of so many bytes.
    #[must_use]
    pub const fn of(before: u64, after: u64) -> Self {
        match (before, after) {
            _ if before == after => Self::Equal,
            (0, _) => Self::Appeared,
            (_, 0) => Self::Gone,
            _ if before < after => Self::Grew,
            _ => Self::Shrank,
        }
    }

    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Appeared => "appeared",
            Self::Gone => "gone",
            Self::Grew => "grew",
            Self::Shrank => "shrank",
            Self::Equal => "equal",
        }
    }

    /// In words, where two peaks are compared: what stands at one of them only may live at other times of both programs.
    #[must_use]
    pub const fn at_peak(self) -> &'static str {
        match self {
            Self::Appeared => "now at the peak",
            Self::Gone => "not at the peak",
            Self::Grew | Self::Shrank | Self::Equal => self.name(),
        }
    }
}

impl GroupRow {
    /// After less before, in bytes.
    #[must_use]
    pub fn difference(&self) -> i128 {
        i128::from(self.after) - i128::from(self.before)
    }

    /// What became of it.
    #[must_use]
    pub const fn change(&self) -> Change {
        Change::of(self.before, self.after)
    }
}

/// Rows being filled, by class and scope.
#[derive(Default)]
struct Folder {
    rows: Vec<GroupRow>,
    row_of: HashMap<(Class, String), usize>,
    /// Largest size of each row, before and after.
    largest: Vec<[u64; 2]>,
}

impl Folder {
    fn row(&mut self, class: Class, scope: &str) -> usize {
        if let Some(&row) = self.row_of.get(&(class, scope.to_owned())) {
            return row;
        }
        self.rows.push(GroupRow {
            class,
            scope: scope.to_owned(),
            before: 0,
            after: 0,
            count_before: 0,
            count_after: 0,
            shape_before: String::new(),
            shape_after: String::new(),
            is_mixed: false,
            largest_before: None,
            largest_after: None,
        });
        self.largest.push([0; 2]);
        self.row_of.insert((class, scope.to_owned()), self.rows.len() - 1);
        self.rows.len() - 1
    }

    fn add_before(&mut self, row: usize, (buffer, bytes): (BufferId, u64), shape: &str) {
        let group = &mut self.rows[row];
        group.before += bytes;
        group.count_before += 1;
        if bytes > self.largest[row][0] {
            self.largest[row][0] = bytes;
            shape.clone_into(&mut group.shape_before);
            group.largest_before = Some(buffer);
        }
    }

    fn add_after(&mut self, row: usize, (buffer, bytes): (BufferId, u64), shape: &str) {
        let group = &mut self.rows[row];
        group.after += bytes;
        group.count_after += 1;
        if bytes > self.largest[row][1] {
            self.largest[row][1] = bytes;
            shape.clone_into(&mut group.shape_after);
            group.largest_after = Some(buffer);
        }
    }
}

/// The folded scope of a buffer; the kind of instruction in parentheses where names tell none.
pub(super) fn scope_of(scene: Scene<'_>, rows: &Rows, row: u32) -> String {
    let table = scene.table();
    let row = rows.table_row[row as usize] as usize;
    let scope = table.scope.at(row);
    if scope.is_empty() { format!("({})", table.opcode.at(row)) } else { scope.to_owned() }
}

/// Folds both peaks; the largest difference first. The differences of all rows add up to that of the peaks.
pub(super) fn rows(
    before: Scene<'_>,
    after: Scene<'_>,
    rows_before: &Rows,
    rows_after: &Rows,
    matching: &Matching,
) -> Vec<GroupRow> {
    let mut folder = Folder::default();
    let [table_before, table_after] = [before.table(), after.table()];
    let shape_before = |row: u32| table_before.shape.at(rows_before.table_row[row as usize] as usize);
    let shape_after = |row: u32| table_after.shape.at(rows_after.table_row[row as usize] as usize);
    for pair in &matching.pairs {
        let [from, to] = [rows_before.at_peak[pair.before as usize], rows_after.at_peak[pair.after as usize]];
        if from == 0 && to == 0 {
            continue;
        }
        // What was renamed is told by its new name on both sides, unless only the peak before holds it.
        let row = if to > 0 {
            folder.row(rows_after.class[pair.after as usize], &scope_of(after, rows_after, pair.after))
        } else {
            folder.row(rows_before.class[pair.before as usize], &scope_of(before, rows_before, pair.before))
        };
        if from > 0 {
            folder.add_before(row, (rows_before.buffers[pair.before as usize], from), shape_before(pair.before));
        }
        if to > 0 {
            folder.add_after(row, (rows_after.buffers[pair.after as usize], to), shape_after(pair.after));
        }
    }
    for &only in matching.only_before.iter().filter(|&&row| rows_before.at_peak[row as usize] > 0) {
        let row = folder.row(rows_before.class[only as usize], &scope_of(before, rows_before, only));
        let at_peak = (rows_before.buffers[only as usize], rows_before.at_peak[only as usize]);
        folder.add_before(row, at_peak, shape_before(only));
    }
    for &only in matching.only_after.iter().filter(|&&row| rows_after.at_peak[row as usize] > 0) {
        let row = folder.row(rows_after.class[only as usize], &scope_of(after, rows_after, only));
        let at_peak = (rows_after.buffers[only as usize], rows_after.at_peak[only as usize]);
        folder.add_after(row, at_peak, shape_after(only));
    }
    let mut rows = folder.rows;
    for (row, &[before, after]) in rows.iter_mut().zip(&folder.largest) {
        let all_of = |largest: u64, count: usize| largest.saturating_mul(count as u64);
        row.is_mixed = row.before != all_of(before, row.count_before) || row.after != all_of(after, row.count_after);
    }
    rows.sort_by(|a, b| {
        let key = |row: &GroupRow| (std::cmp::Reverse(row.difference().unsigned_abs()), std::cmp::Reverse(row.after));
        key(a).cmp(&key(b)).then_with(|| (a.class.place(), &a.scope).cmp(&(b.class.place(), &b.scope)))
    });
    rows
}
