//! The lists below the overview of an IPU profile: IPUs and categories.

use egui::{Sense, Ui, Vec2};

use crate::analysis::tiles::TileAnalysis;
use crate::model::{Bytes, in_words, percent, thousands};
use crate::ui::part::menu::{self, Thing};
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::{Slot, size, space};

/// A table inside the page that shows all of its rows.
fn whole_table(ui: &mut Ui, rows: usize, name: &str, show: impl FnOnce(&mut Ui)) {
    let height = 27.0 + space::ROW * rows as f32;
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), height), Sense::hover());
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rect).id_salt(name));
    show(&mut child);
    ui.add_space(12.0);
}

/// IPUs, one row each.
pub fn ipus(ui: &mut Ui, context: &mut ViewContext<'_>, tiles: &TileAnalysis, state: &mut TableState) {
    let theme = context.theme;
    ui.label(text("By IPU", size::BODY, Weight::SemiBold, theme.text));
    let columns = [
        Column::number("IPU", 60.0).fixed(),
        Column::number("All tiles", 240.0).fixed(),
        Column::number("Fullest tile", 110.0).fixed(),
        Column::number("holds", 110.0).fixed(),
        Column::number("over", 80.0).fixed(),
        Column::number("nearly idle", 110.0).fixed(),
        Column::text("", 10.0, 1.0).fixed(),
    ];
    let most = tiles.ipus.iter().map(|ipu| ipu.bytes).max().unwrap_or(1).max(1);
    let units = context.options.units;
    whole_table(ui, tiles.ipus.len(), "ipus", |ui| {
        let table = Table::new(&columns, tiles.ipus.len(), "ipus");
        let response = table.show(
            ui,
            state,
            |row| format!("IPU {row}"),
            |row, column| {
                let ipu = &tiles.ipus[row];
                match column {
                    0 => Cell::text(row.to_string()),
                    1 => {
                        Cell::text(units.short(Bytes(ipu.bytes))).bar(ipu.bytes as f32 / most as f32, Slot::Activation)
                    }
                    2 => Cell::text(ipu.max.0.to_string()),
                    3 => Cell::text(units.short(Bytes(ipu.max.1))),
                    4 => Cell::text(thousands(ipu.over as u64)),
                    5 => Cell::text(thousands(ipu.idle as u64)).quiet(),
                    _ => Cell::default(),
                }
            },
        );
        menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
            let ipu = &tiles.ipus[row];
            Thing::named(format!("IPU {row}")).copies("Copy bytes", ipu.bytes.to_string()).on_tile(ipu.max.0)
        });
    });
}

/// What the tiles hold, by category.
pub fn categories(ui: &mut Ui, context: &mut ViewContext<'_>, tiles: &TileAnalysis, state: &mut TableState) {
    let theme = context.theme;
    let mut rows: Vec<_> =
        tiles.categories.iter().filter(|row| row.bytes > 0 || row.overlapped.unwrap_or(0) > 0).collect();
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    ui.label(text("Largest categories", size::BODY, Weight::SemiBold, theme.text));
    let columns = [
        Column::text("Category", 200.0, 1.0).fixed(),
        Column::number("Not overlapped", 240.0).fixed(),
        Column::number("Overlapped, not summed", 190.0).fixed(),
        Column::number("Share", 90.0).fixed(),
    ];
    let sum: u64 = rows.iter().map(|row| row.bytes).sum();
    let most = rows.first().map_or(1, |row| row.bytes).max(1);
    let units = context.options.units;
    whole_table(ui, rows.len(), "categories", |ui| {
        let table = Table::new(&columns, rows.len(), "categories");
        let response = table.show(
            ui,
            state,
            |row| in_words(&rows[row].name),
            |row, column| {
                let category = rows[row];
                let slot = colors::tile_slot(&category.name);
                match column {
                    0 => Cell::text(in_words(&category.name)).swatch(slot),
                    1 => Cell::text(units.short(Bytes(category.bytes))).bar(category.bytes as f32 / most as f32, slot),
                    2 => match category.overlapped {
                        Some(0) | None => Cell::text("\u{2013}").quiet(),
                        Some(bytes) => Cell::text(units.short(Bytes(bytes))).quiet(),
                    },
                    _ => Cell::text(percent(category.bytes, sum)),
                }
            },
        );
        menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
            Thing::named(in_words(&rows[row].name))
                .copies("Copy bytes", rows[row].bytes.to_string())
                .shown_in("tiles")
                .shown_in("memory")
        });
    });
}
