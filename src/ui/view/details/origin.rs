//! Where a buffer comes from: framework op and scopes, source stack, HLO text and operands.

use egui::{Align, Layout, Ui};

use super::sharing::buffer_row;
use crate::analysis::Scene;
use crate::analysis::names::scope;
use crate::model::{BufferId, Metadata, SourceLine, thousands};
use crate::ui::part::facts::title;
use crate::ui::part::links::{self, To};
use crate::ui::part::{Action, ViewContext};
use crate::ui::widget::controls::{cut_label, link};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// Maximum number of stack frames shown.
const FRAMES: usize = 12;
/// Maximum number of characters shown of an instruction's text.
const HLO: usize = 480;
/// Maximum number of operands listed.
const OPERANDS: usize = 8;

/// A title with a link that copies the text below it.
fn title_with_copy(ui: &mut Ui, context: &mut ViewContext<'_>, words: &str, copy: &str) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        title(ui, theme, words);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if link(ui, "Copy", theme).on_hover_text(format!("Copy the {}", words.to_lowercase())).clicked() {
                context.actions.push(Action::Copy(copy.to_owned()));
            }
        });
    });
}

/// The framework op; each of its scopes links to the buffers in it.
pub fn op(ui: &mut Ui, context: &mut ViewContext<'_>, op: &str) {
    let theme = context.theme;
    if op.is_empty() {
        return;
    }
    title_with_copy(ui, context, "Op", op);
    let whole = op;
    let op = &*scope::without_attributes(whole);
    let shown = ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = egui::Vec2::new(2.0, 2.0);
        let room = ui.available_width();
        let parts: Vec<&str> = op.split('/').collect();
        let mut end = 0;
        for (i, part) in parts.iter().enumerate() {
            end += part.len();
            if !part.is_empty() {
                links::number(ui, context, "Scope", part, room, To::words("op", &op[..end]));
            }
            if i + 1 < parts.len() {
                ui.label(text("/", size::SMALL, Weight::Mono, theme.text3));
                end += 1;
            }
        }
    });
    if op.len() < whole.len() {
        let whole = whole.replace("\\n", "\n");
        shown.response.on_hover_ui(|ui| {
            ui.label(text(&whole, size::SMALL, Weight::Mono, theme.text));
        });
    }
    ui.add_space(6.0);
}

/// The source stack, innermost frame first; the innermost line links to the buffers that come from it.
pub fn source(ui: &mut Ui, context: &mut ViewContext<'_>, metadata: &Metadata) {
    let theme = context.theme;
    let mut stack: Vec<&SourceLine> = metadata.stack.iter().collect();
    if stack.is_empty() {
        stack.extend(&metadata.source);
    }
    if stack.is_empty() {
        return;
    }
    let lines: Vec<String> =
        stack.iter().map(|s| format!("{}:{} {}", s.file, s.line, s.function).trim().to_owned()).collect();
    title_with_copy(ui, context, "Source", &lines.join("\n"));
    for frame in stack.iter().take(FRAMES) {
        ui.horizontal(|ui| {
            let file = frame.file.rsplit(['/', '\\']).next().unwrap_or(&frame.file);
            let place = format!("{file}:{}", frame.line);
            let width = ui.available_width();
            // Buffers are indexed by their innermost line only, so only that one can be searched for.
            if metadata.source.as_ref().is_some_and(|own| own.file == frame.file && own.line == frame.line) {
                links::number(ui, context, "Source", &place, width * 0.6, To::words("source", &place));
            } else {
                let shown = cut_label(ui, &place, Weight::Mono.at(size::SMALL), theme.text, width * 0.6);
                shown.on_hover_text(format!("{}:{}", frame.file, frame.line));
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                cut_label(ui, &frame.function, Weight::Mono.at(size::SMALL), theme.text2, width * 0.38);
            });
        });
    }
    if stack.len() > FRAMES {
        let words = format!("{} more frames, included in the copy", stack.len() - FRAMES);
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    }
}

/// The instruction as HLO text, and its operands, each with a link to its buffer.
pub fn hlo(ui: &mut Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, buffer: BufferId) {
    let theme = context.theme;
    let Some(related) = context.related_to_buffer(buffer).filter(|related| !related.hlo.is_empty()) else { return };
    ui.add_space(6.0);
    title_with_copy(ui, context, "HLO text", &related.hlo);
    let mut shown: String = related.hlo.chars().take(HLO).collect();
    if shown.len() < related.hlo.len() {
        shown.push_str("\u{2026} (copied whole)");
    }
    ui.add(egui::Label::new(text(&shown, size::SMALL, Weight::Mono, theme.text2)).wrap().selectable(true));
    if related.operands.is_empty() {
        return;
    }
    ui.add_space(4.0);
    title(ui, theme, "Operands");
    for (name, operand) in related.operands.iter().take(OPERANDS) {
        match operand {
            Some(operand) => {
                let bytes = scene.program.buffers.size_of(*operand);
                buffer_row(ui, context, scene, *operand, name, bytes);
            }
            None => {
                let room = ui.available_width();
                cut_label(ui, name, Weight::Regular.at(size::SMALL), theme.text2, room);
            }
        }
    }
    if related.operands.len() > OPERANDS {
        let words = format!("{} more in the text", thousands((related.operands.len() - OPERANDS) as u64));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    }
}
