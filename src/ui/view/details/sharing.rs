//! Buffers that share memory with a buffer, and a row of such a list.

use egui::{Align, Layout, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::card::ROWS;
use crate::analysis::Scene;
use crate::model::{BufferId, Bytes, counted, thousands};
use crate::ui::part::facts::title;
use crate::ui::part::links::{self, To};
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::controls::{self, paint_swatch};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;
use crate::ui::work::SpaceData;

/// Lists the buffers that share memory with this one.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, data: Option<&SpaceData>, buffer: BufferId) {
    let theme = context.theme;
    let Some(related) = context.related_to_buffer(buffer) else { return };
    let sharing = &related.sharing;
    let place = data.and_then(|data| Some((data, data.box_of(buffer)?)));
    let allocation = place.map(|(data, place)| {
        scene.program.allocations[data.map.regions[place.region as usize].allocation.index()].index
    });
    let to = allocation.map(|allocation| To::Filter(format!("allocation={allocation}")));
    ui.horizontal(|ui| {
        title(ui, theme, "Shares memory with");
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let room = ui.available_width();
            match &to {
                Some(to) if !sharing.is_empty() => {
                    let words = counted(sharing.len() as u64, "buffer");
                    links::number(ui, context, "Shares memory with", &words, room, to.clone());
                }
                _ => {
                    let words =
                        if sharing.is_empty() { "no other buffer".to_owned() } else { sharing.len().to_string() };
                    ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
                }
            }
        });
    });
    for (item, common) in sharing.iter().take(ROWS) {
        let name = scene.analysis.buffer_name(scene.program, item.buffer);
        let words = format!("{name}  {}\u{2013}{}", thousands(item.start.into()), thousands(item.end.into()));
        buffer_row(ui, context, scene, item.buffer, &words, *common);
    }
    if sharing.len() > ROWS {
        let more = format!("{} more over time", thousands((sharing.len() - ROWS) as u64));
        let room = ui.available_width();
        match to {
            Some(to) => links::number(ui, context, "", &more, room, to),
            None => {
                ui.label(text(more, size::SMALL, Weight::Regular, theme.text3));
            }
        }
    }
    ui.add_space(8.0);
}

/// A buffer in a list: a link to it, and a size; returns whether it was clicked.
pub fn buffer_row(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    scene: Scene<'_>,
    buffer: BufferId,
    words: &str,
    bytes: Bytes,
) -> bool {
    let theme = context.theme;
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 20.0), Sense::click());
    if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect.expand2(Vec2::new(4.0, 0.0)), 2.0, theme.hover);
        context.shared.hover(buffer);
    }
    let y = rect.center().y;
    let swatch = Rect::from_center_size(Pos2::new(rect.left() + 5.0, y), Vec2::splat(9.0));
    paint_swatch(ui.painter(), swatch, colors::slot_of_class(scene.analysis.class_now(scene.program, buffer)), theme);
    let size_rect = ui.painter().text(
        Pos2::new(rect.right(), y),
        egui::Align2::RIGHT_CENTER,
        context.short(bytes),
        Weight::Medium.at(size::SMALL),
        theme.text,
    );
    let at = Pos2::new(rect.left() + 16.0, y);
    let room = size_rect.left() - at.x - 8.0;
    controls::paint_cut(
        ui.painter(),
        (at, egui::Align2::LEFT_CENTER),
        words,
        Weight::Regular.at(size::SMALL),
        theme.text,
        room,
    );
    response.widget_info(|| WidgetInfo::labeled(Role::Link, true, words));
    if response.clicked() {
        context.select(buffer);
    }
    response.clicked()
}
