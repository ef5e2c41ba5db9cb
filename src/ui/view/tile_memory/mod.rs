//! The memory report: a column for all tiles, the mean tile and each chosen tile, and below it lists by vertex type,
//! exchange, compute set or variable.

mod lists;
mod variables;

use egui::{Pos2, Rect, Role, Ui, Vec2, WidgetInfo};

use crate::analysis::tiles::{
    CategoryBytes, FloorPlan, MemoryReport, Selection, TileAnalysis, parse_tiles, tiles_text,
};
use crate::model::{TileMemory, in_words, thousands};
use crate::ui::part::menu::{self, Thing};
use crate::ui::part::{View, ViewContext, colors, tile_card};
use crate::ui::session::Document;
use crate::ui::widget::controls::cut_label;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::{Slot, size, space};
use crate::ui::work::{Job, TileVariables};

/// Maximum number of chosen tiles with a column of their own.
const MAX_COLUMNS: usize = 6;

/// Maximum number of rows in the lists below.
const LIST: usize = 2000;

/// The list that is shown below.
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
    of: (u64, Vec<u32>),
    reports: Vec<MemoryReport>,
    part: Part,
    /// Variables of a tile of a `profile.pop`, read on demand.
    stored: Option<(u32, Job<TileVariables>)>,
    above: TableState,
    below: TableState,
    /// The row of the list below whose variable was clicked in the address map.
    lit: Option<usize>,
    /// Text of the tile field, and its error.
    wanted: String,
    wrong: Option<String>,
}

/// A row: text, indent, colour, weight, and its bytes in each report.
struct Line {
    words: String,
    indent: usize,
    slot: Option<Slot>,
    strong: bool,
    bytes: Vec<Option<u64>>,
}

/// The view.
pub const VIEW: View = View {
    applies: Document::has_tiles,
    card: Some(tile_card::show),
    ..View::new("memory", "Memory", show).with_digit(4)
};

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let document = context.document.clone();
    let (Some(memory), Some(tiles)) = (&document.profile.tiles, &document.analysis.tiles) else { return };
    let mut state = context.locals.take::<State>();
    if std::mem::take(&mut context.locals.get::<tile_card::AskVariables>().0) {
        state.part = Part::Variables;
    }
    let mut chosen = context.shared.tiles.clone();
    if chosen.is_empty() {
        chosen.extend(tiles.max.map(|max| max.0));
    }
    let of = (document.id(), chosen.clone());
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
    draw(ui, context, memory, tiles, &mut state, &chosen);
    context.locals.put(state);
}

fn draw(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    memory: &TileMemory,
    tiles: &TileAnalysis,
    state: &mut State,
    chosen: &[u32],
) {
    let theme = context.theme;
    let full = ui.max_rect().shrink2(Vec2::new(20.0, 14.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(full).id_salt("memory report"));
    child.horizontal(|ui| {
        ui.label(text("Memory report", size::HEADLINE, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        choose(ui, context, memory, tiles, state);
    });
    let lines = lines(memory, tiles, &state.reports, chosen);
    let mut columns = vec![Column::text("", 240.0, 1.0).fixed(), Column::number("All tiles, B", 130.0).fixed()];
    columns.push(Column::number("Mean tile, B", 110.0).fixed());
    if chosen.len() > MAX_COLUMNS {
        columns.push(Column::number(&format!("{} tiles, B", thousands(chosen.len() as u64)), 130.0).fixed());
    } else {
        columns.extend(chosen.iter().map(|tile| Column::number(&format!("Tile {tile}, B"), 110.0).fixed()));
    }
    let top = full.top() + 36.0;
    let wanted = 27.0 + space::ROW * lines.len() as f32;
    let above = Rect::from_min_max(
        Pos2::new(full.left(), top),
        Pos2::new(full.right(), (top + wanted).min(full.top() + full.height() * 0.68)),
    );
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(above).id_salt("memory rows"));
    let count = memory.tile_count().max(1) as u64;
    let table = Table::new(&columns, lines.len(), "memory");
    let response = table.show(
        &mut child,
        &mut state.above,
        |row| {
            let line = &lines[row];
            let numbers: Vec<String> =
                line.bytes.iter().map(|bytes| bytes.map_or_else(String::new, thousands)).collect();
            format!("{} {}", line.words, numbers.join(", "))
        },
        |row, column| {
            let line = &lines[row];
            // An id is no amount: it has no separators.
            let words = |value: u64| if line.words == PHYSICAL { value.to_string() } else { thousands(value) };
            let number = |bytes: Option<u64>| bytes.map_or_else(|| "\u{2013}".to_owned(), words);
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
    menu::of_rows(ui, context, above, &response, |row| {
        let bytes = lines[row].bytes[0].map(|bytes| bytes.to_string());
        Thing::named(lines[row].words.clone()).copies("Copy bytes", bytes.unwrap_or_default()).shown_in("overview")
    });
    let below = Rect::from_min_max(Pos2::new(full.left(), above.bottom() + 12.0), full.max);
    if below.height() > 90.0 {
        variables::read_variables(context, memory, state, chosen);
        lists::show(ui, context, memory, state, chosen, below);
    }
}

/// The field to choose tiles by number.
fn choose(ui: &mut Ui, context: &mut ViewContext<'_>, memory: &TileMemory, tiles: &TileAnalysis, state: &mut State) {
    let theme = context.theme;
    ui.label(text("Tiles", size::SMALL, Weight::Regular, theme.text2));
    let hint = if tiles.over.is_empty() { "3, 17-20, ipu 0" } else { "3, 17-20, ipu 0, over" };
    let field = egui::TextEdit::singleline(&mut state.wanted).hint_text(hint).desired_width(190.0);
    let response = ui.add(field);
    response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Tiles to show"));
    if response.changed() {
        match parse_tiles(memory, &tiles.over, &state.wanted) {
            Ok(tiles) => {
                context.shared.choose_tiles(tiles);
                state.wrong = None;
            }
            Err(words) => state.wrong = Some(words),
        }
    } else if !response.has_focus() {
        state.wanted = tiles_text(&context.shared.tiles, 40);
        state.wrong = None;
    }
    let (words, color) = match (&state.wrong, context.shared.tiles.len()) {
        (Some(words), _) => (words.clone(), theme.danger),
        (None, 0) => ("showing the fullest tile".to_owned(), theme.text2),
        (None, 1) => ("1 tile chosen".to_owned(), theme.text2),
        (None, count) => (format!("{} tiles chosen", thousands(count as u64)), theme.text2),
    };
    let room = ui.available_width();
    cut_label(ui, &words, Weight::Regular.at(size::SMALL), color, room);
}

/// What the line of ids is called.
const PHYSICAL: &str = "Physical tile id";

fn lines(memory: &TileMemory, tiles: &TileAnalysis, reports: &[MemoryReport], chosen: &[u32]) -> Vec<Line> {
    let mut lines = Vec::new();
    let physical = |tile: u32| {
        let plan = FloorPlan::new(memory, memory.ipu_of(tile as usize));
        let inside = tile as usize % (memory.target.tiles_per_ipu as usize).max(1);
        plan.cell.get(inside).filter(|_| plan.is_physical).map(|&cell| u64::from(cell))
    };
    if reports.len() == chosen.len() + 1 && chosen.iter().any(|&tile| physical(tile).is_some()) {
        let bytes = std::iter::once(None).chain(chosen.iter().map(|&tile| physical(tile))).collect();
        lines.push(Line { words: PHYSICAL.to_owned(), indent: 0, slot: None, strong: false, bytes });
    }
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
        add(&in_words(name), 1, None, false, &|report| report.regions.get(at).map(|region| region.1));
    }
    add("Gaps", 0, None, true, &|report| report.gaps.map(|gaps| gaps.bytes));
    add("Below the interleaved region", 1, None, false, &|report| report.gaps?.below_interleaved);
    add("Fragmentation", 1, None, false, &|report| report.gaps?.fragmentation);
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
        let slot = Some(colors::tile_slot(name));
        add(&in_words(name), 1, slot, false, &|report| report.categories.get(at).map(|category| category.bytes));
    }
    if memory.overlap_known {
        add("Overlapped: shares addresses over time, not summed", 0, None, true, &|report| {
            sum(report, &|category| category.overlapped)
        });
        for &at in &order {
            let name = &tiles.categories[at].name;
            let slot = Some(colors::tile_slot(name));
            add(&in_words(name), 1, slot, false, &|report| report.categories.get(at)?.overlapped);
        }
    }
    lines
}
