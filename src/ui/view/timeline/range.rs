//! Measuring a range of steps, dragged on the axis or anywhere with Shift: what is allocated and freed in it, and what
//! grows, is shown in Details.

use egui::{Align2, Pos2, Rangef, Rect, Role, Sense, Stroke, Ui, Vec2, WidgetInfo};

use super::groups::Groups;
use super::state::{Drawn, FrameLayout, State};
use crate::analysis::range_stats::{RangeStats, range_stats};
use crate::model::counted;
use crate::ui::chart;
use crate::ui::part::{Action, ViewContext};
use crate::ui::widget::controls::{self, link};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};
use crate::ui::work::SpaceData;

/// Maximum number of groups listed.
const GREW: usize = 4;

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, Drawn { data, groups, layout }: Drawn<'_>) {
    let theme = context.theme;
    drag(ui, context, state, data, layout);
    let Some((from, to)) = context.shared.measured else { return };
    let key = ((from, to), state.grouping, groups.stacked().names.len());
    if state.measure.stats.as_ref().is_none_or(|(of, ..)| *of != key) {
        let stacked = groups.stacked();
        let stats = range_stats(&data.map, &stacked.curves, &stacked.pyramid, from, to);
        state.measure.stats = Some((key, stats, groups.clone()));
    }
    let Some((_, stats, _)) = &state.measure.stats else { return };
    let (first, end) = (f64::from(stats.from), f64::from(stats.to) + 1.0);
    let axis = layout.window();
    chart::range(ui.painter(), theme, &axis, (first, end), &layout.bands());
    // Brackets beside the range: one of a single step, which has just begun, lies under the line of that step.
    for (x, inward) in [(axis.x_of(first) - BRACKET.x, 1.0), (axis.x_of(end) + BRACKET.x, -1.0)] {
        if layout.curve.x_range().contains(x) {
            let stroke = Stroke::new(2.0, theme.accent);
            let (top, bottom) = (layout.curve.top() + 1.0, layout.curve.bottom() - 1.0);
            ui.painter().vline(x, top..=bottom, stroke);
            for y in [top, bottom] {
                ui.painter().hline(
                    Rangef::new(x.min(x + inward * BRACKET.y), x.max(x + inward * BRACKET.y)),
                    y,
                    stroke,
                );
            }
        }
    }
}

/// Distance of a bracket from its range, and the length of its arms.
const BRACKET: Vec2 = Vec2::new(4.0, 6.0);

/// The figures of the measured range, for Details.
pub fn section(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let state = context.locals.take::<State>();
    if let Some((_, stats, groups)) = state.measure.stats.as_ref().filter(|_| context.shared.measured.is_some()) {
        figures(ui, context, groups, stats);
        controls::rule(ui, context.theme);
    }
    context.locals.put(state);
}

fn drag(ui: &Ui, context: &mut ViewContext<'_>, state: &mut State, data: &SpaceData, layout: &FrameLayout) {
    let axis = layout.window();
    let point_at = |x: f32| axis.step_at(x, data.map.points);
    let response = ui.interact(layout.axis, ui.scope_id().with("measure"), Sense::click_and_drag());
    response.widget_info(|| WidgetInfo::labeled(Role::Slider, true, "Drag to measure a range of steps"));
    if response.clicked() {
        context.shared.measure(None);
        if let Some(at) = response.interact_pointer_pos() {
            context.shared.choose_step(point_at(at.x));
        }
    }
    let everything = layout.curve.union(layout.map).union(layout.lifetimes);
    let (shift, down, pressed, origin, at) = ui.input(|i| {
        let p = &i.pointer;
        (i.modifiers.shift, p.primary_down(), p.primary_pressed(), p.press_origin(), p.latest_pos())
    });
    let begins = response.drag_started() || (shift && pressed && ui.rect_contains_pointer(everything));
    if begins && let Some(origin) = origin {
        state.measure.from = Some(point_at(origin.x));
    }
    if !down && state.measure.from.take().is_some() && context.shared.measured.is_some() {
        // The figures are shown there.
        context.actions.push(Action::Panel("details"));
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

fn figures(ui: &mut Ui, context: &mut ViewContext<'_>, groups: &Groups, stats: &RangeStats) {
    let theme = context.theme;
    let steps = u64::from(stats.to - stats.from) + 1;
    let head = format!("Steps {} to {} ({steps})", stats.from, stats.to);
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
    let buffers = |count: usize| format!("in {}", counted(count as u64, "buffer"));
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
        ui.label(text("Peak in range", size::SMALL, Weight::Regular, theme.text2));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if link(ui, &format!("step {}", stats.peak_point), theme).clicked() {
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

/// The figures as text, with exact bytes.
fn words(context: &ViewContext<'_>, groups: &Groups, stats: &RangeStats) -> String {
    let mut lines = vec![
        format!("{}, steps {} to {}", context.document.profile.name, stats.from, stats.to),
        format!("allocated {} in {}", stats.allocated.exact(), counted(stats.allocations as u64, "buffer")),
        format!("freed {} in {}", stats.freed.exact(), counted(stats.frees as u64, "buffer")),
        format!("reserved before {}, after {}", stats.before.exact(), stats.after.exact()),
        format!("peak in range {} at step {}", stats.peak.exact(), stats.peak_point),
    ];
    lines.extend(stats.grew.iter().map(|&(group, bytes)| {
        let name = groups.stacked().names.get(group).map_or("", String::as_str);
        format!("{name} grew by {}", bytes.exact())
    }));
    lines.join("\n")
}
