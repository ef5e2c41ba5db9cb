//! A measured range of steps: dragged on the axis, or anywhere with Shift; what is allocated, freed and grows in it.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, Ui, Vec2, WidgetInfo};

use super::groups::Groups;
use super::state::{Drawn, Places, State};
use crate::analysis::range_stats::{RangeStats, range_stats};
use crate::model::thousands;
use crate::ui::chart;
use crate::ui::part::{Action, ViewContext};
use crate::ui::widget::controls::{self, link};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};
use crate::ui::work::SpaceData;

/// Groups that are listed.
const GREW: usize = 4;
/// Width of the card.
const CARD: f32 = 292.0;

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, Drawn { data, groups, places }: Drawn<'_>) {
    let theme = context.theme;
    drag(ui, context, state, data, places);
    let Some((from, to)) = context.shared.measured else { return };
    let key = ((from, to), state.grouping, groups.stacked().names.len());
    if state.measure.stats.as_ref().is_none_or(|(of, _)| *of != key) {
        let stacked = groups.stacked();
        let stats = range_stats(&data.map, &stacked.curves, &stacked.pyramid, from, to);
        state.measure.stats = Some((key, stats));
    }
    let Some((_, stats)) = &state.measure.stats else { return };
    let (first, end) = (f64::from(stats.from), f64::from(stats.to) + 1.0);
    chart::range(ui.painter(), theme, &places.window(), (first, end), &places.bands());
    let stats = stats.clone();
    let middle = places.x_of(f64::midpoint(first, end));
    card(ui, context, groups, &stats, places, middle);
}

fn drag(ui: &Ui, context: &mut ViewContext<'_>, state: &mut State, data: &SpaceData, places: &Places) {
    let axis = places.window();
    let point_at = |x: f32| axis.step_at(x, data.map.points);
    let response = ui.interact(places.axis, ui.scope_id().with("measure"), Sense::click_and_drag());
    response.widget_info(|| WidgetInfo::labeled(Role::Slider, true, "Drag to measure a range of steps"));
    if response.clicked() {
        context.shared.measure(None);
        if let Some(at) = response.interact_pointer_pos() {
            context.shared.choose_step(point_at(at.x));
        }
    }
    let everything = places.curve.union(places.map).union(places.lifetimes);
    let (shift, down, pressed, origin, at) = ui.input(|i| {
        let p = &i.pointer;
        (i.modifiers.shift, p.primary_down(), p.primary_pressed(), p.press_origin(), p.latest_pos())
    });
    let begins = response.drag_started() || (shift && pressed && ui.rect_contains_pointer(everything));
    if begins && let Some(origin) = origin {
        state.measure.from = Some(point_at(origin.x));
    }
    if !down {
        state.measure.from = None;
    }
    if let (Some(from), Some(at)) = (state.measure.from, at) {
        let to = point_at(at.x);
        if to != from {
            context.shared.measure((from.min(to), from.max(to)));
        }
    }
    if response.hovered() {
        ui.ctx().set_cursor_icon(egui::CursorIcon::ResizeHorizontal);
    }
}

/// The figures, on the side of the curve that the range leaves free.
fn card(ui: &mut Ui, context: &mut ViewContext<'_>, groups: &Groups, stats: &RangeStats, places: &Places, middle: f32) {
    let theme = context.theme;
    let curve = places.curve;
    let on_left = middle > curve.center().x;
    let height = 140.0 + 18.0 * stats.grew.len().min(GREW) as f32;
    let left = if on_left { curve.left() + 12.0 } else { curve.right() - CARD - 12.0 };
    let rect = Rect::from_min_size(Pos2::new(left, curve.top() + 6.0), Vec2::new(CARD, height));
    let layer = egui::LayerId::new(egui::Order::Middle, ui.scope_id().with("range card"));
    let mut child = ui.new_child(egui::UiBuilder::new().layer_id(layer).max_rect(rect.shrink2(Vec2::new(14.0, 10.0))));
    child.set_clip_rect(ui.ctx().content_rect());
    child.painter().rect_filled(rect, 4.0, theme.canvas);
    child.painter().rect_stroke(rect, 4.0, Stroke::new(1.0, theme.line2), egui::StrokeKind::Inside);
    let ui = &mut child;
    ui.interact(rect, ui.scope_id().with("range card ground"), Sense::click_and_drag());
    ui.spacing_mut().item_spacing.y = 2.0;
    ui.spacing_mut().interact_size.y = 16.0;
    let steps = u64::from(stats.to - stats.from) + 1;
    let head =
        format!("Steps {} to {} ({})", thousands(stats.from.into()), thousands(stats.to.into()), thousands(steps));
    ui.horizontal(|ui| {
        ui.label(text(&head, size::BODY, Weight::SemiBold, theme.text));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if link(ui, "Close", theme).clicked() {
                context.shared.measure(None);
            }
            if link(ui, "Copy", theme).clicked() {
                context.actions.push(Action::Copy(words(context, groups, stats)));
            }
        });
    });
    ui.add_space(4.0);
    let buffers = |count: usize| format!("in {} buffers", thousands(count as u64));
    line(ui, theme, "Allocated", &context.short(stats.allocated), &buffers(stats.allocations));
    line(ui, theme, "Freed", &context.short(stats.freed), &buffers(stats.frees));
    line(
        ui,
        theme,
        "Reserved before, after",
        &context.short(stats.before),
        &format!("{} after", context.short(stats.after)),
    );
    ui.horizontal(|ui| {
        ui.label(text("Peak inside", size::SMALL, Weight::Regular, theme.text2));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if link(ui, &format!("step {}", thousands(stats.peak_point.into())), theme).clicked() {
                context.shared.choose_step(stats.peak_point);
            }
            ui.label(text(context.short(stats.peak), size::SMALL, Weight::SemiBold, theme.text));
        });
    });
    ui.add_space(4.0);
    let head = if stats.grew.is_empty() { "No growth up to that peak" } else { "Growth up to that peak" };
    ui.label(text(head, size::SMALL, Weight::SemiBold, theme.text));
    for &(group, bytes) in stats.grew.iter().take(GREW) {
        let name = groups.stacked().names.get(group).map_or("", String::as_str);
        let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 16.0), Sense::hover());
        let spoken = format!("{name} grew by {}", context.short(bytes));
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &spoken));
        let y = rect.center().y;
        if let Some(slot) = groups.slots().get(group) {
            let swatch = Rect::from_center_size(Pos2::new(rect.left() + 5.0, y), Vec2::splat(9.0));
            controls::paint_swatch(ui.painter(), swatch, *slot, theme);
        }
        let font = Weight::Regular.at(size::SMALL);
        let more = format!("+{}", context.short(bytes));
        let drawn = ui.painter().text(Pos2::new(rect.right(), y), Align2::RIGHT_CENTER, more, font.clone(), theme.text);
        let at = Pos2::new(rect.left() + 16.0, y);
        controls::paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), name, font, theme.text, drawn.left() - at.x - 8.0);
    }
}

fn line(ui: &mut Ui, theme: &Theme, name: &str, value: &str, remark: &str) {
    ui.horizontal(|ui| {
        ui.label(text(name, size::SMALL, Weight::Regular, theme.text2));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            ui.label(text(remark, size::SMALL, Weight::Regular, theme.text2));
            ui.label(text(value, size::SMALL, Weight::SemiBold, theme.text));
        });
    });
}

/// The card as text, with exact bytes.
fn words(context: &ViewContext<'_>, groups: &Groups, stats: &RangeStats) -> String {
    let mut lines = vec![
        format!("{}, steps {} to {}", context.document.profile.name, stats.from, stats.to),
        format!("allocated {} in {} buffers", stats.allocated.exact(), stats.allocations),
        format!("freed {} in {} buffers", stats.freed.exact(), stats.frees),
        format!("reserved before {}, after {}", stats.before.exact(), stats.after.exact()),
        format!("peak inside {} at step {}", stats.peak.exact(), stats.peak_point),
    ];
    lines.extend(stats.grew.iter().map(|&(group, bytes)| {
        let name = groups.stacked().names.get(group).map_or("", String::as_str);
        format!("{name} grew by {}", bytes.exact())
    }));
    lines.join("\n")
}
