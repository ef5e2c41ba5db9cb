//! Named sets of changes: saved from the changes that are on, applied again, listed in the report, exported, imported.

use egui::{Margin, Ui, Vec2};

use crate::analysis::what_if::EditSet;
use crate::ui::part::{Action, TextFile, ViewContext};
use crate::ui::widget::controls::{button, cut_label, link, link_sized};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{size, space};

/// Draws the sets; `name` is the text in the name field.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, name: &mut String) {
    let theme = context.theme;
    ui.add_space(16.0);
    ui.horizontal(|ui| {
        ui.label(text("Sets of changes", size::SMALL, Weight::Medium, theme.text2));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x = 12.0;
            if link(ui, "Import\u{2026}", theme).on_hover_text("Import sets from a text file").clicked() {
                context.actions.push(Action::ReadSets);
            }
            let saved = &context.shared.changes.saved;
            let why = "Save all sets to a text file, for highwater report FILE --sets THIS";
            if !saved.is_empty() && link(ui, "Export\u{2026}", theme).on_hover_text(why).clicked() {
                let name = format!("{}.changes.txt", context.document.profile.name);
                let text = EditSet::write(saved);
                context.actions.push(Action::Save(TextFile::new(name, move || text.clone())));
            }
        });
    });
    ui.add_space(4.0);
    if context.shared.changes.on.is_empty() {
        if context.shared.changes.saved.is_empty() {
            let words = "Switch changes on to save them as a set. The report lists the result of every set.";
            ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text3)).wrap());
        }
    } else {
        field(ui, context, name);
    }
    let mut gone = None;
    for (i, set) in context.shared.changes.saved.clone().iter().enumerate() {
        ui.add_space(8.0);
        let is_on = context.shared.changes.on == set.edits;
        ui.horizontal(|ui| {
            if link_sized(ui, &set.name, size::BODY, theme).clicked() {
                context.shared.changes_mut().take(set);
            }
            if is_on {
                ui.label(text("on", size::SMALL, Weight::SemiBold, theme.accent));
            }
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                if link(ui, "remove", theme).clicked() {
                    gone = Some(i);
                }
            });
        });
        let words: Vec<String> = set.edits.iter().map(ToString::to_string).collect();
        let room = ui.available_width();
        cut_label(ui, &words.join("; "), Weight::Mono.at(size::SMALL), theme.text2, room);
    }
    if let Some(i) = gone {
        context.shared.changes_mut().saved.remove(i);
    }
    if !context.shared.changes.saved.is_empty() {
        ui.add_space(10.0);
        if button(ui, "Open the report", "", theme).clicked() {
            context.go("report");
        }
    }
}

/// The name field with its Save button.
fn field(ui: &mut Ui, context: &mut ViewContext<'_>, name: &mut String) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        let width = (ui.available_width() - 84.0).max(60.0);
        let edit = egui::TextEdit::singleline(name)
            .font(Weight::Regular.at(size::SMALL))
            .hint_text(text("name for the changes that are on", size::SMALL, Weight::Regular, theme.text3))
            .desired_width(width)
            .margin(Margin::symmetric(8, 5));
        let response = ui.add_sized(Vec2::new(width, space::CONTROL), edit);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::TextInput, true, "Name of this set"));
        let entered = response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter));
        if button(ui, "Save set", "", theme).clicked() || entered {
            let changes = context.shared.changes_mut();
            let name_now = match name.trim() {
                "" => format!("Set {}", changes.saved.len() + 1),
                name => name.to_owned(),
            };
            let set = EditSet::new(&name_now, changes.on.clone());
            changes.save_all(vec![set]);
            name.clear();
        }
    });
}
