//! Memory report: a column for all tiles, the mean tile and each chosen tile; below it what lies there by vertex type,
//! exchange, compute set or variable.

use egui::{Pos2, Rect, Ui, Vec2};

use super::palette;
use crate::analysis::tiles::{CategoryBytes, MemoryReport, Named, Selection, TileAnalysis};
use crate::model::{TileMemory, TileRows, TileVariables, thousands};
use crate::ui::session::ViewContext;
use crate::ui::widget::controls::segmented;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::{Slot, Theme, size, space};

/// Chosen tiles with a column of their own.
const MAX_COLUMNS: usize = 6;

/// Rows of the lists below.
const LIST: usize = 2000;

/// What the list below shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    #[default]
    Vertices,
    Exchanges,
    ComputeSets,
    Variables,
}

#[derive(Default)]
struct State {
    of: (usize, Vec<u32>),
    reports: Vec<MemoryReport>,
    part: Part,
    above: TableState,
    below: TableState,
}

/// A row: words, indent, colour, weight, and its bytes in each report.
struct Line {
    words: String,
    indent: usize,
    slot: Option<Slot>,
    strong: bool,
    bytes: Vec<Option<u64>>,
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = Theme::of(ui.ctx());
    let document = context.document.clone();
    let (Some(memory), Some(tiles)) = (&document.profile.tiles, &document.analysis.tiles) else { return };
    let mut state = context.locals.take::<State>();
    let mut chosen = context.shared.tiles.clone();
    if chosen.is_empty() {
        chosen.extend(tiles.max.map(|max| max.0));
    }
    let of = (std::sync::Arc::as_ptr(&document) as usize, chosen.clone());
    if state.reports.is_empty() || state.of != of {
        let report = |selection: &Selection| MemoryReport::new(memory, tiles.gaps.as_ref(), selection, LIST);
        state.reports = vec![report(&Selection::All)];
        if chosen.len() > MAX_COLUMNS {
            state.reports.push(report(&Selection::Tiles(chosen.clone())));
        } else {
            state.reports.extend(chosen.iter().map(|&tile| report(&Selection::Tiles(vec![tile]))));
        }
        state.of = of;
    }
    draw(ui, context, &theme, memory, tiles, &mut state, &chosen);
    context.locals.put(state);
}

fn draw(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    theme: &Theme,
    memory: &TileMemory,
    tiles: &TileAnalysis,
    state: &mut State,
    chosen: &[u32],
) {
    let full = ui.max_rect().shrink2(Vec2::new(20.0, 14.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(full).id_salt("memory report"));
    child.horizontal(|ui| {
        ui.label(text("Memory report", size::HEADLINE, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        let words = if context.shared.tiles.is_empty() {
            "the fullest tile beside all of them; choose others under Tiles".to_owned()
        } else {
            format!("{} tiles chosen", thousands(chosen.len() as u64))
        };
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    });
    let lines = lines(memory, tiles, &state.reports);
    let mut columns = vec![Column::text("", 240.0, 1.0).fixed(), Column::number("All tiles, B", 130.0).fixed()];
    columns.push(Column::number("Mean tile, B", 110.0).fixed());
    if chosen.len() > MAX_COLUMNS {
        columns.push(Column::number(&format!("{} tiles, B", thousands(chosen.len() as u64)), 130.0).fixed());
    } else {
        columns.extend(
            chosen.iter().map(|tile| Column::number(&format!("Tile {}, B", thousands((*tile).into())), 110.0).fixed()),
        );
    }
    let top = full.top() + 36.0;
    let wanted = 27.0 + space::ROW * lines.len() as f32;
    let above = Rect::from_min_max(
        Pos2::new(full.left(), top),
        Pos2::new(full.right(), (top + wanted).min(full.top() + full.height() * 0.68)),
    );
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(above).id_salt("memory rows"));
    let count = memory.tile_count().max(1) as u64;
    let table = Table {
        columns: &columns,
        rows: lines.len(),
        selected: None,
        lit: None,
        sort: None,
        name: "memory",
        keys: false,
    };
    table.show(
        &mut child,
        &mut state.above,
        |row| lines[row].words.clone(),
        |row, column| {
            let line = &lines[row];
            let number = |bytes: Option<u64>| bytes.map_or_else(|| "\u{2013}".to_owned(), thousands);
            let cell = match column {
                0 => {
                    let cell = Cell::text(format!("{}{}", "    ".repeat(line.indent), line.words));
                    match line.slot {
                        Some(slot) => cell.swatch(slot),
                        None => cell,
                    }
                }
                1 => Cell::text(number(line.bytes[0])),
                2 => Cell::text(number(line.bytes[0].map(|bytes| bytes / count))).quiet(),
                at => Cell::text(number(line.bytes.get(at - 2).copied().flatten())),
            };
            if line.strong && column != 2 { cell.strong() } else { cell }
        },
    );
    let below = Rect::from_min_max(Pos2::new(full.left(), above.bottom() + 12.0), full.max);
    if below.height() > 90.0 {
        lists(ui, theme, memory, state, below);
    }
}

fn lines(memory: &TileMemory, tiles: &TileAnalysis, reports: &[MemoryReport]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add =
        |words: &str, indent: usize, slot: Option<Slot>, strong: bool, of: &dyn Fn(&MemoryReport) -> Option<u64>| {
            let bytes: Vec<Option<u64>> = reports.iter().map(of).collect();
            if bytes.iter().any(|bytes| bytes.is_some_and(|bytes| bytes > 0))
                || (strong && bytes.iter().any(Option::is_some))
            {
                lines.push(Line { words: words.to_owned(), indent, slot, strong, bytes });
            }
        };
    add("Memory including gaps", 0, None, true, &|report| report.including_gaps);
    add("Memory excluding gaps", 0, None, true, &|report| report.excluding_gaps);
    for (at, (name, _)) in tiles.regions.iter().enumerate() {
        add(&palette::words(name), 1, None, false, &|report| report.regions.get(at).map(|region| region.1));
    }
    add("Gaps", 0, None, true, &|report| report.gaps.map(|gaps| gaps.bytes));
    add("below the interleaved region", 1, None, false, &|report| report.gaps?.below_interleaved);
    add("fragmentation", 1, None, false, &|report| report.gaps?.fragmentation);
    add("Always live", 0, None, true, &|report| report.always_live);
    add("Not always live, each tile's own peak", 0, None, false, &|report| report.not_always_live_max);
    let mut order: Vec<usize> = (0..tiles.categories.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(tiles.categories[at].bytes));
    let sum = |report: &MemoryReport, of: &dyn Fn(&CategoryBytes) -> Option<u64>| {
        report.categories.iter().map(of).try_fold(0u64, |sum, bytes| Some(sum + bytes?))
    };
    let words =
        if memory.overlap_known { "Not overlapped" } else { "Sizes of variables, shared addresses counted for each" };
    if !order.is_empty() {
        add(words, 0, None, true, &|report| sum(report, &|category| Some(category.bytes)));
    }
    for &at in &order {
        let name = &tiles.categories[at].name;
        let slot = Some(palette::tile_slot(name));
        add(&palette::words(name), 1, slot, false, &|report| report.categories.get(at).map(|category| category.bytes));
    }
    if memory.overlap_known {
        add("Overlapped: shares addresses over time, never added up", 0, None, true, &|report| {
            sum(report, &|category| category.overlapped)
        });
        for &at in &order {
            let name = &tiles.categories[at].name;
            let slot = Some(palette::tile_slot(name));
            add(&palette::words(name), 1, slot, false, &|report| report.categories.get(at)?.overlapped);
        }
    }
    lines
}

fn lists(ui: &mut Ui, theme: &Theme, memory: &TileMemory, state: &mut State, rect: Rect) {
    let head = Rect::from_min_size(rect.min, Vec2::new(rect.width(), 26.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(head).id_salt("memory parts"));
    let all = [
        (Part::Vertices, "Vertices", !memory.vertex_types.rows.is_empty()),
        (Part::Exchanges, "Exchanges", !memory.exchanges.rows.is_empty()),
        (Part::ComputeSets, "Compute sets", !memory.compute_sets.rows.is_empty()),
        (Part::Variables, "Variables", !memory.variables.is_empty()),
    ];
    let parts: Vec<_> = all.into_iter().filter(|part| part.2).collect();
    if parts.is_empty() {
        return;
    }
    let at = parts.iter().position(|part| part.0 == state.part).unwrap_or(0);
    let part = parts[at].0;
    child.horizontal(|ui| {
        let words: Vec<&str> = parts.iter().map(|part| part.1).collect();
        if let Some(i) = segmented(ui, &words, at, theme) {
            state.part = parts[i].0;
            state.below = TableState::default();
        }
        let words = match part {
            Part::Variables => "of the chosen tiles, by address",
            _ => "of all tiles, with the fullest tile of each",
        };
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    });
    let body = Rect::from_min_max(Pos2::new(rect.left(), head.bottom() + 4.0), rect.max);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(body).id_salt("memory list"));
    let all = &state.reports[0];
    match part {
        Part::Vertices => table(&mut child, &mut state.below, &memory.vertex_types, &all.vertex_types, "Vertex type"),
        Part::Exchanges => table(&mut child, &mut state.below, &memory.exchanges, &all.exchanges, "Exchange"),
        Part::ComputeSets => {
            let rows: Vec<Named> =
                (0..memory.compute_sets.rows.len() as u32).map(|row| Named { row, bytes: 0 }).take(LIST).collect();
            table(&mut child, &mut state.below, &memory.compute_sets, &rows, "Compute set");
        }
        Part::Variables => {
            let rows: Vec<u32> =
                state.reports.iter().skip(1).flat_map(|report| report.variables.iter().copied()).collect();
            variables(&mut child, &mut state.below, memory, &rows);
        }
    }
}

fn table(ui: &mut Ui, state: &mut TableState, of: &TileRows, rows: &[Named], title: &str) {
    let parts: Vec<&'static str> = of
        .rows
        .iter()
        .map(|row| &row.parts)
        .max_by_key(|parts| parts.len())
        .map_or_else(Vec::new, |parts| parts.iter().map(|part| part.0).collect());
    let mut columns = vec![Column::text(title, 220.0, 3.0).fixed(), Column::number("All tiles, B", 110.0).fixed()];
    columns.push(Column::number("Fullest tile", 90.0).fixed());
    columns.push(Column::number("there, B", 90.0).fixed());
    columns.extend(parts.iter().map(|part| Column::number(&palette::words(part), 110.0).fixed()));
    let table =
        Table { columns: &columns, rows: rows.len(), selected: None, lit: None, sort: None, name: title, keys: false };
    let row_of = |row: usize| &of.rows[rows[row].row as usize];
    table.show(
        ui,
        state,
        |row| row_of(row).name.clone(),
        |row, column| {
            let row = row_of(row);
            match column {
                0 => Cell::mono(if row.name.is_empty() { "unnamed" } else { &row.name }),
                1 => Cell::text(thousands(row.bytes)),
                2 => Cell::text(thousands(row.max.0.into())).quiet(),
                3 => Cell::text(thousands(row.max.1)),
                at => {
                    let bytes = row.parts.iter().find(|part| Some(&part.0) == parts.get(at - 4)).map(|part| part.1);
                    Cell::text(bytes.map_or_else(|| "\u{2013}".to_owned(), thousands)).quiet()
                }
            }
        },
    );
}

fn variables(ui: &mut Ui, state: &mut TableState, memory: &TileMemory, rows: &[u32]) {
    let columns = [
        Column::number("Tile", 70.0).fixed(),
        Column::number("Offset", 100.0).fixed(),
        Column::number("Size, B", 100.0).fixed(),
        Column::text("Variable", 200.0, 3.0).fixed(),
        Column::text("Category", 150.0, 1.0).fixed(),
        Column::text("", 150.0, 1.0).fixed(),
    ];
    let own = &memory.variables;
    let table = Table {
        columns: &columns,
        rows: rows.len(),
        selected: None,
        lit: None,
        sort: None,
        name: "variables",
        keys: false,
    };
    table.show(
        ui,
        state,
        |row| own.strings.get(own.name[rows[row] as usize]).to_owned(),
        |row, column| {
            let row = rows[row] as usize;
            let offset = own.offset[row];
            let flags = own.flags[row];
            match column {
                0 => Cell::text(thousands(own.tile[row].into())).quiet(),
                1 if offset == u64::MAX => Cell::text("\u{2013}"),
                1 => Cell::mono(format!("0x{offset:05X}")),
                2 => Cell::text(thousands(own.bytes[row])),
                3 => Cell::mono(own.strings.get(own.name[row])),
                4 => {
                    let category = own.strings.get(own.category[row]);
                    Cell::text(palette::words(category)).swatch(palette::tile_slot(category))
                }
                _ => {
                    let mut words = Vec::new();
                    if flags & TileVariables::ALLOCATED == 0 {
                        words.push("found no place");
                    }
                    if flags & TileVariables::ALWAYS_LIVE != 0 {
                        words.push("always live");
                    }
                    if flags & TileVariables::INTERLEAVED != 0 {
                        words.push("interleaved");
                    }
                    Cell::text(words.join(", ")).quiet()
                }
            }
        },
    );
}
