//! The chart of bytes by tile, stacked by category, region or liveness, with the limit.

use egui::{Rect, Stroke, Ui, Vec2};

use super::state::State;
use crate::model::{Bytes, TileMemory, in_words, percent};
use crate::ui::chart::legend::Sign;
use crate::ui::chart::{self, Areas, Chart, Cursor, Fit, Line, Span, Tone, Window, XAxis, highest_step};
use crate::ui::part::{ViewContext, class_legend, colors};
use crate::ui::widget::controls::choice;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::Hatch;
use crate::ui::widget::theme::{Slot, size};

/// How the bytes are broken down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Breakdown {
    /// By groups of categories.
    #[default]
    Category,
    /// By memory region.
    Region,
    /// Always live and not always live.
    Liveness,
    /// No breakdown.
    None,
}

/// A stacked area.
pub struct Group {
    name: String,
    slot: Slot,
    bytes: Vec<u64>,
}

/// Room for the gaps in the legend.
const GAPS: f32 = 64.0;

/// Maximum number of tiles over the limit that are marked by a line each.
const STEMS: usize = 500;

/// The areas of a breakdown.
pub fn groups(memory: &TileMemory, breakdown: Breakdown) -> Vec<Group> {
    let count = memory.tile_count();
    let total = memory.total.as_deref().or(memory.including_gaps.as_deref());
    let mut list: Vec<Group> = match breakdown {
        Breakdown::Category => {
            let mut list: Vec<Group> = colors::TILE_GROUPS
                .iter()
                .map(|&(name, slot)| Group { name: name.to_owned(), slot, bytes: vec![0; count] })
                .collect();
            let mut sums = vec![0u64; count];
            for category in &memory.categories {
                let group = &mut list[colors::tile_group(&category.name)].bytes;
                for ((sum, bytes), &more) in sums.iter_mut().zip(group.iter_mut()).zip(&category.bytes) {
                    *bytes = bytes.saturating_add(more);
                    *sum = sum.saturating_add(more);
                }
            }
            // Variables that share addresses count once in the total, but in no category's own bytes.
            if let (Some(total), Some(other), true) = (&memory.total, list.last_mut(), memory.overlap_known) {
                for ((bytes, &total), &sum) in other.bytes.iter_mut().zip(total).zip(&sums) {
                    *bytes = bytes.saturating_add(total.saturating_sub(sum));
                }
            }
            list
        }
        Breakdown::Region => {
            let slots = [Slot::Weight, Slot::Activation, Slot::Output, Slot::Gradient];
            let name = |at: usize| slots.get(at).copied().unwrap_or(Slot::Temporary);
            let regions = memory.regions.iter().enumerate();
            regions.map(|(at, r)| Group { name: in_words(&r.name), slot: name(at), bytes: r.bytes.clone() }).collect()
        }
        Breakdown::Liveness => {
            let always = memory.always_live.clone().unwrap_or_default();
            let rest = total.unwrap_or_default().iter().zip(&always).map(|(total, live)| total.saturating_sub(*live));
            let rest: Vec<u64> = rest.collect();
            vec![
                Group { name: "Always live".to_owned(), slot: Slot::Weight, bytes: always },
                Group { name: "Not always live".to_owned(), slot: Slot::Activation, bytes: rest },
            ]
        }
        Breakdown::None => {
            let bytes = total.unwrap_or_default().to_vec();
            vec![Group { name: "Used".to_owned(), slot: Slot::Activation, bytes }]
        }
    };
    list.retain(|group| group.bytes.iter().any(|&bytes| bytes > 0));
    list
}

/// The breakdowns available for a profile.
fn breakdowns(memory: &TileMemory) -> Vec<(Breakdown, &'static str)> {
    let mut list = Vec::new();
    if !memory.categories.is_empty() {
        list.push((Breakdown::Category, "Category"));
    }
    if !memory.regions.is_empty() {
        list.push((Breakdown::Region, "Region"));
    }
    if memory.always_live.is_some() {
        list.push((Breakdown::Liveness, "Liveness"));
    }
    list.push((Breakdown::None, "None"));
    list
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, memory: &TileMemory, state: &mut State, rect: Rect) {
    let theme = context.theme;
    let head = Rect::from_min_size(rect.min, Vec2::new(rect.width(), 26.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(head).id_salt("tile profile"));
    child.horizontal(|ui| {
        ui.label(text("Bytes by tile", size::BODY, Weight::SemiBold, theme.text));
        ui.add_space(6.0);
        let list = breakdowns(memory);
        let words: Vec<&str> = list.iter().map(|entry| entry.1).collect();
        let chosen = list.iter().position(|entry| entry.0 == state.breakdown).unwrap_or(list.len() - 1);
        if list.len() > 1
            && let Some(breakdown) = choice(ui, "Bytes by", &words, chosen, 0.0, theme)
        {
            state.breakdown = list[breakdown].0;
        }
        ui.spacing_mut().item_spacing.x = 6.0;
        let bytes = |group: &Group| group.bytes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        let entries: Vec<(&str, Slot, u64)> =
            state.groups.iter().map(|group| (group.name.as_str(), group.slot, bytes(group))).collect();
        class_legend::fitting(ui, theme, &entries, if memory.including_gaps.is_some() { GAPS } else { 0.0 });
        if memory.including_gaps.is_some() {
            chart::legend::entry(ui, theme, Sign::Gaps, "Gaps");
        }
    });
    let right = if state.limit.is_some() { chart::RIGHT } else { chart::RIGHT_PLAIN };
    let plot = Rect::from_min_max(rect.min + Vec2::new(chart::LEFT, 34.0), rect.max - Vec2::new(right, chart::BELOW));
    if plot.height() >= 30.0 && plot.width() >= 60.0 {
        curve(ui, context, memory, state, plot);
    }
}

fn curve(ui: &mut Ui, context: &mut ViewContext<'_>, memory: &TileMemory, state: &mut State, plot: Rect) {
    let (theme, units) = (context.theme, context.options.units);
    let Some(bytes) = memory.must_fit() else { return };
    let (first, last) = match state.zoom.filter(|&ipu| ipu < memory.target.ipus as usize) {
        Some(ipu) => {
            let per = memory.target.tiles_per_ipu as usize;
            (ipu * per, (ipu + 1) * per)
        }
        None => (0, bytes.len()),
    };
    let most = bytes.iter().max().copied().unwrap_or(0);
    let limit = state.limit;
    let window = Window {
        rect: plot,
        x: Span::new(first as f64, last.max(first + 1) as f64),
        y: Fit::of(ui.ctx()).bytes(most, || most, limit),
    };
    let groups = std::mem::take(&mut state.groups);
    let highest = |from: f64, to: f64| highest_step(from, to, bytes);
    let group = |group: usize, tile: u32| groups[group].bytes.get(tile as usize).copied().unwrap_or(0);
    let colors: Vec<_> = groups.iter().map(|group| group.slot.color()).collect();
    // Gaps are the difference between the total and the bytes used.
    let gaps = memory.including_gaps.is_some().then_some(Hatch { period: 7.0, width: 1.2, color: theme.text3 });
    let areas = Areas { gaps, limit, ..Areas::new(&highest, &group, &colors) };
    let key = (state.of, state.breakdown, limit, state.zoom, groups.len());
    let middle = |tile: u32| f64::from(tile) + 0.5;
    let chosen = context.shared.tiles.iter().take(60).map(|&tile| Cursor::chosen(middle(tile), theme));
    let shown = Chart::new("Bytes by tile", theme, window, XAxis::Steps("tile"), units)
        .drawn(ui, &mut state.curve, key, |raster, window| areas.draw(raster, window, theme))
        .limit(limit)
        .cursors(chosen)
        .show(ui);
    if let Some(limit) = limit {
        let at = window.y_of(limit as f64).round();
        let painter = ui.painter().with_clip_rect(plot);
        let tiles = context.document.analysis.tiles.as_ref().map(|tiles| &tiles.over[..]).unwrap_or_default();
        for &tile in tiles.iter().filter(|&&tile| window.shows(middle(tile))).take(STEMS) {
            let high = bytes.get(tile as usize).copied().unwrap_or(0);
            let stem = window.x_of(middle(tile));
            painter.vline(stem, window.y_of(high as f64)..=at, Stroke::new(2.0, theme.over));
        }
    }
    let pixel = window.x.len() / f64::from(plot.width());
    // Of the tiles under the pointer's pixel, the fullest, as drawn.
    let under = shown.at.and_then(|at| highest_step(at, at + if shown.is_by_keys { 0.0 } else { pixel }, bytes));
    if let Some((whole, tile)) = under {
        context.shared.hover_tile(tile);
        if shown.is_chosen {
            choose(ui, context, tile);
        }
        let title = format!("tile {tile}");
        let mut lines = vec![Line::new(title, units.short(Bytes(whole))).toned(Tone::Title)];
        let part = |group: &&Group| group.bytes.get(tile as usize).copied().unwrap_or(0);
        let mut parts: Vec<&Group> = groups.iter().filter(|group| part(group) > 0).collect();
        parts.sort_by_key(|group| std::cmp::Reverse(part(group)));
        for group in parts {
            let value = format!("{}  {}", units.short(Bytes(part(&group))), percent(part(&group), whole));
            lines.push(Line::new(&group.name, value).of(group.slot));
        }
        shown.readout(ui, &lines);
    }
    state.groups = groups;
}

/// Chooses a tile; adds one with Shift.
fn choose(ui: &Ui, context: &mut ViewContext<'_>, tile: u32) {
    let adds = ui.input(|input| input.modifiers.shift);
    let mut tiles = if adds { context.shared.tiles.clone() } else { Vec::new() };
    if !tiles.contains(&tile) {
        tiles.push(tile);
    }
    context.shared.choose_tiles(tiles);
}
