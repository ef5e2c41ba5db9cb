//! The keyboard cursor of the focused chart: arrows move it by a pixel, with Shift by a tick, `.` and `,` by an event.

use egui::{Context, Id, InputState, Key, Modifiers, Response, Ui};

use super::axes::XAxis;
use super::window::Window;
use crate::ui::widget::keys;

/// Shortcuts of every chart, for the shortcut sheet.
pub const KEYS: &[(&str, &str)] = &[
    ("F6, arrows", "Charts: give a chart the focus; move its cursor by a pixel, with Shift by a tick"),
    (". ,", "Charts: next and previous event while a chart has the focus"),
    ("Enter", "Charts: choose what is at the cursor"),
    ("0, Shift 0", "Charts: fit everything and the capacity; fit the bytes to what is visible"),
];

/// The next (or previous) event from a position on the x axis.
pub type Events<'a> = &'a dyn Fn(f64, bool) -> Option<f64>;

/// A chart's cursor.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct At {
    /// Position on the x axis: under the pointer, or where the keys moved it.
    pub x: Option<f64>,
    /// Whether Enter was pressed there.
    pub is_pinned: bool,
    /// Whether the keys moved it there.
    pub is_by_keys: bool,
}

/// Whether a chart has the focus; Shift and the arrows then move its cursor.
fn has_focus(ctx: &Context) -> bool {
    let focused = ctx.memory(egui::Memory::focused);
    focused.is_some() && focused == ctx.data(|data| data.get_temp(focused_id()))
}

/// Number of steps by which Shift and the arrows move the chosen step.
#[must_use]
pub fn steps(ui: &Ui) -> i64 {
    if has_focus(ui.ctx()) { 0 } else { keys::steps(ui) }
}

fn focused_id() -> Id {
    Id::unique("chart that has the focus")
}

/// Forward and back.
const TICKS: [Key; 2] = [Key::ArrowRight, Key::ArrowLeft];
const EVENTS: [Key; 2] = [Key::Period, Key::Comma];

/// 1 if the first key was pressed, -1 if the second was.
fn both(input: &mut InputState, modifiers: Modifiers, keys: [Key; 2]) -> f64 {
    let [forward, back] = keys.map(|key| f64::from(u8::from(input.consume_key(modifiers, key))));
    forward - back
}

/// Handles pointer and keys. `start` is the initial position of the cursor.
pub(super) fn take(
    ui: &Ui,
    response: &Response,
    window: &Window,
    axis: XAxis<'_>,
    start: f64,
    events: Option<Events<'_>>,
) -> At {
    let id = response.id.with("cursor");
    // Keys with Shift come first: a key without modifiers also matches while Shift is held.
    let ticks = if response.has_focus() { ui.input_mut(|input| both(input, Modifiers::SHIFT, TICKS)) } else { 0.0 };
    let pressed = keys::field(ui, response);
    let pointer = response.hover_pos().map(|at| window.x_at(at.x));
    if !pressed.has_focus {
        return At { x: pointer, ..At::default() };
    }
    ui.data_mut(|data| data.insert_temp(focused_id(), response.id));
    let event = events.map_or(0.0, |_| ui.input_mut(|input| both(input, Modifiers::NONE, EVENTS)));
    let kept: Option<f64> = ui.data(|data| data.get_temp(id));
    let is_moved = pressed.by.x != 0.0 || ticks != 0.0 || event != 0.0 || pressed.first || pressed.last;
    let is_pointed = pointer.is_some() && ui.input(|input| input.pointer.delta() != egui::Vec2::ZERO);
    let mut x = if is_pointed { None } else { kept };
    if is_moved {
        let from = kept.or(pointer).unwrap_or(start).clamp(window.x.lo, window.x.hi);
        let least = if matches!(axis, XAxis::Steps(_)) { 1.0 } else { 0.0 };
        let pixel = (window.x.len() / f64::from(window.rect.width().max(1.0))).max(least);
        let mut to = pixel.mul_add(f64::from(pressed.by.x), from);
        to += ticks * axis.tick_step(window);
        if let Some(events) = events.filter(|_| event != 0.0) {
            to = events(to, event > 0.0).unwrap_or(to);
        }
        if pressed.first {
            to = window.x.lo;
        }
        if pressed.last {
            to = window.x.hi;
        }
        x = Some(to.clamp(window.x.lo, window.x.hi));
    }
    ui.data_mut(|data| match x {
        Some(x) => {
            data.insert_temp(id, x);
        }
        None => data.remove::<f64>(id),
    });
    At { x: x.or(pointer), is_pinned: pressed.enter && x.is_some(), is_by_keys: x.is_some() }
}
