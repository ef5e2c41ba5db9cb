//! Findings of the advisor that are gone, new and kept.

use egui::{Rect, Sense, Ui, Vec2};

use super::state::State;
use crate::export::diff::FindingDiff;
use crate::model::Bytes;
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::{cut_label, link};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::theme::size;

/// Draws the three lists.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) {
    let theme = context.theme;
    let Some(findings) = state.findings() else {
        ui.label(text("Working\u{2026}", size::BODY, Weight::Regular, theme.text2));
        return;
    };
    let lists = [("Gone", &findings.gone), ("New", &findings.new), ("Kept", &findings.kept)];
    keys::scrolled_by_keys(egui::ScrollArea::vertical().id_salt("findings").auto_shrink([false, false]), ui, |ui| {
        for (title, rows) in lists {
            ui.add_space(4.0);
            let head = format!("{title}: {}", if rows.is_empty() { "none".to_owned() } else { rows.len().to_string() });
            ui.label(text(head, size::BODY, Weight::SemiBold, theme.text));
            for finding in rows {
                row(ui, context, finding);
            }
        }
        ui.add_space(8.0);
        if link(ui, "open Advisor", theme).clicked() {
            context.go("advisor");
        }
    });
}

fn row(ui: &mut Ui, context: &ViewContext<'_>, finding: &FindingDiff) {
    let theme = context.theme;
    let color = match finding.severity {
        "critical" => theme.danger,
        "warning" => theme.warn,
        _ => theme.accent,
    };
    ui.horizontal(|ui| {
        let (edge, _) = ui.allocate_exact_size(Vec2::new(3.0, 18.0), Sense::hover());
        ui.painter().rect_filled(Rect::from_min_size(edge.min, edge.size()), 0.0, color);
        let saves =
            finding.saves_bytes.map(|bytes| format!("saves {}", context.short(Bytes(bytes)))).unwrap_or_default();
        let room = (ui.available_width() - 190.0).max(80.0);
        cut_label(ui, &finding.title.replace('`', ""), Weight::Regular.at(size::BODY), theme.text, room);
        ui.label(text(format!("{}  {saves}", finding.severity), size::SMALL, Weight::Regular, theme.text2));
    });
    if let Some(before) = &finding.before {
        ui.horizontal(|ui| {
            ui.add_space(3.0 + ui.spacing().item_spacing.x);
            let words = format!("before: {}", before.replace('`', ""));
            let room = ui.available_width().max(80.0);
            cut_label(ui, &words, Weight::Regular.at(size::SMALL), theme.text2, room);
        });
    }
}
