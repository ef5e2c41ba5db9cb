//! Tiles: a heat map of the tiles of all IPUs, in software order or on the floor plan, with the limit; and a chart of
//! bytes by tile.

mod by_tile;
mod legend;
mod map;
mod metric;
mod state;

use egui::{Pos2, Rect, Role, Ui, Vec2, WidgetInfo};

use crate::analysis::tiles::TileAnalysis;
use crate::model::{Bytes, TileMemory, UnitSystem, thousands};
use crate::ui::part::{KeyHelp, View, ViewContext, tile_card};
use crate::ui::session::Document;
use crate::ui::widget::controls::{self, Mark, choice, paint_mark, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::magnifier::Magnifier;
use crate::ui::widget::theme::{Theme, size};
use metric::Metric;
use state::State;

/// The view.
pub const VIEW: View = View {
    applies: Document::has_tiles,
    card: Some(tile_card::show),
    keys: KEYS,
    ..View::new("tiles", "Tiles", show).with_digit(3)
};

const KEYS: &[KeyHelp] = &[
    ("click, shift click", "Tiles: choose a tile, add one"),
    ("drag", "Tiles: choose many"),
    ("double click", "Tiles: one IPU, or all of them"),
    ("wheel, middle drag", "Tiles: magnify at the pointer, move"),
    ("0", "Tiles: show the whole map"),
    ("Enter, Shift Enter", "Tiles: choose the tile that the arrows are at, add it"),
];

/// Maximum number of IPUs in the menu.
const MAX_IPUS: u32 = 256;

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let document = context.document.clone();
    let (Some(memory), Some(tiles)) = (&document.profile.tiles, &document.analysis.tiles) else { return };
    let mut state = context.locals.take::<State>();
    let of = document.id();
    if state.of != of {
        state = State { of, ..State::default() };
    }
    state.limit = tiles.limit;
    if state.values_of != Some(state.metric) {
        state.values = state.metric.values(memory, tiles);
        state.values_of = Some(state.metric);
    }
    if state.groups_of != Some(state.breakdown) {
        state.groups = by_tile::groups(memory, state.breakdown);
        state.groups_of = Some(state.breakdown);
    }
    draw(ui, context, memory, tiles, &mut state);
    context.locals.put(state);
}

fn draw(ui: &mut Ui, context: &mut ViewContext<'_>, memory: &TileMemory, tiles: &TileAnalysis, state: &mut State) {
    let theme = context.theme;
    let full = ui.max_rect().shrink2(Vec2::new(20.0, 12.0));
    let head = Rect::from_min_size(full.min, Vec2::new(full.width(), 50.0));
    headline(ui, context, head, memory, tiles);
    let tools_rect = Rect::from_min_size(Pos2::new(full.left(), head.bottom() + 6.0), Vec2::new(full.width(), 26.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(tools_rect).id_salt("tile tools"));
    tools(&mut child, theme, memory, state);
    let left = full.bottom() - tools_rect.bottom();
    let profile_height = (left * 0.3).clamp(90.0, 240.0);
    let legend_height = 62.0;
    let map_rect = Rect::from_min_max(
        Pos2::new(full.left(), tools_rect.bottom() + 8.0),
        Pos2::new(full.right(), full.bottom() - profile_height - legend_height - 18.0),
    );
    if map_rect.height() > 40.0 && map_rect.width() > 100.0 {
        map::show(ui, context, memory, state, map_rect);
    }
    let legend_rect =
        Rect::from_min_size(Pos2::new(full.left(), map_rect.bottom() + 8.0), Vec2::new(full.width(), legend_height));
    legend::show(ui, context, tiles, state, legend_rect);
    let profile_rect = Rect::from_min_max(Pos2::new(full.left(), legend_rect.bottom() + 8.0), full.max);
    by_tile::show(ui, context, memory, state, profile_rect);
}

/// The headline: how many tiles are over, and the worst one.
pub fn headline(ui: &Ui, context: &ViewContext<'_>, rect: Rect, memory: &TileMemory, tiles: &TileAnalysis) {
    let theme = context.theme;
    let units = context.options.units;
    let count = thousands(memory.tile_count() as u64);
    let (mark, color, answer, more) = match (tiles.max, tiles.limit) {
        (Some((tile, _)), Some(_)) if !tiles.over.is_empty() => {
            let verb = if tiles.over.len() == 1 { "is" } else { "are" };
            let answer = format!("{} of {count} tiles {verb} over", thousands(tiles.over.len() as u64));
            let by = units.short(Bytes(tiles.worst_over_by));
            (Mark::Over, theme.danger, answer, format!("worst: tile {tile}, {by} over"))
        }
        (Some((tile, bytes)), Some(limit)) => {
            let spare = units.short(Bytes(limit.saturating_sub(bytes)));
            let more = format!("fullest: tile {tile}, {spare} to spare");
            (Mark::Fits, theme.ok, format!("All {count} tiles fit"), more)
        }
        (Some((tile, bytes)), None) => {
            let more = format!("fullest: tile {tile}, {}", units.short(Bytes(bytes)));
            (Mark::Unknown, theme.text, format!("{count} tiles"), more)
        }
        (None, _) => (Mark::Unknown, theme.text, format!("{count} tiles"), "bytes by tile are not known".to_owned()),
    };
    let spoken = format!("{answer}, {more}");
    let said = ui.interact(rect, ui.scope_id().with("headline"), egui::Sense::hover());
    said.widget_info(|| WidgetInfo::labeled(Role::Label, true, &spoken));
    let y = rect.top() + 14.0;
    paint_mark(ui.painter(), Pos2::new(rect.left() + 7.0, y), mark, theme);
    let at = Pos2::new(rect.left() + 22.0, y);
    let weight = Weight::SemiBold.at(size::HEADLINE);
    let drawn = ui.painter().text(at, egui::Align2::LEFT_CENTER, answer, weight, color);
    let at = Pos2::new(drawn.right() + 16.0, y + 1.0);
    let font = Weight::Medium.at(size::LEAD);
    let room = rect.right() - at.x;
    controls::paint_cut(ui.painter(), (at, egui::Align2::LEFT_CENTER), &more, font, theme.text, room);
    let words = together(memory, tiles, units);
    let at = Pos2::new(rect.left() + 22.0, rect.top() + 38.0);
    let font = Weight::Regular.at(size::SMALL);
    controls::paint_cut(ui.painter(), (at, egui::Align2::LEFT_CENTER), &words, font, theme.text2, rect.width() - 22.0);
}

/// A sentence on the sum over all tiles, and whether spreading them evenly would fit.
fn together(memory: &TileMemory, tiles: &TileAnalysis, units: UnitSystem) -> String {
    let ipus = memory.target.ipus;
    let device = format!("{ipus} IPU{}", if ipus == 1 { "" } else { "s" });
    let Some(all) = tiles.total_including_gaps.or(tiles.total) else { return device };
    let all_words = units.short(Bytes(all));
    let Some(limit) = tiles.limit else { return format!("All tiles together use {all_words}, on {device}.") };
    let capacity = limit.saturating_mul(memory.tile_count() as u64);
    let of = units.capacity(Bytes(capacity));
    let end = match (tiles.over.is_empty(), all <= capacity) {
        (false, true) => ": the sum fits, these tiles do not",
        (false, false) => ": it would not fit even if spread evenly",
        _ => "",
    };
    format!("All tiles together use {all_words} of {of}, on {device}{end}.")
}

fn tools(ui: &mut Ui, theme: &Theme, memory: &TileMemory, state: &mut State) {
    ui.horizontal(|ui| {
        ui.label(text("Colour", size::SMALL, Weight::Regular, theme.text2));
        let metrics = Metric::all(memory);
        let names: Vec<String> = metrics.iter().map(|metric| metric.name(memory)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let chosen = metrics.iter().position(|metric| *metric == state.metric).unwrap_or(0);
        if let Some(metric) = choice(ui, "Colour by", &names, chosen, 0.0, theme) {
            state.metric = metrics[metric];
        }
        let order = usize::from(state.software_order);
        if let Some(i) = segmented(ui, &["Floor plan", "Software order"], order, theme) {
            state.software_order = i == 1;
        }
        if controls::toggle_button(ui, "Over only", "", controls::On(state.over_only), theme).clicked() {
            state.over_only = !state.over_only;
        }
        if memory.target.ipus > 1 {
            let name = |zoom: Option<usize>| zoom.map_or_else(|| "All IPUs".to_owned(), |ipu| format!("IPU {ipu}"));
            let zooms: Vec<Option<usize>> =
                std::iter::once(None).chain((0..memory.target.ipus.min(MAX_IPUS) as usize).map(Some)).collect();
            let names: Vec<String> = zooms.iter().map(|zoom| name(*zoom)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let chosen = zooms.iter().position(|zoom| *zoom == state.zoom).unwrap_or(0);
            if let Some(zoom) = choice(ui, "IPU", &names, chosen, 0.0, theme) {
                state.zoom = zooms[zoom];
            }
        }
        if !state.magnifier.is_whole() && controls::button(ui, "All tiles", "0", theme).clicked() {
            state.magnifier = Magnifier::default();
        }
        state.tools_right = ui.min_rect().right();
    });
}
