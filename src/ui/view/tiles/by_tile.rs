//! Bytes over the tiles, divided by category, region or liveness, with the limit.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, Ui, Vec2, WidgetInfo};

use super::State;
use crate::model::{Bytes, TileMemory, UnitSystem, percent, thousands};
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::axis::{Span, byte_ticks, decimal_ticks};
use crate::ui::widget::controls::{self, legend};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::{Hatch, Raster};
use crate::ui::widget::stack::Stack;
use crate::ui::widget::theme::{Slot, Theme, size};

/// By what the areas are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Breakdown {
    /// Groups of categories.
    #[default]
    Category,
    /// Memory regions.
    Region,
    /// Always live, and the rest.
    Liveness,
    /// Not at all.
    None,
}

/// A stacked area.
pub struct Group {
    name: String,
    slot: Slot,
    bytes: Vec<u64>,
}

/// Tiles that are over and get a line of their own.
const STEMS: usize = 500;

/// The areas of a division.
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
            // What shares addresses is in the total once, but in no category's own bytes.
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
            regions
                .map(|(at, r)| Group { name: colors::words(&r.name), slot: name(at), bytes: r.bytes.clone() })
                .collect()
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

/// The divisions a profile has.
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
        if list.len() > 1 {
            egui::ComboBox::from_id_salt("tile breakdown")
                .selected_text(text(words[chosen], size::SMALL, Weight::Medium, theme.text))
                .width(84.0)
                .show_ui(ui, |ui| {
                    for &(breakdown, name) in &list {
                        let words = text(name, size::SMALL, Weight::Medium, theme.text);
                        ui.selectable_value(&mut state.breakdown, breakdown, words);
                    }
                })
                .response
                .widget_info(|| WidgetInfo::labeled(Role::ComboBox, true, "Bytes by"));
        }
        ui.spacing_mut().item_spacing.x = 6.0;
        for group in &state.groups {
            if ui.available_width() > 70.0 {
                legend(ui, group.slot, &group.name, theme);
            }
        }
        if memory.including_gaps.is_some() && ui.available_width() > 80.0 {
            let (rect, _) = ui.allocate_exact_size(Vec2::new(12.0, 18.0), Sense::hover());
            let swatch = Rect::from_center_size(rect.center(), Vec2::splat(10.0));
            ui.painter().rect_stroke(swatch, 1.0, Stroke::new(1.0, theme.text3), egui::StrokeKind::Inside);
            ui.painter().line_segment([swatch.left_bottom(), swatch.right_top()], Stroke::new(1.0, theme.text3));
            ui.label(text("Gaps", size::SMALL, Weight::Regular, theme.text2));
        }
    });
    let plot = Rect::from_min_max(rect.min + Vec2::new(58.0, 34.0), rect.max - Vec2::new(0.0, 18.0));
    let Some(bytes) = memory.must_fit() else { return };
    if plot.height() < 30.0 || plot.width() < 60.0 {
        return;
    }
    let (first, last) = match state.zoom.filter(|&ipu| ipu < memory.target.ipus as usize) {
        Some(ipu) => {
            let per = memory.target.tiles_per_ipu as usize;
            (ipu * per, (ipu + 1) * per)
        }
        None => (0, bytes.len()),
    };
    let most = bytes.iter().max().copied().unwrap_or(0);
    let limit = state.limit;
    let y = Span::new(0.0, most.max(limit.unwrap_or(0)).max(1) as f64 * 1.08);
    let x = Span::new(first as f64, last.max(first + 1) as f64);
    let slots: Vec<Slot> = state.groups.iter().map(|group| group.slot).collect();
    let groups = &state.groups;
    let high = |tile: u32| bytes.get(tile as usize).copied().unwrap_or(0);
    let stack = Stack {
        points: bytes.len() as u32,
        highest: &|from, to| {
            (from..to.min(bytes.len() as u32))
                .map(|tile| (high(tile), tile))
                .max_by_key(|&(b, t)| (b, std::cmp::Reverse(t)))
        },
        group: &|group, tile| groups[group].bytes.get(tile as usize).copied().unwrap_or(0),
        slots: &slots,
        line: None,
        limit: limit.map(|limit| limit as f64),
    };
    let key = (state.of, state.breakdown, limit, state.zoom, theme.dark, groups.len());
    let mut raster = std::mem::take(&mut state.curve);
    raster.show(ui, plot, "tile profile", key, theme.panel, |raster| {
        stack.draw(raster, x, y, theme);
        hatch_gaps(raster, &stack, x, y, theme);
    });
    state.curve = raster;
    axes(ui, context, plot, x, y);
    let x_of = |tile: f64| plot.left() + (x.share(tile) * f64::from(plot.width())) as f32;
    let y_of = |bytes: u64| plot.bottom() - (y.share(bytes as f64) * f64::from(plot.height())) as f32;
    if let Some(limit) = limit {
        let at = y_of(limit).round();
        let tiles = context.document.analysis.tiles.as_ref().map(|tiles| &tiles.over[..]).unwrap_or_default();
        for &tile in tiles.iter().filter(|&&tile| (first..last).contains(&(tile as usize))).take(STEMS) {
            let stem = x_of(f64::from(tile) + 0.5);
            ui.painter().vline(stem, y_of(high(tile))..=at, Stroke::new(2.0, theme.over));
        }
        ui.painter().hline(plot.x_range(), at, Stroke::new(2.0, theme.over));
        let words = format!("limit {}", context.options.units.capacity(Bytes(limit)));
        let galley = ui.painter().layout_no_wrap(words, Weight::SemiBold.at(size::SMALL), theme.danger);
        let place = Rect::from_min_size(Pos2::new(plot.left() + 8.0, at - galley.size().y - 3.0), galley.size());
        ui.painter().rect_filled(place.expand2(Vec2::new(4.0, 1.0)), 2.0, theme.canvas.gamma_multiply(0.88));
        ui.painter().galley(place.min, galley, theme.danger);
    }
    for &tile in context.shared.tiles.iter().take(60) {
        let at = x_of(f64::from(tile) + 0.5);
        if plot.x_range().contains(at) {
            ui.painter().vline(at, plot.y_range(), Stroke::new(1.5, theme.ink));
        }
    }
    hover(ui, context, memory, state, plot, x);
}

/// Between what is used and what is counted lie gaps: drawn as a hatch, since nothing is there.
fn hatch_gaps(raster: &mut Raster, stack: &Stack<'_>, x: Span, y: Span, theme: &Theme) {
    let (width, height) = (raster.width() as i64, raster.height() as i64);
    let pixel = |value: u64| height - (y.share(value as f64) * height as f64).round().clamp(0.0, height as f64) as i64;
    for column in 0..width {
        let from = x.at(column as f64 / width as f64).floor().max(0.0) as u32;
        let to = (x.at((column + 1) as f64 / width as f64).ceil() as u32).max(from + 1).min(stack.points);
        let Some((total, tile)) = (stack.highest)(from, to) else { continue };
        let used: u64 = (0..stack.slots.len()).map(|group| (stack.group)(group, tile)).sum();
        raster.hatch(column, pixel(total), column + 1, pixel(used), gap_hatch(theme));
    }
}

const fn gap_hatch(theme: &Theme) -> Hatch {
    Hatch { period: 7.0, width: 1.2, color: theme.text3 }
}

fn axes(ui: &Ui, context: &ViewContext<'_>, plot: Rect, x: Span, y: Span) {
    let theme = context.theme;
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    let base = if context.options.units == UnitSystem::Binary { 1024.0 } else { 1000.0 };
    for tick in byte_ticks(y, (plot.height() / 36.0) as usize + 1, base) {
        let at = plot.bottom() - (y.share(tick) * f64::from(plot.height())) as f32;
        let words = context.options.units.capacity(Bytes(tick as u64));
        painter.text(Pos2::new(plot.left() - 8.0, at), Align2::RIGHT_CENTER, words, small.clone(), theme.text2);
        painter.hline(plot.x_range(), at.round(), Stroke::new(1.0, theme.line.gamma_multiply(0.5)));
    }
    for tick in decimal_ticks(x, (plot.width() / 90.0) as usize) {
        let at = plot.left() + (x.share(tick) * f64::from(plot.width())) as f32;
        if at < plot.right() - 10.0 {
            let words = thousands(tick as u64);
            painter.text(Pos2::new(at, plot.bottom() + 3.0), Align2::CENTER_TOP, words, small.clone(), theme.text2);
        }
    }
    controls::hairline(ui, Rect::from_min_max(plot.min, Pos2::new(plot.right(), plot.bottom() + 1.0)), theme.line2);
}

fn hover(ui: &Ui, context: &mut ViewContext<'_>, memory: &TileMemory, state: &State, plot: Rect, x: Span) {
    let theme = context.theme;
    let response = ui.interact(plot, ui.scope_id().with("tile profile"), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, "Bytes by tile"));
    let Some(at) = response.hover_pos() else { return };
    let bytes = memory.must_fit().unwrap_or_default();
    // Of the tiles below the pointer's pixel, the fullest: it is the one that is drawn.
    let width = f64::from(plot.width());
    let from = x.at(f64::from(at.x - plot.left()) / width).floor().max(0.0) as usize;
    let to = (x.at(f64::from(at.x - plot.left() + 1.0) / width).ceil() as usize).max(from + 1).min(bytes.len());
    let Some(tile) = (from..to).max_by_key(|&tile| (bytes[tile], std::cmp::Reverse(tile))) else { return };
    context.shared.hover_tile(tile as u32);
    if response.clicked() {
        let adds = ui.input(|input| input.modifiers.shift);
        let mut tiles = if adds { context.shared.tiles.clone() } else { Vec::new() };
        if !tiles.contains(&(tile as u32)) {
            tiles.push(tile as u32);
        }
        context.shared.choose_tiles(tiles);
    }
    let whole = bytes[tile];
    response.on_hover_ui_at_pointer(|ui| {
        let words = format!("tile {}  {}", thousands(tile as u64), context.short(Bytes(whole)));
        ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
        for group in &state.groups {
            let part = group.bytes.get(tile).copied().unwrap_or(0);
            if part > 0 {
                let words = format!("{}  {}  {}", group.name, context.short(Bytes(part)), percent(part, whole));
                legend(ui, group.slot, &words, theme);
            }
        }
    });
}
