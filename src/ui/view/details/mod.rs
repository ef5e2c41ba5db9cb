//! Details: everything about the selected buffer, or about the step if nothing is selected.

mod card;
mod change;
mod life;
mod origin;
mod shape;
mod sharing;
mod step;

use std::sync::Arc;

use egui::text::LayoutJob;
use egui::{Align, Label, Layout, Rect, Sense, Ui, Vec2};

use self::card::readout;
use crate::analysis::{Scene, category};
use crate::model::{BufferId, percent, thousands};
use crate::ui::part::links::{self, To};
use crate::ui::part::{View, ViewContext, class_legend, colors};
use crate::ui::session::Lit;
use crate::ui::widget::controls::{cut_label, link, paint_swatch, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;
use crate::ui::work::SpaceData;

/// Width and height of the swatch beside a buffer's name, in points.
const SWATCH: f32 = 11.0;

/// Most rows of a buffer's name: what the scan has saved is told at its end.
const HEADING_ROWS: usize = 3;

/// The panel.
pub const PANEL: View = View::new("details", "Details", show);

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    ui.spacing_mut().interact_size.y = 18.0;
    let shown = context.views.shown(context.shared.view, context.document);
    if let Some(section) = shown.and_then(|view| view.section) {
        section(ui, context);
    }
    if let Some(card) = own_card(context) {
        return card(ui, context);
    }
    let Some(scene) = context.scene() else {
        let is_message = context.document.profile.programs.is_empty() && !context.document.profile.failures.is_empty();
        let words = if is_message { "The message names no buffers." } else { "No memory in this program." };
        ui.label(text(words, size::BODY, Weight::Regular, theme.text2));
        return;
    };
    let data = context.data();
    match context.shared.selected {
        Some(buffer) if buffer.index() < scene.program.buffers.len() => {
            buffer_card(ui, context, scene, data.as_deref(), buffer);
        }
        _ => step::show(ui, context, scene, data.as_deref()),
    }
}

/// The card of the current view; for a file without programs, that of the first view that has a card.
fn own_card(context: &ViewContext<'_>) -> Option<fn(&mut Ui, &mut ViewContext<'_>)> {
    let document = context.document;
    let shown = context.views.shown(context.shared.view, document).and_then(|view| view.card);
    let first = || context.views.shown_for(document).find_map(|view| view.card);
    shown.or_else(|| first().filter(|_| context.scene().is_none()))
}

fn buffer_card(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    scene: Scene<'_>,
    data: Option<&SpaceData>,
    buffer: BufferId,
) {
    let theme = context.theme;
    let Scene { program, analysis, space, .. } = scene;
    let kind = category(program, buffer);
    let class = analysis.class_now(program, buffer);
    // As everywhere: what it is, where the program tells; then the compiler's own name below.
    let own_name = program.buffer_name(buffer);
    let label = Some(analysis.buffer_name(program, buffer));
    let size_bytes = program.buffers.size_of(buffer);
    let instruction = program.buffers.instruction_of(buffer);
    let metadata = instruction.map(|i| program.text.metadata(i)).unwrap_or_default();
    ui.horizontal_top(|ui| {
        let font = Weight::SemiBold.at(size::LEAD);
        let row = ui.fonts_mut(|fonts| fonts.row_height(&font));
        let (rect, _) = ui.allocate_exact_size(Vec2::new(SWATCH, row), Sense::hover());
        let swatch = Rect::from_center_size(rect.center(), Vec2::splat(SWATCH));
        paint_swatch(ui.painter(), swatch, colors::slot_of_class(class), theme);
        let name = label.clone().unwrap_or_else(|| own_name.clone());
        let mut job = LayoutJob::simple(name, font, theme.text, ui.available_width());
        job.wrap.max_rows = HEADING_ROWS;
        ui.add(Label::new(job).wrap());
    });
    if label.is_some_and(|label| label != own_name) {
        let width = ui.available_width();
        cut_label(ui, &own_name, Weight::Regular.at(size::SMALL), theme.text3, width);
    }
    ui.horizontal(|ui| {
        // The class, what the buffer is for, is a guess; the category is the compiler's.
        if class.name() != kind.name() {
            class_legend::words(ui, theme, scene, buffer);
        }
        let room = ui.available_width() * 0.6;
        links::number(ui, context, "Category", kind.name(), room, To::words("category", kind.name()));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let opcode = instruction.map(|i| program.opcode_name(i)).unwrap_or_default();
            if !opcode.is_empty() {
                links::number(ui, context, "Instruction", opcode, room, To::words("kind", opcode));
            }
        });
    });
    let of_peak = format!("{} of the peak", percent(size_bytes.0, space.peak().0));
    readout(ui, context, size_bytes, (&of_peak, Some(To::Step(space.peak_point()))), To::View("buffers"));
    equal(ui, context, buffer);
    rule(ui, theme);
    shape::show(ui, context, scene, buffer);
    rule(ui, theme);
    life::show(ui, context, scene, data, buffer);
    rule(ui, theme);
    change::show(ui, context, buffer);
    sharing::show(ui, context, scene, data, buffer);
    origin::op(ui, context, &metadata.op_name);
    origin::source(ui, context, &metadata);
    origin::hlo(ui, context, scene, buffer);
}

/// How many buffers are equal to one, and what they take together: a link that lights them in the timeline.
fn equal(ui: &mut Ui, context: &mut ViewContext<'_>, buffer: BufferId) {
    let Some(related) = context.related_to_buffer(buffer) else { return };
    let Some((all, together)) = &related.equal else { return };
    let words = format!("1 of {} equal, {} together", thousands(all.len() as u64), context.short(*together));
    if link(ui, &words, context.theme).on_hover_text("Light all of them in Timeline").clicked() {
        let words = format!("equal buffers, {}", context.short(*together));
        context.shared.light(Lit { words, buffers: Arc::clone(all) });
        context.go("timeline");
    }
}
