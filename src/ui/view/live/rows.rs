//! The table below the icicle: groups of the live entries below the chosen frame, or every single entry.

use egui::Ui;

use super::State as View;
use crate::analysis::live_set::{Group, groups_of, own_frame};
use crate::model::{Bytes, LiveEntry, LiveSet, UnitSystem, percent, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::menu::{self, Thing};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::Slot;

/// State of the table.
#[derive(Default)]
pub struct State {
    table: TableState,
    of: Option<(u64, usize)>,
    entries: Vec<u32>,
    groups: Vec<Group>,
    /// The entry whose stack is shown in Details.
    pub chosen: Option<u32>,
}

/// The last two components of a path: enough to tell files apart.
pub fn short_path(path: &str) -> String {
    let parts: Vec<&str> = path.rsplitn(3, '/').collect();
    match parts.as_slice() {
        [file, folder, _] if !folder.is_empty() => format!("{folder}/{file}"),
        _ => path.to_owned(),
    }
}

/// What tells stacks apart, of a path its file: `in linear.py:134` for `in forward /…/torch/nn/modules/linear.py:134`.
fn short_apart(apart: &str) -> String {
    match (apart.split_once(' '), apart.rsplit_once('/')) {
        (Some((how, _)), Some((_, file))) => format!("{how} {file}"),
        _ => apart.to_owned(),
    }
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, set: &LiveSet, view: &mut View) {
    let of = (view.version, view.icicle.root);
    if view.rows.of != Some(of) {
        let mut rows = view.tree.entries_below(view.icicle.root);
        rows.sort_by_key(|&row| (std::cmp::Reverse(set.entries[row as usize].bytes), row));
        let below: Vec<&LiveEntry> = rows.iter().map(|&row| &set.entries[row as usize]).collect();
        view.rows.groups = view.by.map(|by| groups_of(set, &below, by, !view.libraries)).unwrap_or_default();
        view.rows.entries = rows;
        view.rows.table = TableState::default();
        view.rows.of = Some(of);
    }
    if view.by.is_some() { groups(ui, context, view) } else { entries(ui, context, set, view) }
}

fn groups(ui: &mut Ui, context: &mut ViewContext<'_>, view: &mut View) {
    let whole = view.tree.nodes[view.icicle.root].bytes;
    let unit = context.options.units.unit_for(Bytes(whole.0 / 64));
    let title = view.by.map_or("", crate::analysis::live_set::GroupBy::name);
    let columns = [
        Column::text(title, 200.0, 1.0).fixed(),
        Column::number(&format!("Size, {}", unit.1), 110.0).fixed(),
        Column::number("Share", 150.0).fixed(),
        Column::number("Count", 80.0).fixed(),
    ];
    let groups = &view.rows.groups;
    let name = |row: usize| if groups[row].key.is_empty() { "not known" } else { groups[row].key.as_str() };
    let table = Table { sort: Some((1, true)), ..Table::new(&columns, groups.len(), "groups") };
    let root = view.icicle.root;
    let slot_of = |key: &str| {
        let same = |&&node: &&usize| view.tree.nodes[node].name == key;
        let node = view.tree.nodes[0].children.iter().find(same);
        node.and_then(|&node| view.slots.get(node)).copied().unwrap_or(Slot::Temporary)
    };
    let response = table.show(
        ui,
        &mut view.rows.table,
        |row| format!("{} {}", name(row), context.short(groups[row].bytes)),
        |row, column| {
            let group = &groups[row];
            match column {
                0 => Cell::text(name(row)).swatch(slot_of(name(row))),
                1 => Cell::text(UnitSystem::in_unit(group.bytes, unit.0)).strong(),
                2 => Cell::text(percent(group.bytes.0, whole.0))
                    .bar((group.bytes.0 as f64 / whole.0.max(1) as f64) as f32, slot_of(name(row))),
                _ => Cell::text(thousands(group.count)),
            }
        },
    );
    let asked = menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        Thing::named(name(row)).copies("Copy bytes", groups[row].bytes.0.to_string()).does("Search for this")
    });
    let search = asked.map(|(thing, _)| thing.name);
    if let Some(row) = response.chosen.filter(|_| !response.passed) {
        let key = name(row);
        let nodes = &view.tree.nodes;
        if let Some(&node) = nodes[0].children.iter().find(|&&node| nodes[node].name == key)
            && node != root
        {
            view.icicle.go(node);
        }
    }
    if let Some(name) = search {
        view.search = name;
    }
}

fn entries(ui: &mut Ui, context: &mut ViewContext<'_>, set: &LiveSet, view: &mut View) {
    let whole = view.tree.nodes[view.icicle.root].bytes;
    let unit = context.options.units.unit_for(Bytes(whole.0 / 64));
    let columns = [
        Column::text("Allocated in", 160.0, 1.6).fixed(),
        Column::text("At", 150.0, 0.6).fixed(),
        Column::text("Kind", 132.0, 0.0).fixed(),
        Column::text("Device", 70.0, 0.2).fixed(),
        Column::number("Count", 62.0).fixed(),
        Column::number(&format!("Size, {}", unit.1), 100.0).fixed(),
        Column::number("Share", 120.0).fixed(),
    ];
    let rows = &view.rows.entries;
    let selected = view.rows.chosen.and_then(|chosen| rows.iter().position(|&row| row == chosen));
    let table =
        Table { selected, sort: Some((5, true)), keys: true, ..Table::new(&columns, rows.len(), "live entries") };
    let libraries = view.libraries;
    let frame = |entry: &LiveEntry| own_frame(set, entry, !libraries).cloned().unwrap_or_default();
    let name = |entry: &LiveEntry| match (frame(entry).function, entry.apart.as_str()) {
        (function, "") => function,
        (function, apart) => format!("{function}, {}", short_apart(apart)),
    };
    let response = table.show(
        ui,
        &mut view.rows.table,
        |row| {
            let entry = &set.entries[rows[row] as usize];
            format!("{} {}", name(entry), context.short(entry.bytes))
        },
        |row, column| {
            let entry = &set.entries[rows[row] as usize];
            match column {
                0 => Cell::text(name(entry)),
                1 => {
                    let frame = frame(entry);
                    let known = !frame.file.is_empty();
                    let place = known.then(|| format!("{}:{}", short_path(&frame.file), frame.line));
                    Cell::mono(place.unwrap_or_else(|| "no frames".to_owned())).quiet()
                }
                2 => Cell::text(set.strings.get(entry.kind)).quiet(),
                3 => Cell::text(set.strings.get(entry.device)).quiet(),
                4 => Cell::text(thousands(entry.count)).quiet(),
                5 if entry.bytes == Bytes::ZERO => Cell::text("0").quiet(),
                5 => Cell::text(UnitSystem::in_unit(entry.bytes, unit.0)).strong(),
                _ => Cell::text(percent(entry.bytes.0, whole.0))
                    .bar((entry.bytes.0 as f64 / whole.0.max(1) as f64) as f32, Slot::Activation),
            }
        },
    );
    let asked = menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        let entry = &set.entries[rows[row] as usize];
        let own = frame(entry);
        let stack: Vec<String> =
            set.stack(entry).map(|frame| format!("{}:{} {}", frame.file, frame.line, frame.function)).collect();
        Thing::named(own.function.clone())
            .copies("Copy file and line", format!("{}:{}", own.file, own.line))
            .copies("Copy stack", stack.join("\n"))
            .copies("Copy bytes", entry.bytes.0.to_string())
            .does("Search for this")
    });
    let chosen = response.chosen.map(|row| rows[row]);
    if chosen.is_some() {
        view.rows.chosen = chosen;
    }
    if let Some((thing, _)) = asked {
        view.search = thing.name;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_to_what_tells_them_apart() {
        assert_eq!(short_path("/home/a/model/layers.py"), "model/layers.py");
        assert_eq!(short_path("train.py"), "train.py");
        assert_eq!(short_path("/train.py"), "/train.py");
    }
}
