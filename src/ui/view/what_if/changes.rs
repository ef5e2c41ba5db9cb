//! The list of changes: the advisor's and the user's own, each with a switch and its effect when applied alone.

use egui::{Frame, Margin, Rect, Sense, Ui, Vec2};

use crate::advisor::{Advice, ChangesResults, Finding, has_micro_batches};
use crate::analysis::what_if::{Depth, Edit};
use crate::model::{MemorySpace, UnitSystem};
use crate::ui::part::outcome::look;
use crate::ui::part::{Action, ViewContext};
use crate::ui::session::Changes;
use crate::ui::view::what_if::alone::{Alone, Figures};
use crate::ui::view::what_if::layers::Layers;
use crate::ui::view::what_if::{at_peak, sets};
use crate::ui::widget::controls::{On, button, cut_label, hairline, link, paint_gauge_to, toggle};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::theme::{Theme, size};
use crate::ui::work::WhatIfResult;

/// Text fields of the list, and the effects of single changes.
#[derive(Default)]
pub struct State {
    alone: Alone,
    words: String,
    error: Option<String>,
    name: String,
}

/// Draws the list.
pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    advice: Option<&Advice>,
    result: Option<&WhatIfResult>,
) {
    let theme = context.theme;
    keys::scrolled_by_keys(egui::ScrollArea::vertical().id_salt("changes").auto_shrink([false, false]), ui, |ui| {
        ui.spacing_mut().item_spacing.y = 0.0;
        Frame::new().inner_margin(Margin { left: 20, right: 16, top: 14, bottom: 8 }).show(ui, |ui| {
            ui.horizontal(|ui| {
                ui.label(text("Changes", size::LEAD, Weight::SemiBold, theme.text));
                ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                    ui.label(text("each change alone", size::SMALL, Weight::Regular, theme.text3));
                });
            });
        });
        let program = context.shared.program;
        let mut any = false;
        for finding in listed(advice, program) {
            any = true;
            row(ui, context, &mut state.alone, finding, result);
        }
        let micro = micro_batches(advice, program, &context.shared.changes);
        if let Some(edit) = &micro {
            any = true;
            let shown = Shown::new(std::slice::from_ref(edit), ChangesResults::No, MICRO);
            change_row(ui, context, &mut state.alone, shown, result);
        }
        if advice.is_some() && !any {
            Frame::new().inner_margin(Margin::symmetric(20, 8)).show(ui, |ui| {
                let words = "The advisor found no changes. Write your own below.";
                ui.add(egui::Label::new(text(words, size::BODY, Weight::Regular, theme.text2)).wrap());
            });
        }
        Frame::new().inner_margin(Margin { left: 20, right: 16, top: 14, bottom: 16 }).show(ui, |ui| {
            field(ui, context, state);
            own(ui, context, state, (advice, micro.as_ref()), result);
            buttons(ui, context, state, advice, result);
        });
    });
}

/// The findings of a program that have a row: those whose changes save something.
fn listed(advice: Option<&Advice>, program: usize) -> impl Iterator<Item = &Finding> {
    let findings = advice.into_iter().flat_map(|advice| &advice.findings);
    findings.filter(move |f| f.program == Some(program) && !f.edits().is_empty() && f.weight() > 0)
}

/// How many changes have a switch, and how many of these are on.
#[must_use]
pub fn switches(advice: Option<&Advice>, program: usize, changes: &Changes) -> (usize, usize) {
    let micro = micro_batches(advice, program, changes);
    let own = changes.own_and_on(|edit| is_listed(advice, program, changes, micro.as_ref(), edit));
    let is_on = |edits: &[Edit]| edits.iter().all(|edit| changes.on.iter().any(|on| is_one_switch(edit, on)));
    let found = listed(advice, program).map(|finding| is_on(finding.edits()));
    let all = found.chain(micro.iter().map(|edit| is_on(std::slice::from_ref(edit))));
    let all: Vec<bool> = all.chain(own.iter().map(|edit| changes.on.contains(edit))).collect();
    (all.iter().filter(|is_on| **is_on).count(), all.len())
}

/// Whether two changes have one switch: a checkpoint has it for however many layers.
pub(super) fn is_one_switch(only: &Edit, edit: &Edit) -> bool {
    match (only, edit) {
        (Edit::Remat(scope), Edit::Remat(of)) => scope.is_around_same(of),
        _ => only == edit,
    }
}

/// Whether a change has a row among the findings, or is the one of micro-batches.
fn is_listed(advice: Option<&Advice>, program: usize, changes: &Changes, micro: Option<&Edit>, edit: &Edit) -> bool {
    // A finding of several changes has one switch for all of them.
    micro == Some(edit)
        || listed(advice, program).any(|finding| match finding.edits() {
            [only] => is_one_switch(only, edit),
            several => several.contains(edit) && changes.are_on(several),
        })
}

/// Why micro-batches are offered beside a smaller batch.
const MICRO: &str = "The batch is computed in parts, one after the other, and their gradients are added up: the same \
                     results in more time, where a smaller batch trains differently.";

/// Where the advisor would make the batch smaller: as many micro-batches, or as many as are on, unless it has those itself.
fn micro_batches(advice: Option<&Advice>, program: usize, changes: &Changes) -> Option<Edit> {
    let own = || advice.into_iter().flat_map(|advice| &advice.findings).filter(|f| f.program == Some(program));
    if own().any(|finding| has_micro_batches(finding.edits())) {
        return None;
    }
    let batch = advice?.batches.iter().find(|batch| batch.program == program);
    if batch.is_some_and(|batch| !batch.may_be_divided) {
        return None;
    }
    let offered = own().find_map(|finding| match *finding.edits() {
        [Edit::Batch(factor)] if factor > 0.0 && factor <= 0.5 => Some(Edit::Micro((1.0 / factor).round() as u32)),
        _ => None,
    })?;
    let on = changes.on.iter().find(|edit| edit.is_another_strength_of(&offered));
    Some(on.cloned().unwrap_or(offered))
}

/// A change as a row of the list.
#[derive(Clone, Copy)]
struct Shown<'a> {
    edits: &'a [Edit],
    results: ChangesResults,
    why: &'a str,
    /// The finding that evaluated it.
    finding: Option<&'a Finding>,
}

impl<'a> Shown<'a> {
    fn new(edits: &'a [Edit], results: ChangesResults, why: &'a str) -> Self {
        Self { edits, results, why, finding: None }
    }
}

fn row(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    alone: &mut Alone,
    finding: &Finding,
    result: Option<&WhatIfResult>,
) {
    let shown =
        Shown { edits: finding.edits(), results: finding.changes_results, why: &finding.why, finding: Some(finding) };
    change_row(ui, context, alone, shown, result);
}

fn change_row(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    alone: &mut Alone,
    shown: Shown<'_>,
    result: Option<&WhatIfResult>,
) {
    let theme = context.theme;
    let layers = result.and_then(|result| Layers::of(shown.edits, result, &context.shared.changes));
    let chosen = layers.as_ref().and_then(|layers| layers.chosen);
    let on = chosen.is_some() || context.shared.changes.are_on(shown.edits);
    let ground = if on { theme.accent_bg } else { theme.panel };
    let units = context.options.units;
    let title = shown.edits.iter().map(Edit::in_words).collect::<Vec<_>>().join(", ");
    let response =
        Frame::new().fill(ground).inner_margin(Margin { left: 20, right: 16, top: 10, bottom: 10 }).show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 4.0;
            ui.spacing_mut().interact_size.y = 16.0;
            let words = &title;
            // The figures of a finding are those of all layers.
            let partial = layers.as_ref().filter(|layers| layers.is_partial());
            let figures = match (partial, shown.finding, shown.edits) {
                (Some(layers), ..) => alone.of(context, &layers.edit()),
                (None, Some(finding), _) => Some(Figures::of(finding)),
                (None, None, [edit]) => alone.of(context, edit),
                _ => None,
            };
            let known = figures.as_ref().filter(|figures| figures.undecided.is_none());
            let amount = known.map_or_else(String::new, |known| {
                format!("{}{}", if known.is_most { "up to " } else { "" }, units.signed(-known.saves))
            });
            ui.horizontal(|ui| {
                if toggle(ui, On(on), words, theme) {
                    match &layers {
                        Some(layers) if on => layers.switch_off(context.shared.changes_mut()),
                        _ => flip(context.shared.changes_mut(), shown.edits, on),
                    }
                }
                let galley = ui.painter().layout_no_wrap(amount.clone(), Weight::SemiBold.at(size::LEAD), theme.text);
                let room = (ui.available_width() - galley.size().x - 12.0).max(50.0);
                let whole = ui.painter().layout(words.clone(), Weight::SemiBold.at(size::BODY), theme.text, room);
                let (rect, response) = ui.allocate_exact_size(Vec2::new(room, whole.size().y), Sense::hover());
                response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, words));
                ui.painter().galley(rect.min, whole, theme.text);
                ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                    ui.label(text(amount, size::LEAD, Weight::SemiBold, theme.text));
                });
            });
            ui.horizontal(|ui| {
                ui.add_space(38.0);
                let edits: Vec<String> = match &layers {
                    Some(layers) => vec![layers.edit().to_string()],
                    None => shown.edits.iter().map(ToString::to_string).collect(),
                };
                let room = ui.available_width();
                cut_label(ui, &edits.join("; "), Weight::Mono.at(size::SMALL), theme.text2, room);
            });
            if let Some(layers) = &layers {
                layers.show(ui, context);
            }
            ui.horizontal(|ui| {
                ui.add_space(38.0);
                match known.and_then(|known| known.needs) {
                    Some(needs) => gauge(ui, theme, needs.0, result),
                    None => ui.add_space(8.0),
                }
            });
            foot(ui, theme, (figures.as_ref(), shown), units);
        });
    let rect = response.response.rect;
    if on {
        let edge = Rect::from_min_size(rect.min, Vec2::new(3.0, rect.height()));
        ui.painter().rect_filled(edge, 0.0, theme.accent);
    }
    hairline(ui, rect, theme.line);
    response.response.on_hover_text(format!("{title}\n{}", context.said(shown.why)));
}

/// What a change comes to, and what it does to the results: on one line where there is room for both, else on two.
fn foot(ui: &mut Ui, theme: &Theme, (figures, shown): (Option<&Figures>, Shown<'_>), units: UnitSystem) {
    let results = shown.results.in_short(shown.edits);
    let results_color = if shown.results == ChangesResults::No { theme.text2 } else { theme.warn };
    let regular = Weight::Regular.at(size::SMALL);
    let (words, weight, color) = match figures {
        Some(Figures { undecided: Some(why), .. }) => (format!("not predicted: {why}"), regular.clone(), theme.text2),
        Some(Figures { outcome: Some(outcome), .. }) => {
            (outcome.words(units), Weight::SemiBold.at(size::SMALL), look(*outcome, theme).0)
        }
        Some(_) => (String::new(), regular.clone(), theme.text2),
        None => ("working\u{2026}".to_owned(), regular.clone(), theme.text3),
    };
    let width = |words: &str, font: &egui::FontId| {
        ui.painter().layout_no_wrap(words.to_owned(), font.clone(), theme.text).size().x
    };
    let room = ui.available_width() - 38.0;
    let is_one_line = width(&words, &weight) + 16.0 + width(results, &regular) <= room;
    ui.horizontal(|ui| {
        ui.add_space(38.0);
        cut_label(ui, &words, weight, color, ui.available_width());
        if is_one_line {
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                ui.label(text(results, size::SMALL, Weight::Regular, results_color));
            });
        }
    });
    if !is_one_line {
        ui.horizontal(|ui| {
            ui.add_space(38.0);
            ui.label(text(results, size::SMALL, Weight::Regular, results_color));
        });
    }
}

/// The field for an own change, and why it is none.
fn field(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) {
    let theme = context.theme;
    ui.label(text("Your own change", size::SMALL, Weight::Medium, theme.text2));
    ui.add_space(4.0);
    let hint = "donate params \u{b7} batch 0.5 \u{b7} shard table 4 \u{b7} dim 2050 2048";
    let edit = egui::TextEdit::singleline(&mut state.words)
        .font(Weight::Mono.at(size::SMALL))
        .hint_text(text(hint, size::SMALL, Weight::Mono, theme.text3))
        .desired_width(f32::INFINITY)
        .margin(Margin::symmetric(8, 5));
    let response = ui.add(edit).on_hover_text(hint);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::TextInput, true, "Your own change"));
    if response.changed() {
        state.error = None;
    }
    if response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter)) && !state.words.trim().is_empty() {
        let parsed = state.words.parse::<Edit>().map_err(|error| error.to_string());
        let refused = parsed.as_ref().ok().and_then(|edit| named_nothing(context, edit));
        match refused.map_or(parsed, Err) {
            Ok(edit) => {
                let changes = context.shared.changes_mut();
                if !changes.own.contains(&edit) {
                    changes.own.push(edit.clone());
                }
                changes.switch_on(&[edit]);
                state.words.clear();
            }
            Err(error) => {
                state.error = Some(error.replace('`', "'"));
                response.request_focus();
            }
        }
    }
    if let Some(error) = &state.error {
        ui.add_space(3.0);
        ui.add(egui::Label::new(text(error, size::SMALL, Weight::Regular, theme.warn)).wrap());
    }
}

/// Why a change names nothing that is in the program, with what there is; `None` if it names something.
fn named_nothing(context: &ViewContext<'_>, edit: &Edit) -> Option<String> {
    let program = context.shared.program;
    let capacity = context.shared.capacity.get(&MemorySpace::HBM).map(|capacity| capacity.bytes);
    let scene = context.document.scene(program, MemorySpace::HBM)?;
    let memory = scene.memory_against(capacity);
    let after = memory.evaluate(scene.program, std::slice::from_ref(edit), Depth::Estimate);
    after.undecided.filter(|_| after.names_nothing)
}

/// The own changes, each with its switch and what it does alone.
fn own(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    (advice, micro): (Option<&Advice>, Option<&Edit>),
    result: Option<&WhatIfResult>,
) {
    let theme = context.theme;
    let mut gone = None;
    let program = context.shared.program;
    let changes = &context.shared.changes;
    for edit in changes.own_and_on(|edit| is_listed(advice, program, changes, micro, edit)) {
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            let on = context.shared.changes.are_on(std::slice::from_ref(&edit));
            if toggle(ui, On(on), &edit.to_string(), theme) {
                let changes = context.shared.changes_mut();
                if !changes.own.contains(&edit) {
                    changes.own.push(edit.clone());
                }
                flip(changes, std::slice::from_ref(&edit), on);
            }
            let room = ui.available_width() - 60.0;
            cut_label(ui, &edit.to_string(), Weight::Mono.at(size::SMALL), theme.text, room);
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                if link(ui, "remove", theme).clicked() {
                    gone = Some(edit.clone());
                }
            });
        });
        alone_in_words(ui, context, &mut state.alone, &edit, result);
    }
    if let Some(edit) = gone {
        context.shared.changes_mut().switch_off(std::slice::from_ref(&edit));
        context.shared.changes_mut().own.retain(|e| *e != edit);
    }
    ui.add_space(10.0);
}

/// What an own change does alone, below its switch.
fn alone_in_words(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    alone: &mut Alone,
    edit: &Edit,
    result: Option<&WhatIfResult>,
) {
    let (theme, units) = (context.theme, context.options.units);
    ui.horizontal_wrapped(|ui| {
        ui.add_space(38.0);
        let words = match alone.of(context, edit) {
            None => "working\u{2026}".to_owned(),
            Some(Figures { undecided: Some(why), .. }) => format!("not predicted: {why}"),
            Some(figures) if figures.saves == 0 => "changes nothing at the peak".to_owned(),
            Some(figures) => {
                if let Some(outcome) = figures.outcome {
                    let color = look(outcome, theme).0;
                    ui.label(text(outcome.words(units), size::SMALL, Weight::SemiBold, color));
                }
                format!("{} alone", units.signed(-figures.saves))
            }
        };
        ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text2)).wrap());
    });
    if let Some(needs) = alone.of(context, edit).filter(|known| known.undecided.is_none()).and_then(|known| known.needs)
    {
        ui.horizontal(|ui| {
            ui.add_space(38.0);
            gauge(ui, theme, needs.0, result);
        });
    }
}

/// A bar of what would be allocated against the limit. One scale for all changes: what is allocated without them, and room
/// beyond the limit.
fn gauge(ui: &mut Ui, theme: &Theme, needs: u64, result: Option<&WhatIfResult>) {
    let (bar, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 8.0), Sense::hover());
    let limit = result.and_then(|t| t.memory.capacity).map(|c| c as f64);
    let most = result.map_or(0.0, |t| t.memory.allocated as f64).max(limit.unwrap_or(0.0) / 0.6);
    paint_gauge_to(ui.painter(), bar, (needs as f64, limit), most.max(needs as f64), theme);
}

fn buttons(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    advice: Option<&Advice>,
    result: Option<&WhatIfResult>,
) {
    let theme = context.theme;
    let plan = advice.and_then(|a| a.plans.iter().find(|plan| plan.program == context.shared.program));
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = Vec2::new(8.0, 8.0);
        if let Some(plan) = plan
            && button(ui, "Apply the plan", "", theme).clicked()
        {
            context.shared.changes_mut().on.clone_from(&plan.edits);
        }
        if !context.shared.changes.on.is_empty() {
            if button(ui, "All off", "", theme).clicked() {
                context.shared.changes_mut().on.clear();
            }
            if let Some(result) = result
                && button(ui, "Copy as text", "", theme).clicked()
            {
                context.actions.push(Action::Copy(result.text(&context.document.profile.name, context.options.units)));
            }
        }
    });
    if let Some(plan) = plan {
        ui.add_space(6.0);
        let words = format!("{}.", context.said(&plan.in_words()));
        ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text2)).wrap());
    }
    if let Some(result) = result {
        at_peak::show(ui, context, result);
    }
    sets::show(ui, context, &mut state.name);
}

/// Switches changes on or off.
fn flip(changes: &mut Changes, edits: &[Edit], on: bool) {
    if on { changes.switch_off(edits) } else { changes.switch_on(edits) }
}
