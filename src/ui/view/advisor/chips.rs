//! Whether the unchanged program would fit on other chips.

use egui::{Align2, Pos2, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::advisor::chips::{ChipFit, JAX_SHARE, Maker, chips};
use crate::model::{Bytes, Device, DeviceKind, MemorySpace};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::{Mark, link, paint_gauge_to, paint_mark};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// Whether the chips of other makers were asked for.
#[derive(Default)]
struct State {
    has_others: bool,
}

/// Who makes a device; `None` where that is not known.
fn maker(device: &Device) -> Option<Maker> {
    match device.kind? {
        DeviceKind::Tpu => Some(Maker::Google),
        DeviceKind::Gpu => {
            let is_amd = device.name.as_deref().is_some_and(|name| name.contains("AMD") || name.contains("MI3"));
            Some(if is_amd { Maker::Amd } else { Maker::Nvidia })
        }
        DeviceKind::Ipu | DeviceKind::Cpu => None,
    }
}

/// Draws the chips of the maker whose the program was compiled for, and those of others where they are asked for.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
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
    let own = maker(&context.document.profile.device);
    let (shown, others): (Vec<ChipFit>, Vec<ChipFit>) =
        chips(needs).into_iter().partition(|chip| own.is_none_or(|own| chip.maker == own));
    list(ui, context, needs, &shown);
    if others.is_empty() {
        return;
    }
    let has_others = context.locals.get::<State>().has_others;
    let words = if has_others { "Hide the chips of other makers" } else { "Show the chips of other makers" };
    if link(ui, words, theme).clicked() {
        context.locals.get::<State>().has_others = !has_others;
    }
    if has_others {
        list(ui, context, needs, &others);
    }
}

/// A line for each chip: what it offers, how much of that the program takes, what is left; before graphics cards, why
/// they do not offer all that they have.
fn list(ui: &mut Ui, context: &ViewContext<'_>, needs: Bytes, chips: &[ChipFit]) {
    let (theme, units) = (context.theme, context.options.units);
    let mut is_explained = false;
    // One scale for all chips.
    let most = chips.iter().map(|chip| chip.available).max().unwrap_or_default().max(needs).0 as f64;
    for chip in chips {
        if chip.maker != Maker::Google && !is_explained {
            is_explained = true;
            let words = format!(
                "A graphics card offers {:.0}\u{2009}% of its memory, the share that JAX takes unless told otherwise: {} of {}.",
                JAX_SHARE * 100.0,
                units.capacity(chip.available),
                chip.name
            );
            ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text2)).wrap());
        }
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
        // The narrow panel has no room for the bar.
        if rect.width() <= 420.0 {
            let at = Pos2::new(rect.left() + 170.0, y);
            ui.painter().text(at, Align2::RIGHT_CENTER, &available, font, theme.text2);
        } else {
            let at = Pos2::new(rect.left() + 190.0, y);
            ui.painter().text(at, Align2::RIGHT_CENTER, &available, font, theme.text2);
            let bar = egui::Rect::from_min_max(
                Pos2::new(rect.left() + 206.0, y - 3.5),
                Pos2::new(rect.right() - 160.0, y + 3.5),
            );
            paint_gauge_to(ui.painter(), bar, (needs.0 as f64, Some(chip.available.0 as f64)), most, theme);
        }
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, format!("{} {available}: {words}", chip.name)));
        response.on_hover_text(format!("{available}: {}", chip.basis));
    }
}
