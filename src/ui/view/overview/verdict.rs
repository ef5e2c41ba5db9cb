//! The answer: does it fit, by how much, on which device, and how that is known.

use egui::{Rect, Sense, Ui, Vec2};

use crate::analysis::Verdict;
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::cut_label;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

pub fn show(ui: &mut Ui, context: &ViewContext<'_>) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let units = context.options.units;
    let needs = units.short(scene.space.xprof.allocated);
    let name = &scene.space.name;
    let device = context.document.profile.device.name.as_deref();
    let on = device.map(|device| format!(" on each {device}")).unwrap_or_default();
    let capacity = context.capacity();
    let of = capacity.as_ref().map(|c| units.capacity(c.bytes)).unwrap_or_default();
    let (color, answer, amount, sentence) = match context.verdict() {
        Verdict::Over { by } => (
            theme.danger,
            "Does not fit",
            format!("{} over", units.short(by)),
            format!("Needs {needs} of {of} {name}{on}."),
        ),
        Verdict::Fits { spare } => {
            (theme.ok, "Fits", format!("{} to spare", units.short(spare)), format!("Needs {needs} of {of} {name}{on}."))
        }
        Verdict::Unknown => (
            theme.text,
            "Needs",
            format!("{needs} {name}"),
            format!("How much {name} there is{on} is not known: choose it under Memory."),
        ),
    };
    let evidence = capacity.map(|capacity| format!("Capacity: {}", capacity.evidence)).or_else(|| {
        let device = &context.document.profile.device;
        device.evidence.as_ref().map(|evidence| format!("Device: {evidence}"))
    });
    ui.horizontal(|ui| {
        let (bar, _) = ui.allocate_exact_size(Vec2::new(3.0, 76.0), Sense::hover());
        ui.painter().rect_filled(Rect::from_min_size(bar.min, Vec2::new(3.0, bar.height())), 0.0, color);
        ui.add_space(8.0);
        ui.vertical(|ui| {
            ui.horizontal_wrapped(|ui| {
                ui.label(text(answer, size::VERDICT, Weight::SemiBold, color));
                ui.add_space(8.0);
                ui.label(text(amount, size::VERDICT, Weight::SemiBold, theme.text));
            });
            ui.label(text(sentence, size::LEAD, Weight::Medium, theme.text));
            if let Some(words) = evidence {
                let room = ui.available_width();
                cut_label(ui, &words, Weight::Regular.at(size::SMALL), theme.text3, room);
            }
        });
    });
}
