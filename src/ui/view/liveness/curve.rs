//! The curve of live bytes over steps, with zoom, hover, and the chosen and compared steps.

use egui::{Rect, Stroke, Ui};

use super::{ALWAYS, REST, State, choose};
use crate::analysis::tiles::TileAnalysis;
use crate::model::{Bytes, TileMemory};
use crate::ui::chart::{Areas, Chart, Cursor, Fit, Line, Peak, Reach, Tone, Window, XAxis, step_of, steps_between};
use crate::ui::part::ViewContext;

/// Draws the curve and handles pointer input.
pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    memory: &TileMemory,
    tiles: &TileAnalysis,
    state: &mut State,
    plot: Rect,
) {
    let (theme, units) = (context.theme, context.options.units);
    let always = if state.without_always { 0 } else { tiles.always_live.unwrap_or(0) };
    let bytes = std::mem::take(&mut state.bytes);
    let count = bytes.len() as u32;
    let middle = |step: u32| f64::from(step) + 0.5;
    let chosen = context.shared.step.or(tiles.peak.map(|peak| peak.step));
    let reach = Reach::steps(count);
    let mut x = reach.visible(state.range);
    if ui.rect_contains_pointer(plot) {
        reach.wheel(ui, plot, &mut x);
    }
    reach.keys(ui, plot, &mut x, middle(chosen.unwrap_or(0)));
    let capacity = tiles.limit.map(|limit| limit.saturating_mul(memory.tile_count() as u64));
    let total = |step: u32| bytes.get(step as usize).copied().unwrap_or(0).saturating_add(always);
    let range = |from: f64, to: f64| {
        let (from, to) = steps_between(from, to, count);
        bytes.get(from as usize..to as usize).unwrap_or(&[]).iter().zip(from..)
    };
    let highest = |from: f64, to: f64| {
        let best = range(from, to).max_by_key(|&(bytes, step)| (bytes, std::cmp::Reverse(step)));
        best.map(|(&bytes, step)| (bytes.saturating_add(always), step))
    };
    let lowest =
        |from: f64, to: f64| range(from, to).map(|(bytes, _)| *bytes).min().unwrap_or(0).saturating_add(always);
    let most = highest(0.0, f64::from(count)).map_or(0, |highest| highest.0);
    let y = Fit::of(ui.ctx()).bytes(most, || highest(x.lo, x.hi).map_or(0, |highest| highest.0), capacity);
    let window = Window { rect: plot, x, y };
    let group = |group: usize, step: u32| if group == 0 { always } else { total(step).saturating_sub(always) };
    let colors = [ALWAYS.color(), REST.color()];
    let areas = Areas { lowest: Some(&lowest), limit: capacity, ..Areas::new(&highest, &group, &colors) };
    let key = (state.of, state.without_always, capacity);
    let others = context.shared.compared.iter().map(|&step| Cursor::compared(middle(step), theme));
    let peak = tiles.peak.map(|peak| Peak {
        x: middle(peak.step),
        y: total(peak.step) as f64,
        words: format!("peak {}", units.short(Bytes(total(peak.step)))),
        is_before: false,
    });
    let shown = Chart::new("Live bytes over the steps of the program", theme, window, XAxis::Steps("step"), units)
        .drawn(ui, &mut state.curve, key, |raster, window| areas.draw(raster, window, theme))
        .limit(capacity)
        .peak(peak)
        .cursors(chosen.map(|step| Cursor::chosen(middle(step), theme)))
        .cursors(others)
        .start(middle(chosen.unwrap_or(0)))
        .show(ui);
    if !state.filter.is_empty() {
        marks(ui, context, &window, &state.rows);
    }
    if shown.response.dragged() {
        reach.drag(plot, &mut x, shown.response.drag_delta().x);
    }
    state.range = reach.chosen(x);
    if let Some(at) = shown.at {
        let step = step_of(at, count);
        context.shared.hover_step(step);
        Cursor::pointed(middle(step), theme).draw(ui.painter(), &window, &[plot]);
        if shown.is_chosen {
            choose(ui, context, step);
        }
        let title = format!("step {step}");
        let mut lines = vec![Line::new(title, units.short(Bytes(total(step)))).toned(Tone::Title)];
        let name = memory.step_name(step as usize);
        if !name.is_empty() {
            lines.push(Line::new(name, "").toned(Tone::Name));
        }
        lines.push(Line::new("Not always live", units.short(Bytes(total(step).saturating_sub(always)))).of(REST));
        if always > 0 {
            lines.push(Line::new("Always live", units.short(Bytes(always))).of(ALWAYS));
        }
        shown.readout(ui, &lines);
    }
    state.bytes = bytes;
}

/// A mark below each step that matches the filter, at most one per pixel.
fn marks(ui: &Ui, context: &ViewContext<'_>, window: &Window, rows: &[u32]) {
    let middles = rows.iter().map(|&step| f64::from(step) + 0.5).filter(|at| window.shows(*at));
    let mut places: Vec<i32> = middles.map(|at| window.x_of(at) as i32).collect();
    places.sort_unstable();
    places.dedup();
    let bottom = window.rect.bottom();
    for place in places {
        ui.painter().vline(place as f32 + 0.5, bottom - 7.0..=bottom, Stroke::new(1.0, context.theme.accent));
    }
}
