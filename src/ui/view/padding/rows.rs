//! The table of shapes, those with the most padding at the peak first.

use egui::Ui;

use crate::analysis::Scene;
use crate::analysis::shape_groups::ShapeGroup;
use crate::model::{Bytes, UnitSystem, factor, thousands};
use crate::ui::part::{ViewContext, colors, menu};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::{Slot, size};

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Shape,
    Layout,
    Count,
    Size,
    Padding,
    Saves,
    Expansion,
}

impl What {
    const ALL: [Self; 7] =
        [Self::Shape, Self::Layout, Self::Count, Self::Size, Self::Padding, Self::Saves, Self::Expansion];
}

/// Contents of the table.
pub struct Listed<'a> {
    /// Shapes, one per row.
    pub groups: &'a [ShapeGroup],
    /// The chosen row.
    pub chosen: usize,
    /// Which rows match the search.
    pub lit: &'a [bool],
}

/// Draws the table; returns the row that was chosen.
pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    scene: Scene<'_>,
    &Listed { groups, chosen, lit }: &Listed<'_>,
    state: &mut TableState,
) -> Option<usize> {
    let theme = context.theme;
    if groups.is_empty() {
        ui.label(text("Nothing is live here.", size::BODY, Weight::Regular, theme.text2));
        return None;
    }
    let largest = groups.iter().map(|group| group.bytes.0).max().unwrap_or(0);
    let most = groups.iter().map(|group| group.waste.0).max().unwrap_or(0).max(1);
    let most_saved = groups.iter().map(|group| group.saves.0).max().unwrap_or(0);
    // Padding may be so little beside what is padded that it needs a unit of its own.
    let unit_of = |largest: u64| {
        let units = context.options.units;
        units.unit_for(Bytes(if largest >= 1 << 30 { 1 << 20 } else { largest }))
    };
    let ((unit, unit_name), (waste_unit, waste_name)) = (unit_of(largest), unit_of(most.max(most_saved)));
    // Columns without room are left out; the card shows them.
    let has = |column: &What| match column {
        // What a message lists has no peak.
        What::Saves => !scene.program.is_listing,
        What::Layout => ui.available_width() >= 860.0,
        What::Expansion => ui.available_width() >= 660.0,
        _ => true,
    };
    let shown: Vec<What> = What::ALL.into_iter().filter(has).collect();
    let columns: Vec<Column> = shown
        .iter()
        .map(|column| match column {
            What::Shape => Column::text("Shape", 130.0, 2.0).fixed(),
            What::Layout => Column::text("Layout", 120.0, 1.0).fixed(),
            What::Count => Column::number("Count", 60.0).fixed(),
            What::Size => Column::number(&format!("Size, {unit_name}"), 90.0).fixed(),
            What::Padding => Column::number(&format!("Padding, {waste_name}"), 150.0).fixed(),
            What::Saves => Column::number(&format!("Costs at peak, {waste_name}"), 132.0).fixed(),
            What::Expansion => Column::number("Expansion", 82.0).fixed(),
        })
        .collect();
    let by = if scene.program.is_listing { What::Padding } else { What::Saves };
    let sorted = shown.iter().position(|column| *column == by).unwrap_or(0);
    let units = context.options.units;
    let show = |bytes: Bytes| UnitSystem::in_unit(bytes, unit);
    let show_waste = |bytes: Bytes| UnitSystem::in_unit(bytes, waste_unit);
    let table = Table {
        selected: Some(chosen),
        sort: Some((sorted, true)),
        keys: true,
        ..Table::new(&columns, groups.len(), "shapes")
    };
    let response = table.show(
        ui,
        state,
        |row| {
            format!(
                "{} \u{d7}{} wastes {}",
                groups[row].shape,
                groups[row].buffers.len(),
                units.short(groups[row].waste)
            )
        },
        |row, column| {
            let group = &groups[row];
            let own = colors::slot_of_all(scene, &group.buffers);
            let slot = own.unwrap_or(Slot::Temporary);
            let is_lit = lit.get(row).copied().unwrap_or(true);
            match shown[column] {
                What::Shape if !is_lit => Cell::mono(group.shape.clone()).quiet(),
                What::Size if !is_lit => Cell::text(show(group.bytes)).quiet(),
                What::Padding if !is_lit => Cell::text(show_waste(group.waste)).quiet(),
                What::Saves if !is_lit => Cell::text(show_waste(group.saves)).quiet(),
                What::Shape => own.into_iter().fold(Cell::mono(group.shape.clone()), Cell::swatch),
                What::Layout => Cell::mono(group.layout.clone()).quiet(),
                What::Count => Cell::text(format!("\u{d7}{}", thousands(group.buffers.len() as u64))).quiet(),
                What::Size => Cell::text(show(group.bytes)),
                What::Padding if group.waste == Bytes::ZERO => Cell::text("0").quiet(),
                What::Padding => {
                    Cell::text(show_waste(group.waste)).bar((group.waste.0 as f64 / most as f64) as f32, slot)
                }
                What::Saves if group.saves == Bytes::ZERO => Cell::text("0").quiet(),
                What::Saves => Cell::text(show_waste(group.saves)).strong(),
                What::Expansion => {
                    group.expansion().map_or_else(|| Cell::text("\u{2013}").quiet(), |by| Cell::text(factor(by)))
                }
            }
        },
    );
    let under = response.hovered.and_then(|row| groups[row].buffers.first().copied());
    if let Some((row, place)) = response.focused {
        menu::aim(context, groups[row].buffers.first().copied(), place);
    }
    menu::show(ui, context, ui.max_rect(), under);
    if let Some(row) = response.hovered {
        context.shared.hover(groups[row].buffers.first().copied());
    }
    response.chosen
}
