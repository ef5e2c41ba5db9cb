//! Legends of classes and other groups, and the class of a buffer with the reason for the guess.

use egui::Ui;

use crate::analysis::Scene;
use crate::analysis::class::Class;
use crate::model::BufferId;
use crate::ui::part::colors;
use crate::ui::widget::controls::{guess, legend};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Slot, Theme, size};

/// Tooltip of the word "guess".
const WHY: &str = "Classes are guessed from names and from the pass that makes and reads a buffer; the compiler says \
                   only argument, result or temporary.";

/// Legend entries of the classes that have bytes, in stacking order; if there is no room for all, the largest ones and
/// how many more there are, which a tooltip names.
pub fn legends(ui: &mut Ui, theme: &Theme, bytes_of: &dyn Fn(Class) -> u64) {
    let entries: Vec<(&str, Slot, u64)> = Class::ALL
        .into_iter()
        .map(|class| (class.name(), colors::slot_of_class(class), bytes_of(class)))
        .filter(|entry| entry.2 > 0)
        .collect();
    fitting(ui, theme, &entries, width(ui, "guess") + 8.0);
    mark(ui, theme);
}

/// Legend entries (name, colour, bytes) in their order; if there is no room for all beside `after` points of something
/// else, the largest ones and how many more there are, which a tooltip names.
pub fn fitting(ui: &mut Ui, theme: &Theme, entries: &[(&str, Slot, u64)], after: f32) {
    const GAP: f32 = 6.0;
    let gap = GAP + ui.spacing().item_spacing.x;
    let of = |entry: usize| width(ui, entries[entry].0) + 16.0 + gap;
    let all: f32 = (0..entries.len()).map(of).sum();
    let mut room = ui.available_width() - after;
    let mut order: Vec<usize> = (0..entries.len()).collect();
    if all > room {
        room -= width(ui, "+10") + gap;
        order.sort_by_key(|&entry| std::cmp::Reverse(entries[entry].2));
        let fits = order.iter().take_while(|&&entry| {
            room -= of(entry);
            room > 0.0
        });
        order.truncate(fits.count());
    }
    for (at, (name, slot, _)) in entries.iter().enumerate() {
        if order.contains(&at) {
            legend(ui, *slot, name, theme);
            ui.add_space(GAP);
        }
    }
    let left: Vec<&str> =
        (0..entries.len()).filter(|entry| !order.contains(entry)).map(|entry| entries[entry].0).collect();
    if !left.is_empty() {
        let words = format!("+{}", left.len());
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2)).on_hover_text(left.join(", "));
        ui.add_space(GAP);
    }
}

/// Width of a word of a legend.
fn width(ui: &Ui, word: &str) -> f32 {
    let font = Weight::Regular.at(size::SMALL);
    ui.painter().layout_no_wrap(word.to_owned(), font, egui::Color32::WHITE).size().x
}

/// The word "guess" with an explanatory tooltip.
pub fn mark(ui: &mut Ui, theme: &Theme) {
    guess(ui, WHY, theme);
}

/// The class of a buffer, marked if it is a guess.
pub fn words(ui: &mut Ui, theme: &Theme, scene: Scene<'_>, buffer: BufferId) {
    let category = crate::analysis::category(scene.program, buffer).name();
    let class = scene.analysis.class_now(scene.program, buffer).name();
    ui.label(text(class, size::SMALL, Weight::Regular, theme.text2));
    let reason = scene.analysis.known_classes().map(|classes| classes.reason(buffer));
    if let Some(reason) = reason.filter(|reason| reason.is_guess()) {
        guess(ui, &format!("Guess: {}. The compiler says {}.", reason.words(), category.to_lowercase()), theme);
    }
}
