//! Keyboard navigation in charts and tables: focus, movement and the focus ring.

use egui::{Context, EventFilter, Id, Key, Modifiers, Popup, Response, Stroke, StrokeKind, Ui, Vec2};

use super::controls;
use super::theme::{Theme, space};

/// Shortcuts of every chart and table, for the shortcut sheet.
pub const KEYS: &[(&str, &str)] = &[
    ("Tab", "Next control; Enter activates it"),
    ("arrows, Home, End", "In a chart or table: next box, cell or row"),
    ("Enter, Backspace", "In a chart or table: zoom in, select or open; zoom out"),
];

/// Focusable charts and tables in drawing order.
#[derive(Clone, Default)]
struct Fields {
    /// The pass in which `now` was collected.
    pass: u64,
    now: Vec<Id>,
    before: Vec<Id>,
}

fn fields<R>(ctx: &Context, with: impl FnOnce(&mut Fields) -> R) -> R {
    let pass = ctx.cumulative_pass_nr();
    ctx.data_mut(|data| {
        let fields = data.get_temp_mut_or_default::<Fields>(Id::unique("focusable fields"));
        if fields.pass != pass {
            fields.pass = pass;
            fields.before = std::mem::take(&mut fields.now);
        }
        with(fields)
    })
}

/// Whether the view receives keys without modifiers: no text field has the focus and no menu is open.
#[must_use]
pub fn are_free(ctx: &Context) -> bool {
    !ctx.text_edit_focused() && !Popup::is_any_open(ctx)
}

/// Whether the view receives the arrow keys, Home and End: additionally, no widget has the focus.
#[must_use]
pub fn arrows_are_free(ctx: &Context) -> bool {
    are_free(ctx) && ctx.memory(egui::Memory::focused).is_none()
}

/// Keys pressed in a focused chart or table.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressed {
    /// Whether it has the focus.
    pub has_focus: bool,
    /// Movement by the arrow keys, in cells to the right and down.
    pub by: Vec2,
    /// Movement by Page Up and Page Down, in pages down.
    pub pages: f32,
    /// Home was pressed.
    pub first: bool,
    /// End was pressed.
    pub last: bool,
    /// Enter was pressed.
    pub enter: bool,
    /// Shift or Ctrl was held: extend the selection.
    pub adds: bool,
    /// Backspace was pressed.
    pub back: bool,
}

impl Pressed {
    /// Whether any movement key was pressed.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.by != Vec2::ZERO || self.pages != 0.0 || self.first || self.last
    }
}

/// Registers a chart or table as focusable and returns the navigation keys pressed while it has the focus.
#[must_use]
pub fn field(ui: &Ui, response: &Response) -> Pressed {
    fields(ui.ctx(), |fields| fields.now.push(response.id));
    if !response.has_focus() || Popup::is_any_open(ui.ctx()) {
        return Pressed { has_focus: response.has_focus(), ..Pressed::default() };
    }
    let filter = EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    ui.input_mut(|input| {
        let adds = input.modifiers.shift || input.modifiers.command;
        let mut taken = |key| input.consume_key(Modifiers::NONE, key);
        let mut both = |plus, minus| f32::from(i8::from(taken(plus)) - i8::from(taken(minus)));
        let by = Vec2::new(both(Key::ArrowRight, Key::ArrowLeft), both(Key::ArrowDown, Key::ArrowUp));
        let pages = both(Key::PageDown, Key::PageUp);
        let (first, last) = (taken(Key::Home), taken(Key::End));
        let back = taken(Key::Backspace);
        let enter = taken(Key::Enter) || input.consume_key(Modifiers::COMMAND, Key::Enter);
        Pressed { has_focus: true, by, pages, first, last, enter, adds, back }
    })
}

/// Whether a chart or table has the focus.
#[must_use]
pub fn is_in_field(ctx: &Context) -> bool {
    let focused = ctx.memory(egui::Memory::focused);
    focused.is_some_and(|focused| fields(ctx, |all| all.now.contains(&focused) || all.before.contains(&focused)))
}

/// Moves the focus to the next chart or table of the view; clears it after the last one.
pub fn next_field(ctx: &Context) {
    let list = fields(ctx, |fields| if fields.now.is_empty() { fields.before.clone() } else { fields.now.clone() });
    let focused = ctx.memory(egui::Memory::focused);
    let at = focused.and_then(|focused| list.iter().position(|id| *id == focused));
    let next = list.get(at.map_or(0, |at| at + 1)).copied();
    ctx.memory_mut(|memory| match (next, focused) {
        (Some(next), _) => memory.request_focus(next),
        (None, Some(focused)) => memory.surrender_focus(focused),
        (None, None) => {}
    });
}

/// Requests the context menu of the selection; the next view drawn opens it.
pub fn request_menu(ctx: &Context) {
    let pass = ctx.cumulative_pass_nr();
    ctx.data_mut(|data| data.insert_temp(Id::unique("menu requested"), Some(pass)));
    ctx.request_repaint();
}

/// Takes the request for the selection's context menu; returns whether there was one.
#[must_use]
pub fn take_menu_request(ctx: &Context) -> bool {
    let pass = ctx.cumulative_pass_nr();
    let requested =
        ctx.data_mut(|data| data.get_temp_mut_or_default::<Option<u64>>(Id::unique("menu requested")).take());
    requested.is_some_and(|requested| pass <= requested + 1)
}

/// Shows a scroll area that scrolls the focused widget into view.
pub fn scrolled<R>(area: egui::ScrollArea, ui: &mut Ui, show: impl FnOnce(&mut Ui) -> R) -> R {
    let shown = area.show(ui, |ui| {
        let result = show(ui);
        scroll_to_focus(ui);
        result
    });
    shown.inner
}

/// As [`scrolled`]; Page Up, Page Down, Home, End and the arrow keys scroll it while nothing has the focus.
pub fn scrolled_by_keys<R>(area: egui::ScrollArea, ui: &mut Ui, show: impl FnOnce(&mut Ui) -> R) -> R {
    scrolled(area, ui, |ui| {
        let result = show(ui);
        scroll_by_keys(ui);
        result
    })
}

fn scroll_to_focus(ui: &Ui) {
    let ctx = ui.ctx();
    let focused = ctx.memory(egui::Memory::focused);
    let id = ui.unique_id().with("scrolled to");
    let before = ctx.data_mut(|data| std::mem::replace(data.get_temp_mut_or_default::<Option<Id>>(id), focused));
    let content = ui.min_rect();
    let place = focused.filter(|_| focused != before).and_then(|focused| ctx.read_response(focused));
    if let Some(place) = place.filter(|place| place.layer_id == ui.layer_id()).map(|place| place.rect) {
        let inside = content.contains(place.center()) && place.height() < ui.clip_rect().height();
        if inside && !ui.clip_rect().contains_rect(place) {
            ui.scroll_to_rect(place.expand(8.0), None);
        }
    }
}

fn scroll_by_keys(ui: &Ui) {
    if !arrows_are_free(ui.ctx()) {
        return;
    }
    let content = ui.min_rect();
    let page = ui.clip_rect().height() * 0.85;
    let by = ui.input(|input| {
        let pressed = |key| if input.key_pressed(key) && !input.modifiers.any() { 1.0 } else { 0.0 };
        40.0 * (pressed(Key::ArrowUp) - pressed(Key::ArrowDown))
            + page * (pressed(Key::PageUp) - pressed(Key::PageDown))
            + content.height() * (pressed(Key::Home) - pressed(Key::End))
    });
    if by != 0.0 {
        ui.scroll_with_delta(Vec2::new(0.0, by));
    }
}

/// Number of steps by which Shift and the arrow keys move the selected step.
#[must_use]
pub fn steps(ui: &Ui) -> i64 {
    if !are_free(ui.ctx()) {
        return 0;
    }
    ui.input_mut(|input| {
        let mut taken = |key| i64::from(input.consume_key(Modifiers::SHIFT, key));
        taken(Key::ArrowRight) - taken(Key::ArrowLeft)
    })
}

/// Index of the nearest place in direction `by` from place `from`, preferring those straight ahead.
#[must_use]
pub fn neighbour(places: &[egui::Rect], from: usize, by: Vec2) -> Option<usize> {
    let own = places.get(from)?;
    let across = Vec2::new(by.y.abs(), by.x.abs());
    let ahead = |place: &egui::Rect| {
        let (near, far) = if by.x + by.y > 0.0 { (place.min, own.max) } else { (own.min, place.max) };
        (near - far).dot(by.abs())
    };
    let aside = |place: &egui::Rect| {
        let gap = (place.min - own.max).max(own.min - place.max);
        gap.dot(across).max(0.0)
    };
    let middle = |place: &egui::Rect| (place.center() - own.center()).dot(across).abs();
    let candidates = places.iter().enumerate().filter(|(i, place)| *i != from && ahead(place) > -1.5);
    let cost = |place: &egui::Rect| (aside(place) > 0.5, ahead(place).max(0.0) + aside(place) * 2.0, middle(place));
    let least = candidates.min_by(|a, b| {
        let (a, b) = (cost(a.1), cost(b.1));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
    });
    least.map(|(i, _)| i)
}

/// Draws a ring around the focused widget unless it is a text field, which has a cursor.
pub fn ring(ui: &Ui, theme: &Theme) {
    let ctx = ui.ctx();
    let Some(focused) = ctx.memory(egui::Memory::focused).filter(|_| !ctx.text_edit_focused()) else { return };
    let Some(response) = ctx.read_response(focused) else { return };
    let painter = ctx.layer_painter(response.layer_id);
    let is_field = fields(ctx, |fields| fields.now.contains(&focused));
    let (place, kind) = if is_field {
        (response.interact_rect, StrokeKind::Inside)
    } else {
        (response.interact_rect.expand(1.0), StrokeKind::Outside)
    };
    painter.rect_stroke(place, space::RADIUS, controls::focus(theme), kind);
}

/// Draws the focus ring around the box or cell selected by keyboard.
pub fn ring_at(painter: &egui::Painter, place: egui::Rect, theme: &Theme) {
    let stroke = controls::focus(theme);
    painter.rect_stroke(place, 0.0, Stroke::new(stroke.width + 2.0, theme.halo), StrokeKind::Inside);
    painter.rect_stroke(place, 0.0, stroke, StrokeKind::Inside);
}

#[cfg(test)]
mod tests {
    use egui::{Pos2, Rect};

    use super::*;

    #[test]
    fn the_neighbour_is_the_nearest_straight_ahead() {
        let at = |x: f32, y: f32, w: f32, h: f32| Rect::from_min_size(Pos2::new(x, y), Vec2::new(w, h));
        let places =
            [at(0.0, 0.0, 10.0, 20.0), at(10.0, 0.0, 10.0, 10.0), at(10.0, 10.0, 5.0, 10.0), at(15.0, 10.0, 5.0, 10.0)];
        let go = |from, x, y| neighbour(&places, from, Vec2::new(x, y));
        assert_eq!(go(1, 0.0, 1.0), Some(2));
        assert_eq!(go(2, 1.0, 0.0), Some(3));
        assert_eq!(go(3, -1.0, 0.0), Some(2));
        assert_eq!(go(2, -1.0, 0.0), Some(0));
        assert_eq!(go(3, 0.0, -1.0), Some(1));
        assert_eq!(go(0, -1.0, 0.0), None);
        assert_eq!(go(0, 0.0, 1.0), None);
        assert_eq!(neighbour(&places, 9, Vec2::X), None);
    }
}
