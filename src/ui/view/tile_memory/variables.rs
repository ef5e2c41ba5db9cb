//! The variables of the chosen tiles: an address map for each tile, and a table.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, Ui, WidgetInfo};

use super::{LIST, Part, State};
use crate::model::{Bytes, TileMemory, TileVariables, in_words, thousands};
use crate::ui::part::menu::{self, Thing};
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::size;
use crate::ui::work::read_tile_variables;

/// Maximum number of tiles with an address strip.
const STRIPS: usize = 4;

/// Height of a strip, in points.
const STRIP: f32 = 26.0;

/// Starts reading the variables of the first chosen tile if the profile is a `profile.pop`. There may be many millions
/// of them, so they are read one tile at a time.
pub fn read_variables(context: &ViewContext<'_>, memory: &TileMemory, state: &mut State, chosen: &[u32]) {
    let Some(&tile) = chosen.first().filter(|_| memory.variables.is_empty()) else { return };
    if state.part != Part::Variables && state.stored.is_some() {
        return;
    }
    if state.stored.as_ref().is_none_or(|(of, _)| *of != tile) {
        let job = read_tile_variables(context.work, context.document, tile, LIST);
        state.stored = job.map(|job| (tile, job));
    }
}

/// The table of a tile's variables read from a `profile.pop`.
pub fn stored(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) {
    let theme = context.theme;
    let Some((tile, job)) = &mut state.stored else { return };
    let rows = match job.poll() {
        Some(Ok(rows)) => rows,
        Some(Err(error)) => {
            ui.label(text(error.as_str(), size::SMALL, Weight::Regular, theme.warn));
            return;
        }
        None => return,
    };
    let columns = [
        Column::number("Tile", 70.0).fixed(),
        Column::number("Size, B", 100.0).fixed(),
        Column::text("Variable", 200.0, 3.0).fixed(),
        Column::text("Category", 150.0, 1.0).fixed(),
    ];
    let table = Table::new(&columns, rows.len(), "stored");
    let response = table.show(
        ui,
        &mut state.below,
        |row| rows[row].name.clone(),
        |row, column| match column {
            0 => Cell::text(tile.to_string()).quiet(),
            1 => Cell::text(thousands(rows[row].bytes)),
            2 => Cell::mono(rows[row].name.as_str()),
            _ => Cell::text(in_words(&rows[row].category)).swatch(colors::tile_slot(&rows[row].category)),
        },
    );
    let tile = *tile;
    menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        Thing::named(rows[row].name.clone()).copies("Copy bytes", rows[row].bytes.to_string()).on_tile(tile)
    });
}

/// Address strips of the chosen tiles: variables at their addresses, with marks for the interleaved region and the end
/// of the tile. Returns the height used, and the row of the variable that was clicked.
pub fn address_maps(
    ui: &Ui,
    context: &ViewContext<'_>,
    memory: &TileMemory,
    rows: &[u32],
    room: Rect,
) -> (f32, Option<usize>) {
    let theme = context.theme;
    let own = &memory.variables;
    let placed = |tile: u32| {
        let rows = rows.iter().enumerate().map(|(at, &row)| (at, row as usize));
        rows.filter(move |&(_, row)| own.tile[row] == tile && own.offset[row] != u64::MAX)
    };
    let mut tiles: Vec<u32> = Vec::new();
    let mut high = 1;
    for row in rows.iter().map(|&row| row as usize).filter(|&row| own.offset[row] != u64::MAX) {
        if !tiles.contains(&own.tile[row]) {
            if tiles.len() == STRIPS {
                break;
            }
            tiles.push(own.tile[row]);
        }
        high = high.max(own.offset[row].saturating_add(own.bytes[row]));
    }
    let needed = tiles.len() as f32 * STRIP + 18.0;
    if tiles.is_empty() || room.height() < needed + 80.0 {
        return (0.0, None);
    }
    let limit = memory.target.bytes_per_tile;
    let whole = high.max(limit.unwrap_or(0)).max(1) as f64;
    let left = room.left() + 74.0;
    let at = |bytes: u64| left + (bytes as f64 / whole * f64::from(room.right() - left)) as f32;
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    let mut clicked = None;
    for (i, &tile) in tiles.iter().enumerate() {
        let top = room.top() + i as f32 * STRIP;
        let strip = Rect::from_min_max(Pos2::new(left, top), Pos2::new(room.right(), top + STRIP - 5.0));
        painter.rect_filled(strip, 0.0, theme.inset);
        let words = format!("tile {tile}");
        let name_at = Pos2::new(room.left(), strip.center().y);
        painter.text(name_at, Align2::LEFT_CENTER, words, small.clone(), theme.text2);
        let response = ui.interact(strip, ui.scope_id().with(("addresses", tile)), Sense::click());
        let spoken = format!("Addresses of tile {tile}");
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
        let mut hit = None;
        for (index, row) in placed(tile) {
            let (from, to) = (at(own.offset[row]), at(own.offset[row].saturating_add(own.bytes[row])));
            let slot = colors::tile_slot(own.strings.get(own.category[row]));
            let part = Rect::from_min_max(Pos2::new(from, strip.top()), Pos2::new(to.max(from + 1.0), strip.bottom()));
            // A hairline separates neighbours of the same colour if there is room.
            let drawn = if part.width() > 3.0 { part.with_max_x(part.right() - 1.0) } else { part };
            painter.rect_filled(drawn, 0.0, slot.color());
            if response.hover_pos().is_some_and(|at| part.contains(at)) {
                hit = Some((index, row, part));
            }
        }
        let Some((index, row, part)) = hit else { continue };
        painter.rect_stroke(part, 0.0, Stroke::new(1.5, theme.ink), egui::StrokeKind::Outside);
        if response.clicked_by(egui::PointerButton::Primary) {
            clicked = Some(index);
        }
        response.on_hover_ui_at_pointer(|ui| {
            let name = own.strings.get(own.name[row]);
            ui.label(text(name, size::BODY, Weight::SemiBold, theme.text));
            let (from, bytes) = (own.offset[row], Bytes(own.bytes[row]));
            let words = format!("0x{from:05X} to 0x{:05X}   {}", from.saturating_add(bytes.0), context.short(bytes));
            ui.label(text(words, size::SMALL, Weight::Mono, theme.text2));
            let words = in_words(own.strings.get(own.category[row]));
            ui.label(text(format!("{words}  {}", flags(own.flags[row])), size::SMALL, Weight::Regular, theme.text2));
        });
    }
    let bottom = room.top() + tiles.len() as f32 * STRIP - 5.0;
    let mark = |bytes: u64, words: &str, color: egui::Color32, align: Align2| {
        painter.vline(at(bytes).round(), room.top() - 2.0..=bottom + 3.0, Stroke::new(1.5, color));
        painter.text(Pos2::new(at(bytes), bottom + 2.0), align, words, small.clone(), color);
    };
    mark(0, "address 0", theme.text2, Align2::LEFT_TOP);
    if let Some(start) = memory.target.interleaved_start.filter(|&start| (start as f64) < whole) {
        mark(start, "interleaved from here", theme.text2, Align2::CENTER_TOP);
    }
    if let Some(limit) = limit {
        mark(limit, "capacity", theme.danger, Align2::RIGHT_TOP);
    }
    (needed, clicked)
}

/// The flags of a variable, in words.
fn flags(flags: u8) -> String {
    let mut words = Vec::new();
    if flags & TileVariables::ALLOCATED == 0 {
        words.push("does not fit");
    }
    if flags & TileVariables::ALWAYS_LIVE != 0 {
        words.push("always live");
    }
    if flags & TileVariables::INTERLEAVED != 0 {
        words.push("interleaved");
    }
    words.join(", ")
}

/// The table of the variables.
pub fn variables(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut TableState,
    memory: &TileMemory,
    rows: &[u32],
    lit: Option<usize>,
) {
    let columns = [
        Column::number("Tile", 70.0).fixed(),
        Column::number("Offset", 100.0).fixed(),
        Column::number("Size, B", 100.0).fixed(),
        Column::text("Variable", 200.0, 3.0).fixed(),
        Column::text("Category", 150.0, 1.0).fixed(),
        Column::text("", 150.0, 1.0).fixed(),
    ];
    let own = &memory.variables;
    let table = Table { lit, ..Table::new(&columns, rows.len(), "variables") };
    let response = table.show(
        ui,
        state,
        |row| own.strings.get(own.name[rows[row] as usize]).to_owned(),
        |row, column| {
            let row = rows[row] as usize;
            let offset = own.offset[row];
            match column {
                0 => Cell::text(own.tile[row].to_string()).quiet(),
                1 if offset == u64::MAX => Cell::text("\u{2013}"),
                1 => Cell::mono(format!("0x{offset:05X}")),
                2 => Cell::text(thousands(own.bytes[row])),
                3 => Cell::mono(own.strings.get(own.name[row])),
                4 => {
                    let category = own.strings.get(own.category[row]);
                    Cell::text(in_words(category)).swatch(colors::tile_slot(category))
                }
                _ => Cell::text(flags(own.flags[row])).quiet(),
            }
        },
    );
    menu::of_rows(ui, context, ui.max_rect(), &response, |row| thing(memory, rows[row]));
}

/// The subject of a variable's context menu.
fn thing(memory: &TileMemory, row: u32) -> Thing {
    let (own, row) = (&memory.variables, row as usize);
    let thing = Thing::named(own.strings.get(own.name[row])).copies("Copy bytes", own.bytes[row].to_string());
    let offset = own.offset[row];
    let address = if offset == u64::MAX { String::new() } else { format!("0x{offset:05X}") };
    thing.copies("Copy address", address).on_tile(own.tile[row])
}
