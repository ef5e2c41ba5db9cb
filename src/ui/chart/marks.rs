//! Marks over the data of a chart: peaks, limit, headroom, ranges, cursors.

use egui::{Align2, Color32, Painter, Pos2, Rangef, Rect, Shape, Stroke, Ui, Vec2};

use super::window::Window;
use crate::model::{Bytes, UnitSystem};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size};

/// A peak with its label.
#[derive(Debug, Clone, PartialEq)]
pub struct Peak {
    /// Position on the x axis.
    pub x: f64,
    /// Value on the y axis.
    pub y: f64,
    /// Label beside it; may be empty.
    pub words: String,
    /// Whether it is the peak before the changes, which is drawn paler.
    pub is_before: bool,
}

/// Headroom between the peak and the limit, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spare {
    /// What is said behind the amount: as what the peak is.
    pub of_what: &'static str,
    /// The peak.
    pub from: u64,
    /// The limit.
    pub to: u64,
}

/// Draws the label of the headroom at the right; returns its rectangle.
pub(super) fn spare_words(painter: &Painter, theme: &Theme, window: &Window, spare: Spare, units: UnitSystem) -> Rect {
    let (top, bottom) = (window.y_of(spare.to as f64), window.y_of(spare.from as f64));
    let words = format!("{} to spare{}", units.short(Bytes(spare.to - spare.from)), spare.of_what);
    let galley = painter.layout_no_wrap(words, Weight::SemiBold.at(size::SMALL), theme.ok);
    // If the band is too low for the label, it goes below the limit line.
    let y = if bottom - top >= galley.size().y + 4.0 {
        f32::midpoint(top, bottom)
    } else {
        top + 4.0 + galley.size().y / 2.0
    };
    let place = Align2::RIGHT_CENTER.anchor_size(Pos2::new(window.rect.right() - 8.0, y), galley.size());
    painter.rect_filled(place.expand2(Vec2::new(3.0, 0.0)), 2.0, theme.panel);
    painter.galley(place.min, galley, theme.ok);
    place
}

/// A vertical line at a position on the x axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cursor {
    /// Position on the x axis.
    pub x: f64,
    /// Its stroke.
    pub stroke: Stroke,
}

impl Cursor {
    /// At the chosen position.
    #[must_use]
    pub fn chosen(x: f64, theme: &Theme) -> Self {
        Self { x, stroke: Stroke::new(1.5, theme.ink) }
    }

    /// At a compared position.
    #[must_use]
    pub fn compared(x: f64, theme: &Theme) -> Self {
        Self { x, stroke: Stroke::new(1.5, theme.accent) }
    }

    /// At a pin.
    #[must_use]
    pub fn pinned(x: f64, theme: &Theme) -> Self {
        Self { x, stroke: Stroke::new(1.0, theme.ink) }
    }

    /// Under the pointer.
    #[must_use]
    pub fn pointed(x: f64, theme: &Theme) -> Self {
        Self { x, stroke: Stroke::new(1.0, theme.text3) }
    }

    /// Draws the line across bands that share an x axis.
    pub fn draw(&self, painter: &Painter, axis: &Window, bands: &[Rect]) {
        let x = axis.x_of(self.x);
        for band in bands.iter().filter(|band| band.x_range().contains(x) && band.height() > 0.0) {
            painter.vline(x, band.y_range(), self.stroke);
        }
    }
}

/// Half the width of the peak sign, in points.
pub(super) const SIGN: f32 = 6.0;

/// Draws the peak sign: a triangle pointing down to `tip`.
fn paint_peak(painter: &Painter, tip: Pos2, color: Color32) {
    let points = vec![tip, tip + Vec2::new(-SIGN, -9.0), tip + Vec2::new(SIGN, -9.0)];
    painter.add(Shape::convex_polygon(points, color, Stroke::NONE));
}

/// Marks the peaks of a window; their labels are placed so that they do not overlap.
pub fn paint_peaks(painter: &Painter, theme: &Theme, window: &Window, marked: &[Peak]) {
    peaks(painter, theme, window, marked, Vec::new());
}

/// As [`paint_peaks`]; the labels also avoid the rectangles in `taken`.
pub(super) fn peaks(painter: &Painter, theme: &Theme, window: &Window, peaks: &[Peak], mut taken: Vec<Rect>) {
    let rect = window.rect;
    let shown: Vec<(&Peak, Pos2)> = peaks
        .iter()
        .filter(|peak| window.shows(peak.x))
        .map(|peak| (peak, Pos2::new(window.x_of(peak.x), window.y_of(peak.y).clamp(rect.top() + 10.0, rect.bottom()))))
        .collect();
    let sign = |tip: Pos2| Rect::from_min_max(tip - Vec2::new(SIGN, 9.0), tip + Vec2::new(SIGN, 0.0));
    let words: Vec<Rect> = taken.clone();
    taken.extend(shown.iter().map(|(_, tip)| sign(*tip)));
    for (peak, tip) in shown {
        let color = if peak.is_before { theme.text2 } else { theme.text };
        let mark = if peak.is_before { theme.text2 } else { theme.ink };
        paint_peak(painter, tip, mark);
        if peak.words.is_empty() {
            continue;
        }
        let weight = if peak.is_before { Weight::Medium } else { Weight::SemiBold };
        let galley = painter.layout_no_wrap(peak.words.clone(), weight.at(size::SMALL), color);
        // In a plot smaller than the words, the sign alone.
        if galley.size().x > rect.width() || galley.size().y > rect.height() {
            continue;
        }
        let place = beside(tip, galley.size(), rect, &taken);
        // Nor where other words leave it no room.
        if words.iter().any(|other| other.intersects(place)) {
            continue;
        }
        painter.rect_filled(place.expand2(Vec2::new(3.0, 0.0)), 2.0, theme.panel);
        painter.galley(place.min, galley, color);
        taken.push(place);
    }
}

/// A rectangle for a label beside a peak's tip, inside `rect` and clear of `taken`; prefers the side with more room.
fn beside(tip: Pos2, size: Vec2, rect: Rect, taken: &[Rect]) -> Rect {
    let at = |dx: f32, dy: f32| Pos2::new(tip.x + dx, (tip.y + dy).max(rect.top() + size.y / 2.0));
    let right = |dy: f32| Align2::LEFT_CENTER.anchor_size(at(11.0, dy), size);
    let left = |dy: f32| Align2::RIGHT_CENTER.anchor_size(at(-11.0, dy), size);
    let near = if tip.x > rect.center().x { [left(-6.0), right(-6.0)] } else { [right(-6.0), left(-6.0)] };
    let shifts = [-18.0, 8.0, 20.0, 32.0];
    let further = shifts
        .iter()
        .flat_map(|&dy| if tip.x > rect.center().x { [left(dy), right(dy)] } else { [right(dy), left(dy)] });
    let free =
        |place: &Rect| rect.contains_rect(*place) && !taken.iter().any(|other| other.intersects(place.expand(1.0)));
    near.into_iter().chain(further).find(free).unwrap_or_else(|| {
        let y = near[0].center().y.clamp(rect.top() + size.y / 2.0, (rect.bottom() - size.y / 2.0).max(rect.top()));
        let most = (rect.right() - size.x / 2.0).max(rect.left() + size.x / 2.0);
        let x = near[0].center().x.clamp(rect.left() + size.x / 2.0, most);
        Rect::from_center_size(Pos2::new(x, y), size)
    })
}

/// Vertical position of the limit line in a window; `None` if it is not visible.
pub(super) fn limit_line(window: &Window, limit: u64) -> Option<f32> {
    let value = limit as f64;
    (window.y.lo <= value && value <= window.y.hi).then(|| window.y_of(value).round())
}

/// Draws the limit line and its label in a band that is not a chart; returns the rectangle of its flag, if it has one.
#[expect(clippy::must_use_candidate, reason = "most callers only need the painting")]
pub fn limit(ui: &Ui, theme: &Theme, window: &Window, limit: Option<u64>, units: UnitSystem) -> Option<Rect> {
    paint_limit(ui.painter(), theme, window, limit, 2.0);
    limit.and_then(|limit| limit_words(ui, theme, window, (limit, units, CAPACITY), &[]))
}

/// Draws the limit line if it is visible; `width` is in points.
pub fn paint_limit(painter: &Painter, theme: &Theme, window: &Window, limit: Option<u64>, width: f32) {
    if let Some(y) = limit.and_then(|limit| limit_line(window, limit)) {
        painter.hline(window.rect.x_range(), y, Stroke::new(width, theme.over));
    }
}

/// What a limit is called where nothing else is said.
pub(super) const CAPACITY: &str = "capacity";

/// Draws the label of the limit right of the plot; if the line is not visible, a flag at the edge beyond which it lies,
/// at the right unless one of `peaks` is there. Returns the rectangle of the flag.
pub(super) fn limit_words(
    ui: &Ui,
    theme: &Theme,
    window: &Window,
    (limit, units, name): (u64, UnitSystem, &str),
    peaks: &[Peak],
) -> Option<Rect> {
    let rect = window.rect;
    let painter = ui.painter();
    let bold = Weight::SemiBold.at(size::SMALL);
    let number = units.capacity(Bytes(limit));
    if let Some(y) = limit_line(window, limit) {
        let line = 14.0;
        let y = y.clamp(rect.top() + line, (rect.bottom() - line).max(rect.top() + line));
        let at = Pos2::new(rect.right() + 8.0, y);
        painter.text(at, Align2::LEFT_BOTTOM, name, Weight::Regular.at(size::SMALL), theme.danger);
        painter.text(at, Align2::LEFT_TOP, number, bold, theme.danger);
        return None;
    }
    let is_above = limit as f64 > window.y.hi;
    let side = if is_above { "above" } else { "below" };
    // What is in sight is over the limit only if that lies below it.
    let color = if is_above { theme.text2 } else { theme.danger };
    let laid = |words: String| painter.layout_no_wrap(words, bold.clone(), color);
    let covers = |left: f32, width: f32| {
        peaks.iter().any(|peak| (left - 8.0..=left + width + 8.0).contains(&window.x_of(peak.x)))
    };
    let room = Vec2::new(26.0, 4.0);
    let mut galley = laid(format!("{name} {number}, {side}"));
    let width = galley.size().x + room.x;
    // Where the words have no room beside a peak at either edge, the number alone may.
    if width > rect.width() || (covers(rect.right() - width, width) && covers(rect.left(), width)) {
        galley = laid(number);
    }
    let size = galley.size() + room;
    let top = if is_above { rect.top() } else { rect.bottom() - size.y };
    let right = rect.right() - size.x;
    let left = if covers(right, size.x) { rect.left() } else { right };
    let ground = Rect::from_min_size(Pos2::new(left, top), size);
    painter.rect_filled(ground, 2.0, theme.panel);
    painter.galley(ground.min + Vec2::new(20.0, 2.0), galley, color);
    if is_above {
        let at = ground.left_center() + Vec2::new(10.0, 0.0);
        // An open arrow: the filled triangles mean over and peak.
        let points = vec![at + Vec2::new(-4.5, 2.0), at + Vec2::new(0.0, -3.0), at + Vec2::new(4.5, 2.0)];
        painter.add(Shape::line(points, Stroke::new(1.5, color)));
    }
    Some(ground)
}

/// Where words of `width` points stand within `place` so that an upright line at `line` does not go through them: at its
/// beginning, else behind the line, else in the larger part.
#[must_use]
pub fn aside(place: Rangef, width: f32, line: f32) -> Rangef {
    let end = (place.min + width).min(place.max);
    if !Rangef::new(place.min, end).expand(ASIDE).contains(line) {
        return place;
    }
    let (before, after) = (Rangef::new(place.min, line - ASIDE), Rangef::new(line + ASIDE, place.max));
    if after.span() >= width.min(before.span()) { after } else { before }
}

/// Least distance of words from a line.
const ASIDE: f32 = 5.0;

/// Where the flag of a cursor stands in the row of numbers below the plot; `None` where the cursor is out of sight.
#[must_use]
pub fn flag_place(ui: &Ui, row: Rect, x: f32, words: &str) -> Option<Rect> {
    if !row.x_range().contains(x) {
        return None;
    }
    let font = Weight::SemiBold.at(size::SMALL);
    let size = ui.painter().layout_no_wrap(words.to_owned(), font, Color32::PLACEHOLDER).size() + Vec2::new(12.0, 4.0);
    let least = row.left() + size.x / 2.0;
    let center = x.clamp(least, (row.right() - size.x / 2.0).max(least));
    Some(Rect::from_center_size(Pos2::new(center, row.top() + 12.0), size))
}

/// The place of a flag in its row, moved just so far that it lies beside another one, on its own side of it if there is
/// room.
#[must_use]
pub fn flag_beside(row: Rect, place: Rect, other: Rect) -> Rect {
    if !place.intersects(other.expand2(Vec2::new(FLAGS_APART, 0.0))) {
        return place;
    }
    let behind = place.translate(Vec2::new(other.right() + FLAGS_APART - place.left(), 0.0));
    let before = place.translate(Vec2::new(other.left() - FLAGS_APART - place.right(), 0.0));
    let has_room = |place: &Rect| row.x_range().contains(place.left()) && row.x_range().contains(place.right());
    let is_behind = place.center().x >= other.center().x;
    let both = if is_behind { [behind, before] } else { [before, behind] };
    both.into_iter().find(has_room).unwrap_or(place)
}

/// Distance of two flags in one row, in points.
const FLAGS_APART: f32 = 4.0;

/// The filled flag of a cursor with its words, at its place in the row of numbers below the plot.
pub fn flag(ui: &Ui, theme: &Theme, rect: Rect, words: &str, is_strong: Strength) {
    let (fill, color) = match is_strong {
        Strength::Chosen => (theme.ink, theme.halo),
        Strength::Pointed => (theme.inset, theme.text),
    };
    let galley = ui.painter().layout_no_wrap(words.to_owned(), Weight::SemiBold.at(size::SMALL), color);
    ui.painter().rect_filled(rect, 3.0, fill);
    ui.painter().galley(rect.center() - galley.size() / 2.0, galley, color);
}

/// Whether a flag marks the chosen position or the one under the pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// Chosen: in ink.
    Chosen,
    /// Under the pointer: paler.
    Pointed,
}

/// Draws a chosen range across bands that share an x axis.
pub fn range(painter: &Painter, theme: &Theme, axis: &Window, (from, to): (f64, f64), bands: &[Rect]) {
    let (left, right) = (axis.x_of(from).max(axis.rect.left()), axis.x_of(to).min(axis.rect.right()));
    if left > right {
        return;
    }
    for band in bands.iter().filter(|band| band.height() > 0.0) {
        let area = Rect::from_min_max(Pos2::new(left, band.top()), Pos2::new(right.max(left + 1.0), band.bottom()));
        painter.rect_filled(area, 0.0, theme.accent.gamma_multiply(0.12));
        for x in [area.left(), area.right()] {
            painter.vline(x, area.y_range(), Stroke::new(1.0, theme.accent));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_moves_beside_another_one() {
        let row = Rect::from_min_size(Pos2::ZERO, Vec2::new(400.0, 24.0));
        let at = |left: f32, width: f32| Rect::from_min_size(Pos2::new(left, 2.0), Vec2::new(width, 20.0));
        let peak = at(100.0, 90.0);
        assert_eq!(flag_beside(row, at(300.0, 30.0), peak), at(300.0, 30.0));
        assert_eq!(flag_beside(row, at(170.0, 30.0), peak), at(194.0, 30.0));
        assert_eq!(flag_beside(row, at(90.0, 30.0), peak), at(66.0, 30.0));
        assert_eq!(flag_beside(row, at(10.0, 30.0), at(0.0, 90.0)), at(94.0, 30.0), "no room on its side");
    }

    #[test]
    fn words_stand_beside_a_line() {
        let place = Rangef::new(10.0, 210.0);
        assert_eq!(aside(place, 60.0, 100.0), place, "the line is behind the words");
        assert_eq!(aside(place, 60.0, 40.0), Rangef::new(45.0, 210.0), "behind the line");
        assert_eq!(aside(place, 190.0, 200.0), Rangef::new(10.0, 195.0), "the larger part");
        assert_eq!(aside(place, 60.0, 5_000.0), place);
    }

    #[test]
    fn the_words_of_a_peak_move_aside() {
        let rect = Rect::from_min_size(Pos2::ZERO, Vec2::new(400.0, 200.0));
        let words = Vec2::new(80.0, 14.0);
        let tip = Pos2::new(100.0, 80.0);
        let free = beside(tip, words, rect, &[]);
        assert!(free.left() > tip.x, "beside it, where there is more room");
        let line = Rect::from_min_max(Pos2::new(0.0, 72.0), Pos2::new(400.0, 76.0));
        let place = beside(tip, words, rect, &[line]);
        assert!(!place.intersects(line) && rect.contains_rect(place), "{place:?} covers the line");
        let corner = beside(Pos2::new(396.0, 12.0), words, rect, &[]);
        assert!(corner.right() < 396.0 && rect.contains_rect(corner), "{corner:?}");
    }
}
