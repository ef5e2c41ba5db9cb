//! Allocator: the chunks of an allocator dump by address, the free memory between them, and whether a request fits; or
//! the history of PyTorch's caching allocator.

mod history;
mod strip;

use egui::{Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use crate::analysis::live_set::{Group, HeapAnalysis, bins, smallest};
use crate::model::{Bin, Bytes, HeapMap, LiveSet, StringId, UnitSystem, parse_size, percent, thousands};
use crate::ui::chart::Span;
use crate::ui::part::facts::{bytes_fact, fact};
use crate::ui::part::menu::{self, Thing};
use crate::ui::part::{KeyHelp, View, ViewContext, colors};
use crate::ui::session::Document;
use crate::ui::widget::controls::{self, cut_label, legend, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::CachedRaster;
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

#[derive(Default)]
struct State {
    of: Option<u64>,
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

/// Whether there is a dump with an address space, or a history of a caching allocator.
fn applies(document: &Document) -> bool {
    !document.analysis.caching.is_empty() || document.profile.live.as_ref().is_some_and(|live| live.heap.is_some())
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    if !context.document.analysis.caching.is_empty() {
        return history::show(ui, context);
    }
    let theme = context.theme;
    let document = context.document.clone();
    let (Some(set), Some(analysis)) = (&document.profile.live, &document.analysis.live) else { return };
    let (Some(heap), Some(found)) = (&set.heap, &analysis.heap) else { return };
    let mut state = context.locals.take::<State>();
    update(&mut state, heap, set, &analysis.kinds, document.id());
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
    strip::draw_strip(ui, context, &mut state, (set, heap), strip, request);
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

fn update(state: &mut State, heap: &HeapMap, set: &LiveSet, kinds: &[Group], document: u64) {
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

fn ops(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, kinds: &[Group], total: Bytes) {
    let unit = context.options.units.unit_for(Bytes(kinds.first().map_or(0, |group| group.bytes.0) / 64));
    let columns = [
        Column::text("In use by", 120.0, 1.0).fixed(),
        Column::number("Chunks", 70.0).fixed(),
        Column::number(&format!("Size, {}", unit.1), 90.0).fixed(),
        Column::number("Share", 130.0).fixed(),
    ];
    let table = Table { sort: Some((2, true)), ..Table::new(&columns, kinds.len(), "operations") };
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
    let most = state.bins.iter().map(|bin| bin.bytes.saturating_sub(bin.bytes_in_use)).max().unwrap_or_default();
    let (unit, unit_name) = context.options.units.unit_for(most);
    let columns = [
        Column::text("Bin, from", 90.0, 1.0).fixed(),
        Column::number("In use", 70.0).fixed(),
        Column::number("Free", 70.0).fixed(),
        Column::number(&format!("Free, {unit_name}"), 100.0).fixed(),
        Column::number("In use", 150.0).fixed(),
    ];
    let bins = &state.bins;
    let from = smallest;
    let wanted = request.and_then(|request| bins.iter().rposition(|bin| from(bin) <= request));
    let table = Table { lit: wanted, ..Table::new(&columns, bins.len(), "bins") };
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
                3 => Cell::text(UnitSystem::in_unit(free(bin), unit)).strong(),
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
    if !context.document.analysis.caching.is_empty() {
        return history::card(ui, context);
    }
    let theme = context.theme;
    let document = context.document.clone();
    let Some((set, heap)) = document.profile.live.as_ref().and_then(|set| Some((set, set.heap.as_ref()?))) else {
        return;
    };
    let state = context.locals.take::<State>();
    let (width, units) = (ui.available_width(), context.options.units);
    if let Some(chunk) = state.hovered.and_then(|row| heap.chunks.get(row as usize)) {
        let what = if chunk.in_use { strip::op_name(set, chunk) } else { "Free" };
        cut_label(ui, what, Weight::SemiBold.at(size::LEAD), theme.text, width);
        bytes_fact(ui, theme, units, "Bytes", chunk.size);
        bytes_fact(ui, theme, units, "Requested", chunk.requested);
        fact(ui, theme, "Address", &format!("{:#x}", chunk.address));
        rule(ui, theme);
    }
    if let Some(stats) = &heap.stats {
        ui.label(text("The allocator's own statistics", size::BODY, Weight::SemiBold, theme.text));
        bytes_fact(ui, theme, units, "In use", stats.bytes_in_use);
        bytes_fact(ui, theme, units, "Highest use", stats.peak_bytes);
        bytes_fact(ui, theme, units, "Largest allocation", stats.largest_allocation);
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
        bytes_fact(ui, theme, units, &format!("{:#x}", chunk.address), chunk.size);
    }
    if state.free.len() > FREE {
        let words = format!("and {} smaller ones", thousands((state.free.len() - FREE) as u64));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    }
    context.locals.put(state);
}
