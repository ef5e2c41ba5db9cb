//! The palette of Ctrl P: every command, view, file and program, and the buffers of the program by name. Typing
//! narrows, arrows choose, Enter does it.

use std::sync::Arc;

use egui::{Key, Modifiers, Pos2, Role, Sense, Ui, Vec2, WidgetInfo};
use rayon::prelude::*;

use crate::model::{BufferId, MemorySpace};
use crate::ui::app::App;
use crate::ui::app::chrome::cards;
use crate::ui::app::commands::{COMMANDS, Command};
use crate::ui::app::files::FileState;
use crate::ui::session::Document;
use crate::ui::view::VIEWS;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size, space};
use crate::ui::work::Job;

/// Lines that are shown.
const LINES: usize = 60;
/// Buffers that are shown.
const BUFFERS: usize = 40;
/// Buffers are looked for from this many letters on.
const LEAST: usize = 2;
/// Height of the list.
const HEIGHT: f32 = 400.0;

/// What a line leads to.
#[derive(Debug, Clone, PartialEq)]
enum Goal {
    Command(Command),
    View(&'static str),
    File(usize),
    Program(usize),
    Buffer(BufferId),
}

/// A line.
#[derive(Debug, Clone)]
struct Line {
    goal: Goal,
    words: String,
    /// What stands at the right: keys, a size.
    more: String,
    score: i32,
}

/// Buffers that were found.
type Found = Vec<(i32, BufferId, String, String)>;

/// The open palette.
#[derive(Default)]
pub struct CommandPalette {
    text: String,
    chosen: usize,
    /// Enter was pressed while buffers were looked for.
    is_entered: bool,
    searching: Option<(String, Job<Arc<Found>>)>,
    found: Option<(String, Arc<Found>)>,
}

impl App {
    /// Draws the palette, where it is open.
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
            // The focus comes before the field is drawn, so that not even the first letter is lost.
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
            // What is typed in this turn counts for its lines, and Enter waits until the buffers are looked through.
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
                    let words = if palette.searching.is_some() { "Looking\u{2026}" } else { "Nothing has that name" };
                    ui.add_space(12.0);
                    ui.label(text(words, size::BODY, Weight::Regular, theme.text2));
                }
                for (i, line) in lines.iter().enumerate() {
                    if draw(ui, theme, line, i == palette.chosen, moved != 0) {
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

    /// Every line that the text fits, the best first.
    fn lines(&self, palette: &CommandPalette) -> Vec<Line> {
        let text = palette.text.trim();
        let mut lines: Vec<Line> = Vec::new();
        let mut add = |goal: Goal, words: String, more: String, before: i32| {
            if let Some(score) = score(text, &words) {
                lines.push(Line { goal, words, more, score: score + before });
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
            if matches!(entry.state, FileState::Open(_)) {
                add(Goal::File(i), format!("File: {}", self.name_of(entry)), String::new(), 1);
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
        // Stable: what is equally good stays in the order above.
        lines.sort_by_key(|line| std::cmp::Reverse(line.score));
        lines.truncate(LINES);
        lines
    }

    /// Looks for buffers off the window's thread, one search at a time.
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
            Goal::File(index) => self.files.current = Some(*index),
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
                    Goal::Command(_) | Goal::File(_) => {}
                }
            }
        }
    }
}

/// The buffers of a program whose name or operation fits best, the largest of equals first.
fn buffers(document: &Document, program: usize, text: &str) -> Found {
    let Some((model, _)) = document.program(program) else { return Vec::new() };
    let best = |mut found: Vec<(i32, BufferId)>| {
        found.sort_by_key(|&(score, buffer)| (std::cmp::Reverse((score, model.buffers.size_of(buffer))), buffer));
        found.truncate(BUFFERS);
        found
    };
    let rows = (0..model.buffers.len()).into_par_iter().with_min_len(4096).map(BufferId::from_index);
    let op_of = |buffer| model.buffers.instruction_of(buffer).map(|i| model.text.op_name(i)).unwrap_or_default();
    let found = rows
        .filter_map(|buffer| {
            let by_name = score(text, &model.buffer_name(buffer));
            // Of long paths only those with the words themselves: scattered letters are in all of them.
            let by_op = || op_of(buffer).to_lowercase().contains(&text.to_lowercase()).then_some(-4);
            Some((by_name.or_else(by_op)?, buffer))
        })
        .fold(Vec::new, |mut found, hit| {
            found.push(hit);
            if found.len() >= 8 * BUFFERS { best(found) } else { found }
        })
        .reduce(Vec::new, |mut a, b| {
            a.extend(b);
            best(a)
        });
    best(found).into_iter().map(|(score, b)| (score - 10, b, model.buffer_name(b), op_of(b))).collect()
}

/// How well letters fit a text: all must be there in order; those at the beginning of words and side by side count
/// more, and what has them as they were typed counts more than any other. `None` where one is missing.
fn score(letters: &str, words: &str) -> Option<i32> {
    let mut score = as_typed(letters, words);
    let mut last_was_hit = false;
    let mut before = ' ';
    let mut wanted = letters.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).peekable();
    for c in words.chars() {
        let lower = c.to_lowercase().next().unwrap_or(c);
        if wanted.peek() == Some(&lower) {
            wanted.next();
            score += 1 + if last_was_hit { 4 } else { 0 } + if before.is_alphanumeric() { 0 } else { 5 };
            last_was_hit = true;
        } else {
            last_was_hit = false;
        }
        before = c;
        if wanted.peek().is_none() {
            break;
        }
    }
    wanted.peek().is_none().then_some(score - words.chars().count() as i32 / 16)
}

/// What a text gains that has the letters in one piece: all of it, its beginning, a word's beginning, anywhere.
fn as_typed(letters: &str, words: &str) -> i32 {
    let typed = letters.trim().to_lowercase();
    if typed.is_empty() {
        return 0;
    }
    let whole = words.to_lowercase();
    let name = whole.split_once(": ").map_or(whole.as_str(), |(_, name)| name);
    match name.find(&typed) {
        Some(0) if name.len() == typed.len() => 80,
        Some(0) => 40,
        Some(at) if !name[..at].ends_with(char::is_alphanumeric) => 25,
        Some(_) => 15,
        None => 0,
    }
}

/// Draws a line; returns whether it was clicked.
fn draw(ui: &mut Ui, theme: &Theme, line: &Line, chosen: bool, moved: bool) -> bool {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), space::CONTROL), Sense::click());
    if chosen {
        ui.painter().rect_filled(rect, space::RADIUS, theme.accent_bg);
        ui.painter().rect_filled(egui::Rect::from_min_size(rect.min, Vec2::new(3.0, rect.height())), 0.0, theme.accent);
        if moved {
            response.scroll_to_me(None);
        }
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
    paint_cut(ui.painter(), at, egui::Align2::LEFT_CENTER, &line.words, font, theme.text, room);
    response
        .widget_info(|| WidgetInfo::selected(Role::ListItem, true, chosen, format!("{} {}", line.words, line.more)));
    response.clicked()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_at_beginnings_and_side_by_side_fit_best() {
        assert_eq!(score("xyz", "View: Timeline"), None);
        assert!(score("tim", "View: Timeline") > score("tim", "Clear step, selection, filter with more"));
        assert!(score("fus12", "fusion.12") > score("fus12", "fusion.1002"));
        assert!(score("", "anything").is_some());
        assert!(score("vt", "View: Timeline") > score("vt", "convert"));
        let buffer = score("copy.12", "copy.12").map(|score| score - 10);
        assert!(buffer > score("copy.12", "Copy a picture of the view, 1 or 2"), "what is typed comes first");
        assert!(score("top", "op.1 top") > score("top", "The one before, page"));
    }
}
