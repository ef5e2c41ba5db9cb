//! Pins on the timeline: a numbered disc with a thin line at a pinned step, a disc on a pinned buffer.

use egui::{Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::state::FrameLayout;
use crate::ui::chart::{Cursor, Span, Window};
use crate::ui::part::ViewContext;
use crate::ui::session::PinOn;
use crate::ui::session::pins::PinnedRows;
use crate::ui::widget::controls::paint_pin;
use crate::ui::work::SpaceData;

/// Draws the pins; `addresses` is the visible range of the memory map.
pub fn show(ui: &Ui, context: &mut ViewContext<'_>, data: &SpaceData, layout: &FrameLayout, addresses: Span) {
    let theme = context.theme;
    if context.shared.pins.is_empty() {
        return;
    }
    let Some(scene) = context.scene() else { return };
    let pins: Vec<_> = context.pins().into_iter().map(|(number, pin)| (number, pin.clone())).collect();
    let painter = ui.painter().with_clip_rect(ui.clip_rect());
    for (number, pin) in pins {
        let buffer = context.locals.get::<PinnedRows>().buffer(&pin, scene.program);
        let at = match pin.on {
            PinOn::Step(step) => {
                let (axis, line) = (layout.window(), Cursor::pinned(f64::from(step) + 0.5, theme));
                if !axis.shows(line.x) {
                    continue;
                }
                line.draw(&painter, &axis, &layout.bands());
                Pos2::new(axis.x_of(line.x), layout.curve.top() + 10.0)
            }
            PinOn::Buffer(_) => {
                let Some(item) = buffer.and_then(|buffer| data.box_of(buffer)) else { continue };
                let (left, right) = (layout.x_of(f64::from(item.start)), layout.x_of(f64::from(item.end) + 1.0));
                let (left, right) = (left.max(layout.curve.left()), right.min(layout.curve.right()));
                let middle = item.address as f64 + item.size as f64 / 2.0;
                let map = Window { rect: layout.map, x: layout.x, y: addresses };
                let has_map = layout.map.height() > 0.0;
                let y = if has_map { map.y_of(middle) } else { layout.curve.bottom() - 12.0 };
                if right <= left || has_map && !layout.map.y_range().contains(y) {
                    continue;
                }
                Pos2::new((left + 12.0).min(f32::midpoint(left, right).max(left)), y)
            }
        };
        paint_pin(&painter, at, number, theme);
        let disc = Rect::from_center_size(at, Vec2::splat(20.0));
        let response = ui.interact(disc, ui.scope_id().with(("pin", number)), Sense::click());
        let words = pin.words_of(scene.program, buffer);
        let words = if pin.note.is_empty() { words } else { format!("{words}: {}", pin.note) };
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Pin {number} on {words}")));
        if response.clicked() {
            match pin.on {
                PinOn::Step(step) => context.shared.choose_step(step),
                PinOn::Buffer(_) => context.shared.select(buffer),
            }
        }
        response.on_hover_text(words);
    }
}
