//! Small controls: links, buttons, marks, gauges and swatches.

use egui::{
    Align2, Color32, CursorIcon, Popup, Pos2, Rect, Response, Role, Sense, Shape, Stroke, StrokeKind, Ui, Vec2,
    WidgetInfo,
};

pub use super::cut::{cut_label, paint_cut};
use super::fonts::Weight;
use super::theme::{Look, Slot, Theme, size, space};

/// Whether a program fits in its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Over capacity: a filled red triangle.
    Over,
    /// Fits: a green ring.
    Fits,
    /// Unknown: a grey ring.
    Unknown,
}

/// Stroke of the focus ring.
#[must_use]
pub fn focus(theme: &Theme) -> Stroke {
    Stroke::new(theme.outline + 1.0, theme.accent)
}

/// Paints a verdict mark about 10 points wide.
pub fn paint_mark(painter: &egui::Painter, center: Pos2, mark: Mark, theme: &Theme) {
    match mark {
        Mark::Over => {
            let points =
                vec![center + Vec2::new(0.0, -5.0), center + Vec2::new(5.5, 4.5), center + Vec2::new(-5.5, 4.5)];
            painter.add(Shape::convex_polygon(points, theme.over, Stroke::NONE));
        }
        Mark::Fits => {
            painter.circle_stroke(center, 4.2, Stroke::new(2.0, theme.ok));
        }
        Mark::Unknown => {
            painter.circle_stroke(center, 4.2, Stroke::new(1.5, theme.text3));
        }
    }
}

/// Paints a pin: its number on an ink-coloured disc with a halo.
pub fn paint_pin(painter: &egui::Painter, center: Pos2, number: usize, theme: &Theme) {
    painter.circle_filled(center, 10.0, theme.halo);
    painter.circle_filled(center, 9.0, theme.ink);
    let font = Weight::SemiBold.at(size::SMALL);
    painter.text(center, Align2::CENTER_CENTER, number.to_string(), font, theme.halo);
}

/// Paints the application's logo: the peak triangle over three short lines.
pub fn paint_sign(painter: &egui::Painter, rect: Rect, theme: &Theme) {
    let w = rect.width();
    let top = rect.top();
    let x = rect.center().x;
    let tip = Pos2::new(x, top + w * 0.55);
    let points = vec![tip, Pos2::new(x - w * 0.4, top + w * 0.05), Pos2::new(x + w * 0.4, top + w * 0.05)];
    painter.add(Shape::convex_polygon(points, theme.accent, Stroke::NONE));
    for (i, half) in [0.5, 0.33, 0.16].into_iter().enumerate() {
        let y = top + w * (0.66 + 0.16 * i as f32);
        painter.hline(x - w * half..=x + w * half, y, Stroke::new(1.6, theme.accent));
    }
}

/// Paints a hairline along the bottom of a rectangle.
pub fn hairline(ui: &Ui, rect: Rect, color: Color32) {
    let pixel = Look::of(ui.ctx()).hairline() / ui.ctx().pixels_per_point();
    let y = rect.bottom() - pixel;
    ui.painter().rect_filled(Rect::from_min_max(Pos2::new(rect.left(), y), rect.right_bottom()), 0.0, color);
}

/// Paints a vertical hairline at `x`.
pub fn vline(ui: &Ui, x: f32, top: f32, bottom: f32, color: Color32) {
    let pixel = Look::of(ui.ctx()).hairline() / ui.ctx().pixels_per_point();
    ui.painter().rect_filled(Rect::from_min_max(Pos2::new(x, top), Pos2::new(x + pixel, bottom)), 0.0, color);
}

/// Adds a full-width horizontal separator.
pub fn rule(ui: &mut Ui, theme: &Theme) {
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 9.0), Sense::hover());
    let middle = Rect::from_min_max(rect.min, Pos2::new(rect.right(), rect.center().y));
    hairline(ui, middle, theme.line);
}

/// Adds a text link.
pub fn link(ui: &mut Ui, words: &str, theme: &Theme) -> Response {
    link_sized(ui, words, size::SMALL, theme)
}

/// Adds a link for the address of a page, which a click copies; returns whether it was clicked.
pub fn page_link(ui: &mut Ui, page: &str, theme: &Theme) -> bool {
    link(ui, page.trim_start_matches("https://"), theme).on_hover_text("Copy the page's address").clicked()
}

/// Adds a text link with a font size in points.
pub fn link_sized(ui: &mut Ui, words: &str, points: f32, theme: &Theme) -> Response {
    let galley = ui.painter().layout_no_wrap(words.to_owned(), Weight::Medium.at(points), theme.accent);
    let (rect, response) = ui.allocate_exact_size(galley.size(), Sense::click());
    ui.painter().galley(rect.min, galley, theme.accent);
    if response.hovered() || response.has_focus() {
        hairline(ui, rect, theme.accent);
    }
    response.widget_info(|| WidgetInfo::labeled(Role::Link, true, words));
    response.on_hover_cursor(CursorIcon::PointingHand)
}

/// Whether a control is on: pressed, checked, switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct On(pub bool);

/// Adds a small button with a shortcut shown beside its label.
pub fn button(ui: &mut Ui, words: &str, key: &str, theme: &Theme) -> Response {
    toggle_button(ui, words, key, On(false), theme)
}

/// Adds a small button that is highlighted while it is on.
pub fn toggle_button(ui: &mut Ui, words: &str, key: &str, On(lit): On, theme: &Theme) -> Response {
    button_with(ui, words, Tail::Key(key), On(lit), theme)
}

/// What is behind the words of a button.
#[derive(Clone, Copy)]
enum Tail<'a> {
    Key(&'a str),
    /// The sign that it opens a menu.
    Menu,
}

/// Width of the sign that a button opens a menu.
const CHEVRON: f32 = 8.0;

/// Paints the sign that something opens a menu, with its lower end at `tip`.
pub fn paint_chevron(painter: &egui::Painter, tip: Pos2, color: Color32) {
    let stroke = Stroke::new(1.5, color);
    painter.line_segment([tip + Vec2::new(-4.0, -4.0), tip], stroke);
    painter.line_segment([tip, tip + Vec2::new(4.0, -4.0)], stroke);
}

/// Paints the sign of something that a click unfolds: to the right while it is folded, down while it is unfolded.
pub fn paint_fold(painter: &egui::Painter, center: Pos2, On(open): On, color: Color32) {
    if open {
        return paint_chevron(painter, center + Vec2::new(0.0, 2.0), color);
    }
    let (tip, stroke) = (center + Vec2::new(2.0, 0.0), Stroke::new(1.5, color));
    painter.line_segment([tip + Vec2::new(-4.0, -4.0), tip], stroke);
    painter.line_segment([tip, tip + Vec2::new(-4.0, 4.0)], stroke);
}

/// Width of a small button, for a row that is divided before it is drawn.
#[must_use]
pub fn button_width(ui: &Ui, words: &str, key: &str) -> f32 {
    let wide = |words: &str, weight: Weight| {
        ui.painter().layout_no_wrap(words.to_owned(), weight.at(size::SMALL), Color32::PLACEHOLDER).size().x
    };
    let behind = if key.is_empty() { 0.0 } else { wide(key, Weight::Mono) + 8.0 };
    wide(words, Weight::Medium) + behind + 18.0
}

fn button_with(ui: &mut Ui, words: &str, tail: Tail<'_>, On(lit): On, theme: &Theme) -> Response {
    let text = if lit { theme.accent } else { theme.text };
    let label = ui.painter().layout_no_wrap(words.to_owned(), Weight::Medium.at(size::SMALL), text);
    let key = if let Tail::Key(key) = tail { key } else { "" };
    let key_label = ui.painter().layout_no_wrap(key.to_owned(), Weight::Mono.at(size::SMALL), theme.text3);
    let behind = match tail {
        Tail::Menu => CHEVRON + 8.0,
        Tail::Key("") => 0.0,
        Tail::Key(_) => key_label.size().x + 8.0,
    };
    let width = label.size().x + behind + 18.0;
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, space::CONTROL), Sense::click());
    let (fill, edge) = if lit {
        (theme.accent_bg, theme.accent)
    } else if response.hovered() {
        (theme.hover, theme.line2)
    } else {
        (theme.canvas, theme.line2)
    };
    ui.painter().rect(rect, space::RADIUS, fill, Stroke::new(theme.outline, edge), StrokeKind::Inside);
    let y = rect.center().y;
    let at = Pos2::new(rect.left() + 9.0, y - label.size().y / 2.0);
    let key_at = Pos2::new(rect.right() - 9.0 - key_label.size().x, y - key_label.size().y / 2.0);
    ui.painter().galley(at, label, text);
    ui.painter().galley(key_at, key_label, theme.text3);
    if matches!(tail, Tail::Menu) {
        paint_chevron(ui.painter(), Pos2::new(rect.right() - 9.0 - CHEVRON / 2.0, y + 2.5), theme.text2);
    }
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, lit, words));
    response
}

/// Adds a switch; returns whether it was clicked.
pub fn toggle(ui: &mut Ui, On(on): On, words: &str, theme: &Theme) -> bool {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(30.0, 18.0), Sense::click());
    let (fill, edge, knob) =
        if on { (theme.accent, theme.accent, theme.on_accent) } else { (theme.inset, theme.line2, theme.text2) };
    ui.painter().rect(rect, 9.0, fill, Stroke::new(theme.outline, edge), StrokeKind::Inside);
    let x = if on { rect.right() - 9.0 } else { rect.left() + 9.0 };
    ui.painter().circle_filled(Pos2::new(x, rect.center().y), 6.0, knob);
    response.widget_info(|| WidgetInfo::selected(Role::Switch, true, on, words));
    response.clicked()
}

/// Adds a segmented control; returns the index of the segment that was clicked.
pub fn segmented(ui: &mut Ui, words: &[&str], chosen: usize, theme: &Theme) -> Option<usize> {
    let galleys: Vec<_> = words
        .iter()
        .enumerate()
        .map(|(i, word)| {
            let color = if i == chosen { theme.text } else { theme.text2 };
            ui.painter().layout_no_wrap((*word).to_owned(), Weight::Medium.at(size::SMALL), color)
        })
        .collect();
    let width: f32 = galleys.iter().map(|g| g.size().x + 20.0).sum();
    let (rect, _) = ui.allocate_exact_size(Vec2::new(width, space::CONTROL), Sense::hover());
    ui.painter().rect(rect, space::RADIUS, theme.inset, Stroke::new(theme.outline, theme.line2), StrokeKind::Inside);
    let mut clicked = None;
    let mut x = rect.left();
    for (i, galley) in galleys.into_iter().enumerate() {
        let cell = Rect::from_min_size(Pos2::new(x, rect.top()), Vec2::new(galley.size().x + 20.0, rect.height()));
        let response = ui.interact(cell, ui.scope_id().with(("segment", words[0], i)), Sense::click());
        if i == chosen {
            ui.painter().rect(
                cell,
                space::RADIUS,
                theme.canvas,
                Stroke::new(theme.outline, theme.line2),
                StrokeKind::Inside,
            );
        } else if response.hovered() {
            ui.painter().rect_filled(cell.shrink(1.0), space::RADIUS, theme.hover);
        }
        let at = cell.center() - galley.size() / 2.0;
        ui.painter().galley(at, galley, theme.text);
        response.widget_info(|| WidgetInfo::selected(Role::RadioButton, true, i == chosen, words[i]));
        if response.clicked() {
            clicked = Some(i);
        }
        x = cell.right();
    }
    clicked
}

/// Greatest height of a menu of choices; what is more is scrolled to.
const MENU: f32 = 420.0;

/// Adds a row of exclusive choices, or where it would take more than `room` points a button with `name` and a menu of
/// them; returns the one clicked.
pub fn choice(ui: &mut Ui, name: &str, words: &[&str], chosen: usize, room: f32, theme: &Theme) -> Option<usize> {
    let font = Weight::Medium.at(size::SMALL);
    let width_of = |word: &&str| ui.painter().layout_no_wrap((*word).to_owned(), font.clone(), theme.text).size().x;
    if words.iter().map(|word| width_of(word) + 20.0).sum::<f32>() <= room {
        return segmented(ui, words, chosen, theme);
    }
    let now = words.get(chosen).copied().unwrap_or_default();
    // Where there is hardly any room, the choice without its name.
    let named = format!("{name}: {now}");
    let shown = if width_of(&named.as_str()) + 40.0 > room { now } else { &named };
    let response = button_with(ui, shown, Tail::Menu, On(false), theme);
    response.widget_info(|| WidgetInfo::labeled(Role::ComboBox, true, format!("{name}: {now}")));
    let mut clicked = None;
    Popup::menu(&response).show(|ui| {
        ui.set_min_width(160.0);
        egui::ScrollArea::vertical().max_height(MENU).show(ui, |ui| {
            for (i, word) in words.iter().enumerate() {
                if check_row(ui, word, "", On(i == chosen), theme).clicked() {
                    clicked = Some(i);
                }
            }
        });
    });
    clicked
}

/// Paints a colour swatch.
pub fn paint_swatch(painter: &egui::Painter, rect: Rect, slot: Slot, theme: &Theme) {
    painter.rect_filled(rect, 1.0, slot.color());
    if slot.is_faint(theme) {
        painter.rect_stroke(rect, 1.0, Stroke::new(1.0, theme.text3), StrokeKind::Inside);
    }
}

/// Adds a legend entry: a swatch and a label.
pub fn legend(ui: &mut Ui, slot: Slot, words: &str, theme: &Theme) -> Response {
    let galley = ui.painter().layout_no_wrap(words.to_owned(), Weight::Regular.at(size::SMALL), theme.text2);
    let (rect, response) = ui.allocate_exact_size(Vec2::new(galley.size().x + 16.0, 18.0), Sense::hover());
    let swatch = Rect::from_center_size(Pos2::new(rect.left() + 5.0, rect.center().y), Vec2::splat(10.0));
    paint_swatch(ui.painter(), swatch, slot, theme);
    ui.painter().galley(Pos2::new(rect.left() + 16.0, rect.center().y - galley.size().y / 2.0), galley, theme.text2);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, words));
    response
}

/// Adds a "guess" label with a dotted underline; its tooltip gives the basis of the guess.
pub fn guess(ui: &mut Ui, why: &str, theme: &Theme) -> Response {
    let galley = ui.painter().layout_no_wrap("guess".to_owned(), Weight::Regular.at(size::SMALL), theme.text3);
    let (rect, response) = ui.allocate_exact_size(Vec2::new(galley.size().x, 18.0), Sense::hover());
    let at = Pos2::new(rect.left(), rect.center().y - galley.size().y / 2.0);
    let below = at.y + galley.size().y;
    ui.painter().galley(at, galley, theme.text3);
    let line = [Pos2::new(rect.left(), below), Pos2::new(rect.right(), below)];
    ui.painter().extend(egui::Shape::dotted_line(&line, theme.text3, 3.0, 0.7));
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, format!("guess: {why}")));
    response.on_hover_text(why)
}

/// Paints a thin gauge of the share of `limit` that is used. The limit is always at 60 % of the track, which makes gauges
/// of different files comparable; a bar that would be longer than the track is broken near its end.
pub fn paint_gauge(painter: &egui::Painter, rect: Rect, used: f64, limit: Option<f64>, theme: &Theme) {
    let most = limit.map_or(0.0, |limit| limit / 0.6);
    paint_gauge_to(painter, rect, (used, limit), most, theme);
    if limit.is_some() && used > most {
        let y = rect.center().y;
        let half = rect.height() / 2.0 + 1.0;
        for right in [9.0, 5.0] {
            let x = rect.right() - right;
            let line = [Pos2::new(x - 2.0, y + half), Pos2::new(x + 2.0, y - half)];
            painter.line_segment(line, Stroke::new(2.0, theme.canvas));
        }
    }
}

/// Paints a thin gauge of what is used and of its limit, on a track of `most`: gauges side by side, drawn to one scale.
pub fn paint_gauge_to(
    painter: &egui::Painter,
    rect: Rect,
    (used, limit): (f64, Option<f64>),
    most: f64,
    theme: &Theme,
) {
    painter.rect_filled(rect, 0.0, theme.inset);
    let Some(limit) = limit.filter(|limit| *limit > 0.0) else {
        return;
    };
    let at = |bytes: f64| rect.left() + rect.width() * (bytes / most.max(1.0)).clamp(0.0, 1.0) as f32;
    let end = at(used);
    let tick = at(limit);
    let fill = Rect::from_min_max(rect.min, Pos2::new(end.min(tick), rect.bottom()));
    painter.rect_filled(fill, 0.0, theme.text2);
    if end > tick {
        painter.rect_filled(
            Rect::from_min_max(Pos2::new(tick, rect.top()), Pos2::new(end, rect.bottom())),
            0.0,
            theme.over,
        );
    }
    let mark = Rect::from_min_max(Pos2::new(tick - 1.0, rect.top() - 3.0), Pos2::new(tick + 1.0, rect.bottom() + 3.0));
    painter.rect_filled(mark, 0.0, theme.ink);
}

/// Adds a menu item with a label and its shortcut.
pub fn menu_row(ui: &mut Ui, words: &str, keys: &str, theme: &Theme) -> Response {
    check_row(ui, words, keys, On(false), theme)
}

/// Adds a menu item with a check mark while it is on.
pub fn check_row(ui: &mut Ui, words: &str, keys: &str, On(on): On, theme: &Theme) -> Response {
    let key_label = ui.painter().layout_no_wrap(keys.to_owned(), Weight::Mono.at(size::SMALL), theme.text3);
    let label = ui.painter().layout_no_wrap(words.to_owned(), Weight::Regular.at(size::BODY), theme.text);
    let gap = if keys.is_empty() { 0.0 } else { 20.0 };
    let width = ui.available_width().max(28.0 + label.size().x + gap + key_label.size().x + 8.0);
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, space::CONTROL), Sense::click());
    if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, space::RADIUS, theme.hover);
    }
    let y = rect.center().y;
    if on {
        let at = Pos2::new(rect.left() + 14.0, y);
        let stroke = Stroke::new(1.8, theme.accent);
        ui.painter().line_segment([at + Vec2::new(-4.5, 0.0), at + Vec2::new(-1.0, 3.5)], stroke);
        ui.painter().line_segment([at + Vec2::new(-1.0, 3.5), at + Vec2::new(5.0, -4.0)], stroke);
    }
    ui.painter().galley(Pos2::new(rect.left() + 28.0, y - label.size().y / 2.0), label, theme.text);
    let at = Pos2::new(rect.right() - 8.0 - key_label.size().x, y - key_label.size().y / 2.0);
    ui.painter().galley(at, key_label, theme.text3);
    response.widget_info(|| WidgetInfo::selected(Role::MenuItem, true, on, words));
    response
}
