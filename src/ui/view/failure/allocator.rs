//! Pictures of a BFC allocator: its 100-cell memory map or its chunks by address, and its bins.

use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::section::section;
use crate::model::{Bytes, Failure, thousands};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::legend;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::{CachedRaster, Hatch, RasterArea};
use crate::ui::widget::theme::{Slot, Theme, size, space};

const USED: Slot = Slot::Activation;
const MAP: f32 = 34.0;
const BIN: f32 = 20.0;

pub fn show(ui: &mut Ui, context: &ViewContext<'_>, failure: &Failure, raster: &mut CachedRaster) {
    let theme = context.theme;
    if let Some(map) = failure.text("map") {
        ui.horizontal(|ui| {
            section(ui, theme, "The pool by address", "each cell is 1\u{2009}% of the pool");
            legend(ui, USED, "in use", theme);
            ui.label(text(
                "hatched: lost to rounding within a chunk; empty: free",
                size::SMALL,
                Weight::Regular,
                theme.text3,
            ));
        });
        let cells: Vec<u8> = map.bytes().collect();
        strip(ui, theme, raster, "map", (failure.offset, cells.len()), |from, to| {
            // A pixel shows the fullest cell under it.
            let count = cells.len() as f64;
            let range = (from * count) as usize..((to * count).ceil() as usize).min(cells.len());
            let under = cells.get(range).unwrap_or(&[]);
            if under.contains(&b'*') {
                Fill::Used
            } else if under.contains(&b'x') {
                Fill::Wasted
            } else {
                Fill::Free
            }
        });
        ui.add_space(12.0);
    } else if !failure.chunks.is_empty() {
        chunks(ui, context, failure, raster);
    }
    bins(ui, theme, failure);
}

#[derive(Clone, Copy, PartialEq)]
enum Fill {
    Used,
    Wasted,
    Free,
}

/// A strip whose fill is queried per pixel column, from and to given as shares of the width, 0 to 1.
fn strip(
    ui: &mut Ui,
    theme: &Theme,
    raster: &mut CachedRaster,
    name: &str,
    key: (u64, usize),
    fill: impl Fn(f64, f64) -> Fill,
) {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), MAP), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, "The pool by address"));
    raster.show(ui, RasterArea { rect, name, ground: theme.inset }, (theme.dark, key.0, key.1), |raster| {
        let (width, height) = (raster.width() as i64, raster.height() as i64);
        let mut begun: Option<(i64, Fill)> = None;
        for column in 0..=width {
            let now = (column < width).then(|| fill(column as f64 / width as f64, (column + 1) as f64 / width as f64));
            if begun.map(|(_, fill)| fill) != now {
                if let Some((start, fill)) = begun {
                    match fill {
                        Fill::Used => raster.fill(start, 0, column, height, USED.color()),
                        Fill::Wasted => {
                            raster.fill(start, 0, column, height, USED.color());
                            raster.hatch(start, 0, column, height, Hatch::padding(theme.hatch));
                        }
                        Fill::Free => {}
                    }
                }
                begun = now.map(|fill| (column, fill));
            }
        }
    });
}

fn chunks(ui: &mut Ui, context: &ViewContext<'_>, failure: &Failure, raster: &mut CachedRaster) {
    let theme = context.theme;
    let mut starts = Vec::with_capacity(failure.chunks.len());
    let mut total = 0u64;
    for chunk in &failure.chunks {
        starts.push(total);
        total = total.saturating_add(chunk.size.0);
    }
    if total == 0 {
        return;
    }
    let remark = format!("{} chunks, {}", thousands(failure.chunks.len() as u64), context.short(Bytes(total)));
    section(ui, theme, "The chunks by address", &remark);
    strip(ui, theme, raster, "chunks", (failure.offset, failure.chunks.len()), |from, to| {
        let (from, to) = ((from * total as f64) as u64, (to * total as f64) as u64);
        let first = starts.partition_point(|&start| start <= from).saturating_sub(1);
        let last = starts.partition_point(|&start| start < to).max(first + 1).min(failure.chunks.len());
        if failure.chunks[first..last].iter().any(|chunk| chunk.in_use) { Fill::Used } else { Fill::Free }
    });
    ui.add_space(12.0);
}

/// The bins: number of chunks by size, and how many of them are in use.
fn bins(ui: &mut Ui, theme: &Theme, failure: &Failure) {
    let filled: Vec<_> = failure.bins.iter().filter(|bin| bin.chunks > 0).collect();
    if filled.is_empty() {
        return;
    }
    let empty = failure.bins.len() - filled.len();
    let remark = format!("chunks of at least this size; {empty} bins are empty");
    section(ui, theme, "Bins", &remark);
    let most = filled.iter().map(|bin| bin.chunks).max().unwrap_or(1).max(1) as f32;
    let width = ui.available_width();
    let columns = if width > 900.0 { 2 } else { 1 };
    let per_column = filled.len().div_ceil(columns);
    let (rect, _) = ui.allocate_exact_size(Vec2::new(width, BIN * per_column as f32), Sense::hover());
    let column_width = width / columns as f32;
    for (i, bin) in filled.iter().enumerate() {
        let left = rect.left() + column_width * (i / per_column) as f32;
        let top = rect.top() + BIN * (i % per_column) as f32;
        let y = top + BIN / 2.0;
        let font = Weight::Regular.at(size::SMALL);
        let label = crate::model::UnitSystem::Binary.capacity(Bytes(bin.bin));
        ui.painter().text(Pos2::new(left + 70.0, y), Align2::RIGHT_CENTER, label, font.clone(), theme.text2);
        let room = column_width - 70.0 - 10.0 - 150.0 - space::MARGIN;
        let track = Rect::from_min_size(
            Pos2::new(left + 80.0, top + 5.0),
            Vec2::new(room * bin.chunks as f32 / most, BIN - 10.0),
        );
        let track = track.with_max_x(track.right().max(track.left() + 2.0));
        ui.painter().rect_filled(track, 0.0, theme.inset);
        ui.painter().rect_stroke(track, 0.0, egui::Stroke::new(1.0, theme.line2), egui::StrokeKind::Inside);
        let used = Rect::from_min_size(
            track.min,
            Vec2::new(track.width() * bin.in_use.min(bin.chunks) as f32 / bin.chunks as f32, track.height()),
        );
        ui.painter().rect_filled(used, 0.0, USED.color());
        let words = format!("{} of {} in use", thousands(bin.in_use), thousands(bin.chunks));
        ui.painter().text(Pos2::new(track.right() + 8.0, y), Align2::LEFT_CENTER, &words, font, theme.text);
        let row = Rect::from_min_size(Pos2::new(left, top), Vec2::new(column_width, BIN));
        let response = ui.interact(row, ui.scope_id().with(("bin", bin.bin)), Sense::hover());
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, format!("bin {} B: {words}", bin.bin)));
    }
    ui.add_space(16.0);
}
