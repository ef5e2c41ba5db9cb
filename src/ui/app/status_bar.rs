//! Status bar: the step under the pointer, what is selected, the promise.

use egui::{Align2, Pos2, Ui};

use super::App;
use crate::model::{InstructionId, thousands};
use crate::ui::widget::controls::vline;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size};

impl App {
    pub(super) fn status_bar(&mut self, ui: &mut Ui, theme: &Theme) {
        let rect = ui.max_rect();
        let top = egui::Rect::from_min_max(rect.min, Pos2::new(rect.right(), rect.top() + 1.0));
        crate::ui::widget::controls::hairline(ui, top, theme.line);
        let y = rect.center().y;
        let small = Weight::Regular.at(size::SMALL);
        let promise = "offline: nothing leaves this machine";
        let right = ui.painter().text(
            Pos2::new(rect.right() - 16.0, y),
            Align2::RIGHT_CENTER,
            promise,
            small.clone(),
            theme.text3,
        );
        let now = ui.input(|i| i.time);
        if let Some((words, until)) = &self.message {
            if now < *until {
                let at = Pos2::new(right.left() - 24.0, y);
                ui.painter().text(at, Align2::RIGHT_CENTER, words, Weight::Medium.at(size::SMALL), theme.accent);
            } else {
                self.message = None;
            }
        }
        let Some(open) = self.files.current() else { return };
        let shared = &open.shared;
        let Some((program, analysis)) = open.document.program(shared.program) else { return };
        let Some(space) = analysis.space(shared.color) else { return };
        let units = self.options.units;
        let mut parts: Vec<String> = Vec::new();
        if let Some(live) = &analysis.live {
            let step = shared.cursor.or(shared.step).unwrap_or_else(|| space.peak_point());
            let name = live
                .sequence()
                .get(step as usize)
                .map_or_else(|| "end".to_owned(), |&row| program.text.instruction_name(InstructionId(row)));
            let live_bytes = space
                .occupancy
                .as_ref()
                .map(|o| format!("   {} live", units.short(crate::model::Bytes(o.reserved.at(step)))))
                .unwrap_or_default();
            parts.push(format!(
                "step {} of {}   {name}{live_bytes}",
                thousands(step.into()),
                thousands(live.points().into())
            ));
        }
        parts.push(format!("{} buffers at the peak", thousands(space.at_peak.len() as u64)));
        parts.push(match shared.hovered.or(shared.selected) {
            Some(buffer) => {
                format!("{}   {}", program.buffer_name(buffer), units.short(program.buffers.size_of(buffer)))
            }
            None => "nothing selected".to_owned(),
        });
        let mut x = rect.left() + 16.0;
        for (i, part) in parts.into_iter().enumerate() {
            if i > 0 {
                vline(ui, x + 12.0, rect.top() + 8.0, rect.bottom() - 8.0, theme.line2);
                x += 24.0;
            }
            let room = right.left() - 24.0 - x;
            if room < 40.0 {
                break;
            }
            let (drawn, _) = crate::ui::widget::controls::paint_cut(
                ui.painter(),
                Pos2::new(x, y),
                Align2::LEFT_CENTER,
                &part,
                small.clone(),
                theme.text2,
                room,
            );
            x = drawn.right();
        }
    }
}
