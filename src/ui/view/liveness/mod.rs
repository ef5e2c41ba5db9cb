//! Liveness: live bytes over the steps of an IPU program, always-live bytes at the bottom; steps and program tree.

mod curve;
mod tables;

use egui::{Pos2, Rect, Ui, Vec2};

use crate::analysis::tiles::{TileAnalysis, step_bytes};
use crate::model::{Bytes, NO_ROW, TileMemory, TileProgram};
use crate::ui::chart::{self, Span};
use crate::ui::part::{Find, KeyHelp, View, ViewContext, tile_card};
use crate::ui::session::{Document, Locals, Shared};
use crate::ui::widget::controls::{self, cut_label, legend};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::table::TableState;
use crate::ui::widget::theme::{Slot, size};

/// The view.
pub const VIEW: View = View {
    applies,
    card: Some(tile_card::show),
    find: Find::Field(focus_filter),
    keys: KEYS,
    ..View::new("liveness", "Liveness", show).with_digit(5)
};

fn applies(document: &Document) -> bool {
    document.profile.tiles.as_ref().is_some_and(|tiles| !tiles.liveness.steps.is_empty())
}

const KEYS: &[KeyHelp] = &[
    ("click, shift click", "Liveness: choose a step, compare with another"),
    ("wheel, W S, drag, A D", "Liveness: zoom at the pointer, move; 0 shows all steps"),
];

const ALWAYS: Slot = Slot::Weight;
const REST: Slot = Slot::Activation;

#[derive(Default)]
struct State {
    of: u64,
    bytes: Vec<u64>,
    /// Steps in table order.
    rows: Vec<u32>,
    rows_of: Option<(String, (usize, bool))>,
    sort: (usize, bool),
    filter: String,
    /// The visible steps; `None` for all.
    range: Option<Span>,
    without_always: bool,
    /// Whether the filter field takes the focus.
    focus: bool,
    curve: CachedRaster,
    steps: TableState,
    tree: TableState,
    /// Nodes of the tree whose children are hidden.
    folded: std::collections::BTreeSet<u32>,
}

/// Moves the focus to the filter field.
fn focus_filter(shared: &mut Shared, locals: &mut Locals) {
    shared.show_view(VIEW.id);
    locals.get::<State>().focus = true;
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let document = context.document.clone();
    let (Some(memory), Some(tiles)) = (&document.profile.tiles, &document.analysis.tiles) else { return };
    let mut state = context.locals.take::<State>();
    let of = document.id();
    if state.of != of {
        let focus = state.focus;
        state = State { of, bytes: step_bytes(memory).collect(), sort: (3, true), focus, ..State::default() };
    }
    let wanted = (state.filter.clone(), state.sort);
    if state.rows_of.as_ref() != Some(&wanted) {
        state.rows = rows(memory, &state);
        state.rows_of = Some(wanted);
    }
    draw(ui, context, memory, tiles, &mut state);
    context.locals.put(state);
}

/// Steps that match the filter, sorted.
fn rows(memory: &TileMemory, state: &State) -> Vec<u32> {
    let filter = state.filter.to_lowercase();
    let mut rows: Vec<u32> = (0..state.bytes.len() as u32)
        .filter(|&step| {
            let kind = || program(memory, step).is_some_and(|program| program.kind.to_lowercase().contains(&filter));
            filter.is_empty() || memory.step_name(step as usize).to_lowercase().contains(&filter) || kind()
        })
        .collect();
    let (column, down) = state.sort;
    match column {
        1 => rows.sort_by_key(|&step| memory.step_name(step as usize).to_owned()),
        2 => rows.sort_by_key(|&step| program(memory, step).map_or("", |program| program.kind.as_str())),
        3 | 4 => rows.sort_by_key(|&step| (state.bytes[step as usize], std::cmp::Reverse(step))),
        _ => {}
    }
    if down {
        rows.reverse();
    }
    rows
}

/// The program of a step.
fn program(memory: &TileMemory, step: u32) -> Option<&TileProgram> {
    let node = memory.liveness.nodes.get(*memory.liveness.steps.get(step as usize)? as usize)?;
    memory.programs.get(node.program as usize).filter(|_| node.program != NO_ROW)
}

fn draw(ui: &mut Ui, context: &mut ViewContext<'_>, memory: &TileMemory, tiles: &TileAnalysis, state: &mut State) {
    let full = ui.max_rect().shrink2(Vec2::new(20.0, 12.0));
    let head = Rect::from_min_size(full.min, Vec2::new(full.width(), 74.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(head).id_salt("liveness head"));
    headline(&mut child, context, memory, tiles, state);
    let right = if tiles.limit.is_some() { chart::RIGHT } else { chart::RIGHT_PLAIN };
    let plot = Rect::from_min_max(
        Pos2::new(full.left() + chart::LEFT, head.bottom() + 8.0),
        Pos2::new(full.right() - right, head.bottom() + 8.0 + (full.height() - 110.0) * 0.46),
    );
    if plot.height() > 40.0 && plot.width() > 80.0 {
        curve::show(ui, context, memory, tiles, state, plot);
    }
    let below = Rect::from_min_max(Pos2::new(full.left(), plot.bottom() + 30.0), full.max);
    if below.height() < 60.0 {
        return;
    }
    let split = below.left() + below.width() * 0.6;
    let left = Rect::from_min_max(below.min, Pos2::new(split - 10.0, below.bottom()));
    let right = Rect::from_min_max(Pos2::new(split + 10.0, below.top()), below.max);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(left).id_salt("liveness steps"));
    tables::steps(&mut child, context, memory, tiles, state);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(right).id_salt("liveness tree"));
    tables::tree(&mut child, context, memory, state);
}

fn headline(ui: &mut Ui, context: &mut ViewContext<'_>, memory: &TileMemory, tiles: &TileAnalysis, state: &mut State) {
    let theme = context.theme;
    let Some(peak) = tiles.peak else { return };
    let whole = peak.bytes.saturating_add(tiles.always_live.unwrap_or(0));
    ui.horizontal(|ui| {
        let words = format!("{} live at the peak", context.short(Bytes(whole)));
        ui.label(text(words, size::HEADLINE, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        let name = memory.step_name(peak.step as usize);
        let words = format!("step {} of {}  {name}", peak.step, state.bytes.len());
        let room = ui.available_width();
        cut_label(ui, &words, Weight::Medium.at(size::LEAD), theme.text, room);
    });
    let note = match (memory.liveness.names_are_guessed, tiles.always_live.is_some()) {
        (true, _) => "Step names are a guess: steps are matched to programs by order. Steps of one replica.",
        (false, true) => "Bytes over all tiles of one replica.",
        (false, false) => "Always-live bytes are not known, so the curve starts at 0.",
    };
    let room = ui.available_width();
    cut_label(ui, note, Weight::Regular.at(size::SMALL), theme.text3, room);
    ui.horizontal(|ui| {
        if tiles.always_live.is_some() && legend(ui, ALWAYS, "Always live", theme).clicked() {
            state.without_always = !state.without_always;
        }
        legend(ui, REST, "Not always live", theme);
        ui.add_space(8.0);
        if tiles.always_live.is_some()
            && controls::toggle_button(ui, "Include always live", "", controls::On(!state.without_always), theme)
                .clicked()
        {
            state.without_always = !state.without_always;
        }
        if controls::button(ui, "Peak", "P", theme).clicked() {
            context.shared.choose_step(None);
            context.shared.compare_none();
        }
        if state.range.is_some() && controls::button(ui, "All steps", "0", theme).clicked() {
            state.range = None;
        }
        if state.bytes.len() as f32 > ui.max_rect().width() {
            chart::legend::paler(ui, theme);
        }
    });
}

/// Chooses a step, or with Shift the one to compare with.
fn choose(ui: &Ui, context: &mut ViewContext<'_>, step: u32) {
    if ui.input(|input| input.modifiers.shift) {
        context.shared.compare_step(step);
    } else {
        context.shared.choose_step(step);
        context.shared.compare_none();
    }
}
