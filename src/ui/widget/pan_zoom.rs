//! Zooming at the pointer and moving with wheel, drag and keys: the same in every picture with an axis of steps.

use egui::{Key, PointerButton, Rect, Ui};

use super::axis::Span;

/// What is visible of one axis, and what of it there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// The visible part.
    pub span: Span,
    /// All of it.
    pub whole: Span,
    /// The shortest part that may fill the room.
    pub least: f64,
}

impl Axis {
    /// Grows or shrinks around a value that stays where it is.
    pub fn zoom(&mut self, around: f64, factor: f64) {
        self.span = self.span.zoomed(around, factor, self.whole, self.least);
    }

    /// Moves by a share of what is visible.
    pub fn shift(&mut self, share: f64) {
        self.span = self.span.moved(share * self.span.len(), self.whole);
    }

    /// Whether all of it is visible.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.span == self.whole
    }
}

/// Wheel, pinch and drag while the pointer is over `area`: the x axis; with Alt held the wheel zooms the y axis, and a
/// drag moves it too. `plot` is where the axes lie; y grows upwards.
pub fn pointer(ui: &Ui, area: Rect, plot: Rect, x: &mut Axis, y: Option<&mut Axis>) {
    if !ui.rect_contains_pointer(area) || plot.width() < 1.0 || plot.height() < 1.0 {
        return;
    }
    let (position, scroll, zoom, alt, delta, down) = ui.input(|i| {
        (
            i.pointer.hover_pos(),
            i.smooth_scroll_delta(),
            i.zoom_delta(),
            i.modifiers.alt,
            i.pointer.delta(),
            i.pointer.button_down(PointerButton::Primary) && i.pointer.is_decidedly_dragging(),
        )
    });
    let Some(position) = position else { return };
    let at = x.span.at(f64::from((position.x - plot.left()) / plot.width()));
    let mut y = y;
    match &mut y {
        Some(y) if alt && scroll.y != 0.0 => {
            let share = f64::from((plot.bottom() - position.y) / plot.height());
            y.zoom(y.span.at(share), f64::from((-scroll.y / 240.0).exp2()));
        }
        _ if scroll.y != 0.0 => x.zoom(at, f64::from((-scroll.y / 200.0).exp2())),
        _ => {}
    }
    if zoom != 1.0 && zoom > 0.0 {
        x.zoom(at, f64::from(1.0 / zoom));
    }
    if scroll.x != 0.0 {
        x.shift(-f64::from(scroll.x / plot.width()));
    }
    if down {
        x.shift(-f64::from(delta.x / plot.width()));
        if let Some(y) = y {
            y.shift(f64::from(delta.y / plot.height()));
        }
    }
}

/// W A S D and the arrows; `around` stays in place unless the pointer is over `plot`. Nothing while a text field has
/// the focus.
pub fn keys(ui: &Ui, plot: Rect, x: &mut Axis, around: f64) {
    if ui.ctx().egui_wants_keyboard_input() {
        return;
    }
    let (zoom, shift, position) = ui.input(|i| {
        if i.modifiers.any() {
            return (0.0, 0.0, None);
        }
        let pressed = |key| f64::from(u8::from(i.key_pressed(key)));
        (
            pressed(Key::S) + pressed(Key::ArrowDown) - pressed(Key::W) - pressed(Key::ArrowUp),
            pressed(Key::D) + pressed(Key::ArrowRight) - pressed(Key::A) - pressed(Key::ArrowLeft),
            i.pointer.hover_pos(),
        )
    });
    if zoom != 0.0 {
        let middle =
            if around >= x.span.lo && around <= x.span.hi { around } else { f64::midpoint(x.span.lo, x.span.hi) };
        let pointer = position.filter(|at| plot.contains(*at));
        let around = pointer.map_or(middle, |at| x.span.at(f64::from((at.x - plot.left()) / plot.width())));
        x.zoom(around, 1.4f64.powf(zoom));
    }
    if shift != 0.0 {
        x.shift(shift * 0.15);
    }
}

/// Whether the key for everything was pressed.
#[must_use]
pub fn wants_all(ui: &Ui) -> bool {
    !ui.ctx().egui_wants_keyboard_input() && ui.input(|i| !i.modifiers.any() && i.key_pressed(Key::Num0))
}
