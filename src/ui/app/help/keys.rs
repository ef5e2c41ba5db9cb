//! The page of keys: all commands that have one, and the keys of charts, tables and views.

use egui::{Ui, Vec2};

use super::{paragraph, scrolled};
use crate::ui::app::{App, COMMANDS, Command};
use crate::ui::chart;
use crate::ui::view::VIEWS;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::theme::{Theme, size};

/// Width of the page from which there is room for two columns.
const TWO_COLUMNS: f32 = 700.0;

/// Width of the keys before their words.
const KEYS: f32 = 132.0;

impl App {
    pub(super) fn keys_page(&self, ui: &mut Ui, theme: &Theme, height: f32) {
        let file = self.files.current().map(|open| open.document.clone());
        let mut rows: Vec<(String, String)> = Vec::new();
        // Plain keys first: the list of commands begins with those that have the most modifiers.
        let mut commands: Vec<_> = COMMANDS.iter().collect();
        commands.sort_by_key(|entry| (!matches!(entry.command, Command::View(_)), entry.keys.split(' ').count()));
        for entry in commands {
            let words = match entry.command {
                Command::View(digit) => {
                    let title = file.as_ref().and_then(|file| VIEWS.of_digit(digit, file)).map(|view| view.title);
                    let Some(title) = title else { continue };
                    title.to_owned()
                }
                _ if entry.key.is_none() => continue,
                _ => entry.words.to_owned(),
            };
            rows.push((entry.keys.to_owned(), words));
        }
        rows.extend(
            keys::KEYS
                .iter()
                .chain(chart::KEYS)
                .chain(VIEWS.0.iter().flat_map(|view| view.keys))
                .map(|(keys, words)| ((*keys).to_owned(), (*words).to_owned())),
        );
        let columns = if ui.available_width() < TWO_COLUMNS { 1 } else { 2 };
        let rows_of_column = rows.len().div_ceil(columns);
        scrolled(ui, height, |ui| {
            ui.columns(columns, |columns| {
                for (i, (keys, words)) in rows.iter().enumerate() {
                    let ui = &mut columns[i / rows_of_column];
                    ui.horizontal_top(|ui| {
                        ui.allocate_ui(Vec2::new(KEYS, 18.0), |ui| {
                            ui.set_width(KEYS);
                            ui.add(egui::Label::new(text(keys, size::SMALL, Weight::MonoMedium, theme.text)).wrap());
                        });
                        paragraph(ui, theme, words);
                    });
                }
            });
        });
        let words = "All commands, including those without keys: Ctrl P";
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    }
}
