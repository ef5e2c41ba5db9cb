//! The curve of live bytes over the steps: zoom, hover, chosen and compared steps.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, Ui, Vec2, WidgetInfo};

use super::{ALWAYS, REST, State, choose};
use crate::analysis::tiles::TileAnalysis;
use crate::model::{Bytes, TileMemory, UnitSystem, thousands};
use crate::ui::part::ViewContext;
use crate::ui::widget::axis::{Span, byte_ticks, decimal_ticks};
use crate::ui::widget::controls::{self, legend, paint_peak};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::stack::Stack;
use crate::ui::widget::theme::{Theme, size};
use crate::ui::widget::{keys, pan};

/// Fewest steps that fill the width.
const LEAST: f64 = 4.0;

/// Draws the curve and takes what the pointer does to it.
pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    memory: &TileMemory,
    tiles: &TileAnalysis,
    state: &mut State,
    plot: Rect,
) {
    let theme = context.theme;
    let always = if state.without_always { 0 } else { tiles.always_live.unwrap_or(0) };
    let bytes = std::mem::take(&mut state.bytes);
    let count = bytes.len() as u32;
    let most = bytes.iter().max().copied().unwrap_or(0).saturating_add(always);
    let capacity = tiles.limit.map(|limit| limit.saturating_mul(memory.tile_count() as u64));
    // A capacity far above would press the curve flat: then its line is left out, and said in words.
    let drawn = capacity.filter(|&capacity| capacity <= most.saturating_mul(3));
    let y = Span::new(0.0, most.max(drawn.unwrap_or(0)).max(1) as f64 * 1.08);
    let whole = Span::new(0.0, f64::from(count.max(1)));
    let mut x = state.range.map_or(whole, |range| range.kept_in(whole));
    let middle = f64::from(context.shared.step.or(tiles.peak.map(|peak| peak.step)).unwrap_or(0)) + 0.5;
    let pointer = ui.input(|input| input.pointer.hover_pos()).filter(|at| plot.contains(*at));
    let around =
        pointer.map_or(middle.max(x.lo).min(x.hi), |at| x.at(f64::from((at.x - plot.left()) / plot.width().max(1.0))));
    if ui.rect_contains_pointer(plot) {
        pan::wheel(ui, plot, &mut x, whole, LEAST);
    }
    if keys::are_free(ui.ctx()) {
        pan::keys(ui, &mut x, whole, LEAST, around);
    }
    let response = ui.interact(plot, ui.scope_id().with("liveness"), Sense::click_and_drag());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, "Live bytes over the steps of the program"));
    if response.dragged() {
        pan::drag(plot, &mut x, whole, response.drag_delta().x);
    }
    state.range = (x != whole).then_some(x);
    let total = |step: u32| bytes.get(step as usize).copied().unwrap_or(0).saturating_add(always);
    let stack = Stack {
        points: count,
        highest: &|from, to| {
            (from..to.min(count)).map(|step| (total(step), step)).max_by_key(|&(b, s)| (b, std::cmp::Reverse(s)))
        },
        group: &|group, step| if group == 0 { always } else { total(step).saturating_sub(always) },
        slots: &[ALWAYS, REST],
        line: None,
        limit: drawn.map(|capacity| capacity as f64),
    };
    let key = (state.of, state.without_always, theme.dark, drawn, [x.lo, x.hi].map(f64::to_bits));
    state.curve.show(ui, plot, "liveness", key, theme.panel, |raster| stack.draw(raster, x, y, theme));
    axes(ui, context, plot, x, y);
    let x_of = |step: u32| plot.left() + (x.share(f64::from(step) + 0.5) * f64::from(plot.width())) as f32;
    let y_of = |bytes: u64| plot.bottom() - (y.share(bytes as f64) * f64::from(plot.height())) as f32;
    if let Some(capacity) = capacity {
        let words = format!("capacity {}", context.options.units.capacity(Bytes(capacity)));
        let at = drawn.map_or(plot.top() + 18.0, |capacity| y_of(capacity).round());
        if drawn.is_some() {
            ui.painter().hline(plot.x_range(), at, Stroke::new(2.0, theme.over));
        }
        let words = if drawn.is_some() { words } else { format!("{words}, above the picture") };
        let galley = ui.painter().layout_no_wrap(words, Weight::SemiBold.at(size::SMALL), theme.danger);
        let place = Rect::from_min_size(Pos2::new(plot.left() + 8.0, at - galley.size().y - 3.0), galley.size());
        ui.painter().rect_filled(place.expand2(Vec2::new(4.0, 1.0)), 2.0, theme.canvas.gamma_multiply(0.88));
        ui.painter().galley(place.min, galley, theme.danger);
    }
    let chosen = context.shared.step.or(tiles.peak.map(|peak| peak.step));
    for (i, step) in chosen.into_iter().chain(context.shared.compared.iter().copied()).enumerate() {
        let color = if i == 0 { theme.ink } else { theme.accent };
        if plot.x_range().contains(x_of(step)) {
            ui.painter().vline(x_of(step), plot.y_range(), Stroke::new(1.5, color));
        }
    }
    if !state.filter.is_empty() {
        marks(ui, theme, plot, &state.rows, &x_of);
    }
    if let Some(peak) = tiles.peak.filter(|peak| plot.x_range().contains(x_of(peak.step))) {
        let tip = Pos2::new(x_of(peak.step), y_of(total(peak.step)).max(plot.top() + 10.0));
        paint_peak(ui.painter(), tip, theme.ink);
    }
    if let Some(at) = response.hover_pos() {
        let step =
            (x.at(f64::from((at.x - plot.left()) / plot.width())).floor().max(0.0) as u32).min(count.saturating_sub(1));
        context.shared.hover_step(step);
        ui.painter().vline(x_of(step), plot.y_range(), Stroke::new(1.0, theme.text3));
        if response.clicked() {
            choose(ui, context, step);
        }
        let (own, all) = (total(step).saturating_sub(always), total(step));
        let name = memory.step_name(step as usize).to_owned();
        response.on_hover_ui_at_pointer(|ui| {
            ui.label(text(format!("step {}", thousands(step.into())), size::BODY, Weight::SemiBold, theme.text));
            if !name.is_empty() {
                ui.label(text(name, size::SMALL, Weight::Mono, theme.text2));
            }
            legend(ui, REST, &format!("Not always live  {}", context.short(Bytes(own))), theme);
            if always > 0 {
                legend(ui, ALWAYS, &format!("Always live  {}", context.short(Bytes(always))), theme);
                let words = format!("{} live", context.short(Bytes(all)));
                ui.label(text(words, size::BODY, Weight::Medium, theme.text));
            }
        });
    }
    state.bytes = bytes;
}

/// A mark below each step that the filter leaves, at most one a pixel.
fn marks(ui: &Ui, theme: &Theme, plot: Rect, rows: &[u32], x_of: &dyn Fn(u32) -> f32) {
    let mut places: Vec<i32> =
        rows.iter().map(|&step| x_of(step)).filter(|at| plot.x_range().contains(*at)).map(|at| at as i32).collect();
    places.sort_unstable();
    places.dedup();
    for place in places {
        ui.painter().vline(place as f32 + 0.5, plot.bottom() - 7.0..=plot.bottom(), Stroke::new(1.0, theme.accent));
    }
}

fn axes(ui: &Ui, context: &ViewContext<'_>, plot: Rect, x: Span, y: Span) {
    let theme = context.theme;
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    let base = if context.options.units == UnitSystem::Binary { 1024.0 } else { 1000.0 };
    for tick in byte_ticks(y, (plot.height() / 40.0) as usize + 1, base) {
        let at = plot.bottom() - (y.share(tick) * f64::from(plot.height())) as f32;
        let words = context.options.units.capacity(Bytes(tick as u64));
        painter.text(Pos2::new(plot.left() - 8.0, at), Align2::RIGHT_CENTER, words, small.clone(), theme.text2);
        painter.hline(plot.x_range(), at.round(), Stroke::new(1.0, theme.line.gamma_multiply(0.5)));
    }
    for tick in decimal_ticks(x, (plot.width() / 90.0) as usize) {
        let at = plot.left() + (x.share(tick + 0.5) * f64::from(plot.width())) as f32;
        if at < plot.right() - 10.0 {
            let words = thousands(tick as u64);
            painter.text(Pos2::new(at, plot.bottom() + 3.0), Align2::CENTER_TOP, words, small.clone(), theme.text2);
        }
    }
    let at = Pos2::new(plot.left() - 8.0, plot.bottom() + 3.0);
    painter.text(at, Align2::RIGHT_TOP, "step", small, theme.text2);
    controls::hairline(ui, Rect::from_min_max(plot.min, Pos2::new(plot.right(), plot.bottom() + 1.0)), theme.line2);
}
