//! Shared parts of heat maps of tiles and of addresses over time: a grid of panels, gaps between cells, and marks on
//! cells over the limit.

use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::controls::paint_cut;
use super::fonts::Weight;
use super::raster::Raster;
use super::theme::{Theme, size};

/// Gap between panels in points.
pub const GAP: f32 = 10.0;

/// Arranges `count` panels in a grid in `room`, each below a title of `title` points. The number of columns maximises
/// `goodness` of the panel size.
#[must_use]
pub fn panels(room: Rect, count: usize, title: f32, goodness: impl Fn(Vec2) -> f32) -> Vec<Rect> {
    let size_of = |columns: usize| {
        let rows = count.div_ceil(columns);
        let width = (room.width() - GAP * (columns as f32 - 1.0)) / columns as f32;
        let height = (room.height() - GAP * (rows as f32 - 1.0)) / rows as f32 - title;
        Vec2::new(width, height)
    };
    let columns =
        (1..=count.max(1)).max_by(|&a, &b| goodness(size_of(a)).total_cmp(&goodness(size_of(b)))).unwrap_or(1);
    let size = size_of(columns);
    (0..count)
        .map(|at| {
            let (column, row) = (at % columns, at / columns);
            let x = column as f32 * (size.x + GAP);
            let y = row as f32 * (size.y + title + GAP) + title;
            Rect::from_min_size(room.min + Vec2::new(x, y), size)
        })
        .collect()
}

/// Adds a clickable title above a panel. `does` is a verb for the accessible name.
#[must_use]
pub fn panel_title(ui: &Ui, theme: &Theme, panel: Rect, words: &str, does: &str) -> egui::Response {
    let at = Pos2::new(panel.left(), panel.top() - 1.0);
    let font = Weight::Medium.at(size::SMALL);
    let (drawn, _) =
        paint_cut(ui.painter(), (at, Align2::LEFT_BOTTOM), words, font, theme.text2, panel.width().max(1.0));
    let response = ui.interact(drawn, ui.scope_id().with((does, words)), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("{does} {words}")));
    response.on_hover_text(does)
}

/// Pixel bounds of a cell: (left, top, right, bottom).
pub type Pixels = (i64, i64, i64, i64);

/// Gap between cells in pixels; 0 for small cells.
#[must_use]
pub fn gap(cell_pixels: Vec2) -> i64 {
    i64::from(cell_pixels.x >= 4.0 && cell_pixels.y >= 4.0)
}

/// Marks cells over the limit: enlarged, with a ring, and with a cross if large enough.
pub fn paint_over(raster: &mut Raster, theme: &Theme, cells: &[Pixels]) {
    for &(x0, y0, x1, y1) in cells {
        let grow = (3 - (x1 - x0)).max(0) / 2;
        let (x0, y0, x1, y1) = (x0 - grow, y0 - grow, x1 + grow, y1 + grow);
        raster.fill(x0 - 2, y0 - 2, x1 + 2, y1 + 2, theme.canvas);
        raster.fill(x0 - 1, y0 - 1, x1 + 1, y1 + 1, theme.over);
        let side = (x1 - x0).min(y1 - y0);
        if side >= 8 {
            let (cx, cy, arm) = (i64::midpoint(x0, x1), i64::midpoint(y0, y1), side / 4);
            for step in -arm..=arm {
                raster.fill(cx + step, cy + step, cx + step + 2, cy + step + 1, theme.canvas);
                raster.fill(cx + step, cy - step, cx + step + 2, cy - step + 1, theme.canvas);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_inside_and_do_not_overlap() {
        let room = Rect::from_min_size(Pos2::new(5.0, 7.0), Vec2::new(900.0, 500.0));
        for count in 1..20 {
            let rects = panels(room, count, 16.0, |size| size.x.min(size.y * 2.0));
            assert_eq!(rects.len(), count);
            for (i, rect) in rects.iter().enumerate() {
                assert!(room.expand(0.5).contains_rect(*rect), "{count} panels: {rect:?}");
                assert!(rects[..i].iter().all(|other| !other.intersects(*rect)));
            }
        }
    }
}
