//! The Details card of live arrays: the stack of the chosen entry, or of the frame under the pointer.

use std::fmt::Write as _;

use egui::Ui;

use super::State;
use super::rows::short_path;
use crate::analysis::live_set::is_library;
use crate::model::{percent, thousands};
use crate::ui::part::facts::{bytes_fact, fact};
use crate::ui::part::{Action, ViewContext};
use crate::ui::widget::controls::{cut_label, link, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// Maximum number of frames shown.
const FRAMES: usize = 60;

/// Draws the card in Details.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let document = context.document.clone();
    let Some((set, analysis)) = document.analysis.live_set(&document.profile) else { return };
    let state = context.locals.take::<State>();
    let width = ui.available_width();
    if let Some(entry) = state.rows.chosen.and_then(|row| set.entries.get(row as usize)) {
        ui.label(text(context.short(entry.bytes), size::HEADLINE, Weight::SemiBold, theme.text));
        bytes_fact(ui, theme, context.options.units, "Bytes", entry.bytes);
        fact(ui, theme, "Share", &percent(entry.bytes.0, analysis.total.0));
        fact(ui, theme, "Count", &thousands(entry.count));
        fact(ui, theme, "Kind", set.strings.get(entry.kind));
        fact(ui, theme, "Device", set.strings.get(entry.device));
        rule(ui, theme);
        ui.label(text("Allocated here, innermost frame first", size::BODY, Weight::SemiBold, theme.text));
        let mut words = String::new();
        for frame in set.stack(entry).take(FRAMES) {
            let own = !is_library(&frame.file);
            let (weight, color) = if own { (Weight::SemiBold, theme.text) } else { (Weight::Regular, theme.text3) };
            cut_label(ui, &frame.function, weight.at(size::SMALL), color, width);
            let place = format!("{}:{}", frame.file, frame.line);
            let short = format!("  {}:{}", short_path(&frame.file), frame.line);
            cut_label(ui, &short, Weight::Mono.at(size::SMALL), theme.text3, width).on_hover_text(&place);
            let _ = writeln!(words, "{} {place}", frame.function);
        }
        if link(ui, "Copy the stack", theme).clicked() {
            context.actions.push(Action::Copy(words));
        }
        context.locals.put(state);
        return;
    }
    let node = state.hovered.unwrap_or(state.icicle.root);
    if let Some(node) = state.tree.nodes.get(node) {
        cut_label(ui, &node.name, Weight::SemiBold.at(size::LEAD), theme.text, width);
        if !node.place.is_empty() {
            cut_label(ui, &node.place, Weight::Mono.at(size::SMALL), theme.text3, width);
        }
        ui.add_space(4.0);
        bytes_fact(ui, theme, context.options.units, "Bytes", node.bytes);
        fact(ui, theme, "Share of all", &percent(node.bytes.0, analysis.total.0));
        fact(ui, theme, "Count", &thousands(node.count));
        fact(ui, theme, "Allocated in this frame", &context.short(node.own));
    }
    rule(ui, theme);
    for (title, groups) in [("By kind", &analysis.kinds), ("By device", &analysis.devices)] {
        if groups.is_empty() {
            continue;
        }
        ui.label(text(title, size::BODY, Weight::SemiBold, theme.text));
        for group in groups.iter().take(12) {
            let words = format!("{}   \u{d7}{}", context.short(group.bytes), thousands(group.count));
            fact(ui, theme, &group.key, &words);
        }
        ui.add_space(6.0);
    }
    let words = if document.analysis.caching.is_empty() {
        "A snapshot: the file has no shapes, types or times. An array on several devices counts once per device."
    } else {
        "Bytes the program asked for, by the stack that allocated them. Kinds are the most likely ones."
    };
    ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    context.locals.put(state);
}
