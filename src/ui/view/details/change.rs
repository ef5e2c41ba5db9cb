//! What would change a buffer: the findings that name it, and what each saves.

use egui::{Align2, Pos2, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::advisor::Finding;
use crate::model::{BufferId, MemorySpace};
use crate::ui::part::ViewContext;
use crate::ui::part::facts::title;
use crate::ui::widget::controls::{paint_cut, rule};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::size;

/// Findings shown at most.
const MOST: usize = 3;

/// Draws the findings that name a buffer; nothing if none does. A click goes to the finding.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, buffer: BufferId) {
    if context.shared.color != MemorySpace::HBM {
        return;
    }
    let Some(advice) = context.advice() else { return };
    let (theme, program) = (context.theme, context.shared.program);
    let names_it = |finding: &Finding| {
        finding.program == Some(program) && !finding.edits().is_empty() && finding.buffers.contains(&buffer)
    };
    let found: Vec<(usize, &Finding)> =
        advice.findings.iter().enumerate().filter(|(_, finding)| names_it(finding)).take(MOST).collect();
    if found.is_empty() {
        return;
    }
    title(ui, theme, "What would change it");
    for (at, finding) in found {
        let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 20.0), Sense::click());
        if response.hovered() || response.has_focus() {
            ui.painter().rect_filled(rect, 0.0, theme.hover);
        }
        let saves = finding.saving_in_words(context.options.units);
        let bold = Weight::SemiBold.at(size::SMALL);
        let right = ui.painter().text(rect.right_center(), Align2::RIGHT_CENTER, &saves, bold, theme.text);
        let edits: Vec<String> = finding.edits().iter().map(crate::analysis::what_if::Edit::in_words).collect();
        let words = edits.join("; ");
        let place = Pos2::new(rect.left(), rect.center().y);
        let font = Weight::Medium.at(size::SMALL);
        paint_cut(ui.painter(), (place, Align2::LEFT_CENTER), &words, font, theme.accent, right.left() - place.x - 8.0);
        response.widget_info(|| WidgetInfo::labeled(Role::Link, true, format!("{words} {saves}")));
        if response.clicked() {
            context.shared.ask_for_finding(at);
            context.go("advisor");
        }
        response
            .on_hover_cursor(egui::CursorIcon::PointingHand)
            .on_hover_text(format!("{}, saved by this change as a whole", context.said(&finding.title)));
    }
    rule(ui, theme);
}
