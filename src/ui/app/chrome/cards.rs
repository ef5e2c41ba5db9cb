//! Everything that is not a view: nothing open yet, files that could not be read, files over the window, the sheet of
//! keys, the field for a path.

use std::path::PathBuf;

use egui::{Align2, Area, Frame, Key, Margin, Order, Pos2, Rect, Role, Stroke, Ui, Vec2, WidgetInfo};

use crate::open::Target;
use crate::ui::app::{App, COMMANDS, Command};
use crate::ui::chart;
use crate::ui::view::VIEWS;
use crate::ui::widget::controls;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys as widget_keys;
use crate::ui::widget::theme::{Theme, size, space};

/// Files of last time that the empty window lists.
const RECENT: usize = 6;

impl App {
    /// What is shown while nothing is open.
    pub(in crate::ui::app) fn welcome(&mut self, ui: &mut Ui, theme: &Theme) {
        let full = ui.max_rect();
        let width = 560.0f32.min(full.width() - 32.0);
        let recent = self.recent().len().min(RECENT) as f32;
        let height = (320.0 + recent * 26.0 + if recent > 0.0 { 34.0 } else { 0.0 }).min(full.height() - 24.0);
        let rect = Rect::from_center_size(full.center() - Vec2::new(0.0, 20.0), Vec2::new(width, height));
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rect));
        let ui = &mut child;
        if self.files.is_loading() {
            ui.label(text("Reading", size::VERDICT_SMALL, Weight::SemiBold, theme.text));
            ui.label(text("The list on the left shows how far it is.", size::LEAD, Weight::Regular, theme.text2));
            return;
        }
        if !self.files.entries.is_empty() {
            ui.label(text("Choose a program", size::VERDICT_SMALL, Weight::SemiBold, theme.text));
            ui.label(text("The list on the left has them, the worst first.", size::LEAD, Weight::Regular, theme.text2));
            return;
        }
        ui.label(text("Drop a memory profile here", size::VERDICT, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        for line in crate::decode::inputs() {
            ui.label(text(line, size::LEAD, Weight::Regular, theme.text2));
        }
        ui.add_space(14.0);
        ui.horizontal(|ui| {
            if controls::button(ui, "Open\u{2026}", "Ctrl O", true, theme).clicked() {
                self.run(Command::Open);
            }
            if controls::button(ui, "Open the sample", "", false, theme).clicked() {
                self.run(Command::Sample);
            }
            ui.label(text("a training step that does not fit", size::SMALL, Weight::Regular, theme.text3));
        });
        self.recent_list(ui, theme);
        ui.add_space(14.0);
        let promise = "Nothing leaves this machine: Highwater has no network access. Your files are never written.";
        ui.label(text(promise, size::BODY, Weight::Regular, theme.text3));
    }

    /// Files of last time.
    fn recent_list(&mut self, ui: &mut Ui, theme: &Theme) {
        let recent = self.recent();
        if recent.is_empty() {
            return;
        }
        ui.add_space(14.0);
        ui.label(text("Open again", size::BODY, Weight::SemiBold, theme.text));
        if let Some(path) = self.recent_rows(ui, theme, recent.into_iter().take(RECENT)) {
            self.open(Target::Path(path));
        }
    }

    /// Files of last time, a row each; returns the one that was chosen.
    pub(in crate::ui::app) fn recent_rows(
        &self,
        ui: &mut Ui,
        theme: &Theme,
        recent: impl Iterator<Item = (PathBuf, String)>,
    ) -> Option<PathBuf> {
        let mut chosen = None;
        for (path, left_in) in recent {
            let (name, place) = self.words_of_path(&path);
            let title = VIEWS.by_id(&left_in).map_or("", |known| known.title);
            let response = controls::menu_row(ui, &name, title, false, theme);
            if response.on_hover_text(place).clicked() {
                chosen = Some(path);
            }
        }
        chosen
    }

    /// What to call a path, and where it is; neither while names are hidden.
    pub(in crate::ui::app) fn words_of_path(&self, path: &std::path::Path) -> (String, String) {
        let whole = path.display().to_string();
        if self.options.names_hidden {
            let name = self.aliases.file(&whole);
            return (name.clone(), name);
        }
        let name = path.file_name().map_or_else(|| whole.clone(), |name| name.to_string_lossy().into_owned());
        let folder = path.parent().and_then(|folder| folder.file_name());
        let name = folder.map_or_else(|| name.clone(), |folder| format!("{}/{name}", folder.to_string_lossy()));
        (name, whole)
    }

    /// Files that could not be read, as cards over the view; what was open stays.
    pub(in crate::ui::app) fn error_cards(&mut self, ui: &Ui, theme: &Theme, rect: Rect) {
        let mut closed = None;
        let mut copied = None;
        let mut bottom = rect.bottom() - 16.0;
        for (index, (name, error)) in self.errors.iter().enumerate().rev().take(3) {
            let width = 460.0f32.min(rect.width() - 32.0);
            let shown = Area::new(egui::Id::unique(("error card", index)))
                .order(Order::Foreground)
                .pivot(Align2::LEFT_BOTTOM)
                .fixed_pos(Pos2::new(rect.left() + 16.0, bottom))
                .show(ui.ctx(), |ui| {
                    Frame::new()
                        .fill(theme.panel)
                        .stroke(Stroke::new(1.0, theme.line2))
                        .inner_margin(Margin { left: 18, right: 14, top: 12, bottom: 12 })
                        .show(ui, |ui| {
                            ui.set_width(width - 34.0);
                            let (name, error) = if self.options.names_hidden {
                                (self.aliases.file(name), self.aliases.sentence(error))
                            } else {
                                (name.clone(), error.clone())
                            };
                            let title = format!("Could not read {name}");
                            ui.label(text(title, size::LEAD, Weight::SemiBold, theme.text));
                            ui.label(text(&error, size::BODY, Weight::Regular, theme.text2));
                            let words = format!("What can be opened. {}", crate::decode::inputs().join(". "));
                            ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
                            ui.add_space(4.0);
                            ui.horizontal(|ui| {
                                if controls::button(ui, "Copy details", "", false, theme).clicked() {
                                    copied = Some(format!("{name}: {error}"));
                                }
                                if controls::button(ui, "Dismiss", "", false, theme).clicked() {
                                    closed = Some(index);
                                }
                            });
                        });
                });
            let card = shown.response.rect;
            let edge = Rect::from_min_size(card.min, Vec2::new(4.0, card.height()));
            ui.ctx().layer_painter(shown.response.layer_id).rect_filled(edge, 0.0, theme.over);
            bottom = card.top() - 8.0;
        }
        if let Some(words) = copied {
            self.ctx.copy_text(words);
            self.say("Copied");
        }
        if let Some(index) = closed {
            self.errors.remove(index);
        }
    }

    pub(in crate::ui::app) fn overlays(&mut self, ui: &Ui, theme: &Theme) {
        self.drop_overlay(ui, theme);
        self.palette_sheet(ui, theme);
        if self.help {
            self.help_sheet(ui, theme);
        }
        if self.path_field.is_some() {
            self.path_sheet(ui, theme);
        }
    }

    fn help_sheet(&mut self, ui: &Ui, theme: &Theme) {
        let modal = egui::Modal::new(egui::Id::unique("keys")).frame(sheet_frame(theme)).show(ui.ctx(), |ui| {
            ui.set_width(760.0f32.min(ui.ctx().content_rect().width() - 80.0));
            ui.label(text("Keys", size::HEADLINE, Weight::SemiBold, theme.text));
            ui.add_space(6.0);
            let file = self.files.current().map(|open| open.document.clone());
            let mut rows: Vec<(String, String)> = Vec::new();
            for entry in COMMANDS {
                let words = match entry.command {
                    Command::View(number) => {
                        let title =
                            file.as_ref().and_then(|file| VIEWS.shown_for(file).nth(number)).map(|view| view.title);
                        let Some(title) = title else { continue };
                        title.to_owned()
                    }
                    _ if entry.key.is_none() => continue,
                    _ => entry.words.to_owned(),
                };
                rows.push((entry.keys.to_owned(), words));
            }
            rows.extend(
                widget_keys::KEYS
                    .iter()
                    .chain(chart::KEYS)
                    .chain(VIEWS.0.iter().flat_map(|view| view.keys))
                    .map(|(keys, words)| ((*keys).to_owned(), (*words).to_owned())),
            );
            let half = rows.len().div_ceil(2);
            let height = (ui.ctx().content_rect().height() - 190.0).max(160.0);
            let scroll = egui::ScrollArea::vertical().max_height(height).min_scrolled_height(height);
            scroll.show(ui, |ui| {
                ui.columns(2, |columns| {
                    for (i, (keys, words)) in rows.iter().enumerate() {
                        let ui = &mut columns[i / half];
                        ui.horizontal(|ui| {
                            ui.allocate_ui(Vec2::new(112.0, 18.0), |ui| {
                                ui.set_min_width(112.0);
                                ui.label(text(keys, size::SMALL, Weight::MonoMedium, theme.text));
                            });
                            ui.label(text(words, size::BODY, Weight::Regular, theme.text2));
                        });
                    }
                });
            });
            let words = "Every command, also those without keys: Ctrl P";
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
            ui.add_space(6.0);
            controls::button(ui, "Close", "Esc", false, theme).clicked()
        });
        if modal.inner || modal.should_close() {
            self.help = false;
        }
    }

    fn path_sheet(&mut self, ui: &Ui, theme: &Theme) {
        let Some((mut path, purpose)) = self.path_field.take() else { return };
        let mut open = None;
        let (title, verb) = purpose.words();
        let modal = egui::Modal::new(egui::Id::unique("path")).frame(sheet_frame(theme)).show(ui.ctx(), |ui| {
            ui.set_width(520.0);
            ui.label(text(title, size::HEADLINE, Weight::SemiBold, theme.text));
            let why = "This desktop has no file dialog (neither a portal nor zenity). Type or paste the path.";
            ui.label(text(why, size::BODY, Weight::Regular, theme.text2));
            let edit =
                egui::TextEdit::singleline(&mut path).font(Weight::Mono.at(size::BODY)).desired_width(f32::INFINITY);
            let response = ui.add(edit);
            response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Path"));
            let entered = response.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter));
            response.request_focus();
            ui.horizontal(|ui| {
                if controls::button(ui, verb, "Enter", true, theme).clicked() || entered {
                    open = Some(std::path::PathBuf::from(path.trim()));
                }
                controls::button(ui, "Cancel", "Esc", false, theme).clicked()
            })
            .inner
        });
        let closed = modal.inner || modal.should_close();
        match open.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => self.answered(purpose, vec![path]),
            None if closed => {}
            None => self.path_field = Some((path, purpose)),
        }
    }
}

/// Frame of a sheet over the window.
pub(in crate::ui::app) fn sheet_frame(theme: &Theme) -> Frame {
    Frame::new()
        .fill(theme.panel)
        .stroke(Stroke::new(1.0, theme.line2))
        .corner_radius(space::RADIUS)
        .inner_margin(Margin::same(24))
}
