//! Timeline: live bytes, the memory map and buffer lifetimes over a common axis of program order.

mod curve;
mod groups;
mod input;
mod lifetime_rows;
mod lifetimes;
mod map;
mod minimap;
mod pins;
mod program_band;
mod range;
mod state;
mod unwritten;

use std::sync::Arc;

use egui::{Pos2, Rect, Ui, Vec2};

use self::groups::Groups;
use self::state::{Asked, Bands, Drawn, FrameLayout, State};
use crate::analysis::stacked_curves::{Grouping, StackedCurves};

use crate::model::{Bytes, percent};
use crate::ui::chart::legend::Sign;
use crate::ui::chart::{self, Cursor, Fit, Span, Strength, XAxis};
use crate::ui::part::{Find, KeyHelp, View, ViewContext, class_legend, empty, facts, menu};
use crate::ui::session::Document;
use crate::ui::widget::controls;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Slot, Theme, size};
use crate::ui::work::SpaceData;

/// The view.
pub const VIEW: View = View {
    applies: Document::has_times,
    section: Some(range::section),
    find: Find::Dim,
    shows_buffers: true,
    keys: KEYS,
    ..View::new("timeline", "Timeline", show).with_digit(3)
};

const KEYS: &[KeyHelp] = &[
    ("wheel, W S", "Timeline: zoom at the pointer"),
    ("drag, A D", "Timeline: move"),
    ("Alt wheel", "Memory map: zoom the addresses"),
    ("double click", "Timeline: fit a buffer, or all"),
    ("F", "Timeline: focus the selected buffer"),
    ("0", "Timeline: show the whole program, up to capacity"),
    ("Shift 0", "Timeline: fit the bytes to what is visible"),
    (". ,", "Next and previous allocation"),
    ("click the curve", "Choose a step for every view"),
    ("drag on the axis", "Measure a range of steps, in Details"),
    ("Shift drag", "Measure a range of steps"),
    ("[ ]", "Measure from the chosen step, or up to it"),
    ("wheel over lifetimes", "Scroll the rows; with Ctrl, zoom"),
];

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
    let head =
        Rect::from_min_size(Pos2::new(full.left() + 16.0, full.top() + 50.0), Vec2::new(full.width() - 32.0, 26.0));
    let has_head = full.height() >= crate::ui::part::facts::LEAST_WITH_HEADLINE;
    if has_head && let Some((words, remark)) = answer(context, &data) {
        facts::headline(ui, theme, head, &words, &remark);
    }
    let legend_top = if has_head { head.top() + facts::HEADLINE } else { full.top() + 48.0 };
    let legend_rect =
        Rect::from_min_size(Pos2::new(full.left() + 16.0, legend_top), Vec2::new(full.width() - 32.0, 20.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(legend_rect).id_salt("legend"));
    legends(&mut child, context, &groups);
    let whole = Span::new(0.0, f64::from(data.map.points.max(1)));
    let x = context.shared.range.map_or(whole, |(lo, hi)| Span::new(lo, hi).kept_in(whole));
    let left = full.left() + chart::LEFT;
    let right = full.right() - if context.capacity().is_some() { chart::RIGHT } else { chart::RIGHT_PLAIN };
    let top = legend_rect.bottom() + 14.0;
    let bottom = full.bottom() - 12.0;
    let mini_height = if bottom - top > 420.0 { 46.0 } else { 0.0 };
    let bands = Arc::clone(state.program_bands.get_or_insert_with(|| program_band::bands(context, &data).into()));
    let bands_height = bands.len() as f32 * program_band::HEIGHT;
    let fixed = 24.0 + UNDER_CURVE + bands_height + if mini_height > 0.0 { mini_height + 12.0 } else { 0.0 };
    let free = (bottom - top - fixed).max(80.0);
    let curve_rect = Rect::from_min_max(Pos2::new(left, top), Pos2::new(right, top + free * 0.32));
    let band_top = curve_rect.bottom() + UNDER_CURVE;
    let axis_top = band_top + bands_height;
    let below = Rect::from_min_max(
        Pos2::new(left, axis_top + AXIS),
        Pos2::new(right, bottom - if mini_height > 0.0 { mini_height + 12.0 } else { 0.0 }),
    );
    if below.width() < 40.0 || below.height() < 20.0 {
        return;
    }
    let (map_rect, lifetimes_rect) = divide(below, state.bands);
    let axis_rect = Rect::from_min_max(Pos2::new(left, axis_top), Pos2::new(right, axis_top + AXIS));
    let mut layout =
        FrameLayout { curve: curve_rect, map: map_rect, lifetimes: lifetimes_rect, axis: axis_rect, x, whole };
    input::take(ui, context, state, &data, &mut layout, asked);
    let drawn = Drawn { data: &data, groups: &groups, layout: &layout };
    state.limit_flags.clear();
    curve::show(ui, context, state, drawn);
    program_band::show(ui, context, &bands, &layout, band_top);
    if state.bands.has_map() {
        let how = "height is size, position is address: heap above; arguments, constants and results below";
        let at = Pos2::new(full.left() + 16.0, map_rect.top() - 11.0);
        chart::legend::title(ui, theme, at, right, ("Memory map", how));
        map::show(ui, context, state, drawn);
    }
    if state.bands.has_lifetimes() {
        lifetimes::show(ui, context, &mut state.lifetimes, drawn);
    }
    range::show(ui, context, state, drawn);
    // Only now is it known what the pointer is on in any of the bands.
    let flags = flags(ui, context, &data, &layout);
    let taken: Vec<_> = flags.iter().filter_map(|flag| Some(flag.place?.x_range())).collect();
    XAxis::Steps(data.map.axis.unit()).draw_beside(ui, theme, &layout.window(), axis_top, &taken);
    cursors(ui, theme, &flags, &layout, &state.limit_flags);
    let addresses = map::addresses(context, &data).visible(state.addresses);
    pins::show(ui, context, &data, &layout, addresses);
    let plots = Rect::from_min_max(curve_rect.min, below.max);
    menu::show(ui, context, plots, context.shared.hovered);
    if mini_height > 0.0 {
        let rect = Rect::from_min_max(Pos2::new(left, bottom - mini_height), Pos2::new(right, bottom));
        minimap::show(ui, context, state, &data, &layout, rect);
    }
}

/// The bytes at the step of the views, in words, with a remark.
fn answer(context: &ViewContext<'_>, data: &SpaceData) -> Option<(String, String)> {
    let space = context.scene()?.space;
    let (step, unit, peak) = (context.step(), data.map.axis.unit(), space.peak());
    if context.shared.step.is_none() {
        let words = format!("Peak {} at {unit} {step}", context.short(peak));
        let share = percent(peak.0, space.xprof.allocated.0);
        return Some((words, format!("of {}; {share} of what is allocated", data.map.steps())));
    }
    let bytes = Bytes(data.by_class.curves.total.at(step));
    let words = format!("{} reserved at {unit} {step}", context.short(bytes));
    Some((words, format!("{} of the peak", percent(bytes.0, peak.0))))
}

/// Width from which the buttons show their keys, and what all but the first choice take with and without them.
const ROOMY: f32 = 860.0;
const TOOLS: f32 = 640.0;
const NARROW_TOOLS: f32 = 500.0;
/// What the buttons beside the two choices take without their keys.
const OTHER_TOOLS: f32 = 310.0;
/// Room for the numbers of the steps.
const AXIS: f32 = 24.0;
/// Room under the curve, in which the lowest number of its axis ends.
const UNDER_CURVE: f32 = 8.0;
/// Room for the title of a band.
const TITLE: f32 = 22.0;

/// Divides the space under the axis between memory map and lifetimes.
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

fn tools(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) -> Option<Asked> {
    let theme = context.theme;
    let mut asked = None;
    ui.horizontal(|ui| {
        let words: Vec<&str> = Grouping::ALL.iter().map(|grouping| grouping.name()).collect();
        let chosen = Grouping::ALL.iter().position(|grouping| *grouping == state.grouping).unwrap_or(0);
        let width = ui.available_width();
        // In a narrow view the keys are left to the sheet of keys.
        let key = |key: &'static str| if width < ROOMY { "" } else { key };
        let others = if width < ROOMY { NARROW_TOOLS } else { TOOLS };
        if let Some(i) = controls::choice(ui, "Group", &words, chosen, width - others, theme) {
            state.grouping = Grouping::ALL[i];
        }
        let chosen = Bands::ALL.iter().position(|bands| *bands == state.bands).unwrap_or(0);
        let room = ui.available_width() - OTHER_TOOLS;
        if let Some(i) = controls::choice(ui, "Show", &["Memory map", "Lifetimes", "Both"], chosen, room, theme) {
            state.bands = Bands::ALL[i];
        }
        if state.bands.has_map()
            && controls::toggle_button(ui, "Padding", "", controls::On(state.show_padding), theme).clicked()
        {
            state.show_padding = !state.show_padding;
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if controls::button(ui, "Peak", key("P"), theme).clicked() {
                context.shared.choose_step(None);
                context.shared.select(None);
            }
            if controls::button(ui, "All", key("0"), theme).clicked() {
                asked = Some(Asked::All);
            }
            let fits = Fit::of(ui.ctx()) == Fit::Visible;
            let fit = controls::toggle_button(ui, "Fit", key("Shift 0"), controls::On(fits), theme)
                .on_hover_text("Bytes reach as far as what is visible, not up to capacity");
            if fit.clicked() {
                if fits { Fit::All } else { Fit::Visible }.set(ui.ctx());
            }
            let can = context.shared.selected.is_some();
            if can && controls::button(ui, "Focus", key("F"), theme).clicked() {
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
        let stacked = groups.stacked();
        let entries: Vec<(&str, Slot, u64)> = stacked
            .names
            .iter()
            .zip(groups.slots())
            .zip(&stacked.most)
            .filter(|(_, most)| **most > 0)
            .map(|((name, slot), most)| (name.as_str(), *slot, *most))
            .collect();
        class_legend::fitting(ui, theme, &entries, if groups.are_classes() { 52.0 } else { 0.0 });
        if groups.are_classes() {
            class_legend::mark(ui, theme);
            ui.add_space(6.0);
        }
        let has_line = context.scene().is_some_and(|scene| curve::shows_line(scene.space));
        if has_line {
            chart::legend::entry(ui, theme, Sign::Line, "without padding");
            ui.add_space(6.0);
        }
        chart::legend::paler(ui, theme);
    });
}

/// Marks the chosen and the hovered step across all bands, with a flag on the axis; the lines end at the flag of a limit.
fn cursors(ui: &Ui, theme: &Theme, flags: &[Flag], layout: &FrameLayout, limits: &[Rect]) {
    let axis = layout.window();
    for flag in flags {
        let cursor = match flag.strength {
            Strength::Pointed => Cursor::pointed(flag.at, theme),
            Strength::Chosen => Cursor::chosen(flag.at, theme),
        };
        let x = axis.x_of(flag.at);
        let bands = layout.bands().map(|band| {
            let crossed = limits.iter().find(|limit| band.intersects(**limit) && limit.x_range().contains(x));
            match crossed {
                Some(limit) if limit.top() <= band.center().y => band.with_min_y(limit.bottom()),
                Some(limit) => band.with_max_y(limit.top()),
                None => band,
            }
        });
        cursor.draw(ui.painter(), &axis, &bands);
        if let Some(place) = flag.place {
            chart::flag(ui, theme, place, &flag.words, flag.strength);
        }
    }
}

/// A step that is marked among the numbers.
struct Flag {
    at: f64,
    words: String,
    strength: Strength,
    /// Where its words stand; `None` where the step is out of sight.
    place: Option<Rect>,
}

/// The step under the pointer, and the chosen one; their words do not lie over each other.
fn flags(ui: &Ui, context: &ViewContext<'_>, data: &SpaceData, layout: &FrameLayout) -> Vec<Flag> {
    let step = context.step();
    let flag = |step: u32, words: String, strength: Strength| {
        let at = f64::from(step) + 0.5;
        let place = chart::flag_place(ui, layout.axis, layout.x_of(at), &words);
        Flag { at, words, strength, place }
    };
    let words = format!("{} {step}", data.map.axis.unit());
    let words = if context.shared.step.is_some() { words } else { format!("peak, {words}") };
    let chosen = flag(step, words, Strength::Chosen);
    let pointed = context.shared.cursor.filter(|cursor| *cursor != step).map(|step| {
        let mut pointed = flag(step, step.to_string(), Strength::Pointed);
        if let (Some(place), Some(other)) = (pointed.place, chosen.place) {
            pointed.place = Some(chart::flag_beside(layout.axis, place, other));
        }
        pointed
    });
    pointed.into_iter().chain([chosen]).collect()
}
