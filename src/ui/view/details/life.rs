//! A buffer's live range, address, defining instruction and readers.

use egui::{Align, Layout, Pos2, Rect, Sense, Ui, Vec2};

use crate::analysis::live_at::{Residency, argument_before};
use crate::analysis::{LifetimeFrom, Scene};
use crate::model::{BufferId, InstructionId, thousands};
use crate::ui::part::facts::{fact, title};
use crate::ui::part::links::{self, To};
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::controls::{cut_label, link};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;
use crate::ui::work::SpaceData;

/// Number of readers listed before the last one.
const READERS: usize = 3;
/// Number of readers listed when the list is expanded.
const MOST_READERS: usize = 60;

/// Draws live range, address, defining instruction and readers.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, data: Option<&SpaceData>, buffer: BufferId) {
    let theme = context.theme;
    let Scene { program, analysis, space, .. } = scene;
    let place = data.and_then(|data| data.box_of(buffer));
    let unit = data.map_or("step", |data| data.map.axis.unit());
    ui.horizontal(|ui| {
        title(ui, theme, "Lifetime");
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x = 4.0;
            let Some(place) = place else {
                ui.label(text("not known", size::SMALL, Weight::Medium, theme.text));
                return;
            };
            let plain = |ui: &mut Ui, words: &str| {
                ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
            };
            links::number(ui, context, "Last", &place.end.to_string(), 90.0, To::Step(place.end));
            plain(ui, "to");
            links::number(ui, context, "First", &place.start.to_string(), 90.0, To::Step(place.start));
            plain(ui, &format!("{unit}s"));
        });
    });
    if let (Some(data), Some(place)) = (data, place) {
        let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 14.0), Sense::hover());
        let points = f64::from(data.map.points.max(1));
        let x = |point: f64| rect.left() + rect.width() * (point / points) as f32;
        ui.painter().rect_filled(rect, 0.0, theme.inset);
        if let Some(spans) = Residency::of(&data.map, buffer).filter(|spans| spans.reserved != spans.written) {
            let (first, last) = spans.reserved;
            let reserved = egui::Rangef::new(x(f64::from(first)), x(f64::from(last) + 1.0));
            ui.painter().hline(reserved, rect.bottom() - 1.0, egui::Stroke::new(2.0, theme.text3));
        }
        let end = x(f64::from(place.end) + 1.0).max(x(f64::from(place.start)) + 1.5);
        let life = Rect::from_min_max(Pos2::new(x(f64::from(place.start)), rect.top()), Pos2::new(end, rect.bottom()));
        ui.painter().rect_filled(life, 0.0, colors::slot_of_class(analysis.class_now(program, buffer)).color());
        let peak = x(f64::from(space.peak_point()) + 0.5);
        ui.painter().vline(peak, rect.y_range(), egui::Stroke::new(1.5, theme.ink));
        ui.add_space(4.0);
        let (start, end) = data.map.held(buffer).unwrap_or((place.start, place.end));
        let alive = data.map.length(start, end);
        let argument = || argument_before(program, analysis, &data.map, buffer);
        if let Some(words) =
            Residency::in_words_of(program, &data.map, buffer).and_then(|spans| spans.note(unit, argument))
        {
            fact(ui, theme, "Memory", &words);
        }
        let at_peak = if (start..=end).contains(&space.peak_point()) { ", at peak" } else { "" };
        let words = format!("{alive} of {} {unit}s{at_peak}", data.map.steps());
        links::fact(ui, context, "Live for", &words, To::Life(start, end));
        let region = &data.map.regions[place.region as usize];
        let allocation = &program.allocations[region.allocation.index()];
        let values = [
            (format!("0x{:09X}", place.address - region.base), Some(To::View("heatmap"))),
            ("in allocation".to_owned(), None),
            (allocation.index.to_string(), Some(To::Filter(format!("allocation={}", allocation.index)))),
        ];
        links::facts(ui, context, "Address", &values);
    }
    let from = match analysis.lifetime_from(program, space, buffer) {
        Some(LifetimeFrom::LiveRange) => "program order",
        Some(LifetimeFrom::HeapTrace) => "the heap trace",
        Some(LifetimeFrom::WholeProgram) => "live throughout",
        None if program.is_listing => "not given in the message",
        None => "inside a called computation",
    };
    fact(ui, theme, "Known from", from);
    if let Some((first, last)) = space.span(buffer) {
        let words = format!("{first} to {last}");
        match place {
            Some(place) => {
                links::fact(ui, context, "Heap events", &words, To::Life(place.start, place.end));
            }
            None => fact(ui, theme, "Heap events", &words),
        }
    }
    if let Some(instruction) = program.buffers.instruction_of(buffer) {
        let point = analysis.live.as_ref().and_then(|live| live.point_of(instruction.0));
        place_link(ui, context, "Defined by", &program.text.instruction_name(instruction), point);
    }
    let Some(related) = context.related_to_buffer(buffer) else { return };
    let readers = &related.uses.readers;
    let all = ui.data(|data| data.get_temp::<BufferId>(unfolded())) == Some(buffer);
    let shown = if all { MOST_READERS } else { READERS };
    for (i, &(point, row)) in readers.iter().enumerate().take(shown) {
        let name = program.text.instruction_name(InstructionId(row));
        place_link(ui, context, if i == 0 { "Read by" } else { "" }, &name, Some(point));
    }
    if let Some(&(point, row)) = readers.last().filter(|_| readers.len() > shown) {
        let between = readers.len() - shown - 1;
        if between > 0 {
            let line = egui::vec2(ui.available_width(), ui.spacing().interact_size.y.min(18.0));
            ui.allocate_ui_with_layout(line, Layout::right_to_left(Align::Center), |ui| {
                let words = format!("{} more", thousands(between as u64));
                if all {
                    ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
                } else if link(ui, &words, theme).on_hover_text("List them here").clicked() {
                    ui.data_mut(|data| data.insert_temp(unfolded(), buffer));
                }
            });
        }
        let name = program.text.instruction_name(InstructionId(row));
        place_link(ui, context, "Last read by", &name, Some(point));
    }
}

/// Id of the stored buffer whose list of readers is expanded.
fn unfolded() -> egui::Id {
    egui::Id::unique("all readers are listed")
}

/// A row with an instruction and a link to its step.
fn place_link(ui: &mut Ui, context: &mut ViewContext<'_>, words: &str, name: &str, point: Option<u32>) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        let width = ui.available_width();
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let Some(point) = point else {
                cut_label(ui, name, Weight::Medium.at(size::SMALL), theme.text, width * 0.68);
                return;
            };
            if link(ui, &point.to_string(), theme).on_hover_text("Go to this step").clicked() {
                context.shared.choose_step(point);
            }
            cut_label(ui, name, Weight::Medium.at(size::SMALL), theme.text, width * 0.56);
        });
    });
}
