//! Column headers and cells of the buffer table.

use std::collections::HashMap;

use crate::analysis::names::scope;
use crate::analysis::table::{BufferTable, Column, GroupRow, Key, Line, Shown};
use crate::model::{Bytes, UnitSystem, percent, thousands};
use crate::ui::part::colors;
use crate::ui::widget::table as widget;
use crate::ui::widget::table::Cell;
use crate::ui::widget::theme::Slot;

/// The header of a column: title and unit, and for a sort column its direction and rank.
pub fn head(column: Column, unit: &str, keys: &[Key]) -> widget::Column {
    let mut title = match column {
        Column::Size | Column::Useful | Column::Padding => format!("{}, {unit}", column.title()),
        Column::Share => "Padding, %".to_owned(),
        _ => column.title().to_owned(),
    };
    if let Some(rank) = keys.iter().position(|key| key.column == column) {
        title += if keys[rank].down { " \u{2193}" } else { " \u{2191}" };
        if keys.len() > 1 {
            title += &(rank + 1).to_string();
        }
    }
    let (width, grow) = width_of(column);
    let mut head = widget::Column::text(&title, width, grow);
    head.right = column.is_number();
    head
}

/// Width of a column in points, and its share of what is left.
const fn width_of(column: Column) -> (f32, f32) {
    match column {
        Column::Name => (150.0, 0.0),
        Column::Size => (132.0, 0.0),
        Column::Useful => (140.0, 0.0),
        Column::Padding => (108.0, 0.0),
        Column::Share => (92.0, 0.0),
        Column::Class => (112.0, 0.0),
        Column::Category => (92.0, 0.0),
        Column::Type => (92.0, 0.0),
        Column::Shape => (150.0, 0.0),
        Column::Opcode => (100.0, 0.0),
        // What is left over.
        Column::Op => (230.0, 1.0),
        Column::Source => (110.0, 0.0),
        Column::From | Column::To | Column::Length => (72.0, 0.0),
        Column::Life => (110.0, 0.0),
        Column::Offset => (112.0, 0.0),
        Column::Allocation => (82.0, 0.0),
    }
}

/// Width that a column needs to be read.
pub const fn least_width(column: Column) -> f32 {
    match column {
        Column::Name => 120.0,
        Column::Op => 230.0,
        Column::Shape => 110.0,
        Column::Life => 70.0,
        _ => width_of(column).0,
    }
}

/// The value that the rows of a group share, in words.
pub fn group_name(group: &GroupRow) -> &str {
    if group.name.is_empty() { "none" } else { &group.name }
}

/// What the cells of a table are drawn to.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Bytes of the unit of sizes.
    pub unit: u64,
    /// The largest size.
    pub largest: u64,
    /// Steps of the program.
    pub points: u32,
    /// The step that is marked in the lives.
    pub step: u32,
}

/// The cell of a line in a column, by its place and kind.
pub fn cell(
    table: &BufferTable,
    shown: &Shown,
    line: Line,
    (column, own): (usize, Column),
    scale: Scale,
    kept: &mut HashMap<(u32, Column), String>,
) -> Cell {
    match line {
        Line::Group(group) => {
            let Some(group) = shown.groups.get(group as usize) else { return Cell::default() };
            group_cell(group, own, column == 0, scale.unit, shown.size)
        }
        Line::Row(row) => {
            let cell = row_cell(table, row, own, scale, kept);
            // The colour of the class stands before the first words.
            let slot = colors::slot_of_class(table.class[row as usize]);
            if column == 0 && !own.is_number() && own != Column::Life { cell.swatch(slot) } else { cell }
        }
    }
}

fn group_cell(group: &GroupRow, column: Column, is_first: bool, unit: u64, all: u64) -> Cell {
    if is_first {
        let sign = if group.open { "\u{2212}" } else { "+" };
        let name = group_name(group);
        return Cell::text(format!("{sign}  {name}  ({})", thousands(group.count as u64))).strong();
    }
    match column {
        Column::Size => {
            let share = group.size as f64 / all.max(1) as f64;
            Cell::text(UnitSystem::in_unit(Bytes(group.size), unit)).strong().bar(share as f32, Slot::Temporary)
        }
        Column::Useful => {
            let useful = (group.size as i64).saturating_sub(group.padding).max(0) as u64;
            Cell::text(UnitSystem::in_unit(Bytes(useful), unit)).strong()
        }
        Column::Padding => Cell::text(UnitSystem::in_unit(Bytes(group.padding.max(0) as u64), unit)).strong(),
        Column::Share => Cell::text(share_of(group.padding, group.size)).strong(),
        _ => Cell::default(),
    }
}

fn row_cell(
    table: &BufferTable,
    row: u32,
    column: Column,
    scale: Scale,
    kept: &mut HashMap<(u32, Column), String>,
) -> Cell {
    let index = row as usize;
    let slot = colors::slot_of_class(table.class[index]);
    let size = table.size[index];
    let Scale { unit, largest, .. } = scale;
    match column {
        Column::Life => life(table, index, slot, scale),
        Column::Size => Cell::text(UnitSystem::in_unit(Bytes(size), unit))
            .strong()
            .bar((size as f64 / largest.max(1) as f64) as f32, slot),
        Column::Padding if table.padding[index] <= 0 => Cell::text("0").quiet(),
        Column::Share if table.padding[index] <= 0 => Cell::text("0").quiet(),
        Column::Name => Cell::mono(table.name.at(index)).quiet(),
        Column::Class => Cell::text(table.class[index].name()),
        Column::Category => Cell::text(table.category[index].name()),
        Column::Type => Cell::mono(table.element_type.at(index)),
        Column::Shape => Cell::mono(table.shape.at(index)),
        Column::Opcode => Cell::text(table.opcode.at(index)),
        Column::Source => Cell::mono(table.source.at(index)).quiet(),
        Column::Op => {
            let words = kept.entry((row, column)).or_insert_with(|| op_words(table, row));
            Cell::text(words.clone())
        }
        _ => Cell::text(number(table, index, column, unit)),
    }
}

/// The operation of a buffer; what the file gives no scope is known by its instruction.
pub fn op_words(table: &BufferTable, row: u32) -> String {
    let (op, name) = (table.op.at(row as usize), table.name.at(row as usize));
    if op.is_empty() { name.to_owned() } else { scope::short(op, 9) }
}

/// The life of a buffer as a part of the program, with the step of the views in it.
fn life(table: &BufferTable, row: usize, slot: Slot, Scale { points, step, .. }: Scale) -> Cell {
    if table.start[row] == u32::MAX {
        return Cell::text("\u{2013}").quiet();
    }
    let share = |step: f64| (step / f64::from(points.max(1))) as f32;
    let (from, to) = (share(f64::from(table.start[row])), share(f64::from(table.end[row]) + 1.0));
    let (is_throughout, mark) = (table.throughout[row], Some(share(f64::from(step) + 0.5)));
    Cell::span(widget::CellSpan { from, to, is_throughout, mark, slot })
}

fn number(table: &BufferTable, row: usize, column: Column, unit: u64) -> String {
    let point = |point: u32| if point == u32::MAX { "\u{2013}".to_owned() } else { point.to_string() };
    let size = table.size[row];
    match column {
        Column::Padding => UnitSystem::in_unit(Bytes(table.padding[row].unsigned_abs()), unit),
        Column::Useful => {
            UnitSystem::in_unit(Bytes((size as i64).saturating_sub(table.padding[row]).max(0) as u64), unit)
        }
        Column::Share => share_of(table.padding[row], size),
        Column::From => point(table.start[row]),
        Column::To => point(table.end[row]),
        Column::Length => table.steps(row).map_or_else(|| "\u{2013}".to_owned(), |steps| steps.to_string()),
        Column::Offset => format!("0x{:09X}", table.offset[row]),
        Column::Allocation => table.allocation[row].to_string(),
        _ => String::new(),
    }
}

fn share_of(padding: i64, size: u64) -> String {
    percent(padding.max(0) as u64, size)
}
