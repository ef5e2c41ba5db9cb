//! Building blocks of cards: section titles, facts, the large verdict.

use egui::{Align, Color32, Layout, Sense, Ui, Vec2};

use crate::ui::widget::controls::cut_label;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// The title of a section.
pub fn title(ui: &mut Ui, theme: &Theme, words: &str) {
    ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
}

/// A name on the left, a value on the right.
pub fn fact(ui: &mut Ui, theme: &Theme, name: &str, value: &str) {
    ui.horizontal(|ui| {
        let width = ui.available_width();
        ui.label(text(name, size::SMALL, Weight::Regular, theme.text2));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            cut_label(ui, value, Weight::Medium.at(size::SMALL), theme.text, width * 0.68);
        });
    });
}

/// A verdict in large type, with its evidence.
pub struct Answer<'a> {
    /// Colour of the verdict, and of the bar beside it.
    pub color: Color32,
    /// A word or two: `Does not fit`.
    pub verdict: &'a str,
    /// By how much.
    pub amount: &'a str,
    /// The verdict in a sentence.
    pub sentence: &'a str,
    /// How it is known.
    pub evidence: Option<&'a str>,
}

impl Answer<'_> {
    /// Draws the verdict.
    pub fn show(&self, ui: &mut Ui, theme: &Theme) {
        ui.horizontal(|ui| {
            let (bar, _) = ui.allocate_exact_size(Vec2::new(3.0, 76.0), Sense::hover());
            ui.painter().rect_filled(bar, 0.0, self.color);
            ui.add_space(8.0);
            ui.vertical(|ui| {
                ui.horizontal_wrapped(|ui| {
                    ui.label(text(self.verdict, size::VERDICT, Weight::SemiBold, self.color));
                    ui.add_space(8.0);
                    ui.label(text(self.amount, size::VERDICT, Weight::SemiBold, theme.text));
                });
                ui.label(text(self.sentence, size::LEAD, Weight::Medium, theme.text));
                if let Some(words) = self.evidence {
                    let room = ui.available_width();
                    cut_label(ui, words, Weight::Regular.at(size::SMALL), theme.text3, room);
                }
            });
        });
    }
}
