//! The history of PyTorch's caching allocator: its curve, what lives at the failure or the peak, its segments.

use egui::{Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::analysis::caching_allocator::{CachingAnalysis, SegmentUse, StackGroup, tell_apart};
use crate::model::{Bytes, CachingSnapshot, counted, thousands};
use crate::ui::chart::{Reach, Span};
use crate::ui::part::facts::{bytes_fact, fact, headline, title};
use crate::ui::part::{ViewContext, caching};
use crate::ui::widget::controls::{self, cut_label, legend, rule, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::table::TableState;
use crate::ui::widget::theme::{Slot, size};

/// Height of the strip of segments.
const STRIP: f32 = 34.0;
/// Blocks looked at for Details, and groups of equal ones listed there.
const PINS: usize = 40;
const LISTED: usize = 6;

/// State of this part of the view.
#[derive(Default)]
pub struct State {
    of: Option<(u64, usize)>,
    chosen: usize,
    x: Option<Span>,
    raster: CachedRaster,
    groups: Vec<StackGroup>,
    /// The segments at the moment of the failure, or of the peak of the reserved bytes.
    segments: Vec<SegmentUse>,
    categories: TableState,
    stacks: TableState,
}

/// The device that is shown first: the one that failed, else the one with the highest peak.
fn first(devices: &[CachingAnalysis]) -> usize {
    let order = |device: &CachingAnalysis| (device.failure().is_some(), device.replay.peaks.reserved.bytes);
    devices.iter().enumerate().max_by_key(|(row, device)| (order(device), std::cmp::Reverse(*row))).map_or(0, |d| d.0)
}

/// Draws the history.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let document = context.document.clone();
    let Some(snapshot) = &document.profile.caching else { return };
    let devices = &document.analysis.caching;
    let mut state = context.locals.take::<State>();
    let document_id = document.id();
    if state.of.is_none_or(|(id, _)| id != document_id) {
        state.chosen = first(devices);
    }
    let Some(device) = devices.get(state.chosen) else { return };
    if state.of != Some((document_id, state.chosen)) {
        let (_, segments) = device.fragmentation(snapshot);
        let mut groups = device.by_stack_at(device.main_moment());
        tell_apart(snapshot, &mut groups);
        state =
            State { of: Some((document_id, state.chosen)), chosen: state.chosen, groups, segments, ..State::default() };
    }
    let full = ui.max_rect();
    let line = |top: f32, height: f32| {
        Rect::from_min_size(Pos2::new(full.left() + 16.0, top), Vec2::new(full.width() - 32.0, height))
    };
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(line(full.top() + 9.0, 26.0)).id_salt("tools"));
    let all = toolbar(&mut child, context, devices, &mut state);
    controls::hairline(ui, Rect::from_min_size(full.min, Vec2::new(full.width(), 44.0)), theme.line);
    let head = line(full.top() + 50.0, 30.0);
    headline(ui, theme, head, &answer(context, device), "");
    let remark = line(head.bottom(), 20.0);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(remark).id_salt("remark"));
    let width = child.available_width();
    cut_label(&mut child, &context.said(&remarks(device)), Weight::Regular.at(size::BODY), theme.text2, width);
    let names = line(remark.bottom() + 4.0, 20.0);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(names).id_salt("legend"));
    child.horizontal(|ui| {
        ui.label(text("Over the events", size::SMALL, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        caching::curve_legend(ui, context, device);
    });
    let room = full.bottom() - names.bottom() - STRIP - 60.0;
    let outer = Rect::from_min_size(
        Pos2::new(full.left(), names.bottom() + 2.0),
        Vec2::new(full.width(), (room * 0.5).max(90.0)),
    );
    let plot = caching::plot_of(outer, device);
    let reach = Reach { whole: Span::new(0.0, f64::from(device.moments().max(1))), least: 8.0 };
    let mut x = reach.visible(state.x);
    if all {
        reach.show_all(ui, &mut x);
    }
    let hovered = ui.input(|i| i.pointer.hover_pos()).is_some_and(|at| plot.contains(at));
    if hovered {
        reach.wheel(ui, plot, &mut x);
        let (is_dragging, delta) =
            ui.input(|i| (i.pointer.primary_down() && i.pointer.is_decidedly_dragging(), i.pointer.delta()));
        if is_dragging {
            reach.drag(plot, &mut x, delta.x);
        }
    }
    reach.keys(ui, plot, &mut x, f64::from(device.main_moment()));
    state.x = reach.chosen(x);
    if plot.width() > 60.0 && device.moments() > 1 {
        caching::curve(ui, context, (snapshot, device), outer, x, &mut state.raster);
    }
    let below = if device.moments() > 1 { outer.bottom() } else { names.top() };
    let strip = line(below + 28.0, STRIP);
    segments(ui, context, device, &state, strip);
    let tables = Rect::from_min_max(
        Pos2::new(full.left() + 12.0, strip.bottom() + 12.0),
        Pos2::new(full.right() - 8.0, full.bottom() - 6.0),
    );
    if tables.height() > 60.0 {
        let split = tables.left() + (tables.width() * 0.38).max(288.0).min(tables.width() * 0.5).floor();
        let left = Rect::from_min_max(tables.min, Pos2::new(split - 8.0, tables.bottom()));
        let right = Rect::from_min_max(Pos2::new(split + 8.0, tables.top()), tables.max);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(left).id_salt("categories"));
        child.set_clip_rect(left.intersect(ui.clip_rect()));
        caching::categories(&mut child, context, device, &mut state.categories);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(right).id_salt("stacks"));
        child.set_clip_rect(right.intersect(ui.clip_rect()));
        caching::stacks(&mut child, context, snapshot, &state.groups, &mut state.stacks);
    }
    context.locals.put(state);
}

fn toolbar(ui: &mut Ui, context: &ViewContext<'_>, devices: &[CachingAnalysis], state: &mut State) -> bool {
    let mut all = false;
    ui.horizontal(|ui| {
        let names: Vec<String> = devices.iter().map(|device| format!("cuda:{}", device.device.index)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).take(16).collect();
        if let Some(row) = segmented(ui, &names, state.chosen, context.theme) {
            state.chosen = row;
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            all = controls::button(ui, "All", "0", context.theme).clicked();
        });
    });
    all
}

/// The headline.
fn answer(context: &ViewContext<'_>, device: &CachingAnalysis) -> String {
    match device.failure() {
        Some(failure) => {
            let requested = context.short(Bytes(failure.requested));
            format!("Out of memory: {requested} requested. Cause: {}", failure.cause.words())
        }
        None => format!(
            "{} allocated at the peak, {} reserved",
            context.short(Bytes(device.replay.peaks.allocated.bytes)),
            context.short(Bytes(device.replay.peaks.reserved.bytes))
        ),
    }
}

/// What else must be known, in one line.
fn remarks(device: &CachingAnalysis) -> String {
    let mut parts = Vec::new();
    if let Some(failure) = device.failure() {
        parts.push(failure.sentence());
    }
    let events = device.device.events.len() as u64;
    parts.push(if events == 0 { "the file has no history".to_owned() } else { counted(events, "event") });
    if let Some(steps) = device.steps.as_ref().filter(|steps| steps.leak > 0) {
        parts.push(format!("each step leaves {} behind", Bytes(steps.leak).short()));
    }
    if device.old_blocks > 0 && events > 0 {
        parts.push(format!("{} older than the history", Bytes(device.old_bytes).short()));
    }
    if !device.replay.sizes_are_exact {
        parts.push("allocated and active are lower bounds".to_owned());
    }
    parts.extend(device.problems.iter().take(2).cloned());
    format!("{}.", parts.join("; "))
}

/// Every segment as wide as its bytes, with its occupied share.
fn segments(ui: &mut Ui, context: &ViewContext<'_>, device: &CachingAnalysis, state: &State, rect: Rect) {
    let theme = context.theme;
    let total: u64 = state.segments.iter().map(|segment| segment.reserved.size).fold(0, u64::saturating_add);
    if total == 0 {
        return;
    }
    let free: u64 = state.segments.iter().map(|segment| segment.free).fold(0, u64::saturating_add);
    let largest = state.segments.iter().map(|segment| segment.largest_hole).max().unwrap_or(0);
    let names = Rect::from_min_size(rect.min - Vec2::new(0.0, 24.0), Vec2::new(rect.width(), 20.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(names).id_salt("segments"));
    child.horizontal(|ui| {
        let when = if device.failure().is_some() { "when the request failed" } else { "at the peak of reserved" };
        let count = counted(state.segments.len() as u64, "segment");
        ui.label(text(format!("{count} {when}"), size::SMALL, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        let words = format!(
            "{} free in all pools, the largest hole {}",
            context.short(Bytes(free)),
            context.short(Bytes(largest))
        );
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        ui.add_space(8.0);
        legend(ui, Slot::Activation, "in use", theme);
    });
    let mut at = 0u64;
    let x_of = |bytes: u64| rect.left() + rect.width() * (bytes as f64 / total as f64) as f32;
    let pointer = ui.input(|i| i.pointer.hover_pos()).filter(|pointer| rect.contains(*pointer));
    let mut hovered = None;
    let mut drawn = rect.left() - 1.0;
    for segment in &state.segments {
        let (left, right) = (x_of(at), x_of(at.saturating_add(segment.reserved.size)));
        at = at.saturating_add(segment.reserved.size);
        if pointer.is_some_and(|pointer| left <= pointer.x && pointer.x < right) {
            hovered = Some(segment);
        }
        // Narrow segments share a pixel; the cost is that of the pixels.
        if right - drawn < 0.75 {
            continue;
        }
        drawn = right;
        let place =
            Rect::from_min_max(Pos2::new(left, rect.top()), Pos2::new((right - 1.0).max(left + 0.75), rect.bottom()));
        ui.painter().rect_filled(place, 0.0, theme.inset);
        let share = (segment.active as f64 / segment.reserved.size.max(1) as f64) as f32;
        let filled = Rect::from_min_max(Pos2::new(place.left(), place.bottom() - place.height() * share), place.max);
        ui.painter().rect_filled(filled, 0.0, Slot::Activation.color());
    }
    let response = ui.interact(rect, ui.scope_id().with("segments"), Sense::hover());
    let spoken = format!("{} segments, {} free", thousands(state.segments.len() as u64), context.short(Bytes(free)));
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, spoken.clone()));
    if let Some(segment) = hovered {
        let class = segment.reserved.class.name();
        let words = format!(
            "{} segment of {}: {} in use in {}, {} free in {}, the largest {}",
            class,
            context.short(Bytes(segment.reserved.size)),
            context.short(Bytes(segment.active)),
            counted(segment.blocks.len() as u64, "block"),
            context.short(Bytes(segment.free)),
            counted(segment.holes, "hole"),
            context.short(Bytes(segment.largest_hole))
        );
        response.on_hover_text_at_pointer(words);
    }
}

/// Details: figures of the device, and the blocks that hold back the most free memory.
pub fn card(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let document = context.document.clone();
    let Some(snapshot) = &document.profile.caching else { return };
    let state = context.locals.take::<State>();
    if let Some(device) = document.analysis.caching.get(state.chosen) {
        facts(ui, context, snapshot, device);
        let pins = device.alike(&device.pins(&state.segments, PINS), LISTED);
        if !pins.is_empty() {
            rule(ui, theme);
            title(ui, theme, "Blocks that hold back free memory");
        }
        for alike in &pins {
            let Some(pin) = alike.first() else { continue };
            let lifetime = &device.replay.lifetimes[pin.lifetime];
            let at = crate::analysis::caching_allocator::own_frame(snapshot, lifetime.stack);
            let words = at.map_or_else(|| "no Python frames".to_owned(), |frame| snapshot.frame_words(frame));
            let holds = pin.words(lifetime.size, alike.len(), context.options.units);
            ui.add(egui::Label::new(text(holds, size::SMALL, Weight::Regular, theme.text)).wrap());
            let width = ui.available_width();
            cut_label(ui, &words, Weight::Mono.at(size::SMALL), theme.text3, width);
        }
    }
    context.locals.put(state);
}

fn facts(ui: &mut Ui, context: &ViewContext<'_>, snapshot: &CachingSnapshot, device: &CachingAnalysis) {
    let theme = context.theme;
    let units = context.options.units;
    let bytes_of = |ui: &mut Ui, name: &str, bytes: u64| bytes_fact(ui, theme, units, name, Bytes(bytes));
    title(ui, theme, &format!("cuda:{}", device.device.index));
    let peaks = &device.replay.peaks;
    for (name, peak) in [
        ("Peak allocated", peaks.allocated),
        ("Peak requested", peaks.requested),
        ("Peak active", peaks.active),
        ("Peak reserved", peaks.reserved),
    ] {
        bytes_of(ui, name, peak.bytes);
    }
    if let Some(failure) = device.failure() {
        rule(ui, theme);
        title(ui, theme, "The failed request");
        bytes_of(ui, "Requested", failure.requested);
        bytes_of(ui, "Needed of the driver", failure.segment);
        bytes_of(ui, "Free in the driver", failure.device_free);
        bytes_of(ui, "Free, same pool", failure.free_same_pool);
        bytes_of(ui, "Largest of it", failure.largest_free_same_pool);
        bytes_of(ui, "Free, other pools and streams", failure.free_other_pool);
        bytes_of(ui, "Free, other sizes", failure.free_other_class);
        bytes_of(ui, "Missing in all", failure.short_by);
    }
    rule(ui, theme);
    title(ui, theme, "When the snapshot was taken");
    let end = &device.at_end;
    bytes_of(ui, "Allocated", end.allocated);
    bytes_of(ui, "Reserved", end.reserved);
    bytes_of(ui, "Free", end.inactive);
    bytes_of(ui, "In empty segments", end.whole_free_segments);
    bytes_of(ui, "Lost to rounding", end.rounding());
    fact(ui, theme, "Segments", &thousands(end.segments));
    if let Some((_, value)) = snapshot.settings.all.iter().find(|(name, _)| name == "PYTORCH_CUDA_ALLOC_CONF")
        && !value.is_empty()
    {
        fact(ui, theme, "PYTORCH_CUDA_ALLOC_CONF", value);
    }
}
