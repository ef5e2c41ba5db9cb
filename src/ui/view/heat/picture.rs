//! Draws the heat map cells of one memory space on a worker.

use std::sync::Arc;

use egui::{Color32, Vec2};

use super::metric::Metric;
use crate::analysis::heat::{HeatGrid, HeatWindow};
use crate::analysis::map::MapBox;
use crate::analysis::unpadded;
use crate::ui::chart::Window;
use crate::ui::session::Document;
use crate::ui::widget::heat_map;
use crate::ui::widget::raster::Raster;
use crate::ui::widget::theme::{NO_MATCH, Theme, heat, mix};
use crate::ui::work::{Highlight, SpaceData};

/// Minimum width and height of a cell, in points.
const CELL: f32 = 4.0;

/// Number of histogram bars over the colour scale.
pub const BARS: usize = 48;

/// Number of distinct colours on the scale.
const COLORS: usize = 256;

/// Contents of the picture.
pub struct Shown {
    /// The cells.
    pub grid: HeatGrid,
    /// Histogram of filled cells over the colour scale.
    pub bars: [u32; BARS],
    /// Number of filled cells over the capacity.
    pub over: u32,
}

/// Everything the picture depends on.
pub struct Picture {
    pub document: Arc<Document>,
    pub program: usize,
    pub data: Arc<SpaceData>,
    pub theme: Theme,
    pub window: Window,
    pub capacity: Option<u64>,
    pub metric: Metric,
    /// Buffers to highlight, if there is a search or something is hidden.
    pub lit: Option<Highlight>,
}

impl Picture {
    /// Counts the cells and draws them.
    pub fn paint(&self, raster: &mut Raster) -> Arc<Shown> {
        let grid = self.grid(&|_| true);
        let lit = self.lit.as_ref().map(|lit| self.grid(&|item| lit.has(item.buffer)));
        let mut shown = Shown { grid, bars: [0; BARS], over: 0 };
        self.draw(raster, &mut shown, lit.as_ref());
        Arc::new(shown)
    }

    fn grid(&self, keep: &dyn Fn(&MapBox) -> bool) -> HeatGrid {
        let Window { rect, x, y } = self.window;
        let window = HeatWindow {
            points: (x.lo, x.hi),
            addresses: (y.lo, y.hi.min(self.data.map.height as f64)),
            columns: (rect.width() / CELL) as usize,
            rows: (rect.height() / CELL) as usize,
        };
        let spread = &self.data.by_class;
        let fullest = |from: u32, to: u32| spread.highest(from, to).map_or(from, |(_, point)| point);
        let waste = |item: &MapBox| {
            let Some((program, analysis)) = self.document.program(self.program) else { return 0 };
            item.size.saturating_sub(unpadded(program, &analysis.traces, item.buffer).0)
        };
        HeatGrid::new(&self.data.map, window, &fullest, &waste, keep)
    }

    fn draw(&self, raster: &mut Raster, shown: &mut Shown, lit: Option<&HeatGrid>) {
        let Self { theme, window, data, .. } = self;
        let colors: Vec<Color32> = (0..=COLORS)
            .map(|i| heat(theme, (i as f32 / COLORS as f32).mul_add(1.0 - self.metric.floor(), self.metric.floor())))
            .collect();
        let color = |share: f32| colors[((share.clamp(0.0, 1.0) * COLORS as f32) as usize).min(COLORS)];
        // Allocated but empty: pale, unlike the background beyond the allocated memory.
        let empty = if self.metric == Metric::Occupancy { color(0.0) } else { mix(theme.panel, theme.line2, 0.12) };
        let (width, height) = (raster.width() as f64, raster.height() as f64);
        let px = |point: f64| (window.x.share(point) * width).round() as i64;
        let py = |address: f64| ((1.0 - window.y.share(address)) * height).round() as i64;
        let grid = &shown.grid;
        let size = Vec2::new(
            (f64::from(grid.stride) / window.x.len() * width) as f32,
            (grid.row_bytes as f64 / window.y.len() * height) as f32,
        );
        let gap = heat_map::gap(size);
        for column in 0..grid.columns() {
            let (from, to) = grid.points_of(column);
            let (x0, x1) = (px(f64::from(from)), px(f64::from(to.min(data.map.points))) - gap);
            for row in 0..grid.rows {
                let cell = grid.cell(column, row);
                let (low, high) = grid.addresses_of(row);
                let high = high.min(data.map.height);
                let (y0, y1) = (py(high as f64) + gap, py(low as f64));
                let share = self.metric.share(grid, &cell, data.map.points);
                let is_over = self.metric.shows_over() && self.capacity.is_some_and(|capacity| low >= capacity);
                let fill = match (cell.occupied > 0, is_over) {
                    (false, _) => empty,
                    (true, true) => {
                        shown.over += 1;
                        let filled = (cell.occupied as f64 / grid.row_bytes as f64) as f32;
                        mix(empty, theme.over, filled.mul_add(0.65, 0.35))
                    }
                    (true, false) => {
                        let bar = (share.clamp(0.0, 1.0) * BARS as f32) as usize;
                        shown.bars[bar.min(BARS - 1)] += 1;
                        color(share)
                    }
                };
                let is_lit = lit.is_none_or(|lit| lit.cell(column, row).occupied > 0);
                let fill = if is_lit { fill } else { mix(fill, theme.canvas, NO_MATCH) };
                raster.fill(x0, y0, x1.max(x0 + 1), y1.max(y0 + 1), fill);
            }
        }
    }
}
