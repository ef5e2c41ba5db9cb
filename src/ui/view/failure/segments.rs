//! The segments of a caching allocator from low to high address, all in one scale, with the request that fitted nowhere.

use egui::{Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use super::section::section;
use super::snapshot::{State, slot_of};
use crate::analysis::caching_allocator::{AllocationCategory, CachingAnalysis, FailedRequest, SegmentUse, own_frame};
use crate::model::{Bytes, CachingSnapshot, capitalised, counted};
use crate::ui::part::{ViewContext, caching};
use crate::ui::widget::controls::{legend, paint_pin};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::{Hatch, Raster, RasterArea};
use crate::ui::widget::theme::{Theme, dimmed, size};

/// Height of a line, and the space below it.
const LINE: f32 = 16.0;
const GAP: f32 = 4.0;
/// A line holds at least this share of all segments, so that there are few enough of them.
const LINES: u64 = 18;
/// Space between segments, in points.
const BETWEEN: f32 = 2.0;

/// Width of a numbered disc.
const DISC: f32 = 18.0;

/// Part of a segment on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    line: usize,
    /// Bytes of the line before it.
    at: u64,
    /// First byte.
    address: u64,
    bytes: u64,
    segment: usize,
    /// Whether the segment ends with it.
    is_last: bool,
}

/// Segments laid out in lines of equal length; a segment goes on in the next line only if it is longer than one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Bytes that a line holds.
    full: u64,
    count: usize,
    pieces: Vec<Piece>,
}

impl Lines {
    fn new(segments: &[(u64, u64)], request: u64) -> Self {
        let total = segments.iter().map(|segment| segment.1).fold(0, u64::saturating_add);
        let full = (total / LINES).max(request.saturating_add(request / 4)).max(1);
        let mut lines = Self { full, ..Self::default() };
        let (mut line, mut at) = (0, 0u64);
        for (segment, &(address, size)) in segments.iter().enumerate() {
            if at > 0 && (at >= full || (size <= full && at.saturating_add(size) > full)) {
                (line, at) = (line + 1, 0);
            }
            let mut done = 0;
            while done < size {
                let bytes = (size - done).min(full - at);
                let is_last = done + bytes == size;
                let address = address.saturating_add(done);
                lines.pieces.push(Piece { line, at, address, bytes, segment, is_last });
                (done, at) = (done + bytes, at + bytes);
                if done < size {
                    (line, at) = (line + 1, 0);
                }
            }
        }
        lines.count = lines.pieces.last().map_or(0, |piece| piece.line + 1);
        lines
    }

    fn rect_of(&self, piece: &Piece, whole: Rect) -> Rect {
        let scale = whole.width() / self.full as f32;
        let top = whole.top() + (LINE + GAP) * piece.line as f32;
        let left = whole.left() + piece.at as f32 * scale;
        let width = piece.bytes as f32 * scale - if piece.is_last { BETWEEN } else { 0.0 };
        Rect::from_min_size(Pos2::new(left, top), Vec2::new(width.max(0.75), LINE))
    }
}

/// Draws the request and the segments below it.
pub fn show(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    failed: (&CachingSnapshot, &CachingAnalysis, &FailedRequest),
    state: &mut State,
) {
    let (snapshot, device, failure) = failed;
    let theme = context.theme;
    if state.segments.is_empty() {
        return;
    }
    let segments: Vec<(u64, u64)> = state.segments.iter().map(|one| (one.address, one.reserved.size)).collect();
    let lines = state.lines.take().unwrap_or_else(|| Lines::new(&segments, failure.segment));
    section(ui, theme, &capitalised(&counted(segments.len() as u64, "segment")), "");
    let key = format!(
        "From low to high address; a line is {}. Empty: free. Outlined: the largest hole. Pale: for other streams, pools or \
         sizes.",
        context.short(Bytes(lines.full))
    );
    ui.add(egui::Label::new(text(key, size::SMALL, Weight::Regular, theme.text2)).wrap());
    ui.horizontal_wrapped(|ui| {
        let rows = device.by_category();
        for category in AllocationCategory::ALL.into_iter().filter(|category| rows.iter().any(|row| row.0 == *category))
        {
            legend(ui, caching::slot_of(category), category.words(), theme);
        }
        if device.has_pending() {
            let words = "hatched: freed, still used by a stream";
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        }
    });
    ui.add_space(4.0);
    let width = ui.available_width();
    request(ui, context, failure, width / lines.full as f32);
    let height = (LINE + GAP) * lines.count as f32;
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, height), Sense::hover());
    let spoken = format!(
        "{} with {} free, the largest hole {}",
        counted(segments.len() as u64, "segment"),
        context.short(Bytes(state.segments.iter().map(|one| one.free).fold(0, u64::saturating_add))),
        context.short(Bytes(failure.largest_free))
    );
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
    let key = (theme.dark, failure.moment, segments.len());
    let area = RasterArea { rect, name: "segments", ground: theme.canvas };
    let (used, serves) = (&state.segments, |one: &SegmentUse| device.serves(snapshot, failure, &one.reserved));
    state.raster.show(ui, area, key, |raster| {
        let origin = Rect::from_min_size(Pos2::ZERO, rect.size());
        for piece in &lines.pieces {
            let Some(segment) = used.get(piece.segment) else { continue };
            blocks(raster, device, (segment, serves(segment)), (piece, lines.rect_of(piece, origin)), theme);
        }
    });
    for piece in &lines.pieces {
        let place = lines.rect_of(piece, rect);
        if place.width() >= 2.0 && ui.is_rect_visible(place) {
            ui.painter().rect_stroke(place, 0.0, Stroke::new(1.0, theme.line2), StrokeKind::Inside);
        }
    }
    marks(ui, context, (device, failure), state, &lines, rect);
    let at = ui.input(|i| i.pointer.hover_pos()).filter(|at| response.hovered() && rect.contains(*at));
    let under =
        at.and_then(|at| lines.pieces.iter().find(|piece| lines.rect_of(piece, rect).contains(at)).zip(Some(at)));
    if let Some((piece, at)) = under {
        let inside = f64::from((at.x - lines.rect_of(piece, rect).left()).max(0.0) / width) * lines.full as f64;
        let words =
            described(context, (snapshot, device), &state.segments[piece.segment], piece.address + inside as u64);
        response.on_hover_text_at_pointer(words);
    }
    state.lines = Some(lines);
}

/// The request at its true length.
fn request(ui: &mut Ui, context: &ViewContext<'_>, failure: &FailedRequest, scale: f32) {
    let theme = context.theme;
    let (line, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), LINE + 6.0), Sense::hover());
    let words = format!("{} asked for in one piece", context.short(Bytes(failure.segment)));
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &words));
    let bar = Rect::from_min_size(
        Pos2::new(line.left(), line.top() + 2.0),
        Vec2::new((failure.segment as f32 * scale).max(2.0), LINE),
    );
    ui.painter().rect_filled(bar, 0.0, theme.over);
    let galley = ui.painter().layout_no_wrap(words, Weight::SemiBold.at(size::SMALL), theme.text);
    // Beside the bar, or on a ground of its own where the bar leaves no room.
    let room = line.right() - bar.right() - 10.0;
    let left = if galley.size().x <= room { bar.right() + 8.0 } else { line.right() - galley.size().x - 8.0 };
    let ground = Rect::from_min_size(Pos2::new(left, bar.center().y - galley.size().y / 2.0), galley.size());
    if galley.size().x > room {
        ui.painter().rect_filled(ground.expand2(Vec2::new(4.0, 1.0)), 2.0, theme.panel);
    }
    ui.painter().galley(ground.min, galley, theme.text);
}

fn blocks(
    raster: &mut Raster,
    device: &CachingAnalysis,
    (segment, is_usable): (&SegmentUse, bool),
    (piece, place): (&Piece, Rect),
    theme: &Theme,
) {
    let scale = raster.scale();
    let pixel = |points: f32| (points * scale).round() as i64;
    let (top, bottom) = (pixel(place.top()), pixel(place.bottom()));
    let end = piece.address.saturating_add(piece.bytes);
    let x = |address: u64| {
        let share = address.saturating_sub(piece.address).min(piece.bytes) as f32 / piece.bytes.max(1) as f32;
        place.left() + place.width() * share
    };
    let rows = &segment.blocks;
    let from = |row: &usize| device.replay.lifetimes[*row].address;
    let first = rows.partition_point(|row| from(row) < piece.address).saturating_sub(1);
    let mut drawn = i64::MIN;
    for &row in rows[first..].iter().take_while(|row| from(row) < end) {
        let life = &device.replay.lifetimes[row];
        let (left, right) = (pixel(x(life.address)), pixel(x(life.address.saturating_add(life.size))));
        // Narrow blocks share a pixel.
        let right = right.max(left + 1);
        if right <= drawn || life.address.saturating_add(life.size) <= piece.address {
            continue;
        }
        let color = slot_of(device, row).color();
        let color = if is_usable { color } else { dimmed(color, theme) };
        raster.fill(left.max(drawn), top, right, bottom, color);
        if life.released <= device.failure().map_or(0, |failure| failure.moment) {
            raster.hatch(left.max(drawn), top, right, bottom, Hatch::padding(theme.hatch));
        }
        drawn = right;
    }
}

/// The largest hole that could have served the request, and the blocks that hold back the most.
fn marks(
    ui: &Ui,
    context: &ViewContext<'_>,
    (device, failure): (&CachingAnalysis, &FailedRequest),
    state: &State,
    lines: &Lines,
    rect: Rect,
) {
    let theme = context.theme;
    let place_of = |address: u64, bytes: u64| {
        let piece =
            lines.pieces.iter().find(|piece| address >= piece.address && address - piece.address < piece.bytes)?;
        let place = lines.rect_of(piece, rect);
        let scale = rect.width() / lines.full as f32;
        let left = place.left() + (address - piece.address) as f32 * scale;
        let width = (bytes as f32 * scale).min(place.right() - left).max(1.0);
        Some(Rect::from_min_size(Pos2::new(left, place.top()), Vec2::new(width, LINE)))
    };
    if let Some((address, bytes)) = failure.largest_hole
        && let Some(hole) = place_of(address, bytes)
    {
        ui.painter().rect_stroke(hole.expand(1.0), 0.0, Stroke::new(2.0, theme.over), StrokeKind::Outside);
        let galley =
            ui.painter().layout_no_wrap(context.short(Bytes(bytes)), Weight::SemiBold.at(size::SMALL), theme.text);
        if galley.size().x + 8.0 < hole.width() {
            ui.painter().galley(hole.center() - galley.size() / 2.0, galley, theme.text);
        }
    }
    // Where two discs would lie over each other, that of the block that holds back more is shown.
    let mut taken: Vec<Pos2> = Vec::new();
    for (number, pins) in state.pins.iter().enumerate() {
        for pin in pins {
            let life = &device.replay.lifetimes[pin.lifetime];
            let Some(place) = place_of(life.address, life.size).map(|place| place.center()) else { continue };
            if taken.iter().all(|other| other.distance(place) >= DISC) {
                paint_pin(ui.painter(), place, number + 1, theme);
                taken.push(place);
            }
        }
    }
}

/// What is at an address.
fn described(
    context: &ViewContext<'_>,
    (snapshot, device): (&CachingSnapshot, &CachingAnalysis),
    segment: &SegmentUse,
    address: u64,
) -> String {
    let short = |bytes: u64| context.short(Bytes(bytes));
    let lives = &device.replay.lifetimes;
    let whole = format!("{} segment of {}", segment.reserved.class.name(), short(segment.reserved.size));
    let next = segment.blocks.partition_point(|&row| lives[row].address <= address);
    let before = next.checked_sub(1).and_then(|at| segment.blocks.get(at)).map(|&row| (row, &lives[row]));
    if let Some((row, life)) = before
        && address < life.address.saturating_add(life.size)
    {
        let category = device.categories.get(row).map_or("", |row| row.0.words());
        let place = own_frame(snapshot, life.stack).map(|frame| format!("\n{}", snapshot.frame_words(frame)));
        return format!("{category}, {} in a {whole}{}", short(life.size), place.unwrap_or_default());
    }
    let start = before.map_or(segment.address, |(_, life)| life.address.saturating_add(life.size));
    let end = segment
        .blocks
        .get(next)
        .map_or(segment.address.saturating_add(segment.reserved.size), |&row| lives[row].address);
    format!("Free, {} in a {whole}", short(end.saturating_sub(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_keep_their_order_and_break_only_if_they_are_longer_than_a_line() {
        let segments = [(0, 60), (100, 60), (200, 250), (500, 10)];
        let lines = Lines::new(&segments, 80);
        assert_eq!(lines.full, 100);
        let found: Vec<_> =
            lines.pieces.iter().map(|piece| (piece.segment, piece.line, piece.at, piece.bytes)).collect();
        assert_eq!(
            found,
            [
                (0, 0, 0, 60),
                (1, 1, 0, 60),
                (2, 1, 60, 40),
                (2, 2, 0, 100),
                (2, 3, 0, 100),
                (2, 4, 0, 10),
                (3, 4, 10, 10)
            ]
        );
        for (row, &(_, size)) in segments.iter().enumerate() {
            let of = |piece: &&Piece| piece.segment == row;
            assert_eq!(lines.pieces.iter().filter(of).map(|piece| piece.bytes).sum::<u64>(), size);
        }
        assert_eq!(lines.count, 5);
        // Many segments are still few lines.
        let many: Vec<(u64, u64)> = (0..5000).map(|at| (at * 3, 2)).collect();
        assert!(Lines::new(&many, 1).count <= 2 * LINES as usize);
        assert_eq!(Lines::new(&[], 0).count, 0);
    }
}
