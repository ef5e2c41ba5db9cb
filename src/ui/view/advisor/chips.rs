//! Whether the unchanged program would fit on other chips.

use egui::{Align2, Pos2, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::advisor::chips::chips;
use crate::model::{Bytes, MemorySpace};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::{Mark, paint_gauge, paint_mark};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// Draws a line for each chip: its memory, the share that the program needs, and what is left over.
pub fn show(ui: &mut Ui, context: &ViewContext<'_>) {
    let theme = context.theme;
    let Some(scene) = context.scene().filter(|scene| scene.space.color == MemorySpace::HBM) else { return };
    let needs = scene.space.xprof.allocated;
    ui.add_space(10.0);
    ui.label(text("On other chips", size::BODY, Weight::SemiBold, theme.text));
    let words = format!(
        "The {} needed here against the memory of each device. Tiling, padding and schedule are those of the chip it was compiled for, so the other lines are estimates.",
        context.short(needs)
    );
    ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text2)).wrap());
    ui.add_space(4.0);
    let units = context.options.units;
    for chip in chips(needs) {
        let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 22.0), Sense::hover());
        let y = rect.center().y;
        let is_over = chip.spare < 0;
        paint_mark(ui.painter(), Pos2::new(rect.left() + 6.0, y), if is_over { Mark::Over } else { Mark::Fits }, theme);
        let font = Weight::Regular.at(size::SMALL);
        let at = Pos2::new(rect.left() + 20.0, y);
        ui.painter().text(at, Align2::LEFT_CENTER, &chip.name, Weight::Medium.at(size::SMALL), theme.text);
        let amount = units.short(Bytes(u64::try_from(chip.spare.unsigned_abs()).unwrap_or(u64::MAX)));
        let (words, color) = match (is_over, chip.is_tight) {
            (true, _) => (format!("{amount} over"), theme.danger),
            (false, true) => (format!("{amount} to spare, tight"), theme.warn),
            (false, false) => (format!("{amount} to spare"), theme.ok),
        };
        ui.painter().text(rect.right_center(), Align2::RIGHT_CENTER, &words, Weight::SemiBold.at(size::SMALL), color);
        let available = units.capacity(chip.available);
        // The narrow panel only has room for names and answers.
        if rect.width() > 420.0 {
            let at = Pos2::new(rect.left() + 190.0, y);
            ui.painter().text(at, Align2::RIGHT_CENTER, &available, font, theme.text2);
            let bar = egui::Rect::from_min_max(
                Pos2::new(rect.left() + 206.0, y - 3.5),
                Pos2::new(rect.right() - 160.0, y + 3.5),
            );
            paint_gauge(ui.painter(), bar, needs.0 as f64, Some(chip.available.0 as f64), theme);
        }
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, format!("{} {available}: {words}", chip.name)));
        response.on_hover_text(format!("{available}: {}", chip.basis));
    }
}
