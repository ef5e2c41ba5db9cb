//! The status bar: the step under the pointer, the selection, the offline notice.

use egui::{Align2, Pos2, Ui};

use crate::analysis::map::TimeAxis;
use crate::analysis::tiles::TileAnalysis;
use crate::model::{Bytes, InstructionId, MemorySpace, TileMemory, UnitSystem, counted, thousands};
use crate::ui::app::App;
use crate::ui::app::files::OpenFile;
use crate::ui::session::Shared;
use crate::ui::view::switches;
use crate::ui::widget::controls::vline;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size};
use crate::ui::work::Work;

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
        let (work, units) = (self.work(), self.options.units);
        let Some(open) = self.files.current_mut() else { return };
        let shared = &open.shared;
        if let (Some(memory), Some(tiles)) = (&open.document.profile.tiles, &open.document.analysis.tiles) {
            let words = tile_words(memory, tiles, shared, units);
            let at = Pos2::new(rect.left() + 16.0, y);
            let room = right.left() - 24.0 - at.x;
            let paint = crate::ui::widget::controls::paint_cut;
            paint(ui.painter(), (at, Align2::LEFT_CENTER), &words, small, theme.text2, room);
            return;
        }
        let changed = changed(open, &work, units);
        let shared = &open.shared;
        let Some((program, analysis)) = open.document.program(shared.program) else { return };
        let Some(space) = analysis.space(shared.color) else { return };
        let capacity = shared.capacity.get(&shared.color).or(space.capacity.as_ref()).map(|capacity| capacity.bytes);
        let is_changed = !changed.is_empty();
        let mut parts = changed;
        if let Some(live) = analysis.live.as_ref().filter(|_| !is_changed) {
            let step = shared.cursor.or(shared.step).unwrap_or_else(|| space.peak_point());
            let name = live
                .sequence()
                .get(step as usize)
                .map_or_else(|| "end".to_owned(), |&row| program.text.instruction_name(InstructionId(row)));
            let live_bytes = space
                .occupancy
                .as_ref()
                .map(|o| {
                    let reserved = Bytes(o.reserved.at(step));
                    format!("   {} reserved here{}", units.short(reserved), over_words(reserved, capacity, units))
                })
                .unwrap_or_default();
            parts.push(format!("step {step} of {}   {name}{live_bytes}", live.points()));
        }
        if !is_changed {
            let place = if program.is_listing { "listed in the message" } else { "at the peak" };
            parts.push(format!("{} {place}", counted(space.at_peak.len() as u64, "buffer")));
        }
        let mut bytes = String::new();
        parts.push(match shared.hovered.or(shared.selected) {
            Some(buffer) => {
                let name = analysis.buffer_name(program, buffer);
                bytes = format!("   {}", units.short(program.buffers.size_of(buffer)));
                name
            }
            None => NOTHING.to_owned(),
        });
        // The name of what is selected gives way to its size.
        let bytes = ui.painter().layout_no_wrap(bytes, small.clone(), theme.text2);
        let last = parts.len() - 1;
        let mut x = rect.left() + 16.0;
        for (i, part) in parts.into_iter().enumerate() {
            let parted = if i > 0 { 24.0 } else { 0.0 };
            let after = if i == last { bytes.size().x } else { 0.0 };
            let room = right.left() - 24.0 - x - parted - after;
            let is_too_long = || ui.painter().layout_no_wrap(part.clone(), small.clone(), theme.text2).size().x > room;
            // Only the name of what is selected, and what stands first, are worth their beginning.
            let is_whole = i > 0 && (i < last || part == NOTHING);
            if room < 40.0 || (is_whole && is_too_long()) {
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
            if i == last {
                ui.painter().galley(Pos2::new(x, y - bytes.size().y / 2.0), bytes.clone(), theme.text2);
            }
        }
    }
}

/// Said while nothing is selected, where there is room.
const NOTHING: &str = "nothing selected";

/// How far bytes are over a capacity: `, 10.1 GiB over`; empty if they are not.
fn over_words(bytes: Bytes, capacity: Option<Bytes>, units: UnitSystem) -> String {
    let over = capacity.map_or(Bytes::ZERO, |capacity| bytes.saturating_sub(capacity));
    if over > Bytes::ZERO { format!(", {} over", units.short(over)) } else { String::new() }
}

/// In What if, while changes are on: how many are, and what lives with them at the step under the pointer, or at the peak.
fn changed(open: &mut OpenFile, work: &Work, units: UnitSystem) -> Vec<String> {
    let (shared, document) = (&open.shared, &open.document);
    if shared.view != "whatif" || shared.changes.on.is_empty() {
        return Vec::new();
    }
    let capacity = shared.capacity.get(&MemorySpace::HBM).map(|capacity| capacity.bytes.0);
    let advice = open.derived.advice(work, document, capacity);
    let (on, all) = switches(advice.as_deref(), shared.program, &shared.changes);
    let mut parts = vec![format!("{on} of {} on", counted(all as u64, "change"))];
    let result = open.derived.what_if(work, document, shared.program, capacity, &shared.changes.on);
    let Some((result, _)) = result.filter(|(result, _)| result.after.is_told() && result.after.undecided.is_none())
    else {
        return parts;
    };
    let pointed = shared.cursor.filter(|_| result.axis.unit == TimeAxis::ProgramOrder);
    let step = pointed.unwrap_or_else(|| result.peak_after().1);
    let at = |curve: &[u64]| curve.get(step as usize).copied().map(Bytes);
    let place = if pointed.is_some() { "" } else { ", the peak" };
    let now = if pointed.is_some() { at(&result.curve_after) } else { Some(result.peak_after().0) };
    if let (Some(now), Some(was)) = (now, at(&result.curve_before)) {
        parts.push(format!(
            "{} {step}{place}   {} with them{}, {} without",
            result.axis.unit.unit(),
            units.short(now),
            over_words(now, result.memory.capacity.map(Bytes), units),
            units.short(was)
        ));
    }
    parts
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
