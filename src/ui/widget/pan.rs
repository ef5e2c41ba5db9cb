//! Zooming and moving an axis of time: by wheel, pinch and keys, the same in every view.

use egui::{Key, Rect, Ui};

use super::axis::Span;
use super::keys;

/// Wheel and pinch over a plot: zoom at the pointer, a sideways wheel moves. Does nothing while Alt is held.
pub fn wheel(ui: &Ui, plot: Rect, x: &mut Span, whole: Span, least: f64) {
    let (position, scroll, zoom, alt) =
        ui.input(|i| (i.pointer.hover_pos(), i.smooth_scroll_delta(), i.zoom_delta(), i.modifiers.alt));
    let Some(position) = position else { return };
    let at = x.at(f64::from((position.x - plot.left()) / plot.width().max(1.0)));
    if scroll.y != 0.0 && !alt {
        *x = x.zoomed(at, f64::from((-scroll.y / 200.0).exp2()), whole, least);
    }
    if zoom != 1.0 && zoom > 0.0 {
        *x = x.zoomed(at, f64::from(1.0 / zoom), whole, least);
    }
    if scroll.x != 0.0 {
        drag(plot, x, whole, scroll.x);
    }
}

/// Moves by a distance on the screen.
pub fn drag(plot: Rect, x: &mut Span, whole: Span, points: f32) {
    *x = x.moved(-f64::from(points / plot.width().max(1.0)) * x.len(), whole);
}

/// Keys: W and S (or up and down) zoom around a place, A and D (or left and right) move, 0 shows all. Returns whether 0
/// was pressed. The arrows are left to whatever has the focus.
pub fn keys(ui: &Ui, x: &mut Span, whole: Span, least: f64, around: f64) -> bool {
    let arrows = keys::arrows_are_free(ui.ctx());
    let (zoom, by, all) = ui.input(|i| {
        if i.modifiers.any() {
            return (0.0, 0.0, false);
        }
        let pressed = |key| f64::from(u8::from(i.key_pressed(key)));
        let arrow = |key| if arrows { pressed(key) } else { 0.0 };
        (
            pressed(Key::S) + arrow(Key::ArrowDown) - pressed(Key::W) - arrow(Key::ArrowUp),
            pressed(Key::D) + arrow(Key::ArrowRight) - pressed(Key::A) - arrow(Key::ArrowLeft),
            i.key_pressed(Key::Num0),
        )
    });
    if zoom != 0.0 {
        *x = x.zoomed(around, 1.4f64.powf(zoom), whole, least);
    }
    if by != 0.0 {
        *x = x.moved(by * 0.15 * x.len(), whole);
    }
    if all {
        *x = whole;
    }
    all
}
