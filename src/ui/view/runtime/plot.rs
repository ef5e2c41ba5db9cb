//! The chart of heap, stack and free memory over time with peak and capacity, and the band of fragmentation.

use std::sync::Arc;

use egui::{Color32, Pos2, Rect, Stroke, Ui};

use super::state::{AT_ONCE, FrameLayout, HEAP, STACK, State, Worked, axis_of, moment, times_between};
use crate::analysis::runtime::AllocatorAnalysis;
use crate::analysis::runtime_curve::RuntimeCurve;
use crate::model::{AllocatorActivity, AllocatorEvent, AllocatorTrace, Bytes};
use crate::ui::chart::{Areas, Chart, Fit, Line, Peak, Span, Tone, Window, YAxis};
use crate::ui::part::ViewContext;
use crate::ui::session::Document;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::raster::Raster;
use crate::ui::widget::theme::{Theme, mix, size};
use crate::ui::work::Sheet;

/// Resolution of a share that is drawn as an integer.
const PARTS: f64 = 1e6;

/// Draws an allocator's history.
pub fn show(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    state: &mut State,
    layout: &FrameLayout,
    (trace, analysis): (&AllocatorTrace, &AllocatorAnalysis),
    worked: &Arc<Worked>,
) {
    let (theme, units) = (context.theme, context.options.units);
    let curve = &worked.curve;
    let shows_free = state.shows_free(curve, analysis.peak);
    let limit = Some(curve.capacity).filter(|&capacity| capacity > 0);
    let visible = || curve.highest(layout.x.lo as i64, layout.x.hi as i64).map_or(0, |highest| highest.0);
    let y = Fit::of(ui.ctx()).bytes(analysis.peak.0, visible, limit.filter(|_| shows_free));
    let window = Window { rect: layout.curve, x: layout.x, y };
    let picture = Drawing {
        document: Arc::clone(context.document),
        allocator: state.of.map_or(0, |(_, allocator)| allocator),
        worked: Arc::clone(worked),
        theme: *theme,
        shows_free,
        window,
    };
    let at_once = trace.events.len() < AT_ONCE;
    let sheet = Sheet { window, name: "runtime curve", ground: Color32::TRANSPARENT, at_once };
    let key = (state.of, theme.panel, shows_free);
    let picture = state.curve.picture(ui, context.work, sheet, key, move |raster| picture.paint(raster));
    let peak = Peak {
        x: analysis.peak_time_ps as f64,
        y: analysis.peak.0 as f64,
        words: format!("peak {}", units.short(analysis.peak)),
        is_before: false,
    };
    let next = |at: f64, forward: bool| next_event(curve, at, forward);
    let shown = Chart::new("Memory in use over time", theme, window, axis_of(trace.clock), units)
        .without_row()
        .picture(picture.map(|(picture, ())| picture))
        .limit(limit)
        .peak([peak])
        .start(analysis.peak_time_ps as f64)
        .events(&next)
        .show(ui);
    if shown.is_by_keys {
        state.cursor = shown.at.map(|at| at.round() as i64);
    }
    let row = shown.at.and_then(|at| curve.row_at(at.round() as i64));
    let event = row.and_then(|row| trace.events.get(*analysis.order.get(row as usize)? as usize));
    if let Some(event) = event {
        shown.readout(ui, &readout(context, trace, event));
    }
}

/// The time of the next or previous event.
fn next_event(curve: &RuntimeCurve, at: f64, forward: bool) -> Option<f64> {
    let at = at.round() as i64;
    let row = if forward {
        curve.times.partition_point(|&time| time <= at)
    } else {
        curve.times.partition_point(|&time| time < at).checked_sub(1)?
    };
    curve.times.get(row).map(|&time| time as f64)
}

/// The hover readout: memory in use since an event, and what the event did.
fn readout(context: &ViewContext<'_>, trace: &AllocatorTrace, event: &AllocatorEvent) -> Vec<Line> {
    let short = |bytes: i64| context.options.units.short(Bytes::from_wire(bytes));
    let since = format!("since {}", moment(trace.clock, event.time_ps as f64, 1e3));
    let mut lines = vec![Line::new(since, short(event.stats.in_use())).toned(Tone::Title)];
    let did = match event.activity {
        AllocatorActivity::Allocation => "allocated",
        AllocatorActivity::Deallocation => "freed",
        AllocatorActivity::Other => "other",
    };
    lines.push(Line::new(did, short(event.allocated)));
    let op = trace.strings.get(event.op);
    let shape = format!("{}{}", trace.strings.get(event.data_type), trace.strings.get(event.shape));
    let is_made = event.activity == AllocatorActivity::Allocation;
    let name = [op, if is_made { &shape } else { "" }].into_iter().filter(|words| !words.is_empty());
    let name = name.collect::<Vec<_>>().join("  ");
    if !name.is_empty() {
        lines.push(Line::new(name, "").toned(Tone::Name));
    }
    if event.stats.free > 0 {
        let mut words = "free".to_owned();
        if event.stats.fragmentation.is_finite() {
            words = format!("free, fragmentation {:.1}\u{2009}%", event.stats.fragmentation * 100.0);
        }
        lines.push(Line::new(words, short(event.stats.free)));
    } else if event.stats.stack > 0 {
        lines.push(Line::new("stack", short(event.stats.stack)).of(STACK));
    }
    lines
}

/// Everything the curve depends on, for the worker that draws it.
struct Drawing {
    document: Arc<Document>,
    allocator: usize,
    worked: Arc<Worked>,
    theme: Theme,
    shows_free: bool,
    window: Window,
}

impl Drawing {
    fn paint(&self, raster: &mut Raster) {
        let runtime = (&self.document.profile.runtime, &self.document.analysis.runtime);
        let Some((trace, analysis)) = runtime.0.get(self.allocator).zip(runtime.1.get(self.allocator)) else { return };
        let curve = &self.worked.curve;
        let event = |row: u32| trace.events.get(*analysis.order.get(row as usize)? as usize);
        let bytes = |row: u32, of: &dyn Fn(&AllocatorEvent) -> i64| {
            event(row).map_or(0, |event| u64::try_from(of(event)).unwrap_or(0))
        };
        let highest = |from: f64, to: f64| {
            let (from, to) = times_between(from, to);
            curve.highest(from, to)
        };
        let lowest = |from: f64, to: f64| {
            let (from, to) = times_between(from, to);
            curve.lowest(from, to).unwrap_or(0)
        };
        let group = |group: usize, row: u32| match group {
            0 => bytes(row, &|event| event.stats.stack),
            _ => bytes(row, &|event| event.stats.in_use()).saturating_sub(bytes(row, &|event| event.stats.stack)),
        };
        let free = |row: u32| bytes(row, &|event| event.stats.free);
        let above = self.shows_free.then_some((&free as &dyn Fn(u32) -> u64, self.theme.inset));
        let colors = [STACK.color(), HEAP.color()];
        let areas = Areas { lowest: Some(&lowest), above, ..Areas::new(&highest, &group, &colors) };
        areas.draw(raster, &self.window, &self.theme);
    }
}

/// Fragmentation, 0 to 100 %, on an axis of its own.
pub fn fragmentation(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    state: &mut State,
    layout: &FrameLayout,
    trace: &AllocatorTrace,
    worked: &Arc<Worked>,
) {
    let theme = context.theme;
    let rect = layout.fragmentation;
    let curve = &worked.curve;
    if rect.height() < 8.0 {
        return;
    }
    let window = Window { rect, x: layout.x, y: Span::new(0.0, PARTS) };
    let (own, style) = (Arc::clone(worked), *theme);
    let at_once = curve.times.len() < AT_ONCE;
    let sheet = Sheet { window, name: "fragmentation", ground: Color32::TRANSPARENT, at_once };
    let key = (state.of, theme.panel);
    let picture = state.fragmentation.picture(ui, context.work, sheet, key, move |raster| {
        let value = |from: f64, to: f64| {
            let (from, to) = times_between(from, to);
            own.curve.fragmentation(from, to).map(|share| (share * PARTS) as u64)
        };
        // A group is asked for the value of a row: here the value itself.
        let highest = |from: f64, to: f64| value(from, to).map(|parts| (parts, parts as u32));
        let colors = [mix(style.panel, style.text3, 0.55)];
        Areas::new(&highest, &|_, parts| u64::from(parts), &colors).draw(raster, &window, &style);
    });
    let shown = Chart::new("Fragmentation over time", theme, window, axis_of(trace.clock), context.options.units)
        .without_row()
        .y_axis(YAxis::Share)
        .picture(picture.map(|(picture, ())| picture))
        .show(ui);
    let small = Weight::Regular.at(size::SMALL);
    let name = ui.painter().layout_no_wrap("Fragmentation of free memory".to_owned(), small, theme.text2);
    let place = Rect::from_min_size(rect.min + egui::Vec2::new(6.0, 2.0), name.size());
    ui.painter().rect_filled(place.expand2(egui::Vec2::new(3.0, 0.0)), 2.0, theme.panel.gamma_multiply(0.85));
    ui.painter().galley(place.min, name, theme.text2);
    let share = shown.at.and_then(|at| curve.fragmentation(at.round() as i64, at.round() as i64 + 1));
    if let Some(share) = share {
        let words = format!("{:.1}\u{2009}%", share * 100.0);
        let at = Pos2::new(rect.right() - 6.0, rect.top() + 9.0);
        let bold = Weight::SemiBold.at(size::SMALL);
        let galley = ui.painter().layout_no_wrap(words, bold, theme.text);
        let place = egui::Align2::RIGHT_CENTER.anchor_size(at, galley.size());
        ui.painter().rect(
            place.expand2(egui::Vec2::new(5.0, 1.0)),
            2.0,
            theme.canvas.gamma_multiply(0.94),
            Stroke::new(1.0, theme.line2),
            egui::StrokeKind::Inside,
        );
        ui.painter().galley(place.min, galley, theme.text);
    }
}
