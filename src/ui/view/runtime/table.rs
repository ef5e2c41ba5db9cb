//! The table of allocations in use at the peak, one row for equal ones.

use egui::Ui;

use super::state::{HEAP, STACK};
use crate::analysis::runtime::AllocatorAnalysis;
use crate::analysis::runtime_breakdown::{BreakdownRow, Origin};
use crate::model::{Bytes, UnitSystem, percent, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::menu::{self, Thing};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::Slot;

/// Colour of the rows of an origin.
const fn slot(origin: Origin) -> Slot {
    match origin {
        Origin::Step => HEAP,
        Origin::Stack => STACK,
        Origin::Earlier => Slot::Weight,
        Origin::BeforeTrace | Origin::Older => Slot::Temporary,
    }
}

/// Least width of the column of names.
const NAME: f32 = 200.0;

pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut TableState,
    rows: &[BreakdownRow],
    analysis: &AllocatorAnalysis,
) {
    let peak = analysis.peak.0;
    let unit = context
        .options
        .units
        .unit_for(Bytes(rows.first().map_or(analysis.peak.0, |row| Bytes::from_wire(row.total()).0) / 64));
    // What all rows have alike, or none, says nothing; the rest gives way to the names where room is short.
    let is_known = |row: &&BreakdownRow| matches!(row.origin, Origin::Step | Origin::Earlier);
    let has_shapes = rows.iter().filter(is_known).any(|row| !row.allocation.shape.is_empty());
    let mut regions = rows.iter().filter(is_known).map(|row| row.allocation.region.as_str());
    let first = regions.next().unwrap_or_default();
    let has_regions = regions.any(|region| region != first);
    let all = [
        (Column::text("In use at the peak", NAME, 1.0), true),
        (Column::text("Allocated", 120.0, 0.0), true),
        (Column::text("Shape", 130.0, 0.5), has_shapes),
        (Column::text("Region", 110.0, 0.0), has_regions),
        (Column::number("Count", 60.0), true),
        (Column::number(&format!("Size, {}", unit.1), 90.0), true),
        (Column::number("Rounded up by", 110.0), true),
        (Column::number("Share", 140.0), true),
    ];
    let mut shown: Vec<(usize, Column)> = all
        .into_iter()
        .enumerate()
        .filter(|(_, (_, is_there))| *is_there)
        .map(|(at, (column, _))| (at, column))
        .collect();
    for leaving in [6, 3, 2] {
        if shown.iter().map(|(_, column)| column.width).sum::<f32>() > ui.available_width() {
            shown.retain(|(at, _)| *at != leaving);
        }
    }
    let (places, columns): (Vec<usize>, Vec<Column>) =
        shown.into_iter().map(|(at, column)| (at, column.fixed())).unzip();
    let sorted = places.iter().position(|at| *at == 5).unwrap_or(0);
    let table = Table { sort: Some((sorted, true)), ..Table::new(&columns, rows.len(), "in use at the peak") };
    let total = |row: usize| Bytes::from_wire(rows[row].total());
    let name = |row: usize| rows[row].name();
    let response = table.show(
        ui,
        state,
        |row| format!("{} {}", name(row), context.short(total(row))),
        |row, column| {
            let line = &rows[row];
            let known = matches!(line.origin, Origin::Step | Origin::Earlier);
            match places[column] {
                0 => Cell::text(name(row)).swatch(slot(line.origin)),
                1 => Cell::text(line.origin.name()).quiet(),
                2 if known => {
                    let kind = Some(line.allocation.data_type.as_str()).filter(|kind| *kind != "INVALID");
                    Cell::mono(format!("{}{}", kind.unwrap_or_default(), line.allocation.shape)).quiet()
                }
                3 if known => Cell::text(line.allocation.region.clone()).quiet(),
                4 if line.allocation.count == 1 => Cell::text("\u{d7}1").quiet(),
                4 => Cell::text(format!("\u{d7}{}", thousands(line.allocation.count.unsigned_abs()))),
                5 => Cell::text(UnitSystem::in_unit(total(row), unit.0)).strong(),
                6 if known => {
                    let spare = line.allocation.bytes.saturating_sub(line.allocation.requested);
                    let spare = Bytes::from_wire(spare.saturating_mul(line.allocation.count));
                    if spare == Bytes::ZERO {
                        Cell::text("0").quiet()
                    } else {
                        Cell::text(context.short(spare)).quiet()
                    }
                }
                7 => Cell::text(percent(total(row).0, peak))
                    .bar((total(row).0 as f64 / peak.max(1) as f64) as f32, slot(line.origin)),
                _ => Cell::default(),
            }
        },
    );
    menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        let shape = rows[row].allocation.shape.clone();
        let thing = Thing::named(name(row)).copies("Copy shape", shape);
        thing.copies("Copy region", rows[row].allocation.region.clone()).copies("Copy bytes", total(row).0.to_string())
    });
}
