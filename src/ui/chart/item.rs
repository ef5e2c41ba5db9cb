//! Plot items for `egui_plot`: pictures and lines that take no part in its hovering and legend.

use std::ops::RangeInclusive;

use egui::{Color32, Pos2, Rect, Shape, Stroke, TextureId, Ui};
use egui_plot::{PlotBounds, PlotGeometry, PlotItem, PlotItemBase, PlotTransform};

use super::window::Window;

/// A texture with the range of the axes it shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Picture {
    /// The texture.
    pub texture: TextureId,
    /// The range it shows, which may differ from the current range of the chart.
    pub window: Window,
}

/// How an item is drawn.
pub(super) enum Layer {
    /// A picture, panned and scaled to the current range.
    Picture(Picture),
    /// A range of the x axis.
    Columns(f64, f64, Color32),
    /// A range of the y axis.
    Rows(f64, f64, Color32),
    /// A vertical line.
    Vertical(f64, Stroke),
    /// A horizontal line.
    Horizontal(f64, Stroke),
}

/// A layer of a chart.
pub(super) struct Item {
    base: PlotItemBase,
    window: Window,
    layer: Layer,
}

impl Item {
    pub(super) fn new(window: Window, layer: Layer) -> Self {
        Self { base: PlotItemBase::new(String::new()), window, layer }
    }
}

impl PlotItem for Item {
    fn shapes(&self, _: &Ui, transform: &PlotTransform, shapes: &mut Vec<Shape>) {
        let frame = *transform.frame();
        let (x, y) = (|value| transform.position_from_point_x(value), |value| transform.position_from_point_y(value));
        match self.layer {
            Layer::Picture(picture) => {
                let uv = Rect::from_min_max(Pos2::ZERO, Pos2::new(1.0, 1.0));
                let place = self.window.place_of(&picture.window);
                shapes.push(Shape::image(picture.texture, place, uv, Color32::WHITE));
            }
            Layer::Columns(from, to, color) => {
                let area = Rect::from_x_y_ranges(x(from)..=x(to), frame.y_range());
                shapes.push(Shape::rect_filled(area, 0.0, color));
            }
            Layer::Rows(from, to, color) => {
                let area = Rect::from_x_y_ranges(frame.x_range(), y(to)..=y(from));
                shapes.push(Shape::rect_filled(area, 0.0, color));
            }
            Layer::Vertical(at, stroke) => shapes.push(Shape::vline(x(at), frame.y_range(), stroke)),
            Layer::Horizontal(at, stroke) => shapes.push(Shape::hline(frame.x_range(), y(at).round(), stroke)),
        }
    }

    fn initialize(&mut self, _: RangeInclusive<f64>) {}

    fn color(&self) -> Color32 {
        Color32::TRANSPARENT
    }

    fn allow_hover(&self) -> bool {
        false
    }

    fn geometry(&self) -> PlotGeometry<'_> {
        PlotGeometry::None
    }

    fn bounds(&self) -> PlotBounds {
        self.window.bounds()
    }

    fn base(&self) -> &PlotItemBase {
        &self.base
    }

    fn base_mut(&mut self) -> &mut PlotItemBase {
        &mut self.base
    }
}
