//! The readout of the values under the pointer, at the top right of the chart, at most four lines.

use egui::{Align2, Pos2, Rect, Stroke, StrokeKind, Ui, Vec2};

use crate::ui::widget::controls::{self, paint_cut};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Slot, Theme, size};

/// Maximum number of lines.
const LINES: usize = 4;
/// Height of a line, in points.
const LINE: f32 = 16.0;
/// Padding around the text, in points.
const PAD: Vec2 = Vec2::new(8.0, 5.0);
/// Maximum width of a line, in points.
const MOST: f32 = 300.0;

/// Text style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// The first line: the position.
    Title,
    /// A number.
    #[default]
    Plain,
    /// A name in the program.
    Name,
    /// A number over the limit.
    Over,
}

/// A line: label on the left, value on the right.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    /// Label.
    pub words: String,
    /// Value, right-aligned.
    pub value: String,
    /// Colour swatch, if any.
    pub slot: Option<Slot>,
    /// Text style.
    pub tone: Tone,
}

impl Line {
    /// A line with a label and a value.
    #[must_use]
    pub fn new(words: impl Into<String>, value: impl Into<String>) -> Self {
        Self { words: words.into(), value: value.into(), ..Self::default() }
    }

    /// Adds a colour swatch.
    #[must_use]
    pub fn of(self, slot: Slot) -> Self {
        Self { slot: Some(slot), ..self }
    }

    /// Sets the text style.
    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    fn fonts(&self) -> (egui::FontId, egui::FontId) {
        let words = match self.tone {
            Tone::Title => Weight::SemiBold,
            Tone::Name => Weight::Mono,
            Tone::Plain | Tone::Over => Weight::Regular,
        };
        let value = if self.tone == Tone::Title { Weight::SemiBold } else { Weight::Medium };
        (words.at(size::SMALL), value.at(size::SMALL))
    }
}

/// Draws the lines in the top right corner of `plot`, or in the top left one while the pointer is there.
pub(super) fn draw(ui: &Ui, theme: &Theme, plot: Rect, lines: &[Line]) {
    let lines = &lines[..lines.len().min(LINES)];
    let painter = ui.painter();
    let width_of = |line: &Line| {
        let (words, value) = line.fonts();
        let wide = |text: &str, font| painter.layout_no_wrap(text.to_owned(), font, theme.text).size().x;
        let gap = if line.value.is_empty() { 0.0 } else { 14.0 };
        wide(&line.words, words) + gap + wide(&line.value, value) + if line.slot.is_some() { 15.0 } else { 0.0 }
    };
    let widest = lines.iter().map(width_of).fold(0.0, f32::max).min(MOST).min(plot.width() - 4.0 * PAD.x);
    let size = Vec2::new(widest, LINE * lines.len() as f32) + PAD * 2.0;
    if lines.is_empty() || widest <= 0.0 || plot.height() < size.y + 8.0 {
        return;
    }
    let corner = plot.right_top() + Vec2::new(-6.0, 4.0);
    let mut rect = Align2::RIGHT_TOP.anchor_size(corner, size);
    let pointer = ui.input(|input| input.pointer.hover_pos());
    if pointer.is_some_and(|at| rect.expand(12.0).contains(at)) {
        rect = Align2::LEFT_TOP.anchor_size(plot.left_top() + Vec2::new(6.0, 4.0), size);
    }
    painter.rect_filled(rect, 3.0, theme.canvas.gamma_multiply(0.94));
    painter.rect_stroke(rect, 3.0, Stroke::new(1.0, theme.line2), StrokeKind::Inside);
    for (i, line) in lines.iter().enumerate() {
        let y = rect.top() + PAD.y + LINE * (i as f32 + 0.5);
        let (words, value) = line.fonts();
        let (quiet, color) = match line.tone {
            Tone::Title => (theme.text, theme.text),
            Tone::Plain | Tone::Name => (theme.text2, theme.text),
            Tone::Over => (theme.danger, theme.danger),
        };
        let end = Pos2::new(rect.right() - PAD.x, y);
        let drawn = painter.text(end, Align2::RIGHT_CENTER, &line.value, value, color);
        let mut left = rect.left() + PAD.x;
        if let Some(slot) = line.slot {
            let swatch = Rect::from_center_size(Pos2::new(left + 5.0, y), Vec2::splat(9.0));
            controls::paint_swatch(painter, swatch, slot, theme);
            left += 15.0;
        }
        let room = if line.value.is_empty() { rect.right() - PAD.x - left } else { drawn.left() - 10.0 - left };
        paint_cut(painter, (Pos2::new(left, y), Align2::LEFT_CENTER), &line.words, words, quiet, room);
    }
}

/// The lines as text for screen readers.
pub(super) fn spoken(lines: &[Line]) -> String {
    let said = lines.iter().take(LINES).map(|line| format!("{} {}", line.words, line.value).trim().to_owned());
    said.collect::<Vec<_>>().join(", ")
}
