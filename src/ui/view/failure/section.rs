//! Section titles of the failure view.

use egui::Ui;

use crate::ui::widget::controls::cut_label;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Draws a section title with a remark beside it.
pub fn section(ui: &mut Ui, theme: &Theme, title: &str, remark: &str) {
    ui.horizontal(|ui| {
        ui.label(text(title, size::BODY, Weight::SemiBold, theme.text));
        if !remark.is_empty() {
            let room = ui.available_width();
            cut_label(ui, remark, Weight::Regular.at(size::SMALL), theme.text3, room);
        }
    });
    ui.add_space(2.0);
}
