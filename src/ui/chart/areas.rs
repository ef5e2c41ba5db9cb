//! Stacked step areas drawn into a picture column by column. Each pixel column shows the breakdown at the maximum of
//! the interval it covers. The cost depends on the number of pixels, not of events.

use egui::Color32;

use super::window::Window;
use crate::ui::widget::raster::{Hatch, Raster};
use crate::ui::widget::theme::{Theme, mix};

/// How far the part of a column above its minimum is lightened, 0 to 1.
const PALER: f32 = 0.45;
/// Least width of what goes over the limit, in points: the moment that decides whether a program fits is seen on both
/// sides of the line that marks it.
const LEAST_OVER: f32 = 7.0;
/// Length of a dash with and without the gap after it, in points.
pub(super) const DASH: (f32, f32) = (8.0, 5.0);

/// The areas to draw. Positions on the x axis are in the units of the window; rows are whatever `highest` passes to
/// `group`.
pub struct Areas<'a> {
    /// The highest total between two positions, and its row.
    pub highest: &'a dyn Fn(f64, f64) -> Option<(u64, u32)>,
    /// The lowest total between two positions; areas above it are paler.
    pub lowest: Option<&'a dyn Fn(f64, f64) -> u64>,
    /// Value of a group in a row; the first group is at the bottom of the stack.
    pub group: &'a dyn Fn(usize, u32) -> u64,
    /// Colours of the groups.
    pub colors: &'a [Color32],
    /// Amount drawn above the total in a row, with its colour.
    pub above: Option<(&'a dyn Fn(u32) -> u64, Color32)>,
    /// Hatching of the part of the total that belongs to no group.
    pub gaps: Option<Hatch>,
    /// A second total in a row, as a solid line.
    pub line: Option<&'a dyn Fn(u32) -> u64>,
    /// The highest total between two positions before the changes, as a dashed line.
    pub before: Option<&'a dyn Fn(f64, f64) -> u64>,
    /// The limit; areas above it are hatched, or in one colour where they are too narrow for a hatch.
    pub limit: Option<u64>,
}

impl<'a> Areas<'a> {
    /// Areas without any of the optional parts.
    #[must_use]
    pub const fn new(
        highest: &'a dyn Fn(f64, f64) -> Option<(u64, u32)>,
        group: &'a dyn Fn(usize, u32) -> u64,
        colors: &'a [Color32],
    ) -> Self {
        Self { highest, lowest: None, group, colors, above: None, gaps: None, line: None, before: None, limit: None }
    }

    /// Draws the areas into the picture of a window.
    pub fn draw(&self, raster: &mut Raster, window: &Window, theme: &Theme) {
        let (width, height) = (raster.width() as i64, raster.height() as i64);
        let pixel = |value: u64| {
            height - (window.y.share(value as f64) * height as f64).round().clamp(0.0, height as f64) as i64
        };
        let place = |column: i64| window.x.at(column as f64 / width as f64);
        let limit = self.limit.map(pixel);
        let thick = raster.scale().round().max(1.0) as i64;
        let mut line = Outline { thick, at: None };
        let mut before = Outline { thick: (raster.scale() * 1.5).round().max(1.0) as i64, at: None };
        // The top of the columns that go over the limit.
        let mut over: Vec<Option<i64>> = vec![None; width.max(0) as usize];
        for (column, over) in (0..width).zip(&mut over) {
            let (from, to) = (place(column), place(column + 1));
            let Some((total, row)) = (self.highest)(from, to) else { continue };
            let top = pixel(total);
            let low = self.lowest.map_or(top, |lowest| pixel(lowest(from, to)));
            self.column(raster, (column, total, row), (top, low, limit), &pixel, theme);
            let is_over = self.limit.is_some_and(|limit| total > limit);
            *over = limit.filter(|_| is_over).map(|limit| top.min(limit - 1));
        }
        if let Some(limit) = limit {
            beyond(raster, &over, limit, theme);
        }
        for column in 0..width {
            let (from, to) = (place(column), place(column + 1));
            if let Some(second) = self.line
                && let Some((_, row)) = (self.highest)(from, to)
            {
                line.to(raster, column, pixel(second(row)), theme.ink, None);
            }
            if let Some(was) = self.before {
                before.to(raster, column, pixel(was(from, to)), theme.text2, Some(DASH));
            }
        }
    }

    fn column(
        &self,
        raster: &mut Raster,
        (column, total, row): (i64, u64, u32),
        (top, low, limit): (i64, i64, Option<i64>),
        pixel: &dyn Fn(u64) -> i64,
        theme: &Theme,
    ) {
        let height = raster.height() as i64;
        if let Some((above, color)) = self.above {
            raster.fill(column, pixel(total.saturating_add(above(row))), column + 1, top, color);
        }
        let is_paler = low > top + 1;
        // What is over the limit is never paler.
        let palest = limit.unwrap_or(top).max(top);
        let mut sum = 0u64;
        let mut bottom = height;
        for (group, &color) in self.colors.iter().enumerate() {
            sum = sum.saturating_add((self.group)(group, row));
            let edge = pixel(sum).min(bottom);
            raster.fill(column, edge, column + 1, bottom, color);
            if is_paler && edge < low {
                let from = edge.max(palest);
                raster.fill(column, from, column + 1, low.min(bottom), mix(color, theme.panel, PALER));
            }
            bottom = edge;
        }
        if let Some(hatch) = self.gaps {
            raster.hatch(column, top, column + 1, bottom, hatch);
        }
        // A total above zero is at least one pixel high.
        if total > 0 && top >= height {
            let last = self.colors.last().copied().unwrap_or(theme.text3);
            raster.fill(column, height - 1, column + 1, height, last);
        }
    }
}

/// Marks what is over the limit: `over` is the top of each column that is. Narrow excesses are widened, and in one colour.
fn beyond(raster: &mut Raster, over: &[Option<i64>], limit: i64, theme: &Theme) {
    let hatch = Hatch::beyond(theme.over);
    let (least, hatched) = (LEAST_OVER * raster.scale(), hatch.period * raster.scale());
    let mut first = 0;
    for run in over.chunk_by(|a, b| a.is_some() == b.is_some()) {
        let wide = run.len() as f32;
        let begin = first as i64;
        first += run.len();
        let tops = (begin..).zip(run).filter_map(|(column, top)| Some((column, (*top)?)));
        if wide >= hatched {
            tops.for_each(|(column, top)| raster.hatch(column, top, column + 1, limit, hatch));
        } else if let Some(top) = tops.map(|(_, top)| top).min() {
            // As high as its highest column, all over its width.
            let more = (least - wide).max(0.0).ceil() as i64;
            raster.fill(begin - more / 2, top, first as i64 + more - more / 2, limit, theme.over);
        }
    }
}

/// The upper edge of a step curve, drawn column by column.
pub(super) struct Outline {
    pub(super) thick: i64,
    /// Height in the previous column.
    pub(super) at: Option<i64>,
}

impl Outline {
    pub(super) fn to(&mut self, raster: &mut Raster, column: i64, at: i64, color: Color32, dash: Option<(f32, f32)>) {
        let before = self.at.replace(at).unwrap_or(at);
        let (top, bottom) = (at.min(before), at.max(before) + self.thick);
        let Some((period, long)) = dash else {
            return raster.fill(column, top, column + 1, bottom, color);
        };
        let scale = raster.scale();
        let is_dash = |pixel: i64| (pixel as f32 / scale).rem_euclid(period) < long;
        if at == before {
            if is_dash(column) {
                raster.fill(column, top, column + 1, bottom, color);
            }
            return;
        }
        for y in (top..bottom).filter(|y| is_dash(*y)) {
            raster.fill(column, y, column + 1, y + 1, color);
        }
    }
}

/// The steps between two positions on an axis of `count` steps, as `from..to`; not empty unless `count` is 0.
#[must_use]
pub fn steps_between(from: f64, to: f64, count: u32) -> (u32, u32) {
    let first = from.floor().max(0.0) as u32;
    (first, (to.ceil().max(0.0) as u32).max(first.saturating_add(1)).min(count))
}

/// The maximum of `values` between two positions, and the first step with it.
#[must_use]
pub fn highest_step(from: f64, to: f64, values: &[u64]) -> Option<(u64, u32)> {
    let (first, end) = steps_between(from, to, values.len() as u32);
    let range = values.get(first as usize..end as usize)?;
    let best = range.iter().zip(first..).max_by_key(|&(value, step)| (value, std::cmp::Reverse(step)))?;
    Some((*best.0, best.1))
}

/// The minimum of `values` between two positions.
#[must_use]
pub fn lowest_step(from: f64, to: f64, values: &[u64]) -> Option<u64> {
    let (first, end) = steps_between(from, to, values.len() as u32);
    values.get(first as usize..end as usize)?.iter().min().copied()
}

#[cfg(test)]
mod tests {
    use egui::{Pos2, Rect, Vec2};

    use super::*;
    use crate::ui::chart::span::Span;
    use crate::ui::widget::theme::Slot;

    fn drawn(areas: &Areas<'_>, columns: f32) -> Vec<Vec<Color32>> {
        let rect = Rect::from_min_size(Pos2::ZERO, Vec2::new(columns, 8.0));
        let mut raster = Raster::new(rect, 1.0, Color32::TRANSPARENT);
        let window = Window { rect, x: Span::new(0.0, 4.0), y: Span::new(0.0, 8.0) };
        areas.draw(&mut raster, &window, &Theme::LIGHT);
        raster.image.pixels.chunks(columns as usize).map(<[Color32]>::to_vec).collect()
    }

    #[test]
    fn a_column_shows_its_highest_moment_and_paler_down_to_its_lowest() {
        let values = [2u64, 6, 3, 0];
        let highest = |from: f64, to: f64| highest_step(from, to, &values);
        let lowest = |from: f64, to: f64| {
            let (from, to) = steps_between(from, to, 4);
            values[from as usize..to as usize].iter().copied().min().unwrap_or(0)
        };
        let group = |_: usize, step: u32| values[step as usize];
        let color = Slot::Weight.color();
        let colors = [color];
        let plain = drawn(&Areas::new(&highest, &group, &colors), 2.0);
        let filled = |picture: &[Vec<Color32>], column: usize, wanted: Color32| {
            picture.iter().filter(|row| row[column] == wanted).count()
        };
        assert_eq!((filled(&plain, 0, color), filled(&plain, 1, color)), (6, 3));
        let both = drawn(&Areas { lowest: Some(&lowest), ..Areas::new(&highest, &group, &colors) }, 2.0);
        let pale = mix(color, Theme::LIGHT.panel, PALER);
        assert_eq!((filled(&both, 0, color), filled(&both, 0, pale)), (2, 4));
        assert_eq!((filled(&both, 1, color), filled(&both, 1, pale)), (0, 3));
    }

    #[test]
    fn one_step_over_the_limit_is_as_wide_as_can_be_seen_and_red() {
        let mut values = vec![2u64; 4000];
        (values[1890], values[1990]) = (5, 8);
        let highest = |from: f64, to: f64| highest_step(from * 1000.0, to * 1000.0, &values);
        let lowest = |from: f64, to: f64| lowest_step(from * 1000.0, to * 1000.0, &values).unwrap_or(0);
        let group = |_: usize, step: u32| values[step as usize];
        let colors = [Slot::Weight.color()];
        let areas = Areas { lowest: Some(&lowest), limit: Some(4), ..Areas::new(&highest, &group, &colors) };
        let picture = drawn(&areas, 40.0);
        for row in &picture[..4] {
            assert_eq!(row.iter().filter(|&&pixel| pixel == Theme::LIGHT.over).count(), LEAST_OVER as usize);
        }
        let below = picture[4..].iter().flatten().filter(|&&pixel| pixel == Theme::LIGHT.over).count();
        assert_eq!(below, 0, "below the limit it stays as wide as it is");
    }

    #[test]
    fn what_is_there_is_never_drawn_as_nothing_and_the_limit_is_hatched() {
        let values = [1u64, 0, 8, 8];
        let highest = |from: f64, to: f64| highest_step(from, to, &values);
        let group = |_: usize, step: u32| values[step as usize];
        let colors = [Slot::Output.color()];
        let rect = Rect::from_min_size(Pos2::ZERO, Vec2::new(4.0, 8.0));
        let mut raster = Raster::new(rect, 1.0, Color32::TRANSPARENT);
        let window = Window { rect, x: Span::new(0.0, 4.0), y: Span::new(0.0, 80.0) };
        Areas::new(&highest, &group, &colors).draw(&mut raster, &window, &Theme::LIGHT);
        assert_eq!(raster.image.pixels[7 * 4], Slot::Output.color());
        assert_eq!(raster.image.pixels[7 * 4 + 1], Color32::TRANSPARENT);
        // Eight columns reach the top, one period of the hatch.
        let picture = drawn(&Areas { limit: Some(4), ..Areas::new(&highest, &group, &colors) }, 16.0);
        let plain = |rows: std::ops::Range<usize>| {
            rows.map(|y| picture[y][8..].iter().filter(|&&pixel| pixel == Slot::Output.color()).count()).sum::<usize>()
        };
        assert_eq!(plain(4..8), 32, "below the limit nothing is hatched");
        assert!(plain(0..4) < 32, "above it there is a hatch");
    }
}
