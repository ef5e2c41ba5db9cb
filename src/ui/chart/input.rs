//! Zooming and moving an axis by wheel, pinch, drag and keys, the same in every chart.

use egui::{Key, Modifiers, Rect, Ui};

use super::fit::Fit;
use super::span::Span;
use crate::ui::widget::keys;

/// The full range of an axis, and its maximum zoom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// The full range.
    pub whole: Span,
    /// The smallest visible range.
    pub least: f64,
}

impl Reach {
    /// An axis of `count` steps, of which at least four are visible.
    #[must_use]
    pub fn steps(count: u32) -> Self {
        Self { whole: Span::new(0.0, f64::from(count.max(1))), least: 4.0 }
    }

    /// The addresses up to `height`, including the limit unless the data would shrink to a stripe at the bottom.
    #[must_use]
    pub fn addresses(height: u64, limit: Option<u64>) -> Self {
        let limit = limit.filter(|&limit| limit <= height.saturating_mul(2)).unwrap_or(0);
        let whole = Span::new(0.0, height.max(limit).max(1) as f64 * 1.03);
        Self { whole, least: whole.len() * 1e-7 }
    }

    /// The visible range: the chosen one, or everything.
    #[must_use]
    pub fn visible(&self, chosen: Option<Span>) -> Span {
        chosen.map_or(self.whole, |span| span.kept_in(self.whole))
    }

    /// The visible range to store: `None` for everything.
    #[must_use]
    pub fn chosen(&self, visible: Span) -> Option<Span> {
        (visible != self.whole).then_some(visible)
    }

    /// Wheel and pinch over a plot zoom at the pointer; a horizontal wheel pans. Does nothing while Alt is held.
    pub fn wheel(&self, ui: &Ui, plot: Rect, x: &mut Span) {
        let (position, scroll, zoom, alt) =
            ui.input(|i| (i.pointer.hover_pos(), i.smooth_scroll_delta(), i.zoom_delta(), i.modifiers.alt));
        let Some(position) = position else { return };
        let at = x.at(f64::from((position.x - plot.left()) / plot.width().max(1.0)));
        if scroll.y != 0.0 && !alt {
            *x = x.zoomed(at, f64::from((-scroll.y / 200.0).exp2()), self.whole, self.least);
        }
        if zoom != 1.0 && zoom > 0.0 {
            *x = x.zoomed(at, f64::from(1.0 / zoom), self.whole, self.least);
        }
        if scroll.x != 0.0 {
            self.drag(plot, x, scroll.x);
        }
    }

    /// Alt and the wheel over a plot zoom its y axis.
    pub fn alt_wheel(&self, ui: &Ui, plot: Rect, y: &mut Span) {
        let (position, scroll, alt) = ui.input(|i| (i.pointer.hover_pos(), i.smooth_scroll_delta().y, i.modifiers.alt));
        if let Some(position) = position.filter(|_| alt && scroll != 0.0) {
            let at = y.at(f64::from((plot.bottom() - position.y) / plot.height().max(1.0)));
            *y = y.zoomed(at, f64::from((-scroll / 240.0).exp2()), self.whole, self.least);
        }
    }

    /// Pans the x axis by a distance on the screen, in points.
    pub fn drag(&self, plot: Rect, x: &mut Span, points: f32) {
        *x = x.moved(-f64::from(points / plot.width().max(1.0)) * x.len(), self.whole);
    }

    /// Pans the y axis by a distance on the screen, in points.
    pub fn drag_up(&self, plot: Rect, y: &mut Span, points: f32) {
        *y = y.moved(f64::from(points / plot.height().max(1.0)) * y.len(), self.whole);
    }

    /// Keys: W and S (or up and down) zoom, A and D (or left and right) move, 0 shows all with the limit, Shift 0 fits
    /// the bytes to what is visible. They zoom around the pointer where it is over the plot, else around `middle`.
    /// Returns whether 0 was pressed. The arrows are left to whatever has the focus.
    pub fn keys(&self, ui: &Ui, plot: Rect, x: &mut Span, middle: f64) -> bool {
        if !keys::are_free(ui.ctx()) {
            return false;
        }
        let pointer = ui.input(|i| i.pointer.hover_pos()).filter(|at| plot.contains(*at));
        let share = |at: egui::Pos2| f64::from((at.x - plot.left()) / plot.width().max(1.0));
        let around = pointer.map_or_else(|| middle.max(x.lo).min(x.hi), |at| x.at(share(at)));
        if ui.input_mut(|i| i.consume_key(Modifiers::SHIFT, Key::Num0)) {
            Fit::Visible.set(ui.ctx());
        }
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
            *x = x.zoomed(around, 1.4f64.powf(zoom), self.whole, self.least);
        }
        if by != 0.0 {
            *x = x.moved(by * 0.15 * x.len(), self.whole);
        }
        if all {
            self.show_all(ui, x);
        }
        all
    }

    /// Shows everything, bytes up to the limit.
    pub fn show_all(&self, ui: &Ui, x: &mut Span) {
        *x = self.whole;
        Fit::All.set(ui.ctx());
    }
}
