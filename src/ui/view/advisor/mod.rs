//! Advisor: findings, most severe first, each with evidence, savings and what to change.

mod chips;

use std::collections::HashSet;

use egui::{Sense, Ui, Vec2};

use crate::advisor::{ChangesResults, Finding, Plan, Severity};
use crate::analysis::what_if::Outcome;
use crate::model::{BufferId, MemorySpace, capitalised};
use crate::ui::part::outcome::{look, make_it_fit};
use crate::ui::part::{Action, View, ViewContext, colors, empty};
use crate::ui::session::{Document, Lit};
use crate::ui::widget::controls::{On, cut_label, link, page_link, paint_fold, paint_swatch, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::theme::size;
use crate::ui::work::SpaceData;

/// Which findings are unfolded.
#[derive(Default)]
struct State {
    open: HashSet<usize>,
    /// The program for which it was decided what is unfolded at first.
    began: Option<usize>,
    /// Finding to scroll to.
    reveal: Option<usize>,
}

/// Maximum number of buffers listed as evidence.
const EVIDENCE: usize = 6;

/// The view.
pub const VIEW: View = View { applies, ..View::new("advisor", "Advisor", show_page).with_digit(9) };

/// The findings in the side panel.
pub const PANEL: View = View { applies, ..View::new("advisor", "Advisor", show) };

/// Whether advice is possible for this document: where no program has memory, nothing is known of a cause.
fn applies(document: &Document) -> bool {
    document.has_buffers()
        || !document.analysis.caching.is_empty()
        || document.profile.tiles.is_some()
        || document.profile.failures.iter().any(|failure| failure.is_error)
}

/// Draws the findings as a full page.
fn show_page(ui: &mut Ui, context: &mut ViewContext<'_>) {
    keys::scrolled_by_keys(
        egui::ScrollArea::vertical().id_salt("advisor page").auto_shrink([false, false]),
        ui,
        |ui| {
            egui::Frame::new().inner_margin(egui::Margin::symmetric(24, 18)).show(ui, |ui| {
                ui.set_width(ui.available_width().min(760.0));
                answer(ui, context);
                show(ui, context);
            });
        },
    );
}

/// What the findings come to, in large type.
fn answer(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let (theme, program) = (context.theme, context.shared.program);
    let Some(advice) = context.advice() else { return };
    let count = advice.findings.iter().filter(|finding| finding.program.is_none_or(|p| p == program)).count();
    let (words, color) = match advice.plans.iter().find(|plan| plan.program == program) {
        Some(plan) => (plan_words(plan, context), look(outcome_of(plan), theme).0),
        None if count == 0 => return,
        None if count == 1 => ("One thing to look at".to_owned(), theme.text),
        None => (format!("{count} things to look at"), theme.text),
    };
    ui.label(text(words, size::HEADLINE, Weight::SemiBold, color));
    let (main, chosen) = (MemorySpace::HBM, context.shared.color);
    if chosen != main && context.scene().is_some() {
        let kind = context.document.profile.device.kind;
        let words = format!("In {}; {} is chosen above", main.name(kind), chosen.name(kind));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    }
    ui.add_space(8.0);
}

/// What a plan comes to.
fn outcome_of(plan: &Plan) -> Outcome {
    plan.outcome.unwrap_or(Outcome::Over(plan.over))
}

/// The headline of a plan.
fn plan_words(plan: &Plan, context: &ViewContext<'_>) -> String {
    let results = plan.changes_results.of_results(&plan.edits);
    match (outcome_of(plan), plan.edits.len()) {
        (Outcome::Over(over), _) => format!("No combination found is enough: {} over", context.short(over)),
        (Outcome::MayFit, 1) => format!("With one change it may fit, {results}"),
        (Outcome::MayFit, count) => format!("With {count} changes it may fit, {results}"),
        (_, count) => format!("{}, {results}", make_it_fit(count)),
    }
}

/// Draws the findings.
fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let Some(advice) = context.advice() else {
        ui.label(text("Working out what helps\u{2026}", size::BODY, Weight::Regular, theme.text2));
        return;
    };
    let mut state = context.locals.take::<State>();
    let program = context.shared.program;
    let own = |finding: &&Finding| finding.program.is_none_or(|p| p == program);
    let findings: Vec<(usize, &Finding)> = advice.findings.iter().enumerate().filter(|(_, f)| own(f)).collect();
    let is_new = state.began != Some(program);
    if is_new {
        // All of them, as far as they turn out to have room.
        state.began = Some(program);
        state.open = findings.iter().map(|(i, _)| *i).collect();
    }
    let asked = context.shared.take_finding();
    if let Some(i) = asked {
        state.open.insert(i);
        state.reveal = Some(i);
    }
    if let Some(plan) = advice.plans.iter().find(|plan| plan.program == program) {
        ui.label(text("The plan", size::BODY, Weight::SemiBold, theme.text));
        ui.add_space(2.0);
        let color = look(outcome_of(plan), theme).0;
        let words = format!("{}.", context.said(&plan.in_words()));
        ui.add(egui::Label::new(text(words, size::BODY, Weight::Regular, color)).wrap());
        ui.add_space(4.0);
        for warning in &plan.warnings {
            let words = format!("{}.", capitalised(warning));
            ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.warn)).wrap());
        }
        if link(ui, "Show it in What if", theme).clicked() {
            context.shared.changes_mut().on.clone_from(&plan.edits);
            context.go("whatif");
        }
        rule(ui, theme);
    }
    if findings.is_empty() && context.scene().is_none() && context.document.profile.programs.len() > program {
        empty::without_memory(ui, context);
    } else if findings.is_empty() {
        let words = "No single cause: memory is spread over many buffers.";
        ui.add(egui::Label::new(text(words, size::BODY, Weight::Regular, theme.text2)).wrap());
    }
    let mut bodies = Vec::new();
    for &(i, finding) in &findings {
        bodies.push((i, one(ui, context, &mut state, i, finding)));
        rule(ui, theme);
    }
    let mut excess = ui.min_rect().height() - ui.clip_rect().height();
    if is_new && excess > 0.0 {
        // The last ones are folded until the others have room; the first one never is.
        for &(i, height) in bodies.iter().skip(1).rev().filter(|(i, _)| Some(*i) != asked) {
            if excess > 0.0 && state.open.remove(&i) {
                excess -= height;
            }
        }
        state.reveal = asked;
        ui.ctx().request_discard("not all findings have room unfolded");
    }
    chips::show(ui, context);
    context.locals.put(state);
}

/// Draws a finding; returns the height of what is unfolded of it.
fn one(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, i: usize, finding: &Finding) -> f32 {
    let theme = context.theme;
    let open = state.open.contains(&i);
    let units = context.options.units;
    ui.horizontal(|ui| {
        let color = match finding.severity {
            Severity::Critical => theme.danger,
            Severity::Warning => theme.warn,
            Severity::Hint => theme.text2,
        };
        ui.label(text(finding.severity.name(), size::SMALL, Weight::SemiBold, color));
        ui.label(text(finding.rule.replace('_', " "), size::SMALL, Weight::Regular, theme.text3));
        if finding.is_guess {
            ui.label(text("guess", size::SMALL, Weight::Regular, theme.text3)).on_hover_text("Based on names alone");
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            ui.label(text(finding.saving_in_words(units), size::BODY, Weight::SemiBold, theme.text));
        });
    });
    if let Some(includes) = finding.includes_in_words(units) {
        ui.with_layout(egui::Layout::top_down(egui::Align::Max), |ui| {
            ui.label(text(includes, size::SMALL, Weight::Regular, theme.text2));
        });
    }
    let title = context.said(&finding.title);
    let row = ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = 6.0;
        let (mark, _) = ui.allocate_exact_size(Vec2::new(10.0, size::BODY * 1.4), Sense::hover());
        paint_fold(ui.painter(), mark.center(), On(open), theme.text2);
        let words = text(&title, size::BODY, Weight::SemiBold, theme.text);
        ui.add(egui::Label::new(words).wrap().selectable(false));
    });
    let response = ui.interact(row.response.rect, ui.scope_id().with(("finding", i)), Sense::click());
    let response = response.on_hover_cursor(egui::CursorIcon::PointingHand);
    response.widget_info(|| egui::WidgetInfo::selected(egui::Role::Button, true, open, &title));
    if state.reveal == Some(i) {
        state.reveal = None;
        response.scroll_to_me(Some(egui::Align::Center));
    }
    if response.has_focus() {
        ui.painter().rect_stroke(
            response.rect.expand(2.0),
            2.0,
            egui::Stroke::new(2.0, theme.accent),
            egui::StrokeKind::Outside,
        );
    }
    if response.clicked() {
        if open {
            state.open.remove(&i);
        } else {
            state.open.insert(i);
        }
    }
    let folded = ui.min_rect().height();
    if open {
        body(ui, context, finding);
    }
    let height = ui.min_rect().height() - folded;
    ui.add_space(3.0);
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 14.0;
        if !(finding.buffers.is_empty() && finding.tiles.is_empty()) && link(ui, "Show me", theme).clicked() {
            show_me(context, finding);
        }
        if !finding.edits().is_empty() && link(ui, "What if", theme).clicked() {
            context.shared.changes_mut().switch_on(finding.edits());
            context.go("whatif");
        }
        if link(ui, "Copy as text", theme).clicked() {
            context.actions.push(Action::Copy(finding.to_string()));
        }
    });
    height
}

/// Lights the evidence, all of it, as large as its lives, or shows it on its tiles.
fn show_me(context: &mut ViewContext<'_>, finding: &Finding) {
    if let [buffer] = finding.buffers[..] {
        show_buffer(context, buffer, finding.color);
    } else if !finding.buffers.is_empty() {
        let program = context.shared.program;
        if context.document.space(program, finding.color).is_some() {
            context.shared.choose(program, finding.color);
        }
        context.shared.select(None);
        let range = context.data().and_then(|data| lives(&data, &finding.buffers));
        context.shared.zoom_to(range);
        let buffers = finding.buffers.clone().into();
        context.shared.light(Lit { words: context.said(&finding.title), buffers });
        context.go("timeline");
    } else if !finding.tiles.is_empty() {
        context.shared.choose_tiles(finding.tiles.clone());
        context.go("tiles");
    }
}

/// Selects a buffer and shows its live range in the timeline, with a margin on both sides.
fn show_buffer(context: &mut ViewContext<'_>, buffer: BufferId, color: MemorySpace) {
    let program = context.shared.program;
    if context.document.space(program, color).is_some() {
        context.shared.choose(program, color);
    }
    context.select(buffer);
    let range = context.data().and_then(|data| lives(&data, &[buffer]));
    context.shared.zoom_to(range);
    context.go("timeline");
}

/// The part of the program in which buffers live, with some room on both sides; nothing where it is all of it.
fn lives(data: &SpaceData, buffers: &[BufferId]) -> Option<(f64, f64)> {
    let boxes = || buffers.iter().filter_map(|&buffer| data.box_of(buffer));
    let start = f64::from(boxes().map(|item| item.start).min()?);
    let end = f64::from(boxes().map(|item| item.end).max()?) + 1.0;
    let room = ((end - start) * 0.15).max(4.0);
    let range = ((start - room).max(0.0), (end + room).min(f64::from(data.map.points)));
    (range.1 - range.0 < f64::from(data.map.points)).then_some(range)
}

/// Words with code in backquotes.
fn marked(words: &str, color: egui::Color32) -> egui::text::LayoutJob {
    let mut job = egui::text::LayoutJob::default();
    for (i, part) in words.split('`').enumerate().filter(|(_, part)| !part.is_empty()) {
        let weight = if i % 2 == 1 { Weight::Mono } else { Weight::Regular };
        job.append(part, 0.0, egui::TextFormat::simple(weight.at(size::SMALL), color));
    }
    job
}

fn body(ui: &mut Ui, context: &mut ViewContext<'_>, finding: &Finding) {
    let theme = context.theme;
    let units = context.options.units;
    let line = |ui: &mut Ui, words: &str, color| {
        ui.add(egui::Label::new(marked(&units.restated(words), color)).wrap());
    };
    line(ui, &finding.why, theme.text2);
    evidence(ui, context, finding);
    if !finding.is_told() {
        line(
            ui,
            &finding.effect_in_words().map(|words| format!("{}.", capitalised(&words))).unwrap_or_default(),
            theme.text,
        );
    } else if let Some(after) = finding.peak_after_bytes() {
        let outcome = finding.outcome().map(|outcome| format!("; {}", outcome.words(units))).unwrap_or_default();
        let after = units.short(after);
        let allocated = finding.allocated_after_bytes().map(|bytes| units.short(bytes)).filter(|words| *words != after);
        let allocated = allocated.map(|bytes| format!(", {bytes} allocated")).unwrap_or_default();
        let range = finding.range_in_words(units);
        line(ui, &format!("Peak after this change alone: {after}{allocated}{range}{outcome}."), theme.text);
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
    if let Some(band) = finding.band() {
        line(ui, &format!("Prediction: {band}."), theme.text3);
    }
    for warning in &finding.warnings {
        line(ui, &format!("{}.", capitalised(warning)), theme.warn);
    }
    // What the compiler says where a program does not fit says nothing of one that does.
    let is_said = finding.program.is_none()
        || context.document.has_failed()
        || finding.effect.as_ref().is_none_or(|effect| !effect.fits_already());
    if is_said && !finding.reference.is_empty() {
        reference(ui, context, finding.reference);
    }
}

/// What a finding refers to; a page is a link.
fn reference(ui: &mut Ui, context: &mut ViewContext<'_>, words: &str) {
    let theme = context.theme;
    let Some((title, page)) = words.split_once(", ").filter(|(_, page)| page.starts_with("https://")) else {
        ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text3)).wrap());
        return;
    };
    ui.horizontal_wrapped(|ui| {
        ui.label(text(format!("{title},"), size::SMALL, Weight::Regular, theme.text3));
        if page_link(ui, page, theme) {
            context.actions.push(Action::Copy(page.to_owned()));
        }
    });
}

/// The largest buffers a finding is based on, each a link to the timeline.
fn evidence(ui: &mut Ui, context: &mut ViewContext<'_>, finding: &Finding) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let program = scene.program;
    if finding.program != Some(context.shared.program) {
        return;
    }
    for &buffer in finding.buffers.iter().take(EVIDENCE).filter(|b| b.index() < program.buffers.len()) {
        let name = scene.analysis.buffer_name(program, buffer);
        let bytes = context.short(program.buffers.size_of(buffer));
        let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 18.0), Sense::click());
        if response.hovered() || response.has_focus() {
            ui.painter().rect_filled(rect, 0.0, theme.hover);
        }
        let slot = colors::slot_of_class(scene.analysis.class_now(program, buffer));
        let swatch =
            egui::Rect::from_center_size(egui::Pos2::new(rect.left() + 6.0, rect.center().y), Vec2::splat(9.0));
        paint_swatch(ui.painter(), swatch, slot, theme);
        let font = Weight::Medium.at(size::SMALL);
        let right = egui::Align2::RIGHT_CENTER;
        let drawn = ui.painter().text(rect.right_center(), right, &bytes, font.clone(), theme.text);
        let at = egui::Pos2::new(rect.left() + 17.0, rect.center().y);
        let room = drawn.left() - at.x - 8.0;
        let left = egui::Align2::LEFT_CENTER;
        crate::ui::widget::controls::paint_cut(ui.painter(), (at, left), &name, font, theme.accent, room);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Link, true, format!("Show {name} {bytes}")));
        if response.hovered() {
            context.shared.hover(buffer);
        }
        if response.clicked() {
            show_buffer(context, buffer, finding.color);
        }
        response.on_hover_cursor(egui::CursorIcon::PointingHand).on_hover_text(program.buffer_name(buffer));
    }
    if finding.buffers.len() > EVIDENCE {
        let words = format!("and {} more buffers", finding.buffers.len() - EVIDENCE);
        let width = ui.available_width();
        cut_label(ui, &words, Weight::Regular.at(size::SMALL), theme.text3, width);
    }
}
