//! The card of the chosen step: live bytes, holes, the largest buffers.

use egui::{Align, Layout, Ui};

use super::card::{ROWS, readout};
use crate::analysis::Scene;
use crate::analysis::contributors::Contributor;
use crate::analysis::live_at::Residency;
use crate::model::{BufferId, Bytes, percent, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::facts::title;
use crate::ui::part::links::{self, To};
use crate::ui::session::{Lit, RowScope};
use crate::ui::view::details::sharing::buffer_row;
use crate::ui::widget::controls::{cut_label, link, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;
use crate::ui::work::SpaceData;

/// Draws the chosen step: its instruction, live bytes and largest buffers.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, data: Option<&SpaceData>) {
    let theme = context.theme;
    let step = context.step();
    let at_peak = context.shared.step.is_none();
    let unit = data.map_or("step", |data| data.map.axis.unit());
    let words = if at_peak { format!("The peak, {unit} {step}") } else { format!("{unit} {step}") };
    let words = words[..1].to_uppercase() + &words[1..];
    let is_listing = scene.program.is_listing;
    let words = if is_listing { "Listed in the message".to_owned() } else { words };
    ui.horizontal(|ui| {
        ui.label(text(words, size::LEAD, Weight::SemiBold, theme.text));
        if !is_listing {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let room = ui.available_width();
                links::number(ui, context, "Step", "in Timeline", room, To::View("timeline"));
            });
        }
    });
    if let Some(name) = context.instruction_at(step) {
        let width = ui.available_width();
        cut_label(ui, &name, Weight::Mono.at(size::SMALL), theme.text2, width);
    }
    let live = scene.space.occupancy.as_ref().map_or(scene.space.peak(), |o| Bytes(o.reserved.at(step)));
    let remark = if is_listing {
        "in total".to_owned()
    } else if at_peak {
        "the highest".to_owned()
    } else {
        format!("{} of the peak", percent(live.0, scene.space.peak().0))
    };
    let to_peak = (!at_peak && !is_listing).then(|| To::Step(scene.space.peak_point()));
    let rows = if at_peak { RowScope::Peak } else { RowScope::Step };
    readout(ui, context, live, (&remark, to_peak), To::Rows(rows));
    rule(ui, theme);
    let Some(data) = data else { return };
    let related = context.related_to_step();
    let hole = related.as_ref().and_then(|related| related.largest_hole);
    let largest_hole = hole.filter(|_| !is_listing && data.map.height > data.map.heap_base);
    if let Some((_, hole)) = largest_hole {
        links::fact(ui, context, "Largest hole in the heap", &context.short(hole), To::View("heatmap"));
    }
    if let Some(unwritten) = related.as_ref().map(|related| related.unwritten).filter(|bytes| *bytes > Bytes::ZERO) {
        let words = context.short(unwritten);
        links::fact(ui, context, "Reserved, not written yet", &words, To::Rows(rows));
    }
    if at_peak {
        let padding = context.short(scene.space.at_peak.padding);
        links::fact(ui, context, "Padding", &padding, To::View("padding"));
        // What a message counts beyond its list is not necessarily fragmentation.
        let rest = if is_listing { "Not listed" } else { "Fragmentation" };
        let lost = context.short(scene.space.fragmentation());
        links::fact(ui, context, rest, &lost, To::View(if is_listing { "failure" } else { "heatmap" }));
    }
    ui.add_space(6.0);
    let shown = ROWS * 2;
    let (count, rows): (usize, Vec<(BufferId, Bytes)>) = if at_peak {
        let at_peak = &scene.space.at_peak;
        (at_peak.len(), at_peak.rows.iter().take(shown).copied().collect())
    } else {
        let Some(related) = &related else { return };
        (related.live, related.largest.iter().take(shown).map(|live| (live.buffer, live.bytes)).collect())
    };
    ui.horizontal(|ui| {
        title(
            ui,
            theme,
            if is_listing {
                "Largest"
            } else if at_peak {
                "Largest at the peak"
            } else {
                "Largest at this step"
            },
        );
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if link(ui, &format!("all {}", thousands(count as u64)), theme).clicked() {
                context.shared.list_rows(if at_peak { RowScope::Peak } else { RowScope::Step });
                context.go("buffers");
            }
        });
    });
    let items = match &related {
        _ if is_listing => &[][..],
        _ if at_peak => &data.contributors[..],
        Some(related) => &related.folded[..],
        None => &[],
    };
    if !items.is_empty() {
        return folded(ui, context, scene, (data, step), items);
    }
    for (buffer, bytes) in rows {
        buffer_row(ui, context, scene, buffer, &name_at(scene, data, buffer, step), bytes);
    }
}

/// What a buffer is called at a step at which it has memory, and when it is written where that is later.
fn name_at(scene: Scene<'_>, data: &SpaceData, buffer: BufferId, step: u32) -> String {
    let name = scene.analysis.buffer_name(scene.program, buffer);
    // Some traces leave the names out.
    let name = if name.is_empty() { format!("buffer {}", scene.program.buffers.number[buffer.index()]) } else { name };
    let later = Residency::of(&data.map, buffer).map(|spans| spans.written.0).filter(|first| *first > step);
    match later {
        Some(first) => format!("{name}, written at {first}"),
        None => name,
    }
}

/// What stands at a step, the buffers of equal layers in one row with their count; a click lights them all.
fn folded(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    scene: Scene<'_>,
    (data, step): (&SpaceData, u32),
    items: &[Contributor],
) {
    for item in items.iter().take(ROWS * 2) {
        let Some(&first) = item.buffers.first() else { continue };
        let count = item.buffers.len();
        if count == 1 {
            buffer_row(ui, context, scene, first, &name_at(scene, data, first, step), item.bytes);
            continue;
        }
        let words = format!("{}  \u{d7}{}", item.name(), thousands(count as u64));
        if buffer_row(ui, context, scene, first, &words, item.bytes) {
            context.shared.light(Lit { words, buffers: item.buffers.clone().into() });
        }
    }
}
