//! The command palette (Ctrl P): every command, view, file and program, and the program's buffers by name. Typing
//! narrows the list, the arrow keys move in it, Enter runs the chosen line.

use std::sync::Arc;

use egui::{Key, Modifiers, Pos2, Response, Role, Sense, Ui, Vec2, WidgetInfo};

use super::palette_matches::{CommandPalette, LEAST, buffers, leads, score};
use crate::model::{BufferId, MemorySpace};
use crate::ui::app::App;
use crate::ui::app::chrome::cards;
use crate::ui::app::commands::{COMMANDS, Command, also_called};
use crate::ui::app::files::FileState;
use crate::ui::view::VIEWS;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size, space};
use crate::ui::work::Job;

/// Maximum number of lines.
const LINES: usize = 60;
/// What a line has before all buffers if a word of it begins with what was typed.
const NAMED: i32 = 1000;
/// Height of the list in points.
const HEIGHT: f32 = 400.0;

/// What choosing a line does.
#[derive(Debug, Clone, PartialEq)]
enum Goal {
    Command(Command),
    View(&'static str),
    File(usize),
    Compare(usize),
    Column(usize),
    Program(usize),
    Buffer(BufferId),
}

/// A line.
#[derive(Debug, Clone)]
struct Line {
    goal: Goal,
    words: String,
    /// Text on the right: a shortcut or a size.
    more: String,
    score: i32,
}

impl App {
    /// Draws the palette if it is open.
    pub(in crate::ui::app) fn palette_sheet(&mut self, ui: &Ui, theme: &Theme) {
        let Some(mut palette) = self.palette.take() else { return };
        let mut goal = None;
        let frame = cards::sheet_frame(theme).inner_margin(12);
        let modal = egui::Modal::new(egui::Id::unique("palette")).frame(frame).show(ui.ctx(), |ui| {
            ui.set_width(620.0f32.min(ui.ctx().content_rect().width() - 60.0));
            let moved = ui.input_mut(|input| {
                let mut pressed = |key| i64::from(input.consume_key(Modifiers::NONE, key));
                let page = (HEIGHT / space::CONTROL) as i64;
                pressed(Key::ArrowDown) - pressed(Key::ArrowUp) + page * (pressed(Key::PageDown) - pressed(Key::PageUp))
            });
            // Focus is requested before the field is drawn, so that the first letter is not lost.
            let id = egui::Id::unique("palette field");
            ui.memory_mut(|memory| memory.request_focus(id));
            let edit = egui::TextEdit::singleline(&mut palette.text)
                .id(id)
                .hint_text("Go to a command, a view, a file, a buffer")
                .font(Weight::Regular.at(size::LEAD))
                .desired_width(f32::INFINITY)
                .margin(Vec2::new(8.0, 6.0));
            let response = ui.add(edit);
            response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Go to"));
            if response.changed() {
                palette.chosen = 0;
                palette.is_entered = false;
            }
            response.request_focus();
            ui.add_space(6.0);
            // Letters typed in this frame already filter its lines; Enter waits until the buffer search is done.
            self.search_buffers(&mut palette);
            let lines = self.lines(&palette);
            let last = lines.len().saturating_sub(1) as i64;
            palette.chosen = (palette.chosen as i64 + moved).clamp(0, last) as usize;
            palette.is_entered |= ui.input(|i| i.key_pressed(Key::Enter));
            if palette.is_entered && palette.searching.is_none() {
                palette.is_entered = false;
                goal = lines.get(palette.chosen).map(|line| line.goal.clone());
            }
            egui::ScrollArea::vertical().max_height(HEIGHT).min_scrolled_height(HEIGHT).show(ui, |ui| {
                ui.set_min_height(HEIGHT);
                ui.spacing_mut().item_spacing.y = 0.0;
                if lines.is_empty() {
                    let words = if palette.searching.is_some() { "Searching\u{2026}" } else { "No match" };
                    ui.add_space(12.0);
                    ui.label(text(words, size::BODY, Weight::Regular, theme.text2));
                }
                for (i, line) in lines.iter().enumerate() {
                    let chosen = i == palette.chosen;
                    let response = draw(ui, theme, line, chosen);
                    if chosen && moved != 0 {
                        response.scroll_to_me(None);
                    }
                    if response.clicked() {
                        goal = Some(line.goal.clone());
                    }
                }
            });
        });
        match goal {
            Some(goal) => self.reach(&goal),
            None if modal.should_close() => {}
            None => self.palette = Some(palette),
        }
    }

    /// All matching lines, best first.
    fn lines(&self, palette: &CommandPalette) -> Vec<Line> {
        let text = palette.text.trim();
        let mut lines: Vec<Line> = Vec::new();
        let mut add = |goal: Goal, words: String, more: String, before: i32| {
            let also = if let Goal::Command(command) = goal { also_called(command) } else { "" };
            let score = score(text, &words).into_iter().chain(score(text, also).filter(|_| leads(text, also))).max();
            if let Some(score) = score {
                // What is named by the words that were typed comes before all buffers, which may be many.
                let named = match (leads(text, &words) || leads(text, also), &goal) {
                    // An open file to compare with before any file.
                    (true, Goal::Compare(_)) => NAMED + 100,
                    (true, _) => NAMED,
                    (false, _) => 0,
                };
                lines.push(Line { goal, words, more, score: score + before + named });
            }
        };
        let open = self.files.current().filter(|open| !self.is_veiled(open));
        if let Some(open) = open {
            for known in VIEWS.shown_for(&open.document) {
                let key = VIEWS.digit_of(known, &open.document);
                add(Goal::View(known.id), format!("View: {}", known.title), key, 3);
            }
        }
        for entry in COMMANDS.iter().filter(|entry| !matches!(entry.command, Command::View(_) | Command::Palette)) {
            add(Goal::Command(entry.command), entry.words.to_owned(), entry.keys.to_owned(), 2);
        }
        for (i, entry) in self.files.entries.iter().enumerate() {
            let name = self.distinct_name_of(entry);
            if matches!(entry.state, FileState::Open(_) | FileState::Listed(_)) {
                let kind = if entry.group.is_some() { "Program" } else { "File" };
                let need = entry.known().map(|(need, _)| self.options.units.short(need)).unwrap_or_default();
                add(Goal::File(i), format!("{kind}: {name}"), need, 2);
            }
            let is_other = self.files.current.is_some_and(|current| current != i);
            if is_other && self.files.current().is_some() && !matches!(entry.state, FileState::Failed(_)) {
                add(Goal::Compare(i), format!("Compare with: {name}"), String::new(), 0);
                if self.is_comparing() {
                    let words = format!("Add to the comparison: {name}");
                    add(Goal::Column(i), words, String::new(), 0);
                }
            }
        }
        if let Some(open) = open.filter(|open| open.document.profile.programs.len() > 1) {
            for (i, program) in open.document.profile.programs.iter().enumerate() {
                let need = open.document.program(i).and_then(|(_, analysis)| analysis.main_space());
                let need = need.map(|space| self.options.units.short(space.xprof.allocated)).unwrap_or_default();
                add(Goal::Program(i), format!("Program: {}", program.name), need, 1);
            }
        }
        let known = palette.found.as_ref().filter(|(of, _)| of.as_str() == text);
        if let Some((_, found)) = known.filter(|_| text.chars().count() >= LEAST) {
            for (score, buffer, name, op) in found.iter() {
                let words = if op.is_empty() { name.clone() } else { format!("{name}   {op}") };
                let bytes = open.and_then(|open| open.document.program(open.shared.program));
                let more = bytes.map(|(program, _)| self.options.units.short(program.buffers.size_of(*buffer)));
                let more = more.unwrap_or_default();
                lines.push(Line { goal: Goal::Buffer(*buffer), words, more, score: *score });
            }
        }
        // The sort is stable: equal scores keep the order above.
        lines.sort_by_key(|line| std::cmp::Reverse(line.score));
        lines.truncate(LINES);
        lines
    }

    /// Searches buffers on a worker, one search at a time.
    fn search_buffers(&self, palette: &mut CommandPalette) {
        if let Some((text, job)) = &mut palette.searching {
            if let Some(found) = job.poll() {
                palette.found = Some((text.clone(), Arc::clone(found)));
            } else if job.is_running() {
                return;
            }
            palette.searching = None;
        }
        let text = palette.text.trim().to_owned();
        let Some(open) = self.files.current().filter(|open| !self.is_veiled(open)) else { return };
        if text.chars().count() < LEAST || palette.found.as_ref().is_some_and(|(of, _)| *of == text) {
            return;
        }
        let (document, program) = (Arc::clone(&open.document), open.shared.program);
        let wanted = text.clone();
        let mut job = Job::start(&self.work(), "palette", move || Arc::new(buffers(&document, program, &wanted)));
        if let Some(found) = job.poll() {
            palette.found = Some((text, Arc::clone(found)));
        } else {
            palette.searching = Some((text, job));
        }
    }

    fn reach(&mut self, goal: &Goal) {
        match goal {
            Goal::Command(command) => self.run(*command),
            Goal::File(index) => {
                let work = self.work();
                self.files.show(*index, &work);
                self.poll();
            }
            Goal::Compare(index) => self.compare_with(*index),
            Goal::Column(index) => self.add_column(*index),
            Goal::View(_) | Goal::Program(_) | Goal::Buffer(_) => {
                let Some(open) = self.files.current_mut() else { return };
                open.shared.begin_turn();
                match goal {
                    Goal::View(id) => open.shared.show_view(id),
                    Goal::Program(index) => {
                        let main = open.document.program(*index).and_then(|(_, analysis)| analysis.main_space());
                        open.shared.choose(*index, main.map_or(MemorySpace::HBM, |space| space.color));
                    }
                    Goal::Buffer(buffer) => {
                        open.shared.select(*buffer);
                        if !VIEWS.by_id(open.shared.view).is_some_and(|view| view.shows_buffers) {
                            open.shared.show_view("timeline");
                        }
                    }
                    Goal::Command(_) | Goal::File(_) | Goal::Compare(_) | Goal::Column(_) => {}
                }
            }
        }
    }
}

/// Draws a line.
fn draw(ui: &mut Ui, theme: &Theme, line: &Line, chosen: bool) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), space::CONTROL), Sense::click());
    if chosen {
        ui.painter().rect_filled(rect, space::RADIUS, theme.accent_bg);
        ui.painter().rect_filled(egui::Rect::from_min_size(rect.min, Vec2::new(3.0, rect.height())), 0.0, theme.accent);
    } else if response.hovered() {
        ui.painter().rect_filled(rect, space::RADIUS, theme.hover);
    }
    let y = rect.center().y;
    let small = Weight::Mono.at(size::SMALL);
    let at = Pos2::new(rect.right() - 8.0, y);
    let more = ui.painter().text(at, egui::Align2::RIGHT_CENTER, &line.more, small.clone(), theme.text2);
    let font = if matches!(line.goal, Goal::Buffer(_)) { small } else { Weight::Medium.at(size::BODY) };
    let at = Pos2::new(rect.left() + 12.0, y);
    let room = more.left() - at.x - 12.0;
    paint_cut(ui.painter(), (at, egui::Align2::LEFT_CENTER), &line.words, font, theme.text, room);
    response
        .widget_info(|| WidgetInfo::selected(Role::ListItem, true, chosen, format!("{} {}", line.words, line.more)));
    response
}
