//! The tables below the curve: steps, and the program tree with the bytes of each node.

use egui::{Role, Ui, WidgetInfo};

use super::{REST, State, choose, program};
use crate::analysis::tiles::TileAnalysis;
use crate::model::{Bytes, TileMemory, UnitSystem, percent, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::menu::{self, Thing};
use crate::ui::widget::controls::cut_label;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table};
use crate::ui::widget::theme::size;

/// Width in points below which the table of steps shows what is needed alone.
const NARROW: f32 = 420.0;

/// A column of the table of steps; its number is what the rows are sorted by.
#[derive(Clone, Copy)]
enum What {
    Step,
    Name,
    Kind,
    Live,
    Runs,
}

/// The one unit of a column of bytes, by its largest number.
fn unit_of(context: &ViewContext<'_>, most: u64) -> (u64, &'static str) {
    context.options.units.unit_for(Bytes(if most >= 1 << 30 { 1 << 20 } else { most }))
}

/// The table of steps, with its filter.
pub fn steps(ui: &mut Ui, context: &mut ViewContext<'_>, memory: &TileMemory, tiles: &TileAnalysis, state: &mut State) {
    let theme = context.theme;
    let chosen = context.shared.step.or(tiles.peak.map(|peak| peak.step)).unwrap_or(0);
    ui.horizontal(|ui| {
        ui.label(text("Steps", size::BODY, Weight::SemiBold, theme.text));
        let field =
            egui::TextEdit::singleline(&mut state.filter).hint_text("filter by name or kind").desired_width(160.0);
        let response = ui.add(field);
        response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Filter steps"));
        if std::mem::take(&mut state.focus) {
            response.request_focus();
        }
        let words = format!("{} of {}", thousands(state.rows.len() as u64), thousands(state.bytes.len() as u64));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    });
    let own = |step: u32| state.bytes.get(step as usize).copied().unwrap_or(0);
    if let Some(&other) = context.shared.compared.last() {
        let change = i128::from(own(other)) - i128::from(own(chosen));
        let words = format!(
            "step {} against step {}: {}",
            thousands(other.into()),
            thousands(chosen.into()),
            context.options.units.signed(change)
        );
        ui.label(text(words, size::SMALL, Weight::Medium, theme.accent));
    }
    let most = state.bytes.iter().max().copied().unwrap_or(0).max(1);
    let (unit, unit_name) = unit_of(context, most);
    // Columns without room, or without anything in them, are left out; Details shows them.
    let program = |step: u32| program(memory, step);
    let is_narrow = ui.available_width() < NARROW;
    let has_runs = state.rows.iter().any(|&step| program(step).is_some_and(|program| program.runs.is_some()));
    let columns: Vec<(What, Column)> = [
        Some((What::Step, Column::number("Step", 52.0))),
        Some((What::Name, Column::text("Name", 160.0, 3.0))),
        (!is_narrow).then(|| (What::Kind, Column::text("Kind", 108.0, 0.0))),
        Some((What::Live, Column::number(&format!("Not always live, {unit_name}"), 168.0))),
        (has_runs && !is_narrow).then(|| (What::Runs, Column::number("Runs", 56.0).fixed())),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (shown, columns): (Vec<What>, Vec<Column>) = columns.into_iter().unzip();
    let rows = std::mem::take(&mut state.rows);
    let table = Table {
        selected: rows.iter().position(|&step| step == chosen),
        lit: context.shared.cursor.and_then(|step| rows.iter().position(|&other| other == step)),
        sort: shown.iter().position(|what| *what as usize == state.sort.0).map(|column| (column, state.sort.1)),
        keys: true,
        ..Table::new(&columns, rows.len(), "steps")
    };
    let bytes = &state.bytes;
    let response = table.show(
        ui,
        &mut state.steps,
        |row| format!("step {} {}", rows[row], memory.step_name(rows[row] as usize)),
        |row, column| {
            let step = rows[row];
            let here = bytes.get(step as usize).copied().unwrap_or(0);
            match shown[column] {
                What::Step => Cell::text(step.to_string()).quiet(),
                What::Name => Cell::mono(memory.step_name(step as usize)),
                What::Kind => Cell::text(program(step).map_or("", |program| program.kind.as_str())).quiet(),
                What::Live => Cell::text(UnitSystem::in_unit(Bytes(here), unit)).bar(here as f32 / most as f32, REST),
                What::Runs => {
                    Cell::text(program(step).and_then(|p| p.runs).map_or_else(|| "\u{2013}".to_owned(), thousands))
                        .quiet()
                }
            }
        },
    );
    if let Some(column) = response.sorted.and_then(|column| shown.get(column)).map(|what| *what as usize) {
        state.sort = if state.sort.0 == column { (column, !state.sort.1) } else { (column, column >= 3) };
    }
    if let Some(row) = response.chosen {
        choose(ui, context, rows[row]);
    }
    menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        let step = rows[row];
        let here = state.bytes.get(step as usize).copied().unwrap_or(0);
        let thing = Thing::named(memory.step_name(step as usize)).copies("Copy step", step.to_string());
        thing.copies("Copy bytes", here.to_string()).shown_in("overview")
    });
    state.rows = rows;
}

/// The program tree, with the most bytes live at one step below each node.
pub fn tree(ui: &mut Ui, context: &mut ViewContext<'_>, memory: &TileMemory, state: &mut State) {
    let theme = context.theme;
    let liveness = &memory.liveness;
    ui.horizontal(|ui| {
        ui.label(text("Program tree", size::BODY, Weight::SemiBold, theme.text));
        let room = ui.available_width();
        let words = "the most bytes live at one step below each node";
        cut_label(ui, words, Weight::Regular.at(size::SMALL), theme.text3, room);
    });
    let mut shown: Vec<u32> = Vec::new();
    let mut node = 0usize;
    while node < liveness.nodes.len() {
        shown.push(node as u32);
        let below = if state.folded.contains(&(node as u32)) { liveness.nodes[node].below } else { 0 };
        node += below as usize + 1;
    }
    let peak = state.bytes.iter().max().copied().unwrap_or(0);
    let (unit, unit_name) = unit_of(context, peak);
    let columns = [
        Column::text("Program", 120.0, 3.0).fixed(),
        Column::number(&format!("Most, {unit_name}"), 80.0).fixed(),
        Column::number("of the peak", 90.0).fixed(),
    ];
    // In a narrow table the names have the room of the shares, and of wide steps inward.
    let is_narrow = ui.available_width() < 360.0;
    let columns = &columns[..if is_narrow { 2 } else { 3 }];
    let inward = if is_narrow { " " } else { "   " };
    let most_below = |node: u32| {
        let end = node as usize + liveness.nodes[node as usize].below as usize;
        liveness.nodes[node as usize..=end.min(liveness.nodes.len() - 1)].iter().map(|n| n.bytes).max().unwrap_or(0)
    };
    let chosen = context.shared.step.and_then(|step| liveness.steps.get(step as usize).copied());
    let table = Table {
        selected: chosen.and_then(|node| shown.iter().position(|&other| other == node)),
        ..Table::new(columns, shown.len(), "program tree")
    };
    let words = |node: u32| {
        let entry = &liveness.nodes[node as usize];
        let name = liveness.strings.get(entry.name);
        let name = match (name.is_empty(), memory.programs.get(entry.program as usize)) {
            (true, Some(program)) => program.kind.as_str(),
            (true, None) if entry.below > 0 => "group",
            (true, None) => "step",
            (false, _) => name,
        };
        let sign = match (entry.below > 0, state.folded.contains(&node)) {
            (true, true) => "+ ",
            (true, false) => "\u{2212} ",
            _ => "  ",
        };
        format!("{}{sign}{name}", inward.repeat(entry.depth.min(40) as usize))
    };
    let response = table.show(
        ui,
        &mut state.tree,
        |row| words(shown[row]).trim().to_owned(),
        |row, column| match column {
            0 => Cell::mono(words(shown[row])),
            1 => Cell::text(UnitSystem::in_unit(Bytes(most_below(shown[row])), unit)),
            _ => Cell::text(percent(most_below(shown[row]), peak)).quiet(),
        },
    );
    menu::of_rows(ui, context, ui.max_rect(), &response, |row| {
        let bytes = most_below(shown[row]).to_string();
        Thing::named(words(shown[row]).trim().to_owned()).copies("Copy bytes", bytes)
    });
    if let Some(row) = response.chosen {
        let node = shown[row];
        if liveness.nodes[node as usize].below > 0 {
            if response.passed {
                // The arrow keys move on to the rows below.
            } else if !state.folded.remove(&node) {
                state.folded.insert(node);
            }
        } else if let Ok(step) = liveness.steps.binary_search(&node) {
            choose(ui, context, step as u32);
        }
    }
}
