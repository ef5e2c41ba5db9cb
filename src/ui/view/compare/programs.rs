//! Programs of two folders, matched by name, the largest change first.

use egui::Ui;

use super::state::State;
use crate::model::{Bytes, UnitSystem};
use crate::ui::part::{Action, ViewContext};
use crate::ui::session::{ListedProgram, PairedProgram};
use crate::ui::widget::table::{Cell, Column, Table};

/// Draws the table; choosing a row compares the two programs.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) {
    let Some(before) = context.document.before.clone() else { return };
    let rows = &before.programs;
    let units = context.options.units;
    let known = |side: Option<ListedProgram>| side.and_then(|side| side.needs);
    let difference = |row: &PairedProgram| {
        let (was, is) = known(row.before).zip(known(row.after))?;
        Some(i128::from(is.0) - i128::from(was.0))
    };
    let largest = rows.iter().filter_map(difference).map(i128::unsigned_abs).max().unwrap_or(0).max(1);
    let scale = units.short(Bytes(u64::try_from(largest).unwrap_or(u64::MAX)));
    let columns = [
        Column::text("Program", 240.0, 4.0).fixed(),
        Column::number("Before", 96.0).fixed(),
        Column::number("After", 96.0).fixed(),
        Column::number(&format!("Difference (bar \u{b1}{scale})"), 206.0).fixed(),
    ];
    let shown = rows.iter().position(|row| row.before.is_some_and(|side| is_shown(context, side, row)));
    let table = Table {
        columns: &columns,
        rows: rows.len(),
        selected: shown,
        lit: None,
        sort: None,
        name: "programs",
        keys: true,
    };
    let label = |line: usize| format!("{} {}", rows[line].name, amount(units, &rows[line], difference(&rows[line])));
    let response = table.show(ui, &mut state.programs, label, |line, column| {
        let row = &rows[line];
        let size = |side: Option<ListedProgram>| match side {
            None => Cell::text("not there").quiet(),
            Some(side) => Cell::text(side.needs.map_or_else(|| "\u{2013}".to_owned(), |bytes| units.short(bytes))),
        };
        match column {
            0 => Cell::text(row.name.clone()),
            1 => size(row.before),
            2 => size(row.after),
            _ => {
                let found = difference(row);
                let share = found.map(|found| (found as f64 / largest as f64) as f32);
                Cell { difference: share, ..Cell::text(amount(units, row, found)) }
            }
        }
    });
    let both = response.chosen.and_then(|line| rows.get(line)).and_then(|row| row.before.zip(row.after));
    if let Some((before, after)) = both {
        context.actions.push(Action::ComparePrograms(before.id, after.id));
    }
}

/// Whether a row is the pair that is compared now: by the bytes of both, since a document does not know its entry.
fn is_shown(context: &ViewContext<'_>, side: ListedProgram, row: &PairedProgram) -> bool {
    let is_named = context.document.profile.programs.iter().any(|program| program.name == row.name);
    is_named && side.needs == context.document.before.as_ref().and_then(|before| before.document.need())
}

fn amount(units: UnitSystem, row: &PairedProgram, difference: Option<i128>) -> String {
    match (row.before, row.after, difference) {
        (None, ..) => "appeared".to_owned(),
        (_, None, _) => "gone".to_owned(),
        (.., None) => "\u{2013}".to_owned(),
        (.., Some(0)) => "=".to_owned(),
        (.., Some(difference)) => units.signed(difference),
    }
}
