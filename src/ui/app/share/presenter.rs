//! Presenter mode, for viewers of a shared screen: draws a ring around the pointer and shows the pressed keys. Larger
//! type and thicker lines come from the zoom and the style.

use egui::{
    Align2, Event, Key, LayerId, Modifiers, Order, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo,
};

use super::pressed_keys::STAY;
use crate::ui::app::App;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size, space};

impl App {
    /// Records the keys of this frame before commands consume them. Text typed into a field is not shown.
    pub(in crate::ui::app) fn note_keys(&mut self) {
        if !self.options.presenter {
            return;
        }
        let typing = self.ctx.text_edit_focused();
        let (now, pressed) = self.ctx.input(|input| {
            let pressed = input.events.iter().filter_map(|event| match event {
                Event::Key { key, pressed: true, repeat: false, modifiers, .. } => Some((*key, *modifiers)),
                Event::Copy => Some((Key::C, Modifiers::COMMAND)),
                _ => None,
            });
            (input.time, pressed.collect::<Vec<_>>())
        });
        for (key, modifiers) in pressed {
            let is_text = key.name().chars().count() == 1 || key == Key::Space;
            if typing && is_text && !modifiers.command && !modifiers.alt {
                continue;
            }
            self.keys.note(key, modifiers, now);
            self.ctx.request_repaint_after(std::time::Duration::from_secs_f64(STAY + 0.05));
        }
    }

    /// Notes where the pointer is, and at what zoom it came there: egui knows its place in points of that zoom until it
    /// moves.
    pub(in crate::ui::app) fn note_pointer(&mut self) {
        let at = self.ctx.input(|input| input.pointer.hover_pos());
        if self.pointer.0 != at {
            self.pointer = (at, self.ctx.zoom_factor());
        }
    }

    /// Draws the pointer ring and the pressed keys on top of everything.
    pub(in crate::ui::app) fn presenter_marks(&self, ui: &Ui, theme: &Theme) {
        if !self.options.presenter {
            return;
        }
        let layer = LayerId::new(Order::Tooltip, egui::Id::unique("presenter"));
        let painter = ui.ctx().layer_painter(layer);
        let (is_down, now) = ui.input(|i| (i.pointer.any_down(), i.time));
        let (at, zoom) = self.pointer;
        if let Some(at) = at.map(|at| (at.to_vec2() * (zoom / self.ctx.zoom_factor())).to_pos2()) {
            let (radius, width) = if is_down { (14.0, 4.0) } else { (20.0, 3.0) };
            painter.circle_filled(at, radius, theme.accent.gamma_multiply(if is_down { 0.3 } else { 0.15 }));
            painter.circle_stroke(at, radius, Stroke::new(width, theme.accent));
        }
        if now < self.keys.until && !self.keys.words.is_empty() {
            let times = if self.keys.times > 1 { format!("  \u{d7}{}", self.keys.times) } else { String::new() };
            let words = format!("{}{times}", self.keys.words);
            let spoken = format!("Keys: {words}");
            let galley = painter.layout_no_wrap(words, Weight::MonoMedium.at(size::READOUT), theme.halo);
            let rect = ui.ctx().content_rect();
            let center = Pos2::new(rect.center().x, rect.bottom() - space::STATUS - 36.0);
            let ground = Rect::from_center_size(center, galley.size() + Vec2::new(32.0, 16.0));
            let response = ui.interact(ground, egui::Id::unique("keys shown"), Sense::hover());
            response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &spoken));
            painter.rect(ground, space::RADIUS, theme.ink, Stroke::new(2.0, theme.halo), StrokeKind::Outside);
            let place = Align2::CENTER_CENTER.anchor_size(center, galley.size());
            painter.galley(place.min, galley, theme.halo);
        }
    }
}
