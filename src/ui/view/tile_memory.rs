//! Memory report: a column for all tiles, the mean tile and each chosen tile; below it what lies there by vertex type,
//! exchange, compute set or variable.

use std::path::Path;

use egui::{Align2, Pos2, Rect, Stroke, Ui, Vec2};

use super::palette;
use crate::analysis::tiles::{CategoryBytes, MemoryReport, Named, Selection, TileAnalysis};
use crate::decode::poplar::{TileVariable, variables_of_tile};
use crate::model::{TileMemory, TileRows, TileVariables, thousands};
use crate::ui::session::{Job, ViewContext};
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

/// Variables of a tile, or why they could not be read.
type Stored = Result<Vec<TileVariable>, String>;

#[derive(Default)]
struct State {
    of: (usize, Vec<u32>),
    reports: Vec<MemoryReport>,
    part: Part,
    /// Variables of a tile of a `profile.pop`, read when they are looked at.
    stored: Option<(u32, Job<Stored>)>,
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
        read_variables(context, memory, state, chosen);
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
        (Part::Variables, "Variables", !memory.variables.is_empty() || state.stored.is_some()),
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
            Part::Variables if state.stored.is_some() => "of the first chosen tile, largest first",
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
        Part::Variables if state.stored.is_some() => stored(&mut child, theme, state),
        Part::Variables => {
            let rows: Vec<u32> =
                state.reports.iter().skip(1).flat_map(|report| report.variables.iter().copied()).collect();
            let strip = Rect::from_min_size(body.min, Vec2::new(body.width(), 40.0));
            let is_one = address_map(&child, theme, memory, &rows, strip);
            let top = if is_one { strip.bottom() + 4.0 } else { body.top() };
            let below = Rect::from_min_max(Pos2::new(body.left(), top), body.max);
            let mut child = ui.new_child(egui::UiBuilder::new().max_rect(below).id_salt("memory variables"));
            variables(&mut child, &mut state.below, memory, &rows);
        }
    }
}

/// Begins to read the variables of the first chosen tile where the profile is a `profile.pop`: it may have many
/// millions of them, so those of a tile are read when it is looked at.
fn read_variables(context: &ViewContext<'_>, memory: &TileMemory, state: &mut State, chosen: &[u32]) {
    let Some(&tile) = chosen.first().filter(|_| memory.variables.is_empty()) else { return };
    if state.part != Part::Variables && state.stored.is_some() {
        return;
    }
    let sources = &context.document.profile.sources;
    let Some(path) = sources.iter().map(|source| Path::new(&source.path)).find(|path| is_pop(path)) else { return };
    if state.stored.as_ref().is_none_or(|(of, _)| *of != tile) {
        let path = path.to_owned();
        let job = Job::start(context.work, "variables of a tile", move || {
            variables_of_tile(&path, tile, LIST).map_err(|error| error.to_string())
        });
        state.stored = Some((tile, job));
    }
}

fn is_pop(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pop") && path.is_file()
}

/// The variables of a tile, as they were read.
fn stored(ui: &mut Ui, theme: &Theme, state: &mut State) {
    let Some((tile, job)) = &mut state.stored else { return };
    let rows = match job.poll() {
        Some(Ok(rows)) => rows,
        Some(Err(error)) => {
            ui.label(text(error.as_str(), size::SMALL, Weight::Regular, theme.warn));
            return;
        }
        None => return,
    };
    let columns = [
        Column::number("Tile", 70.0).fixed(),
        Column::number("Size, B", 100.0).fixed(),
        Column::text("Variable", 200.0, 3.0).fixed(),
        Column::text("Category", 150.0, 1.0).fixed(),
    ];
    let table = Table {
        columns: &columns,
        rows: rows.len(),
        selected: None,
        lit: None,
        sort: None,
        name: "stored",
        keys: false,
    };
    table.show(
        ui,
        &mut state.below,
        |row| rows[row].name.clone(),
        |row, column| match column {
            0 => Cell::text(thousands((*tile).into())).quiet(),
            1 => Cell::text(thousands(rows[row].bytes)),
            2 => Cell::mono(rows[row].name.as_str()),
            _ => Cell::text(palette::words(&rows[row].category)).swatch(palette::tile_slot(&rows[row].category)),
        },
    );
}

/// The addresses of one tile as a strip: variables where they lie, regions and the end of the tile marked. Returns
/// whether there is one tile with known addresses.
fn address_map(ui: &Ui, theme: &Theme, memory: &TileMemory, rows: &[u32], rect: Rect) -> bool {
    let own = &memory.variables;
    let placed = || rows.iter().map(|&row| row as usize).filter(|&row| own.offset[row] != u64::MAX);
    let Some(first) = placed().next() else { return false };
    if placed().any(|row| own.tile[row] != own.tile[first]) {
        return false;
    }
    let high = placed().map(|row| own.offset[row].saturating_add(own.bytes[row])).max().unwrap_or(1);
    let limit = memory.target.bytes_per_tile;
    let whole = high.max(limit.unwrap_or(0)).max(1) as f64;
    let strip = Rect::from_min_max(rect.min, Pos2::new(rect.right(), rect.bottom() - 16.0));
    let at = |bytes: u64| strip.left() + (bytes as f64 / whole * f64::from(strip.width())) as f32;
    let painter = ui.painter();
    painter.rect_filled(strip, 0.0, theme.inset);
    for row in placed() {
        let (from, to) = (at(own.offset[row]), at(own.offset[row].saturating_add(own.bytes[row])));
        let slot = palette::tile_slot(own.strings.get(own.category[row]));
        let part = Rect::from_min_max(Pos2::new(from, strip.top()), Pos2::new(to.max(from + 1.0), strip.bottom()));
        painter.rect_filled(part, 0.0, slot.color());
    }
    let small = Weight::Regular.at(size::SMALL);
    let mark = |bytes: u64, words: &str, color: egui::Color32, align: Align2| {
        painter.vline(at(bytes).round(), strip.top() - 2.0..=strip.bottom() + 3.0, Stroke::new(1.5, color));
        painter.text(Pos2::new(at(bytes), strip.bottom() + 2.0), align, words, small.clone(), color);
    };
    mark(0, "address 0", theme.text2, Align2::LEFT_TOP);
    if let Some(start) = memory.target.interleaved_start {
        mark(start, "interleaved from here", theme.text2, Align2::CENTER_TOP);
    }
    if let Some(limit) = limit {
        mark(limit, "limit", theme.danger, Align2::RIGHT_TOP);
    }
    true
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
                // Nothing said is no zero.
                1..=3 if row.bytes == 0 => Cell::text("\u{2013}").quiet(),
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
