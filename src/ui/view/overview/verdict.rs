//! The verdict: whether it fits, by how much, on which device, and the evidence for that.

use egui::Ui;

use crate::analysis::Verdict;
use crate::model::{Note, TpuGeneration};
use crate::ui::part::ViewContext;
use crate::ui::part::facts::Answer;

pub fn show(ui: &mut Ui, context: &ViewContext<'_>) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let units = context.options.units;
    let name = &scene.space.name;
    let device = context.document.profile.device.name.as_deref();
    let on = device.map(|device| format!(" on each {}", TpuGeneration::unit_of(device))).unwrap_or_default();
    let capacity = context.capacity();
    let allocated = scene.space.xprof.allocated;
    let needs = capacity.as_ref().map_or_else(|| units.short(allocated), |c| units.beside(allocated, c.bytes));
    let of = capacity.as_ref().map(|c| units.capacity(c.bytes)).unwrap_or_default();
    let (color, answer, amount, sentence) = match context.verdict() {
        Verdict::Over { by } => (
            theme.danger,
            "Does not fit",
            format!("{} over", units.short(by)),
            match device.map(TpuGeneration::unit_of) {
                Some(unit) => format!("Needs {needs}; each {unit} has {of} {name}."),
                None => format!("Needs {needs} of {of} {name}."),
            },
        ),
        Verdict::Fits { spare } => {
            (theme.ok, "Fits", format!("{} to spare", units.short(spare)), format!("Needs {needs} of {of} {name}{on}."))
        }
        Verdict::Unknown => (
            theme.text,
            "Needs",
            format!("{needs} {name}"),
            format!("The {name} capacity{on} is not known: choose it under Memory."),
        ),
    };
    let cut = Note::of_missing(&context.document.profile.notes);
    let (color, answer, amount, sentence) = match cut {
        None => (color, answer, amount, sentence),
        // What is missing may be what does not fit.
        Some(cut) => {
            let over = matches!(context.verdict(), Verdict::Over { .. });
            let color = if over { color } else { theme.warn };
            let amount = if over { format!("at least {amount}") } else { format!("at least {needs} {name}") };
            (color, if over { answer } else { "Partly read:" }, amount, format!("{}.", cut.text))
        }
    };
    let evidence = capacity.map(|capacity| format!("Capacity: {}", capacity.evidence)).or_else(|| {
        let device = &context.document.profile.device;
        device.evidence.as_ref().map(|evidence| format!("Device: {evidence}"))
    });
    Answer { color, verdict: answer, amount: &amount, sentence: &sentence, evidence: evidence.as_deref() }
        .show(ui, theme);
}
