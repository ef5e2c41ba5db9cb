//! The page of keys: all commands that have one, and the keys of charts, tables and views.

use egui::{Ui, Vec2};

use super::{paragraph, scrolled};
use crate::model::capitalised;
use crate::ui::app::{App, COMMANDS, Command};
use crate::ui::chart;
use crate::ui::view::VIEWS;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::theme::{Theme, size};

/// Width of the page from which there is room for two columns.
const TWO_COLUMNS: f32 = 700.0;

/// Keys, and what they do.
type Row = (String, String);

/// Width of the keys before their words.
const KEYS: f32 = 132.0;

impl App {
    pub(super) fn keys_page(&self, ui: &mut Ui, theme: &Theme, height: f32) {
        let file = self.files.current().map(|open| open.document.clone());
        let (mut views, mut everywhere): (Vec<Row>, Vec<Row>) = (Vec::new(), Vec::new());
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
            let group = if matches!(entry.command, Command::View(_)) { &mut views } else { &mut everywhere };
            group.push((entry.keys.to_owned(), words));
        }
        let own = |title: &str, keys: &[(&str, &str)]| -> Vec<Row> {
            // The heading says of which view they are.
            let bare = |words: &str| match words.split_once(": ") {
                Some((of, rest)) if of.eq_ignore_ascii_case(title) => capitalised(rest),
                _ => words.to_owned(),
            };
            keys.iter().map(|(keys, words)| ((*keys).to_owned(), bare(words))).collect()
        };
        let mut groups = vec![("Everywhere", everywhere), ("Views", views)];
        groups.push(("Charts and tables", [own("", keys::KEYS), own("Charts", chart::KEYS)].concat()));
        groups.extend(VIEWS.0.iter().map(|view| (view.title, own(view.title, view.keys))));
        groups.retain(|(_, rows)| !rows.is_empty());
        // A heading, which has no keys, before the rows of its group.
        let rows: Vec<(Option<String>, String)> = groups
            .into_iter()
            .flat_map(|(title, rows)| {
                let rows = rows.into_iter().map(|(keys, words)| (Some(keys), words));
                std::iter::once((None, title.to_owned())).chain(rows)
            })
            .collect();
        let columns = if ui.available_width() < TWO_COLUMNS { 1 } else { 2 };
        let rows_of_column = rows.len().div_ceil(columns);
        scrolled(ui, height, |ui| {
            ui.columns(columns, |columns| {
                for (i, (keys, words)) in rows.iter().enumerate() {
                    let ui = &mut columns[i / rows_of_column];
                    let Some(keys) = keys else {
                        ui.add_space(6.0);
                        ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
                        continue;
                    };
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
