//! Advisor: what to change, gravest first, each with its evidence, what it saves and how to do it.

use std::collections::HashSet;

use egui::{Sense, Ui, Vec2};

use crate::advisor::{ChangesResults, Finding, Severity};
use crate::model::UnitSystem;
use crate::ui::session::{Action, Document, ViewContext};
use crate::ui::widget::controls::{link, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Which findings are unfolded.
#[derive(Default)]
struct State {
    open: HashSet<usize>,
    began: bool,
}

/// Whether there may be advice.
pub fn has(document: &Document) -> bool {
    !document.profile.programs.is_empty()
        || document.profile.tiles.is_some()
        || document.profile.failures.iter().any(|failure| failure.is_error)
}

/// Draws the findings over the whole view.
pub fn show_page(ui: &mut Ui, context: &mut ViewContext<'_>) {
    egui::ScrollArea::vertical().id_salt("advisor page").auto_shrink([false, false]).show(ui, |ui| {
        egui::Frame::new().inner_margin(egui::Margin::symmetric(24, 18)).show(ui, |ui| {
            ui.set_width(ui.available_width().min(760.0));
            show(ui, context);
        });
    });
}

/// Draws the findings.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = Theme::of(ui.ctx());
    let Some(advice) = context.advice() else { return };
    let mut state = context.locals.take::<State>();
    if !state.began {
        state.began = true;
        state.open.insert(0);
    }
    let program = context.shared.program;
    if let Some(plan) = advice.plans.iter().find(|plan| plan.program == program) {
        ui.label(text("The plan", size::BODY, Weight::SemiBold, theme.text));
        ui.add_space(2.0);
        let color = if plan.fits { theme.ok } else { theme.danger };
        let words = format!("{}.", plan.summary.replace('`', ""));
        ui.add(egui::Label::new(text(words, size::BODY, Weight::Regular, color)).wrap());
        ui.add_space(4.0);
        if link(ui, "Show it in What if", &theme).clicked() {
            context.shared.changes.on.clone_from(&plan.edits);
            context.go("whatif");
        }
        rule(ui, &theme);
    }
    let own = |finding: &&Finding| finding.program.is_none_or(|p| p == program);
    let findings: Vec<(usize, &Finding)> = advice.findings.iter().enumerate().filter(|(_, f)| own(f)).collect();
    if findings.is_empty() {
        let words = "Nothing stands out: what is in memory is the sum of many, and no rule found a cause.";
        ui.add(egui::Label::new(text(words, size::BODY, Weight::Regular, theme.text2)).wrap());
    }
    for (i, finding) in findings {
        one(ui, context, &theme, &mut state, i, finding);
        rule(ui, &theme);
    }
    context.locals.put(state);
}

fn one(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, state: &mut State, i: usize, finding: &Finding) {
    let open = state.open.contains(&i);
    let units = context.options.units;
    ui.horizontal(|ui| {
        let (words, color) = match finding.severity {
            Severity::Critical => ("cause", theme.danger),
            Severity::Warning => ("saves", theme.warn),
            Severity::Hint => ("hint", theme.text2),
        };
        ui.label(text(words, size::SMALL, Weight::SemiBold, color));
        ui.label(text(finding.rule.replace('_', " "), size::SMALL, Weight::Regular, theme.text3));
        if finding.is_guess {
            ui.label(text("guess", size::SMALL, Weight::Regular, theme.text3)).on_hover_text("Rests on names alone");
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if let Some(saves) = finding.saves_bytes.filter(|b| b.0 > 0) {
                let words = units.signed(-i128::from(saves.0));
                ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
            }
        });
    });
    let title = finding.title.replace('`', "");
    let label = egui::Label::new(text(title, size::BODY, Weight::SemiBold, theme.text)).wrap().sense(Sense::click());
    let response = ui.add(label).on_hover_cursor(egui::CursorIcon::PointingHand);
    if response.clicked() {
        if open {
            state.open.remove(&i);
        } else {
            state.open.insert(i);
        }
    }
    if open {
        body(ui, theme, units, finding);
    }
    ui.add_space(3.0);
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 14.0;
        if let Some(&buffer) = finding.buffers.first()
            && link(ui, "Show me", theme).clicked()
        {
            context.select(buffer);
            context.go("timeline");
        }
        if !finding.edits.is_empty() && link(ui, "What if", theme).clicked() {
            context.shared.changes.set(&finding.edits, true);
            context.go("whatif");
        }
        if link(ui, "Copy as text", theme).clicked() {
            context.actions.push(Action::Copy(finding.to_string()));
        }
    });
}

fn body(ui: &mut Ui, theme: &Theme, units: UnitSystem, finding: &Finding) {
    let line = |ui: &mut Ui, words: &str, color| {
        ui.add(egui::Label::new(text(words.replace('`', ""), size::SMALL, Weight::Regular, color)).wrap());
    };
    line(ui, &finding.why, theme.text2);
    if let Some(after) = finding.peak_after_bytes {
        let fits = match finding.fits_after {
            Some(true) => "; fits then",
            Some(false) => "; does not fit with this alone",
            None => "",
        };
        line(ui, &format!("Peak {} after it{fits}.", units.short(after)), theme.text);
    }
    for advice in &finding.advice {
        ui.horizontal_top(|ui| {
            ui.spacing_mut().item_spacing.x = 6.0;
            let (mark, _) = ui.allocate_exact_size(Vec2::new(4.0, 14.0), Sense::hover());
            ui.painter().circle_filled(mark.center(), 1.6, theme.text3);
            line(ui, advice, theme.text);
        });
    }
    let results = match finding.changes_results {
        ChangesResults::No => "Results stay the same.",
        ChangesResults::Maybe => "Results may change.",
        ChangesResults::Yes => "Results change.",
    };
    line(ui, results, theme.text2);
    if let Some(band) = &finding.band {
        line(ui, &format!("Prediction: {band}."), theme.text3);
    }
    for warning in &finding.warnings {
        line(ui, warning, theme.warn);
    }
    if !finding.reference.is_empty() {
        line(ui, finding.reference, theme.text3);
    }
}
