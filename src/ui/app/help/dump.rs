//! The page that says how to get a dump: a recipe for each framework, with what to type.

use egui::{Frame, Margin, Ui};

use super::recipes::{RECIPES, Step};
use super::state::Help;
use super::{paragraph, scrolled};
use crate::ui::app::App;
use crate::ui::widget::controls;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size, space};

impl App {
    pub(super) fn dump_page(&mut self, ui: &mut Ui, theme: &Theme, help: &mut Help, height: f32) {
        let names: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
        let room = ui.available_width();
        if let Some(row) = controls::choice(ui, "Framework", &names, help.recipe, room, theme) {
            help.recipe = row;
        }
        let Some(recipe) = RECIPES.get(help.recipe) else { return };
        ui.add_space(10.0);
        let mut copied = None;
        scrolled(ui, height - 84.0, |ui| {
            for (row, step) in recipe.steps.iter().enumerate() {
                if show_step(ui, theme, (row, step)) {
                    copied = Some(step.code);
                }
                ui.add_space(12.0);
            }
        });
        let source = format!("Documented at {}. Nothing is opened from here.", recipe.source);
        let source = if recipe.source.contains('/') { source } else { format!("More: {}", recipe.source) };
        let words = format!("{} {source}", recipe.tried);
        ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text3)).wrap());
        if let Some(code) = copied {
            self.ctx.copy_text(code.to_owned());
            self.say("Copied");
        }
    }
}

/// Room for the button that copies, in points.
const COPY: f32 = 64.0;

/// Draws a step; returns whether its code is to be copied.
fn show_step(ui: &mut Ui, theme: &Theme, (row, step): (usize, &Step)) -> bool {
    paragraph(ui, theme, step.words);
    if step.code.is_empty() {
        return false;
    }
    ui.add_space(4.0);
    let frame = Frame::new().fill(theme.inset).corner_radius(space::RADIUS).inner_margin(Margin::symmetric(10, 8));
    let shown = frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.horizontal_top(|ui| {
            let room = (ui.available_width() - COPY).max(80.0);
            ui.vertical(|ui| {
                ui.set_width(room);
                ui.add(egui::Label::new(text(step.code, size::SMALL, Weight::Mono, theme.text)).wrap());
            });
            ui.push_id(row, |ui| controls::button(ui, "Copy", "", theme).clicked()).inner
        })
        .inner
    });
    shown.inner
}
