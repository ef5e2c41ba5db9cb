//! The chosen row in Details: both sides beside each other.

use egui::Ui;

use super::state::State;
use crate::export::diff::HolderDiff;
use crate::model::{Bytes, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::facts::fact;
use crate::ui::widget::controls::{cut_label, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Draws the chosen row, if there is one.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let mut state = context.locals.take::<State>();
    if let Some(found) = state.found()
        && let Some(row) = state.chosen.and_then(|chosen| found.space()?.groups.get(chosen as usize))
    {
        let (theme, units) = (context.theme, context.options.units);
        let room = ui.available_width();
        cut_label(ui, &row.scope, Weight::SemiBold.at(size::LEAD), theme.text, room);
        ui.label(text(format!("{}, {}", row.class, row.change_words), size::SMALL, Weight::Regular, theme.text2));
        let difference = units.signed(row.difference);
        ui.label(text(difference, size::READOUT, Weight::SemiBold, theme.text));
        let words = |bytes: u64| format!("{}   {}", units.short(Bytes(bytes)), Bytes(bytes).exact());
        fact(ui, theme, "Before", &words(row.before));
        fact(ui, theme, "After", &words(row.after));
        let counts = format!("{} \u{2192} {}", thousands(row.count_before as u64), thousands(row.count_after as u64));
        fact(ui, theme, found.words().blocks, &counts);
        if let Some(holder) = found.allocator().zip(state.chosen).and_then(|(held, at)| held.holders.get(at as usize)) {
            stack(ui, theme, holder);
            rule(ui, theme);
            context.locals.put(state);
            return;
        }
        for (name, shape) in [("Shape before", &row.shape_before), ("Shape after", &row.shape_after)] {
            if !shape.is_empty() {
                fact(ui, theme, name, shape);
            }
        }
        if row.largest_after.is_none() {
            let words = "Nothing of it is at the peak of the program that is open.";
            ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text2)).wrap());
        }
        rule(ui, theme);
    }
    context.locals.put(state);
}

/// Frames that are shown; the rest is in the report.
const FRAMES: usize = 24;

/// The whole stack of a holder, innermost first, or its shape.
fn stack(ui: &mut Ui, theme: &Theme, holder: &HolderDiff) {
    if holder.stack.is_empty() {
        if !holder.detail.is_empty() {
            fact(ui, theme, "Shape", &holder.detail);
        }
        return;
    }
    ui.add_space(4.0);
    ui.label(text("Stack, innermost first", size::SMALL, Weight::Medium, theme.text2));
    let room = ui.available_width();
    for frame in holder.stack.iter().take(FRAMES) {
        cut_label(ui, frame, Weight::Mono.at(size::SMALL), theme.text2, room);
    }
    if holder.stack.len() > FRAMES {
        let words = format!("{} more frames", holder.stack.len() - FRAMES);
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    }
}
