//! Legend entries other than swatches: lines, dashes, free space, gaps, paler parts.

use egui::{Rect, Response, Role, Sense, Shape, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// The sign before the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// A solid line.
    Line,
    /// An upright line in red: a request that failed.
    Failure,
    /// A thick line in red: a limit.
    Limit,
    /// A dashed line: before the changes.
    Dashes,
    /// An empty box: free space.
    Free,
    /// A crossed box: gaps.
    Gaps,
    /// A hatched box: padding.
    Padding,
}

/// A legend entry with a sign; `None` if there is no room for it.
pub fn entry(ui: &mut Ui, theme: &Theme, sign: Sign, words: &str) -> Option<Response> {
    let galley = ui.painter().layout_no_wrap(words.to_owned(), Weight::Regular.at(size::SMALL), theme.text2);
    let width = galley.size().x + 22.0;
    if ui.available_width() < width {
        return None;
    }
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, 18.0), Sense::hover());
    let y = rect.center().y;
    let line = [egui::Pos2::new(rect.left(), y), egui::Pos2::new(rect.left() + 16.0, y)];
    let swatch = Rect::from_center_size(egui::Pos2::new(rect.left() + 8.0, y), Vec2::splat(10.0));
    let edge = Stroke::new(1.0, theme.text3);
    let painter = ui.painter();
    match sign {
        Sign::Line => {
            painter.line_segment(line, Stroke::new(1.5, theme.ink));
        }
        Sign::Failure => {
            painter.vline(swatch.center().x, rect.y_range().shrink(2.0), Stroke::new(1.5, theme.danger));
        }
        Sign::Limit => {
            painter.line_segment(line, Stroke::new(2.0, theme.over));
        }
        Sign::Dashes => {
            painter.extend(Shape::dashed_line(&line, Stroke::new(1.5, theme.text2), 4.0, 2.0));
        }
        Sign::Free => {
            painter.rect(swatch, 1.0, theme.inset, edge, StrokeKind::Inside);
        }
        Sign::Gaps => {
            painter.rect_stroke(swatch, 1.0, edge, StrokeKind::Inside);
            painter.line_segment([swatch.left_bottom(), swatch.right_top()], edge);
        }
        Sign::Padding => {
            painter.rect_stroke(swatch, 1.0, edge, StrokeKind::Inside);
            let half = swatch.width() / 2.0;
            painter.line_segment([swatch.left_center(), swatch.left_top() + Vec2::new(half, 0.0)], edge);
            painter.line_segment([swatch.left_bottom(), swatch.right_top()], edge);
            painter.line_segment([swatch.right_center(), swatch.right_bottom() - Vec2::new(half, 0.0)], edge);
        }
    }
    let at = egui::Pos2::new(rect.left() + 22.0, y - galley.size().y / 2.0);
    painter.galley(at, galley, theme.text2);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, words));
    Some(response)
}

/// Explains the paler parts of areas, in the longest wording that fits.
pub fn paler(ui: &mut Ui, theme: &Theme) {
    longest(ui, theme, &["each pixel shows its maximum, paler down to its minimum", "paler: down to the minimum"]);
}

/// A remark in the first of its wordings that there is room for; nothing if there is room for none.
pub fn longest(ui: &mut Ui, theme: &Theme, wordings: &[&str]) {
    for words in wordings {
        let galley = ui.painter().layout_no_wrap((*words).to_owned(), Weight::Regular.at(size::SMALL), theme.text3);
        if galley.size().x < ui.available_width() {
            ui.label(text(*words, size::SMALL, Weight::Regular, theme.text3));
            return;
        }
    }
}

/// A title over a band, with a remark if there is room for it.
pub fn title(ui: &Ui, theme: &Theme, left_center: egui::Pos2, right: f32, (title, remark): (&str, &str)) {
    let bold = Weight::SemiBold.at(size::SMALL);
    let drawn = ui.painter().text(left_center, egui::Align2::LEFT_CENTER, title, bold, theme.text);
    let at = egui::Pos2::new(drawn.right() + 12.0, left_center.y);
    let font = Weight::Regular.at(size::SMALL);
    paint_cut(ui.painter(), (at, egui::Align2::LEFT_CENTER), remark, font, theme.text3, right - at.x);
}
