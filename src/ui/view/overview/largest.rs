//! The largest contributors at the peak; equal buffers of all layers are folded into one row.

use std::collections::HashSet;

use egui::{Sense, Ui, Vec2};

use crate::analysis::contributors::Contributor;
use crate::model::{BufferId, Bytes, UnitSystem, counted, percent, thousands};
use crate::ui::part::{FindKey, ViewContext, colors, menu};
use crate::ui::session::RowScope;
use crate::ui::widget::controls::link;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::{size, space};
use crate::ui::work::SpaceData;

#[derive(Default)]
pub struct State {
    table: TableState,
    /// Which rows contain a match, and the key of that result.
    lit: (Option<(u64, FindKey)>, Vec<bool>),
    /// Rows that are open, by what they are called.
    open: HashSet<String>,
}

/// Buffers that are listed below an open row.
const MOST_OPEN: usize = 64;

/// The lines of the table: a row of equal things, or one buffer of an open row.
fn lines(items: &[Contributor], rows: usize, open: &HashSet<String>) -> Vec<(usize, Option<BufferId>)> {
    let mut lines = Vec::new();
    for (row, item) in items.iter().enumerate().take(rows) {
        lines.push((row, None));
        if item.buffers.len() > 1 && open.contains(&words(items, row)) {
            lines.extend(item.buffers.iter().take(MOST_OPEN).map(|&buffer| (row, Some(buffer))));
        }
    }
    lines
}

/// Minimum number of rows shown.
const ROWS: usize = 12;

/// In a tall window, the table ends at this share of its height; `ABOVE` is the height of what is above the table.
const SHARE: f32 = 0.8;
const ABOVE: f32 = 430.0;

/// How many rows a window of a height lists: a tall one as many more as it has room for.
fn rows(window: f32, data: &SpaceData) -> usize {
    let room = ((window * SHARE - ABOVE) / space::ROW).floor().max(0.0) as usize;
    data.contributors.len().min(room.max(ROWS))
}

/// Height of the table with all rows closed, in a window of a height.
pub fn height(window: f32, data: &SpaceData) -> f32 {
    HEAD + space::ROW * rows(window, data) as f32 + 1.0
}

/// Width below which the table has shorter bars.
const NARROW: f32 = 860.0;

/// Height of the table's head.
const HEAD: f32 = 26.0;

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, data: &SpaceData, state: &mut State) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    ui.horizontal(|ui| {
        ui.label(text("Largest at the peak", size::BODY, Weight::SemiBold, theme.text));
        ui.label(text("layers folded", size::SMALL, Weight::Regular, theme.text3));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let words = format!("open Buffers ({})", thousands(scene.space.at_peak.len() as u64));
            if link(ui, &words, theme).clicked() {
                context.shared.list_rows(RowScope::Peak);
                context.go("buffers");
            }
        });
    });
    let rows = rows(ui.clip_rect().height(), data);
    let largest = data.contributors.first().map_or(0, |item| item.bytes.0).max(1);
    let (unit, unit_name) = context.options.units.unit_for(Bytes(if largest >= 1 << 30 { 1 << 20 } else { largest }));
    let is_narrow = ui.available_width() < NARROW;
    let mut columns = vec![
        Column::text("Scope", 160.0, 3.0).fixed(),
        Column::text("Shape", 120.0, 1.6).fixed(),
        Column::number("Count", 64.0).fixed(),
        Column::number(&format!("Size, {unit_name}"), 100.0).fixed(),
        Column::number("Share of the peak", if is_narrow { 130.0 } else { 190.0 }).fixed(),
    ];
    // Where room is short, a column of nothing but zeros gives way.
    if !is_narrow || data.contributors.iter().take(rows).any(|item| item.padding.0 > 0) {
        columns.insert(4, Column::number(&format!("Padding, {unit_name}"), 110.0).fixed());
    }
    let share = columns.len() - 1;
    let lines = lines(&data.contributors, rows, &state.open);
    let height = HEAD + space::ROW * lines.len() as f32 + 1.0;
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), height), Sense::hover());
    let selected = context.shared.selected.and_then(|buffer| {
        let own = lines.iter().position(|line| line.1 == Some(buffer));
        own.or_else(|| lines.iter().position(|line| data.contributors[line.0].buffers.contains(&buffer)))
    });
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rect).id_salt("largest"));
    let table = Table { selected, ..Table::new(&columns, lines.len(), "largest") };
    let peak = scene.space.peak().0;
    let units = context.options.units;
    let items = &data.contributors;
    let key = Some((data.number, context.find_key()));
    if state.lit.0 != key {
        let found = items.iter().take(rows).map(|item| item.buffers.iter().any(|&b| context.matches(b)));
        state.lit = (key, found.collect());
    }
    let lit = &state.lit.1;
    let response = table.show(
        &mut child,
        &mut state.table,
        |line| match lines[line] {
            (row, None) => format!("{} {}", words(items, row), units.short(items[row].bytes)),
            (_, Some(buffer)) => {
                let bytes = units.short(scene.program.buffers.size_of(buffer));
                format!("{} {bytes}", scene.analysis.buffer_name(scene.program, buffer))
            }
        },
        |line, column| {
            let (row, buffer) = lines[line];
            let item = &items[row];
            if let Some(buffer) = buffer {
                let bytes = scene.program.buffers.size_of(buffer);
                return match column {
                    0 => Cell::text(format!("      {}", scene.analysis.buffer_name(scene.program, buffer))).quiet(),
                    3 => Cell::text(UnitSystem::in_unit(bytes, unit)),
                    column if column == share => Cell::text(percent(bytes.0, peak)).quiet(),
                    _ => Cell::default(),
                };
            }
            let slot = colors::slot_of_class(item.class);
            let is_lit = lit.get(row).copied().unwrap_or(true);
            match column {
                0 if !is_lit => Cell::text(words(items, row)).quiet(),
                3 if !is_lit => Cell::text(UnitSystem::in_unit(item.bytes, unit)).quiet(),
                column if column == share && !is_lit => Cell::text(percent(item.bytes.0, peak)).quiet(),
                0 => Cell::text(words(items, row)).swatch(slot),
                1 => {
                    let more = if item.other_shapes > 0 { format!("  +{}", item.other_shapes) } else { String::new() };
                    Cell::mono(format!("{}{more}", item.shape)).quiet()
                }
                2 => Cell::text(count(item, &state.open, items, row)).quiet(),
                3 => Cell::text(UnitSystem::in_unit(item.bytes, unit)).strong(),
                column if column == share => {
                    Cell::text(percent(item.bytes.0, peak)).bar((item.bytes.0 as f64 / peak.max(1) as f64) as f32, slot)
                }
                _ if item.padding.0 == 0 => Cell::text("0").quiet(),
                _ => Cell::text(UnitSystem::in_unit(item.padding, unit)),
            }
        },
    );
    let at = |line: usize| lines[line].1.or_else(|| items[lines[line].0].buffers.first().copied());
    if let Some((line, place)) = response.focused {
        menu::aim(context, at(line), place);
    }
    menu::show(ui, context, rect, response.hovered.and_then(at));
    if let Some(line) = response.chosen {
        context.shared.select(at(line));
    }
    if let Some(line) = response.hovered {
        context.shared.hover(at(line));
    }
    match response.opened.map(|line| lines[line]) {
        Some((row, None)) if items[row].buffers.len() > 1 => {
            let name = words(items, row);
            if !state.open.remove(&name) {
                state.open.insert(name);
            }
        }
        Some(_) => context.go("timeline"),
        None => {}
    }
    if items.len() > rows {
        let rest: Bytes = items[rows..].iter().map(|item| item.bytes).sum();
        let count: usize = items[rows..].iter().map(|item| item.buffers.len()).sum();
        let words = format!(
            "{}, {}, {} ({})",
            counted((items.len() - rows) as u64, "more row"),
            counted(count as u64, "buffer"),
            units.short(rest),
            percent(rest.0, peak)
        );
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    }
}

/// How many buffers a row stands for, with a sign that says whether it is open.
fn count(item: &Contributor, open: &HashSet<String>, items: &[Contributor], row: usize) -> String {
    let number = thousands(item.buffers.len() as u64);
    match item.buffers.len() {
        0 | 1 => format!("\u{d7}{number}"),
        _ if open.contains(&words(items, row)) => format!("\u{d7}{number}  \u{2212}"),
        _ => format!("\u{d7}{number}  +"),
    }
}

/// What a row is called.
fn words(items: &[Contributor], row: usize) -> String {
    let item = &items[row];
    if item.scope.is_empty() { format!("no op name ({})", item.opcode) } else { item.scope.clone() }
}
