//! The lists below the memory report for the chosen tiles: vertex types, exchanges, compute sets, variables.

use std::collections::HashMap;

use egui::{Pos2, Rect, Ui, Vec2};

use super::variables::{address_maps, stored, variables};
use super::{LIST, Part, State};
use crate::analysis::tiles::{MemoryReport, Named};
use crate::model::{LARGEST_ROWS, TileMemory, TileRows, in_words, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::menu::{self, Thing};
use crate::ui::widget::controls::segmented;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::size;

/// Maximum number of chosen tiles with a column in the lists.
const TILE_COLUMNS: usize = 3;

pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    memory: &TileMemory,
    state: &mut State,
    chosen: &[u32],
    rect: Rect,
) {
    let theme = context.theme;
    let head = Rect::from_min_size(rect.min, Vec2::new(rect.width(), 26.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(head).id_salt("memory parts"));
    let all = [
        (Part::Vertices, "Vertices", !memory.vertex_types.rows.is_empty()),
        (Part::Exchanges, "Exchanges", !memory.exchanges.rows.is_empty()),
        (Part::ComputeSets, "Compute sets", !memory.compute_sets.rows.is_empty()),
        (Part::Variables, "Variables", !memory.variables.is_empty() || state.stored.is_some()),
    ];
    let parts: Vec<_> = all.into_iter().filter(|part| part.2).collect();
    if parts.is_empty() {
        return;
    }
    let at = parts.iter().position(|part| part.0 == state.part).unwrap_or(0);
    let part = parts[at].0;
    child.horizontal(|ui| {
        let words: Vec<&str> = parts.iter().map(|part| part.1).collect();
        if let Some(i) = segmented(ui, &words, at, theme) {
            state.part = parts[i].0;
            state.below = TableState::default();
            state.lit = None;
        }
        let words = match part {
            Part::Variables if state.stored.is_some() => "of the first chosen tile, largest first".to_owned(),
            Part::Variables => "of the chosen tiles, by address".to_owned(),
            Part::ComputeSets if memory.compute_sets.rows.iter().all(|row| row.bytes == 0) => {
                "the file gives no bytes for them".to_owned()
            }
            Part::Vertices if memory.vertex_types.rows.len() <= LARGEST_ROWS => {
                "largest on the chosen tiles first".to_owned()
            }
            _ => format!("largest on the chosen tiles first; only the {LARGEST_ROWS} largest of a tile are known"),
        };
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    });
    let body = Rect::from_min_max(Pos2::new(rect.left(), head.bottom() + 4.0), rect.max);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(body).id_salt("memory list"));
    let reports = &state.reports;
    match part {
        Part::Vertices => {
            let rows = rows_of(reports, |report| &report.vertex_types);
            table(&mut child, context, &mut state.below, ("Vertex type", &memory.vertex_types), &rows, chosen);
        }
        Part::Exchanges => {
            let rows = rows_of(reports, |report| &report.exchanges);
            table(&mut child, context, &mut state.below, ("Exchange", &memory.exchanges), &rows, chosen);
        }
        Part::ComputeSets => {
            let mut rows = rows_of(reports, |report| &report.compute_sets);
            let known: std::collections::HashSet<u32> = rows.iter().map(|row| row.row).collect();
            let all = 0..memory.compute_sets.rows.len() as u32;
            let rest = all.filter(|row| !known.contains(row)).map(|row| Listed { row, ..Listed::default() });
            rows.extend(rest.take(LIST));
            table(&mut child, context, &mut state.below, ("Compute set", &memory.compute_sets), &rows, chosen);
        }
        Part::Variables if state.stored.is_some() => stored(&mut child, context, state),
        Part::Variables => {
            let rows: Vec<u32> =
                state.reports.iter().skip(1).flat_map(|report| report.variables.iter().copied()).collect();
            let (height, clicked) = address_maps(&child, context, memory, &rows, body.with_min_y(body.top() + 4.0));
            if clicked.is_some() {
                state.lit = clicked;
                state.below.reveal = clicked;
            }
            let below = Rect::from_min_max(Pos2::new(body.left(), body.top() + height + 4.0), body.max);
            let mut child = ui.new_child(egui::UiBuilder::new().max_rect(below).id_salt("memory variables"));
            variables(&mut child, context, &mut state.below, memory, &rows, state.lit);
        }
    }
}

/// A row with its bytes on each chosen tile; `None` where it is not among the tile's largest.
#[derive(Default)]
struct Listed {
    row: u32,
    on_tiles: Vec<Option<u64>>,
}

/// Rows of all tiles, those with the most on the chosen tiles first.
fn rows_of(reports: &[MemoryReport], of: impl Fn(&MemoryReport) -> &Vec<Named>) -> Vec<Listed> {
    let Some((all, chosen)) = reports.split_first() else { return Vec::new() };
    let on: Vec<HashMap<u32, u64>> =
        chosen.iter().map(|report| of(report).iter().map(|named| (named.row, named.bytes)).collect()).collect();
    let bytes = |row: u32| on.iter().map(move |tile| tile.get(&row).copied());
    let mut rows: Vec<Listed> =
        of(all).iter().map(|named| Listed { row: named.row, on_tiles: bytes(named.row).collect() }).collect();
    // Rows absent from the chosen tiles keep the order of all tiles.
    rows.sort_by_key(|row| std::cmp::Reverse(row.on_tiles.iter().flatten().sum::<u64>()));
    rows
}

fn table(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut TableState,
    (title, of): (&str, &TileRows),
    rows: &[Listed],
    chosen: &[u32],
) {
    let parts: Vec<&'static str> = of
        .rows
        .iter()
        .map(|row| &row.parts)
        .max_by_key(|parts| parts.len())
        .map_or_else(Vec::new, |parts| parts.iter().map(|part| part.0).collect());
    let has_bytes = of.rows.iter().any(|row| row.bytes > 0);
    let tiles = rows.first().map_or(0, |row| row.on_tiles.len()).min(TILE_COLUMNS);
    let mut columns = vec![Column::text(title, 220.0, 3.0).fixed()];
    if has_bytes {
        for &tile in chosen.iter().take(tiles) {
            let name = if chosen.len() > tiles && tiles == 1 {
                format!("{} tiles, B", thousands(chosen.len() as u64))
            } else {
                format!("Tile {tile}, B")
            };
            columns.push(Column::number(&name, 110.0).fixed());
        }
        columns.push(Column::number("All tiles, B", 110.0).fixed());
        columns.push(Column::number("Fullest tile", 90.0).fixed());
        columns.push(Column::number("Its bytes", 90.0).fixed());
    }
    let fixed = columns.len();
    let room = ((ui.available_width() - 220.0 - 110.0 * (fixed as f32 - 1.0)) / 110.0).max(0.0) as usize;
    columns.extend(parts.iter().take(room).map(|part| Column::number(&in_words(part), 110.0).fixed()));
    let table = Table::new(&columns, rows.len(), title);
    let row_of = |row: usize| &of.rows[rows[row].row as usize];
    let unknown = || Cell::text("\u{2013}").quiet();
    let response = table.show(
        ui,
        state,
        |row| row_of(row).name.clone(),
        |at, column| {
            let row = row_of(at);
            if column == 0 {
                return Cell::mono(if row.name.is_empty() { "unnamed" } else { &row.name });
            }
            if column <= tiles {
                // Not among the tile's largest: unknown, not zero.
                return rows[at]
                    .on_tiles
                    .get(column - 1)
                    .copied()
                    .flatten()
                    .map_or_else(unknown, |b| Cell::text(thousands(b)));
            }
            match column - tiles {
                1..=3 if row.bytes == 0 => unknown(),
                1 => Cell::text(thousands(row.bytes)),
                2 => Cell::text(row.max.0.to_string()).quiet(),
                3 => Cell::text(thousands(row.max.1)),
                _ => {
                    let part = parts.get(column - fixed);
                    let bytes = row.parts.iter().find(|own| Some(&own.0) == part).map(|own| own.1);
                    bytes.map_or_else(unknown, |bytes| Cell::text(thousands(bytes)).quiet())
                }
            }
        },
    );
    menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        let row = row_of(row);
        let thing = Thing::named(row.name.clone());
        if row.bytes > 0 { thing.copies("Copy bytes", row.bytes.to_string()).on_tile(row.max.0) } else { thing }
    });
}
