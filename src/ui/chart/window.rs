//! The mapping between a chart's rectangle on the screen and the visible range of both axes.

use egui::{Pos2, Rect};
use egui_plot::{PlotBounds, PlotTransform};

use super::span::Span;

/// A rectangle on the screen with the visible range of both axes. Only here are values converted to points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Rectangle on the screen, in points.
    pub rect: Rect,
    /// Visible range of the x axis, left to right.
    pub x: Span,
    /// Visible range of the y axis, bottom to top.
    pub y: Span,
}

impl Window {
    /// A window with a y axis from 0 at the bottom to 1 at the top.
    #[must_use]
    pub const fn strip(rect: Rect, x: Span) -> Self {
        Self { rect, x, y: Span::new(0.0, 1.0) }
    }

    /// The visible ranges as `egui_plot` bounds.
    pub(super) fn bounds(&self) -> PlotBounds {
        PlotBounds::from_min_max([self.x.lo, self.y.lo], [self.x.hi, self.y.hi])
    }

    fn transform(&self) -> PlotTransform {
        PlotTransform::new(self.rect, self.bounds(), false)
    }

    /// Screen position of an x value, in points.
    #[must_use]
    pub fn x_of(&self, value: f64) -> f32 {
        self.transform().position_from_point_x(value)
    }

    /// Screen position of a y value, in points.
    #[must_use]
    pub fn y_of(&self, value: f64) -> f32 {
        self.transform().position_from_point_y(value)
    }

    /// The x and y values at a screen position.
    #[must_use]
    pub fn at(&self, place: Pos2) -> (f64, f64) {
        let point = self.transform().value_from_position(place);
        (point.x, point.y)
    }

    /// The x value at a screen position.
    #[must_use]
    pub fn x_at(&self, x: f32) -> f64 {
        self.at(Pos2::new(x, self.rect.top())).0
    }

    /// The step at a screen position, of `count` steps.
    #[must_use]
    pub fn step_at(&self, x: f32, count: u32) -> u32 {
        step_of(self.x_at(x), count)
    }

    /// Whether an x value is visible.
    #[must_use]
    pub fn shows(&self, value: f64) -> bool {
        self.rect.x_range().contains(self.x_of(value))
    }

    /// The rectangle that spans two ranges of values.
    #[must_use]
    pub fn rect_of(&self, x: (f64, f64), y: (f64, f64)) -> Rect {
        Rect::from_min_max(Pos2::new(self.x_of(x.0), self.y_of(y.1)), Pos2::new(self.x_of(x.1), self.y_of(y.0)))
    }

    /// The rectangle in this window of the range that another window shows.
    #[must_use]
    pub fn place_of(&self, other: &Self) -> Rect {
        if (self.x, self.y) == (other.x, other.y) {
            return self.rect;
        }
        self.rect_of((other.x.lo, other.x.hi), (other.y.lo, other.y.hi))
    }
}

/// The step that contains a value of a step axis, of `count` steps.
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
