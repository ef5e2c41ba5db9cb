//! Building blocks of the buffer and step cards: titles, facts, the large size.

use egui::{Align, Layout, Ui};

use crate::model::Bytes;
use crate::ui::part::ViewContext;
use crate::ui::part::links::{self, To};
use crate::ui::widget::controls::cut_label;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// Maximum number of rows in each list.
pub const ROWS: usize = 8;

/// A large size with a remark and its exact bytes, both links where they lead somewhere.
pub fn readout(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    bytes: Bytes,
    (remark, remark_to): (&str, Option<To>),
    to: To,
) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        let (number, unit) = context.options.units.split(bytes);
        ui.label(text(number, size::VERDICT_SMALL, Weight::SemiBold, theme.text));
        ui.label(text(unit, size::BODY, Weight::Medium, theme.text2));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.vertical(|ui| {
                ui.with_layout(Layout::top_down(Align::Max), |ui| {
                    let room = ui.available_width();
                    match remark_to {
                        Some(to) => links::number(ui, context, "", remark, room, to),
                        None => {
                            cut_label(ui, remark, Weight::Medium.at(size::SMALL), theme.text, room);
                        }
                    }
                    links::number(ui, context, "Bytes", &bytes.exact(), room, to);
                });
            });
        });
    });
}
