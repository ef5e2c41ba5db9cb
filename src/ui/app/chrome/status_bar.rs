//! The status bar: the step under the pointer, the selection, the offline notice.

use egui::{Align2, Pos2, Ui};

use crate::analysis::tiles::TileAnalysis;
use crate::model::{Bytes, InstructionId, TileMemory, UnitSystem, counted, thousands};
use crate::ui::app::App;
use crate::ui::session::Shared;
use crate::ui::widget::controls::vline;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size};

impl App {
    pub(in crate::ui::app) fn status_bar(&mut self, ui: &mut Ui, theme: &Theme) {
        let rect = ui.max_rect();
        let top = egui::Rect::from_min_max(rect.min, Pos2::new(rect.right(), rect.top() + 1.0));
        crate::ui::widget::controls::hairline(ui, top, theme.line);
        let y = rect.center().y;
        let small = Weight::Regular.at(size::SMALL);
        let promise = "offline: nothing leaves this machine";
        let mut right = ui.painter().text(
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
                let font = Weight::Medium.at(size::SMALL);
                // What else the bar tells ends before it.
                right = ui.painter().text(at, Align2::RIGHT_CENTER, words, font, theme.accent);
            } else {
                self.message = None;
            }
        }
        if self.veiled() {
            return;
        }
        let Some(open) = self.files.current() else { return };
        let shared = &open.shared;
        if let (Some(memory), Some(tiles)) = (&open.document.profile.tiles, &open.document.analysis.tiles) {
            let words = tile_words(memory, tiles, shared, self.options.units);
            let at = Pos2::new(rect.left() + 16.0, y);
            let room = right.left() - 24.0 - at.x;
            let paint = crate::ui::widget::controls::paint_cut;
            paint(ui.painter(), (at, Align2::LEFT_CENTER), &words, small, theme.text2, room);
            return;
        }
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
                .map(|o| format!("   {} reserved", units.short(crate::model::Bytes(o.reserved.at(step)))))
                .unwrap_or_default();
            parts.push(format!("step {step} of {}   {name}{live_bytes}", live.points()));
        }
        parts.push(format!("{} at the peak", counted(space.at_peak.len() as u64, "buffer")));
        parts.push(match shared.hovered.or(shared.selected) {
            Some(buffer) => {
                format!("{}   {}", program.buffer_name(buffer), units.short(program.buffers.size_of(buffer)))
            }
            None => "nothing selected".to_owned(),
        });
        let mut x = rect.left() + 16.0;
        for (i, part) in parts.into_iter().enumerate() {
            let parted = if i > 0 { 24.0 } else { 0.0 };
            let room = right.left() - 24.0 - x - parted;
            if room < 40.0 {
                break;
            }
            if i > 0 {
                vline(ui, x + 12.0, rect.top() + 8.0, rect.bottom() - 8.0, theme.line2);
            }
            x += parted;
            let (drawn, _) = crate::ui::widget::controls::paint_cut(
                ui.painter(),
                (Pos2::new(x, y), Align2::LEFT_CENTER),
                &part,
                small.clone(),
                theme.text2,
                room,
            );
            x = drawn.right();
        }
    }
}

/// The hovered or chosen tile, and the number of chosen tiles.
fn tile_words(memory: &TileMemory, tiles: &TileAnalysis, shared: &Shared, units: UnitSystem) -> String {
    let mut parts = Vec::new();
    let tile = shared.tile_hovered.or(shared.tiles.last().copied()).or(tiles.max.map(|max| max.0));
    if let Some(tile) = tile {
        let bytes = memory.must_fit().and_then(|bytes| bytes.get(tile as usize)).copied().unwrap_or(0);
        let over = tiles.limit.filter(|&limit| bytes > limit).map(|limit| bytes - limit);
        let over = over.map_or_else(String::new, |over| format!(", {} over", units.short(Bytes(over))));
        parts.push(format!("tile {tile}   {}{over}", units.short(Bytes(bytes))));
    }
    if let Some(step) = shared.cursor.or(shared.step) {
        parts.push(format!("step {step}   {}", memory.step_name(step as usize)));
    }
    parts.push(match shared.tiles.len() {
        0 => "no tile chosen".to_owned(),
        1 => "1 tile chosen".to_owned(),
        count => format!("{} tiles chosen", thousands(count as u64)),
    });
    parts.push("Shift click adds a tile, drag chooses several".to_owned());
    parts.join("     ")
}
