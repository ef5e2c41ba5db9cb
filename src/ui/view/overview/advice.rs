//! The advisor in short: the plan beside the verdict, and the first findings as cards.

use std::sync::Arc;

use egui::{Align2, Pos2, Rect, Role, Sense, Shape, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use crate::advisor::{Advice, ChangesResults, Finding, Plan, Severity};
use crate::analysis::what_if::{Edit, Outcome, UNTOLD};
use crate::model::{Bytes, MemorySpace, capitalised};
use crate::ui::part::ViewContext;
use crate::ui::part::outcome::{look, make_it_fit};
use crate::ui::widget::controls::{Mark, cut_label, link, paint_cut, paint_gauge, paint_mark};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{size, space};

/// Height of the plan's card.
pub const PLAN: f32 = 92.0;

/// Height of a finding's card.
const CARD: f32 = 126.0;

/// Maximum number of findings shown as cards; the rest are lines.
const CARDS: usize = 3;

/// Maximum number of findings shown as lines.
const LINES: usize = 4;

/// Height of such a line.
const LINE: f32 = 20.0;

/// Height of the title above them, with what is below it.
const HEAD: f32 = 34.0;

/// Space between cards, in points.
const GAP: f32 = 12.0;

/// The plan of the chosen program.
pub fn plan_of(advice: Option<&Advice>, program: usize) -> Option<&Plan> {
    advice?.plans.iter().find(|plan| plan.program == program)
}

/// Texts of the plan's card: headline, changes, effect on results.
fn plan_words(plan: &Plan, units: crate::model::UnitSystem, capacity: Option<Bytes>) -> (String, Vec<String>, String) {
    let changes: Vec<String> = plan.edits.iter().map(Edit::in_words).collect();
    let count = make_it_fit(changes.len());
    let headline = if !plan.is_told {
        if plan.fits { format!("{count}, but {UNTOLD}") } else { format!("May fit: {UNTOLD}") }
    } else if plan.fits {
        let spare = capacity.map(|c| format!(", {} to spare", units.short(c.saturating_sub(plan.allocated))));
        format!("{count}{}", spare.unwrap_or_default())
    } else if plan.outcome == Some(Outcome::MayFit) {
        format!("May fit: {} over, or {} in total at best", units.short(plan.over), units.short(plan.at_best))
    } else {
        format!("No combination found is enough: {} over", units.short(plan.over))
    };
    let results = capitalised(plan.changes_results.of_results(&plan.edits));
    (headline, changes, results)
}

/// The changes in at most two lines, parted between changes where they do not fit in one.
fn in_two_lines(ui: &Ui, changes: &[String], room: f32) -> Vec<String> {
    let font = Weight::Regular.at(size::SMALL);
    let width =
        |words: &str| ui.painter().layout_no_wrap(words.to_owned(), font.clone(), ui.visuals().text_color()).size().x;
    let whole = changes.join("; ");
    if width(&whole) <= room || changes.len() < 2 {
        return vec![whole];
    }
    let fits = (1..changes.len()).rev().find(|&count| width(&format!("{};", changes[..count].join("; "))) <= room);
    let count = fits.unwrap_or(1);
    vec![format!("{};", changes[..count].join("; ")), changes[count..].join("; ")]
}

/// Draws the plan as a card.
pub fn plan(ui: &mut Ui, context: &mut ViewContext<'_>, plan: &Plan) {
    let theme = context.theme;
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), PLAN), Sense::hover());
    let capacity = context.capacity().map(|c| c.bytes);
    let (headline, changes, results) = plan_words(plan, context.options.units, capacity);
    let (color, ground, _) = look(plan.outcome.unwrap_or(Outcome::Over(plan.over)), theme);
    ui.painter().rect_filled(rect, space::RADIUS, ground);
    let mark = rect.min + Vec2::new(18.0, 20.0);
    if plan.fits {
        let points = vec![mark + Vec2::new(-5.0, 0.0), mark + Vec2::new(-1.5, 4.0), mark + Vec2::new(5.5, -5.0)];
        ui.painter().add(Shape::line(points, Stroke::new(2.0, color)));
    } else {
        paint_mark(ui.painter(), mark, Mark::Over, theme);
    }
    let inner = Rect::from_min_max(rect.min + Vec2::new(36.0, 10.0), rect.max - Vec2::new(16.0, 8.0));
    let mut child = ui.new_child(
        egui::UiBuilder::new().max_rect(inner).layout(egui::Layout::top_down(egui::Align::Min)).id_salt("plan card"),
    );
    let ui = &mut child;
    ui.spacing_mut().item_spacing.y = 3.0;
    let room = inner.width();
    let lead = Weight::SemiBold.at(size::LEAD);
    let is_long = ui.painter().layout_no_wrap(headline.clone(), lead.clone(), color).size().x > room;
    cut_label(ui, &headline, if is_long { Weight::SemiBold.at(size::BODY) } else { lead }, color, room);
    for line in in_two_lines(ui, &changes, room) {
        cut_label(ui, &line, Weight::Regular.at(size::SMALL), theme.text, room);
    }
    ui.horizontal(|ui| {
        let words = if matches!(plan.outcome, Some(Outcome::Tight { .. })) {
            format!("{results}; the compiler will repack")
        } else {
            results
        };
        cut_label(ui, &words, Weight::Regular.at(size::SMALL), theme.text2, room - 110.0);
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if link(ui, "Open the plan", theme).clicked() {
                context.shared.changes_mut().on.clone_from(&plan.edits);
                context.go("whatif");
            }
        });
    });
}

/// The document and program whose advice was waited for in this view: what it takes less than the room that was left for
/// it stays empty, so that nothing below it moves.
#[derive(Debug, Default)]
pub struct Waited(Option<(u64, usize)>);

impl Waited {
    /// Notes whether there is advice.
    pub fn note(&mut self, context: &ViewContext<'_>, advice: Option<&Arc<Advice>>) {
        if advice.is_none() {
            self.0 = Some(context.program_id());
        }
    }

    /// Whether the advice that is shown was waited for.
    pub fn was(&self, context: &ViewContext<'_>) -> bool {
        self.0 == Some(context.program_id())
    }
}

/// Draws the first findings, `columns` cards in a row; leaves room for them while the advisor is still working.
pub fn findings(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    advice: Option<&Arc<Advice>>,
    columns: usize,
    waited: &Waited,
) {
    let columns = columns.clamp(1, CARDS);
    let top = ui.cursor().top();
    show_findings(ui, context, advice, columns);
    if waited.was(context) {
        let gap = ui.spacing().item_spacing.y;
        let cards = CARDS.div_ceil(columns) as f32 * (CARD + GAP);
        let room = HEAD + cards + LINES as f32 * (LINE + gap);
        ui.add_space((top + room - ui.cursor().top()).max(0.0));
    }
}

fn show_findings(ui: &mut Ui, context: &mut ViewContext<'_>, advice: Option<&Arc<Advice>>, columns: usize) {
    let theme = context.theme;
    let program = context.shared.program;
    let own = |finding: &&Finding| finding.program.is_none_or(|p| p == program);
    let list: Vec<(usize, &Finding)> =
        advice.map(|advice| advice.findings.iter().enumerate().filter(|(_, f)| own(f)).collect()).unwrap_or_default();
    ui.horizontal(|ui| {
        // They are about main memory, whatever else is looked at.
        let main = MemorySpace::HBM;
        let mut title = "Findings".to_owned();
        if context.shared.color != main {
            title = format!("Findings in {}", main.name(context.document.profile.device.kind));
        }
        ui.label(text(title, size::BODY, Weight::SemiBold, theme.text));
        if advice.is_none() {
            ui.label(text("working\u{2026}", size::SMALL, Weight::Regular, theme.text3));
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if !list.is_empty() && link(ui, &format!("{} in Advisor", list.len()), theme).clicked() {
                context.go("advisor");
            }
        });
    });
    ui.add_space(4.0);
    if advice.is_some() && list.is_empty() {
        let words = "No single cause: memory is spread over many buffers.";
        ui.add(egui::Label::new(text(words, size::BODY, Weight::Regular, theme.text2)).wrap());
        return;
    }
    let shown = if advice.is_some() { list.len().min(CARDS) } else { columns };
    let width = (ui.available_width() - GAP * (columns as f32 - 1.0)) / columns as f32;
    for row in 0..shown.div_ceil(columns) {
        let (line, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), CARD), Sense::hover());
        for column in 0..columns {
            let left = line.left() + (width + GAP) * column as f32;
            let rect = Rect::from_min_size(Pos2::new(left, line.top()), Vec2::new(width, CARD));
            match list.get(row * columns + column) {
                Some(&(i, finding)) if row * columns + column < shown => card(ui, context, i, finding, rect),
                None if advice.is_none() => {
                    ui.painter().rect_stroke(rect, space::RADIUS, Stroke::new(1.0, theme.line), StrokeKind::Inside);
                }
                _ => {}
            }
        }
        ui.add_space(GAP - ui.spacing().item_spacing.y);
    }
    for &(i, finding) in list.iter().skip(shown).take(LINES) {
        row(ui, context, i, finding);
    }
}

/// Goes to a finding.
fn open(context: &mut ViewContext<'_>, i: usize) {
    context.shared.ask_for_finding(i);
    context.go("advisor");
}

/// What a finding saves, in words; empty if unknown.
fn amount(context: &ViewContext<'_>, finding: &Finding) -> String {
    finding.saving_in_words(context.options.units)
}

fn card(ui: &Ui, context: &mut ViewContext<'_>, i: usize, finding: &Finding, rect: Rect) {
    let theme = context.theme;
    let response = ui.interact(rect, ui.scope_id().with(("finding", i)), Sense::click());
    let title = context.said(&finding.title);
    let ground = if response.hovered() { theme.hover } else { theme.panel };
    let edge = if response.has_focus() { Stroke::new(2.0, theme.accent) } else { Stroke::new(1.0, theme.line) };
    let painter = ui.painter().with_clip_rect(rect.intersect(ui.clip_rect()));
    painter.rect(rect, space::RADIUS, ground, edge, StrokeKind::Inside);
    if finding.severity == Severity::Critical {
        painter.rect_filled(Rect::from_min_size(rect.min, Vec2::new(3.0, rect.height())), 0.0, theme.over);
    }
    let inner = rect.shrink2(Vec2::new(14.0, 10.0));
    let amount = amount(context, finding);
    let number = painter.layout_no_wrap(amount.clone(), Weight::SemiBold.at(size::LEAD), theme.text);
    let room = inner.width() - number.size().x - 12.0;
    painter.galley(Pos2::new(inner.right() - number.size().x, inner.top() - 1.0), number, theme.text);
    let mut job = egui::text::LayoutJob::simple(title.clone(), Weight::SemiBold.at(size::BODY), theme.text, room);
    job.wrap.max_rows = 3;
    let galley = painter.layout_job(job);
    let below = inner.top() + galley.size().y + 3.0;
    painter.galley(inner.min, galley, theme.text);
    let small = Weight::Regular.at(size::SMALL);
    // What the card promises is what its change does, not a first piece of advice that keeps the results.
    let advice = finding.advice.first().filter(|_| finding.changes_results != ChangesResults::Yes);
    let what = context.said(advice.map_or(finding.why.as_str(), String::as_str));
    let what = match finding.includes_in_words(context.options.units) {
        Some(includes) => format!("{}. {what}", capitalised(&includes)),
        None => what,
    };
    let y = inner.bottom() - 7.0;
    let limit = context.capacity().map(|c| c.bytes).filter(|_| context.shared.color == MemorySpace::HBM);
    // Where no effect is told, its room is the advice's.
    let has_effect = finding.saves_bytes().is_some() || finding.allocated_after_bytes().is_some();
    let mut job = egui::text::LayoutJob::simple(what.clone(), small.clone(), theme.text2, inner.width());
    job.wrap.max_rows = ((inner.bottom() - below)
        / painter.layout_no_wrap("X".to_owned(), small.clone(), theme.text2).size().y) as usize;
    if has_effect || job.wrap.max_rows < 2 {
        paint_cut(
            &painter,
            (Pos2::new(inner.left(), below), Align2::LEFT_TOP),
            &what,
            small.clone(),
            theme.text2,
            inner.width(),
        );
    } else {
        let galley = painter.layout_job(job);
        painter.galley(Pos2::new(inner.left(), below), galley, theme.text2);
    }
    let mut spoken = format!("Finding: {title} {amount}");
    let results = finding.changes_results.in_short(finding.edits());
    let color = if finding.changes_results == ChangesResults::No { theme.text2 } else { theme.warn };
    if let (Some(needs), Some(limit), Some(outcome)) = (finding.allocated_after_bytes(), limit, finding.outcome()) {
        let bar = Rect::from_min_max(Pos2::new(inner.left(), y - 24.0), Pos2::new(inner.right(), y - 16.0));
        paint_gauge(&painter, bar, needs.0 as f64, Some(limit.0 as f64), theme);
        let units = context.options.units;
        let (color, _, mark) = look(outcome, theme);
        let words = match outcome {
            Outcome::Over(_) => format!("then still {}", outcome.words(units)),
            _ => format!("then {}", outcome.words(units)),
        };
        paint_mark(&painter, Pos2::new(inner.left() + 6.0, y), mark, theme);
        let at = Pos2::new(inner.left() + 18.0, y);
        paint_cut(
            &painter,
            (at, Align2::LEFT_CENTER),
            &words,
            Weight::SemiBold.at(size::SMALL),
            color,
            inner.width() * 0.6,
        );
        spoken = format!("{spoken}, {words}");
    }
    if finding.saves_bytes().is_some_and(|bytes| bytes.0 > 0) && inner.width() > 230.0 {
        painter.text(Pos2::new(inner.right(), y), Align2::RIGHT_CENTER, results, small, color);
    }
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, &spoken));
    if response.clicked() {
        open(context, i);
    }
    let why = context.said(&finding.why);
    response.on_hover_cursor(egui::CursorIcon::PointingHand).on_hover_ui(|ui| {
        ui.set_max_width(420.0);
        ui.label(text(title, size::BODY, Weight::SemiBold, theme.text));
        ui.label(text(why, size::SMALL, Weight::Regular, theme.text2));
    });
}

fn row(ui: &mut Ui, context: &mut ViewContext<'_>, i: usize, finding: &Finding) {
    let theme = context.theme;
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), LINE), Sense::click());
    if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, 0.0, theme.hover);
    }
    let amount = amount(context, finding);
    let words = if amount.is_empty() { finding.severity.name().to_owned() } else { amount };
    let color = if finding.saves_bytes().is_some() { theme.text } else { theme.text3 };
    let right = Pos2::new(rect.right() - 2.0, rect.center().y);
    let drawn = ui.painter().text(right, Align2::RIGHT_CENTER, &words, Weight::SemiBold.at(size::SMALL), color);
    let title = context.said(&finding.title);
    let left = Pos2::new(rect.left() + 2.0, rect.center().y);
    let room = drawn.left() - left.x - 10.0;
    paint_cut(ui.painter(), (left, Align2::LEFT_CENTER), &title, Weight::Medium.at(size::SMALL), theme.text, room);
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Finding: {title} {words}")));
    if response.clicked() {
        open(context, i);
    }
    response.on_hover_cursor(egui::CursorIcon::PointingHand);
}
