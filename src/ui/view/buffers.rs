//! Buffers: every buffer of the memory space in a table; those at the peak, at the chosen step, or all.

use std::fmt::Write as _;
use std::sync::Arc;

use egui::{Key, Rect, Role, Ui, Vec2, WidgetInfo};

use super::palette;
use crate::analysis::{category, scope, unpadded};
use crate::model::{BufferId, Bytes, UnitSystem, percent, thousands};
use crate::ui::session::{Job, Locals, RowScope, Scene, Shared, ViewContext};
use crate::ui::widget::controls::{self, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::{Theme, size, space};

/// One row, read once and kept.
#[derive(Debug, Clone)]
struct Row {
    buffer: BufferId,
    size: Bytes,
    /// Size less unpadded size; a few tables of tuples count more without padding than with it.
    padding: i64,
    start: u32,
    end: u32,
    name: String,
    op: String,
    shape: String,
    /// Lower-case words a filter looks at.
    haystack: String,
}

/// What the rows depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key_ {
    program: usize,
    color: i64,
    scope: RowScope,
    step: u32,
}

/// What the order depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Order {
    filter: String,
    column: usize,
    down: bool,
}

#[derive(Default)]
struct State {
    table: TableState,
    key: Option<Key_>,
    rows: Option<Job<Arc<Vec<Row>>>>,
    all: Arc<Vec<Row>>,
    order: Option<Order>,
    shown: Vec<u32>,
    sort: Option<(usize, bool)>,
    focus: bool,
    last_selected: Option<BufferId>,
}

/// Asks for the filter field, in this view.
pub fn focus_filter(shared: &mut Shared, locals: &mut Locals) {
    shared.view = "buffers";
    locals.get::<State>().focus = true;
}

const SIZE: usize = 1;

/// Draws the view.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = Theme::of(ui.ctx());
    let Some(scene) = context.scene() else {
        super::empty::without_memory(ui, context, &theme);
        return;
    };
    let mut state = context.locals.take::<State>();
    state.sort.get_or_insert((SIZE, true));
    let full = ui.max_rect();
    let bar = Rect::from_min_size(full.min, Vec2::new(full.width(), 44.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(bar.shrink2(Vec2::new(16.0, 9.0))));
    tools(&mut child, context, &theme, &mut state);
    update(context, scene, &mut state);
    let foot = Rect::from_min_max(egui::Pos2::new(full.left(), full.bottom() - 30.0), full.max);
    let body = Rect::from_min_max(
        egui::Pos2::new(full.left() + 12.0, bar.bottom()),
        egui::Pos2::new(full.right() - 8.0, foot.top()),
    );
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(body).id_salt("table"));
    child.set_clip_rect(body.intersect(ui.clip_rect()));
    table(&mut child, context, scene, &theme, &mut state);
    footer(ui, context, scene, &theme, &state, foot);
    context.locals.put(state);
}

fn tools(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, state: &mut State) {
    ui.horizontal(|ui| {
        let step = context.step();
        let at_step = format!("At step {}", thousands(step.into()));
        let words = ["At the peak", at_step.as_str(), "All"];
        let chosen = RowScope::ALL.iter().position(|scope| *scope == context.shared.rows).unwrap_or(0);
        if let Some(i) = segmented(ui, &words, chosen, theme) {
            context.shared.rows = RowScope::ALL[i];
        }
        ui.add_space(8.0);
        let edit = egui::TextEdit::singleline(&mut context.shared.filter)
            .hint_text("Filter by name, op, shape, category")
            .desired_width(280.0)
            .font(Weight::Mono.at(size::SMALL));
        let response = ui.add_sized(Vec2::new(280.0, space::CONTROL), edit);
        response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Filter buffers"));
        if std::mem::take(&mut state.focus) {
            response.request_focus();
        }
        if response.has_focus() && ui.input(|i| i.key_pressed(Key::Escape)) {
            context.shared.filter.clear();
        }
        if !context.shared.filter.is_empty() && controls::link(ui, "Clear", theme).clicked() {
            context.shared.filter.clear();
        }
        ui.label(text(
            format!("{} of {}", thousands(state.shown.len() as u64), thousands(state.all.len() as u64)),
            size::SMALL,
            Weight::Regular,
            theme.text2,
        ));
    });
}

/// Rows and their order, made anew where what they depend on has changed.
fn update(context: &mut ViewContext<'_>, scene: Scene<'_>, state: &mut State) {
    let scope = context.shared.rows;
    let key = Key_ {
        program: context.shared.program,
        color: context.shared.color,
        scope,
        step: if scope == RowScope::Step { context.step() } else { 0 },
    };
    if state.key.as_ref() != Some(&key) {
        let Some(data) = context.data() else { return };
        let document = context.document.clone();
        let buffers: Vec<BufferId> = match scope {
            RowScope::Peak => scene.space.at_peak.clone(),
            RowScope::Step => data.map.live_at(key.step).iter().map(|item| item.buffer).collect(),
            RowScope::All => scene.space.buffers.clone(),
        };
        let (program, color) = (key.program, key.color);
        state.rows = Some(Job::start(context.work, "rows", move || {
            let Some((model, analysis)) = document.program(program) else { return Arc::default() };
            let _ = color;
            Arc::new(
                buffers
                    .into_iter()
                    .map(|buffer| {
                        let size = model.buffers.size_of(buffer);
                        let place = data.box_of(buffer);
                        let name = model.buffer_name(buffer);
                        let op =
                            model.buffers.instruction_of(buffer).map(|i| model.text.op_name(i)).unwrap_or_default();
                        let shape = model.buffer_shape(buffer).map(|(s, n)| s.short_text_of(n)).unwrap_or_default();
                        let kind = category(model, buffer).name();
                        let haystack = format!("{name} {op} {shape} {kind}").to_lowercase();
                        Row {
                            buffer,
                            size,
                            padding: size.0 as i64 - unpadded(model, &analysis.traces, buffer).0 as i64,
                            start: place.map_or(u32::MAX, |p| p.start),
                            end: place.map_or(u32::MAX, |p| p.end),
                            name,
                            op,
                            shape,
                            haystack,
                        }
                    })
                    .collect(),
            )
        }));
        state.key = Some(key);
        state.order = None;
    }
    if let Some(rows) = state.rows.as_mut().and_then(|job| job.poll().cloned()) {
        state.all = rows;
        state.rows = None;
        state.order = None;
    }
    let (column, down) = state.sort.unwrap_or((SIZE, true));
    let order = Order { filter: context.shared.filter.trim().to_lowercase(), column, down };
    if state.order.as_ref() != Some(&order) {
        sort(context, scene, state, &order);
        state.order = Some(order);
        state.table.top = 0.0;
        state.last_selected = None;
    }
}

fn sort(context: &ViewContext<'_>, scene: Scene<'_>, state: &mut State, order: &Order) {
    let words: Vec<&str> = order.filter.split_whitespace().collect();
    let rows = &state.all;
    let mut shown: Vec<u32> = (0..rows.len() as u32)
        .filter(|&row| words.iter().all(|word| rows[row as usize].haystack.contains(word)))
        .collect();
    let of = |row: &u32| &rows[*row as usize];
    let number = |b: BufferId| scene.program.buffers.number[b.index()];
    match order.column {
        0 => shown.sort_by(|a, b| of(a).name.cmp(&of(b).name)),
        2 => shown.sort_by_key(|row| of(row).padding),
        4 => shown.sort_by(|a, b| of(a).shape.cmp(&of(b).shape)),
        5 => shown.sort_by(|a, b| of(a).op.cmp(&of(b).op)),
        6 => shown.sort_by_key(|row| of(row).start),
        7 => shown.sort_by_key(|row| of(row).end),
        3 => shown.sort_by_key(|row| category(scene.program, of(row).buffer)),
        _ => shown.sort_by_key(|row| (of(row).size, std::cmp::Reverse(number(of(row).buffer)))),
    }
    if order.down {
        shown.reverse();
    }
    state.shown = shown;
    let _ = context;
}

fn table(ui: &mut Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, theme: &Theme, state: &mut State) {
    let largest = state.all.iter().map(|row| row.size.0).max().unwrap_or(0);
    let (unit, unit_name) = context.options.units.unit_for(Bytes(if largest >= 1 << 30 { 1 << 20 } else { largest }));
    let columns = [
        Column::text("Name", 150.0, 2.0),
        Column::number(&format!("Size, {unit_name}"), 140.0),
        Column::number(&format!("Padding, {unit_name}"), 104.0),
        Column::text("Category", 92.0, 0.0),
        Column::text("Shape", 120.0, 1.4),
        Column::text("Op", 120.0, 2.6),
        Column::number("From", 62.0),
        Column::number("To", 62.0),
    ];
    if state.all.is_empty() && state.rows.is_some() {
        return;
    }
    if state.shown.is_empty() {
        nothing(ui, context, theme, state);
        return;
    }
    let row_of = |buffer: Option<BufferId>| {
        let buffer = buffer?;
        state.shown.iter().position(|&row| state.all[row as usize].buffer == buffer)
    };
    let selected = row_of(context.shared.selected);
    if context.shared.selected != state.last_selected {
        state.table.reveal = selected;
        state.last_selected = context.shared.selected;
    }
    let table = Table {
        columns: &columns,
        rows: state.shown.len(),
        selected,
        lit: None,
        sort: state.sort,
        name: "buffers",
        keys: true,
    };
    let (rows, shown) = (&state.all, &state.shown);
    let units = context.options.units;
    let response = table.show(
        ui,
        &mut state.table,
        |row| {
            let row = &rows[shown[row] as usize];
            format!("{} {}", row.name, units.short(row.size))
        },
        |row, column| cell(scene, &rows[shown[row] as usize], column, unit, largest),
    );
    if let Some(row) = response.chosen {
        let buffer = rows[shown[row] as usize].buffer;
        context.shared.selected = Some(buffer);
        state.last_selected = Some(buffer);
    }
    if let Some(row) = response.hovered {
        context.shared.hovered = Some(rows[shown[row] as usize].buffer);
    }
    if response.opened.is_some() {
        context.go("timeline");
    }
    if let Some(column) = response.sorted {
        let down = match state.sort {
            Some((by, down)) if by == column => !down,
            _ => matches!(column, 1 | 2 | 7),
        };
        state.sort = Some((column, down));
    }
}

fn cell(scene: Scene<'_>, row: &Row, column: usize, unit: u64, largest: u64) -> Cell {
    let kind = category(scene.program, row.buffer);
    let step = |point: u32| if point == u32::MAX { "\u{2013}".to_owned() } else { thousands(point.into()) };
    match column {
        0 => Cell::text(row.name.clone()).swatch(palette::slot(kind)),
        1 => Cell::text(in_unit(row.size, unit))
            .strong()
            .bar((row.size.0 as f64 / largest.max(1) as f64) as f32, palette::slot(kind)),
        2 if row.padding <= 0 => Cell::text("0").quiet(),
        2 => Cell::text(in_unit(Bytes(row.padding.unsigned_abs()), unit)),
        3 => Cell::text(kind.name()),
        4 => Cell::mono(row.shape.clone()),
        5 => Cell::mono(scope::short(&row.op, 9)).quiet(),
        6 => Cell::text(step(row.start)),
        _ => Cell::text(step(row.end)),
    }
}

/// A size in the column's unit; what is there is never written as nothing.
fn in_unit(bytes: Bytes, unit: u64) -> String {
    let text = UnitSystem::in_unit(bytes, unit);
    if text == "0.0" && bytes > Bytes::ZERO { "under 0.1".to_owned() } else { text }
}

/// No row is left: which word took the most away.
fn nothing(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, state: &State) {
    ui.add_space(24.0);
    ui.vertical_centered(|ui| {
        if state.all.is_empty() {
            ui.label(text("No buffer is known here.", size::LEAD, Weight::Medium, theme.text));
            return;
        }
        let words = format!("0 of {} match", thousands(state.all.len() as u64));
        ui.label(text(words, size::LEAD, Weight::SemiBold, theme.text));
        let filter = context.shared.filter.to_lowercase();
        let fewest = filter
            .split_whitespace()
            .min_by_key(|word| state.all.iter().filter(|row| row.haystack.contains(*word)).count());
        if let Some(word) = fewest {
            let left = state.all.iter().filter(|row| row.haystack.contains(word)).count();
            let words = format!("\u{201c}{word}\u{201d} matches {} alone", thousands(left as u64));
            ui.label(text(words, size::BODY, Weight::Regular, theme.text2));
            if controls::link_sized(ui, &format!("Drop \u{201c}{word}\u{201d}"), size::BODY, theme).clicked() {
                let kept: Vec<&str> = filter.split_whitespace().filter(|other| *other != word).collect();
                context.shared.filter = kept.join(" ");
            }
        }
    });
}

fn footer(ui: &Ui, context: &ViewContext<'_>, scene: Scene<'_>, theme: &Theme, state: &State, rect: Rect) {
    controls::hairline(ui, Rect::from_min_max(rect.min, egui::Pos2::new(rect.right(), rect.top() + 1.0)), theme.line);
    let sum: Bytes = state.shown.iter().map(|&row| state.all[row as usize].size).sum();
    let padding: i64 = state.shown.iter().map(|&row| state.all[row as usize].padding).sum();
    let padding = Bytes(u64::try_from(padding).unwrap_or(0));
    let mut words = format!(
        "{} buffers, {} together, {} of it padding ({})",
        thousands(state.shown.len() as u64),
        context.short(sum),
        context.short(padding),
        percent(padding.0, sum.0)
    );
    if context.shared.rows == RowScope::Step {
        let occupied = scene.space.occupancy.as_ref().map(|o| o.reserved.at(context.step()));
        if let Some(occupied) = occupied {
            let taken = context.short(Bytes(occupied));
            let _ = write!(words, "; {taken} taken at this step (buffers may share memory)");
        }
    } else if context.shared.rows == RowScope::All {
        words += "; they do not live at the same time";
    }
    let at = egui::Pos2::new(rect.left() + 20.0, rect.center().y);
    controls::paint_cut(
        ui.painter(),
        at,
        egui::Align2::LEFT_CENTER,
        &words,
        Weight::Regular.at(size::SMALL),
        theme.text2,
        rect.width() - 40.0,
    );
}
