//! The chosen row in Details: both sides beside each other.

use egui::Ui;

use super::state::State;
use crate::model::{Bytes, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::facts::fact;
use crate::ui::widget::controls::{cut_label, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// Draws the chosen row, if there is one.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let mut state = context.locals.take::<State>();
    if let Some(found) = state.found()
        && let Some(row) = state.chosen.and_then(|chosen| found.space()?.groups.get(chosen as usize))
    {
        let (theme, units) = (context.theme, context.options.units);
        let room = ui.available_width();
        cut_label(ui, &row.scope, Weight::SemiBold.at(size::LEAD), theme.text, room);
        ui.label(text(format!("{}, {}", row.class, row.change), size::SMALL, Weight::Regular, theme.text2));
        let difference = units.signed(row.difference);
        ui.label(text(difference, size::READOUT, Weight::SemiBold, theme.text));
        let words = |bytes: u64| format!("{}   {}", units.short(Bytes(bytes)), Bytes(bytes).exact());
        fact(ui, theme, "Before", &words(row.before));
        fact(ui, theme, "After", &words(row.after));
        let counts = format!("{} \u{2192} {}", thousands(row.count_before as u64), thousands(row.count_after as u64));
        fact(ui, theme, "Buffers", &counts);
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
