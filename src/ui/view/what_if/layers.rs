//! In how many of its layers a program is checkpointed: a number to turn up and down.

use egui::{Role, Ui, WidgetInfo};

use crate::analysis::names::pattern::matches;
use crate::analysis::what_if::{Checkpoint, Edit};
use crate::ui::part::ViewContext;
use crate::ui::session::Changes;
use crate::ui::widget::controls::button;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;
use crate::ui::work::WhatIfResult;

/// The layers that a change checkpoints.
pub struct Layers {
    /// Pattern for their names.
    pattern: String,
    /// How many there are.
    all: u32,
    /// In how many the change is on; `None` where it is off.
    pub chosen: Option<u32>,
}

impl Layers {
    /// The layers of a change that is nothing but a checkpoint; `None` for another, or where there are no two layers.
    pub fn of(edits: &[Edit], result: &WhatIfResult, changes: &Changes) -> Option<Self> {
        let [Edit::Remat(scope)] = edits else { return None };
        let pattern = scope.pattern()?;
        let turn = result.memory.kept.turn.as_ref()?;
        let all = turn.layers.iter().filter(|layer| matches(pattern, &layer.name)).count();
        let all = u32::try_from(all).ok().filter(|&all| all > 1)?;
        let chosen = changes.on.iter().find_map(|edit| match edit {
            Edit::Remat(Checkpoint::Layers(of, layers)) if of == pattern => {
                Some(layers.map_or(all, |layers| layers.min(all)))
            }
            _ => None,
        });
        Some(Self { pattern: pattern.to_owned(), all, chosen })
    }

    /// Whether it is on in some of them only.
    pub fn is_partial(&self) -> bool {
        self.chosen.is_some_and(|chosen| chosen < self.all)
    }

    /// The change as it is on, or would be.
    pub fn edit(&self) -> Edit {
        let layers = self.chosen.unwrap_or(self.all);
        self.in_first(layers)
    }

    /// The change in so many of the layers.
    fn in_first(&self, layers: u32) -> Edit {
        Edit::Remat(Checkpoint::Layers(self.pattern.clone(), (layers < self.all).then_some(layers)))
    }

    /// Whether a change is this one, in however many layers.
    fn is_of(&self, edit: &Edit) -> bool {
        matches!(edit, Edit::Remat(of) if of.pattern() == Some(&self.pattern))
    }

    /// Switches it off, in however many layers it is on.
    pub fn switch_off(&self, changes: &mut Changes) {
        changes.on.retain(|edit| !self.is_of(edit));
    }

    /// Checkpoints so many of the layers, in the same place among the changes.
    fn choose(&self, changes: &mut Changes, layers: u32) {
        let edit = self.in_first(layers);
        match changes.on.iter_mut().find(|edit| self.is_of(edit)) {
            Some(known) => *known = edit,
            None => changes.on.push(edit),
        }
    }

    /// Draws `6 of 12 layers` with its buttons.
    pub fn show(&self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let theme = context.theme;
        ui.horizontal(|ui| {
            ui.add_space(38.0);
            let now = self.chosen.unwrap_or(self.all);
            let mut to = now;
            for (sign, name, next) in [
                ("\u{2212}", "Checkpoint fewer layers", now.saturating_sub(1).max(1)),
                ("+", "Checkpoint more layers", (now + 1).min(self.all)),
            ] {
                let response = button(ui, sign, "", theme);
                response.widget_info(|| WidgetInfo::labeled(Role::Button, next != now, name));
                if response.clicked() {
                    to = next;
                }
            }
            let words = format!("in {now} of {} layers", self.all);
            ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
            if to != now {
                self.choose(context.shared.changes_mut(), to);
            }
        });
    }
}
