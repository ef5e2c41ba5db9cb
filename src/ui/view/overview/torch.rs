//! The overview of a PyTorch snapshot: why a request failed, the curve, what lives then, and what to change.

use egui::{Rect, Sense, Ui, Vec2};

use super::advice;
use crate::analysis::caching_allocator::{CachingAnalysis, Cause, StackGroup, tell_apart};
use crate::model::{Bytes, CachingSnapshot, NoteCode, counted};
use crate::ui::chart::Span;
use crate::ui::part::facts::Answer;
use crate::ui::part::{ViewContext, caching};
use crate::ui::widget::controls::link;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::table::TableState;
use crate::ui::widget::theme::{size, space};

/// Height of the curve with its numbers.
const CURVE: f32 = 200.0;
/// Room for the link beside the legend of the curve.
const LINK: f32 = 116.0;
/// Height of the tables.
const TABLES: f32 = 230.0;

#[derive(Default)]
struct State {
    of: u64,
    device: usize,
    groups: Vec<StackGroup>,
    curve: CachedRaster,
    categories: TableState,
    stacks: TableState,
    waited: advice::Waited,
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let document = context.document.clone();
    let Some(snapshot) = &document.profile.caching else { return };
    let devices = &document.analysis.caching;
    let mut state = context.locals.take::<State>();
    let of = document.id();
    if state.of != of {
        let order = |device: &CachingAnalysis| (device.failure().is_some(), device.replay.peaks.reserved.bytes);
        let first = devices.iter().enumerate().max_by_key(|(row, device)| (order(device), std::cmp::Reverse(*row)));
        let device = first.map_or(0, |(row, _)| row);
        let mut groups = devices.get(device).map(|device| device.by_stack_at(device.main_moment())).unwrap_or_default();
        tell_apart(snapshot, &mut groups);
        state = State { of, device, groups, ..State::default() };
    }
    let advice = context.advice();
    state.waited.note(context, advice.as_ref());
    keys::scrolled_by_keys(egui::ScrollArea::vertical().id_salt("torch").auto_shrink([false, false]), ui, |ui| {
        let margin = if ui.available_width() < 760.0 { 16.0 } else { space::MARGIN };
        egui::Frame::new().inner_margin(egui::Margin::symmetric(margin as i8, 18)).show(ui, |ui| {
            ui.set_width(ui.available_width());
            let Some(device) = devices.get(state.device) else {
                ui.label(text(
                    "The snapshot holds no memory of any device",
                    size::HEADLINE,
                    Weight::SemiBold,
                    context.theme.text,
                ));
                return;
            };
            verdict(ui, context, snapshot, device);
            ui.add_space(14.0);
            if device.moments() > 1 {
                curve(ui, context, (snapshot, device), &mut state.curve);
                ui.add_space(12.0);
            }
            notes(ui, context);
            standing(ui, context, (snapshot, device), &mut state);
            ui.add_space(10.0);
            let full = ui.available_width();
            advice::findings(ui, context, advice.as_ref(), (full / 290.0) as usize, &state.waited);
        });
    });
    context.locals.put(state);
}

fn verdict(ui: &mut Ui, context: &ViewContext<'_>, snapshot: &CachingSnapshot, device: &CachingAnalysis) {
    let theme = context.theme;
    let short = |bytes: u64| context.short(Bytes(bytes));
    let settings = snapshot.settings.expandable_segments == Some(true);
    let evidence = format!(
        "cuda:{}, {}{}",
        device.device.index,
        counted(device.device.events.len() as u64, "event"),
        if settings { ", expandable segments" } else { "" }
    );
    let cut = context.document.profile.notes.iter().find(|note| note.code == NoteCode::Truncated);
    if let Some(failure) = device.failure() {
        let amount = format!("{} requested. {}", short(failure.requested), cause(failure.cause));
        let sentence = context.said(&format!("{}.", failure.sentence()));
        let (verdict, evidence) = ("Out of memory:", Some(evidence.as_str()));
        return Answer { color: theme.danger, verdict, amount: &amount, sentence: &sentence, evidence }.show(ui, theme);
    }
    let peaks = &device.replay.peaks;
    let least = if cut.is_some() { "at least " } else { "" };
    let amount = format!("{least}{} allocated", short(peaks.allocated.bytes));
    let leak = device.steps.as_ref().filter(|steps| steps.leak > 0);
    let sentence = match (cut, leak) {
        (Some(cut), _) => format!("{}.", cut.text),
        (None, Some(steps)) => {
            format!("Each optimizer step leaves {} behind that is never freed.", short(steps.leak))
        }
        (None, None) => format!(
            "{} reserved at most; {} allocated and {} reserved when the snapshot was taken.",
            short(peaks.reserved.bytes),
            short(device.at_end.allocated),
            short(device.at_end.reserved)
        ),
    };
    let color = if cut.is_some() || leak.is_some() { theme.warn } else { theme.text };
    Answer { color, verdict: "Peak", amount: &amount, sentence: &sentence, evidence: Some(&evidence) }.show(ui, theme);
}

fn cause(cause: Cause) -> String {
    format!("Cause: {}", cause.words())
}

fn curve(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    (snapshot, device): (&CachingSnapshot, &CachingAnalysis),
    raster: &mut CachedRaster,
) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        ui.label(text("Memory over the events", size::BODY, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        // The link at the right keeps its room.
        let room = (ui.available_width() - LINK).max(0.0);
        ui.scope(|ui| {
            ui.set_max_width(room);
            caching::curve_legend(ui, context, device);
        });
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if link(ui, "open Allocator", theme).clicked() {
                context.go("allocator");
            }
        });
    });
    let (outer, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), CURVE), Sense::hover());
    let whole = Span::new(0.0, f64::from(device.moments().max(1)));
    if caching::curve(ui, context, (snapshot, device), outer, whole, raster) {
        context.go("allocator");
    }
}

/// What could not be read, and what is contradictory.
fn notes(ui: &mut Ui, context: &ViewContext<'_>) {
    let theme = context.theme;
    let read = context.document.profile.notes.iter().map(ToString::to_string);
    let problems = context.document.analysis.caching.iter().flat_map(|device| device.problems.iter().cloned());
    for note in read.chain(problems).take(8) {
        ui.add(egui::Label::new(text(note, size::SMALL, Weight::Regular, theme.text3)).wrap());
    }
}

/// What lives at the main moment: by category, and by stack.
fn standing(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    (snapshot, device): (&CachingSnapshot, &CachingAnalysis),
    state: &mut State,
) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        let words = format!("What lives {}", device.main_moment_in_words());
        ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if link(ui, "open stacks", theme).clicked() {
                context.go("live");
            }
        });
    });
    ui.add_space(4.0);
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), TABLES), Sense::hover());
    let split = rect.left() + (rect.width() * 0.38).floor();
    let left = Rect::from_min_max(rect.min, egui::Pos2::new(split - 8.0, rect.bottom()));
    let right = Rect::from_min_max(egui::Pos2::new(split + 8.0, rect.top()), rect.max);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(left).id_salt("categories"));
    child.set_clip_rect(left.intersect(ui.clip_rect()));
    caching::categories(&mut child, context, device, &mut state.categories);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(right).id_salt("stacks"));
    child.set_clip_rect(right.intersect(ui.clip_rect()));
    caching::stacks(&mut child, context, snapshot, &state.groups, &mut state.stacks);
}
