//! Stacked step areas over a time axis with a limit: every pixel column shows the highest moment it stands for, divided
//! as it was at that moment.

use egui::Color32;

use super::axis::Span;
use super::raster::{Hatch, Raster};
use super::theme::{Slot, Theme, mix};

/// What is to be drawn.
pub struct Stack<'a> {
    /// Points of the whole axis.
    pub points: u32,
    /// Highest total in a range of points, and where.
    pub highest: &'a dyn Fn(u32, u32) -> Option<(u64, u32)>,
    /// Value of a group at a point; groups are stacked from the first up.
    pub group: &'a dyn Fn(usize, u32) -> u64,
    /// Colours of the groups.
    pub slots: &'a [Slot],
    /// A second total, drawn as a line.
    pub line: Option<&'a dyn Fn(u32) -> u64>,
    /// The limit: what is above is hatched.
    pub limit: Option<f64>,
}

impl Stack<'_> {
    /// Draws the areas; `x` in points of time, `y` in bytes, both as far as they are visible.
    pub fn draw(&self, raster: &mut Raster, x: Span, y: Span, theme: &Theme) {
        let (width, height) = (raster.width() as i64, raster.height() as i64);
        let pixel = |value: f64| height - (y.share(value) * height as f64).round().clamp(0.0, height as f64) as i64;
        let mut line_before: Option<i64> = None;
        let limit = self.limit.map(pixel);
        for column in 0..width {
            let from = x.at(column as f64 / width as f64).floor().max(0.0) as u32;
            let to = (x.at((column + 1) as f64 / width as f64).ceil() as u32).max(from + 1).min(self.points);
            let Some((total, point)) = (self.highest)(from, to) else { continue };
            let top = pixel(total as f64);
            let mut sum = 0u64;
            let mut bottom = height;
            for (group, slot) in self.slots.iter().enumerate() {
                sum += (self.group)(group, point);
                let edge = pixel(sum as f64).min(bottom);
                if edge < bottom {
                    raster.fill(column, edge, column + 1, bottom, slot.color());
                }
                bottom = edge;
            }
            // Something that is there is never drawn as nothing.
            if total > 0 && top >= height {
                let last = self.slots.last().map_or(theme.text3, |slot| slot.color());
                raster.fill(column, height - 1, column + 1, height, last);
            }
            if let Some(limit) = limit.filter(|limit| *limit > top) {
                raster.hatch(column, top, column + 1, limit, Hatch::beyond(theme.over));
            }
            if let Some(line) = self.line {
                let at = pixel(line(point) as f64);
                let before = line_before.unwrap_or(at);
                let thick = raster.scale().round().max(1.0) as i64;
                raster.fill(column, at.min(before), column + 1, at.max(before) + thick, theme.ink);
                line_before = Some(at);
            }
        }
    }

    /// Draws only the outline of the total, filled with one colour: for a minimap.
    pub fn draw_silhouette(&self, raster: &mut Raster, y: Span, theme: &Theme) {
        let (width, height) = (raster.width() as i64, raster.height() as i64);
        let x = Span::new(0.0, f64::from(self.points));
        let fill = mix(theme.panel, theme.text3, 0.55);
        for column in 0..width {
            let from = x.at(column as f64 / width as f64).floor() as u32;
            let to = (x.at((column + 1) as f64 / width as f64).ceil() as u32).max(from + 1).min(self.points);
            let Some((total, _)) = (self.highest)(from, to) else { continue };
            let top = height - (y.share(total as f64) * height as f64).round() as i64;
            raster.fill(column, top.min(height - 1), column + 1, height, fill);
        }
    }
}

/// Colour of a box that plays no part.
#[must_use]
pub fn dimmed(color: Color32, theme: &Theme) -> Color32 {
    mix(color, theme.canvas, 0.62)
}
