//! The panel of pins: what each one marks, with an editable note.

use egui::{Align, Layout, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::model::{BufferId, MemorySpace};
use crate::ui::part::{Action, View, ViewContext};
use crate::ui::session::pins::{Asked, MAX_NOTE, PinnedRows};
use crate::ui::session::{Document, Pin, PinOn};
use crate::ui::widget::controls::{self, link, link_sized};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// The panel.
pub const PANEL: View = View { applies: Document::has_buffers, ..View::new("pins", "Pins", show) };

/// Draws the panel.
fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    ui.label(text("Pins", size::LEAD, Weight::SemiBold, theme.text));
    if context.shared.pins.is_empty() {
        ui.add_space(4.0);
        for line in [
            "None yet.",
            "B pins the selected buffer, or the step if nothing is selected.",
            "Each has a number and a note, and is part of the command line that Ctrl L copies.",
        ] {
            ui.add(egui::Label::new(text(line, size::SMALL, Weight::Regular, theme.text2)).wrap());
        }
        return;
    }
    let asked = context.locals.get::<Asked>().0.take();
    let mut removed = None;
    for index in 0..context.shared.pins.len() {
        ui.add_space(8.0);
        if row(ui, context, index, asked == Some(index)) {
            removed = Some(index);
        }
    }
    if let Some(index) = removed {
        context.shared.unpin(index);
    }
    ui.add_space(12.0);
    if link(ui, "Copy the list as Markdown", theme).clicked() {
        let list = markdown(context);
        context.actions.push(Action::Copy(list));
    }
}

/// Draws one pin; returns whether Remove was clicked.
fn row(ui: &mut Ui, context: &mut ViewContext<'_>, index: usize, ask: bool) -> bool {
    let theme = context.theme;
    let Some(pin) = context.shared.pins.get(index).cloned() else { return false };
    let document = context.document.clone();
    let Some((program, _)) = document.program(pin.program) else { return false };
    let buffer = context.locals.get::<PinnedRows>().buffer(&pin, program);
    let mut removed = false;
    ui.horizontal(|ui| {
        let (disc, response) = ui.allocate_exact_size(Vec2::splat(20.0), Sense::hover());
        controls::paint_pin(ui.painter(), disc.center(), index + 1, theme);
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, format!("Pin {}", index + 1)));
        if link_sized(ui, &pin.words_of(program, buffer), size::BODY, theme).clicked() {
            go(context, &pin, buffer);
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let response = link(ui, "Remove", theme);
            response.widget_info(|| WidgetInfo::labeled(Role::Link, true, format!("Remove pin {}", index + 1)));
            removed = response.clicked();
        });
    });
    let mut note = pin.note;
    let edit = egui::TextEdit::multiline(&mut note)
        .desired_rows(1)
        .desired_width(f32::INFINITY)
        .char_limit(MAX_NOTE)
        .hint_text("Note")
        .return_key(egui::KeyboardShortcut::new(egui::Modifiers::SHIFT, egui::Key::Enter));
    let response = ui.add(edit);
    if response.changed() {
        context.shared.note_pin(index, note);
    }
    response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, format!("Note of pin {}", index + 1)));
    if ask {
        response.request_focus();
    }
    if response.has_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter) && !i.modifiers.shift) {
        response.surrender_focus();
    }
    removed
}

/// Goes to what a pin marks.
fn go(context: &mut ViewContext<'_>, pin: &Pin, buffer: Option<BufferId>) {
    if pin.program != context.shared.program {
        let color = context.document.program(pin.program).and_then(|(_, analysis)| analysis.main_space());
        let color = color.map_or(MemorySpace::HBM, |space| space.color);
        context.shared.choose(pin.program, color);
    }
    match pin.on {
        PinOn::Step(step) => context.shared.choose_step(step),
        PinOn::Buffer(_) => context.shared.select(buffer),
    }
}

fn markdown(context: &ViewContext<'_>) -> String {
    let pins = context.shared.pins.iter().enumerate().filter_map(|(i, pin)| {
        let (program, _) = context.document.program(pin.program)?;
        let note = if pin.note.is_empty() { String::new() } else { format!(": {}", pin.note.replace('\n', " ")) };
        Some(format!("{}. {}{note}\n", i + 1, pin.words_of(program, pin.buffer(program))))
    });
    pins.collect()
}
