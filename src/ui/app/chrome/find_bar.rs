//! The field to find buffers: in the top bar where it has room, else over the views that show buffers. What matches stays
//! lit, the rest is dimmed, Enter goes from one to the next.

use egui::{Align, Area, Frame, Key, Layout, Margin, Order, Pos2, Rect, Response, Role, Stroke, Ui, Vec2, WidgetInfo};

use crate::analysis::table::Filter;
use crate::model::thousands;
use crate::ui::app::App;
use crate::ui::part::{Action, Find};
use crate::ui::session::{RowScope, Shared};
use crate::ui::view::VIEWS;
use crate::ui::widget::controls::{self, link};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size, space};
use crate::ui::work::{Direction, SearchResults};

/// Least and largest width of the field in the top bar.
const LEAST: f32 = 190.0;
const MOST: f32 = 400.0;
/// Room that is left to what is typed.
const LEAST_EDIT: f32 = 110.0;
/// Width of the arrows with the word that closes the search, and of the cross that does.
const ARROWS_AND_CLOSE: f32 = 120.0;
const CROSS: f32 = 24.0;
/// Width from which arrows stand behind what is typed.
const WITH_ARROWS: f32 = 330.0;

impl App {
    /// Opens the find bar, or gives it the focus.
    pub(in crate::ui::app) fn find(&mut self) {
        let Some(open) = self.files.current_mut() else { return };
        let shown = VIEWS.shown_or_first(open.shared.view, &open.document);
        let field = match shown.find {
            Find::Field(focus) => Some(focus),
            Find::Dim if open.document.has_buffers() => None,
            // The first view with a search field of its own.
            _ => VIEWS.shown_for(&open.document).find_map(|view| match view.find {
                Find::Field(focus) => Some(focus),
                _ => None,
            }),
        };
        if let Some(focus) = field {
            return focus(&mut open.shared, &mut open.locals);
        }
        open.shared.open_find();
        self.focus_find = true;
    }

    /// Selects the next or previous match.
    pub(in crate::ui::app) fn next_hit(&mut self, direction: Direction) {
        let work = self.work();
        let Some(open) = self.files.current_mut() else { return };
        let hits = open.derived.hits(&work, &open.document, &open.shared);
        let next = hits.and_then(|hits| {
            let next = hits.next(open.shared.selected, direction)?;
            Some((next, hits.lives_here(next)))
        });
        let Some((next, lives_here)) = next else { return };
        open.shared.select(next);
        if !lives_here && shows_step(&open.shared) {
            let place = step_words(&open.shared);
            self.say(&format!("Does not live {place}; Timeline shows when it does"));
        }
    }

    /// Draws the field into the top bar, if there is room; in a view without buffers Enter shows the table of those that
    /// match.
    pub(in crate::ui::app) fn find_field(&mut self, ui: &mut Ui, theme: &Theme) {
        let room = ui.available_width() - 12.0;
        let has_buffers = self.files.current().is_some_and(|open| open.document.has_buffers());
        self.has_find_field = has_buffers && room >= LEAST;
        if !self.has_find_field {
            return;
        }
        let work = self.work();
        let focus = std::mem::take(&mut self.focus_find);
        let Some(open) = self.files.current_mut() else { return };
        let hits = open.derived.hits(&work, &open.document, &open.shared);
        let width = room.min(MOST);
        let is_asked = !open.shared.filter.trim().is_empty();
        let place = Vec2::new(width, space::CONTROL);
        let mut step = None;
        ui.allocate_ui_with_layout(place, Layout::right_to_left(Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x = 6.0;
            if is_asked {
                let is_wide = width >= WITH_ARROWS;
                let most = width - LEAST_EDIT - if is_wide { ARROWS_AND_CLOSE } else { CROSS };
                let close = link(ui, if is_wide { "Close" } else { "\u{d7}" }, theme);
                close.widget_info(|| WidgetInfo::labeled(Role::Link, true, "Close"));
                if close.clicked() {
                    open.shared.close_find();
                }
                if is_wide {
                    step = arrows(ui, theme);
                }
                count(ui, theme, &open.shared, hits.as_deref(), most);
            }
            let response = edit(ui, theme, &mut open.shared, ui.available_width(), focus);
            if !is_asked && !response.has_focus() {
                let at = Pos2::new(response.rect.right() - 8.0, response.rect.center().y);
                let font = Weight::Mono.at(size::SMALL);
                ui.painter().text(at, egui::Align2::RIGHT_CENTER, "Ctrl F", font, theme.text3);
            }
            step = entered(ui, &response).or(step);
        });
        if let Some(direction) = step {
            let shown = VIEWS.shown_or_first(open.shared.view, &open.document);
            if matches!(shown.find, Find::Elsewhere) {
                return self.find();
            }
            self.next_hit(direction);
        }
    }

    /// Draws the find bar in the lower right corner of the view, if it is open and has no place in the top bar: at the top
    /// it would cover the view's switches. What a finding lights, and what is hidden, is said there as well.
    pub(in crate::ui::app) fn find_bar(&mut self, ui: &Ui, theme: &Theme, body: Rect) {
        let work = self.work();
        let has_field = self.has_find_field;
        let focus = !has_field && std::mem::take(&mut self.focus_find);
        let Some(open) = self.files.current_mut() else { return };
        let (shared, document) = (&mut open.shared, &open.document);
        let is_asked = !has_field && (shared.finding || !shared.filter.trim().is_empty());
        let hits = open.derived.hits(&work, document, shared);
        let is_away = hits.as_deref().is_some_and(|hits| hits.is_away()) && shows_step(shared);
        let is_open = is_asked || is_away || shared.lit.is_some() || !shared.hidden.is_empty();
        let dims = VIEWS.by_id(shared.view).is_some_and(|view| matches!(view.find, Find::Dim));
        if !is_open || !dims {
            return;
        }
        let (mut step, mut goes) = (None, false);
        Area::new(egui::Id::unique("find bar"))
            .order(Order::Middle)
            .pivot(egui::Align2::RIGHT_BOTTOM)
            .fixed_pos(Pos2::new(body.right() - 12.0, body.bottom() - 8.0))
            .show(ui.ctx(), |ui| {
                let edge = Stroke::new(theme.outline, theme.line2);
                let frame = Frame::new().fill(theme.panel).stroke(edge).corner_radius(space::RADIUS);
                frame.inner_margin(Margin::symmetric(8, 5)).show(ui, |ui| {
                    ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                        if let Some(lit) = shared.lit.clone() {
                            let number = thousands(lit.buffers.len() as u64);
                            let words = format!("{number} lit: {}", lit.words);
                            let most = (body.width() - 260.0).clamp(120.0, 460.0);
                            controls::cut_label(ui, &words, Weight::Medium.at(size::SMALL), theme.text, most);
                        } else if is_asked {
                            let response = edit(ui, theme, shared, 230.0, focus);
                            step = entered(ui, &response);
                            count(ui, theme, shared, hits.as_deref(), f32::INFINITY);
                        }
                        if let Some(hits) = hits.as_deref().filter(|_| is_away) {
                            if !is_asked {
                                let words = count_words(shared, hits);
                                ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
                            }
                            let go = link(ui, "show the largest in Timeline", theme);
                            if let (true, Some(&largest)) = (go.clicked(), hits.list.first()) {
                                shared.select(largest);
                                goes = true;
                            }
                        }
                        if is_asked || shared.lit.is_some() {
                            step = arrows(ui, theme).or(step);
                        }
                        if !shared.hidden.is_empty() {
                            let words = format!("show {} hidden", thousands(shared.hidden.len() as u64));
                            if link(ui, &words, theme).clicked() {
                                shared.show_hidden();
                            }
                        }
                        // Where it is asked in the bar at the top, it is closed there.
                        let closes = is_asked || shared.lit.is_some() || !shared.hidden.is_empty();
                        if closes && link(ui, "Close", theme).clicked() {
                            shared.close_find();
                            shared.show_hidden();
                        }
                    });
                });
            });
        if let Some(direction) = step {
            self.next_hit(direction);
        }
        if goes {
            self.act(Action::View("timeline"));
        }
    }
}

/// The field itself.
fn edit(ui: &mut Ui, theme: &Theme, shared: &mut Shared, width: f32, focus: bool) -> Response {
    let mut filter = shared.filter.clone();
    // What stands beside it comes and goes; it stays the same field.
    let edit = egui::TextEdit::singleline(&mut filter)
        .id(egui::Id::unique("find field"))
        .hint_text(text("Find buffer, op, scope", size::SMALL, Weight::Regular, theme.text3))
        .font(Weight::Mono.at(size::SMALL))
        .align(egui::Align2::LEFT_CENTER);
    let response = ui.add_sized(Vec2::new(width, space::CONTROL), edit);
    response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Find"));
    if response.changed() {
        shared.set_filter(filter);
    }
    if focus {
        response.request_focus();
    }
    response
}

/// Which way Enter goes in the field; it keeps the focus.
fn entered(ui: &Ui, response: &Response) -> Option<Direction> {
    if !(response.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter))) {
        return None;
    }
    response.request_focus();
    Some(if ui.input(|i| i.modifiers.shift) { Direction::Back } else { Direction::Forward })
}

/// The step of the views, in words.
fn step_words(shared: &Shared) -> String {
    shared.step.map_or_else(|| "at the peak".to_owned(), |step| format!("at step {step}"))
}

/// Whether a view shows what lives at its step, where others show all of the program.
fn shows_step(shared: &Shared) -> bool {
    match shared.view {
        "treemap" => true,
        "buffers" => shared.rows != RowScope::All,
        _ => false,
    }
}

/// How many match and how many of them live at the step of the views; of a selected match, which it is.
fn count_words(shared: &Shared, hits: &SearchResults) -> String {
    let place = step_words(shared);
    let all = hits.list.len();
    let found = thousands(all as u64);
    let at = shared.selected.and_then(|buffer| hits.list.iter().position(|hit| *hit == buffer));
    match (at, hits.here) {
        // Those that live there come first in the list.
        (Some(at), Some(here)) if at < here && here < all => {
            format!("{} of {} {place}, {found} match", thousands(at as u64 + 1), thousands(here as u64))
        }
        (Some(at), _) => format!("{} of {found}", thousands(at as u64 + 1)),
        (None, _) if all == 0 => format!("0 of {} match", thousands(hits.of as u64)),
        (None, Some(here)) if here == all => format!("{found} match, all {place}"),
        (None, Some(0)) => format!("{found} match, none {place}"),
        (None, Some(here)) => format!("{found} match, {} {place}", thousands(here as u64)),
        (None, None) => format!("{found} match"),
    }
}

/// How many match, how many of them live at the step of the views and which is selected, or what is wrong with the words.
fn count(ui: &mut Ui, theme: &Theme, shared: &Shared, hits: Option<&SearchResults>, most: f32) {
    if let Err(error) = Filter::parse(&shared.filter) {
        let room = (ui.available_width() - LEAST_EDIT).max(60.0);
        controls::cut_label(ui, &error.to_string(), Weight::Regular.at(size::SMALL), theme.danger, room);
        return;
    }
    let words = hits.map_or_else(String::new, |hits| count_words(shared, hits));
    // Where it has no room: how many, and which.
    let short = match words.split_once(" match") {
        Some((found, _)) if !found.contains(',') => format!("{} match", found.split(" of ").next().unwrap_or(found)),
        _ => words.split(' ').take(3).collect::<Vec<_>>().join(" "),
    };
    let font = Weight::Medium.at(size::SMALL);
    let width = ui.painter().layout_no_wrap(words.clone(), font, theme.text2).size().x;
    let shown = if width > most { short } else { words.clone() };
    let response = ui.label(text(shown, size::SMALL, Weight::Medium, theme.text2));
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &words));
    let of = hits.map_or_else(String::new, |hits| format!("the {} ", thousands(hits.of as u64)));
    response.on_hover_text(format!("Of {of}buffers of this memory, live at any step"));
}

/// Buttons to the previous and the next match, in the order of the layout.
fn arrows(ui: &mut Ui, theme: &Theme) -> Option<Direction> {
    let mut both = [("Previous match", "\u{2039}", Direction::Back), ("Next match", "\u{203a}", Direction::Forward)];
    if ui.layout().prefer_right_to_left() {
        both.reverse();
    }
    let mut step = None;
    for (name, arrow, direction) in both {
        let response = controls::button(ui, arrow, "", theme);
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, name));
        if response.clicked() {
            step = Some(direction);
        }
    }
    step
}
