//! The strip of addresses: chunks in use by colour, free memory between them, the largest free block.

use egui::{Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, WidgetInfo};

use super::State;
use crate::model::{Bytes, Chunk, HeapMap, LiveSet, thousands};
use crate::ui::chart::{Reach, Span};
use crate::ui::part::ViewContext;
use crate::ui::part::menu::{self, Thing};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::raster::RasterArea;
use crate::ui::widget::theme::{Slot, size};

/// Maximum number of chunks examined for the colour of one pixel column.
const MOST: usize = 256;
/// Smallest visible span of addresses, in bytes.
const LEAST: f64 = 4096.0;

impl State {
    /// The chunk at an offset from the first byte.
    fn chunk_at(&self, at: f64) -> Option<u32> {
        let at = at.max(0.0) as u64;
        if at >= self.total {
            return None;
        }
        let after = self.starts.partition_point(|&start| start <= at);
        after.checked_sub(1).map(|row| row as u32)
    }

    /// Bytes in use before an offset from the first byte.
    fn used_before(&self, heap: &HeapMap, at: f64) -> f64 {
        let Some(row) = self.chunk_at(at) else { return self.used.last().map_or(0.0, |&used| used as f64) };
        let row = row as usize;
        let within = if heap.chunks[row].in_use { at - self.starts[row] as f64 } else { 0.0 };
        self.used[row] as f64 + within
    }

    fn slot(&self, chunk: &Chunk) -> Slot {
        self.slots.get(&chunk.op).copied().unwrap_or(Slot::Activation)
    }
}

/// Draws the chunks; wheel, dragging and keys zoom and move, arrows go from chunk to chunk.
pub fn draw_strip(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    (set, heap): (&LiveSet, &HeapMap),
    rect: Rect,
    request: Option<Bytes>,
) {
    let theme = context.theme;
    if state.total == 0 {
        return;
    }
    let whole = Span::new(0.0, state.total as f64);
    let reach = Reach { whole, least: LEAST.min(whole.len()) };
    let mut x = reach.visible(state.x);
    let response = ui.interact(rect, ui.scope_id().with("addresses"), Sense::click_and_drag());
    let spoken = format!("Chunks by address, {}", context.short(Bytes(state.total)));
    let here = state.at.and_then(|row| heap.chunks.get(row as usize)).filter(|_| response.has_focus());
    let here = here.map_or_else(String::new, |chunk| {
        let what = if chunk.in_use { op_name(set, chunk) } else { "free" };
        format!("; {what} {}, {}", context.short(chunk.size), chunk.size.exact())
    });
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, format!("{spoken}{here}")));
    if ui.rect_contains_pointer(rect) {
        reach.wheel(ui, rect, &mut x);
    }
    if response.dragged() {
        reach.drag(rect, &mut x, response.drag_delta().x);
    }
    let middle = f64::midpoint(x.lo, x.hi);
    reach.keys(ui, rect, &mut x, middle);
    state.x = reach.chosen(x);
    let key = (state.of, [x.lo, x.hi].map(f64::to_bits), theme.dark);
    let mut strip = std::mem::take(&mut state.strip);
    strip.show(ui, RasterArea { rect, name: "chunks by address", ground: theme.inset }, key, |raster| {
        let (width, height) = (raster.width() as i64, raster.height() as i64);
        for column in 0..width {
            let at = |column: i64| x.at(column as f64 / width as f64);
            // Each column is split by bytes: in use at the bottom, free above.
            let (from, to) = (at(column), at(column + 1));
            let used = state.used_before(heap, to) - state.used_before(heap, from);
            let share = (used / (to - from)).clamp(0.0, 1.0);
            // Its colour is that of the largest among its first chunks.
            let first = state.chunk_at(from).unwrap_or(0) as usize;
            let inside =
                heap.chunks.iter().zip(&state.starts).skip(first).take_while(|(_, start)| (**start as f64) < to);
            let parts = inside.take(MOST).filter(|(chunk, _)| chunk.in_use).map(|(chunk, &start)| {
                let part = (start as f64 + chunk.size.0 as f64).min(to) - (start as f64).max(from);
                (part, state.slot(chunk))
            });
            let most = parts.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, slot)| slot);
            if let (Some(slot), true) = (most, share > 0.0) {
                let top = height - ((share * height as f64).round() as i64).max(1);
                raster.fill(column, top, column + 1, height, slot.color());
            }
        }
    });
    state.strip = strip;
    let place = |row: u32| {
        let start = state.starts[row as usize] as f64;
        let end = start + heap.chunks[row as usize].size.0 as f64;
        let at = |value: f64| rect.left() + (x.share(value) * f64::from(rect.width())) as f32;
        Rect::from_min_max(Pos2::new(at(start), rect.top()), Pos2::new(at(end).max(at(start) + 1.0), rect.bottom()))
    };
    let painter = ui.painter().with_clip_rect(rect.expand(1.0));
    // Addresses between two regions are left out.
    if let Some(found) = context.document.analysis.live.as_ref().and_then(|live| live.heap.as_ref()) {
        let seams = found.regions.iter().skip(1).map(|region| place(region.0).left());
        for seam in seams.filter(|x| rect.x_range().contains(*x)).take(200) {
            painter.vline(seam.round(), rect.y_range(), Stroke::new(1.0, theme.ink));
        }
    }
    if let Some(&largest) = state.free.first() {
        let size = heap.chunks[largest as usize].size;
        let is_short = request.is_some_and(|request| request > size);
        largest_free(ui, context, rect, place(largest), (size, is_short));
    }
    let pressed = keys::field(ui, &response);
    state.hovered =
        response.hover_pos().and_then(|at| state.chunk_at(x.at(f64::from((at.x - rect.left()) / rect.width()))));
    let under = state.hovered;
    let mut focused = None;
    if pressed.has_focus && !heap.chunks.is_empty() {
        // The arrow keys move from chunk to chunk; the current one stays in view.
        let last = heap.chunks.len() as u32 - 1;
        let moved = state.at.unwrap_or(0).saturating_add_signed(pressed.by.x as i32 + pressed.pages as i32 * 16);
        let row = match (pressed.first, pressed.last) {
            (true, _) => 0,
            (_, true) => last,
            _ => moved.min(last),
        };
        state.at = Some(row);
        let middle = state.starts[row as usize] as f64 + heap.chunks[row as usize].size.0 as f64 / 2.0;
        if pressed.moves() && !(x.lo..x.hi).contains(&middle) {
            state.x = Some(x.moved(middle - f64::midpoint(x.lo, x.hi), whole));
        }
        keys::ring_at(&painter, place(row).intersect(rect), theme);
        focused = Some((chunk_thing(set, &heap.chunks[row as usize]), place(row)));
        state.hovered = Some(row);
    }
    let thing = under.map(|row| chunk_thing(set, &heap.chunks[row as usize]));
    menu::of_thing(ui, context, rect, thing, focused);
    let Some(row) = under else { return };
    painter.rect_stroke(place(row).intersect(rect), 0.0, Stroke::new(1.5, theme.ink), StrokeKind::Inside);
    let chunk = heap.chunks[row as usize];
    response.on_hover_ui_at_pointer(|ui| tooltip(ui, context, set, &chunk));
}

/// What the pointer is on.
fn tooltip(ui: &mut Ui, context: &ViewContext<'_>, set: &LiveSet, chunk: &Chunk) {
    let theme = context.theme;
    let what = if chunk.in_use { op_name(set, chunk) } else { "free" };
    ui.label(text(what, size::BODY, Weight::SemiBold, theme.text));
    let words = format!("{}   {}", context.short(chunk.size), chunk.size.exact());
    ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
    if chunk.in_use && chunk.requested > Bytes::ZERO && chunk.requested < chunk.size {
        let words = format!("requested {}", chunk.requested.exact());
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    }
    let step = if chunk.step > 0 { format!("   step {}", thousands(chunk.step)) } else { String::new() };
    ui.label(text(format!("{:#x}{step}", chunk.address), size::SMALL, Weight::Mono, theme.text2));
}

/// The subject of a chunk's context menu.
pub fn chunk_thing(set: &LiveSet, chunk: &Chunk) -> Thing {
    let name = if chunk.in_use { op_name(set, chunk).to_owned() } else { "free".to_owned() };
    let thing = Thing::named(name).copies("Copy address", format!("{:#x}", chunk.address));
    thing.copies("Copy bytes", chunk.size.0.to_string()).shown_in("live")
}

pub fn op_name<'a>(set: &'a LiveSet, chunk: &Chunk) -> &'a str {
    match set.strings.get(chunk.op) {
        "" => "in use, no op name",
        name => name,
    }
}

/// Marks the largest free block, and says its size below the strip; in red where the request is larger.
fn largest_free(ui: &Ui, context: &ViewContext<'_>, rect: Rect, block: Rect, (bytes, is_short): (Bytes, bool)) {
    let theme = context.theme;
    let block = block.intersect(rect);
    let painter = ui.painter().with_clip_rect(rect.expand(1.0));
    painter.rect_stroke(block, 0.0, Stroke::new(2.0, theme.accent), StrokeKind::Inside);
    let words = format!("largest free block {}", context.short(bytes));
    let color = if is_short { theme.danger } else { theme.accent };
    let galley = ui.painter().layout_no_wrap(words, Weight::Medium.at(size::SMALL), color);
    if rect.x_range().contains(block.center().x) {
        let room = (rect.right() - galley.size().x).max(rect.left());
        let x = (block.center().x - galley.size().x / 2.0).clamp(rect.left(), room);
        ui.painter().galley(Pos2::new(x, rect.bottom() + 4.0), galley, color);
    }
}
