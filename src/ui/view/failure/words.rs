//! The text sections of a failure: what to do next, what to change, the message as printed.

use std::path::PathBuf;

use egui::{Frame, Margin, Ui};

use super::section::section;
use crate::advisor::ChangesResults;
use crate::advisor::remedies::{NextStep, Remedy};
use crate::model::Failure;
use crate::ui::part::{Action, ViewContext};
use crate::ui::widget::controls::{button, link, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size, space};

/// A box with text to copy.
pub fn copyable(ui: &mut Ui, context: &mut ViewContext<'_>, words: &str) {
    let theme = context.theme;
    Frame::new().fill(theme.inset).corner_radius(space::RADIUS).inner_margin(Margin::symmetric(10, 6)).show(ui, |ui| {
        ui.horizontal(|ui| {
            let room = (ui.available_width() - 70.0).max(120.0);
            let font = Weight::Mono.at(size::SMALL);
            let galley = ui.painter().layout(words.to_owned(), font, theme.text, room);
            let height = galley.size().y.max(space::CONTROL);
            let (rect, response) = ui.allocate_exact_size(egui::Vec2::new(room, height), egui::Sense::hover());
            ui.painter().galley(
                egui::Pos2::new(rect.left(), rect.center().y - galley.size().y / 2.0),
                galley,
                theme.text,
            );
            response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, words));
            if button(ui, "Copy", "", theme).clicked() {
                context.actions.push(Action::Copy(words.to_owned()));
            }
        });
    });
}

/// The next steps that would reveal more.
pub fn learn(ui: &mut Ui, context: &mut ViewContext<'_>, steps: &[NextStep]) {
    let theme = context.theme;
    if steps.is_empty() {
        return;
    }
    section(ui, theme, "What to do next", "");
    for step in steps {
        ui.add(egui::Label::new(text(format!("{}.", step.text), size::BODY, Weight::Regular, theme.text)).wrap());
        if let Some(command) = &step.command {
            copyable(ui, context, command);
        }
        if let Some(path) = step.open.as_deref().and_then(|path| existing(context, path))
            && button(ui, &format!("Open {}", path.display()), "", theme).clicked()
        {
            context.actions.push(Action::Open(path));
        }
        ui.add_space(4.0);
    }
    ui.add_space(12.0);
}

/// An existing file or folder that a text names, relative to the working directory or to the text.
fn existing(context: &ViewContext<'_>, path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(path);
    let beside = context.document.path.as_deref().and_then(std::path::Path::parent).map(|folder| folder.join(&path));
    [Some(path), beside].into_iter().flatten().find(|path| path.is_file() || path.is_dir())
}

/// The advisor's plan for the program, if its dump is open too; returns whether there is one.
pub fn plan(ui: &mut Ui, context: &mut ViewContext<'_>) -> bool {
    let theme = context.theme;
    if !context.document.has_times() {
        return false;
    }
    let (advice, program) = (context.advice(), context.shared.program);
    let plan = advice.as_ref().and_then(|advice| advice.plans.iter().find(|plan| plan.program == program));
    let Some(plan) = plan else { return false };
    section(ui, theme, "The plan for this program", "measured in its dump, which is open too");
    let summary = format!("{}.", plan.in_words().trim_end_matches('.'));
    ui.add(egui::Label::new(text(summary, size::BODY, Weight::Medium, theme.text)).wrap().selectable(true));
    ui.horizontal(|ui| {
        if link(ui, "Open the plan", theme).clicked() {
            context.shared.changes_mut().on.clone_from(&plan.edits);
            context.go("whatif");
        }
        ui.add_space(8.0);
        if link(ui, "All findings", theme).clicked() {
            context.go("advisor");
        }
    });
    ui.add_space(12.0);
    true
}

/// Where general remedies stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemedyPosition {
    /// They are all that there is.
    Alone,
    /// The plan for the program goes before them.
    BelowThePlan,
}

/// The remedies, each with whether results change, its gain and the sign that it applies.
pub fn change(ui: &mut Ui, theme: &Theme, failure: &Failure, (remedies, position): (&[Remedy], RemedyPosition)) {
    if remedies.is_empty() {
        return;
    }
    let remark = match &failure.error_code {
        Some(code) => format!("from the page on {code}, in the order to try"),
        None => "in the order to try".to_owned(),
    };
    match position {
        RemedyPosition::Alone => section(ui, theme, "What to change", &remark),
        RemedyPosition::BelowThePlan => section(ui, theme, "What helps in general", &remark),
    }
    for remedy in remedies {
        let words = remedy.text.replace('`', "");
        ui.add(egui::Label::new(text(words, size::BODY, Weight::Medium, theme.text)).wrap().selectable(true));
        ui.horizontal_wrapped(|ui| {
            let color = if remedy.changes_results == ChangesResults::No { theme.ok } else { theme.warn };
            let words = remedy.changes_results.words();
            ui.label(text(words, size::SMALL, Weight::Medium, color));
            if !remedy.gain.is_empty() {
                ui.label(text(format!("gain: {}", remedy.gain), size::SMALL, Weight::Regular, theme.text2));
            }
            if !remedy.sign.is_empty() {
                ui.label(text(format!("when: {}", remedy.sign), size::SMALL, Weight::Regular, theme.text3));
            }
        });
        ui.add_space(4.0);
    }
    ui.add_space(12.0);
}

/// The message as it is printed in the text.
pub fn printed(ui: &mut Ui, context: &mut ViewContext<'_>, failure: &Failure) {
    let theme = context.theme;
    rule(ui, theme);
    section(ui, theme, "As printed", &format!("byte {}", crate::model::thousands(failure.offset)));
    copyable(ui, context, &failure.message);
}
