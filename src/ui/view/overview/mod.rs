//! Overview: whether it fits, what would make it fit, what is live at the peak, memory over the program, the largest
//! contributors.

mod advice;
mod bar;
mod curve;
mod ipu;
mod ipu_lists;
mod largest;
mod readouts;
mod tiles;
mod torch;
mod verdict;

use std::sync::Arc;

use egui::{Pos2, Rect, Sense, Ui, Vec2};

use crate::advisor::Advice;
use crate::analysis::Verdict;
use crate::model::{MemorySpace, Note, NoteLevel, thousands};
use crate::ui::part::{Find, View, ViewContext, empty};
use crate::ui::session::Document;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::theme::{size, space};

/// The view.
pub const VIEW: View =
    View { applies, find: Find::Dim, shows_buffers: true, ..View::new("overview", "Overview", show).with_digit(1) };

fn applies(document: &Document) -> bool {
    document.has_times()
        || document.lacks_memory()
        || !document.analysis.caching.is_empty()
        || document.profile.tiles.is_some()
        || !document.profile.facts.is_empty()
}

/// Maximum number of notes shown; the rest are counted.
const SHOWN_NOTES: usize = 8;

#[derive(Default)]
struct State {
    curve: CachedRaster,
    largest: largest::State,
    waited: advice::Waited,
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    if context.scene().is_none() && context.document.profile.tiles.is_some() {
        return tiles::show(ui, context);
    }
    if context.scene().is_none() && !context.document.analysis.caching.is_empty() {
        return torch::show(ui, context);
    }
    if context.scene().is_none() {
        return empty::without_memory(ui, context);
    }
    let mut state = context.locals.take::<State>();
    let data = context.data();
    keys::scrolled_by_keys(egui::ScrollArea::vertical().id_salt("overview").auto_shrink([false, false]), ui, |ui| {
        let margin = if ui.available_width() < 760.0 { 16.0 } else { space::MARGIN };
        egui::Frame::new().inner_margin(egui::Margin::symmetric(margin as i8, 18)).show(ui, |ui| {
            ui.set_width(ui.available_width());
            let advice = context.advice();
            state.waited.note(context, advice.as_ref());
            verdict_and_plan(ui, context, advice.as_ref(), &state.waited);
            ui.add_space(14.0);
            bar::show(ui, context, data.as_deref());
            ui.add_space(10.0);
            readouts::show(ui, context);
            ui.add_space(10.0);
            notes(ui, context);
            let Some(data) = data else { return };
            let full = ui.available_width();
            if full < WIDE {
                curve::show(ui, context, &data, &mut state.curve);
                ui.add_space(12.0);
                advice::findings(ui, context, advice.as_ref(), (full / 290.0) as usize, &state.waited);
                ui.add_space(10.0);
                largest::show(ui, context, &data, &mut state.largest);
                return;
            }
            let top = ui.cursor().min;
            let beside = column_of(full);
            let column =
                |left: f32, width: f32| Rect::from_min_size(top + Vec2::new(left, 0.0), Vec2::new(width, 4000.0));
            let mut left =
                ui.new_child(egui::UiBuilder::new().max_rect(column(0.0, full - beside - 28.0)).id_salt("left"));
            curve::show(&mut left, context, &data, &mut state.curve);
            left.add_space(12.0);
            largest::show(&mut left, context, &data, &mut state.largest);
            let mut right =
                ui.new_child(egui::UiBuilder::new().max_rect(column(full - beside, beside)).id_salt("right"));
            advice::findings(&mut right, context, advice.as_ref(), 1, &state.waited);
            let height = left.min_rect().height().max(right.min_rect().height());
            ui.allocate_exact_size(Vec2::new(full, height), Sense::hover());
        });
    });
    context.locals.put(state);
}

/// Minimum width for a separate column of findings.
const WIDE: f32 = 1080.0;

/// Largest width of that column, and of the plan beside the verdict.
const COLUMN: f32 = 400.0;

/// Width of that column in a page of a width: what stands left of it comes first.
fn column_of(full: f32) -> f32 {
    (full * 0.32).floor().min(COLUMN)
}

/// The verdict, and the plan beside or below it if the program does not fit.
fn verdict_and_plan(ui: &mut Ui, context: &mut ViewContext<'_>, advice: Option<&Arc<Advice>>, waited: &advice::Waited) {
    let plan = advice::plan_of(advice.map(AsRef::as_ref), context.shared.program)
        .filter(|_| context.shared.color == MemorySpace::HBM);
    let full = ui.available_width();
    // Leave room for the plan while the advisor is working, and keep it if there is none.
    let is_awaited = waited.was(context) && matches!(context.verdict(), Verdict::Over { .. });
    let Some(width) = (full >= 860.0 && (plan.is_some() || is_awaited))
        .then(|| if full < WIDE { COLUMN.min(full * 0.4) } else { column_of(full) })
    else {
        verdict::show(ui, context);
        if let Some(plan) = plan {
            ui.add_space(10.0);
            advice::plan(ui, context, plan);
        } else if is_awaited {
            ui.add_space(10.0 + advice::PLAN + ui.spacing().item_spacing.y);
        }
        return;
    };
    let top = ui.cursor().min;
    let left = Rect::from_min_size(top, Vec2::new(full - width - 28.0, advice::PLAN));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(left).id_salt("verdict"));
    verdict::show(&mut child, context);
    let height = child.min_rect().height().max(advice::PLAN);
    let (whole, _) = ui.allocate_exact_size(Vec2::new(full, height), Sense::hover());
    if let Some(plan) = plan {
        let right = Rect::from_min_max(Pos2::new(whole.right() - width, whole.top()), whole.max);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(right).id_salt("plan"));
        advice::plan(&mut child, context, plan);
    }
}

/// Notes: inconsistencies and what could not be read.
fn notes(ui: &mut Ui, context: &ViewContext<'_>) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    // Inconsistencies come before mere remarks.
    let document = context.document;
    let level = |note: &&Note| std::cmp::Reverse(note.level);
    let mut read: Vec<&Note> = document.profile.notes.iter().collect();
    read.sort_by_key(level);
    let (grave, worth): (Vec<&Note>, Vec<&Note>) = read.into_iter().partition(|note| note.level != NoteLevel::Info);
    let mut words: Vec<(String, bool)> = grave.iter().map(|note| (note.to_string(), true)).collect();
    words.extend(document.analysis.notes.iter().map(|note| (note.clone(), true)));
    words.extend(scene.space.xprof.inconsistencies.iter().map(|note| (note.clone(), true)));
    words.extend(worth.iter().map(|note| (note.to_string(), false)));
    let difference = scene.space.peak_difference(scene.program, scene.analysis.live.as_ref());
    for (note, is_grave) in words.iter().take(SHOWN_NOTES) {
        let color = if *is_grave { theme.warn } else { theme.text3 };
        ui.horizontal(|ui| {
            let (rect, _) = ui.allocate_exact_size(Vec2::new(3.0, 16.0), Sense::hover());
            ui.painter().rect_filled(rect, 0.0, if *is_grave { theme.warn } else { theme.line2 });
            ui.add(egui::Label::new(text(note, size::SMALL, Weight::Regular, color)).wrap());
        });
    }
    if let Some(more) = words.len().checked_sub(SHOWN_NOTES).filter(|&more| more > 0) {
        let more = format!("and {} more, in the report", thousands(more as u64));
        ui.label(text(more, size::SMALL, Weight::Regular, theme.text3));
    }
    if let Some(note) = difference {
        let note = context.said(&note);
        ui.add(egui::Label::new(text(format!("{note}."), size::SMALL, Weight::Regular, theme.text3)).wrap());
    }
    if !words.is_empty() {
        ui.add_space(8.0);
    }
}
