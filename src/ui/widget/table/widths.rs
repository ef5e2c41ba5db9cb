//! Widths of a table's columns: what they ask for, and room that one does not need for another whose text would be cut.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use egui::Ui;

use super::Table;
use super::cell::{self, Cell, Column};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::size;

/// Width in points to which a column of numbers, and one of text, gives way where there is too little room.
const LEAST_NUMBER: f32 = 92.0;
const LEAST_TEXT: f32 = 52.0;

/// Rows whose contents are measured: the first ones, which are seen first, and some of all others.
const FIRST: usize = 48;
const OTHERS: usize = 24;

/// Width of the sign of a sorted column.
const ARROW: f32 = 14.0;

/// What the columns need for their contents, measured anew only when these change.
#[derive(Debug, Clone, Default)]
pub(super) struct Needs {
    /// Hash of the number of rows, the first and the last one, the titles and the scale for which it was measured.
    key: Option<u64>,
    widths: Vec<f32>,
}

impl Needs {
    /// Width in points that each column needs to show everything.
    pub(super) fn of_columns(&self) -> &[f32] {
        &self.widths
    }

    /// Measures the contents, if they have changed.
    pub(super) fn measure(
        &mut self,
        ui: &Ui,
        table: &Table<'_>,
        label: &impl Fn(usize) -> String,
        cell: &mut impl FnMut(usize, usize) -> Cell,
    ) {
        let last = table.rows.checked_sub(1);
        let words = |row: Option<usize>| row.map(label).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        (table.rows, words(last.map(|_| 0)), words(last), ui.painter().pixels_per_point().to_bits()).hash(&mut hasher);
        table.columns.iter().for_each(|column| column.title.hash(&mut hasher));
        let key = Some(hasher.finish());
        if self.key == key {
            return;
        }
        self.key = key;
        let wide = |words: &str, weight: Weight| {
            ui.painter().layout_no_wrap(words.to_owned(), weight.at(size::SMALL), egui::Color32::PLACEHOLDER).size().x
        };
        let rest = table.rows.saturating_sub(FIRST);
        let sampled =
            (0..table.rows.min(FIRST)).chain((0..OTHERS.min(rest)).map(|i| FIRST + i * rest / OTHERS.min(rest)));
        let sampled: Vec<usize> = sampled.collect();
        let need = |(at, column): (usize, &Column)| {
            let is_sorted = table.sort.is_some_and(|(by, _)| by == at);
            let arrow = if column.sortable || is_sorted { ARROW } else { 0.0 };
            let head = wide(&column.title, Weight::Medium) + arrow + 2.0 * cell::PAD;
            let cells = sampled.iter().map(|&row| cell::need(&cell(row, at), column, &wide));
            cells.fold(head, f32::max)
        };
        self.widths = table.columns.iter().enumerate().map(need).collect();
    }
}

/// Left and right edge of each column.
pub(super) fn edges(columns: &[Column], needs: &[f32], left: f32, width: f32) -> Vec<(f32, f32)> {
    let asked: f32 = columns.iter().map(|c| c.width).sum();
    let grow: f32 = columns.iter().map(|c| c.grow).sum();
    let free = (width - asked).max(0.0);
    // Where there is too little room, text gives way before numbers: a number that is cut reads as another one.
    let least = |column: &Column| column.width.min(if column.right { LEAST_NUMBER } else { LEAST_TEXT });
    let least_of_all: f32 = columns.iter().map(least).sum();
    let given = ((width - least_of_all) / (asked - least_of_all).max(1.0)).clamp(0.0, 1.0);
    let shrink = (width / least_of_all.max(1.0)).min(1.0);
    let of = |column: &Column| {
        let extra = if grow > 0.0 { free * column.grow / grow } else { 0.0 };
        least(column) * shrink + (column.width - least(column)) * given + extra
    };
    let mut widths: Vec<f32> = columns.iter().map(of).collect();
    lend(&mut widths, needs);
    let mut x = left;
    let edge = |width: f32| {
        let edge = (x, x + width);
        x = edge.1;
        edge
    };
    widths.into_iter().map(edge).collect()
}

/// Gives what columns do not need to those that need more: first to those that lack least, so that a long text does not
/// take the room of a short one.
fn lend(widths: &mut [f32], needs: &[f32]) {
    let lacks = |widths: &[f32], at: usize| (needs[at] - widths[at]).max(0.0);
    let columns = 0..widths.len().min(needs.len());
    let mut short: Vec<usize> = columns.clone().filter(|&at| lacks(widths, at) > 0.0).collect();
    short.sort_by(|&a, &b| lacks(widths, a).total_cmp(&lacks(widths, b)));
    let spares: Vec<f32> = columns.map(|at| (widths[at] - needs[at]).max(0.0)).collect();
    let spare: f32 = spares.iter().sum();
    let mut left = spare;
    for (i, &at) in short.iter().enumerate() {
        let given = lacks(widths, at).min(left / (short.len() - i) as f32);
        widths[at] += given;
        left -= given;
    }
    if spare > 0.0 {
        widths.iter_mut().zip(&spares).for_each(|(width, own)| *width -= (spare - left) * own / spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(needs: &[f32], width: f32) -> Vec<f32> {
        let columns =
            [Column::text("Name", 100.0, 1.0), Column::text("Kind", 100.0, 1.0), Column::number("Size", 100.0)];
        edges(&columns, needs, 0.0, width).iter().map(|(left, right)| right - left).collect()
    }

    #[test]
    fn room_goes_to_a_column_whose_text_would_be_cut() {
        assert_eq!(widths(&[80.0, 80.0, 80.0], 300.0), [100.0, 100.0, 100.0], "all have what they need");
        assert_eq!(widths(&[140.0, 80.0, 80.0], 300.0), [140.0, 80.0, 80.0]);
        assert_eq!(widths(&[300.0, 80.0, 100.0], 300.0), [120.0, 80.0, 100.0], "no more than there is");
        assert_eq!(widths(&[110.0, 900.0, 60.0], 300.0), [110.0, 130.0, 60.0], "a short text first");
        assert_eq!(widths(&[500.0, 500.0, 100.0], 300.0), [100.0, 100.0, 100.0], "nothing to lend");
        assert_eq!(widths(&[], 300.0), [100.0, 100.0, 100.0], "not measured");
    }
}
