//! The sizes of a message below its bar, in groups: what was asked for, what there was, what held it.

use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::analysis::failure::{Explanation, Readout, Role as Part};
use crate::model::{UnitSystem, capitalised};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::{hairline, paint_cut};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::size;

/// Least width of a size with its name.
const CELL: f32 = 124.0;
/// Width of a group's title where it is beside its sizes.
const TITLE: f32 = 116.0;
/// Width of the view from which a title is beside its group.
const WIDE: f32 = 640.0;

/// Draws the groups; nothing where the bar says all of it.
pub fn show(ui: &mut Ui, context: &ViewContext<'_>, explained: &Explanation) {
    if !explained.has_further_sizes() {
        return;
    }
    for (part, readouts) in &explained.readouts {
        group(ui, context, *part, readouts);
    }
}

fn group(ui: &mut Ui, context: &ViewContext<'_>, part: Part, readouts: &[Readout]) {
    let theme = context.theme;
    let full = ui.available_width();
    let indent = if full < WIDE { 0.0 } else { TITLE };
    let above = if full < WIDE { 20.0 } else { 0.0 };
    let columns = (((full - indent) / CELL) as usize).clamp(1, 7);
    let width = (full - indent) / columns as f32;
    for (nth, chunk) in readouts.chunks(columns).enumerate() {
        let title_room = if nth == 0 { above } else { 0.0 };
        let height = title_room + 50.0;
        let (rect, _) = ui.allocate_exact_size(Vec2::new(full, height), Sense::hover());
        if nth == 0 {
            hairline(ui, Rect::from_min_max(rect.min, Pos2::new(rect.right(), rect.top() + 1.0)), theme.line);
            let at = Pos2::new(rect.left(), rect.top() + 7.0);
            let font = Weight::SemiBold.at(size::SMALL);
            ui.painter().text(at, Align2::LEFT_TOP, part.title(), font, theme.text);
        }
        let rect = rect.with_min_y(rect.top() + title_room);
        for (i, readout) in chunk.iter().enumerate() {
            let left = rect.left() + indent + width * i as f32;
            let cell = Rect::from_min_size(Pos2::new(left, rect.top()), Vec2::new(width, rect.height()));
            one(ui, context, cell, part, readout);
        }
    }
}

fn one(ui: &Ui, context: &ViewContext<'_>, cell: Rect, part: Part, readout: &Readout) {
    let theme = context.theme;
    let (left, room) = (cell.left(), cell.width() - 10.0);
    let title = capitalised(&readout.name);
    let small = Weight::Regular.at(size::SMALL);
    let top = Pos2::new(left, cell.top() + 7.0);
    paint_cut(ui.painter(), (top, Align2::LEFT_TOP), &title, small, theme.text2, room);
    let units = context.options.units;
    let words = match (units, readout.is_capacity) {
        (UnitSystem::Binary, _) => readout.in_words(),
        (_, true) => units.capacity(readout.size.bytes),
        (_, false) => units.short(readout.size.bytes),
    };
    let (number, unit) = words.split_once(' ').unwrap_or((&words, ""));
    // What held the memory is the detail; what was asked for and what there was is the answer.
    let points = if part == Part::Held { size::LEAD } else { size::READOUT };
    let base = cell.top() + 46.0;
    let place = Pos2::new(left, base);
    let font = Weight::SemiBold.at(points);
    let drawn = ui.painter().text(place, Align2::LEFT_BOTTOM, number, font, theme.text);
    let lift = if part == Part::Held { 0.5 } else { 3.0 };
    let unit_at = Pos2::new(drawn.right() + 5.0, base - lift);
    ui.painter().text(unit_at, Align2::LEFT_BOTTOM, unit, Weight::Medium.at(size::BODY), theme.text2);
    let response = ui.interact(cell, ui.scope_id().with(("size", &readout.name)), Sense::hover());
    // Other names of the same size are for whoever reads the message beside it.
    let others = if readout.also.is_empty() { String::new() } else { format!("\nalso: {}", readout.also.join(", ")) };
    let evidence = readout.size.evidence();
    let spoken = format!("{title} {words}, {evidence}");
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &spoken));
    response.on_hover_text(format!("{title}: {words}, {evidence}{others}"));
}
