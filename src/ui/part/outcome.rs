//! Colours and mark of what a prediction comes to: the same in every view.

use egui::Color32;

use crate::analysis::what_if::Outcome;
use crate::ui::widget::controls::Mark;
use crate::ui::widget::theme::Theme;

/// Colour of the words, colour of the ground under them, and the mark beside them.
pub fn look(outcome: Outcome, theme: &Theme) -> (Color32, Color32, Mark) {
    match outcome {
        Outcome::Fits(_) => (theme.ok, theme.ok_bg, Mark::Fits),
        Outcome::Tight { .. } => (theme.warn, theme.warn_bg, Mark::Fits),
        Outcome::MayFit => (theme.warn, theme.warn_bg, Mark::Unknown),
        Outcome::Over(_) => (theme.danger, theme.danger_bg, Mark::Over),
    }
}

/// Says that so many changes make a program fit.
pub fn make_it_fit(changes: usize) -> String {
    match changes {
        1 => "One change makes it fit".to_owned(),
        2 => "Two changes make it fit".to_owned(),
        3 => "Three changes make it fit".to_owned(),
        n => format!("{n} changes make it fit"),
    }
}
