//! A table that lays out only its visible rows.

mod cell;
mod widths;

pub use cell::{Cell, CellSpan, Column};

use cell::PAD;

use egui::{Align2, Key, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use crate::ui::widget::controls::{hairline, paint_cut};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::keys;
use crate::ui::widget::theme::{Theme, size, space};

/// State of a table between frames.
#[derive(Debug, Clone, Default)]
pub struct TableState {
    /// First visible row; the fraction is the part scrolled out of view.
    pub top: f64,
    /// A row to scroll into view in the next frame.
    pub reveal: Option<usize>,
    /// The keyboard's row: the selected row, or one that cannot be selected.
    at: Option<usize>,
    /// The selected row in the previous frame.
    previous: Option<usize>,
    /// What the columns need for their contents.
    needs: widths::Needs,
}

/// Result of showing a table.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableResponse {
    /// The row selected by click or key.
    pub chosen: Option<usize>,
    /// Whether `chosen` was selected by an arrow key, which must not toggle foldable rows.
    pub passed: bool,
    /// The row under the pointer.
    pub hovered: Option<usize>,
    /// The keyboard's row and its rectangle, for its context menu.
    pub focused: Option<(usize, Rect)>,
    /// The row opened by double click or Enter.
    pub opened: Option<usize>,
    /// The column whose header was clicked.
    pub sorted: Option<usize>,
    /// The column whose header was dragged, and its new position.
    pub moved: Option<(usize, usize)>,
}

/// A table to show.
pub struct Table<'a> {
    /// Columns.
    pub columns: &'a [Column],
    /// Number of rows.
    pub rows: usize,
    /// The selected row.
    pub selected: Option<usize>,
    /// The highlighted row.
    pub lit: Option<usize>,
    /// The column it is sorted by, and whether descending.
    pub sort: Option<(usize, bool)>,
    /// Plural noun for the rows, for the accessible name.
    pub name: &'a str,
    /// Whether arrow keys move the selection.
    pub keys: bool,
}

const HEAD: f32 = 26.0;
const BAR: f32 = 10.0;
/// Rows that fit, with fractions.
fn visible_rows(body: Rect) -> f64 {
    f64::from((body.height() / space::ROW).max(1.0))
}

impl<'a> Table<'a> {
    /// An unsorted table without a selection, which arrow keys do not change.
    #[must_use]
    pub const fn new(columns: &'a [Column], rows: usize, name: &'a str) -> Self {
        Self { columns, rows, selected: None, lit: None, sort: None, name, keys: false }
    }

    /// Shows the table in the available space; `cell` returns the contents for a row and column.
    pub fn show(
        &self,
        ui: &mut Ui,
        state: &mut TableState,
        label: impl Fn(usize) -> String,
        mut cell: impl FnMut(usize, usize) -> Cell,
    ) -> TableResponse {
        let theme = Theme::of(ui.ctx());
        let outer = ui.available_rect_before_wrap();
        ui.advance_cursor_after_rect(outer);
        let body = Rect::from_min_max(Pos2::new(outer.left(), outer.top() + HEAD), outer.max);
        let visible = visible_rows(body);
        let scrolls = self.rows as f64 > visible.floor();
        let inner_width = outer.width() - if scrolls { BAR + 4.0 } else { 0.0 };
        state.needs.measure(ui, self, &label, &mut cell);
        let edges = widths::edges(self.columns, state.needs.of_columns(), outer.left(), inner_width);
        let mut response = TableResponse::default();
        self.head(ui, &theme, outer, &edges, &mut response);
        let field = ui.interact(body, ui.scope_id().with((self.name, "rows")), Sense::FOCUSABLE);
        let pressed = keys::field(ui, &field);
        self.scroll(ui, state, body, &pressed, &mut response);
        let at = state.at.filter(|row| *row < self.rows);
        let here = at.filter(|_| field.has_focus()).map_or_else(String::new, |row| format!("; {}", label(row)));
        let spoken = format!("Table of {}, {} rows{here}", self.name, self.rows);
        field.widget_info(|| WidgetInfo::labeled(Role::Table, true, &spoken));
        let painter = ui.painter().with_clip_rect(body.intersect(ui.clip_rect()));
        let first = state.top.floor() as usize;
        let offset = (state.top.fract() * f64::from(space::ROW)) as f32;
        let count = (visible.ceil() as usize + 1).min(self.rows.saturating_sub(first));
        for i in 0..count {
            let row = first + i;
            let top = body.top() + i as f32 * space::ROW - offset;
            let rect = Rect::from_min_size(Pos2::new(outer.left(), top), Vec2::new(inner_width, space::ROW));
            let sensed = rect.intersect(body);
            if sensed.height() < 1.0 {
                continue;
            }
            // Rows are reached by arrow keys, so they are not Tab stops.
            let click = ui.interact(sensed, ui.scope_id().with((self.name, row)), Sense::CLICK);
            let selected = self.selected == Some(row);
            click.widget_info(|| WidgetInfo::selected(Role::Row, true, selected, label(row)));
            if click.clicked() {
                response.chosen = Some(row);
                state.at = Some(row);
            }
            if click.double_clicked() {
                response.opened = Some(row);
            }
            if click.hovered() {
                response.hovered = Some(row);
            }
            if selected {
                painter.rect_filled(rect, 0.0, theme.accent_bg);
                painter.rect_filled(Rect::from_min_size(rect.min, Vec2::new(3.0, rect.height())), 0.0, theme.accent);
            } else if click.hovered() || self.lit == Some(row) {
                painter.rect_filled(rect, 0.0, theme.hover);
            }
            if at == Some(row) && field.has_focus() {
                response.focused = Some((row, sensed));
                if !selected {
                    painter.rect_stroke(rect, 0.0, Stroke::new(1.5, theme.accent), StrokeKind::Inside);
                }
            }
            for (column, &(left, right)) in edges.iter().enumerate() {
                let content = cell(row, column);
                let area = Rect::from_min_max(Pos2::new(left, rect.top()), Pos2::new(right, rect.bottom()));
                cell::paint(&painter, &theme, area, &self.columns[column], &content);
            }
            hairline(ui, rect.intersect(body), theme.line.gamma_multiply(0.6));
        }
        response
    }

    fn head(&self, ui: &Ui, theme: &Theme, outer: Rect, edges: &[(f32, f32)], response: &mut TableResponse) {
        let head = Rect::from_min_size(outer.min, Vec2::new(outer.width(), HEAD));
        for (i, (column, &(left, right))) in self.columns.iter().zip(edges).enumerate() {
            let area = Rect::from_min_max(Pos2::new(left, head.top()), Pos2::new(right, head.bottom()));
            let sorted = self.sort.filter(|(by, _)| *by == i);
            let mut color = if sorted.is_some() { theme.text } else { theme.text2 };
            if column.sortable {
                let click = ui.interact(area, ui.scope_id().with((self.name, "head", i)), Sense::click_and_drag());
                click
                    .widget_info(|| WidgetInfo::labeled(Role::ColumnHeader, true, format!("Sort by {}", column.title)));
                if click.hovered() || click.has_focus() {
                    color = theme.accent;
                }
                if click.clicked() {
                    response.sorted = Some(i);
                }
                Self::drag_head(ui, outer, edges, (i, &click), response);
            }
            let arrow = sorted.map_or("", |(_, down)| if down { " \u{2193}" } else { " \u{2191}" });
            let words = format!("{}{arrow}", column.title);
            let y = head.center().y;
            let (at, align) = if column.right {
                (Pos2::new(right - PAD, y), Align2::RIGHT_CENTER)
            } else {
                (Pos2::new(left + PAD, y), Align2::LEFT_CENTER)
            };
            paint_cut(ui.painter(), (at, align), &words, Weight::Medium.at(size::SMALL), color, right - left - PAD);
        }
        hairline(ui, head, theme.line2);
    }

    /// Shows a line where a dragged header will be dropped.
    fn drag_head(
        ui: &Ui,
        outer: Rect,
        edges: &[(f32, f32)],
        (column, head): (usize, &egui::Response),
        response: &mut TableResponse,
    ) {
        let Some(at) = head.interact_pointer_pos().filter(|_| head.dragged() || head.drag_stopped()) else { return };
        let before = edges.iter().filter(|(left, right)| f32::midpoint(*left, *right) < at.x).count();
        let to = if before > column { before - 1 } else { before };
        if to == column {
            return;
        }
        if head.drag_stopped() {
            response.moved = Some((column, to));
        } else {
            let x = edges.get(before).map_or(outer.right(), |(left, _)| *left);
            ui.painter().vline(x, outer.top()..=outer.bottom(), Stroke::new(2.0, Theme::of(ui.ctx()).accent));
        }
    }

    fn scroll(
        &self,
        ui: &Ui,
        state: &mut TableState,
        body: Rect,
        pressed: &keys::Pressed,
        response: &mut TableResponse,
    ) {
        let visible = visible_rows(body);
        let last = (self.rows as f64 - visible.floor()).max(0.0);
        if ui.rect_contains_pointer(body) {
            let delta = ui.input(|i| i.smooth_scroll_delta().y);
            state.top -= f64::from(delta / space::ROW);
        }
        let page = visible.floor() as i64;
        let mut by = pressed.by.y as i64
            + page * pressed.pages as i64
            + self.rows as i64 * (i64::from(pressed.last) - i64::from(pressed.first));
        if self.keys && keys::arrows_are_free(ui.ctx()) {
            by = ui.input(|i| {
                let pressed = |key| i64::from(i.key_pressed(key));
                pressed(Key::ArrowDown) - pressed(Key::ArrowUp)
                    + page * (pressed(Key::PageDown) - pressed(Key::PageUp))
                    + self.rows as i64 * (pressed(Key::End) - pressed(Key::Home))
            });
        }
        if self.selected != state.previous {
            (state.previous, state.at) = (self.selected, self.selected);
        }
        let now = state.at.filter(|row| *row < self.rows);
        if by != 0 && self.rows > 0 {
            let from = now.map_or(if by > 0 { -1 } else { self.rows as i64 }, |row| row as i64);
            let to = (from + by).clamp(0, self.rows as i64 - 1) as usize;
            state.at = Some(to);
            (response.chosen, response.passed) = (Some(to), true);
            state.reveal = Some(to);
        }
        if pressed.enter {
            (response.chosen, response.opened) = (now, now);
        }
        if let Some(row) = state.reveal.take() {
            let row = row as f64;
            if row < state.top {
                state.top = row;
            } else if row > state.top + visible - 1.0 {
                state.top = row - visible + 1.0;
            }
        }
        state.top = state.top.clamp(0.0, last);
        if last > 0.0 {
            self.bar(ui, state, body, visible, last);
        }
    }

    fn bar(&self, ui: &Ui, state: &mut TableState, body: Rect, visible: f64, last: f64) {
        let theme = Theme::of(ui.ctx());
        let track = Rect::from_min_max(Pos2::new(body.right() - BAR, body.top()), body.max);
        let length = (f64::from(track.height()) * visible / self.rows as f64).max(24.0).min(f64::from(track.height()));
        let room = f64::from(track.height()) - length;
        let drag = ui.interact(track, ui.scope_id().with((self.name, "bar")), Sense::click_and_drag());
        if let Some(pos) = drag.interact_pointer_pos()
            && room > 0.0
        {
            state.top = ((f64::from(pos.y - track.top()) - length / 2.0) / room * last).clamp(0.0, last);
        }
        let top = track.top() + (room * state.top / last) as f32;
        let thumb = Rect::from_min_size(Pos2::new(track.left() + 2.0, top), Vec2::new(BAR - 4.0, length as f32));
        let color = if drag.hovered() || drag.dragged() { theme.text3 } else { theme.line2 };
        ui.painter().rect_filled(thumb, 3.0, color);
        drag.widget_info(|| WidgetInfo::labeled(Role::ScrollBar, true, format!("Scroll {}", self.name)));
    }
}
