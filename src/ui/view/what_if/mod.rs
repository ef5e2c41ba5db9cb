//! What if: changes to switch on and off, live memory with and without them, and the repacked memory map.

mod alone;
mod at_peak;
mod changes;
mod curve;
mod layers;
mod packed;
mod sets;

pub use changes::switches;

use std::fmt::Write as _;

use egui::{Pos2, Rect, Sense, Ui, Vec2};

use crate::advisor::{Advice, ChangesResults};
use crate::analysis::map::TimeAxis;
use crate::analysis::what_if::{Edit, Outcome, TryVerdict};
use crate::model::{Bytes, MemorySpace, capitalised, thousands};
use crate::ui::chart;
use crate::ui::part::outcome::look;
use crate::ui::part::{BufferNames, View, ViewContext, empty};
use crate::ui::session::Document;
use crate::ui::widget::controls::vline;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::theme::{Theme, size, space};
use crate::ui::work::WhatIfResult;

/// Width of the list of changes, in points.
const LIST: f32 = 384.0;

/// Below this width of the view, the list is narrower.
const NARROW: f32 = 900.0;

/// Least height of a chart with its title, in points.
const CHART: f32 = 140.0;

/// Width of the readouts beside the headline, in points.
const READOUTS: f32 = 250.0;

#[derive(Default)]
struct State {
    curve: CachedRaster,
    packed: CachedRaster,
    names: BufferNames,
    list: changes::State,
}

/// The view.
pub const VIEW: View = View { applies, ..View::new("whatif", "What if", show).with_digit(8) };

/// Whether there is a program with memory over time; changes apply to its HBM.
fn applies(document: &Document) -> bool {
    let programs = &document.analysis.programs;
    programs.iter().any(|program| {
        program.space(MemorySpace::HBM).is_some_and(|space| space.xprof.trace.is_some() || space.occupancy.is_some())
    })
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    if context.scene().is_none() {
        return empty::without_memory(ui, context);
    }
    let mut state = context.locals.take::<State>();
    let advice = context.advice();
    let result = context.what_if();
    let whole = ui.available_rect_before_wrap();
    let width = if whole.width() < NARROW { (whole.width() * 0.4).max(240.0) } else { LIST };
    let list = Rect::from_min_max(whole.min, Pos2::new(whole.left() + width, whole.bottom()));
    let right = Rect::from_min_max(Pos2::new(list.right() + 1.0, whole.top()), whole.max);
    ui.painter().rect_filled(list, 0.0, theme.panel);
    vline(ui, list.right(), whole.top(), whole.bottom(), theme.line);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(list).id_salt("changes"));
    child.set_clip_rect(list.intersect(ui.clip_rect()));
    let (result, number) = result.unzip();
    changes::show(&mut child, context, &mut state.list, advice.as_deref(), result.as_deref());
    let inner = right.shrink2(Vec2::new(space::MARGIN, 16.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(inner).id_salt("outcome"));
    child.set_clip_rect(right.intersect(ui.clip_rect()));
    if let Some(result) = &result {
        let results = advice.as_deref().and_then(|advice| changes_results(advice, &context.shared.changes.on));
        // The charts keep a height in which they can be read: below it the page scrolls.
        egui::ScrollArea::vertical().id_salt("outcome").auto_shrink([false, false]).show(&mut child, |ui| {
            outcome(ui, context, &mut state, (result, number.unwrap_or(0)), results, inner);
        });
    }
    context.locals.put(state);
}

fn outcome(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    (result, number): (&WhatIfResult, u64),
    results: Option<ChangesResults>,
    page: Rect,
) {
    let top = ui.cursor().top();
    headline(ui, context, result, results);
    ui.add_space(14.0);
    let height = (page.height() - (ui.cursor().top() - top) - 2.0).max(2.0 * CHART + 12.0);
    let (rest, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), height), Sense::hover());
    let half = ((rest.height() - 12.0) * 0.46).max(CHART);
    let upper = Rect::from_min_size(rest.min, Vec2::new(rest.width(), half));
    let lower = Rect::from_min_max(Pos2::new(rest.left(), upper.bottom() + 12.0), rest.max);
    curve::show(ui, context, &mut state.curve, (result, number), upper);
    packed::show(ui, context, (&mut state.packed, &mut state.names), (result, number), lower);
}

/// What the changes that are on do to the results: the least safe of the findings and plans that have them; `None` if one
/// is in none.
fn changes_results(advice: &Advice, on: &[Edit]) -> Option<ChangesResults> {
    if let Some(plan) = advice.plans.iter().find(|plan| is_same_set(&plan.edits, on)) {
        return Some(plan.changes_results);
    }
    let of = |edit: &Edit| {
        let with = advice
            .findings
            .iter()
            .filter(|finding| finding.edits().iter().any(|own| changes::is_one_switch(own, edit)));
        with.map(|finding| finding.changes_results).min()
    };
    let each: Option<Vec<ChangesResults>> = on.iter().map(of).collect();
    each?.into_iter().max()
}

/// Whether two lists have the same changes, in whatever order.
fn is_same_set(some: &[Edit], others: &[Edit]) -> bool {
    some.len() == others.len() && some.iter().all(|edit| others.contains(edit))
}

fn headline(ui: &mut Ui, context: &ViewContext<'_>, result: &WhatIfResult, results: Option<ChangesResults>) {
    let theme = context.theme;
    let units = context.options.units;
    let is_unchanged = context.shared.changes.on.is_empty();
    let outcome = result.outcome();
    let color = outcome.map_or(theme.text, |outcome| look(outcome, theme).0);
    let words = match outcome {
        _ if result.after.undecided.is_some() && !result.after.is_bound => "Not predicted".to_owned(),
        _ if !result.after.is_told() => capitalised(&result.after.verdict_in_words(result.memory.capacity, units)),
        Some(over @ Outcome::Over(_)) if is_unchanged => {
            // The last words stay together where the line breaks.
            format!("{}, no\u{a0}change\u{a0}on", over.words(units))
        }
        Some(over @ Outcome::Over(_)) => format!("Still {}", over.words(units)),
        Some(outcome) => capitalised(&outcome.words(units)),
        None => format!("Needs {}", units.short(result.allocated())),
    };
    let on = context.shared.changes.on.len();
    let memory = MemorySpace::HBM.name(context.document.profile.device.kind);
    let of = result.memory.capacity.map(|c| format!(" of {} {memory}", units.capacity(Bytes(c)))).unwrap_or_default();
    let allocated = result.allocated();
    let allocated =
        result.memory.capacity.map_or_else(|| units.short(allocated), |c| units.beside(allocated, Bytes(c)));
    let mut sentence = format!("{allocated}{of} allocated, was {}.", units.short(Bytes(result.memory.allocated)));
    if on == 0 {
        sentence = format!("{allocated}{of} allocated by the compiler. Switch changes on to see what they do.");
    } else if let Some(why) = &result.after.undecided {
        sentence = format!("{}.", capitalised(why));
    } else if !result.after.is_told() {
        sentence = format!("It was {}.", units.short(Bytes(result.memory.allocated)));
    } else if result.after.verdict == TryVerdict::MayFit {
        sentence = format!(
            "{} to {} allocated{of}{}; was {}.",
            units.short(result.after.allocated_range.0),
            units.short(result.after.allocated_range.1),
            result.after.depends_on.words(),
            units.short(Bytes(result.memory.allocated))
        );
    } else if result.after.is_tight {
        sentence.push_str(" The compiler will repack and may rematerialise.");
    }
    let left = ui.available_rect_before_wrap();
    let is_wide = left.width() > 760.0;
    let (peak, was) = (result.peak_after().0, result.peak_before().0);
    let is_told = result.after.is_told();
    let peak = if is_told { units.short(peak) } else { "not told".to_owned() };
    if on > 0 && !is_wide && is_told {
        let _ = write!(sentence, " Peak {peak}, was {}.", units.short(was));
    }
    let differs = result.packing_difference();
    if differs != 0 {
        let _ = write!(
            sentence,
            " Our packing of the unchanged program takes {} {} than the compiler's.",
            units.short(Bytes(u64::try_from(differs.unsigned_abs()).unwrap_or(u64::MAX))),
            if differs > 0 { "more" } else { "less" }
        );
    }
    let words = match results.filter(|_| on > 0 && result.after.undecided.is_none()) {
        Some(results) => format!("{words}, {}", results.of_results(&context.shared.changes.on)),
        None => words,
    };
    ui.horizontal(|ui| {
        let (bar, _) = ui.allocate_exact_size(Vec2::new(3.0, 58.0), Sense::hover());
        ui.add_space(8.0);
        let text_width = left.width() - 14.0 - if is_wide { READOUTS } else { 0.0 };
        let words = ui.vertical(|ui| {
            ui.set_width(text_width);
            ui.label(text(words, size::VERDICT_SMALL, Weight::SemiBold, color));
            ui.add(egui::Label::new(text(sentence, size::LEAD, Weight::Regular, theme.text2)).wrap());
        });
        let bottom = words.response.rect.bottom().max(bar.bottom());
        ui.painter().rect_filled(Rect::from_min_max(bar.min, Pos2::new(bar.right(), bottom)), 0.0, color);
        if is_wide {
            ui.add_space((left.right() - ui.min_rect().right() - READOUTS).max(0.0));
            readout(ui, theme, "Peak", &peak, &format!("was {}", units.short(was)));
            ui.add_space(24.0);
            readout(
                ui,
                theme,
                match result.axis.unit {
                    TimeAxis::ProgramOrder => "Steps over capacity",
                    TimeAxis::HeapEvents => "Heap events over capacity",
                },
                &thousands(result.over.1 as u64),
                &format!("was {}", thousands(result.over.0 as u64)),
            );
        }
    });
    let after = &result.after;
    if after.edits.is_empty() || after.undecided.is_some() || !is_told {
        return;
    }
    ui.add_space(6.0);
    if let Some(band) = &after.band {
        let mut range = format!(
            "The peak is {} to {}, by the error of such predictions. {}.",
            units.short(after.peak_range.0),
            units.short(after.peak_range.1),
            capitalised(band)
        );
        // The fallback packer may do better than the online one.
        if after.allocated.0 as f64 <= after.expected().0 as f64 * 0.99 {
            let _ = write!(
                range,
                " With this peak, {} to {} are allocated, depending on how the compiler packs.",
                units.short(after.allocated),
                units.short(after.allocated_online)
            );
        }
        ui.add(egui::Label::new(text(range, size::SMALL, Weight::Regular, theme.text2)).wrap());
    }
    for warning in &after.warnings {
        let left = ui.cursor().min.x;
        let words = egui::Frame::new().inner_margin(egui::Margin { left: 11, ..egui::Margin::ZERO }).show(ui, |ui| {
            let words = capitalised(warning);
            ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.warn)).wrap());
        });
        let rows = words.response.rect.y_range();
        ui.painter().rect_filled(Rect::from_x_y_ranges(left..=left + 3.0, rows), 0.0, theme.warn);
    }
}

fn readout(ui: &mut Ui, theme: &Theme, label: &str, value: &str, below: &str) {
    ui.vertical(|ui| {
        ui.spacing_mut().item_spacing.y = 1.0;
        ui.label(text(label, size::SMALL, Weight::Medium, theme.text2));
        ui.label(text(value, size::READOUT, Weight::SemiBold, theme.text));
        ui.label(text(below, size::SMALL, Weight::Regular, theme.text3));
    });
}

/// The plot rectangle between the axes.
fn plot_in(rect: Rect, limit: Option<u64>) -> Rect {
    let right = if limit.is_some() { chart::RIGHT } else { chart::RIGHT_PLAIN };
    Rect::from_min_max(rect.min + Vec2::new(chart::LEFT, 26.0), rect.max - Vec2::new(right, chart::BELOW))
}
