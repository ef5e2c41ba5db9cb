//! Liveness: bytes over the steps of a program, always-live beneath the rest, the capacity; steps and program tree.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, Ui, Vec2, WidgetInfo};

use crate::analysis::tiles::{TileAnalysis, step_bytes};
use crate::model::{Bytes, NO_ROW, TileMemory, UnitSystem, percent, thousands};
use crate::ui::session::{Locals, Shared, ViewContext};
use crate::ui::widget::axis::{Span, byte_ticks, decimal_ticks};
use crate::ui::widget::controls::{self, legend, paint_peak};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::stack::Stack;
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::{Slot, Theme, size};

/// Keys of this view, for the sheet.
pub const KEYS: &[(&str, &str)] = &[("click, shift click", "Liveness: choose a step, compare with another")];

const ALWAYS: Slot = Slot::Weight;
const REST: Slot = Slot::Activation;

#[derive(Default)]
struct State {
    of: usize,
    bytes: Vec<u64>,
    /// Steps in the order of the table.
    rows: Vec<u32>,
    rows_of: Option<(String, (usize, bool))>,
    sort: (usize, bool),
    filter: String,
    /// Steps compared with the chosen one.
    compare: Vec<u32>,
    without_always: bool,
    /// The filter wants the cursor.
    focus: bool,
    curve: CachedRaster,
    steps: TableState,
    tree: TableState,
    /// Nodes of the tree whose children are hidden.
    folded: std::collections::BTreeSet<u32>,
}

/// Puts the cursor into the filter of steps.
pub fn focus_filter(shared: &mut Shared, locals: &mut Locals) {
    shared.view = "liveness";
    locals.get::<State>().focus = true;
}

/// Draws the view.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = Theme::of(ui.ctx());
    let document = context.document.clone();
    let (Some(memory), Some(tiles)) = (&document.profile.tiles, &document.analysis.tiles) else { return };
    let mut state = context.locals.take::<State>();
    let of = std::sync::Arc::as_ptr(&document) as usize;
    if state.of != of {
        let focus = state.focus;
        state = State { of, bytes: step_bytes(memory).collect(), sort: (3, true), focus, ..State::default() };
    }
    let wanted = (state.filter.clone(), state.sort);
    if state.rows_of.as_ref() != Some(&wanted) {
        state.rows = rows(memory, &state);
        state.rows_of = Some(wanted);
    }
    draw(ui, context, &theme, memory, tiles, &mut state);
    context.locals.put(state);
}

/// Steps that the filter leaves, sorted.
fn rows(memory: &TileMemory, state: &State) -> Vec<u32> {
    let filter = state.filter.to_lowercase();
    let mut rows: Vec<u32> = (0..state.bytes.len() as u32)
        .filter(|&step| filter.is_empty() || memory.step_name(step as usize).to_lowercase().contains(&filter))
        .collect();
    let (column, down) = state.sort;
    match column {
        1 => rows.sort_by_key(|&step| memory.step_name(step as usize).to_owned()),
        3 | 4 => rows.sort_by_key(|&step| (state.bytes[step as usize], std::cmp::Reverse(step))),
        _ => {}
    }
    if down {
        rows.reverse();
    }
    rows
}

fn draw(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    theme: &Theme,
    memory: &TileMemory,
    tiles: &TileAnalysis,
    state: &mut State,
) {
    let full = ui.max_rect().shrink2(Vec2::new(20.0, 12.0));
    let head = Rect::from_min_size(full.min, Vec2::new(full.width(), 74.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(head).id_salt("liveness head"));
    headline(&mut child, context, theme, memory, tiles, state);
    let plot = Rect::from_min_max(
        Pos2::new(full.left() + 62.0, head.bottom() + 8.0),
        Pos2::new(full.right(), head.bottom() + 8.0 + (full.height() - 110.0) * 0.46),
    );
    if plot.height() > 40.0 && plot.width() > 80.0 {
        curve(ui, context, theme, memory, tiles, state, plot);
    }
    let below = Rect::from_min_max(Pos2::new(full.left(), plot.bottom() + 30.0), full.max);
    if below.height() < 60.0 {
        return;
    }
    let split = below.left() + below.width() * 0.6;
    let left = Rect::from_min_max(below.min, Pos2::new(split - 10.0, below.bottom()));
    let right = Rect::from_min_max(Pos2::new(split + 10.0, below.top()), below.max);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(left).id_salt("liveness steps"));
    steps(&mut child, context, theme, memory, tiles, state);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(right).id_salt("liveness tree"));
    tree(&mut child, context, theme, memory, state);
}

fn headline(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    theme: &Theme,
    memory: &TileMemory,
    tiles: &TileAnalysis,
    state: &mut State,
) {
    let Some(peak) = tiles.peak else { return };
    let whole = peak.bytes.saturating_add(tiles.always_live.unwrap_or(0));
    ui.horizontal(|ui| {
        let words = format!("{} live at the peak", context.short(Bytes(whole)));
        ui.label(text(words, size::HEADLINE, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        let name = memory.step_name(peak.step as usize);
        let words = format!("step {} of {}  {name}", thousands(peak.step.into()), thousands(state.bytes.len() as u64));
        ui.label(text(words, size::LEAD, Weight::Medium, theme.text));
    });
    let note = match (memory.liveness.names_are_guessed, tiles.always_live.is_some()) {
        (true, _) => "Names of steps are a guess: matched with the programs by their order. One replica's steps.",
        (false, true) => "Bytes over all tiles of one replica.",
        (false, false) => "What is always live is not known, so the curve begins at 0.",
    };
    ui.label(text(note, size::SMALL, Weight::Regular, theme.text3));
    ui.horizontal(|ui| {
        if tiles.always_live.is_some() && legend(ui, ALWAYS, "Always live", theme).clicked() {
            state.without_always = !state.without_always;
        }
        legend(ui, REST, "Not always live", theme);
        ui.add_space(8.0);
        if tiles.always_live.is_some()
            && controls::button(ui, "Include always live", "", !state.without_always, theme).clicked()
        {
            state.without_always = !state.without_always;
        }
        if controls::button(ui, "Peak", "P", false, theme).clicked() {
            context.shared.step = None;
            state.compare.clear();
        }
    });
}

fn curve(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    theme: &Theme,
    memory: &TileMemory,
    tiles: &TileAnalysis,
    state: &mut State,
    plot: Rect,
) {
    let always = if state.without_always { 0 } else { tiles.always_live.unwrap_or(0) };
    let bytes = std::mem::take(&mut state.bytes);
    let count = bytes.len() as u32;
    let most = bytes.iter().max().copied().unwrap_or(0).saturating_add(always);
    let capacity = tiles.limit.map(|limit| limit.saturating_mul(memory.tile_count() as u64));
    // A capacity far above would press the curve flat: then its line is left out, and said in words.
    let drawn = capacity.filter(|&capacity| capacity <= most.saturating_mul(3));
    let y = Span::new(0.0, most.max(drawn.unwrap_or(0)).max(1) as f64 * 1.08);
    let x = Span::new(0.0, f64::from(count.max(1)));
    let total = |step: u32| bytes.get(step as usize).copied().unwrap_or(0).saturating_add(always);
    let stack = Stack {
        points: count,
        highest: &|from, to| {
            (from..to.min(count)).map(|step| (total(step), step)).max_by_key(|&(b, s)| (b, std::cmp::Reverse(s)))
        },
        group: &|group, step| if group == 0 { always } else { total(step).saturating_sub(always) },
        slots: &[ALWAYS, REST],
        line: None,
        limit: drawn.map(|capacity| capacity as f64),
    };
    let key = (state.of, state.without_always, theme.dark, drawn);
    state.curve.show(ui, plot, "liveness", key, theme.panel, |raster| stack.draw(raster, x, y, theme));
    axes(ui, context, theme, plot, x, y);
    let x_of = |step: u32| plot.left() + (x.share(f64::from(step) + 0.5) * f64::from(plot.width())) as f32;
    let y_of = |bytes: u64| plot.bottom() - (y.share(bytes as f64) * f64::from(plot.height())) as f32;
    if let Some(capacity) = capacity {
        let words = format!("capacity {}", context.options.units.capacity(Bytes(capacity)));
        let at = drawn.map_or(plot.top() + 18.0, |capacity| y_of(capacity).round());
        if drawn.is_some() {
            ui.painter().hline(plot.x_range(), at, Stroke::new(2.0, theme.over));
        }
        let words = if drawn.is_some() { words } else { format!("{words}, above the picture") };
        let galley = ui.painter().layout_no_wrap(words, Weight::SemiBold.at(size::SMALL), theme.danger);
        let place = Rect::from_min_size(Pos2::new(plot.left() + 8.0, at - galley.size().y - 3.0), galley.size());
        ui.painter().rect_filled(place.expand2(Vec2::new(4.0, 1.0)), 2.0, theme.canvas.gamma_multiply(0.88));
        ui.painter().galley(place.min, galley, theme.danger);
    }
    let chosen = context.shared.step.or(tiles.peak.map(|peak| peak.step));
    for (i, step) in chosen.into_iter().chain(state.compare.iter().copied()).enumerate() {
        let color = if i == 0 { theme.ink } else { theme.accent };
        ui.painter().vline(x_of(step), plot.y_range(), Stroke::new(1.5, color));
    }
    if let Some(peak) = tiles.peak {
        let tip = Pos2::new(x_of(peak.step), y_of(total(peak.step)).max(plot.top() + 10.0));
        paint_peak(ui.painter(), tip, theme.ink);
    }
    let response = ui.interact(plot, ui.scope_id().with("liveness"), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, "Live bytes over the steps of the program"));
    if let Some(at) = response.hover_pos() {
        let step =
            (x.at(f64::from((at.x - plot.left()) / plot.width())).floor().max(0.0) as u32).min(count.saturating_sub(1));
        context.shared.cursor = Some(step);
        ui.painter().vline(x_of(step), plot.y_range(), Stroke::new(1.0, theme.text3));
        if response.clicked() {
            choose(ui, context, state, step);
        }
        let (own, all) = (total(step).saturating_sub(always), total(step));
        let name = memory.step_name(step as usize).to_owned();
        response.on_hover_ui_at_pointer(|ui| {
            ui.label(text(format!("step {}", thousands(step.into())), size::BODY, Weight::SemiBold, theme.text));
            if !name.is_empty() {
                ui.label(text(name, size::SMALL, Weight::Mono, theme.text2));
            }
            legend(ui, REST, &format!("Not always live  {}", context.short(Bytes(own))), theme);
            if always > 0 {
                legend(ui, ALWAYS, &format!("Always live  {}", context.short(Bytes(always))), theme);
                let words = format!("{} live", context.short(Bytes(all)));
                ui.label(text(words, size::BODY, Weight::Medium, theme.text));
            }
        });
    }
    state.bytes = bytes;
}

/// Chooses a step, or with shift one to compare with.
fn choose(ui: &Ui, context: &mut ViewContext<'_>, state: &mut State, step: u32) {
    if ui.input(|input| input.modifiers.shift) {
        match state.compare.iter().position(|&other| other == step) {
            Some(at) => {
                state.compare.remove(at);
            }
            None => state.compare.push(step),
        }
    } else {
        context.shared.step = Some(step);
        state.compare.clear();
    }
}

fn axes(ui: &Ui, context: &ViewContext<'_>, theme: &Theme, plot: Rect, x: Span, y: Span) {
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    let base = if context.options.units == UnitSystem::Binary { 1024.0 } else { 1000.0 };
    for tick in byte_ticks(y, (plot.height() / 40.0) as usize + 1, base) {
        let at = plot.bottom() - (y.share(tick) * f64::from(plot.height())) as f32;
        let words = context.options.units.capacity(Bytes(tick as u64));
        painter.text(Pos2::new(plot.left() - 8.0, at), Align2::RIGHT_CENTER, words, small.clone(), theme.text2);
        painter.hline(plot.x_range(), at.round(), Stroke::new(1.0, theme.line.gamma_multiply(0.5)));
    }
    for tick in decimal_ticks(x, (plot.width() / 90.0) as usize) {
        let at = plot.left() + (x.share(tick + 0.5) * f64::from(plot.width())) as f32;
        if at < plot.right() - 10.0 {
            let words = thousands(tick as u64);
            painter.text(Pos2::new(at, plot.bottom() + 3.0), Align2::CENTER_TOP, words, small.clone(), theme.text2);
        }
    }
    let at = Pos2::new(plot.left() - 8.0, plot.bottom() + 3.0);
    painter.text(at, Align2::RIGHT_TOP, "step", small, theme.text2);
    controls::hairline(ui, Rect::from_min_max(plot.min, Pos2::new(plot.right(), plot.bottom() + 1.0)), theme.line2);
}

fn steps(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    theme: &Theme,
    memory: &TileMemory,
    tiles: &TileAnalysis,
    state: &mut State,
) {
    let chosen = context.shared.step.or(tiles.peak.map(|peak| peak.step)).unwrap_or(0);
    ui.horizontal(|ui| {
        ui.label(text("Steps", size::BODY, Weight::SemiBold, theme.text));
        let field = egui::TextEdit::singleline(&mut state.filter).hint_text("filter by name").desired_width(160.0);
        let response = ui.add(field);
        response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Filter steps"));
        if std::mem::take(&mut state.focus) {
            response.request_focus();
        }
        let words = format!("{} of {}", thousands(state.rows.len() as u64), thousands(state.bytes.len() as u64));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    });
    let own = |step: u32| state.bytes.get(step as usize).copied().unwrap_or(0);
    if let Some(&other) = state.compare.last() {
        let change = i128::from(own(other)) - i128::from(own(chosen));
        let words = format!(
            "step {} against step {}: {}",
            thousands(other.into()),
            thousands(chosen.into()),
            context.options.units.signed(change)
        );
        ui.label(text(words, size::SMALL, Weight::Medium, theme.accent));
    }
    let columns = [
        Column::number("Step", 64.0),
        Column::text("Name", 160.0, 3.0),
        Column::text("Kind", 108.0, 0.0).fixed(),
        Column::number("Not always live", 168.0),
        Column::number("Runs", 56.0).fixed(),
    ];
    let most = state.bytes.iter().max().copied().unwrap_or(0).max(1);
    let rows = std::mem::take(&mut state.rows);
    let program = |step: u32| {
        let node = memory.liveness.nodes.get(*memory.liveness.steps.get(step as usize)? as usize)?;
        memory.programs.get(node.program as usize).filter(|_| node.program != NO_ROW)
    };
    let table = Table {
        columns: &columns,
        rows: rows.len(),
        selected: rows.iter().position(|&step| step == chosen),
        lit: context.shared.cursor.and_then(|step| rows.iter().position(|&other| other == step)),
        sort: Some(state.sort),
        name: "steps",
        keys: true,
    };
    let units = context.options.units;
    let bytes = &state.bytes;
    let response = table.show(
        ui,
        &mut state.steps,
        |row| format!("step {} {}", rows[row], memory.step_name(rows[row] as usize)),
        |row, column| {
            let step = rows[row];
            let here = bytes.get(step as usize).copied().unwrap_or(0);
            match column {
                0 => Cell::text(thousands(step.into())).quiet(),
                1 => Cell::mono(memory.step_name(step as usize)),
                2 => Cell::text(program(step).map_or("", |program| program.kind.as_str())).quiet(),
                3 => Cell::text(units.short(Bytes(here))).bar(here as f32 / most as f32, REST),
                _ => Cell::text(program(step).and_then(|p| p.runs).map_or_else(|| "\u{2013}".to_owned(), thousands))
                    .quiet(),
            }
        },
    );
    if let Some(column) = response.sorted {
        state.sort = if state.sort.0 == column { (column, !state.sort.1) } else { (column, column >= 3) };
    }
    if let Some(row) = response.chosen {
        choose(ui, context, state, rows[row]);
    }
    state.rows = rows;
}

fn tree(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, memory: &TileMemory, state: &mut State) {
    let liveness = &memory.liveness;
    ui.horizontal(|ui| {
        ui.label(text("Program tree", size::BODY, Weight::SemiBold, theme.text));
        ui.label(text("the most bytes live at one step below each node", size::SMALL, Weight::Regular, theme.text3));
    });
    let mut shown: Vec<u32> = Vec::new();
    let mut node = 0usize;
    while node < liveness.nodes.len() {
        shown.push(node as u32);
        let below = if state.folded.contains(&(node as u32)) { liveness.nodes[node].below } else { 0 };
        node += below as usize + 1;
    }
    let columns = [
        Column::text("Program", 160.0, 3.0).fixed(),
        Column::number("Most", 90.0).fixed(),
        Column::number("of the peak", 90.0).fixed(),
    ];
    let most_below = |node: u32| {
        let end = node as usize + liveness.nodes[node as usize].below as usize;
        liveness.nodes[node as usize..=end.min(liveness.nodes.len() - 1)].iter().map(|n| n.bytes).max().unwrap_or(0)
    };
    let peak = state.bytes.iter().max().copied().unwrap_or(0);
    let units = context.options.units;
    let chosen = context.shared.step.and_then(|step| liveness.steps.get(step as usize).copied());
    let table = Table {
        columns: &columns,
        rows: shown.len(),
        selected: chosen.and_then(|node| shown.iter().position(|&other| other == node)),
        lit: None,
        sort: None,
        name: "program tree",
        keys: false,
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
            (true, true) => "\u{203a} ",
            (true, false) => "\u{2304} ",
            _ => "  ",
        };
        format!("{}{sign}{name}", "   ".repeat(entry.depth.min(40) as usize))
    };
    let response = table.show(
        ui,
        &mut state.tree,
        |row| words(shown[row]).trim().to_owned(),
        |row, column| match column {
            0 => Cell::mono(words(shown[row])),
            1 => Cell::text(units.short(Bytes(most_below(shown[row])))),
            _ => Cell::text(percent(most_below(shown[row]), peak)).quiet(),
        },
    );
    if let Some(row) = response.chosen {
        let node = shown[row];
        if liveness.nodes[node as usize].below > 0 {
            if !state.folded.remove(&node) {
                state.folded.insert(node);
            }
        } else if let Ok(step) = liveness.steps.binary_search(&node) {
            choose(ui, context, state, step as u32);
        }
    }
}
