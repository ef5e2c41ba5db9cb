//! A question at the foot of the view that can be ignored.

use egui::{Area, Frame, Margin, Order, Pos2, Rect, Stroke, Ui};

use crate::ui::widget::controls;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size, space};

/// Asks a question over the foot of `body`: its words, and those of the buttons that say yes and no. Returns the answer,
/// once there is one.
pub fn show(ui: &Ui, theme: &Theme, body: Rect, [words, yes, no]: [&str; 3]) -> Option<bool> {
    let mut answer = None;
    Area::new(egui::Id::unique(("offer", yes)))
        .order(Order::Middle)
        .pivot(egui::Align2::CENTER_BOTTOM)
        .fixed_pos(Pos2::new(body.center().x, body.bottom() - 8.0))
        .show(ui.ctx(), |ui| {
            let edge = Stroke::new(theme.outline, theme.accent);
            let frame = Frame::new().fill(theme.panel).stroke(edge).corner_radius(space::RADIUS);
            frame.inner_margin(Margin::symmetric(10, 6)).show(ui, |ui| {
                ui.horizontal(|ui| {
                    let most = (body.width() - 260.0).clamp(120.0, 420.0);
                    controls::cut_label(ui, words, Weight::Medium.at(size::BODY), theme.text, most);
                    ui.add_space(6.0);
                    if controls::toggle_button(ui, yes, "", controls::On(true), theme).clicked() {
                        answer = Some(true);
                    }
                    if controls::button(ui, no, "", theme).clicked() {
                        answer = Some(false);
                    }
                });
            });
        });
    answer
}
