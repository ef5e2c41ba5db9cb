//! Wheel, drag and keys: what is visible of the timeline.

use egui::{Key, PointerButton, Ui};

use super::{Asked, Places, State, map};
use crate::ui::part::ViewContext;
use crate::ui::widget::axis::Span;
use crate::ui::widget::{keys, pan};
use crate::ui::work::SpaceData;

/// Fewest points that fill the width.
const LEAST: f64 = 4.0;

pub fn take(
    ui: &Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    data: &SpaceData,
    places: &mut Places,
    asked: Option<Asked>,
) {
    let mut x = places.x;
    pointer(ui, context, state, data, places, &mut x);
    if keys::are_free(ui.ctx()) {
        keys(ui, context, state, data, places, &mut x);
    }
    match asked {
        Some(Asked::All) => all(state, places, &mut x),
        Some(Asked::Focus) => focus(context, state, data, places, &mut x),
        None => {}
    }
    if x != places.x {
        context.shared.zoom_to((x != places.whole).then_some((x.lo, x.hi)));
        places.x = x;
    }
}

fn pointer(ui: &Ui, context: &ViewContext<'_>, state: &mut State, data: &SpaceData, places: &Places, x: &mut Span) {
    let both = places.curve.union(places.map).union(places.lifetimes);
    if !ui.rect_contains_pointer(both) {
        return;
    }
    let (position, scroll, alt, delta, down) = ui.input(|i| {
        (
            i.pointer.hover_pos(),
            i.smooth_scroll_delta(),
            i.modifiers.alt,
            i.pointer.delta(),
            i.pointer.button_down(PointerButton::Primary) && i.pointer.is_decidedly_dragging() && !i.modifiers.shift,
        )
    });
    let Some(position) = position else { return };
    // The axis measures, with Shift everything does.
    let down = down && !state.measure.is_dragging();
    let in_rows = places.lifetimes.contains(position);
    let in_map = places.map.contains(position);
    let whole = map::whole_addresses(context, data);
    if alt && in_map && scroll.y != 0.0 {
        let y = state.addresses.unwrap_or(whole);
        let share = f64::from((places.map.bottom() - position.y) / places.map.height());
        let zoomed = y.zoomed(y.at(share), f64::from((-scroll.y / 240.0).exp2()), whole, whole.len() * 1e-7);
        state.addresses = (zoomed != whole).then_some(zoomed);
    }
    // Over the rows the wheel scrolls them; with Ctrl it zooms.
    if !in_rows || ui.input(|i| i.modifiers.command) {
        pan::wheel(ui, places.curve, x, places.whole, LEAST);
    }
    if down {
        pan::drag(places.curve, x, places.whole, delta.x);
        if state.dragging_map
            && let Some(y) = state.addresses
        {
            state.addresses = Some(y.moved(f64::from(delta.y / places.map.height()) * y.len(), whole));
        }
    }
}

fn keys(ui: &Ui, context: &mut ViewContext<'_>, state: &mut State, data: &SpaceData, places: &Places, x: &mut Span) {
    let (fit, next) = ui.input(|i| {
        if i.modifiers.any() {
            return (false, 0);
        }
        (i.key_pressed(Key::F), i32::from(i.key_pressed(Key::Period)) - i32::from(i.key_pressed(Key::Comma)))
    });
    let step = f64::from(context.step()) + 0.5;
    let pointer = ui
        .input(|i| i.pointer.hover_pos())
        .filter(|p| places.curve.union(places.map).union(places.lifetimes).contains(*p));
    let middle = if step >= x.lo && step <= x.hi { step } else { f64::midpoint(x.lo, x.hi) };
    let around = pointer.map_or(middle, |p| places.point_at(p.x));
    if pan::keys(ui, x, places.whole, LEAST, around) {
        all(state, places, x);
    }
    if fit {
        focus(context, state, data, places, x);
    }
    context.step_by(keys::steps(ui), data.map.points);
    // The brackets are the ends of what is measured.
    let (from, to) = ui.input(|i| (i.key_pressed(Key::OpenBracket), i.key_pressed(Key::CloseBracket)));
    if from || to {
        let step = context.step();
        let (low, high) = context.shared.measured.unwrap_or((step, step));
        context.shared.measure(if from { (step, high.max(step)) } else { (low.min(step), step) });
    }
    if next != 0 {
        step_to_allocation(context, data, next);
    }
}

fn all(state: &mut State, places: &Places, x: &mut Span) {
    *x = places.whole;
    state.addresses = None;
}

fn focus(context: &ViewContext<'_>, state: &mut State, data: &SpaceData, places: &Places, x: &mut Span) {
    let Some(item) = context.shared.selected.and_then(|buffer| data.box_of(buffer)) else { return };
    let (lo, hi) = map::fit_time(item, places.whole);
    *x = Span::new(lo, hi);
    state.addresses = Some(map::fit_addresses(item, map::whole_addresses(context, data)));
}

/// The buffer that is placed next after (or last before) the selected one, or the step.
fn step_to_allocation(context: &mut ViewContext<'_>, data: &SpaceData, direction: i32) {
    let now = context
        .shared
        .selected
        .and_then(|buffer| data.box_of(buffer))
        .map_or((context.step(), None), |item| (item.start, Some(item.buffer)));
    let key = |item: &crate::analysis::map::MapBox| (item.start, Some(item.buffer));
    let next = if direction > 0 {
        data.map.boxes.iter().filter(|item| key(item) > now).min_by_key(|item| key(item))
    } else {
        data.map.boxes.iter().filter(|item| key(item) < now).max_by_key(|item| key(item))
    };
    if let Some(item) = next {
        context.shared.select(item.buffer);
        context.shared.choose_step(item.start);
    }
}
