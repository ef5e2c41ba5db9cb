//! Heat map: addresses over time for every memory space of a program, the chosen one large or alone; cells are coloured
//! by occupancy, padding or age.

mod arrange;
mod by_keys;
mod legend;
mod metric;
mod panel;
mod picture;

use std::collections::HashMap;

use egui::{Align2, Pos2, Rect, Ui, Vec2};

use crate::analysis::SpaceAnalysis;
use crate::model::{Bytes, MemorySpace, percent};
use crate::ui::part::{Find, KeyHelp, View, ViewContext, empty, facts, menu};
use crate::ui::session::Document;
use crate::ui::widget::controls::{self, segmented};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::heat_legend;
use crate::ui::widget::theme::size;
use legend::Totals;
use metric::Metric;
use panel::Panel;

/// The view.
pub const VIEW: View = View {
    applies: Document::has_times,
    find: Find::Dim,
    shows_buffers: true,
    keys: KEYS,
    ..View::new("heatmap", "Heat map", show).with_digit(5)
};

const KEYS: &[KeyHelp] = &[
    ("wheel, W S, drag, A D", "Heat map: zoom at the pointer, move"),
    ("Alt wheel", "Heat map: zoom the addresses"),
    ("click", "Heat map: choose the step, select the buffer"),
    ("double click", "Heat map: show one memory space alone; reset its zoom"),
    ("Shift \u{2190} \u{2192}", "Timeline, heat map: previous step, next step"),
];

/// Maximum number of memory spaces: those with the most bytes.
const PANELS: usize = 9;

/// Height of a space's title, in points.
const TITLE: f32 = 20.0;

/// State of this view of one program.
#[derive(Default)]
struct State {
    of: (u64, usize),
    metric: Metric,
    /// The space that fills the view; `None` for all.
    zoom: Option<MemorySpace>,
    panels: HashMap<MemorySpace, panel::State>,
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    if context.scene().is_none() {
        return empty::without_memory(ui, context);
    }
    let mut state = context.locals.take::<State>();
    let of = (context.document.id(), context.shared.program);
    if state.of != of {
        state = State { of, metric: state.metric, ..State::default() };
    }
    draw(ui, context, &mut state);
    context.locals.put(state);
}

/// A memory space that is shown.
struct Space {
    color: MemorySpace,
    name: String,
    /// What is allocated in it.
    bytes: Bytes,
}

/// The spaces that are shown, sorted by colour.
fn spaces(context: &ViewContext<'_>) -> Vec<Space> {
    let Some((_, analysis)) = context.document.program(context.shared.program) else { return Vec::new() };
    let mut spaces: Vec<_> = analysis.spaces.iter().filter(|space| space.xprof.allocated.0 > 0).collect();
    spaces.sort_by_key(|space| std::cmp::Reverse(space.xprof.allocated));
    spaces.truncate(PANELS);
    spaces.sort_by_key(|space| space.color);
    let shown =
        |space: &SpaceAnalysis| Space { color: space.color, name: space.name.clone(), bytes: space.xprof.allocated };
    spaces.into_iter().map(shown).collect()
}

fn draw(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) {
    let theme = context.theme;
    let full = ui.max_rect();
    let all = spaces(context);
    let tools_rect = Rect::from_min_size(full.min + Vec2::new(16.0, 9.0), Vec2::new(full.width() - 32.0, 26.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(tools_rect).id_salt("heat tools"));
    let wants_all = tools(&mut child, context, state, all.len());
    controls::hairline(ui, Rect::from_min_size(full.min, Vec2::new(full.width(), 44.0)), theme.line);
    let shown: Vec<&Space> = match state.zoom.and_then(|zoom| all.iter().find(|space| space.color == zoom)) {
        Some(space) => vec![space],
        None => all.iter().collect(),
    };
    let head = Rect::from_min_size(full.min + Vec2::new(16.0, 50.0), Vec2::new(full.width() - 32.0, 26.0));
    let has_head = full.height() >= crate::ui::part::facts::LEAST_WITH_HEADLINE;
    if has_head && let Some((words, remark)) = answer(context) {
        facts::headline(ui, theme, head, &words, &remark);
    }
    let top = if has_head { 52.0 + facts::HEADLINE } else { 52.0 };
    let room =
        Rect::from_min_max(full.min + Vec2::new(16.0, top), full.max - Vec2::new(16.0, heat_legend::HEIGHT + 16.0));
    if room.height() < 60.0 || room.width() < 120.0 {
        return;
    }
    if shown.is_empty() {
        let words = "Nothing is allocated in any memory space of this program.";
        ui.painter().text(room.center(), Align2::CENTER_CENTER, words, Weight::Regular.at(size::BODY), theme.text2);
        return;
    }
    let places = arrange::arrange(room, &shown, context.shared.color);
    let keys = places.panels.first().map(|(space, _)| space.color);
    let mut totals = Totals::new();
    let (mut under, mut aimed) = (None, None);
    let mut zoom = arrange::names(ui, context, &places);
    for (color, name, rect) in places.panels.iter().map(|(space, rect)| (space.color, &space.name, *rect)) {
        let (program, document) = (context.shared.program, context.document);
        let Some(data) = context.derived.space(context.work, document, program, color) else {
            let words = format!("{name}: laying out\u{2026}");
            ui.painter().text(
                rect.center(),
                Align2::CENTER_CENTER,
                words,
                Weight::Regular.at(size::SMALL),
                theme.text3,
            );
            continue;
        };
        let panel = Panel {
            color,
            name,
            data: &data,
            metric: state.metric,
            rect,
            is_only: shown.len() == 1,
            has_keys: keys == Some(color),
            wants_all,
        };
        let outcome = panel.show(ui, context, state.panels.entry(color).or_default());
        if let Some(shown) = &outcome.shown {
            totals.add(shown, panel::capacity(context, color), data.map.points);
        }
        if outcome.zoom {
            zoom = Some(color);
        }
        under = under.or(outcome.under);
        aimed = aimed.or(outcome.aimed);
    }
    if let Some((buffer, place)) = aimed {
        menu::aim(context, buffer, place);
    }
    menu::show(ui, context, room, under.filter(|_| context.shared.hovered == under));
    if let Some(color) = zoom {
        state.zoom = if state.zoom.is_none() && all.len() > 1 { Some(color) } else { None };
        if state.zoom.is_some() {
            context.shared.choose(context.shared.program, color);
        }
    }
    let rect = Rect::from_min_max(Pos2::new(room.left(), room.bottom() + 8.0), full.max - Vec2::new(16.0, 8.0));
    legend::show(ui, context, state.metric, &totals, rect);
}

/// Draws the toolbar; returns whether the button to show everything was clicked.
fn tools(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, spaces: usize) -> bool {
    let theme = context.theme;
    let mut all = false;
    ui.horizontal(|ui| {
        let words: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        let chosen = Metric::ALL.iter().position(|metric| *metric == state.metric).unwrap_or(0);
        if let Some(i) = segmented(ui, &words, chosen, theme) {
            state.metric = Metric::ALL[i];
        }
        if state.zoom.is_some() && spaces > 1 && controls::button(ui, "All spaces", "", theme).clicked() {
            state.zoom = None;
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if controls::button(ui, "Peak", "P", theme).clicked() {
                context.shared.choose_step(None);
                context.shared.select(None);
            }
            all = controls::button(ui, "All", "0", theme).clicked();
        });
    });
    all
}

/// By how much the chosen space is over, and its fragmentation at the peak, in words with a remark.
fn answer(context: &ViewContext<'_>) -> Option<(String, String)> {
    let space = context.scene()?.space;
    let (allocated, peak) = (space.xprof.allocated.0, space.peak().0);
    let over = context.capacity().and_then(|capacity| Some((capacity.bytes, allocated.checked_sub(capacity.bytes.0)?)));
    if let Some((capacity, over)) = over.filter(|(_, over)| *over > 0) {
        let capacity = context.options.units.capacity(capacity);
        let words = format!("{} more than the {capacity} of {}", context.short(Bytes(over)), space.name);
        let empty = format!("{} of what is allocated is empty at the peak", context.short(Bytes(allocated - peak)));
        return Some((words, if allocated > peak { empty } else { String::new() }));
    }
    if allocated <= peak {
        return Some((format!("{}: every allocated byte is in use at the peak", space.name), String::new()));
    }
    let lost = context.short(Bytes(allocated - peak));
    let words = format!("{lost} of the allocated {} is empty at the peak", space.name);
    let share = percent(allocated - peak, allocated);
    Some((words, format!("{share} of {} allocated", context.short(Bytes(allocated)))))
}
