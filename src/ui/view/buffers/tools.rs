//! The toolbar of the table: rows, filter, grouping, columns, copy and save.

use std::sync::Arc;

use egui::{Popup, PopupCloseBehavior, Ui};

use super::{State, field};
use crate::analysis::table::{BufferTable, Column, Line};
use crate::export::table::{Form, write};
use crate::model::{counted, thousands};
use crate::ui::part::{Action, TextFile, ViewContext};
use crate::ui::session::RowScope;
use crate::ui::widget::controls::{self, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Maximum number of rows copied to the clipboard; files have no limit.
const MOST_COPIED: usize = 100_000;

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, table: Option<&Arc<BufferTable>>, state: &mut State) {
    let theme = context.theme;
    ui.spacing_mut().item_spacing.y = 8.0;
    ui.horizontal(|ui| {
        let step = context.step();
        let at_step = format!("At step {step}");
        let words = ["At the peak", at_step.as_str(), "All"];
        let chosen = RowScope::ALL.iter().position(|scope| *scope == context.shared.rows).unwrap_or(0);
        // A listing in a message has no steps to choose from.
        if context.document.has_times() {
            if let Some(i) = segmented(ui, &words, chosen, theme) {
                context.shared.list_rows(RowScope::ALL[i]);
            }
            ui.add_space(8.0);
        }
        group_menu(ui, theme, state);
        column_menu(ui, theme, state);
        copy_menu(ui, context, state);
        let hidden = context.shared.hidden.len();
        if hidden > 0 && controls::link(ui, &format!("show {} hidden", thousands(hidden as u64)), theme).clicked() {
            context.shared.show_hidden();
        }
    });
    ui.horizontal(|ui| {
        let width = ui.available_width();
        ui.scope(|ui| {
            ui.set_max_width(width - 150.0);
            field::show(ui, context, table.map(|table| &**table), &mut state.field);
        });
        if state.shown.table.is_none() {
            ui.label(text("Listing\u{2026}", size::SMALL, Weight::Regular, theme.text2));
            return;
        }
        let words = format!("{} of {}", thousands(state.shown.shown.rows as u64), thousands(state.shown.of as u64));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    });
    field::chips(ui, context);
}

fn group_menu(ui: &mut Ui, theme: &Theme, state: &mut State) {
    let words = match state.order.group {
        Some(column) => format!("Group: {}", column.title().to_lowercase()),
        None => "Group".to_owned(),
    };
    let response = controls::toggle_button(ui, &words, "", controls::On(state.order.group.is_some()), theme);
    Popup::menu(&response).show(|ui| {
        ui.set_min_width(180.0);
        let choices = std::iter::once(None).chain(Column::ALL.into_iter().filter(|c| c.can_group()).map(Some));
        for choice in choices {
            let title = choice.map_or("No grouping", Column::title);
            if ui.selectable_label(state.order.group == choice, title).clicked() {
                state.order.group = choice;
                state.order.open.clear();
                ui.close();
            }
        }
        if state.order.group.is_some() {
            ui.separator();
            if ui.button("Expand all groups").clicked() {
                state.order.open = state.shown.shown.groups.iter().map(|group| group.name.clone()).collect();
                ui.close();
            }
            if ui.button("Collapse all groups").clicked() {
                state.order.open.clear();
                ui.close();
            }
        }
    });
}

fn column_menu(ui: &mut Ui, theme: &Theme, state: &mut State) {
    let response = controls::button(ui, "Columns", "", theme);
    Popup::menu(&response).close_behavior(PopupCloseBehavior::CloseOnClickOutside).show(|ui| {
        ui.set_min_width(200.0);
        for column in Column::ALL {
            let mut on = state.columns.contains(&column);
            let only = on && state.columns.len() == 1;
            let no_room = if state.without_room.contains(&column) { ", no room" } else { "" };
            let words = format!("{}{no_room}", column.title());
            let color = if no_room.is_empty() { theme.text } else { theme.text3 };
            let words = text(words, size::BODY, Weight::Regular, color);
            if ui.add_enabled(!only, egui::Checkbox::new(&mut on, words)).changed() {
                if on {
                    state.columns.push(column);
                } else {
                    state.columns.retain(|own| *own != column);
                }
            }
        }
        ui.separator();
        ui.label(text("Drag a header to move its column.", size::SMALL, Weight::Regular, theme.text2));
        ui.label(text("Shift click adds a sort column.", size::SMALL, Weight::Regular, theme.text2));
        if ui.button("Reset columns").clicked() {
            state.columns = super::FIRST.to_vec();
        }
    });
}

fn copy_menu(ui: &mut Ui, context: &mut ViewContext<'_>, state: &State) {
    let theme = context.theme;
    let response = controls::button(ui, "Copy or save", "", theme);
    Popup::menu(&response).show(|ui| {
        ui.set_min_width(240.0);
        let Some(table) = &state.shown.table else { return };
        let rows = || -> Vec<u32> {
            let lines = state.shown.shown.lines.iter();
            lines.filter_map(|line| if let Line::Row(row) = line { Some(*row) } else { None }).collect()
        };
        let count = rows().len();
        if count == 0 {
            ui.label(text("Nothing to copy: expand a group first.", size::SMALL, Weight::Regular, theme.text2));
        }
        for form in [Form::Tsv, Form::Markdown, Form::Json] {
            let part =
                if count > MOST_COPIED { format!(", first {}", thousands(MOST_COPIED as u64)) } else { String::new() };
            if ui.add_enabled(count > 0, egui::Button::new(format!("Copy as {}{part}", form.name()))).clicked() {
                let mut rows = rows();
                rows.truncate(MOST_COPIED);
                context.actions.push(Action::Copy(write(table, &state.columns, &rows, form)));
                ui.close();
            }
        }
        ui.separator();
        for form in [Form::Csv, Form::XprofCsv] {
            let words = format!("Save {} as {}\u{2026}", counted(count as u64, "row"), form.name());
            if ui.add_enabled(count > 0, egui::Button::new(words)).clicked() {
                let (table, columns, rows) = (Arc::clone(table), state.columns.clone(), rows());
                let name = format!("{}.csv", context.document.profile.name);
                let text = move || write(&table, &columns, &rows, form);
                context.actions.push(Action::Save(TextFile::new(name, text)));
                ui.close();
            }
        }
    });
}
