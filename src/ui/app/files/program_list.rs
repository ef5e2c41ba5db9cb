//! The list on the left: files, and the programs of folders, archives and traces, worst first. Only visible rows are
//! laid out.

use std::path::PathBuf;

use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::program_row::ListStyle;
use crate::model::{counted, thousands};
use crate::ui::app::files::{FileEntry, FileState, reveal};
use crate::ui::app::{App, Command};
use crate::ui::widget::controls::{self, hairline, paint_cut};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size, space};

/// Height of an entry in points.
pub const ROW: f32 = 64.0;
/// Height of a group's header in points.
const HEAD: f32 = 40.0;
/// Maximum number of entries without a search field.
const FEW: usize = 7;

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Header of a group: index into the groups.
    Head(usize),
    /// A file or program: index into the entries.
    Entry(usize),
}

/// What a click asked for.
#[derive(Default)]
struct Asked {
    show: Option<usize>,
    compare: Option<usize>,
    column: Option<usize>,
    close: Option<usize>,
    close_group: Option<u32>,
    stop_group: Option<u32>,
    follow_group: Option<u32>,
    reload: Option<usize>,
    copy: Option<String>,
    reveal: Option<PathBuf>,
}

impl App {
    pub(in crate::ui::app) fn program_list(&mut self, ui: &mut Ui, style: ListStyle<'_>) {
        let ListStyle { theme, rail } = style;
        let full = ui.max_rect();
        controls::vline(ui, full.right() - 1.0, full.top(), full.bottom(), theme.line);
        let head = Rect::from_min_size(full.min, Vec2::new(full.width(), 36.0));
        let lines = self.listed_lines();
        if !rail {
            self.list_head(ui, theme, head, &lines);
        }
        hairline(ui, head, theme.line);
        let top = head.bottom();
        let foot = Rect::from_min_max(Pos2::new(full.left(), full.bottom() - 64.0), full.max);
        let mut end = foot.top();
        // Below the list: where it comes with one more entry, no row moves.
        if !rail && (self.files.entries.len() > FEW || !self.search.is_empty()) {
            let field = Rect::from_min_size(
                Pos2::new(full.left() + 12.0, end - 6.0 - space::CONTROL),
                Vec2::new(full.width() - 25.0, space::CONTROL),
            );
            let mut child = ui.new_child(egui::UiBuilder::new().max_rect(field).id_salt("search programs"));
            let edit = egui::TextEdit::singleline(&mut self.search)
                .hint_text("Search programs")
                .font(Weight::Mono.at(size::SMALL))
                .desired_width(field.width());
            let response = child.add_sized(field.size(), edit);
            response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Search programs"));
            self.searching = response.has_focus();
            if (response.has_focus() || response.lost_focus()) && child.input(|i| i.key_pressed(egui::Key::Escape)) {
                self.search.clear();
            }
            end = field.top() - 6.0;
        }
        let list = Rect::from_min_max(Pos2::new(full.left(), top), Pos2::new(full.right() - 1.0, end));
        let mut asked = Asked::default();
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(list));
        let reveal = self.files.current.filter(|_| self.revealed != self.files.current);
        self.rows(&mut child, style, &lines, reveal, &mut asked);
        self.revealed = self.files.current;
        let work = self.work();
        if let Some(index) = asked.show {
            self.files.show(index, &work);
            self.poll();
        }
        if let Some(index) = asked.compare {
            self.compare_with(index);
        }
        if let Some(index) = asked.column {
            self.add_column(index);
        }
        if let Some(index) = asked.close {
            match self.files.entries.get(index).and_then(|entry| self.files.own_list(entry)).map(|list| list.id) {
                Some(id) => self.files.close_group(id),
                None => self.files.close(index),
            }
        }
        if let Some(index) = asked.reload {
            self.files.reload(index, &work);
            self.poll();
        }
        if let Some(path) = asked.copy {
            self.ctx.copy_text(path);
            self.say("Path copied");
        }
        if let Some(path) = asked.reveal
            && let Err(error) = reveal::reveal(&path)
        {
            self.say(&format!("Could not start a file manager: {error}"));
        }
        if let Some(id) = asked.close_group {
            self.files.close_group(id);
        }
        if let Some(group) = asked.stop_group.and_then(|id| self.files.groups.iter_mut().find(|group| group.id == id)) {
            group.sorting = None;
        }
        if let Some(id) = asked.follow_group {
            self.files.toggle_following(id, &work);
        }
        hairline(ui, Rect::from_min_max(full.min, Pos2::new(full.right(), foot.top())), theme.line);
        let mut child =
            ui.new_child(egui::UiBuilder::new().max_rect(foot.shrink2(Vec2::new(if rail { 4.0 } else { 16.0 }, 10.0))));
        if rail {
            if controls::link(&mut child, "Open", theme).clicked() {
                self.run(Command::Open);
            }
            return;
        }
        child.horizontal(|ui| {
            if controls::link_sized(ui, "Open\u{2026}", size::BODY, theme).clicked() {
                self.run(Command::Open);
            }
            ui.add_space(8.0);
            if controls::link_sized(ui, "Open folder\u{2026}", size::BODY, theme).clicked() {
                self.run(Command::OpenFolder);
            }
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                ui.label(text("Ctrl O", size::SMALL, Weight::Mono, theme.text3));
            });
        });
        child.label(text("or drop files anywhere", size::SMALL, Weight::Regular, theme.text2));
    }

    /// Header of the list: number of entries, or of search results.
    fn list_head(&self, ui: &Ui, theme: &Theme, head: Rect, lines: &[Line]) {
        let all = self.files.entries.len() as u64;
        let shown = lines.iter().filter(|line| matches!(line, Line::Entry(_))).count() as u64;
        let kind = if self.files.groups.is_empty() { "file" } else { "program" };
        let words = match all {
            _ if shown < all => format!("{} of {}", thousands(shown), thousands(all)),
            _ => match self.files.failing() {
                // The row of a single one says whether it fits.
                failing if failing == 0 || all == 1 => counted(all, kind),
                1 => format!("1 of {} does not fit", thousands(all)),
                failing => format!("{} of {} do not fit", thousands(failing as u64), thousands(all)),
            },
        };
        let y = head.center().y;
        let small = Weight::Medium.at(size::SMALL);
        let left = Pos2::new(head.left() + 16.0, y);
        ui.painter().text(left, Align2::LEFT_CENTER, "Session", small.clone(), theme.text2);
        ui.painter().text(Pos2::new(head.right() - 16.0, y), Align2::RIGHT_CENTER, words, small, theme.text2);
    }

    /// Headers and entries in order, filtered by the search text.
    fn listed_lines(&self) -> Vec<Line> {
        let search = self.search.to_lowercase();
        let words: Vec<&str> = search.split_whitespace().collect();
        let mut lines = Vec::with_capacity(self.files.entries.len() + self.files.groups.len());
        let mut last = None;
        for (index, entry) in self.files.entries.iter().enumerate() {
            if !words.is_empty() && !contains(entry, &words) {
                continue;
            }
            if entry.group != last {
                last = entry.group;
                let group = self.files.groups.iter().position(|group| Some(group.id) == entry.group);
                // A group of one needs no header, unless more may come.
                let has_head = |&row: &usize| {
                    let group = &self.files.groups[row];
                    group.collection.entries.len() > 1 || group.following.is_some()
                };
                lines.extend(group.filter(has_head).map(Line::Head));
            }
            lines.push(Line::Entry(index));
        }
        let is_empty = |id: u32| self.files.entries.iter().all(|entry| entry.group != Some(id));
        let waiting = self.files.groups.iter().enumerate();
        let waiting = waiting.filter(|(_, group)| group.following.is_some() && is_empty(group.id));
        lines.extend(waiting.map(|(row, _)| Line::Head(row)));
        lines
    }

    fn rows(&self, ui: &mut Ui, style: ListStyle<'_>, lines: &[Line], reveal: Option<usize>, asked: &mut Asked) {
        let width = ui.available_width();
        let height = |line: &Line| if matches!(line, Line::Head(_)) { HEAD } else { ROW };
        let mut tops = Vec::with_capacity(lines.len() + 1);
        let mut total = 0.0f32;
        for line in lines {
            tops.push(total);
            total += height(line);
        }
        egui::ScrollArea::vertical().id_salt("session list").auto_shrink([false, false]).show_viewport(
            ui,
            |ui, seen| {
                ui.set_height(total);
                let origin = ui.min_rect().min;
                let at = reveal.and_then(|index| lines.iter().position(|line| *line == Line::Entry(index)));
                if let Some(row) = at {
                    let rect = Rect::from_min_size(origin + Vec2::new(0.0, tops[row]), Vec2::new(width, ROW));
                    ui.scroll_to_rect(rect, None);
                }
                let first = tops.partition_point(|&top| top <= seen.top()).saturating_sub(1);
                for (line, &top) in lines.iter().zip(&tops).skip(first).take_while(|(_, top)| **top < seen.bottom()) {
                    let rect = Rect::from_min_size(origin + Vec2::new(0.0, top), Vec2::new(width, height(line)));
                    match *line {
                        Line::Head(row) => self.group_head(ui, style, rect, row, asked),
                        Line::Entry(index) => self.entry(ui, style, rect, index, asked),
                    }
                }
            },
        );
    }

    fn entry(&self, ui: &mut Ui, style: ListStyle<'_>, rect: Rect, index: usize, asked: &mut Asked) {
        let theme = style.theme;
        let entry = &self.files.entries[index];
        let response = ui.interact(rect, ui.scope_id().with(("entry", index)), Sense::click());
        let current = self.files.current == Some(index);
        if current {
            ui.painter().rect_filled(rect, 0.0, theme.accent_bg);
            ui.painter().rect_filled(Rect::from_min_size(rect.min, Vec2::new(3.0, ROW)), 0.0, theme.accent);
        } else if response.hovered() || response.has_focus() {
            ui.painter().rect_filled(rect, 0.0, theme.hover);
        }
        if !current && self.is_compared(entry) {
            ui.painter().rect_filled(Rect::from_min_size(rect.min, Vec2::new(3.0, ROW)), 0.0, theme.accent);
        }
        let stops = self.row(ui, style, rect, index);
        let is_single = entry.group.is_none() || self.files.own_list(entry).is_some();
        let closes = is_single && !style.rail && !matches!(entry.state, FileState::Loading(_)) && {
            let at = Rect::from_center_size(Pos2::new(rect.right() - 15.0, rect.top() + 17.0), Vec2::splat(20.0));
            self.close_button(ui, theme, at, entry, response.contains_pointer())
        };
        if stops || closes || response.middle_clicked() {
            asked.close = Some(index);
        }
        self.row_menu(&response, theme, (entry, index), asked);
        let kind = if entry.group.is_some() { "Program" } else { "File" };
        response.widget_info(|| {
            WidgetInfo::selected(Role::ListItem, true, current, format!("{kind} {}", self.distinct_name_of(entry)))
        });
        if response.clicked() && !matches!(entry.state, FileState::Loading(_)) {
            let held = ui.input(|i| i.modifiers);
            if held.command && self.files.current.is_some() && !current {
                if held.shift && self.is_comparing() {
                    asked.column = Some(index);
                } else {
                    asked.compare = Some(index);
                }
            } else {
                asked.show = Some(index);
            }
        }
        if response.hovered() {
            let mut words = self.row_hint(entry);
            if !words.is_empty() {
                if !current && self.files.current().is_some() {
                    words.push_str("\nCtrl click: compare, with what is shown as before");
                }
                response.on_hover_text(words);
            }
        }
    }

    /// The close button of a row, visible while the pointer is over the row; returns whether it was clicked.
    fn close_button(&self, ui: &Ui, theme: &Theme, at: Rect, entry: &FileEntry, is_near: bool) -> bool {
        let response = ui.interact(at, ui.scope_id().with(("close", at.top() as i64)), Sense::click());
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Close {}", self.name_of(entry))));
        if is_near || response.hovered() || response.has_focus() {
            let color = if response.hovered() || response.has_focus() { theme.accent } else { theme.text2 };
            let font = Weight::Medium.at(size::LEAD);
            ui.painter().text(at.center(), Align2::CENTER_CENTER, "\u{00d7}", font, color);
        }
        response.clicked()
    }

    /// The context menu of a file.
    fn row_menu(
        &self,
        response: &egui::Response,
        theme: &Theme,
        (entry, index): (&FileEntry, usize),
        asked: &mut Asked,
    ) {
        let path = entry.target.origin().filter(|_| !self.options.names_hidden);
        egui::Popup::context_menu(response).show(|ui| {
            ui.set_min_width(220.0);
            ui.set_max_width(220.0);
            let mut row = |words: &str| controls::menu_row(ui, words, "", theme).clicked();
            let is_other = self.files.current.is_some_and(|current| current != index);
            if is_other && row("Compare with the one shown") {
                asked.compare = Some(index);
            }
            if is_other && self.is_comparing() && row("Add to the comparison") {
                asked.column = Some(index);
            }
            if row("Close") {
                asked.close = Some(index);
                asked.close_group = entry.group;
            }
            if let Some(path) = path {
                if row("Reload") {
                    asked.reload = Some(index);
                }
                if row("Copy path") {
                    asked.copy = Some(std::path::absolute(path).unwrap_or_else(|_| path.into()).display().to_string());
                }
                if row("Show in file manager") {
                    asked.reveal = Some(path.to_owned());
                }
            }
        });
    }

    /// Header of a folder, an archive or a trace: its name, number of programs and sorting progress.
    fn group_head(&self, ui: &mut Ui, style: ListStyle<'_>, rect: Rect, row: usize, asked: &mut Asked) {
        let ListStyle { theme, rail } = style;
        let group = &self.files.groups[row];
        let group_name = self.listed_name(&group.name);
        ui.painter().rect_filled(rect, 0.0, theme.inset);
        if rail {
            return;
        }
        let right = rect.right() - 16.0;
        let close = Rect::from_center_size(Pos2::new(right - 4.0, rect.top() + 14.0), Vec2::splat(20.0));
        let hover = ui.interact(rect, ui.scope_id().with(("group", group.id)), Sense::hover());
        let response = ui.interact(close, ui.scope_id().with(("close group", group.id)), Sense::click());
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Close {group_name}")));
        let color = if response.hovered() || response.has_focus() { theme.accent } else { theme.text3 };
        let painter = ui.painter().clone();
        painter.text(close.center(), Align2::CENTER_CENTER, "\u{00d7}", Weight::Medium.at(size::LEAD), color);
        if response.clicked() {
            asked.close_group = Some(group.id);
        }
        let name = Pos2::new(rect.left() + 16.0, rect.top() + 14.0);
        let room = close.left() - name.x - 6.0;
        paint_cut(
            &painter,
            (name, Align2::LEFT_CENTER),
            &group_name,
            Weight::SemiBold.at(size::SMALL),
            theme.text,
            room,
        );
        let small = Weight::Regular.at(size::SMALL);
        let at = Pos2::new(rect.left() + 16.0, rect.top() + 29.0);
        if let Some(sorting) = &group.sorting {
            let (_, share) = sorting.state();
            let words = sorting.words(self.options.units);
            painter.text(at, Align2::LEFT_CENTER, words, small, theme.text2);
            let track = Rect::from_min_max(Pos2::new(rect.left(), rect.bottom() - 2.0), rect.max);
            painter.rect_filled(
                Rect::from_min_size(track.min, Vec2::new(track.width() * share, 2.0)),
                0.0,
                theme.accent,
            );
            let cancel =
                Rect::from_min_max(Pos2::new(right - 50.0, rect.top() + 21.0), Pos2::new(right, rect.bottom() - 2.0));
            let response = ui.interact(cancel, ui.scope_id().with(("stop group", group.id)), Sense::click());
            response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Stop sorting {group_name}")));
            painter.text(
                cancel.right_center(),
                Align2::RIGHT_CENTER,
                "Stop",
                Weight::Medium.at(size::SMALL),
                theme.accent,
            );
            if response.clicked() {
                asked.stop_group = Some(group.id);
            }
        } else {
            let count = counted(group.collection.entries.len() as u64, "program");
            let unfinished = group.following.as_ref().map(|following| following.unfinished);
            let words = match unfinished {
                None => format!("{count}, worst first"),
                Some(0) => format!("Following: {count}"),
                Some(more) => format!("Following: {count}, {} to come", thousands(more as u64)),
            };
            let is_folder = group.path.as_ref().is_some_and(|path| unfinished.is_some() || path.is_dir());
            let (verb, spoken) = match unfinished {
                None => ("Follow", "Follow"),
                Some(_) => ("Stop", "Stop following"),
            };
            let mut room = right - at.x;
            if is_folder {
                let font = Weight::Medium.at(size::SMALL);
                let end = Pos2::new(right, at.y);
                let drawn = painter.text(end, Align2::RIGHT_CENTER, verb, font, theme.accent);
                let response = ui.interact(drawn.expand(3.0), ui.scope_id().with(("follow", group.id)), Sense::click());
                response.widget_info(|| {
                    WidgetInfo::selected(Role::Button, true, unfinished.is_some(), format!("{spoken} {group_name}"))
                });
                room = drawn.left() - 8.0 - at.x;
                if response.hovered() || response.has_focus() {
                    hairline(ui, drawn, theme.accent);
                }
                if response.clicked() {
                    asked.follow_group = Some(group.id);
                }
                let hint = "Programs appear as they are complete, and the newest that fails is shown";
                response.on_hover_text(hint);
            }
            paint_cut(&painter, (at, Align2::LEFT_CENTER), &words, small, theme.text2, room);
        }
        let path = group.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let notes: Vec<&str> =
            std::iter::once(path.as_str()).chain(group.collection.notes.iter().map(String::as_str)).collect();
        if !self.options.names_hidden {
            hover.on_hover_text(notes.join("\n"));
        }
        hairline(ui, rect, theme.line);
    }
}

/// Whether an entry's name, folder and file together contain all of the lower-case words.
fn contains(entry: &FileEntry, words: &[&str]) -> bool {
    let mut text = entry.name.to_lowercase();
    if let Some(listed) = entry.listed() {
        text = format!("{text} {} {}", listed.group.to_lowercase(), listed.file.to_lowercase());
    }
    words.iter().all(|word| text.contains(word))
}
