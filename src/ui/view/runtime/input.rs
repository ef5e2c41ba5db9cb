//! Wheel, drag and key input: visible time range, and the chosen range.

use egui::{PointerButton, Ui};

use super::state::{FrameLayout, State};

/// Smallest visible time range, in picoseconds.
pub const LEAST: f64 = 1000.0;
/// Smallest visible number of events, for histories without times.
pub const LEAST_EVENTS: f64 = 4.0;

pub fn take(ui: &Ui, state: &mut State, layout: &mut FrameLayout) {
    let (all, axis, reach) = (layout.all(), layout.window(), layout.reach);
    let over = ui.rect_contains_pointer(all);
    let (position, delta, shift, down, released, dragging) = ui.input(|i| {
        (
            i.pointer.hover_pos(),
            i.pointer.delta(),
            i.modifiers.shift,
            i.pointer.button_down(PointerButton::Primary),
            i.pointer.primary_released(),
            i.pointer.is_decidedly_dragging(),
        )
    });
    let middle = ui.input(|i| i.pointer.button_down(PointerButton::Middle));
    let mut x = layout.x;
    state.cursor = None;
    if let Some(position) = position.filter(|_| over) {
        reach.wheel(ui, all, &mut x);
        state.cursor = Some(axis.x_at(position.x).round() as i64);
        // As in every chart: a drag moves, with Shift it measures.
        let measures = state.from.is_some() || (down && shift);
        if (middle || (down && !measures)) && dragging {
            reach.drag(all, &mut x, delta.x);
        } else if measures && state.from.is_none() {
            state.from =
                ui.input(|i| i.pointer.press_origin()).filter(|at| all.contains(*at)).map(|at| axis.x_at(at.x));
        }
    }
    if let (Some(from), Some(position)) = (state.from, position) {
        let to = axis.x_at(position.x.clamp(all.left(), all.right()));
        if dragging {
            state.range = Some((from.min(to).round() as i64, from.max(to).round() as i64));
        }
    }
    if released || !down {
        if ui.input(|i| i.pointer.primary_clicked()) && over {
            state.range = None;
        }
        state.from = None;
    }
    let middle = f64::midpoint(x.lo, x.hi);
    reach.keys(ui, all, &mut x, middle);
    layout.x = x;
}
