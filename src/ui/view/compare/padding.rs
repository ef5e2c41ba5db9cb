//! Padding at both peaks by shape and layout, the largest difference first.

use egui::Ui;

use super::state::{Found, State};
use crate::export::diff::{BytesDiff, ShapeDiff};
use crate::model::{Bytes, UnitSystem, thousands};
use crate::ui::part::ViewContext;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table};
use crate::ui::widget::theme::size;

/// Draws the table.
pub fn show(ui: &mut Ui, context: &ViewContext<'_>, state: &mut State, found: &Found) {
    let theme = context.theme;
    let rows: &[ShapeDiff] = found.space().map_or(&[], |space| &space.padding_by_shape);
    if rows.is_empty() {
        ui.add_space(16.0);
        ui.label(text("No padding at either peak", size::LEAD, Weight::Medium, theme.text));
        return;
    }
    let units = context.options.units;
    let difference = |row: &ShapeDiff| row.waste.difference.unwrap_or(0);
    let largest = rows.iter().map(|row| difference(row).unsigned_abs()).max().unwrap_or(0).max(1);
    let scale = units.short(Bytes(u64::try_from(largest).unwrap_or(u64::MAX)));
    let columns = [
        Column::text("Shape", 150.0, 2.0).fixed(),
        Column::text("Layout", 120.0, 2.0).fixed(),
        Column::number("Padding before", 110.0).fixed(),
        Column::number("After", 96.0).fixed(),
        Column::number(&format!("Difference (bar \u{b1}{scale})"), 206.0).fixed(),
        Column::number("Buffers", 90.0).fixed(),
    ];
    let table = Table { keys: true, ..Table::new(&columns, rows.len(), "padding by shape") };
    let label = |line: usize| format!("{} {}", rows[line].shape, amount(units, rows[line].waste));
    table.show(ui, &mut state.padding, label, |line, column| {
        let row = &rows[line];
        let size = |bytes: Option<u64>| Cell::text(bytes.map_or_else(String::new, |bytes| units.short(Bytes(bytes))));
        match column {
            0 => Cell::mono(&row.shape),
            1 => Cell::mono(&row.layout).quiet(),
            2 => size(row.waste.before),
            3 => size(row.waste.after),
            4 => {
                let share = (difference(row) as f64 / largest as f64) as f32;
                Cell { difference: Some(share), ..Cell::text(amount(units, row.waste)) }
            }
            _ => {
                let [before, after] = [row.buffers_before, row.buffers_after].map(|count| thousands(count as u64));
                Cell::text(if before == after { after } else { format!("{before} \u{2192} {after}") })
            }
        }
    });
}

fn amount(units: UnitSystem, waste: BytesDiff) -> String {
    match waste.difference {
        None | Some(0) => "=".to_owned(),
        Some(difference) => units.signed(difference),
    }
}
