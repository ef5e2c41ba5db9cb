//! Live bytes over the heap events: with the changes filled by class, without them as an outline behind.

use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::{axes, plot_in};
use crate::analysis::class::Class;
use crate::model::{Bytes, thousands};
use crate::ui::part::colors::slot_of_class;
use crate::ui::part::{ViewContext, class_legend};
use crate::ui::widget::axis::Span;
use crate::ui::widget::controls::{legend, paint_peak};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::{CachedRaster, Hatch, Raster};
use crate::ui::widget::theme::{Theme, mix, size};
use crate::ui::work::WhatIfResult;

/// Draws the curves into a rectangle.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, raster: &mut CachedRaster, result: &WhatIfResult, rect: Rect) {
    let theme = context.theme;
    heading(ui, theme, result, rect);
    let plot = plot_in(rect);
    let limit = result.memory.capacity;
    let highest = result.before.peak.0.max(result.after.peak.0).max(limit.unwrap_or(0));
    let y = Span::new(0.0, (highest as f64).max(1.0) * 1.06);
    let points = result.curve_after.len();
    let key = (
        context.shared.program,
        std::ptr::from_ref(result) as usize,
        result.after.peak.0,
        result.after.allocated.0,
        (theme.dark, limit),
    );
    raster.show(ui, plot, "what if curve", key, theme.panel, |raster| draw(raster, theme, result, y));
    axes(ui, context, plot, y, points, limit);
    let x_of = |event: u32| plot.left() + (f64::from(event) + 0.5) as f32 / points.max(1) as f32 * plot.width();
    let y_of = |bytes: Bytes| plot.bottom() - (y.share(bytes.0 as f64) * f64::from(plot.height())) as f32;
    let painter = ui.painter();
    let mark = |event: u32, bytes: Bytes, color, words: String, weight: Weight| {
        let tip = Pos2::new(x_of(event), y_of(bytes).max(plot.top() + 9.0));
        paint_peak(painter, tip, color);
        let (align, dx) =
            if tip.x > plot.center().x { (Align2::RIGHT_CENTER, -11.0) } else { (Align2::LEFT_CENTER, 11.0) };
        let galley = painter.layout_no_wrap(words, weight.at(size::SMALL), color);
        let place = align.anchor_size(tip + Vec2::new(dx, -6.0), galley.size());
        painter.rect_filled(place.expand2(Vec2::new(3.0, 0.0)), 2.0, theme.panel.gamma_multiply(0.85));
        painter.galley(place.min, galley, color);
    };
    let changed = result.change() != 0;
    if changed {
        let words = format!("{} before", context.options.units.short(result.before.peak));
        mark(result.before.peak_event, result.before.peak, theme.text2, words, Weight::Medium);
    }
    let words = format!(
        "{}{}, event {}",
        context.options.units.short(result.after.peak),
        if changed { " after" } else { "" },
        thousands(result.after.peak_event.into())
    );
    mark(result.after.peak_event, result.after.peak, theme.text, words, Weight::SemiBold);
    let response = ui.interact(plot, ui.scope_id().with("what if curve"), Sense::hover());
    let spoken = format!("Live bytes, peak {}", context.short(result.after.peak));
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
    let Some(at) = response.hover_pos() else { return };
    ui.painter().vline(at.x, plot.y_range(), egui::Stroke::new(1.5, theme.ink));
    let event = (((at.x - plot.left()) / plot.width() * points as f32) as usize).min(points.saturating_sub(1));
    if let Some(&point) = result.memory.points.get(event) {
        context.shared.hover_step(point);
    }
    let value = |curve: &[u64]| curve.get(event).copied().unwrap_or(0);
    response.on_hover_ui_at_pointer(|ui| {
        ui.label(text(format!("event {}", thousands(event as u64)), size::BODY, Weight::SemiBold, theme.text));
        let line = |words: String, color| text(words, size::BODY, Weight::Regular, color);
        ui.label(line(format!("{} with the changes", context.short(Bytes(value(&result.curve_after)))), theme.text));
        ui.label(line(format!("{} without", context.short(Bytes(value(&result.curve_before)))), theme.text2));
        for (class, curve) in Class::ALL.iter().zip(&result.classes) {
            let bytes = value(curve);
            if bytes > 0 {
                legend(ui, slot_of_class(*class), &format!("{}  {}", class.name(), context.short(Bytes(bytes))), theme);
            }
        }
    });
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
    child.add_space(8.0);
    // What is too small to be seen needs no colour explained.
    let seen = |most: u64| most.saturating_mul(200) > result.after.peak.0;
    let highest = |class: Class| result.blocks.highest.get(class.place()).copied().filter(|&most| seen(most));
    class_legend::legends(&mut child, theme, &|class| highest(class).unwrap_or(0));
}

fn draw(raster: &mut Raster, theme: &Theme, result: &WhatIfResult, y: Span) {
    let (width, height) = (raster.width() as i64, raster.height() as i64);
    let points = result.curve_after.len();
    if points == 0 || width == 0 {
        return;
    }
    let pixel = |value: u64| height - (y.share(value as f64) * height as f64).round().clamp(0.0, height as f64) as i64;
    let ghost = mix(theme.panel, theme.text3, 0.22);
    let limit = result.memory.capacity.map(pixel);
    let thick = raster.scale().round().max(1.0) as i64;
    let mut before_at: Option<i64> = None;
    for column in 0..width {
        let from = (column as usize * points / width as usize).min(points - 1);
        let to = ((column as usize + 1) * points / width as usize).clamp(from + 1, points);
        // The highest event of the column, for each curve its own.
        let highest = |curve: &[u64]| {
            let range = curve.get(from..to.min(curve.len())).unwrap_or(&[]);
            range
                .iter()
                .enumerate()
                .max_by_key(|&(i, &v)| (v, std::cmp::Reverse(i)))
                .map_or((from, 0), |(i, &v)| (from + i, v))
        };
        let (_, was) = highest(&result.curve_before);
        let (event, now) = highest(&result.curve_after);
        let (top_was, top_now) = (pixel(was), pixel(now));
        if top_was < top_now {
            raster.fill(column, top_was, column + 1, top_now, ghost);
        }
        let mut sum = 0u64;
        let mut bottom = height;
        for (class, curve) in Class::ALL.iter().zip(&result.classes) {
            sum = sum.saturating_add(curve.get(event).copied().unwrap_or(0));
            let edge = pixel(sum).min(bottom);
            if edge < bottom {
                raster.fill(column, edge, column + 1, bottom, slot_of_class(*class).color());
            }
            bottom = edge;
        }
        if let Some(limit) = limit.filter(|&limit| limit > top_now) {
            raster.hatch(column, top_now, column + 1, limit, Hatch::beyond(theme.over));
        }
        // The outline of what was, dashed.
        let last = before_at.unwrap_or(top_was);
        if (column / (4 * thick)) % 2 == 0 || last != top_was {
            raster.fill(column, top_was.min(last), column + 1, top_was.max(last) + thick, theme.text2);
        }
        before_at = Some(top_was);
    }
}
