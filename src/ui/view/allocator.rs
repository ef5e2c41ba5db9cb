//! Allocator: the chunks of an allocator dump by address, the free memory between them, and whether a request fits.

use egui::{Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use crate::analysis::live_set::{Group, HeapAnalysis, bins, smallest};
use crate::model::{Bin, Bytes, Chunk, HeapMap, LiveSet, StringId, UnitSystem, parse_size, percent, thousands};
use crate::ui::chart::{Reach, Span};
use crate::ui::part::facts::fact;
use crate::ui::part::menu::{self, Thing};
use crate::ui::part::{KeyHelp, View, ViewContext, colors};
use crate::ui::session::Document;
use crate::ui::widget::controls::{self, cut_label, legend, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::raster::{CachedRaster, RasterArea};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::{Slot, Theme, size, space};

/// The view.
pub const VIEW: View =
    View { applies, card: Some(card), keys: KEYS, ..View::new("allocator", "Allocator", show).with_digit(4) };

const KEYS: &[KeyHelp] = &[("wheel, drag, W S A D", "Allocator: zoom and move the addresses")];

/// Height of the address strip, in points.
const STRIP: f32 = 96.0;
/// The decoder's name for a chunk in use without an op name.
const IN_USE: &str = "chunk in use";
/// Maximum number of free blocks listed in Details.
const FREE: usize = 12;
/// Maximum number of chunks examined for the colour of one pixel column.
const MOST: usize = 256;
/// Smallest visible span of addresses, in bytes.
const LEAST: f64 = 4096.0;

#[derive(Default)]
struct State {
    of: Option<usize>,
    /// Bytes before each chunk; gaps between regions are not counted.
    starts: Vec<u64>,
    /// Bytes in use before each chunk, and at the end.
    used: Vec<u64>,
    total: u64,
    slots: std::collections::HashMap<StringId, Slot>,
    bins: Vec<Bin>,
    /// Rows of the free chunks, largest first.
    free: Vec<u32>,
    x: Option<Span>,
    strip: CachedRaster,
    hovered: Option<u32>,
    /// The chunk under the keyboard cursor.
    at: Option<u32>,
    request: String,
    ops: TableState,
    rows: TableState,
}

/// Whether there is a dump with an address space.
fn applies(document: &Document) -> bool {
    document.profile.live.as_ref().is_some_and(|live| live.heap.is_some())
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let document = context.document.clone();
    let (Some(set), Some(analysis)) = (&document.profile.live, &document.analysis.live) else { return };
    let (Some(heap), Some(found)) = (&set.heap, &analysis.heap) else { return };
    let mut state = context.locals.take::<State>();
    update(&mut state, heap, set, &analysis.kinds, std::sync::Arc::as_ptr(&document) as usize);
    let full = ui.max_rect();
    let line = |top: f32, height: f32| {
        Rect::from_min_size(Pos2::new(full.left() + 16.0, top), Vec2::new(full.width() - 32.0, height))
    };
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(line(full.top() + 9.0, 26.0)).id_salt("tools"));
    let request = toolbar(&mut child, context, &mut state, heap);
    controls::hairline(ui, Rect::from_min_size(full.min, Vec2::new(full.width(), 44.0)), theme.line);
    let head = line(full.top() + 54.0, 48.0);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(head).id_salt("head"));
    answer(&mut child, context, heap, found, request);
    let names = line(head.bottom() + 4.0, 20.0);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(names).id_salt("legend"));
    legends(&mut child, theme, &analysis.kinds);
    let strip = line(names.bottom() + 6.0, STRIP);
    draw_strip(ui, context, &mut state, (set, heap), strip, request);
    let tables = Rect::from_min_max(
        Pos2::new(full.left() + 12.0, strip.bottom() + 28.0),
        Pos2::new(full.right() - 8.0, full.bottom() - 6.0),
    );
    if tables.height() > 60.0 {
        let split = tables.left() + (tables.width() * 0.5).floor();
        let left = Rect::from_min_max(tables.min, Pos2::new(split - 8.0, tables.bottom()));
        let right = Rect::from_min_max(Pos2::new(split + 8.0, tables.top()), tables.max);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(left).id_salt("ops"));
        child.set_clip_rect(left.intersect(ui.clip_rect()));
        ops(&mut child, context, &mut state, &analysis.kinds, analysis.total);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(right).id_salt("bins"));
        child.set_clip_rect(right.intersect(ui.clip_rect()));
        bin_table(&mut child, context, &mut state, request);
    }
    context.locals.put(state);
}

fn update(state: &mut State, heap: &HeapMap, set: &LiveSet, kinds: &[Group], document: usize) {
    if state.of == Some(document) {
        return;
    }
    *state = State { of: Some(document), ..State::default() };
    let mut used = 0u64;
    for chunk in &heap.chunks {
        state.starts.push(state.total);
        state.used.push(used);
        used = used.saturating_add(if chunk.in_use { chunk.size.0 } else { 0 });
        state.total = state.total.saturating_add(chunk.size.0);
    }
    state.used.push(used);
    let rank: std::collections::HashMap<&str, usize> =
        kinds.iter().enumerate().map(|(rank, group)| (group.key.as_str(), rank)).collect();
    for chunk in heap.chunks.iter().filter(|chunk| chunk.in_use) {
        state.slots.entry(chunk.op).or_insert_with(|| {
            let name = Some(set.strings.get(chunk.op)).filter(|name| !name.is_empty()).unwrap_or(IN_USE);
            rank.get(name).map_or(Slot::Activation, |&rank| colors::slot_of_group(rank, ""))
        });
    }
    state.bins = bins(heap);
    state.free = (0u32..).zip(&heap.chunks).filter(|(_, chunk)| !chunk.in_use).map(|(row, _)| row).collect();
    state.free.sort_by_key(|&row| std::cmp::Reverse(heap.chunks[row as usize].size));
}

/// The request to test: as typed, from the file, or from a message joined to it.
fn toolbar(ui: &mut Ui, context: &ViewContext<'_>, state: &mut State, heap: &HeapMap) -> Option<Bytes> {
    let theme = context.theme;
    let said = context.document.profile.failures.iter().find_map(|failure| failure.bytes("requested"));
    let known = heap.failed_request.or(said);
    let mut request = known;
    ui.horizontal(|ui| {
        let name = if heap.allocator.is_empty() { "allocator" } else { &heap.allocator };
        ui.label(text(name, size::BODY, Weight::SemiBold, theme.text));
        ui.add_space(12.0);
        ui.label(text("Would it fit?", size::SMALL, Weight::Regular, theme.text2));
        let hint = known.map_or_else(|| "10.44GiB".to_owned(), Bytes::short);
        let edit = egui::TextEdit::singleline(&mut state.request)
            .hint_text(hint)
            .desired_width(110.0)
            .font(Weight::Mono.at(size::SMALL));
        let response = ui.add_sized(Vec2::new(110.0, space::CONTROL), edit);
        response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Size of a request"));
        let typed = state.request.trim();
        if !typed.is_empty() {
            match parse_size(typed) {
                Ok(bytes) => request = Some(bytes),
                Err(error) => {
                    ui.label(text(error, size::SMALL, Weight::Regular, theme.warn));
                }
            }
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if controls::button(ui, "All", "0", theme).clicked() {
                state.x = None;
            }
        });
    });
    request
}

fn answer(ui: &mut Ui, context: &ViewContext<'_>, heap: &HeapMap, found: &HeapAnalysis, request: Option<Bytes>) {
    let theme = context.theme;
    ui.spacing_mut().item_spacing.y = 2.0;
    let width = ui.available_width();
    let largest = context.short(found.largest_free);
    let (words, color) = match request {
        Some(request) if request > found.largest_free => {
            let short = context.short(request.saturating_sub(found.largest_free));
            let asked = context.short(request);
            let words = if request <= found.free {
                format!(
                    "{asked} does not fit: {} is free, but the largest block is {largest}",
                    context.short(found.free)
                )
            } else {
                format!("{asked} does not fit: the largest free block is {largest}, {short} too small")
            };
            (words, theme.danger)
        }
        Some(request) => (format!("{} fits: the largest free block is {largest}", context.short(request)), theme.ok),
        None => {
            let words = format!(
                "{} of {} in use; the largest free block is {largest}",
                context.short(found.in_use),
                context.short(found.total)
            );
            (words, theme.text)
        }
    };
    cut_label(ui, &words, Weight::SemiBold.at(size::HEADLINE), color, width);
    let rounding = found.in_use.saturating_sub(found.requested);
    let mut parts = vec![
        format!("{} chunks in {} regions", thousands(heap.chunks.len() as u64), thousands(found.regions.len() as u64)),
        format!("{} free in {} blocks", context.short(found.free), thousands(found.free_chunks as u64)),
    ];
    if let Some(share) = found.fragmentation {
        parts.push(format!("{:.1}\u{2009}% of free memory is outside the largest block", share * 100.0));
    }
    if found.requested > Bytes::ZERO && rounding > Bytes::ZERO {
        parts.push(format!("{} lost to rounding up", context.short(rounding)));
    }
    if let Some(stats) = &heap.stats {
        parts.push(format!("highest use {}", context.short(stats.peak_bytes)));
    }
    cut_label(ui, &format!("{}.", parts.join("; ")), Weight::Regular.at(size::BODY), theme.text2, width);
}

fn legends(ui: &mut Ui, theme: &Theme, kinds: &[Group]) {
    ui.horizontal(|ui| {
        ui.label(text("By address", size::SMALL, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        for (rank, group) in kinds.iter().take(8).enumerate() {
            if ui.available_width() > 220.0 {
                legend(ui, colors::slot_of_group(rank, ""), &group.key, theme);
            }
        }
        let (rect, _) = ui.allocate_exact_size(Vec2::new(14.0, 18.0), Sense::hover());
        let square = Rect::from_center_size(rect.center(), Vec2::splat(10.0));
        ui.painter().rect(square, 1.0, theme.inset, Stroke::new(1.0, theme.text3), StrokeKind::Inside);
        ui.label(text("free", size::SMALL, Weight::Regular, theme.text2));
    });
}

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

fn draw_strip(
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
        let block = place(largest).intersect(rect);
        painter.rect_stroke(block, 0.0, Stroke::new(2.0, theme.accent), StrokeKind::Inside);
        let words = format!("largest free block {}", context.short(heap.chunks[largest as usize].size));
        let font = Weight::Medium.at(size::SMALL);
        let color =
            if request.is_some_and(|r| r > heap.chunks[largest as usize].size) { theme.danger } else { theme.accent };
        let galley = ui.painter().layout_no_wrap(words, font, color);
        if rect.x_range().contains(block.center().x) {
            let room = (rect.right() - galley.size().x).max(rect.left());
            let x = (block.center().x - galley.size().x / 2.0).clamp(rect.left(), room);
            ui.painter().galley(Pos2::new(x, rect.bottom() + 4.0), galley, color);
        }
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
    response.on_hover_ui_at_pointer(|ui| {
        let what = if chunk.in_use { op_name(set, &chunk) } else { "free" };
        ui.label(text(what, size::BODY, Weight::SemiBold, theme.text));
        let words = format!("{}   {}", context.short(chunk.size), chunk.size.exact());
        ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
        if chunk.in_use && chunk.requested > Bytes::ZERO && chunk.requested < chunk.size {
            let words = format!("requested {}", chunk.requested.exact());
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        }
        let step = if chunk.step > 0 { format!("   step {}", thousands(chunk.step)) } else { String::new() };
        ui.label(text(format!("{:#x}{step}", chunk.address), size::SMALL, Weight::Mono, theme.text2));
    });
}

/// The subject of a chunk's context menu.
fn chunk_thing(set: &LiveSet, chunk: &Chunk) -> Thing {
    let name = if chunk.in_use { op_name(set, chunk).to_owned() } else { "free".to_owned() };
    let thing = Thing::named(name).copies("Copy address", format!("{:#x}", chunk.address));
    thing.copies("Copy bytes", chunk.size.0.to_string()).shown_in("live")
}

fn op_name<'a>(set: &'a LiveSet, chunk: &Chunk) -> &'a str {
    match set.strings.get(chunk.op) {
        "" => "in use, no op name",
        name => name,
    }
}

fn ops(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, kinds: &[Group], total: Bytes) {
    let unit = context.options.units.unit_for(Bytes(kinds.first().map_or(0, |group| group.bytes.0) / 64));
    let columns = [
        Column::text("In use by", 120.0, 1.0).fixed(),
        Column::number("Chunks", 70.0).fixed(),
        Column::number(&format!("Size, {}", unit.1), 90.0).fixed(),
        Column::number("Share", 130.0).fixed(),
    ];
    let table = Table {
        columns: &columns,
        rows: kinds.len(),
        selected: None,
        lit: None,
        sort: Some((2, true)),
        name: "operations",
        keys: false,
    };
    let slot = |rank: usize| colors::slot_of_group(rank, "");
    let response = table.show(
        ui,
        &mut state.ops,
        |row| format!("{} {}", kinds[row].key, context.short(kinds[row].bytes)),
        |row, column| {
            let group = &kinds[row];
            match column {
                0 => Cell::text(group.key.clone()).swatch(slot(row)),
                1 => Cell::text(thousands(group.count)).quiet(),
                2 => Cell::text(UnitSystem::in_unit(group.bytes, unit.0)).strong(),
                _ => Cell::text(percent(group.bytes.0, total.0))
                    .bar((group.bytes.0 as f64 / total.0.max(1) as f64) as f32, slot(row)),
            }
        },
    );
    menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        Thing::named(kinds[row].key.clone()).copies("Copy bytes", kinds[row].bytes.0.to_string()).shown_in("live")
    });
}

fn bin_table(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, request: Option<Bytes>) {
    let columns = [
        Column::text("Bin, from", 90.0, 1.0).fixed(),
        Column::number("In use", 70.0).fixed(),
        Column::number("Free", 70.0).fixed(),
        Column::number("Bytes free", 100.0).fixed(),
        Column::number("In use", 150.0).fixed(),
    ];
    let bins = &state.bins;
    let from = smallest;
    let wanted = request.and_then(|request| bins.iter().rposition(|bin| from(bin) <= request));
    let table = Table {
        columns: &columns,
        rows: bins.len(),
        selected: None,
        lit: wanted,
        sort: None,
        name: "bins",
        keys: false,
    };
    let free = |bin: &Bin| bin.bytes.saturating_sub(bin.bytes_in_use);
    let response = table.show(
        ui,
        &mut state.rows,
        |row| format!("bin {}: {} free", from(&bins[row]).short(), context.short(free(&bins[row]))),
        |row, column| {
            let bin = &bins[row];
            match column {
                0 => Cell::text(UnitSystem::Binary.capacity(from(bin))),
                1 => Cell::text(thousands(bin.chunks_in_use.unsigned_abs())),
                2 => Cell::text(thousands(bin.chunks.saturating_sub(bin.chunks_in_use).unsigned_abs())),
                3 if free(bin) == Bytes::ZERO => Cell::text("0").quiet(),
                3 => Cell::text(context.short(free(bin))).strong(),
                _ => Cell::text(percent(bin.bytes_in_use.0, bin.bytes.0))
                    .bar((bin.bytes_in_use.0 as f64 / bin.bytes.0.max(1) as f64) as f32, Slot::Activation),
            }
        },
    );
    menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        Thing::named(format!("bin {}", from(&bins[row]).short())).copies("Copy bytes", free(&bins[row]).0.to_string())
    });
}

/// Details: the chunk under the pointer, the largest free blocks.
fn card(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let document = context.document.clone();
    let Some((set, heap)) = document.profile.live.as_ref().and_then(|set| Some((set, set.heap.as_ref()?))) else {
        return;
    };
    let state = context.locals.take::<State>();
    let width = ui.available_width();
    if let Some(chunk) = state.hovered.and_then(|row| heap.chunks.get(row as usize)) {
        let what = if chunk.in_use { op_name(set, chunk) } else { "Free" };
        cut_label(ui, what, Weight::SemiBold.at(size::LEAD), theme.text, width);
        fact(ui, theme, "Bytes", &chunk.size.exact());
        fact(ui, theme, "Requested", &chunk.requested.exact());
        fact(ui, theme, "Address", &format!("{:#x}", chunk.address));
        rule(ui, theme);
    }
    if let Some(stats) = &heap.stats {
        ui.label(text("The allocator's own statistics", size::BODY, Weight::SemiBold, theme.text));
        fact(ui, theme, "In use", &stats.bytes_in_use.exact());
        fact(ui, theme, "Highest use", &stats.peak_bytes.exact());
        fact(ui, theme, "Largest allocation", &stats.largest_allocation.exact());
        fact(ui, theme, "Allocations", &thousands(stats.allocations.unsigned_abs()));
        fact(
            ui,
            theme,
            "Fragmentation, as reported",
            &format!("{:.1}\u{2009}%", f64::from(stats.fragmentation) * 100.0),
        );
        rule(ui, theme);
    }
    ui.label(text("Largest free blocks", size::BODY, Weight::SemiBold, theme.text));
    for &row in state.free.iter().take(FREE) {
        let chunk = &heap.chunks[row as usize];
        fact(ui, theme, &format!("{:#x}", chunk.address), &chunk.size.exact());
    }
    if state.free.len() > FREE {
        let words = format!("and {} smaller ones", thousands((state.free.len() - FREE) as u64));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    }
    context.locals.put(state);
}
