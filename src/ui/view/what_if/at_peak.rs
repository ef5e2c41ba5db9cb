//! The largest groups of buffers at the peak, with the changes applied.

use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::model::thousands;
use crate::ui::part::ViewContext;
use crate::ui::part::colors::slot_of_class;
use crate::ui::widget::controls::{paint_cut, paint_swatch};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;
use crate::ui::work::WhatIfResult;

/// Maximum number of rows.
const ROWS: usize = 6;

/// Draws the list; a click selects the largest buffer of a row.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, result: &WhatIfResult) {
    let theme = context.theme;
    ui.add_space(16.0);
    let words = if result.after.edits.is_empty() { "At the peak" } else { "At the new peak" };
    ui.label(text(words, size::SMALL, Weight::Medium, theme.text2));
    ui.add_space(2.0);
    let units = context.options.units;
    let font = Weight::Regular.at(size::SMALL);
    for row in result.at_peak.iter().take(ROWS) {
        let Some(&largest) = row.buffers.first() else { continue };
        let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 20.0), Sense::click());
        if response.hovered() || response.has_focus() {
            ui.painter().rect_filled(rect, 0.0, theme.hover);
        }
        let swatch = Rect::from_center_size(Pos2::new(rect.left() + 5.0, rect.center().y), Vec2::splat(9.0));
        paint_swatch(ui.painter(), swatch, slot_of_class(row.class), theme);
        let bytes = units.short(row.bytes);
        let right = Align2::RIGHT_CENTER;
        let drawn = ui.painter().text(rect.right_center(), right, &bytes, Weight::SemiBold.at(size::SMALL), theme.text);
        let name = match row.buffers.len() {
            1 => row.name().to_owned(),
            count => format!("{}  \u{d7}{}", row.name(), thousands(count as u64)),
        };
        let at = Pos2::new(rect.left() + 17.0, rect.center().y);
        let room = drawn.left() - at.x - 8.0;
        paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), &name, font.clone(), theme.text, room);
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("At the peak: {name} {bytes}")));
        if response.hovered() {
            context.shared.hover(largest);
        }
        if response.clicked() {
            context.select(largest);
        }
    }
    for (bytes, why) in result.after.besides_told() {
        let words = format!("{} besides: {why}", units.signed(bytes.into()));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    }
    if result.at_peak.len() > ROWS {
        let rest = result.at_peak[ROWS..].iter().fold(0u64, |sum, row| sum.saturating_add(row.bytes.0));
        let words = format!("and {} more, {}", result.at_peak.len() - ROWS, units.short(crate::model::Bytes(rest)));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    }
}
