//! The filter field with completions for the last word.

use egui::{Key, Modifiers, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::analysis::table::{BufferTable, Filter, complete};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size, space};

/// Maximum number of completions.
const MOST: usize = 9;
const ROW: f32 = 24.0;

/// State of the filter field.
#[derive(Default)]
pub struct State {
    /// Whether the field takes the focus.
    pub focus: bool,
    /// Index of the chosen completion.
    chosen: usize,
    /// Text at which the completions were closed with Esc.
    closed: Option<String>,
    /// The text and its completions.
    offered: Option<(String, Vec<(String, String)>)>,
    /// The text that was checked last, and its error.
    checked: (String, Option<String>),
}

impl State {
    /// The error in a filter, if any. Checked only when the text changes, as it may contain a regular expression.
    pub fn error(&mut self, words: &str) -> Option<&str> {
        if self.checked.0 != words {
            self.checked = (words.to_owned(), Filter::parse(words).err().map(|error| error.what));
        }
        self.checked.1.as_deref()
    }
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, table: Option<&BufferTable>, state: &mut State) {
    let theme = context.theme;
    let id = ui.scope_id().with("buffer filter");
    let has_focus = ui.memory(|memory| memory.has_focus(id));
    let offers = if has_focus { offers(context, table, state) } else { Vec::new() };
    let mut accepted = None;
    if !offers.is_empty() {
        state.chosen = state.chosen.min(offers.len() - 1);
        ui.input_mut(|input| {
            if input.consume_key(Modifiers::NONE, Key::ArrowDown) {
                state.chosen = (state.chosen + 1) % offers.len();
            }
            if input.consume_key(Modifiers::NONE, Key::ArrowUp) {
                state.chosen = (state.chosen + offers.len() - 1) % offers.len();
            }
            if input.consume_key(Modifiers::NONE, Key::Tab) || input.consume_key(Modifiers::NONE, Key::Enter) {
                accepted = Some(state.chosen);
            }
        });
    }
    let width = ui.available_width().clamp(160.0, 560.0);
    let mut filter = context.shared.filter.clone();
    let edit = egui::TextEdit::singleline(&mut filter)
        .id(id)
        .lock_focus(!offers.is_empty())
        .hint_text("Filter: words, size>64MiB, dtype:f32, op:/attn/, padding>50%, live@peak, -copy")
        .desired_width(width)
        .font(Weight::Mono.at(size::SMALL));
    let response = ui.add_sized(Vec2::new(width, space::CONTROL), edit);
    response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Filter buffers"));
    if std::mem::take(&mut state.focus) {
        response.request_focus();
    }
    if response.has_focus() && ui.input(|i| i.key_pressed(Key::Escape)) {
        context.shared.set_filter("");
    }
    if response.changed() {
        context.shared.set_filter(filter);
        state.chosen = 0;
        state.closed = None;
    }
    if let Some(clicked) = list(ui, theme, &offers, state.chosen, response.rect) {
        accepted = Some(clicked);
    }
    if let Some((word, _)) = accepted.and_then(|i| offers.get(i)) {
        let mut text = context.shared.filter.clone();
        let begin = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        text.truncate(begin);
        text.push_str(word);
        // A completed word is followed by a space; a key waits for its value.
        if !word.ends_with([':', '>', '<', '=', '@']) {
            text.push(' ');
        }
        state.chosen = 0;
        to_end(ui, id, text.chars().count());
        context.shared.set_filter(text);
        response.request_focus();
    }
    if let Some(error) = state.error(&context.shared.filter) {
        controls::cut_label(ui, error, Weight::Medium.at(size::SMALL), theme.danger, ui.available_width() - 60.0);
    }
    if !context.shared.filter.is_empty() && controls::link(ui, "Clear", theme).clicked() {
        context.shared.set_filter("");
    }
}

/// Filters to begin with.
const FIRST: [&str; 5] = ["class:activation", "class:optimizer", "size>64MiB", "padding>50%", "-params"];

/// The terms of the filter, each of which a click removes; without a filter, some to begin with.
pub fn chips(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let words = context.shared.filter.clone();
    let terms: Vec<&str> = words.split_whitespace().collect();
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 6.0;
        if terms.is_empty() {
            for term in FIRST {
                if chip(ui, term, "", theme).on_hover_text(format!("List only {term}")).clicked() {
                    context.shared.set_filter(format!("{term} "));
                }
            }
        }
        // A term in quotes or slashes may contain spaces: it is removed by hand.
        let is_plain = !words.contains(['"', '/']);
        for (i, term) in terms.iter().enumerate().filter(|_| is_plain) {
            if chip(ui, term, "\u{d7}", theme).on_hover_text(format!("Remove {term}")).clicked() {
                let kept: Vec<&str> =
                    terms.iter().enumerate().filter(|(other, _)| *other != i).map(|(_, term)| *term).collect();
                context.shared.set_filter(kept.join(" "));
            }
        }
    });
}

/// A small button with a term of a filter.
fn chip(ui: &mut Ui, term: &str, sign: &str, theme: &Theme) -> egui::Response {
    let is_on = !sign.is_empty();
    let color = if is_on { theme.accent } else { theme.text2 };
    let label = if is_on { format!("{term}  {sign}") } else { term.to_owned() };
    let galley = ui.painter().layout_no_wrap(label, Weight::Mono.at(size::SMALL), color);
    let (rect, response) = ui.allocate_exact_size(galley.size() + Vec2::new(16.0, 6.0), Sense::click());
    let (fill, edge) = if is_on { (theme.accent_bg, theme.accent_bg) } else { (theme.canvas, theme.line) };
    let fill = if response.hovered() { theme.hover } else { fill };
    let edge = if response.has_focus() { theme.accent } else { edge };
    ui.painter().rect(rect, rect.height() / 2.0, fill, egui::Stroke::new(1.0, edge), egui::StrokeKind::Inside);
    ui.painter().galley(rect.min + Vec2::new(8.0, 3.0), galley, color);
    let does = if is_on { format!("Remove {term}") } else { format!("Filter by {term}") };
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, &does));
    response.on_hover_cursor(egui::CursorIcon::PointingHand)
}

fn offers(context: &ViewContext<'_>, table: Option<&BufferTable>, state: &mut State) -> Vec<(String, String)> {
    let words = &context.shared.filter;
    if state.closed.as_ref() == Some(words) {
        return Vec::new();
    }
    if state.offered.as_ref().is_none_or(|(of, _)| of != words) {
        state.offered = Some((words.clone(), complete(words, table, MOST)));
    }
    state.offered.as_ref().map(|(_, offers)| offers.clone()).unwrap_or_default()
}

/// Moves the cursor to the end.
fn to_end(ui: &Ui, id: egui::Id, letters: usize) {
    if let Some(mut edit) = egui::TextEdit::load_state(ui.ctx(), id) {
        let end = egui::text::CCursor::new(letters);
        edit.cursor.set_char_range(Some(egui::text::CCursorRange::one(end)));
        edit.store(ui.ctx(), id);
    }
}

/// The completions under the field; returns the one that was clicked.
fn list(ui: &Ui, theme: &Theme, offers: &[(String, String)], chosen: usize, field: Rect) -> Option<usize> {
    if offers.is_empty() {
        return None;
    }
    let mut clicked = None;
    let area = egui::Area::new(ui.scope_id().with("completions"))
        .order(egui::Order::Foreground)
        .fixed_pos(Pos2::new(field.left(), field.bottom() + 2.0));
    area.show(ui.ctx(), |ui| {
        let size_all = Vec2::new(420.0, ROW * offers.len() as f32 + 8.0);
        let (rect, _) = ui.allocate_exact_size(size_all, Sense::hover());
        ui.painter().rect_filled(rect, 4.0, theme.panel);
        ui.painter().rect_stroke(rect, 4.0, egui::Stroke::new(1.0, theme.line2), egui::StrokeKind::Inside);
        for (i, (word, what)) in offers.iter().enumerate() {
            let top = rect.top() + 4.0 + ROW * i as f32;
            let row = Rect::from_min_size(Pos2::new(rect.left() + 4.0, top), Vec2::new(rect.width() - 8.0, ROW));
            let response = ui.interact(row, ui.scope_id().with(("completion", i)), Sense::click());
            response.widget_info(|| WidgetInfo::selected(Role::MenuItem, true, i == chosen, format!("{word} {what}")));
            if i == chosen || response.hovered() {
                ui.painter().rect_filled(row, 3.0, if i == chosen { theme.accent_bg } else { theme.hover });
            }
            let y = row.center().y;
            let at = Pos2::new(row.left() + 8.0, y);
            let font = Weight::Mono.at(size::SMALL);
            let drawn = ui.painter().text(at, egui::Align2::LEFT_CENTER, word, font, theme.text);
            let room = row.right() - drawn.right() - 20.0;
            let galley = ui.painter().layout_no_wrap(what.clone(), Weight::Regular.at(size::SMALL), theme.text2);
            if galley.size().x <= room {
                let at = Pos2::new(row.right() - 8.0 - galley.size().x, y - galley.size().y / 2.0);
                ui.painter().galley(at, galley, theme.text2);
            }
            if response.clicked() {
                clicked = Some(i);
            }
        }
    });
    clicked
}
