//! Failure: an out-of-memory message explained, its listed allocations, what to change and what to do next; a failed
//! request in a snapshot of PyTorch's allocator.

mod allocator;
mod bar;
mod head;
mod listing;
mod section;
mod segments;
mod sizes;
mod snapshot;
mod words;

use std::sync::Arc;

use egui::{Sense, Ui, Vec2};

use crate::advisor::remedies::{Remedies, remedies};
use crate::analysis::failure::{Explanation, explain};
use crate::model::{Failure, NoteCode};
use crate::ui::part::{View, ViewContext};
use crate::ui::session::Document;
use crate::ui::widget::controls::{button, rule, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::table::TableState;
use crate::ui::widget::theme::{Theme, size, space};

/// Up to this many messages have a button each.
const BUTTONS: usize = 12;

#[derive(Default)]
struct State {
    chosen: usize,
    explained: Option<(usize, Arc<(Explanation, Remedies)>)>,
    table: TableState,
    map: CachedRaster,
    over: CachedRaster,
    snapshot: snapshot::State,
}

/// The view.
pub const VIEW: View = View { applies, ..View::new("failure", "Failure", show).with_digit(2) };

/// Whether there is a message, a text that was searched for messages, or a failed request of an allocator.
fn applies(document: &Document) -> bool {
    let profile = &document.profile;
    // A text without messages gets this view, too; everything else has views of its own.
    let is_text = profile.programs.is_empty() && profile.tiles.is_none() && profile.facts.is_empty();
    let has_other = profile.caching.is_some()
        || profile.live.is_some()
        || !profile.runtime.is_empty()
        || !profile.modules.is_empty();
    !profile.failures.is_empty() || (is_text && !has_other) || snapshot::applies(document)
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let document = context.document.clone();
    let failures = &document.profile.failures;
    let has_snapshot = snapshot::applies(&document);
    if failures.is_empty() && !has_snapshot {
        return nothing(ui, context);
    }
    let mut state = context.locals.take::<State>();
    state.chosen = state.chosen.min(failures.len().saturating_sub(1));
    keys::scrolled_by_keys(
        egui::ScrollArea::vertical().id_salt(("failure", state.chosen)).auto_shrink([false, false]),
        ui,
        |ui| {
            let margin = if ui.available_width() < 760.0 { 16.0 } else { space::MARGIN };
            egui::Frame::new().inner_margin(egui::Margin::symmetric(margin as i8, 18)).show(ui, |ui| {
                ui.set_width(ui.available_width());
                if has_snapshot {
                    snapshot::show(ui, context, &mut state.snapshot);
                    if !failures.is_empty() {
                        rule(ui, context.theme);
                        ui.add_space(12.0);
                    }
                }
                if !failures.is_empty() {
                    message(ui, context, &mut state, failures);
                }
            });
        },
    );
    context.locals.put(state);
}

/// A message with all that is known about it.
fn message(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, failures: &[Failure]) {
    let theme = context.theme;
    if failures.len() > 1 {
        choose(ui, failures, &mut state.chosen, theme);
        ui.add_space(12.0);
    }
    let Some(failure) = failures.get(state.chosen) else { return };
    let explained = match &state.explained {
        Some((index, explained)) if *index == state.chosen => explained.clone(),
        _ => {
            let profile = &context.document.profile;
            let explained = Arc::new((explain(failure, profile.shows_buffers()), remedies(failure, profile)));
            state.explained = Some((state.chosen, explained.clone()));
            explained
        }
    };
    let (explained, remedies) = &*explained;
    head::show(ui, context, failure, explained);
    ui.add_space(16.0);
    let has_plan = words::plan(ui, context);
    bar::show(ui, context, failure, explained, &mut state.over);
    sizes::show(ui, context, explained);
    ui.add_space(16.0);
    listing::show(ui, context, failure, explained, &mut state.table);
    allocator::show(ui, context, failure, &mut state.map);
    if context.document.profile.caching.is_none() {
        // A snapshot is what a message of PyTorch tells to make.
        words::learn(ui, context, &remedies.learn);
    }
    let position = if has_plan { words::RemedyPosition::BelowThePlan } else { words::RemedyPosition::Alone };
    words::change(ui, theme, failure, (&remedies.change, position));
    words::printed(ui, context, failure);
}

/// Buttons to choose one of several messages.
fn choose(ui: &mut Ui, failures: &[Failure], chosen: &mut usize, theme: &Theme) {
    ui.horizontal(|ui| {
        if failures.len() <= BUTTONS {
            let words: Vec<String> = (1..=failures.len()).map(|i| format!("Message {i}")).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if let Some(i) = segmented(ui, &words, *chosen, theme) {
                *chosen = i;
            }
            return;
        }
        if button(ui, "Previous", "", theme).clicked() {
            *chosen = chosen.saturating_sub(1);
        }
        ui.label(text(
            format!("Message {} of {}", *chosen + 1, failures.len()),
            size::BODY,
            Weight::Medium,
            theme.text,
        ));
        if button(ui, "Next", "", theme).clicked() {
            *chosen = (*chosen + 1).min(failures.len() - 1);
        }
    });
}

/// Says that the text contains no out-of-memory message.
fn nothing(ui: &mut Ui, context: &ViewContext<'_>) {
    let theme = context.theme;
    egui::Frame::new().inner_margin(24).show(ui, |ui| {
        ui.horizontal(|ui| {
            let (bar, _) = ui.allocate_exact_size(Vec2::new(3.0, 36.0), Sense::hover());
            ui.painter().rect_filled(bar, 0.0, theme.line2);
            ui.add_space(8.0);
            ui.label(text("No out-of-memory message in this text", size::VERDICT_SMALL, Weight::SemiBold, theme.text));
        });
        ui.add_space(8.0);
        for note in &context.document.profile.notes {
            let is_result = note.code == NoteCode::NoFailureFound;
            let words = if is_result { format!("{}.", note.text) } else { format!("{note}.") };
            let label = egui::Label::new(text(words, size::LEAD, Weight::Regular, theme.text2));
            ui.add(label.wrap().selectable(true));
        }
    });
}
