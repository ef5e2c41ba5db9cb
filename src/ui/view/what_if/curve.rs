//! The chart of live bytes with the changes, stacked by class, and without them, as a dashed line.

use egui::{Rect, Stroke, Ui, Vec2};

use super::plot_in;
use crate::analysis::class::Class;
use crate::analysis::map::TimeAxis;
use crate::model::Bytes;
use crate::ui::chart::legend::{self, Sign};
use crate::ui::chart::{
    Areas, Chart, Cursor, Fit, Line, Peak, Reach, Tone, Window, XAxis, highest_step, lowest_step, step_of,
};
use crate::ui::part::colors::slot_of_class;
use crate::ui::part::{ViewContext, class_legend};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::theme::{Theme, size};
use crate::ui::work::WhatIfResult;

/// Classes named in the tooltip.
const NAMED: usize = 5;

/// Width from which the title has room for the legend beside it.
const LEGEND_BESIDE: f32 = 620.0;

/// Height of the title and the legend.
fn head_height(rect: Rect) -> f32 {
    if rect.width() >= LEGEND_BESIDE { 0.0 } else { 20.0 }
}

/// Draws the curves into a rectangle.
pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    raster: &mut CachedRaster,
    (result, number): (&WhatIfResult, u64),
    rect: Rect,
) {
    let (theme, units) = (context.theme, context.options.units);
    heading(ui, theme, result, rect);
    let limit = result.memory.capacity;
    let count = result.curve_after.len() as u32;
    let most = result.peak_before().0.max(result.peak_after().0).0;
    let window = Window {
        rect: plot_in(rect.with_min_y(rect.top() + head_height(rect)), limit),
        x: Reach::steps(count).whole,
        y: Fit::of(ui.ctx()).bytes(most, || most, limit),
    };
    let highest = |from: f64, to: f64| highest_step(from, to, &result.curve_after);
    let lowest = |from: f64, to: f64| lowest_step(from, to, &result.curve_after).unwrap_or(0);
    let before = |from: f64, to: f64| highest_step(from, to, &result.curve_before).map_or(0, |highest| highest.0);
    let group = |class: usize, event: u32| {
        result.classes.get(class).and_then(|curve| curve.get(event as usize)).copied().unwrap_or(0)
    };
    let colors: Vec<_> = Class::ALL.iter().map(|class| slot_of_class(*class).color()).collect();
    let is_changed = result.change() != 0;
    let dashes = is_changed.then_some(&before as &dyn Fn(f64, f64) -> u64);
    let areas = Areas { lowest: Some(&lowest), before: dashes, limit, ..Areas::new(&highest, &group, &colors) };
    let ((was, was_at), (now, now_at)) = (result.peak_before(), result.peak_after());
    let unit = result.axis.unit.unit();
    let peak = |point: u32, bytes: Bytes, words: String, is_before: bool| Peak {
        x: f64::from(point) + 0.5,
        y: bytes.0 as f64,
        words,
        is_before,
    };
    let after = if is_changed { " after" } else { "" };
    let words = format!("{}{after}, {unit} {}", units.short(now), now_at);
    let peaks = [peak(now_at, now, words, false)]
        .into_iter()
        .chain(is_changed.then(|| peak(was_at, was, format!("{} before", units.short(was)), true)));
    let shown = Chart::new("Live bytes, before and after", theme, window, XAxis::Steps(unit), units)
        .drawn(ui, raster, number, |raster, window| areas.draw(raster, window, theme))
        .limit(limit)
        .peak(peaks)
        .start(f64::from(now_at) + 0.5)
        .show(ui);
    let Some(at) = shown.at else { return };
    let event = step_of(at, count);
    let pointed = Cursor { x: f64::from(event) + 0.5, stroke: Stroke::new(1.5, theme.ink) };
    pointed.draw(ui.painter(), &window, &[window.rect]);
    if result.axis.unit == TimeAxis::ProgramOrder {
        context.shared.hover_step(event);
    }
    let value = |curve: &[u64]| curve.get(event as usize).copied().unwrap_or(0);
    let (now, was) = (value(&result.curve_after), value(&result.curve_before));
    let title = format!("{unit} {event}");
    let mut lines = vec![Line::new(title, units.short(Bytes(now))).toned(Tone::Title)];
    if is_changed {
        lines.push(Line::new("without the changes", units.short(Bytes(was))));
        lines.push(Line::new("change", units.signed(i128::from(now) - i128::from(was))));
    }
    let mut classes: Vec<(Class, u64)> =
        Class::ALL.into_iter().zip(result.classes.iter().map(|curve| value(curve))).filter(|row| row.1 > 0).collect();
    classes.sort_by_key(|row| std::cmp::Reverse(row.1));
    let rest: u64 = classes.iter().skip(NAMED).map(|row| row.1).sum();
    for &(class, bytes) in classes.iter().take(NAMED) {
        lines.push(Line::new(class.name(), units.short(Bytes(bytes))).of(slot_of_class(class)));
    }
    if rest > 0 {
        lines.push(Line::new("the rest", units.short(Bytes(rest))));
    }
    shown.readout(ui, &lines);
}

fn heading(ui: &mut Ui, theme: &Theme, result: &WhatIfResult, rect: Rect) {
    let line = Rect::from_min_size(rect.min, Vec2::new(rect.width(), 20.0));
    let mut child = ui.new_child(
        egui::UiBuilder::new()
            .max_rect(line)
            .layout(egui::Layout::left_to_right(egui::Align::Center))
            .id_salt("curve head"),
    );
    child.label(text("Live bytes, before and after", size::BODY, Weight::SemiBold, theme.text));
    let below = head_height(rect);
    let mut child = if below > 0.0 {
        let builder = egui::UiBuilder::new().max_rect(line.translate(Vec2::new(0.0, below)));
        ui.new_child(builder.layout(egui::Layout::left_to_right(egui::Align::Center)).id_salt("curve legend"))
    } else {
        child
    };
    child.add_space(if below > 0.0 { 0.0 } else { 8.0 });
    if result.change() != 0 {
        legend::entry(&mut child, theme, Sign::Dashes, "before");
        child.add_space(6.0);
    }
    // Classes too small to be seen are left out of the legend.
    let seen = |most: u64| most.saturating_mul(200) > result.after.peak.0;
    let highest = |class: Class| result.blocks.highest.get(class.place()).copied().filter(|&most| seen(most));
    class_legend::legends(&mut child, theme, &|class| highest(class).unwrap_or(0));
}
