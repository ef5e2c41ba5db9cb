//! Legends of classes, and the class of a buffer with the reason for the guess.

use egui::Ui;

use crate::analysis::Scene;
use crate::analysis::class::Class;
use crate::model::BufferId;
use crate::ui::part::colors;
use crate::ui::widget::controls::{guess, legend};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Tooltip of the word "guess".
const WHY: &str = "Classes are guessed from names and from the pass that makes and reads a buffer; the compiler says \
                   only argument, result or temporary.";

/// Legend entries of the classes that have bytes, in stacking order; if there is no room for all, the largest ones and
/// how many more there are, which a tooltip names.
pub fn legends(ui: &mut Ui, theme: &Theme, bytes_of: &dyn Fn(Class) -> u64) {
    let mut shown: Vec<Class> = Class::ALL.into_iter().filter(|class| bytes_of(*class) > 0).collect();
    shown.sort_by_key(|class| std::cmp::Reverse(bytes_of(*class)));
    let mut room = ui.available_width() - 60.0;
    let gap = 6.0 + ui.spacing().item_spacing.x * 2.0;
    let width = |class: &Class| {
        let font = Weight::Regular.at(size::SMALL);
        ui.painter().layout_no_wrap(class.name().to_owned(), font, theme.text2).size().x + 16.0 + gap
    };
    let fitting = shown.iter().take_while(|class| {
        room -= width(class);
        room > 0.0
    });
    let count = fitting.count();
    let left = shown.split_off(count.min(shown.len()));
    for class in Class::ALL.into_iter().filter(|class| shown.contains(class)) {
        legend(ui, colors::slot_of_class(class), class.name(), theme);
        ui.add_space(6.0);
    }
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|class| class.name()).collect();
        let words = format!("+{}", left.len());
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2)).on_hover_text(names.join(", "));
        ui.add_space(6.0);
    }
    mark(ui, theme);
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
