//! Live bytes over the program, stacked by group, with the limit, the peak and the size without padding.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, Ui, WidgetInfo};

use super::{AT_ONCE, Groups, Places, State};
use crate::analysis::SpaceAnalysis;
use crate::model::{Bytes, UnitSystem, percent, thousands};
use crate::ui::part::ViewContext;
use crate::ui::widget::axis::{Span, byte_ticks};
use crate::ui::widget::controls::{self, paint_peak};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::stack::Stack;
use crate::ui::widget::theme::{Theme, size};
use crate::ui::work::{SpaceData, Window};

pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    groups: &Groups,
    data: &SpaceData,
    places: &Places,
) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let rect = places.curve;
    let limit = context.capacity().map(|c| c.bytes.0 as f64);
    let peak = scene.space.peak();
    let y = Span::new(0.0, (peak.0 as f64).max(limit.unwrap_or(0.0)).max(1.0) * 1.08);
    let y_of = |bytes: f64| rect.bottom() - (y.share(bytes) * f64::from(rect.height())) as f32;
    let stacked = groups.stacked();
    let shows_line = shows_line(scene.space);
    let key = (
        state.of,
        state.grouping,
        std::sync::Arc::as_ptr(context.document) as usize,
        limit.unwrap_or(-1.0).to_bits(),
        (theme.dark, stacked.names.len()),
    );
    let (points, own, style) = (data.map.points, groups.clone(), *theme);
    let at_once = data.map.boxes.len() <= AT_ONCE;
    let window = Window { rect, x: places.x, y };
    state.curve.show(ui, context.work, window, "timeline curve", key, theme.panel, at_once, move |raster| {
        let stacked = own.stacked();
        let unpadded = |point: u32| stacked.curves.unpadded.at(point);
        let stack = Stack {
            points,
            highest: &|from, to| stacked.pyramid.max_in(&stacked.curves.total, from, to),
            group: &|group, point| stacked.curves.groups[group].at(point),
            slots: own.slots(),
            line: shows_line.then_some(&unpadded as &dyn Fn(u32) -> u64),
            limit,
        };
        stack.draw(raster, window.x, y, &style);
    });
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    let base = if context.options.units == UnitSystem::Binary { 1024.0 } else { 1000.0 };
    for tick in byte_ticks(y, (rect.height() / 44.0) as usize + 1, base) {
        let at = y_of(tick);
        let words = context.options.units.capacity(Bytes(tick as u64));
        painter.text(Pos2::new(rect.left() - 10.0, at), Align2::RIGHT_CENTER, words, small.clone(), theme.text2);
        painter.hline(rect.x_range(), at.round(), Stroke::new(1.0, theme.line.gamma_multiply(0.5)));
    }
    if let Some(limit) = limit {
        let at = y_of(limit).round();
        painter.hline(rect.x_range(), at, Stroke::new(2.0, theme.over));
        let words = format!(
            "capacity {}",
            context.capacity().map(|c| context.options.units.capacity(c.bytes)).unwrap_or_default()
        );
        label(ui, theme, &words, Pos2::new(rect.left() + 10.0, at - 3.0));
    }
    let px = places.x_of(f64::from(scene.space.peak_point()) + 0.5);
    if rect.x_range().contains(px) {
        let py = y_of(peak.0 as f64).max(rect.top() + 10.0);
        paint_peak(painter, Pos2::new(px, py), theme.ink);
        let words = format!("peak {}", context.short(peak));
        let (align, dx) =
            if px > rect.center().x { (Align2::RIGHT_CENTER, -11.0) } else { (Align2::LEFT_CENTER, 11.0) };
        painter.text(Pos2::new(px + dx, py - 6.0), align, words, Weight::SemiBold.at(size::SMALL), theme.text);
    }
    controls::hairline(ui, Rect::from_min_max(rect.min, Pos2::new(rect.right(), rect.bottom() + 1.0)), theme.line2);
    life(ui, context, data, places);
    let response = ui.interact(rect, ui.scope_id().with("curve"), Sense::click_and_drag());
    let spoken = format!("Live bytes over the program, peak {}", context.short(peak));
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
    let Some(at) = response.hover_pos() else { return };
    let step = (places.point_at(at.x).floor().max(0.0) as u32).min(data.map.points.saturating_sub(1));
    context.shared.hover_step(step);
    if response.double_clicked() {
        context.shared.zoom_to(None);
    } else if response.clicked() {
        context.shared.choose_step(step);
        context.shared.select(None);
    }
    if response.dragged() {
        return;
    }
    let name = context.instruction_at(step);
    let total = stacked.curves.total.at(step);
    response.on_hover_ui_at_pointer(|ui| {
        ui.label(text(
            format!("{} {}", data.map.axis.unit(), thousands(step.into())),
            size::BODY,
            Weight::SemiBold,
            theme.text,
        ));
        if let Some(name) = name {
            ui.label(text(name, size::SMALL, Weight::Mono, theme.text2));
        }
        ui.label(text(format!("{} live", context.short(Bytes(total))), size::BODY, Weight::Medium, theme.text));
        if let Some(limit) = limit.filter(|limit| total as f64 > *limit) {
            let over = format!("{} over", context.short(Bytes(total - limit as u64)));
            ui.label(text(over, size::SMALL, Weight::Medium, theme.danger));
        }
        for (i, name) in stacked.names.iter().enumerate() {
            let bytes = stacked.curves.groups[i].at(step);
            if bytes > 0 {
                let words = format!("{name}  {}  {}", context.short(Bytes(bytes)), percent(bytes, total));
                controls::legend(ui, groups.slots()[i], &words, theme);
            }
        }
        let padding = total.saturating_sub(stacked.curves.unpadded.at(step));
        if padding > 0 {
            let words = format!("{} of it padding", context.short(Bytes(padding)));
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        }
    });
}

/// Whether padding is enough to be seen as a line of its own.
pub fn shows_line(space: &SpaceAnalysis) -> bool {
    space.padding_at_peak.0.saturating_mul(100) >= space.peak().0.max(1)
}

/// The life of the hovered or selected buffer, under the curve.
fn life(ui: &Ui, context: &ViewContext<'_>, data: &SpaceData, places: &Places) {
    let theme = context.theme;
    let Some(item) = context.shared.hovered.or(context.shared.selected).and_then(|b| data.box_of(b)) else { return };
    let rect = places.curve;
    let left = places.x_of(f64::from(item.start)).max(rect.left());
    let right = places.x_of(f64::from(item.end) + 1.0).min(rect.right());
    if left > right {
        return;
    }
    let y = rect.bottom() - 4.0;
    let stroke = Stroke::new(3.0, theme.halo);
    ui.painter().hline(left..=right, y, stroke);
    ui.painter().hline(left..=right, y, Stroke::new(2.0, theme.ink));
    for x in [left, right] {
        ui.painter().vline(x, y - 4.0..=y + 4.0, Stroke::new(2.0, theme.ink));
    }
}

/// Words on a ground of their own, so that they read over data.
pub fn label(ui: &Ui, theme: &Theme, words: &str, bottom_left: Pos2) {
    let galley = ui.painter().layout_no_wrap(words.to_owned(), Weight::SemiBold.at(size::SMALL), theme.danger);
    let rect = Rect::from_min_size(bottom_left - egui::Vec2::new(0.0, galley.size().y), galley.size());
    ui.painter().rect_filled(rect.expand2(egui::Vec2::new(4.0, 1.0)), 2.0, theme.canvas.gamma_multiply(0.88));
    ui.painter().galley(rect.min, galley, theme.danger);
}
