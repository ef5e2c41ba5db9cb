//! The caching allocator in views: its curve, and what lives at a moment by category and by stack.

use egui::{Pos2, Rect, Stroke, Ui};

use crate::analysis::caching_allocator::{AllocationCategory, Apart, CachingAnalysis, StackGroup, own_frame};
use crate::model::{Bytes, CachingSnapshot, Frame, UnitSystem, percent, thousands};
use crate::ui::chart::legend::{self, Sign};
use crate::ui::chart::{self, Areas, Chart, Cursor, Fit, Line, Peak, Span, Tone, Window, XAxis};
use crate::ui::part::ViewContext;
use crate::ui::part::menu::{self, Thing};
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::Slot;

/// Colour of the bytes in use.
const ALLOCATED: Slot = Slot::Activation;
/// Colour of the bytes that a stream still uses after they were freed.
const PENDING: Slot = Slot::Thread;

/// Colour of a category.
#[must_use]
pub const fn slot_of(category: AllocationCategory) -> Slot {
    match category {
        AllocationCategory::Parameter => Slot::Weight,
        AllocationCategory::Gradient => Slot::Gradient,
        AllocationCategory::Activation => Slot::Activation,
        AllocationCategory::OptimizerState => Slot::Optimizer,
        AllocationCategory::OptimizerTemp => Slot::Constant,
        AllocationCategory::ForwardTemp => Slot::Input,
        AllocationCategory::BackwardTemp => Slot::Thread,
        AllocationCategory::Communication => Slot::Output,
        AllocationCategory::Cache => Slot::Optimizer,
        AllocationCategory::Workspace | AllocationCategory::Before | AllocationCategory::Other => Slot::Temporary,
    }
}

/// The legend of the curve.
pub fn curve_legend(ui: &mut Ui, context: &ViewContext<'_>, device: &CachingAnalysis) {
    let theme = context.theme;
    crate::ui::widget::controls::legend(ui, ALLOCATED, "allocated", theme);
    if device.has_pending() {
        crate::ui::widget::controls::legend(ui, PENDING, "freed, still used by a stream", theme);
    }
    legend::entry(ui, theme, Sign::Free, "reserved, free");
    if !device.replay.failures.is_empty() {
        legend::entry(ui, theme, Sign::Failure, "failed request");
    }
    if device.limit().is_some() {
        let limit = legend::entry(ui, theme, Sign::Limit, "reserved and free in the driver when it failed");
        if let Some(limit) = limit {
            limit.on_hover_text("What the process could have had then. The device has at least as much.");
        }
    }
}

/// The curve of the allocated bytes, with what is reserved above it. `outer` includes the labels of the axes. Returns
/// whether a moment was chosen.
pub fn curve(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    (snapshot, device): (&CachingSnapshot, &CachingAnalysis),
    outer: Rect,
    x: Span,
    raster: &mut CachedRaster,
) -> bool {
    let (theme, units) = (context.theme, context.options.units);
    let rect = plot_of(outer, device);
    let limit = device.limit();
    let curves = &device.replay.curves;
    let peaks = &device.replay.peaks;
    let highest = |from: f64, to: f64| {
        let (from, to) = (from.floor().max(0.0) as u32, to.ceil().max(0.0) as u32);
        device.highest_allocated(from, to.max(from + 1))
    };
    let at = |curve: &[u64], row: u32| curve.get(row as usize).copied().unwrap_or(0);
    let visible = || device.highest_reserved(x.lo.max(0.0) as usize, x.hi.ceil() as usize);
    let window = Window { rect, x, y: Fit::of(ui.ctx()).bytes(peaks.reserved.bytes, visible, limit) };
    let pending = |row: u32| at(&curves.active, row).saturating_sub(at(&curves.allocated, row));
    let group = |group: usize, row: u32| if group == 0 { at(&curves.allocated, row) } else { pending(row) };
    let above = |row: u32| at(&curves.reserved, row).saturating_sub(at(&curves.allocated, row));
    let colors = [ALLOCATED.color(), PENDING.color()];
    let areas = Areas { above: Some((&above, theme.inset)), ..Areas::new(&highest, &group, &colors) };
    let peak = Peak {
        x: f64::from(peaks.allocated.moment) + 0.5,
        y: peaks.allocated.bytes as f64,
        words: format!("peak {}", units.short(Bytes(peaks.allocated.bytes))),
        is_before: false,
    };
    let failures = device.replay.failures.iter().rev().take(16);
    let failures =
        failures.map(|failure| Cursor { x: f64::from(failure.moment) + 0.5, stroke: Stroke::new(1.5, theme.danger) });
    let main = f64::from(device.main_moment()) + 0.5;
    let shown = Chart::new("Memory of the allocator over its events", theme, window, XAxis::Moments("event"), units)
        .drawn(ui, raster, device.device.index, |raster, window| areas.draw(raster, window, theme))
        .limit(limit)
        .limit_named("limit, at least")
        .peak([peak])
        .cursors(failures)
        .start(main)
        .show(ui);
    if let Some(place) = shown.at {
        let moment = place.floor().clamp(0.0, f64::from(device.moments().saturating_sub(1))) as u32;
        let pointed = Cursor { x: f64::from(moment) + 0.5, stroke: Stroke::new(1.0, theme.ink) };
        pointed.draw(ui.painter(), &window, &[rect]);
        shown.readout(ui, &readout(units, snapshot, device, moment));
    }
    shown.is_chosen
}

/// The plot inside its labels.
#[must_use]
pub fn plot_of(outer: Rect, device: &CachingAnalysis) -> Rect {
    let right = if device.limit().is_some() { chart::RIGHT } else { chart::RIGHT_PLAIN };
    Rect::from_min_max(
        Pos2::new(outer.left() + chart::LEFT, outer.top() + 14.0),
        Pos2::new(outer.right() - right, outer.bottom() - chart::BELOW),
    )
}

/// What happened at a moment, and how much memory there was.
fn readout(units: UnitSystem, snapshot: &CachingSnapshot, device: &CachingAnalysis, moment: u32) -> Vec<Line> {
    let curves = &device.replay.curves;
    let row = moment as usize;
    let short = |curve: &[u64]| units.short(Bytes(curve.get(row).copied().unwrap_or(0)));
    let event = row.checked_sub(1).map(|event| device.device.events.start + event);
    let title = match event {
        Some(event) => format!(
            "event {}, {}",
            thousands(u64::from(moment) - 1),
            snapshot.events.action.get(event).map_or("", |action| action.name())
        ),
        None => "before the first event".to_owned(),
    };
    let size = event.and_then(|event| snapshot.events.size.get(event)).map(|&size| units.short(Bytes(size)));
    let mut lines = vec![Line::new(title, size.unwrap_or_default()).toned(Tone::Title)];
    lines.push(Line::new("allocated", short(&curves.allocated)).of(ALLOCATED));
    // What there is no room for stands last.
    lines.push(Line::new("reserved", short(&curves.reserved)));
    lines.push(Line::new("requested", short(&curves.requested)));
    lines.push(Line::new("active", short(&curves.active)));
    let stack = event.and_then(|event| snapshot.events.stack.get(event)).copied().unwrap_or_default();
    if let Some(frame) = own_frame(snapshot, stack) {
        lines.push(Line::new(snapshot.frame_words(frame), "").toned(Tone::Name));
    }
    lines
}

/// The unit of sizes among what lives at the main moment, `whole` bytes in all: the same in the tables by category and by
/// stack, which stand side by side.
fn unit_of_live(context: &ViewContext<'_>, whole: u64) -> (u64, &'static str) {
    context.options.units.unit_for(Bytes(whole / 64))
}

/// What lives at the main moment by category.
pub fn categories(ui: &mut Ui, context: &mut ViewContext<'_>, device: &CachingAnalysis, state: &mut TableState) {
    let rows = device.by_category();
    let whole = rows.iter().map(|row| row.1).fold(0, u64::saturating_add);
    let unit = unit_of_live(context, whole);
    // A narrow table leaves out the bars, then the count, before it cuts a name.
    let width = ui.available_width();
    let mut columns = vec![
        Column::text("Most likely", 140.0, 1.0).fixed(),
        Column::number(&format!("Size, {}", unit.1), 84.0).fixed(),
        Column::number("Share", if width < 392.0 { 100.0 } else { 120.0 }).fixed(),
    ];
    if width >= 340.0 {
        columns.push(Column::number("Count", 64.0).fixed());
    }
    let table = Table { sort: Some((1, true)), ..Table::new(&columns, rows.len(), "categories") };
    let response = table.show(
        ui,
        state,
        |row| format!("{} {}", rows[row].0.words(), context.short(Bytes(rows[row].1))),
        |row, column| {
            let (category, bytes, count) = rows[row];
            let slot = slot_of(category);
            match column {
                0 => Cell::text(category.words()).swatch(slot),
                1 => Cell::text(UnitSystem::in_unit(Bytes(bytes), unit.0)).strong(),
                2 => Cell::text(percent(bytes, whole)).bar((bytes as f64 / whole.max(1) as f64) as f32, slot),
                _ => Cell::text(thousands(count)).quiet(),
            }
        },
    );
    menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        Thing::named(rows[row].0.words()).copies("Copy bytes", rows[row].1.to_string()).shown_in("live")
    });
}

/// What lives at the main moment by stack.
pub fn stacks(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    snapshot: &CachingSnapshot,
    groups: &[StackGroup],
    state: &mut TableState,
) {
    let whole = groups.iter().map(|group| group.bytes).fold(0, u64::saturating_add);
    let unit = unit_of_live(context, whole);
    // A narrow table leaves out what the colour and the size say.
    let width = ui.available_width();
    let mut columns = vec![
        Column::text("Allocated at", 130.0, 1.0).fixed(),
        Column::number(&format!("Size, {}", unit.1), 84.0).fixed(),
        Column::number("Share", if width < 720.0 { 64.0 } else { 120.0 }).fixed(),
    ];
    if width >= 520.0 {
        columns.push(Column::text("Most likely", 150.0, 0.0).fixed());
        columns.push(Column::number("Count", 64.0).fixed());
    }
    let table = Table { sort: Some((1, true)), ..Table::new(&columns, groups.len(), "stacks") };
    let line = |frame: &Frame| {
        let file = snapshot.strings.get(frame.file);
        format!("{}:{}", file.rsplit('/').next().unwrap_or(file), frame.line)
    };
    let short = |frame: &Frame| format!("{} {}", snapshot.strings.get(frame.name), line(frame));
    // Compiled code has a name only.
    let part = |frame: &Frame| match snapshot.strings.get(frame.file) {
        "" | "??" => snapshot.frame_words(frame),
        _ => line(frame),
    };
    let place = |row: usize| match (own_frame(snapshot, groups[row].stack), groups[row].apart) {
        (Some(frame), None) => short(frame),
        (Some(frame), Some(Apart::Inside(inside))) => format!("{}, in {}", short(frame), part(&inside)),
        (Some(frame), Some(Apart::Caller(caller))) => format!("{}, from {}", short(frame), part(&caller)),
        (None, _) => "no Python frames".to_owned(),
    };
    let response = table.show(
        ui,
        state,
        |row| format!("{} {}", place(row), context.short(Bytes(groups[row].bytes))),
        |row, column| {
            let group = &groups[row];
            let slot = slot_of(group.category);
            match column {
                0 => Cell::text(place(row)).swatch(slot),
                1 => Cell::text(UnitSystem::in_unit(Bytes(group.bytes), unit.0)).strong(),
                2 => {
                    Cell::text(percent(group.bytes, whole)).bar((group.bytes as f64 / whole.max(1) as f64) as f32, slot)
                }
                3 if group.is_guess() => Cell::text(format!("{}, a guess", group.category.words())).quiet(),
                3 => Cell::text(group.category.words()).quiet(),
                _ => Cell::text(thousands(group.count)).quiet(),
            }
        },
    );
    menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        let frames = snapshot.frames(groups[row].stack).map(|frame| snapshot.frame_words(frame));
        let stack: Vec<String> = frames.collect();
        Thing::named(place(row))
            .copies("Copy the stack", stack.join("\n"))
            .copies("Copy bytes", groups[row].bytes.to_string())
            .shown_in("live")
    });
}
