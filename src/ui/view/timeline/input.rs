//! Wheel, drag and key input of the timeline.

use egui::{Key, PointerButton, Ui};

use super::map;
use super::state::{Asked, FrameLayout, State};
use crate::ui::chart::{self, Reach, Span};
use crate::ui::part::{Action, ViewContext};
use crate::ui::widget::keys;
use crate::ui::work::SpaceData;

pub fn take(
    ui: &Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    data: &SpaceData,
    layout: &mut FrameLayout,
    asked: Option<Asked>,
) {
    let mut x = layout.x;
    pointer(ui, context, state, data, layout, &mut x);
    if keys::are_free(ui.ctx()) {
        keys(ui, context, state, data, layout, &mut x);
    }
    follow(context, state, layout, &mut x);
    match asked {
        Some(Asked::All) => {
            Reach::steps(data.map.points).show_all(ui, &mut x);
            state.addresses = None;
        }
        Some(Asked::Focus) => focus(context, state, data, layout, &mut x),
        None => {}
    }
    if x != layout.x {
        context.shared.zoom_to((x != layout.whole).then_some((x.lo, x.hi)));
        layout.x = x;
    }
}

fn pointer(
    ui: &Ui,
    context: &ViewContext<'_>,
    state: &mut State,
    data: &SpaceData,
    layout: &FrameLayout,
    x: &mut Span,
) {
    let both = layout.curve.union(layout.map).union(layout.lifetimes);
    if !ui.rect_contains_pointer(both) {
        return;
    }
    let (position, delta, down) = ui.input(|i| {
        (
            i.pointer.hover_pos(),
            i.pointer.delta(),
            i.pointer.button_down(PointerButton::Primary) && i.pointer.is_decidedly_dragging() && !i.modifiers.shift,
        )
    });
    let Some(position) = position else { return };
    // A drag on the axis, or anywhere with Shift, measures a range instead.
    let down = down && !state.measure.is_dragging();
    let in_rows = layout.lifetimes.contains(position);
    let in_map = layout.map.contains(position);
    let addresses = map::addresses(context, data);
    let mut y = addresses.visible(state.addresses);
    if in_map {
        addresses.alt_wheel(ui, layout.map, &mut y);
    }
    let reach = Reach::steps(data.map.points);
    // Over the lifetime rows, the wheel scrolls; with Ctrl it zooms.
    if !in_rows || ui.input(|i| i.modifiers.command) {
        reach.wheel(ui, layout.curve, x);
    }
    if down {
        reach.drag(layout.curve, x, delta.x);
        if state.dragging_map {
            addresses.drag_up(layout.map, &mut y, delta.y);
        }
    }
    state.addresses = addresses.chosen(y);
}

fn keys(
    ui: &Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    data: &SpaceData,
    layout: &FrameLayout,
    x: &mut Span,
) {
    let (fit, next) = ui.input(|i| {
        if i.modifiers.any() {
            return (false, 0);
        }
        (i.key_pressed(Key::F), i32::from(i.key_pressed(Key::Period)) - i32::from(i.key_pressed(Key::Comma)))
    });
    let step = f64::from(context.step()) + 0.5;
    let middle = if step >= x.lo && step <= x.hi { step } else { f64::midpoint(x.lo, x.hi) };
    let plots = layout.curve.union(layout.map).union(layout.lifetimes);
    if Reach::steps(data.map.points).keys(ui, plots, x, middle) {
        state.addresses = None;
    }
    if fit {
        focus(context, state, data, layout, x);
    }
    let by = chart::steps(ui);
    context.step_by(by, data.map.points);
    // The bracket keys set the ends of the measured range.
    let (from, to) = ui.input(|i| (i.key_pressed(Key::OpenBracket), i.key_pressed(Key::CloseBracket)));
    if from || to {
        let step = context.step();
        // The figures are shown there.
        context.actions.push(Action::Panel("details"));
        let (low, high) = context.shared.measured.unwrap_or((step, step));
        context.shared.measure(if from { (step, high.max(step)) } else { (low.min(step), step) });
    }
    if next != 0 {
        step_to_allocation(context, data, next);
    }
    // Also to a step that was chosen before, such as the peak.
    if from || to || next != 0 || by != 0 {
        *x = x.showing(f64::from(context.step()) + 0.5, layout.whole);
    }
}

fn focus(context: &ViewContext<'_>, state: &mut State, data: &SpaceData, layout: &FrameLayout, x: &mut Span) {
    let Some(item) = context.shared.selected.and_then(|buffer| data.box_of(buffer)) else { return };
    let (lo, hi) = map::fit_time(item, layout.whole);
    *x = Span::new(lo, hi);
    state.addresses = Some(map::fit_addresses(item, map::addresses(context, data).whole));
}

/// Moves the visible range to a step that has just been chosen, by keys or in Details; one that was there stays where it
/// is, out of sight or not.
fn follow(context: &ViewContext<'_>, state: &mut State, layout: &FrameLayout, x: &mut Span) {
    let step = context.step();
    if state.followed.replace(step).is_some_and(|before| before != step) {
        *x = x.showing(f64::from(step) + 0.5, layout.whole);
    }
}

/// Selects the buffer allocated next after (or last before) the selected one, or the step.
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
