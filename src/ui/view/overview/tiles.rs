//! The overview of an IPU profile: bytes by tile if there are any, else what the files contain.

use egui::Ui;

use super::ipu;
use crate::ui::part::{ViewContext, empty};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    if context.document.has_tiles() {
        return ipu::show(ui, context);
    }
    egui::Frame::new().inner_margin(24).show(ui, |ui| {
        ui.label(text("No bytes by tile in this file", size::VERDICT_SMALL, Weight::SemiBold, theme.text));
        for note in &context.document.profile.notes {
            ui.add(egui::Label::new(text(note.to_string(), size::LEAD, Weight::Regular, theme.warn)).wrap());
        }
        empty::facts(ui, context);
    });
}
