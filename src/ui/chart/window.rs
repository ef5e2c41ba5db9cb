//! Where a chart lies on the screen, and which part of both axes it shows.

use egui::{Pos2, Rect};
use egui_plot::{PlotBounds, PlotTransform};

use super::span::Span;

/// A rectangle on the screen with the part of both axes that it shows. The only place where data become points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// On the screen, in points.
    pub rect: Rect,
    /// Left to right.
    pub x: Span,
    /// Bottom to top.
    pub y: Span,
}

impl Window {
    /// A window without a vertical axis of its own: 0 at the bottom, 1 at the top.
    #[must_use]
    pub const fn strip(rect: Rect, x: Span) -> Self {
        Self { rect, x, y: Span::new(0.0, 1.0) }
    }

    /// What `egui_plot` calls the bounds.
    pub(super) fn bounds(&self) -> PlotBounds {
        PlotBounds::from_min_max([self.x.lo, self.y.lo], [self.x.hi, self.y.hi])
    }

    fn transform(&self) -> PlotTransform {
        PlotTransform::new(self.rect, self.bounds(), false)
    }

    /// Where a value of the horizontal axis lies, in points.
    #[must_use]
    pub fn x_of(&self, value: f64) -> f32 {
        self.transform().position_from_point_x(value)
    }

    /// Where a value of the vertical axis lies, in points.
    #[must_use]
    pub fn y_of(&self, value: f64) -> f32 {
        self.transform().position_from_point_y(value)
    }

    /// The values at a place on the screen: horizontal, vertical.
    #[must_use]
    pub fn at(&self, place: Pos2) -> (f64, f64) {
        let point = self.transform().value_from_position(place);
        (point.x, point.y)
    }

    /// The value of the horizontal axis at a place on the screen.
    #[must_use]
    pub fn x_at(&self, x: f32) -> f64 {
        self.at(Pos2::new(x, self.rect.top())).0
    }

    /// The step at a place on the screen, of `count` steps.
    #[must_use]
    pub fn step_at(&self, x: f32, count: u32) -> u32 {
        step_of(self.x_at(x), count)
    }

    /// Whether a place of the horizontal axis is visible.
    #[must_use]
    pub fn shows(&self, value: f64) -> bool {
        self.rect.x_range().contains(self.x_of(value))
    }

    /// The rectangle that spans two ranges of values.
    #[must_use]
    pub fn rect_of(&self, x: (f64, f64), y: (f64, f64)) -> Rect {
        Rect::from_min_max(Pos2::new(self.x_of(x.0), self.y_of(y.1)), Pos2::new(self.x_of(x.1), self.y_of(y.0)))
    }

    /// Where the part of the axes that another window shows lies in this one.
    #[must_use]
    pub fn place_of(&self, other: &Self) -> Rect {
        if (self.x, self.y) == (other.x, other.y) {
            return self.rect;
        }
        self.rect_of((other.x.lo, other.x.hi), (other.y.lo, other.y.hi))
    }
}

/// The step that a value of a step axis lies in, of `count` steps.
#[must_use]
pub fn step_of(value: f64, count: u32) -> u32 {
    (value.floor().max(0.0) as u32).min(count.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_picture_lies_where_its_axes_are_now() {
        let rect = Rect::from_min_max(Pos2::new(100.0, 0.0), Pos2::new(300.0, 100.0));
        let old = Window { rect, x: Span::new(0.0, 10.0), y: Span::new(0.0, 4.0) };
        let now = Window { rect, x: Span::new(5.0, 10.0), y: Span::new(0.0, 8.0) };
        let expected = Rect::from_min_max(Pos2::new(-100.0, 50.0), Pos2::new(300.0, 100.0));
        assert_eq!(now.place_of(&old), expected);
        assert_eq!(now.step_at(200.0, 100), 7);
        assert_eq!(now.step_at(900.0, 10), 9);
    }
}
