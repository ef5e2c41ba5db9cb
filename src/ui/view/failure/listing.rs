//! The allocations listed in the message: identical rows merged with a count, and bytes counted but not listed.

use egui::{Sense, Ui, Vec2};

use super::section::section;
use crate::analysis::failure::Explanation;
use crate::model::{Bytes, Failure, UnitSystem, percent, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::menu::{self, Thing};
use crate::ui::session::RowScope;
use crate::ui::widget::controls::link;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::{Slot, size, space};

/// Maximum number of visible rows; the table scrolls.
const ROWS: usize = 14;

pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    failure: &Failure,
    explained: &Explanation,
    state: &mut TableState,
) {
    let theme = context.theme;
    let groups = &explained.groups;
    if groups.is_empty() {
        return;
    }
    let count: usize = groups.iter().map(|group| group.count).sum();
    ui.horizontal(|ui| {
        let remark = match count {
            1 => "1 entry".to_owned(),
            _ => format!("{} entries, identical ones merged", thousands(count as u64)),
        };
        section(ui, theme, "Listed in the message", &remark);
        let has_buffers = !failure.allocations.is_empty() || !failure.peak_buffers.is_empty();
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if has_buffers && context.scene().is_some() && link(ui, "open Buffers", theme).clicked() {
                context.shared.list_rows(RowScope::Peak);
                context.go("buffers");
            }
        });
    });
    let sum = |i: usize| groups[i].bytes.0.saturating_mul(groups[i].count as u64);
    let listed: u64 = (0..groups.len()).map(sum).fold(0, u64::saturating_add);
    let total = listed.saturating_add(explained.not_listed.map_or(0, |bytes| bytes.0));
    let largest = sum(0).max(1);
    let (unit, unit_name) = context.options.units.unit_for(Bytes(if largest >= 1 << 30 { 1 << 20 } else { largest }));
    let has_shapes = groups.iter().any(|group| group.shape.is_some());
    let has_ops = groups.iter().any(|group| group.op_name.as_deref().is_some_and(|op| op != group.name));
    let mut kinds = vec![Kind::Name];
    let mut columns = vec![Column::text("Name", 150.0, 1.4).fixed()];
    if has_shapes {
        kinds.push(Kind::Shape);
        columns.push(Column::text("Shape", 190.0, 1.0).fixed());
    }
    if has_ops {
        kinds.push(Kind::Op);
        columns.push(Column::text("Op", 120.0, 2.0).fixed());
    }
    kinds.extend([Kind::Count, Kind::Each, Kind::Together]);
    columns.push(Column::number("Count", 60.0).fixed());
    columns.push(Column::number(&format!("Each, {unit_name}"), 100.0).fixed());
    columns.push(Column::number("Share", 160.0).fixed());
    let rows = groups.len() + usize::from(explained.not_listed.is_some());
    let height = 26.0 + space::ROW * rows.min(ROWS) as f32 + 1.0;
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), height), Sense::hover());
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rect).id_salt("listing"));
    let table = Table::new(&columns, rows, "largest allocations");
    let units = context.options.units;
    let share = |bytes: u64| (bytes as f64 / total.max(1) as f64) as f32;
    let response = table.show(
        &mut child,
        state,
        |row| match groups.get(row) {
            Some(group) => format!("{} {} \u{d7}{}", group.name, units.short(group.bytes), group.count),
            None => format!("not listed {}", units.short(explained.not_listed.unwrap_or_default())),
        },
        |row, column| {
            let Some(group) = groups.get(row) else {
                let rest = explained.not_listed.unwrap_or_default();
                return match kinds[column] {
                    Kind::Name => Cell::text("not listed").quiet(),
                    Kind::Each => Cell::text(UnitSystem::in_unit(rest, unit)).quiet(),
                    Kind::Together => Cell::text(percent(rest.0, total)).quiet().bar(share(rest.0), Slot::Temporary),
                    _ => Cell::text(""),
                };
            };
            match kinds[column] {
                Kind::Name if group.count > 1 => Cell::text(format!("{} and {} like it", group.name, group.count - 1)),
                Kind::Name => Cell::text(group.name.clone()),
                Kind::Shape => Cell::mono(without_layout(group.shape.as_deref().unwrap_or_default())).quiet(),
                Kind::Op => Cell::mono(group.op_name.clone().unwrap_or_default()).quiet(),
                Kind::Count if group.count == 1 => Cell::text("\u{d7}1").quiet(),
                Kind::Count => Cell::text(format!("\u{d7}{}", thousands(group.count as u64))),
                Kind::Each => Cell::text(UnitSystem::in_unit(group.bytes, unit)).strong(),
                Kind::Together => {
                    let slot = if group.name == "argument" { Slot::Weight } else { Slot::Temporary };
                    Cell::text(percent(sum(row), total)).bar(share(sum(row)), slot)
                }
            }
        },
    );
    menu::of_rows(ui, context, rect, &response, |row| {
        let Some(group) = groups.get(row) else { return Thing::named("not listed") };
        Thing::named(group.name.clone())
            .copies("Copy operation", group.op_name.clone().unwrap_or_default())
            .copies("Copy shape", group.shape.clone().unwrap_or_default())
            .copies("Copy bytes", group.bytes.0.to_string())
            .shown_in("buffers")
    });
    if let Some(nodes) = failure.count("remaining_nodes") {
        let rest = failure.bytes("remaining").map(|bytes| context.short(bytes)).unwrap_or_default();
        let words = format!("{} more operations hold {rest} in total", thousands(u64::try_from(nodes).unwrap_or(0)));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    }
    if explained.not_listed.is_some() && failure.get("remaining").is_none() {
        let words = "Not listed: what the message counts beyond its entries (smaller buffers, fragmentation)";
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    }
    ui.add_space(16.0);
}

/// An array's shape as the table of buffers has it, without its layout; a tuple's as it is.
fn without_layout(shape: &str) -> &str {
    let layout = shape.find("]{").filter(|_| !shape.starts_with('('));
    layout.map_or(shape, |at| &shape[..=at])
}

#[derive(Clone, Copy)]
enum Kind {
    Name,
    Shape,
    Op,
    Count,
    Each,
    Together,
}
