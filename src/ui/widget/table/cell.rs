//! Columns of a table, and its cells as they are painted: text, swatch, bar, part of a whole, difference.

use egui::{Align2, Pos2, Rect, Stroke, StrokeKind, Vec2};

use crate::ui::widget::controls::paint_swatch;
use crate::ui::widget::cut::Cut;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Slot, Theme, mix, size};

/// Space on either side of a cell's text, in points.
pub(super) const PAD: f32 = 8.0;
/// Width of a swatch with the space after it, in points.
const SWATCH: f32 = 18.0;
/// Minimum width in points of a cell with a bar.
const MIN_WIDTH_WITH_BAR: f32 = 112.0;

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Header text.
    pub title: String,
    /// Width in points.
    pub width: f32,
    /// Share of the remaining width, relative to the other columns.
    pub grow: f32,
    /// Right-aligned.
    pub right: bool,
    /// Whether clicking the header sorts.
    pub sortable: bool,
}

impl Column {
    /// A column of text.
    #[must_use]
    pub fn text(title: &str, width: f32, grow: f32) -> Self {
        Self { title: title.to_owned(), width, grow, right: false, sortable: true }
    }

    /// A column of numbers.
    #[must_use]
    pub fn number(title: &str, width: f32) -> Self {
        Self { title: title.to_owned(), width, grow: 0.0, right: true, sortable: true }
    }

    /// Disables sorting by this column.
    #[must_use]
    pub fn fixed(mut self) -> Self {
        self.sortable = false;
        self
    }
}

/// Contents of a cell.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// Text.
    pub text: String,
    /// Places of the parts of the text that tell it from others, [`Telling::places`](crate::ui::widget::telling::Telling::places).
    pub told: Vec<usize>,
    /// Whether to use the monospaced font.
    pub mono: bool,
    /// Whether to use the tertiary text colour.
    pub quiet: bool,
    /// Whether to use the semi-bold weight.
    pub strong: bool,
    /// Colour swatch before the text.
    pub swatch: Option<Slot>,
    /// Length, 0 to 1, and colour of a bar beside the number.
    pub bar: Option<(f32, Slot)>,
    /// A part of a whole in place of text.
    pub span: Option<CellSpan>,
    /// Length, −1 to 1, of a bar of difference from the middle of the space beside the number.
    pub difference: Option<f32>,
}

/// A part of a whole, drawn over the width of a cell; places from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellSpan {
    /// Where it begins.
    pub from: f32,
    /// Where it ends.
    pub to: f32,
    /// Whether the whole is set aside for it: a line along the foot.
    pub is_throughout: bool,
    /// A place that is marked.
    pub mark: Option<f32>,
    /// Colour.
    pub slot: Slot,
}

impl Cell {
    /// A cell with text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A cell with monospaced text.
    #[must_use]
    pub fn mono(text: impl Into<String>) -> Self {
        Self { text: text.into(), mono: true, ..Self::default() }
    }

    /// Keeps the parts of the text that tell it from others where it is cut.
    #[must_use]
    pub fn telling(mut self, told: Vec<usize>) -> Self {
        self.told = told;
        self
    }

    /// Uses the tertiary text colour.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Uses the semi-bold weight.
    #[must_use]
    pub fn strong(mut self) -> Self {
        self.strong = true;
        self
    }

    /// Adds a colour swatch before the text.
    #[must_use]
    pub fn swatch(mut self, slot: Slot) -> Self {
        self.swatch = Some(slot);
        self
    }

    /// A cell that shows a part of a whole.
    #[must_use]
    pub fn span(span: CellSpan) -> Self {
        Self { span: Some(span), ..Self::default() }
    }

    /// Adds a bar of difference, −1 to 1, from a zero line that all cells of the column share.
    #[must_use]
    pub fn difference(mut self, share: f32) -> Self {
        self.difference = Some(share);
        self
    }

    const fn weight(&self) -> Weight {
        match (self.mono, self.strong) {
            (true, false) => Weight::Mono,
            (true, true) => Weight::MonoMedium,
            (false, true) => Weight::SemiBold,
            (false, false) => Weight::Regular,
        }
    }

    /// Adds a bar of length `share`, 0 to 1.
    #[must_use]
    pub fn bar(mut self, share: f32, slot: Slot) -> Self {
        self.bar = Some((share, slot));
        self
    }
}

/// Least width of what a span shows, so that a moment is seen.
const LEAST_SPAN: f32 = 2.0;

/// Paints a part of a whole, with the marked place through it.
fn paint_span(painter: &egui::Painter, theme: &Theme, area: Rect, span: CellSpan) {
    let y = area.center().y;
    let track = Rect::from_x_y_ranges(area.left() + PAD..=area.right() - PAD, y - 3.0..=y + 3.0);
    if track.width() < PAD {
        return;
    }
    let at = |share: f32| egui::lerp(track.x_range(), share.clamp(0.0, 1.0));
    painter.rect_filled(track, 0.0, theme.inset);
    if span.is_throughout {
        let foot = Rect::from_x_y_ranges(track.x_range(), track.bottom() - 2.0..=track.bottom());
        painter.rect_filled(foot, 0.0, mix(span.slot.color(), theme.panel, 0.35));
    }
    let right = at(span.to).max(at(span.from) + LEAST_SPAN).min(track.right());
    let fill = Rect::from_x_y_ranges((right - LEAST_SPAN).min(at(span.from))..=right, track.y_range());
    painter.rect_filled(fill, 0.0, span.slot.color());
    if span.slot.is_faint(theme) {
        painter.rect_stroke(fill, 0.0, Stroke::new(1.0, theme.text3), StrokeKind::Inside);
    }
    if let Some(mark) = span.mark {
        painter.vline(at(mark), y - 6.0..=y + 6.0, Stroke::new(1.5, theme.ink));
    }
}

/// Width of a digit as a share of the size of its font, at most.
const WIDEST_DIGIT: f32 = 0.62;
/// Share of a cell that a bar of difference may take.
const DIFFERENCE: f32 = 0.46;

/// Paints a bar of difference from the zero line: to the right in the colour of what grew, to the left of what shrank.
fn paint_difference(painter: &egui::Painter, theme: &Theme, area: Rect, share: f32) {
    let y = area.center().y;
    let half = (area.width() - PAD) * DIFFERENCE / 2.0;
    let zero = (area.left() + PAD + half).round();
    let end = zero + half * share.clamp(-1.0, 1.0);
    let end = if share == 0.0 { zero } else { zero + (end - zero).signum() * (end - zero).abs().max(1.0) };
    let color = if share > 0.0 { theme.grew } else { theme.shrank };
    painter.rect_filled(Rect::from_x_y_ranges(zero.min(end)..=zero.max(end), y - 3.0..=y + 3.0), 0.0, color);
    painter.vline(zero, y - 7.0..=y + 7.0, Stroke::new(1.0, theme.line2));
}

/// Width in points that a cell needs to show everything; that of its column, if it is a drawing.
pub(super) fn need(cell: &Cell, column: &Column, wide: &dyn Fn(&str, Weight) -> f32) -> f32 {
    if cell.span.is_some() || cell.bar.is_some() || cell.difference.is_some() {
        return column.width;
    }
    let swatch = if cell.swatch.is_some() { SWATCH } else { 0.0 };
    wide(&cell.text, cell.weight()) + swatch + 2.0 * PAD
}

/// Paints a cell.
pub(super) fn paint(painter: &egui::Painter, theme: &Theme, area: Rect, column: &Column, cell: &Cell) {
    if let Some(span) = cell.span {
        return paint_span(painter, theme, area, span);
    }
    let color = if cell.quiet { theme.text3 } else { theme.text };
    let weight = cell.weight();
    let y = area.center().y;
    let mut left = area.left() + PAD;
    if let Some(slot) = cell.swatch {
        let rect = Rect::from_center_size(Pos2::new(left + 5.0, y), Vec2::splat(10.0));
        paint_swatch(painter, rect, slot, theme);
        left += SWATCH;
    }
    let mut right = area.right() - PAD;
    // A long number has the room of its bar.
    let words = cell.text.chars().count() as f32 * size::SMALL * WIDEST_DIGIT + 2.0 * PAD;
    let has_room = area.width() >= MIN_WIDTH_WITH_BAR && area.width() * (1.0 - DIFFERENCE) >= words;
    if let Some(share) = cell.difference.filter(|_| has_room) {
        paint_difference(painter, theme, area, share);
    }
    // In a narrow column the bar is dropped, so that the number is never truncated.
    let width = ((area.width() - PAD) * 0.42).min(90.0);
    let words = || painter.layout_no_wrap(cell.text.clone(), weight.at(size::SMALL), color).size().x;
    let has_room = || area.width() >= MIN_WIDTH_WITH_BAR && left + width + 6.0 + words() <= right;
    if let Some((share, slot)) = cell.bar.filter(|_| has_room()) {
        let track = Rect::from_min_size(Pos2::new(left, y - 3.0), Vec2::new(width, 6.0));
        painter.rect_filled(track, 0.0, theme.inset);
        let fill = Rect::from_min_size(track.min, Vec2::new(width * share.clamp(0.0, 1.0), 6.0));
        painter.rect_filled(fill, 0.0, slot.color());
        if slot.is_faint(theme) {
            painter.rect_stroke(fill, 0.0, Stroke::new(1.0, theme.text3), StrokeKind::Inside);
        }
        left += width + 6.0;
    }
    right = right.max(left);
    let (at, align) = if column.right {
        (Pos2::new(right, y), Align2::RIGHT_CENTER)
    } else {
        (Pos2::new(left, y), Align2::LEFT_CENTER)
    };
    let cut = Cut::telling(painter, (&cell.text, &cell.told), weight.at(size::SMALL), color, right - left);
    let rect = align.anchor_size(at, cut.size());
    cut.paint(painter, rect.min);
}
