//! The table of the buffers in the current node, under the treemap.

use std::cell::RefCell;
use std::sync::Arc;

use egui::{Rect, Ui};

use crate::analysis::tree::Tree;
use crate::analysis::{Scene, unpadded};
use crate::model::{BufferId, Bytes, Program, UnitSystem, percent, thousands};
use crate::ui::part::{BufferNames, ViewContext, colors, menu};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, CellSpan, Column, Table, TableState};
use crate::ui::widget::theme::{Slot, size};
use crate::ui::work::Job;

/// Minimum height of a view with room for the table, and maximum height of the table.
const ROOM: f32 = 470.0;
const MOST: f32 = 260.0;

/// The version of a tree, and a node of it.
type Of = (u64, usize);

/// State of the table.
#[derive(Default)]
pub struct List {
    building: Option<(Of, Job<Arc<Vec<BufferId>>>)>,
    of: Option<Of>,
    buffers: Arc<Vec<BufferId>>,
    table: TableState,
    names: RefCell<BufferNames>,
    /// The selection that was followed last, and its row.
    followed: Option<BufferId>,
    selected: Option<usize>,
}

/// Divides the view into the map and, if there is room, the table.
pub fn divide(plot: Rect) -> (Rect, Option<Rect>) {
    if plot.height() < ROOM {
        return (plot, None);
    }
    let height = (plot.height() * 0.36).min(MOST);
    let (map, list) = plot.split_top_bottom_at_y(plot.bottom() - height);
    (Rect::from_min_max(map.min, map.max - egui::vec2(0.0, 10.0)), Some(list))
}

/// The buffers below a node, largest first.
fn below(tree: &Tree, program: &Program, node: usize) -> Vec<BufferId> {
    let mut found = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop().and_then(|at| tree.nodes.get(at)) {
        found.extend(&node.buffers);
        open.extend(&node.children);
    }
    found.sort_by_key(|&buffer| (std::cmp::Reverse(tree.bytes_of(program, buffer)), buffer));
    found
}

/// Starts listing the buffers below a node on a worker, and takes the list once it is done.
fn update(context: &mut ViewContext<'_>, tree: &Arc<Tree>, of: Of, state: &mut List) {
    if state.of != Some(of) && state.building.as_ref().is_none_or(|(building, _)| *building != of) {
        let (document, program, tree) = (Arc::clone(context.document), context.shared.program, Arc::clone(tree));
        let job = Job::start(context.work, "list", move || {
            Arc::new(document.program(program).map(|(model, _)| below(&tree, model, of.1)).unwrap_or_default())
        });
        state.building = Some((of, job));
    }
    if let Some((of, job)) = &mut state.building
        && let Some(buffers) = job.poll()
    {
        state.buffers = Arc::clone(buffers);
        state.of = Some(*of);
        state.table.top = 0.0;
        (state.followed, state.selected) = (None, None);
        state.building = None;
    }
}

/// Draws the table.
pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    scene: Scene<'_>,
    (tree, of): (&Arc<Tree>, Of),
    state: &mut List,
    rect: Rect,
) {
    update(context, tree, of, state);
    let theme = context.theme;
    let mut ui = ui.new_child(egui::UiBuilder::new().max_rect(rect).id_salt("list"));
    let buffers = Arc::clone(&state.buffers);
    ui.horizontal(|ui| {
        ui.label(text("Buffers", size::BODY, Weight::SemiBold, theme.text));
        let words = format!("{}, largest first", thousands(buffers.len() as u64));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    });
    if context.shared.selected != state.followed {
        state.followed = context.shared.selected;
        state.selected = state.followed.and_then(|chosen| buffers.iter().position(|buffer| *buffer == chosen));
        state.table.reveal = state.selected;
    }
    let size_of = |buffer: BufferId| tree.bytes_of(scene.program, buffer);
    let largest = buffers.first().map_or(0, |&buffer| size_of(buffer).0).max(1);
    let (unit, unit_name) = context.options.units.unit_for(Bytes(if largest >= 1 << 30 { 1 << 20 } else { largest }));
    let wide = rect.width() >= 900.0;
    let mut columns = vec![
        Column::text("Name", 150.0, 2.0).fixed(),
        Column::text("Shape", 130.0, 1.6).fixed(),
        Column::number(&format!("Size, {unit_name}"), 150.0).fixed(),
        Column::number("Padding", 70.0).fixed(),
        Column::text("Class (guess)", 110.0, 0.0).fixed(),
    ];
    if wide {
        columns.push(Column::number("From", 70.0).fixed());
        columns.push(Column::number("To", 70.0).fixed());
        columns.push(Column::text("Life", 110.0, 0.7).fixed());
        columns.push(Column::text("Source", 110.0, 0.8).fixed());
    }
    let table = Table { selected: state.selected, ..Table::new(&columns, buffers.len(), "buffers below") };
    let units = context.options.units;
    let live = scene.analysis.live.as_ref();
    let (points, step) = (scene.map().points, context.step());
    let place = ui.available_rect_before_wrap();
    let (names, of) = (&state.names, context.program_id());
    let answer = table.show(
        &mut ui,
        &mut state.table,
        |row| {
            let buffer = buffers[row];
            format!("{} {}", names.borrow_mut().name(of, scene, buffer), units.short(size_of(buffer)))
        },
        |row, column| {
            let buffer = buffers[row];
            let bytes = size_of(buffer);
            let slot = colors::slot_of_class(scene.analysis.class_now(scene.program, buffer));
            let is_lit = !context.is_finding() || context.matches(buffer);
            let point = |point: Option<u32>| point.map_or_else(|| "\u{2013}".to_owned(), |p| p.to_string());
            match column {
                0 if !is_lit => Cell::text(names.borrow_mut().name(of, scene, buffer)).quiet(),
                2 if !is_lit => Cell::text(UnitSystem::in_unit(bytes, unit)).quiet(),
                0 => Cell::text(names.borrow_mut().name(of, scene, buffer)).swatch(slot),
                1 => {
                    let shape = scene.program.buffer_shape(buffer).map(|(shape, node)| shape.short_text_of(node));
                    Cell::mono(shape.unwrap_or_default()).quiet()
                }
                2 => {
                    let words = match UnitSystem::in_unit(bytes, unit) {
                        small if small == "0.0" && bytes > Bytes::ZERO => "under 0.1".to_owned(),
                        words => words,
                    };
                    Cell::text(words).strong().bar((bytes.0 as f64 / largest as f64) as f32, slot)
                }
                3 => {
                    let wasted = bytes.saturating_sub(unpadded(scene.program, &scene.analysis.traces, buffer));
                    let cell = if wasted == Bytes::ZERO { "0".to_owned() } else { percent(wasted.0, bytes.0) };
                    if wasted == Bytes::ZERO { Cell::text(cell).quiet() } else { Cell::text(cell) }
                }
                4 => Cell::text(scene.analysis.class_now(scene.program, buffer).name()),
                5 => Cell::text(point(live.and_then(|live| live.of(buffer)).map(|range| range.0))),
                6 => Cell::text(point(live.and_then(|live| live.of(buffer)).map(|range| range.1))),
                7 => life(live.and_then(|live| live.of(buffer)), points, step, slot),
                _ => Cell::mono(source_of(scene.program, buffer)).quiet(),
            }
        },
    );
    let at = |row: usize| buffers.get(row).copied();
    if let Some((row, cell)) = answer.focused {
        menu::aim(context, at(row), cell);
    }
    menu::show(&ui, context, place, answer.hovered.and_then(at));
    if let Some(buffer) = answer.hovered.and_then(at) {
        context.shared.hover(buffer);
    }
    if let Some(buffer) = answer.chosen.and_then(at) {
        context.shared.select(buffer);
        (state.followed, state.selected) = (Some(buffer), answer.chosen);
    }
    if let Some(buffer) = answer.opened.and_then(at) {
        context.shared.select(buffer);
        context.go("timeline");
    }
}

/// A life as a part of the program, with a step marked in it.
fn life(life: Option<(u32, u32)>, points: u32, step: u32, slot: Slot) -> Cell {
    let share = |step: f64| (step / f64::from(points.max(1))) as f32;
    let Some((first, last)) = life else { return Cell::text("\u{2013}").quiet() };
    let (from, to) = (share(f64::from(first)), share(f64::from(last) + 1.0));
    Cell::span(CellSpan { from, to, is_throughout: false, mark: Some(share(f64::from(step) + 0.5)), slot })
}

/// `file:line` of a buffer's innermost frame.
fn source_of(program: &Program, buffer: BufferId) -> String {
    let source = program.buffers.instruction_of(buffer).and_then(|i| program.text.metadata(i).source);
    source.map_or_else(String::new, |line| {
        let file = line.file.rsplit(['/', '\\']).next().unwrap_or(&line.file);
        format!("{file}:{}", line.line)
    })
}
