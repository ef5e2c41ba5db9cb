//! Screens and cards that are not views: the welcome screen, errors, the path field.

use std::path::PathBuf;

use egui::{Frame, Key, Margin, Rect, Role, Stroke, Ui, Vec2, WidgetInfo};

use crate::model::counted;
use crate::open::Target;
use crate::ui::app::help::state::HelpPage;
use crate::ui::app::{App, Command};
use crate::ui::view::VIEWS;
use crate::ui::widget::controls;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size, space};

/// Maximum number of recent files on the empty window.
const RECENT: usize = 6;

impl App {
    /// The screen shown while no file is open.
    pub(in crate::ui::app) fn welcome(&mut self, ui: &mut Ui, theme: &Theme) {
        let full = ui.max_rect();
        let width = 560.0f32.min(full.width() - 32.0);
        let recent = self.recent().len().min(RECENT) as f32;
        let height = (346.0 + recent * 26.0 + if recent > 0.0 { 34.0 } else { 0.0 }).min(full.height() - 24.0);
        let rect = Rect::from_center_size(full.center() - Vec2::new(0.0, 20.0), Vec2::new(width, height));
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rect));
        let ui = &mut child;
        if self.files.is_loading() {
            ui.label(text("Reading", size::VERDICT_SMALL, Weight::SemiBold, theme.text));
            ui.label(text("Progress is shown in the list on the left.", size::LEAD, Weight::Regular, theme.text2));
            return;
        }
        let followed = self.files.groups.iter().find(|group| group.following.is_some());
        if let Some(group) = followed.filter(|_| self.files.entries.is_empty()) {
            let name = self.listed_name(&group.name);
            ui.label(text("Waiting for programs", size::VERDICT_SMALL, Weight::SemiBold, theme.text));
            let words =
                format!("They appear here as soon as they are complete in {name}, and one that fails is shown.");
            ui.add(egui::Label::new(text(words, size::LEAD, Weight::Regular, theme.text2)).wrap());
            return;
        }
        if !self.files.entries.is_empty() {
            ui.label(text("Choose a program", size::VERDICT_SMALL, Weight::SemiBold, theme.text));
            ui.label(text("Programs are listed on the left, worst first.", size::LEAD, Weight::Regular, theme.text2));
            return;
        }
        ui.label(text("Drop a memory profile here", size::VERDICT, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        for line in crate::decode::inputs() {
            ui.label(text(line, size::LEAD, Weight::Regular, theme.text2));
        }
        ui.add_space(14.0);
        ui.horizontal(|ui| {
            if controls::toggle_button(ui, "Open\u{2026}", "Ctrl O", controls::On(true), theme).clicked() {
                self.run(Command::Open);
            }
            if controls::button(ui, "Open folder\u{2026}", "", theme).clicked() {
                self.run(Command::OpenFolder);
            }
            if controls::button(ui, "Open the sample", "", theme).clicked() {
                self.run(Command::Sample);
            }
            ui.label(text("a training step that does not fit", size::SMALL, Weight::Regular, theme.text3));
        });
        ui.add_space(10.0);
        ui.horizontal(|ui| {
            if controls::link_sized(ui, "How do I get a dump?", size::BODY, theme).clicked() {
                self.run(Command::Help(HelpPage::Dump));
            }
            ui.add_space(8.0);
            if controls::link_sized(ui, "Follow a folder\u{2026}", size::BODY, theme).clicked() {
                self.run(Command::FollowFolder);
            }
        });
        self.recent_list(ui, theme);
        ui.add_space(14.0);
        let promise =
            "Nothing leaves this machine: Highwater has no network access. Highwater never changes your files.";
        ui.label(text(promise, size::BODY, Weight::Regular, theme.text3));
    }

    /// Recent files.
    fn recent_list(&mut self, ui: &mut Ui, theme: &Theme) {
        let recent = self.recent();
        if recent.is_empty() {
            return;
        }
        ui.add_space(14.0);
        ui.label(text("Recent files", size::BODY, Weight::SemiBold, theme.text));
        if let Some(path) = self.recent_rows(ui, theme, recent.into_iter().take(RECENT)) {
            self.open(Target::Path(path));
        }
    }

    /// Recent files, one row each; returns the one that was clicked.
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
            let response = controls::menu_row(ui, &name, title, theme);
            if response.on_hover_text(place).clicked() {
                chosen = Some(path);
            }
        }
        chosen
    }

    /// File name and folder of a path; both empty while names are hidden.
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

    /// Error cards for files that could not be read, newest first, below the view so that they do not cover it. What is
    /// older than the file opened last is folded into a line. Open files stay open.
    pub(in crate::ui::app) fn error_cards(&mut self, ui: &mut Ui, theme: &Theme) {
        let cards = self.failures();
        if cards.is_empty() {
            return;
        }
        let files = self.errors.len();
        // Failed jobs are after the files and never folded.
        let is_folded = |index: usize| index < self.folded_errors;
        let order: Vec<usize> = (files..cards.len()).rev().chain((0..files).rev()).collect();
        let (folded, open): (Vec<usize>, Vec<usize>) = order.into_iter().partition(|&index| is_folded(index));
        let frame = Frame::new().fill(theme.panel).inner_margin(Margin::symmetric(12, 6));
        let mut pressed = None;
        let shown = egui::Panel::bottom("error cards").resizable(false).frame(frame).show(ui, |ui| {
            let most = ui.ctx().content_rect().height() * MOST_HEIGHT;
            if cards.len() > 1 {
                ui.horizontal(|ui| {
                    let mut words = String::new();
                    if !folded.is_empty() {
                        let kind = if open.is_empty() { "file" } else { "earlier file" };
                        words = format!("{} could not be read", counted(folded.len() as u64, kind));
                    } else if open.len() > MOST_CARDS {
                        words = format!("{} of {} are shown", MOST_CARDS, counted(open.len() as u64, "error"));
                    }
                    ui.label(text(words, size::BODY, Weight::Regular, theme.text2));
                    if !folded.is_empty() && controls::button(ui, "Show", "", theme).clicked() {
                        pressed = Some(Answer::Unfold);
                    }
                    if controls::button(ui, "Dismiss all", "", theme).clicked() {
                        pressed = Some(Answer::DismissAll);
                    }
                });
            } else if !folded.is_empty() {
                ui.horizontal(|ui| {
                    let words = "1 file could not be read";
                    ui.label(text(words, size::BODY, Weight::Regular, theme.text2));
                    if controls::button(ui, "Show", "", theme).clicked() {
                        pressed = Some(Answer::Unfold);
                    }
                    if controls::button(ui, "Dismiss", "", theme).clicked() {
                        pressed = Some(Answer::DismissAll);
                    }
                });
            }
            if open.is_empty() {
                return;
            }
            egui::ScrollArea::vertical().max_height(most).min_scrolled_height(most).auto_shrink([false, true]).show(
                ui,
                |ui| {
                    for &index in open.iter().take(MOST_CARDS) {
                        if let Some(answer) = failure_card(ui, theme, &cards[index], index) {
                            pressed = Some(answer);
                        }
                    }
                    if open.iter().take(MOST_CARDS).any(|&index| cards[index].is_other_kind) {
                        let families: Vec<&str> = crate::decode::families().collect();
                        let hint = format!("Supported files. {}.", families.join(". "));
                        ui.add(egui::Label::new(text(hint, size::SMALL, Weight::Regular, theme.text3)).wrap());
                        // The welcome screen has it, too.
                        let is_welcome = self.files.entries.is_empty();
                        if !is_welcome && controls::link(ui, "How do I get a dump?", theme).clicked() {
                            pressed = Some(Answer::Help);
                        }
                    }
                },
            );
        });
        // A panel keeps the size of the previous frame.
        let (id, height) = (egui::Id::unique("height of the error cards"), shown.response.rect.height());
        if ui.data(|data| data.get_temp::<f32>(id)) != Some(height) {
            ui.data_mut(|data| data.insert_temp(id, height));
            ui.ctx().request_repaint();
        }
        match pressed {
            Some(Answer::Copy(index)) => {
                self.ctx.copy_text(cards[index].report.clone());
                self.say("Copied");
            }
            Some(Answer::Dismiss(index)) if index < files => drop(self.errors.remove(index)),
            Some(Answer::Dismiss(index)) => self.failed_jobs.dismiss(index - files),
            Some(Answer::DismissAll) => {
                self.errors.clear();
                self.folded_errors = 0;
                (files..cards.len()).for_each(|_| self.failed_jobs.dismiss(0));
            }
            Some(Answer::Unfold) => self.folded_errors = 0,
            Some(Answer::Help) => self.run(Command::Help(HelpPage::Dump)),
            None => {}
        }
    }

    /// Cards for files that could not be read, then for failed jobs.
    fn failures(&self) -> Vec<FailureCard> {
        let files = self.errors.iter().map(|(name, error)| {
            let (name, error) = if self.options.names_hidden {
                (self.aliases.file(name), self.aliases.sentence(error))
            } else {
                (name.clone(), error.clone())
            };
            // What can be read is told only of a file of another kind.
            let (words, is_other_kind) = match error.split_once(crate::decode::LOOKED_FOR) {
                Some((what, _)) => (what.to_owned(), true),
                None => (error.clone(), false),
            };
            let done = if error.starts_with(NOT_WRITTEN) { "write" } else { "read" };
            FailureCard {
                title: format!("Could not {done} {name}"),
                hint: "",
                is_other_kind,
                copy: "Copy details",
                report: format!("{name}: {error}"),
                words,
            }
        });
        let jobs = self.failed_jobs.list().into_iter().map(|failed| FailureCard {
            title: format!("Could not compute: {}", failed.job),
            hint: "This is a bug in Highwater. The report contains nothing from your profile.",
            is_other_kind: false,
            copy: "Copy report",
            report: failed.report(),
            words: failed.message,
        });
        files.chain(jobs).collect()
    }

    pub(in crate::ui::app) fn overlays(&mut self, ui: &Ui, theme: &Theme) {
        self.performance_panel(ui, theme);
        self.drop_overlay(ui, theme);
        self.palette_sheet(ui, theme);
        self.help_sheet(ui, theme);
        if self.path_field.is_some() {
            self.path_sheet(ui, theme);
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
            let mut shown = edit.show(ui);
            let response = &shown.response;
            response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Path"));
            let entered = response.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter));
            // What is typed first replaces the name that is proposed.
            if !response.has_focus() && !response.lost_focus() && !path.is_empty() {
                let all = egui::text::CCursorRange::two(
                    egui::text::CCursor::new(0),
                    egui::text::CCursor::new(path.chars().count()),
                );
                shown.state.cursor.set_char_range(Some(all));
                shown.state.clone().store(ui.ctx(), response.id);
            }
            shown.response.request_focus();
            if purpose.saves()
                && let Some(folder) = folder_of(&path)
            {
                let words = format!("Saves in {folder}");
                ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
            }
            ui.horizontal(|ui| {
                if controls::toggle_button(ui, verb, "Enter", controls::On(true), theme).clicked() || entered {
                    open = Some(std::path::PathBuf::from(path.trim()));
                }
                controls::button(ui, "Cancel", "Esc", theme).clicked()
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

/// How an error about a file that could not be written begins.
pub(in crate::ui::app) const NOT_WRITTEN: &str = "could not be written";

/// The folder in which a path lies; where it names none, that in which Highwater was started.
fn folder_of(path: &str) -> Option<String> {
    let whole = std::path::absolute(path.trim()).ok()?;
    Some(whole.parent()?.display().to_string())
}

/// Frame of a modal sheet.
pub(in crate::ui::app) fn sheet_frame(theme: &Theme) -> Frame {
    Frame::new()
        .fill(theme.panel)
        .stroke(Stroke::new(1.0, theme.line2))
        .corner_radius(space::RADIUS)
        .inner_margin(Margin::same(24))
}

/// A card for an error.
struct FailureCard {
    title: String,
    words: String,
    hint: &'static str,
    /// Whether the file is of a kind that cannot be read.
    is_other_kind: bool,
    /// Label of the button that copies the report.
    copy: &'static str,
    report: String,
}

/// A click on an error card, by its index, or on the line above them.
enum Answer {
    Copy(usize),
    Dismiss(usize),
    DismissAll,
    Unfold,
    Help,
}

/// Maximum number of cards shown at once.
const MOST_CARDS: usize = 3;
/// Share of the window that error cards take at most; what is more is scrolled to.
const MOST_HEIGHT: f32 = 0.35;

/// Width reserved for a card's buttons, in points.
const BUTTONS: f32 = 210.0;

/// Draws a card in the available width; returns the button that was pressed.
fn failure_card(ui: &mut Ui, theme: &Theme, card: &FailureCard, index: usize) -> Option<Answer> {
    let mut answer = None;
    let margin = Margin { left: 14, right: 8, top: 6, bottom: 6 };
    let shown = Frame::new().inner_margin(margin).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.horizontal_top(|ui| {
            let room = (ui.available_width() - BUTTONS).max(160.0);
            ui.vertical(|ui| {
                ui.set_width(room);
                ui.add(egui::Label::new(text(&card.title, size::BODY, Weight::SemiBold, theme.text)).wrap());
                ui.add(egui::Label::new(text(&card.words, size::BODY, Weight::Regular, theme.text2)).wrap());
                if !card.hint.is_empty() {
                    ui.add(egui::Label::new(text(card.hint, size::SMALL, Weight::Regular, theme.text3)).wrap());
                }
            });
            if controls::button(ui, card.copy, "", theme).clicked() {
                answer = Some(Answer::Copy(index));
            }
            if controls::button(ui, "Dismiss", "", theme).clicked() {
                answer = Some(Answer::Dismiss(index));
            }
        });
    });
    let card = shown.response.rect;
    let edge = Rect::from_min_size(card.min, Vec2::new(3.0, card.height()));
    ui.painter().rect_filled(edge, 0.0, theme.over);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::session::Options;

    #[test]
    fn what_could_not_be_written_is_not_said_to_be_unreadable() {
        let context = egui::Context::default();
        let mut app = App::new(&context, Options { synchronous: true, ..Options::default() });
        app.errors.push(("view.png".to_owned(), format!("{NOT_WRITTEN}: no such folder")));
        app.errors.push(("old.hlo.pb".to_owned(), "damaged".to_owned()));
        let titles: Vec<String> = app.failures().into_iter().map(|card| card.title).collect();
        assert_eq!(titles, ["Could not write view.png", "Could not read old.hlo.pb"]);
    }

    #[test]
    fn a_name_alone_is_saved_in_the_folder_highwater_was_started_in() {
        let here = std::env::current_dir().expect("a folder").display().to_string();
        assert_eq!(folder_of("view.png"), Some(here));
    }
}
