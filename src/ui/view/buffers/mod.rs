//! Buffers: a table of the memory space's buffers, at the peak, at the chosen step, or all; filtered, sorted by several
//! columns, grouped with subtotals, copied and saved.

mod cells;
mod field;
mod rows;
mod tools;

use std::collections::HashMap;
use std::sync::Arc;

use egui::{Pos2, Rect, Ui, Vec2};

use crate::analysis::Scene;
use crate::analysis::table::{BufferTable, Column, Filter, Key, Line, Order, Shown};
use crate::model::{BufferId, Bytes, counted, percent, thousands};
use crate::ui::part::{Find, View, ViewContext, empty, facts, menu};
use crate::ui::session::{Document, Locals, RowScope, Shared};
use crate::ui::widget::controls;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Table, TableState};
use crate::ui::widget::theme::size;
use crate::ui::work::Job;

/// Columns that are shown at first.
const FIRST: [Column; 9] = [
    Column::Op,
    Column::Size,
    Column::Padding,
    Column::Class,
    Column::Shape,
    Column::Name,
    Column::From,
    Column::To,
    Column::Life,
];

/// State of this view of one document.
struct State {
    table: TableState,
    /// Visible columns in order.
    columns: Vec<Column>,
    /// Those of them that had no room in the last frame.
    without_room: Vec<Column>,
    order: Order,
    arranged: Option<(rows::Wanted, Job<Arc<rows::Arranged>>)>,
    shown: Arc<rows::Arranged>,
    field: field::State,
    last_selected: Option<BufferId>,
    /// Line of the selected buffer.
    selected_line: Option<usize>,
    /// Cached cell texts.
    cells: HashMap<(u32, Column), String>,
    /// Whether the saved columns were restored.
    recalled: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            table: TableState::default(),
            columns: FIRST.to_vec(),
            without_room: Vec::new(),
            order: Order { keys: vec![Key { column: Column::Size, down: true }], ..Order::default() },
            arranged: None,
            shown: Arc::default(),
            field: field::State::default(),
            last_selected: None,
            selected_line: None,
            cells: HashMap::new(),
            recalled: false,
        }
    }
}

/// The view.
pub const VIEW: View = View {
    applies: Document::has_buffers,
    find: Find::Field(focus_filter),
    shows_buffers: true,
    ..View::new("buffers", "Buffers", show).with_digit(7)
};

/// Moves the focus to the filter field.
fn focus_filter(shared: &mut Shared, locals: &mut Locals) {
    shared.show_view(VIEW.id);
    locals.get::<State>().field.focus = true;
}

/// Restores the saved columns, and saves changed ones.
fn keep_columns(context: &mut ViewContext<'_>, state: &mut State) {
    const KEY: &str = "buffers.columns";
    if !std::mem::replace(&mut state.recalled, true)
        && let Some(titles) = context.kept.get(KEY)
    {
        let of = |title: &str| Column::ALL.into_iter().find(|column| column.title() == title);
        let mut columns: Vec<Column> = titles.split(';').filter_map(of).collect();
        let mut seen = std::collections::HashSet::new();
        columns.retain(|column| seen.insert(column.title()));
        if !columns.is_empty() {
            state.columns = columns;
        }
    }
    let titles: Vec<&str> = state.columns.iter().map(|column| column.title()).collect();
    let titles = titles.join(";");
    if context.kept.get(KEY) != Some(&titles) && (state.columns != FIRST || context.kept.contains_key(KEY)) {
        context.kept.insert(KEY.to_owned(), titles);
    }
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let Some(scene) = context.scene() else {
        empty::without_memory(ui, context);
        return;
    };
    let mut state = context.locals.take::<State>();
    keep_columns(context, &mut state);
    let full = ui.max_rect();
    let has_head = full.height() >= crate::ui::part::facts::LEAST_WITH_HEADLINE;
    let head = if has_head { facts::HEADLINE } else { 0.0 };
    let bar = Rect::from_min_size(full.min, Vec2::new(full.width(), 106.0 + head));
    let table = context.table();
    rows::update(context, scene, table.as_ref(), &mut state);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(bar.shrink2(Vec2::new(16.0, 9.0))));
    tools::show(&mut child, context, table.as_ref(), &mut state);
    if has_head && let Some((words, remark)) = answer(context, &state) {
        let at = Pos2::new(full.left() + 16.0, bar.bottom() - facts::HEADLINE);
        let line = Rect::from_min_size(at, Vec2::new(full.width() - 32.0, 26.0));
        facts::headline(ui, context.theme, line, &words, &remark);
    }
    let foot = Rect::from_min_max(Pos2::new(full.left(), full.bottom() - 30.0), full.max);
    let body =
        Rect::from_min_max(Pos2::new(full.left() + 12.0, bar.bottom()), Pos2::new(full.right() - 8.0, foot.top()));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(body).id_salt("table"));
    child.set_clip_rect(body.intersect(ui.clip_rect()));
    lines(&mut child, context, scene, &mut state);
    footer(ui, context, &state, foot);
    context.locals.put(state);
}

fn lines(ui: &mut Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, state: &mut State) {
    let arranged = Arc::clone(&state.shown);
    let Some(table) = &arranged.table else { return };
    let (table, shown) = (&**table, &arranged.shown);
    if shown.lines.is_empty() {
        return nothing(ui, context, scene, table, &arranged);
    }
    let largest = arranged.largest;
    let (unit, unit_name) = context.options.units.unit_for(Bytes(if largest >= 1 << 30 { 1 << 20 } else { largest }));
    let mut columns = state.columns.clone();
    if !context.document.has_times() {
        columns.retain(|column| !column.is_time());
    }
    let fitting = fitting(&columns, arranged.pads, ui.available_width());
    state.without_room = columns.iter().copied().filter(|column| !fitting.contains(column)).collect();
    let columns: Vec<_> = fitting.iter().map(|c| cells::head(*c, unit_name, &state.order.keys)).collect();
    if context.shared.selected != state.last_selected {
        state.last_selected = context.shared.selected;
        state.selected_line = context.shared.selected.and_then(|buffer| {
            let row = Line::Row(table.row_of(buffer)?);
            shown.lines.iter().position(|line| *line == row)
        });
        state.table.reveal = state.selected_line;
    }
    let widget =
        Table { selected: state.selected_line, keys: true, ..Table::new(&columns, shown.lines.len(), "buffers") };
    let units = context.options.units;
    if state.cells.len() > 20_000 {
        state.cells.clear();
    }
    let points = context.data().map_or(1, |data| data.map.points);
    let scale = cells::Scale { unit, largest, points, step: context.step() };
    let (kept, shown_columns) = (&mut state.cells, &fitting);
    let response = widget.show(
        ui,
        &mut state.table,
        |line| match shown.lines[line] {
            Line::Row(row) => {
                format!("{} {}", table.name.at(row as usize), units.short(Bytes(table.size[row as usize])))
            }
            Line::Group(group) => {
                let group = &shown.groups[group as usize];
                let open = if group.open { "open" } else { "closed" };
                let count = counted(group.count as u64, "buffer");
                format!("{}, {count}, {}, {open}", cells::group_name(group), units.short(Bytes(group.size)))
            }
        },
        |line, column| {
            let Some(&kind) = shown_columns.get(column) else { return Cell::default() };
            let cell = cells::cell(table, shown, shown.lines[line], (column, kind), scale, kept);
            let is_op = kind == Column::Op && matches!(shown.lines[line], Line::Row(_));
            if is_op { Cell { told: arranged.telling.places(&cell.text), ..cell } } else { cell }
        },
    );
    if let Some(line) = response.chosen {
        match shown.lines[line] {
            Line::Row(row) => {
                let buffer = table.buffers[row as usize];
                context.shared.select(buffer);
                state.last_selected = Some(buffer);
                state.selected_line = Some(line);
            }
            Line::Group(_) if response.passed => state.selected_line = Some(line),
            Line::Group(group) => {
                let name = &shown.groups[group as usize].name;
                if !state.order.open.remove(name) {
                    state.order.open.insert(name.clone());
                }
            }
        }
    }
    if let Some(line) = response.hovered
        && let Line::Row(row) = shown.lines[line]
    {
        context.shared.hover(table.buffers[row as usize]);
    }
    let under = response.hovered.and_then(|line| match shown.lines[line] {
        Line::Row(row) => Some(table.buffers[row as usize]),
        Line::Group(_) => None,
    });
    if let Some((line, place)) = response.focused
        && let Line::Row(row) = shown.lines[line]
    {
        menu::aim(context, Some(table.buffers[row as usize]), place);
    }
    menu::show(ui, context, ui.max_rect(), under);
    if let Some(line) = response.opened
        && matches!(shown.lines[line], Line::Row(_))
    {
        context.go("timeline");
    }
    if let Some(&column) = response.sorted.and_then(|column| fitting.get(column)) {
        sort_by(&mut state.order.keys, column, ui.input(|i| i.modifiers.shift));
    }
    if let Some((from, to)) = response.moved
        && let Some(&moved) = fitting.get(from)
    {
        let before = fitting.iter().filter(|column| **column != moved).nth(to).copied();
        state.columns.retain(|column| *column != moved);
        let at = before.and_then(|before| state.columns.iter().position(|column| *column == before));
        state.columns.insert(at.unwrap_or(state.columns.len()), moved);
    }
}

/// What names of operations need beside their least width to be whole.
const ROOM_OF_NAMES: f32 = 160.0;

/// The columns that have room for their contents, at least the first; of the others, those that say least give way, and
/// before all of them padding where there is none.
fn fitting(columns: &[Column], pads: bool, width: f32) -> Vec<Column> {
    const GIVE_WAY: [Column; 6] =
        [Column::Name, Column::Class, Column::Source, Column::Shape, Column::Life, Column::Padding];
    let mut shown = columns.to_vec();
    let needs = |shown: &[Column]| shown.iter().map(|&column| cells::least_width(column)).sum::<f32>();
    // Nothing but zeros leaves its room to names already where these would be cut.
    if !pads && needs(&shown) + ROOM_OF_NAMES > width {
        shown.retain(|&own| !matches!(own, Column::Padding | Column::Share) || Some(&own) == columns.first());
    }
    for column in GIVE_WAY {
        if needs(&shown) <= width || shown.len() < 2 {
            break;
        }
        shown.retain(|&own| own != column || Some(&own) == columns.first());
    }
    shown
}

/// How many buffers are listed and what they hold, in words.
fn answer(context: &ViewContext<'_>, state: &State) -> Option<(String, String)> {
    state.shown.table.as_ref()?;
    let shown = &state.shown.shown;
    let place = match context.shared.rows {
        _ if !context.document.has_times() => "listed in the message".to_owned(),
        RowScope::Peak => "at the peak".to_owned(),
        RowScope::Step => format!("at step {}", context.step()),
        RowScope::All => "over the whole program".to_owned(),
    };
    let sum = context.short(Bytes(shown.size));
    if shown.rows == state.shown.of {
        return Some((format!("{}, {sum} {place}", counted(shown.rows as u64, "buffer")), String::new()));
    }
    let words = format!("{} of {} match, {sum}", thousands(shown.rows as u64), thousands(state.shown.of as u64));
    Some((words, place))
}

/// Sorts by a column; a second click on its header reverses the order. `add` keeps the other sort columns before it.
fn sort_by(keys: &mut Vec<Key>, column: Column, add: bool) {
    let down = column.is_number()
        && !matches!(column, Column::From | Column::To | Column::Life | Column::Offset | Column::Allocation);
    let known = keys.iter_mut().find(|key| key.column == column);
    match known {
        Some(key) => {
            key.down = !key.down;
            let key = *key;
            if !add {
                *keys = vec![key];
            }
        }
        None if add => keys.push(Key { column, down }),
        None => *keys = vec![Key { column, down }],
    }
}

/// Shown when no row is left: offers to remove the filter term that excludes the most.
fn nothing(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    scene: Scene<'_>,
    table: &BufferTable,
    arranged: &rows::Arranged,
) {
    let theme = context.theme;
    ui.add_space(24.0);
    ui.vertical_centered(|ui| {
        if arranged.of == 0 {
            ui.label(text("No buffers here.", size::LEAD, Weight::Medium, theme.text));
            return;
        }
        if let Err(error) = Filter::parse(&context.shared.filter) {
            ui.label(text(error.what, size::LEAD, Weight::SemiBold, theme.danger));
            return;
        }
        let words = format!("0 of {} match", thousands(arranged.of as u64));
        ui.label(text(words, size::LEAD, Weight::SemiBold, theme.text));
        let every: Vec<u32> = (0..table.len() as u32).collect();
        let counts = Filter::counts(&context.shared.filter, table, &every, scene.space.peak_point());
        if let Some((term, left)) = counts.into_iter().min_by_key(|(_, left)| *left) {
            let words = format!("\u{201c}{term}\u{201d} alone matches {}", thousands(left as u64));
            ui.label(text(words, size::BODY, Weight::Regular, theme.text2));
            if controls::link_sized(ui, &format!("Remove \u{201c}{term}\u{201d}"), size::BODY, theme).clicked() {
                context.shared.set_filter(context.shared.filter.replacen(&term, "", 1).trim().to_owned());
            }
        }
    });
}

fn footer(ui: &Ui, context: &ViewContext<'_>, state: &State, rect: Rect) {
    let theme = context.theme;
    controls::hairline(ui, Rect::from_min_max(rect.min, Pos2::new(rect.right(), rect.top() + 1.0)), theme.line);
    // What is not known yet is blank, not 0.
    if state.shown.table.is_none() {
        return;
    }
    let Shown { rows, size: sum, padding, .. } = state.shown.shown;
    let padding = Bytes(u64::try_from(padding).unwrap_or(0));
    let mut words = format!(
        "{}, {} in total, {} padding ({})",
        counted(rows as u64, "buffer"),
        context.short(Bytes(sum)),
        context.short(padding),
        percent(padding.0, sum)
    );
    match context.shared.rows {
        RowScope::All => words += "; not all live at the same time",
        RowScope::Peak | RowScope::Step if state.shown.shares => words += "; shared memory counts once",
        RowScope::Peak | RowScope::Step => {}
    }
    let response = ui.interact(rect, ui.scope_id().with("sums"), egui::Sense::hover());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &words));
    response.on_hover_text(&words);
    let at = Pos2::new(rect.left() + 20.0, rect.center().y);
    controls::paint_cut(
        ui.painter(),
        (at, egui::Align2::LEFT_CENTER),
        &words,
        Weight::Regular.at(size::SMALL),
        theme.text2,
        rect.width() - 40.0,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_gives_way_before_shapes_where_there_is_none() {
        assert!(!fitting(&FIRST, false, 900.0).contains(&Column::Padding));
        let narrow = fitting(&FIRST, false, 800.0);
        assert!(narrow.contains(&Column::Shape) && narrow.contains(&Column::Op), "{narrow:?}");
        assert!(fitting(&FIRST, true, 900.0).contains(&Column::Padding));
    }

    #[test]
    fn shift_adds_a_key_and_a_second_click_turns_it() {
        let mut keys = vec![Key { column: Column::Size, down: true }];
        sort_by(&mut keys, Column::Category, true);
        sort_by(&mut keys, Column::Size, true);
        assert_eq!(keys, [Key { column: Column::Size, down: false }, Key { column: Column::Category, down: false }]);
        sort_by(&mut keys, Column::Padding, false);
        assert_eq!(keys, [Key { column: Column::Padding, down: true }]);
    }
}
