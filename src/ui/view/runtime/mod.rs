//! Runtime: an allocator's history over time, the program runs, and the allocations in use at the peak.

mod band;
mod card;
mod input;
mod plot;
mod state;
mod table;

use std::sync::Arc;

use egui::{Pos2, Rect, Stroke, Ui, Vec2};

use self::state::{AT_ONCE, FrameLayout, HEAP, STACK, State, Worked, axis_of, moment};
use crate::analysis::runtime::AllocatorAnalysis;
use crate::analysis::runtime_breakdown::{Origin, breakdown, bytes_of};
use crate::analysis::runtime_curve::RuntimeCurve;
use crate::model::{AllocatorTrace, Bytes, Clock, percent, thousands};
use crate::ui::chart::legend::Sign;
use crate::ui::chart::{self, Cursor, Reach, Span};
use crate::ui::part::{KeyHelp, View, ViewContext, class_legend};
use crate::ui::session::{Document, Locals};
use crate::ui::widget::controls::{self, cut_label, legend, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::table::TableState;
use crate::ui::widget::theme::{Theme, size};
use crate::ui::work::{DeferredPicture, Job, Work};

/// The view.
pub const VIEW: View =
    View { applies, card: Some(card::show), clear, keys: KEYS, ..View::new("runtime", "Runtime", show).with_digit(3) };

const KEYS: &[KeyHelp] = &[
    ("Shift drag", "Runtime: measure a range"),
    ("wheel, W S", "Runtime: zoom at the pointer"),
    ("drag, A D", "Runtime: move"),
    ("0, Esc", "Runtime: show everything; clear the range"),
];

/// Up to this many allocators have a button each.
const BUTTONS: usize = 4;

/// Least room for the names of programs beside the hint, in points.
const LEGEND: f32 = 120.0;

/// Whether there is an allocator history, or program runs.
fn applies(document: &Document) -> bool {
    !document.profile.runtime.is_empty() || !document.profile.executions.is_empty()
}

/// Clears the chosen range; returns whether there was one.
fn clear(locals: &mut Locals) -> bool {
    locals.get::<State>().range.take().is_some()
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let mut state = context.locals.take::<State>();
    draw(ui, context, &mut state);
    context.locals.put(state);
}

fn draw(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) {
    let theme = context.theme;
    let document = context.document.clone();
    let full = ui.max_rect();
    let left = full.left() + 16.0;
    let line =
        |top: f32, height: f32| Rect::from_min_size(Pos2::new(left, top), Vec2::new(full.width() - 32.0, height));
    let allocator = *state.allocator.get_or_insert_with(|| most_used(&document));
    let history = document.profile.runtime.get(allocator).zip(document.analysis.runtime.get(allocator));
    let clock = history.map_or(Clock::default(), |(trace, _)| trace.clock);
    let worked = history.and_then(|_| worked(context, state, allocator));
    let shows_free = history.zip(worked.as_ref()).map(|((_, a), worked)| state.shows_free(&worked.curve, a.peak));
    let free = shows_free.filter(|_| worked.as_ref().is_some_and(|worked| worked.curve.has_free));
    let tools = line(full.top() + 9.0, 26.0);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(tools).id_salt("tools"));
    let all = toolbar(&mut child, &document, theme, state, free);
    controls::hairline(ui, Rect::from_min_size(full.min, Vec2::new(full.width(), 44.0)), theme.line);
    let rises = history.is_some_and(|(_, analysis)| analysis.rising_floor().is_some());
    let head = line(full.top() + 54.0, if rises { 68.0 } else { 48.0 });
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(head).id_salt("head"));
    answer(&mut child, context, history, worked.as_deref());
    let legend_row = line(child.min_rect().bottom().max(head.bottom()) + 2.0, 20.0);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(legend_row).id_salt("legend"));
    legends(&mut child, context, worked.as_deref(), shows_free.unwrap_or(false));
    let runs = lanes(context, state);
    let curve = worked.as_ref().map(|worked| &worked.curve);
    let span = whole_span(curve, &runs);
    let least = if clock == Clock::Order { input::LEAST_EVENTS } else { input::LEAST };
    let reach = Reach { whole: span, least };
    let mut x = reach.visible(state.x);
    if all {
        reach.show_all(ui, &mut x);
    }
    let has_limit = curve.is_some_and(|curve| curve.capacity > 0);
    let from = full.left() + chart::LEFT;
    let right = full.right() - if has_limit { chart::RIGHT } else { chart::RIGHT_PLAIN };
    let top = legend_row.bottom() + 14.0;
    let lanes = runs.height();
    let fragmented = curve.is_some_and(|curve| curve.has_fragmentation);
    let fragmentation = if fragmented { 40.0 } else { 0.0 };
    let has_table = worked.as_ref().is_some_and(|worked| !worked.rows.is_empty());
    let room = full.bottom() - 8.0 - top - fragmentation - lanes - 24.0 - 26.0;
    let height = if curve.is_none() { 0.0 } else { (room * if has_table { 0.52 } else { 0.96 }).max(60.0) };
    let curve_rect = Rect::from_min_max(Pos2::new(from, top), Pos2::new(right, top + height));
    let fragmentation_rect = Rect::from_min_size(
        Pos2::new(from, curve_rect.bottom() + if fragmented { 8.0 } else { 0.0 }),
        Vec2::new(curve_rect.width(), (fragmentation - 8.0).max(0.0)),
    );
    let band = Rect::from_min_size(
        Pos2::new(from, fragmentation_rect.bottom() + if lanes > 0.0 { 6.0 } else { 0.0 }),
        Vec2::new(curve_rect.width(), lanes),
    );
    if curve_rect.width() < 60.0 {
        return;
    }
    let mut layout = FrameLayout { curve: curve_rect, fragmentation: fragmentation_rect, runs: band, x, reach };
    input::take(ui, state, &mut layout);
    state.x = reach.chosen(layout.x);
    if let (Some((trace, analysis)), Some(worked)) = (history, &worked) {
        plot::show(ui, context, state, &layout, (trace, analysis), worked);
        plot::fragmentation(ui, context, state, &layout, trace, worked);
    }
    band::show(ui, context, state, &runs, &layout);
    axis_of(clock).draw(ui, theme, &layout.window(), band.bottom());
    let below = band.bottom() + 24.0;
    marks(ui, theme, state, &layout);
    let strip = line(below, 22.0);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(strip).id_salt("range"));
    range_line(&mut child, context, state, worked.as_deref(), clock);
    // What the colours of the runs are, where there is room beside the hint.
    let rest = strip.with_min_x(child.min_rect().right() + 24.0);
    if state.range.is_none() && rest.width() > LEGEND {
        let layout = egui::Layout::left_to_right(egui::Align::Center);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rest).layout(layout).id_salt("runs"));
        class_legend::fitting(&mut child, theme, &runs.programs(), 0.0);
    }
    if let (true, Some(worked), Some((_, analysis))) = (has_table, &worked, history) {
        let rect = Rect::from_min_max(
            Pos2::new(full.left() + 12.0, strip.bottom() + 6.0),
            Pos2::new(full.right() - 8.0, full.bottom() - 4.0),
        );
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rect).id_salt("table"));
        child.set_clip_rect(rect.intersect(ui.clip_rect()));
        table::show(&mut child, context, &mut state.table, &worked.rows, analysis);
    }
}

/// The allocator shown first: the one with the highest peak.
fn most_used(document: &Document) -> usize {
    let all = document.analysis.runtime.iter().enumerate();
    all.max_by_key(|(row, allocator)| (allocator.peak, std::cmp::Reverse(*row))).map_or(0, |(row, _)| row)
}

/// The curve of the chosen allocator, computed on a worker.
fn worked(context: &ViewContext<'_>, state: &mut State, allocator: usize) -> Option<Arc<Worked>> {
    let of = (context.document.id(), allocator);
    if state.of != Some(of) {
        let document = Arc::clone(context.document);
        // A short history is computed within the first frame.
        let events = document.profile.runtime.get(allocator).map_or(0, |trace| trace.events.len());
        let work = Work { synchronous: context.work.synchronous || events < AT_ONCE, ..context.work.clone() };
        state.job = Some(Job::start(&work, "allocator history", move || {
            let history = document.profile.runtime.get(allocator).zip(document.analysis.runtime.get(allocator));
            let worked = history.map(|(trace, analysis)| Worked {
                curve: RuntimeCurve::new(trace, analysis),
                rows: breakdown(trace, analysis),
            });
            Arc::new(worked.unwrap_or(Worked { curve: RuntimeCurve::default(), rows: Vec::new() }))
        }));
        state.of = Some(of);
        (state.x, state.range, state.table) = (None, None, TableState::default());
        // Pictures of the previous allocator must not be shown for this one.
        (state.curve, state.fragmentation) = (DeferredPicture::default(), DeferredPicture::default());
    }
    state.job.as_mut()?.poll().cloned()
}

/// Runs of programs by device; many are sorted on a worker.
fn lanes(context: &ViewContext<'_>, state: &mut State) -> Arc<band::Lanes> {
    let of = context.document.id();
    if state.lanes_of != Some(of) {
        let document = Arc::clone(context.document);
        let at_once = document.profile.executions.len() < AT_ONCE;
        let work = Work { synchronous: context.work.synchronous || at_once, ..context.work.clone() };
        let sort = move || Arc::new(band::Lanes::new(&document.profile.executions));
        state.lanes = Some(Job::start(&work, "runs of programs", sort));
        state.lanes_of = Some(of);
        state.runs = DeferredPicture::default();
    }
    state.lanes.as_mut().and_then(|job| job.poll().cloned()).unwrap_or_default()
}

fn whole_span(curve: Option<&RuntimeCurve>, lanes: &band::Lanes) -> Span {
    let spans = [curve.and_then(RuntimeCurve::span), lanes.span()];
    let lo = spans.iter().flatten().map(|span| span.0).min().unwrap_or(0);
    let hi = spans.iter().flatten().map(|span| span.1).max().unwrap_or(1);
    Span::new(lo as f64, hi.max(lo.saturating_add(1)) as f64)
}

/// Returns whether the button to show everything was clicked.
fn toolbar(ui: &mut Ui, document: &Document, theme: &Theme, state: &mut State, free: Option<bool>) -> bool {
    let mut all = false;
    ui.horizontal(|ui| {
        let names: Vec<&str> = document
            .profile
            .runtime
            .iter()
            .map(|trace| if trace.name.is_empty() { "allocator" } else { trace.name.as_str() })
            .collect();
        let chosen = state.allocator.unwrap_or(0);
        if names.len() > BUTTONS {
            let shown = names.get(chosen).copied().unwrap_or_default();
            let response = controls::button(ui, shown, "\u{2193}", theme);
            egui::Popup::menu(&response).show(|ui| {
                keys::scrolled(egui::ScrollArea::vertical().max_height(480.0), ui, |ui| {
                    for (i, name) in names.iter().enumerate() {
                        let peak = document.analysis.runtime.get(i).map_or(Bytes::ZERO, |a| a.peak);
                        if ui.selectable_label(i == chosen, format!("{name}   {}", peak.short())).clicked() {
                            state.allocator = Some(i);
                        }
                    }
                });
            });
        } else if !names.is_empty()
            && let Some(i) = segmented(ui, &names, chosen, theme)
        {
            state.allocator = Some(i);
        }
        if let Some(lit) = free {
            let response = controls::toggle_button(ui, "Free memory", "", controls::On(lit), theme);
            if response.on_hover_text("Show free memory; the axis then extends to the capacity").clicked() {
                state.free = Some(!lit);
            }
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            all = controls::button(ui, "All", "0", theme).clicked();
            if state.range.is_some() && controls::button(ui, "Clear range", "Esc", theme).clicked() {
                state.range = None;
            }
        });
    });
    all
}

/// The headline: peak, capacity and time, and notable figures.
fn answer(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    history: Option<(&AllocatorTrace, &AllocatorAnalysis)>,
    worked: Option<&Worked>,
) {
    let theme = context.theme;
    ui.spacing_mut().item_spacing.y = 2.0;
    let width = ui.available_width();
    let Some((trace, analysis)) = history else {
        ui.label(text("No allocator events in this trace", size::HEADLINE, Weight::SemiBold, theme.text));
        let words = "Allocations are recorded by TensorFlow's allocators (GPU, CPU) while host tracing is at level 2; \
                     the runs of programs are below.";
        cut_label(ui, words, Weight::Regular.at(size::BODY), theme.text2, width);
        return;
    };
    let has_free = analysis.peak_stats.free > 0;
    let of =
        analysis.capacity.filter(|_| has_free).map(|bytes| format!(" of {}", context.options.units.capacity(bytes)));
    let words = format!(
        "{}{} in use at the peak, {}",
        context.short(analysis.peak),
        of.unwrap_or_default(),
        moment(analysis.clock, analysis.peak_time_ps as f64, 1e6)
    );
    ui.label(text(words, size::HEADLINE, Weight::SemiBold, theme.text));
    let count = thousands(analysis.events as u64);
    let events = match trace.given {
        Some(_) => format!("drawn from the {count} points that XProf kept"),
        None => format!("{count} events"),
    };
    let fragmentation = analysis.fragmentation_at_peak().filter(|_| has_free);
    let fragmentation =
        fragmentation.map(|share| format!("fragmentation {:.1}\u{2009}% of free memory", share * 100.0));
    // What is cut where there is little room stands last.
    let mut parts = Vec::new();
    if let Some(worked) = worked {
        let peak = analysis.peak.0;
        for origin in [Origin::Earlier, Origin::BeforeTrace, Origin::Older] {
            let bytes = bytes_of(&worked.rows, origin);
            if bytes > Bytes::ZERO {
                parts.push(format!(
                    "{} ({}) from {}",
                    context.short(bytes),
                    percent(bytes.0, peak),
                    if origin == Origin::Older { "before the last step" } else { origin.name() }
                ));
            }
        }
    }
    if let Some(lifetime) = analysis.lifetime_peak.filter(|&bytes| bytes > analysis.peak) {
        parts.push(format!("lifetime peak {}, before the trace began", context.short(lifetime)));
    }
    parts.extend([fragmentation, Some(events)].into_iter().flatten());
    cut_label(ui, &format!("{}.", parts.join("; ")), Weight::Regular.at(size::BODY), theme.text2, width);
    if let Some(bytes) = analysis.rising_floor() {
        let words = format!(
            "The lowest use rises from step to step, by {} over {} steps: something is never freed.",
            context.short(bytes),
            thousands(analysis.floors.len() as u64)
        );
        cut_label(ui, &words, Weight::Medium.at(size::BODY), theme.warn, width);
    }
}

fn legends(ui: &mut Ui, context: &ViewContext<'_>, worked: Option<&Worked>, free: bool) {
    let theme = context.theme;
    let Some(worked) = worked else { return };
    ui.horizontal(|ui| {
        ui.label(text("In use", size::SMALL, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        legend(ui, HEAP, "heap", theme);
        if worked.rows.iter().any(|row| row.origin == Origin::Stack) {
            legend(ui, STACK, "stack", theme);
        }
        if free {
            chart::legend::entry(ui, theme, Sign::Free, "free");
        }
        ui.add_space(8.0);
        chart::legend::paler(ui, theme);
    });
}

/// Marks the chosen range and the time under the pointer across all bands.
fn marks(ui: &Ui, theme: &Theme, state: &State, layout: &FrameLayout) {
    let (axis, all) = (layout.window(), [layout.all()]);
    if let Some((from, to)) = state.range {
        chart::range(ui.painter(), theme, &axis, (from as f64, to as f64), &all);
    }
    if let Some(cursor) = state.cursor {
        Cursor { x: cursor as f64, stroke: Stroke::new(1.0, theme.ink) }.draw(ui.painter(), &axis, &all);
    }
}

/// Statistics of the chosen range, or a hint on how to choose one.
fn range_line(ui: &mut Ui, context: &ViewContext<'_>, state: &State, worked: Option<&Worked>, clock: Clock) {
    let theme = context.theme;
    let Some(worked) = worked else { return };
    let width = ui.available_width();
    let Some((from, to)) = state.range else {
        let words = "Shift drag over the curve measures a range; the wheel zooms, a drag moves";
        cut_label(ui, words, Weight::Regular.at(size::SMALL), theme.text3, width);
        return;
    };
    let stats = worked.curve.range(from, to);
    let short = |bytes: i64| context.short(Bytes::from_wire(bytes));
    let step = ((to - from) as f64 / 100.0).max(1.0);
    let change = i128::from(stats.allocated) - i128::from(stats.freed);
    let words = format!(
        "{} to {}: highest {}, lowest {}, {} on average; {} allocations of {}, {} frees of {}: {}",
        moment(clock, from as f64, step),
        moment(clock, to as f64, step),
        short(stats.highest),
        short(stats.lowest),
        short(stats.mean),
        thousands(stats.allocations),
        short(stats.allocated),
        thousands(stats.deallocations),
        short(stats.freed),
        context.options.units.signed(change)
    );
    cut_label(ui, &words, Weight::Medium.at(size::SMALL), theme.text, width);
}
