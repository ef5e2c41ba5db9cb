//! Advisor: what to change, ranked, what it saves, and what that rests on.

use egui::{Align, Layout, Rect, Sense, Ui, Vec2};

use crate::advisor::{BatchFit, ChangesResults, Finding, Plan, Severity};
use crate::model::Bytes;
use crate::ui::session::{Action, Document, ViewContext};
use crate::ui::widget::controls::{link, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Whether the rules of the panel can say something: about programs.
pub fn has(document: &Document) -> bool {
    document.analysis.programs.iter().any(|program| !program.spaces.is_empty())
}

/// Widest lines that are easy to read, in points.
const WIDEST: f32 = 900.0;

/// Draws the view: the panel's content with more room.
pub fn show_wide(ui: &mut Ui, context: &mut ViewContext<'_>) {
    egui::ScrollArea::vertical().id_salt("advisor view").auto_shrink([false, false]).show(ui, |ui| {
        egui::Frame::new().inner_margin(egui::Margin::symmetric(24, 18)).show(ui, |ui| {
            ui.set_max_width(ui.available_width().min(WIDEST));
            show(ui, context);
        });
    });
}

/// Draws the panel.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = Theme::of(ui.ctx());
    ui.spacing_mut().interact_size.y = 18.0;
    let Some(advice) = context.advice() else { return };
    let program = context.shared.program;
    for plan in advice.plans.iter().filter(|plan| plan.program == program) {
        show_plan(ui, context, &theme, plan);
        rule(ui, &theme);
    }
    for batch in advice.batches.iter().filter(|batch| batch.program == program) {
        ui.add(egui::Label::new(text(batch_words(*batch), size::SMALL, Weight::Medium, theme.text)).wrap());
        rule(ui, &theme);
    }
    let mine = |finding: &&Finding| finding.program.is_none_or(|of| of == program);
    let findings: Vec<&Finding> = advice.findings.iter().filter(mine).collect();
    if findings.is_empty() {
        let words = "Nothing stands out: what is needed is the sum of many buffers.";
        ui.add(egui::Label::new(text(words, size::BODY, Weight::Regular, theme.text2)).wrap());
    }
    for finding in findings {
        show_finding(ui, context, &theme, finding);
        rule(ui, &theme);
    }
}

fn results(changes: ChangesResults) -> &'static str {
    match changes {
        ChangesResults::No => "same results",
        ChangesResults::Maybe => "results may change",
        ChangesResults::Yes => "results change",
    }
}

fn show_plan(ui: &mut Ui, context: &ViewContext<'_>, theme: &Theme, plan: &Plan) {
    let (color, ground) = if plan.fits { (theme.ok, theme.ok_bg) } else { (theme.danger, theme.danger_bg) };
    egui::Frame::new().fill(ground).inner_margin(10).corner_radius(4).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let title = if plan.fits { "A plan that fits" } else { "No plan is enough" };
        ui.label(text(title, size::BODY, Weight::SemiBold, color));
        ui.add(egui::Label::new(text(&plan.summary, size::SMALL, Weight::Regular, theme.text)).wrap());
        for edit in &plan.edits {
            ui.label(text(format!("\u{2022} {edit}"), size::SMALL, Weight::Mono, theme.text));
        }
        let after = format!("allocated then {}; {}", context.short(plan.allocated), results(plan.changes_results));
        ui.add(egui::Label::new(text(after, size::SMALL, Weight::Regular, theme.text2)).wrap());
    });
}

fn batch_words(batch: BatchFit) -> String {
    let guess = if batch.is_guess { " (which arguments hold it: a guess by name)" } else { "" };
    match batch.largest {
        0 => format!("Not even a batch of 1 on each device fits; it is {} now{guess}.", batch.now),
        largest => format!("Largest batch on each device that fits: about {largest}; now {}{guess}.", batch.now),
    }
}

fn show_finding(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, finding: &Finding) {
    let color = match finding.severity {
        Severity::Critical => theme.danger,
        Severity::Warning => theme.warn,
        Severity::Hint => theme.text3,
    };
    let top = ui.cursor().min;
    ui.horizontal_top(|ui| {
        ui.add_space(8.0);
        ui.vertical(|ui| {
            ui.add(egui::Label::new(text(&finding.title, size::BODY, Weight::SemiBold, theme.text)).wrap());
            ui.horizontal(|ui| {
                let guess = if finding.is_guess { ", a guess by name" } else { "" };
                let words = format!("{}{guess}", finding.severity.name());
                ui.label(text(words, size::SMALL, Weight::Medium, color));
                ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                    if let Some(saves) = finding.saves_bytes.filter(|saves| *saves > Bytes::ZERO) {
                        let words = context.options.units.signed(-i128::from(saves.0));
                        ui.label(text(words, size::LEAD, Weight::SemiBold, theme.text));
                    }
                });
            });
            let fits = match finding.fits_after {
                Some(true) => "then it fits, ",
                Some(false) => "not enough alone, ",
                None => "",
            };
            let words = format!("{fits}{}", results(finding.changes_results));
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
            ui.add(egui::Label::new(text(&finding.why, size::SMALL, Weight::Regular, theme.text2)).wrap());
            for advice in &finding.advice {
                let words = format!("\u{2022} {advice}");
                ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text)).wrap().selectable(true));
            }
            if let Some(band) = &finding.band {
                let words = format!("prediction: {band}");
                ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text3)).wrap());
            }
            for warning in &finding.warnings {
                ui.add(
                    egui::Label::new(text(format!("careful: {warning}"), size::SMALL, Weight::Regular, theme.warn))
                        .wrap(),
                );
            }
            ui.horizontal(|ui| {
                if let Some(&buffer) = finding.buffers.first()
                    && link(ui, "Show me", theme).on_hover_text("Selects its largest buffer in the timeline").clicked()
                {
                    context.shared.selected = Some(buffer);
                    context.go("timeline");
                }
                if link(ui, "Copy as text", theme).clicked() {
                    let mut words = format!("{}\n{}", finding.title, finding.why);
                    for advice in &finding.advice {
                        words.push_str("\n- ");
                        words.push_str(advice);
                    }
                    context.actions.push(Action::Copy(words));
                }
            });
            let source = format!("after {}", finding.reference);
            ui.add(egui::Label::new(text(source, size::SMALL, Weight::Regular, theme.text3)).truncate());
        });
    });
    let bottom = ui.min_rect().bottom();
    let edge = Rect::from_min_max(top, egui::pos2(top.x + 3.0, bottom));
    ui.painter().rect_filled(edge, 0.0, color);
    ui.allocate_exact_size(Vec2::new(1.0, 2.0), Sense::hover());
}
