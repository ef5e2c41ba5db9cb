//! Two curves over one axis with the difference between them filled, drawn into a picture column by column.

use super::areas::{DASH, Outline};
use super::window::Window;
use crate::ui::widget::raster::Raster;
use crate::ui::widget::theme::Theme;

/// Opacity of the area between the curves.
const FILL: f32 = 0.25;

/// The curves to draw. Positions on the x axis are in the units of the window.
pub struct Between<'a> {
    /// The highest value between two positions before; `None` where there is none.
    pub before: &'a dyn Fn(f64, f64) -> Option<u64>,
    /// The same after.
    pub after: &'a dyn Fn(f64, f64) -> Option<u64>,
}

impl Between<'_> {
    /// Draws the curves into the picture of a window: dashed before, solid after.
    pub fn draw(&self, raster: &mut Raster, window: &Window, theme: &Theme) {
        let (width, height) = (raster.width() as i64, raster.height() as i64);
        let pixel = |value: u64| {
            height - (window.y.share(value as f64) * height as f64).round().clamp(0.0, height as f64) as i64
        };
        let place = |column: i64| window.x.at(column as f64 / width as f64);
        let thick = (raster.scale() * 1.5).round().max(1.0) as i64;
        let (mut before, mut after) = (Outline { thick, at: None }, Outline { thick, at: None });
        let all: Vec<_> = (0..width)
            .map(|column| {
                let (from, to) = (place(column), place(column + 1));
                ((self.before)(from, to).map(pixel), (self.after)(from, to).map(pixel))
            })
            .collect();
        for (column, (was, is)) in (0..).zip(&all) {
            if let (Some(was), Some(is)) = (*was, *is) {
                let color = if is < was { theme.grew } else { theme.shrank };
                let fill = crate::ui::widget::theme::mix(theme.panel, color, FILL);
                raster.fill(column, was.min(is), column + 1, was.max(is), fill);
            }
        }
        for (column, (was, is)) in (0..).zip(all) {
            if let Some(was) = was {
                before.to(raster, column, was, theme.text2, Some(DASH));
            }
            if let Some(is) = is {
                after.to(raster, column, is, theme.ink, None);
            }
        }
    }
}
