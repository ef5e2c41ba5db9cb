//! Computations that run inside the program, loop bodies above all, as nested bands over the time axis.

use egui::{Align2, Pos2, Rect, Ui, Vec2};

use super::state::{Calls, Places};
use crate::model::ComputationId;
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::size;

/// Bands that are shown at most.
const MAX_ROWS: usize = 2;
/// A computation shorter than the program divided by this is not shown.
const LEAST: u32 = 25;
/// Height of one.
const ROW: f32 = 18.0;

/// Spans of called computations by depth: (computation, first point, one past the last).
pub fn spans(context: &ViewContext<'_>) -> Calls {
    let Some(scene) = context.scene() else { return Vec::new() };
    let Some(live) = &scene.analysis.live else { return Vec::new() };
    let mut all: Vec<(ComputationId, u32, u32)> = live
        .spans()
        .filter(|span| Some(span.0) != scene.program.entry && (span.2 - span.1.min(span.2)) * LEAST >= live.points())
        .collect();
    all.sort_by_key(|&(_, start, end)| (start, std::cmp::Reverse(end)));
    let mut rows: Vec<Vec<(ComputationId, u32, u32)>> = Vec::new();
    for span in all {
        let depth = rows.iter().take_while(|row| row.last().is_some_and(|last| last.2 > span.1)).count();
        if depth >= MAX_ROWS {
            continue;
        }
        if depth == rows.len() {
            rows.push(Vec::new());
        }
        rows[depth].push(span);
    }
    rows
}

pub fn show(ui: &Ui, context: &ViewContext<'_>, rows: &Calls, places: &Places, top: f32) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    if rows.is_empty() {
        return;
    }
    let small = Weight::Regular.at(size::SMALL);
    let at = Pos2::new(places.curve.left() - 10.0, top + ROW / 2.0);
    ui.painter().text(at, Align2::RIGHT_CENTER, "Calls", small.clone(), theme.text2);
    for (depth, row) in rows.iter().enumerate() {
        for &(computation, start, end) in row {
            let left = places.x_of(f64::from(start)).max(places.curve.left());
            let right = places.x_of(f64::from(end)).min(places.curve.right());
            if right - left < 1.0 {
                continue;
            }
            let rect = Rect::from_min_max(
                Pos2::new(left, top + ROW * depth as f32 + 1.0),
                Pos2::new(right, top + ROW * (depth + 1) as f32 - 1.0),
            );
            ui.painter().rect_filled(rect, 2.0, theme.inset);
            if rect.width() > 30.0 {
                let name = scene.program.text.computation_name(computation);
                let at = rect.left_center() + Vec2::new(6.0, 0.0);
                paint_cut(
                    ui.painter(),
                    (at, Align2::LEFT_CENTER),
                    &name,
                    small.clone(),
                    theme.text2,
                    rect.width() - 10.0,
                );
            }
        }
    }
}
