//! Timeline: live bytes, the memory map and the lifetimes of buffers over one axis of program order.

mod curve;
mod groups;
mod input;
mod lifetimes;
mod map;
mod minimap;
mod pins;
mod program_band;
mod range;

use std::collections::HashMap;
use std::sync::Arc;

use egui::{Align2, Pos2, Rect, Stroke, Ui, Vec2};

use self::groups::Groups;
use crate::analysis::stacked_curves::{Grouping, StackedCurves};
use crate::model::{BufferId, ComputationId, MemorySpace, thousands};
use crate::ui::part::{Find, KeyHelp, View, ViewContext, class_legend, empty, menu};
use crate::ui::session::Document;
use crate::ui::widget::axis::{Span, decimal_ticks};
use crate::ui::widget::controls::{self, legend, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};
use crate::ui::work::{DeferredPicture, SpaceData};

/// The view.
pub const VIEW: View = View {
    applies: Document::has_times,
    find: Find::Dim,
    shows_buffers: true,
    keys: KEYS,
    ..View::new("timeline", "Timeline", show)
};

const KEYS: &[KeyHelp] = &[
    ("wheel, W S", "Timeline: zoom at the pointer"),
    ("drag, A D", "Timeline: move"),
    ("Alt wheel", "Memory map: zoom the addresses"),
    ("double click", "Timeline: fit a buffer, or all"),
    ("F", "Timeline: focus the selected buffer"),
    ("0", "Timeline: all of the program"),
    (". ,", "Next and previous allocation"),
    ("click above", "Pin a step for every view"),
    ("drag on the axis", "Measure a range of steps"),
    ("Shift drag", "Measure a range of steps"),
    ("[ ]", "Measure from the chosen step, up to it"),
    ("wheel over lifetimes", "Scroll the rows; with Ctrl zoom"),
];

/// Boxes up to which pictures are drawn in the frame that needs them; more are drawn on a worker.
const AT_ONCE: usize = 3000;

/// Words on the left of the plots.
const GUTTER: f32 = 72.0;

/// Which bands stand under the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Bands {
    #[default]
    Map,
    Lifetimes,
    Both,
}

impl Bands {
    const ALL: [Self; 3] = [Self::Map, Self::Lifetimes, Self::Both];

    const fn has_map(self) -> bool {
        !matches!(self, Self::Lifetimes)
    }

    const fn has_lifetimes(self) -> bool {
        !matches!(self, Self::Map)
    }
}

/// Computations by depth: (computation, first point, one past the last).
type Calls = Vec<Vec<(ComputationId, u32, u32)>>;

/// What belongs to this view of one document.
#[derive(Default)]
pub struct State {
    grouping: Grouping,
    bands: Bands,
    /// Visible addresses; `None` for all.
    addresses: Option<Span>,
    show_padding: bool,
    curve: DeferredPicture<()>,
    map: DeferredPicture<Vec<u32>>,
    mini: DeferredPicture<()>,
    lifetimes: lifetimes::State,
    measure: range::State,
    labels: HashMap<BufferId, String>,
    calls: Option<Arc<Calls>>,
    /// Program and memory space the rest belongs to.
    of: Option<(usize, MemorySpace)>,
    dragging_map: bool,
}

/// Where things are in this frame.
#[derive(Clone, Copy)]
struct Places {
    curve: Rect,
    /// The memory map; of no height where it is not shown.
    map: Rect,
    /// The lifetimes; of no height where they are not shown.
    lifetimes: Rect,
    /// Numbers of the steps.
    axis: Rect,
    /// Visible points of time.
    x: Span,
    /// All points.
    whole: Span,
}

impl Places {
    /// The curve with the calls under it, the map, the rows of lifetimes: what lines through time cross.
    fn bands(&self) -> [Rect; 3] {
        let curve = Rect::from_min_max(self.curve.min, Pos2::new(self.curve.right(), self.axis.top()));
        [curve, self.map, lifetimes::rows_of(self.lifetimes)]
    }

    fn x_of(&self, point: f64) -> f32 {
        self.curve.left() + (self.x.share(point) * f64::from(self.curve.width())) as f32
    }

    fn point_at(&self, x: f32) -> f64 {
        self.x.at(f64::from((x - self.curve.left()) / self.curve.width()))
    }
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    if context.scene().is_none() {
        return empty::without_memory(ui, context);
    }
    let mut state = context.locals.take::<State>();
    let of = (context.shared.program, context.shared.color);
    if state.of != Some(of) {
        state = State {
            grouping: state.grouping,
            bands: state.bands,
            show_padding: state.show_padding,
            of: Some(of),
            ..State::default()
        };
    }
    draw(ui, context, &mut state);
    context.locals.put(state);
}

fn draw(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) {
    let theme = context.theme;
    let full = ui.max_rect();
    let tools_rect = Rect::from_min_size(full.min + Vec2::new(16.0, 9.0), Vec2::new(full.width() - 32.0, 26.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(tools_rect).id_salt("tools"));
    let asked = tools(&mut child, context, state);
    controls::hairline(ui, Rect::from_min_size(full.min, Vec2::new(full.width(), 44.0)), theme.line);
    let Some(data) = context.data() else { return };
    let stacked: Option<Arc<StackedCurves>> = if state.grouping == Grouping::Class {
        None
    } else {
        let (program, color) = (context.shared.program, context.shared.color);
        context.derived.stacked_curves(context.work, context.document, program, color, state.grouping)
    };
    let groups = Groups::new(&data, stacked, state.grouping);
    let legend_rect =
        Rect::from_min_size(Pos2::new(full.left() + 16.0, full.top() + 48.0), Vec2::new(full.width() - 32.0, 20.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(legend_rect).id_salt("legend"));
    legends(&mut child, context, &groups);
    let whole = Span::new(0.0, f64::from(data.map.points.max(1)));
    let x = context.shared.range.map_or(whole, |(lo, hi)| Span::new(lo, hi).kept_in(whole));
    let left = full.left() + GUTTER;
    let right = full.right() - 14.0;
    let top = legend_rect.bottom() + 14.0;
    let bottom = full.bottom() - 12.0;
    let mini_height = if bottom - top > 420.0 { 46.0 } else { 0.0 };
    let calls = Arc::clone(state.calls.get_or_insert_with(|| Arc::new(program_band::spans(context))));
    let fixed = 24.0 + calls.len() as f32 * 18.0 + if mini_height > 0.0 { mini_height + 12.0 } else { 0.0 };
    let free = (bottom - top - fixed).max(80.0);
    let curve_rect = Rect::from_min_max(Pos2::new(left, top), Pos2::new(right, top + free * 0.32));
    let band_top = curve_rect.bottom() + 2.0;
    let axis_top = band_top + calls.len() as f32 * 18.0;
    let below = Rect::from_min_max(
        Pos2::new(left, axis_top + AXIS),
        Pos2::new(right, bottom - if mini_height > 0.0 { mini_height + 12.0 } else { 0.0 }),
    );
    if below.width() < 40.0 || below.height() < 20.0 {
        return;
    }
    let (map_rect, lifetimes_rect) = divide(below, state.bands);
    let axis_rect = Rect::from_min_max(Pos2::new(left, axis_top), Pos2::new(right, axis_top + AXIS));
    let mut places = Places { curve: curve_rect, map: map_rect, lifetimes: lifetimes_rect, axis: axis_rect, x, whole };
    input::take(ui, context, state, &data, &mut places, asked);
    curve::show(ui, context, state, &groups, &data, &places);
    program_band::show(ui, context, &calls, &places, band_top);
    axis(ui, theme, &data, &places);
    if state.bands.has_map() {
        let how = "height is size, place is address: arguments, constants and results below, the heap above them";
        band_title(ui, theme, map_rect, "Memory map", how);
        map::show(ui, context, state, &data, &groups, &places);
    }
    if state.bands.has_lifetimes() {
        lifetimes::show(ui, context, &mut state.lifetimes, &data, &groups, &places);
    }
    range::show(ui, context, state, &data, &groups, &places);
    cursor(ui, context, &data, &places);
    let whole_addresses = map::whole_addresses(context, &data);
    let addresses = state.addresses.map_or(whole_addresses, |span| span.kept_in(whole_addresses));
    pins::show(ui, context, &data, &places, addresses);
    let plots = Rect::from_min_max(curve_rect.min, below.max);
    menu::show(ui, context, plots, context.shared.hovered);
    if mini_height > 0.0 {
        let rect = Rect::from_min_max(Pos2::new(left, bottom - mini_height), Pos2::new(right, bottom));
        minimap::show(ui, context, state, &data, &places, rect);
    }
}

/// Room for the numbers of the steps.
const AXIS: f32 = 24.0;
/// Room for the title of a band.
const TITLE: f32 = 22.0;

/// Memory map and lifetimes share what room there is under the axis.
fn divide(below: Rect, bands: Bands) -> (Rect, Rect) {
    let (top, bottom) = (below.top() + TITLE, below.bottom());
    let nothing = Rect::from_min_max(Pos2::new(below.left(), bottom), Pos2::new(below.right(), bottom));
    let all = Rect::from_min_max(Pos2::new(below.left(), top), below.max);
    match bands {
        Bands::Map => (all, nothing),
        Bands::Lifetimes => (nothing, all),
        Bands::Both => {
            let middle = top + (bottom - top - TITLE) * 0.55;
            let map = Rect::from_min_max(all.min, Pos2::new(all.right(), middle));
            (map, Rect::from_min_max(Pos2::new(all.left(), middle + TITLE), all.max))
        }
    }
}

/// Title over a band, with a remark where there is room for it.
fn band_title(ui: &Ui, theme: &Theme, band: Rect, title: &str, how: &str) {
    let at = Pos2::new(band.left() - GUTTER + 16.0, band.top() - 11.0);
    let drawn = ui.painter().text(at, Align2::LEFT_CENTER, title, Weight::SemiBold.at(size::SMALL), theme.text);
    let at = Pos2::new(drawn.right() + 12.0, at.y);
    let room = band.right() - at.x;
    controls::paint_cut(ui.painter(), at, Align2::LEFT_CENTER, how, Weight::Regular.at(size::SMALL), theme.text3, room);
}

/// What a button asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    All,
    Focus,
}

fn tools(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) -> Option<Asked> {
    let theme = context.theme;
    let mut asked = None;
    ui.horizontal(|ui| {
        let words: Vec<&str> = Grouping::ALL.iter().map(|grouping| grouping.name()).collect();
        let chosen = Grouping::ALL.iter().position(|grouping| *grouping == state.grouping).unwrap_or(0);
        if let Some(i) = segmented(ui, &words, chosen, theme) {
            state.grouping = Grouping::ALL[i];
        }
        let chosen = Bands::ALL.iter().position(|bands| *bands == state.bands).unwrap_or(0);
        if let Some(i) = segmented(ui, &["Memory map", "Lifetimes", "Both"], chosen, theme) {
            state.bands = Bands::ALL[i];
        }
        if state.bands.has_map() && controls::button(ui, "Padding", "", state.show_padding, theme).clicked() {
            state.show_padding = !state.show_padding;
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if controls::button(ui, "Peak", "P", false, theme).clicked() {
                context.shared.choose_step(None);
                context.shared.select(None);
            }
            if controls::button(ui, "All", "0", false, theme).clicked() {
                asked = Some(Asked::All);
            }
            let can = context.shared.selected.is_some();
            if can && controls::button(ui, "Focus", "F", false, theme).clicked() {
                asked = Some(Asked::Focus);
            }
        });
    });
    asked
}

fn legends(ui: &mut Ui, context: &ViewContext<'_>, groups: &Groups) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        ui.label(text("Live bytes", size::SMALL, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        for (i, (name, slot)) in groups.stacked().names.iter().zip(groups.slots()).enumerate() {
            if groups.stacked().present.get(i) == Some(&true) && ui.available_width() > 120.0 {
                legend(ui, *slot, name, theme);
                ui.add_space(6.0);
            }
        }
        if groups.are_classes() && ui.available_width() > 60.0 {
            class_legend::mark(ui, theme);
            ui.add_space(6.0);
        }
        let has_line = context.scene().is_some_and(|scene| curve::shows_line(scene.space));
        if has_line && ui.available_width() > 120.0 {
            let (rect, _) = ui.allocate_exact_size(Vec2::new(14.0, 18.0), egui::Sense::hover());
            ui.painter().hline(rect.x_range(), rect.center().y, Stroke::new(1.5, theme.ink));
            ui.label(text("without padding", size::SMALL, Weight::Regular, theme.text2));
        }
    });
}

/// Numbers of the steps.
fn axis(ui: &Ui, theme: &Theme, data: &SpaceData, places: &Places) {
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    let top = places.axis.top();
    let y = top + 11.0;
    let unit = data.map.axis.unit();
    let gutter = Pos2::new(places.axis.left() - 10.0, y);
    painter.text(gutter, Align2::RIGHT_CENTER, unit, small.clone(), theme.text2);
    for tick in decimal_ticks(places.x, (places.axis.width() / 90.0) as usize) {
        let x = places.x_of(tick + 0.5);
        if x < places.axis.left() || x > places.axis.right() - 6.0 {
            continue;
        }
        painter.vline(x.round(), top..=top + 4.0, Stroke::new(1.0, theme.line2));
        painter.text(Pos2::new(x, y + 2.0), Align2::CENTER_CENTER, thousands(tick as u64), small.clone(), theme.text2);
    }
}

/// The chosen step and the one under the pointer, through all bands.
fn cursor(ui: &Ui, context: &ViewContext<'_>, data: &SpaceData, places: &Places) {
    let theme = context.theme;
    let step = context.step();
    let line = |point: u32, width: f32, color: egui::Color32| {
        let x = places.x_of(f64::from(point) + 0.5);
        if places.curve.x_range().contains(x) {
            for band in places.bands() {
                ui.painter().vline(x, band.y_range(), Stroke::new(width, color));
            }
        }
        x
    };
    if let Some(cursor) = context.shared.cursor.filter(|cursor| *cursor != step) {
        let x = line(cursor, 1.0, theme.text3);
        flag(ui, theme, x, &thousands(cursor.into()), false, places);
    }
    let x = line(step, 1.5, theme.ink);
    let words = if context.shared.step.is_some() {
        format!("{} {}", data.map.axis.unit(), thousands(step.into()))
    } else {
        format!("peak, {} {}", data.map.axis.unit(), thousands(step.into()))
    };
    flag(ui, theme, x, &words, true, places);
}

fn flag(ui: &Ui, theme: &Theme, x: f32, words: &str, strong: bool, places: &Places) {
    let band = places.axis;
    if !band.x_range().contains(x) {
        return;
    }
    let (fill, color) = if strong { (theme.ink, theme.halo) } else { (theme.inset, theme.text) };
    let galley = ui.painter().layout_no_wrap(words.to_owned(), Weight::SemiBold.at(size::SMALL), color);
    let size = galley.size() + Vec2::new(12.0, 4.0);
    let least = band.left() + size.x / 2.0;
    let center = x.clamp(least, (band.right() - size.x / 2.0).max(least));
    let rect = Rect::from_center_size(Pos2::new(center, band.top() + 12.0), size);
    ui.painter().rect_filled(rect, 3.0, fill);
    ui.painter().galley(rect.center() - galley.size() / 2.0, galley, color);
}
