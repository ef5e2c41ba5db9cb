//! Heap, stack and free memory over time, the peak and the capacity; fragmentation in a band of its own.

use std::sync::Arc;

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, Ui, WidgetInfo};

use super::{AT_ONCE, HEAP, Places, STACK, State, Worked, moment};
use crate::analysis::runtime::AllocatorAnalysis;
use crate::model::{AllocatorActivity, AllocatorTrace, Bytes, UnitSystem};
use crate::ui::part::ViewContext;
use crate::ui::session::Document;
use crate::ui::widget::axis::{Span, byte_ticks};
use crate::ui::widget::controls::paint_peak;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::Raster;
use crate::ui::widget::theme::{Theme, mix, size};
use crate::ui::work::Window;

#[expect(clippy::too_many_arguments, reason = "what is drawn, where, and from what")]
pub fn show(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    state: &mut State,
    places: &Places,
    trace: &AllocatorTrace,
    analysis: &AllocatorAnalysis,
    worked: &Arc<Worked>,
) {
    let theme = context.theme;
    let rect = places.curve;
    let curve = &worked.curve;
    let shows_free = state.shows_free(curve, analysis.peak);
    let highest = if shows_free { curve.capacity.max(analysis.peak.0) } else { analysis.peak.0 };
    let y = Span::new(0.0, (highest.max(1) as f64) * 1.08);
    let key = (state.of, theme.dark, shows_free);
    let event = |row: u32| trace.events.get(analysis.order.get(row as usize).copied().unwrap_or(0) as usize);
    let picture = Picture {
        document: Arc::clone(context.document),
        allocator: state.of.map_or(0, |(_, allocator)| allocator),
        worked: Arc::clone(worked),
        theme: *theme,
        shows_free,
        window: Window { rect, x: places.x, y },
    };
    let at_once = trace.events.len() < AT_ONCE;
    state.curve.show(ui, context.work, picture.window, "runtime curve", key, theme.panel, at_once, move |raster| {
        picture.paint(raster);
    });
    scale(ui, context, rect, y);
    if shows_free && curve.capacity > 0 {
        let at = (rect.bottom() - (y.share(curve.capacity as f64) * f64::from(rect.height())) as f32).round();
        ui.painter().hline(rect.x_range(), at, Stroke::new(2.0, theme.over));
        let words = format!("capacity {}", context.options.units.capacity(Bytes(curve.capacity)));
        let galley = ui.painter().layout_no_wrap(words, Weight::SemiBold.at(size::SMALL), theme.danger);
        let place = Rect::from_min_size(Pos2::new(rect.left() + 8.0, at + 4.0), galley.size());
        ui.painter().rect_filled(place.expand(2.0), 2.0, theme.canvas.gamma_multiply(0.88));
        ui.painter().galley(place.min, galley, theme.danger);
    }
    let px = places.x_of(analysis.peak_time_ps as f64);
    if rect.x_range().contains(px) {
        let py = rect.bottom() - (y.share(analysis.peak.0 as f64) * f64::from(rect.height())) as f32;
        let py = py.max(rect.top() + 10.0);
        paint_peak(ui.painter(), Pos2::new(px, py), theme.ink);
        let words = format!("peak {}", context.short(analysis.peak));
        let (align, dx) =
            if px > rect.center().x { (Align2::RIGHT_CENTER, -10.0) } else { (Align2::LEFT_CENTER, 10.0) };
        let galley = ui.painter().layout_no_wrap(words, Weight::SemiBold.at(size::SMALL), theme.text);
        let place = align.anchor_size(Pos2::new(px + dx, py - 6.0), galley.size());
        ui.painter().rect_filled(place.expand(2.0), 2.0, theme.panel.gamma_multiply(0.85));
        ui.painter().galley(place.min, galley, theme.text);
    }
    let response = ui.interact(rect, ui.scope_id().with("runtime curve"), Sense::hover());
    let spoken = format!("Memory in use over time, peak {}", context.short(analysis.peak));
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
    let Some(row) = state.cursor.filter(|_| response.hovered()).and_then(|time| curve.row_at(time)) else { return };
    let Some(event) = event(row) else { return };
    response.on_hover_ui_at_pointer(|ui| {
        let line = |ui: &mut Ui, words: String, weight| {
            ui.label(text(words, size::SMALL, weight, theme.text));
        };
        let units = context.options.units;
        let in_use = Bytes::from_wire(event.stats.in_use());
        ui.label(text(units.short(in_use), size::BODY, Weight::SemiBold, theme.text));
        let mut words = format!("heap {}", units.short(Bytes::from_wire(event.stats.heap)));
        if event.stats.stack > 0 {
            words = format!("{words}, stack {}", units.short(Bytes::from_wire(event.stats.stack)));
        }
        if event.stats.free > 0 {
            words = format!("{words}, free {}", units.short(Bytes::from_wire(event.stats.free)));
        }
        if event.stats.fragmentation.is_finite() && event.stats.free > 0 {
            words = format!("{words}, fragmentation {:.1}\u{2009}%", event.stats.fragmentation * 100.0);
        }
        line(ui, words, Weight::Medium);
        let did = match event.activity {
            AllocatorActivity::Allocation => "took",
            AllocatorActivity::Deallocation => "gave back",
            AllocatorActivity::Other => "noted",
        };
        let allocated = Bytes::from_wire(event.allocated);
        let mut words =
            format!("since {}: {did} {}", moment(trace.clock, event.time_ps as f64, 1e3), units.short(allocated));
        let op = trace.strings.get(event.op);
        if !op.is_empty() {
            words = format!("{words} for {op}");
        }
        line(ui, words, Weight::Regular);
        let shape = format!("{}{}", trace.strings.get(event.data_type), trace.strings.get(event.shape));
        if event.activity == AllocatorActivity::Allocation && !shape.is_empty() {
            ui.label(text(shape, size::SMALL, Weight::Mono, theme.text2));
        }
    });
}

/// The curve, as a worker draws it.
struct Picture {
    document: Arc<Document>,
    allocator: usize,
    worked: Arc<Worked>,
    theme: Theme,
    shows_free: bool,
    window: Window,
}

impl Picture {
    fn paint(&self, raster: &mut Raster) {
        let runtime = (&self.document.profile.runtime, &self.document.analysis.runtime);
        let Some((trace, analysis)) = runtime.0.get(self.allocator).zip(runtime.1.get(self.allocator)) else { return };
        let (curve, theme, x, y) = (&self.worked.curve, &self.theme, self.window.x, self.window.y);
        let event = |row: u32| trace.events.get(*analysis.order.get(row as usize)? as usize);
        let (width, height) = (raster.width() as i64, raster.height() as i64);
        let pixel = |value: f64| height - (y.share(value) * height as f64).round().clamp(0.0, height as f64) as i64;
        let pale = mix(HEAP.color(), theme.panel, 0.45);
        for column in 0..width {
            let (from, to) = times_of(x, column, width);
            let Some((used, row)) = curve.highest(from, to) else { continue };
            let Some(stats) = event(row).map(|event| event.stats) else { continue };
            let stack = pixel(stats.stack.max(0) as f64);
            let top = pixel(used as f64);
            if self.shows_free {
                let with_free = pixel((used as i64).saturating_add(stats.free.max(0)) as f64);
                raster.fill(column, with_free, column + 1, top, theme.inset);
            }
            raster.fill(column, stack, column + 1, height, STACK.color());
            let low = curve.lowest(from, to).map_or(top, |low| pixel(low as f64)).min(stack);
            raster.fill(column, top, column + 1, low, if low > top + 1 { pale } else { HEAP.color() });
            raster.fill(column, low, column + 1, stack, HEAP.color());
            // What is there is never drawn as nothing.
            if used > 0 && top >= height {
                raster.fill(column, height - 1, column + 1, height, HEAP.color());
            }
        }
    }
}

/// The time, in picoseconds, that a column of pixels shows: `from..to`, never empty.
pub fn times_of(x: Span, column: i64, width: i64) -> (i64, i64) {
    let at = |column: i64| x.at(column as f64 / width as f64);
    let from = at(column).floor() as i64;
    (from, (at(column + 1).ceil() as i64).max(from.saturating_add(1)))
}

fn scale(ui: &Ui, context: &ViewContext<'_>, rect: Rect, y: Span) {
    let theme = context.theme;
    let base = if context.options.units == UnitSystem::Binary { 1024.0 } else { 1000.0 };
    for tick in byte_ticks(y, (rect.height() / 44.0) as usize + 1, base) {
        let at = rect.bottom() - (y.share(tick) * f64::from(rect.height())) as f32;
        let words = context.options.units.capacity(Bytes(tick as u64));
        let place = Pos2::new(rect.left() - 10.0, at);
        ui.painter().text(place, Align2::RIGHT_CENTER, words, Weight::Regular.at(size::SMALL), theme.text2);
        ui.painter().hline(rect.x_range(), at.round(), Stroke::new(1.0, theme.line.gamma_multiply(0.5)));
    }
}

/// Fragmentation, 0 to 100 %, on an axis of its own.
pub fn fragmentation(ui: &Ui, context: &ViewContext<'_>, state: &mut State, places: &Places, worked: &Arc<Worked>) {
    let theme = context.theme;
    let rect = places.fragmentation;
    let curve = &worked.curve;
    if rect.height() < 8.0 {
        return;
    }
    let key = (state.of, theme.dark);
    let window = Window { rect, x: places.x, y: Span::new(0.0, 1.0) };
    let (own, fill) = (Arc::clone(worked), mix(theme.panel, theme.text3, 0.55));
    let at_once = curve.times.len() < AT_ONCE;
    state.fragmentation.show(ui, context.work, window, "fragmentation", key, theme.panel, at_once, move |raster| {
        let (width, height) = (raster.width() as i64, raster.height() as i64);
        for column in 0..width {
            let (from, to) = times_of(window.x, column, width);
            let Some(share) = own.curve.fragmentation(from, to) else { continue };
            let top = height - (share * height as f64).round() as i64;
            raster.fill(column, top.min(if share > 0.0 { height - 1 } else { height }), column + 1, height, fill);
        }
    });
    let small = Weight::Regular.at(size::SMALL);
    let x = rect.left() - 10.0;
    ui.painter().text(Pos2::new(x, rect.top() + 5.0), Align2::RIGHT_CENTER, "100\u{2009}%", small.clone(), theme.text2);
    ui.painter().text(Pos2::new(x, rect.bottom() - 6.0), Align2::RIGHT_CENTER, "0", small.clone(), theme.text2);
    let name = ui.painter().layout_no_wrap("Fragmentation of what is free".to_owned(), small, theme.text2);
    let place = Rect::from_min_size(rect.min + egui::Vec2::new(6.0, 2.0), name.size());
    ui.painter().rect_filled(place.expand2(egui::Vec2::new(3.0, 0.0)), 2.0, theme.panel.gamma_multiply(0.85));
    ui.painter().galley(place.min, name, theme.text2);
    let response = ui.interact(rect, ui.scope_id().with("fragmentation"), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, "Fragmentation over time"));
    if let Some(share) = state.cursor.and_then(|time| curve.fragmentation(time, time.saturating_add(1))) {
        response.on_hover_text_at_pointer(format!("{:.1}\u{2009}%", share * 100.0));
    }
}
