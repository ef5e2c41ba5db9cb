//! Drawing of the two minor-most dimensions as hardware tiles: data and padding.

use egui::{Align2, Pos2, Rect, Stroke, Ui, Vec2};

use crate::model::{ShapeNode, counted, percent, thousands};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::raster::{CachedRaster, Hatch, RasterArea};
use crate::ui::widget::theme::{Slot, Theme, size};

/// Maximum number of tiles drawn along a dimension; those in the middle are left out.
const MAX_TILES: u64 = 3;

/// Least height in points in which tiles are drawn, with their words.
pub const LEAST: f32 = 64.0;
/// Points between the tiles that stand for those left out and the last one.
const BREAK: f64 = 16.0;

/// How tiles look.
#[derive(Clone, Copy)]
pub struct Look {
    /// Colour of data.
    pub slot: Slot,
    /// Whether the padding matters, so that its dimensions are marked.
    pub is_caution: bool,
}

/// Whether a shape has tiles to draw.
pub fn has_tiles(node: &ShapeNode) -> bool {
    !node.dimensions.is_empty() && !node.first_tile().is_empty()
}

/// Draws the tiles of a shape that has some; data has the colour of its category.
pub fn show(
    ui: &Ui,
    theme: &Theme,
    node: &ShapeNode,
    Look { slot, is_caution }: Look,
    rect: Rect,
    (name, cache): (&str, &mut CachedRaster),
) {
    let dimensions = node.padding_by_dimension();
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    let Some(minor) = dimensions.first() else { return };
    let second = dimensions.get(1);
    let plot = Rect::from_min_max(rect.min + Vec2::new(96.0, 24.0), rect.max - Vec2::new(0.0, 6.0));
    if plot.width() < 40.0 || plot.height() < 30.0 {
        return;
    }
    let to = |size: u64, padded: u64| {
        if size == padded { thousands(size) } else { format!("{} \u{2192} {}", thousands(size), thousands(padded)) }
    };
    let across = format!("dimension {}: {}", minor.dimension, to(minor.size, minor.padded));
    let color = |wasted: bool| if wasted && is_caution { theme.warn } else { theme.text };
    let bold = Weight::SemiBold.at(size::SMALL);
    let middle = Pos2::new(plot.center().x, rect.top() + 10.0);
    painter.text(middle, Align2::CENTER_CENTER, across, bold.clone(), color(minor.padded > minor.size));
    // One dimension alone fills one row of its tile, however many rows that has.
    let rows_of_tile = node.first_tile().iter().rev().nth(1).map_or(1, |&rows| rows.max(1).unsigned_abs());
    let (rows, padded_rows, tile_rows) =
        second.map_or((1, rows_of_tile, rows_of_tile), |s| (s.size, s.padded, s.tile.max(1)));
    if let Some(second) = second {
        let y = plot.center().y;
        let right = plot.left() - 10.0;
        painter.text(
            Pos2::new(right, y - 16.0),
            Align2::RIGHT_CENTER,
            format!("dimension {}", second.dimension),
            small.clone(),
            theme.text2,
        );
        painter.text(
            Pos2::new(right, y),
            Align2::RIGHT_CENTER,
            thousands(second.size),
            bold.clone(),
            color(second.padded > second.size),
        );
        if second.padded > second.size {
            painter.text(
                Pos2::new(right, y + 16.0),
                Align2::RIGHT_CENTER,
                format!("\u{2192} {}", thousands(second.padded)),
                bold,
                color(true),
            );
        }
    }
    let tile_columns = minor.tile.max(1);
    let columns = Shown::new(minor.size, minor.padded, tile_columns);
    let lines = Shown::new(rows, padded_rows, tile_rows.max(1));
    let key = (minor.size, minor.padded, tile_columns, rows, padded_rows, tile_rows, theme.dark, slot);
    cache.show(ui, RasterArea { rect: plot, name, ground: theme.panel }, key, |raster| {
        let (width, height) = (raster.width() as f64, raster.height() as f64);
        let gap = BREAK * f64::from(raster.scale());
        for (x0, x1, used_x) in columns.pieces(width, gap) {
            for (y0, y1, used_y) in lines.pieces(height, gap) {
                let (left, right) = (x0 as i64, x1 as i64 - 2);
                let (top, bottom) = (y0 as i64, y1 as i64 - 2);
                raster.fill(left, top, right, bottom, theme.inset);
                raster.hatch(left, top, right, bottom, Hatch { period: 7.0, width: 1.2, color: theme.text3 });
                let data_right = left + ((right - left) as f64 * used_x).round() as i64;
                let data_bottom = top + ((bottom - top) as f64 * used_y).round() as i64;
                let fill = slot.color();
                if used_x > 0.0 && used_y > 0.0 {
                    raster.fill(left, top, data_right.max(left + 1), data_bottom.max(top + 1), fill);
                }
            }
        }
    });
    for dot in -1..=1 {
        let along = dot as f32 * 5.0;
        if let Some(x) = columns.gap_at(plot.width()) {
            painter.circle_filled(Pos2::new(plot.left() + x + along, plot.center().y), 1.5, theme.text2);
        }
        if let Some(y) = lines.gap_at(plot.height()) {
            painter.circle_filled(Pos2::new(plot.center().x, plot.top() + y + along), 1.5, theme.text2);
        }
    }
    share(painter, theme, plot, minor.size.saturating_mul(rows), minor.padded.saturating_mul(padded_rows));
    let tile = node.first_tile();
    let tile: Vec<String> = tile.iter().map(|t| if *t < 0 { "*".to_owned() } else { t.to_string() }).collect();
    let count = (minor.padded / tile_columns) * (padded_rows / tile_rows.max(1));
    let words = format!("{} of {}", counted(count, "tile"), tile.join(" \u{d7} "));
    let galley = painter.layout_no_wrap(words, small, theme.text2);
    let at = plot.max - galley.size() - Vec2::new(6.0, 4.0);
    painter.rect_filled(
        Rect::from_min_size(at, galley.size()).expand2(Vec2::new(4.0, 1.0)),
        2.0,
        theme.panel.gamma_multiply(0.9),
    );
    painter.galley(at, galley, theme.text2);
    painter.rect_stroke(plot, 0.0, Stroke::new(1.0, theme.line2), egui::StrokeKind::Outside);
}

/// Writes in the middle how much of the tiles is padding, on a ground of its own.
fn share(painter: &egui::Painter, theme: &Theme, plot: Rect, useful: u64, whole: u64) {
    if useful >= whole {
        return;
    }
    let words = format!("{} of the tiles is padding", percent(whole - useful, whole));
    let galley = painter.layout_no_wrap(words, Weight::SemiBold.at(size::SMALL), theme.text);
    let place = Rect::from_center_size(plot.center(), galley.size());
    // The count of tiles stands in the lower corner.
    if plot.expand(-6.0).contains_rect(place) && plot.height() > 5.0 * galley.size().y {
        painter.rect_filled(place.expand2(Vec2::new(6.0, 3.0)), 2.0, theme.panel.gamma_multiply(0.92));
        painter.galley(place.min, galley, theme.text);
    }
}

/// Which tiles of a dimension are drawn: the first, and the last, which may be partly empty.
struct Shown {
    /// Share of each drawn tile that holds data.
    used: Vec<f64>,
    /// Whether some are left out before the last.
    is_broken: bool,
}

impl Shown {
    fn new(size: u64, padded: u64, tile: u64) -> Self {
        let tiles = (padded / tile.max(1)).max(1);
        let last =
            if size == 0 { 0.0 } else { (size - (tiles - 1).min(size / tile.max(1)) * tile) as f64 / tile as f64 };
        let drawn = tiles.min(MAX_TILES);
        let mut used = vec![1.0; drawn as usize];
        if let Some(end) = used.last_mut() {
            *end = last.clamp(0.0, 1.0);
        }
        Self { used, is_broken: tiles > drawn }
    }

    /// Start, end and used share of each tile over a length, with a gap for those left out.
    fn pieces(&self, length: f64, gap: f64) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        let gap = if self.is_broken { gap } else { 0.0 };
        let count = self.used.len();
        let step = (length - gap).max(0.0) / count as f64;
        self.used.iter().enumerate().map(move |(i, &used)| {
            let shift = if i + 1 == count { gap } else { 0.0 };
            (step * i as f64 + shift, step * (i + 1) as f64 + shift, used)
        })
    }

    /// The middle of the gap over a length in points; `None` if all tiles are drawn.
    fn gap_at(&self, length: f32) -> Option<f32> {
        let count = self.used.len() as f32;
        let gap = BREAK as f32;
        self.is_broken.then(|| (length - gap) / count * (count - 1.0) + gap / 2.0 - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tile_holds_what_is_left() {
        assert_eq!(Shown::new(129, 256, 128).used, [1.0, 1.0 / 128.0]);
        assert_eq!(Shown::new(3, 128, 128).used, [3.0 / 128.0]);
        assert_eq!(Shown::new(256, 256, 128).used, [1.0, 1.0]);
        assert_eq!(Shown::new(1_000_000, 1_000_000, 8).used, [1.0, 1.0, 1.0]);
    }
}
