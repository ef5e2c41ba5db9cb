//! Timeline: live bytes above, the memory map below, over one axis of program order.

mod curve;
mod input;
mod map;
mod minimap;
mod program_band;

use std::collections::HashMap;
use std::sync::Arc;

use egui::{Align2, Pos2, Rect, Stroke, Ui, Vec2};

use super::palette;
use crate::model::{BufferId, Category, thousands};
use crate::ui::session::{Grouping, SpaceData, Spread, ViewContext};
use crate::ui::widget::axis::{Span, decimal_ticks};
use crate::ui::widget::controls::{self, legend, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::theme::{Slot, Theme, size};

/// Keys of this view, for the sheet.
pub const KEYS: &[(&str, &str)] = &[
    ("wheel, W S", "Timeline: zoom at the pointer"),
    ("drag, A D", "Timeline: move"),
    ("Alt wheel", "Memory map: zoom the addresses"),
    ("double click", "Timeline: fit a buffer, or all"),
    ("F", "Timeline: focus the selected buffer"),
    ("0", "Timeline: all of the program"),
    (". ,", "Next and previous allocation"),
    ("click above", "Pin a step for every view"),
];

/// Words on the left of the plots.
const GUTTER: f32 = 72.0;

/// What belongs to this view of one document.
#[derive(Default)]
pub struct State {
    grouping: Grouping,
    /// Visible addresses; `None` for all.
    addresses: Option<Span>,
    show_padding: bool,
    curve: CachedRaster,
    map: CachedRaster,
    mini: CachedRaster,
    labels: HashMap<BufferId, String>,
    /// Program and memory space the rest belongs to.
    of: Option<(usize, i64)>,
    /// What the last selected buffer was, to follow a selection made elsewhere.
    dragging_map: bool,
}

/// Stacked curves and colours of the chosen grouping.
struct Groups<'a> {
    spread: &'a Spread,
    slots: Vec<Slot>,
}

impl Groups<'_> {
    fn slot_of(&self, buffer: BufferId) -> Slot {
        let group = self.spread.group_of.get(buffer.index()).copied().unwrap_or(0);
        self.slots.get(group as usize).copied().unwrap_or(Slot::Temporary)
    }
}

/// Where things are in this frame.
#[derive(Clone, Copy)]
struct Places {
    curve: Rect,
    map: Rect,
    /// Visible points of time.
    x: Span,
    /// All points.
    whole: Span,
}

impl Places {
    fn x_of(&self, point: f64) -> f32 {
        self.map.left() + (self.x.share(point) * f64::from(self.map.width())) as f32
    }

    fn point_at(&self, x: f32) -> f64 {
        self.x.at(f64::from((x - self.map.left()) / self.map.width()))
    }
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = Theme::of(ui.ctx());
    if context.scene().is_none() {
        return super::empty::without_memory(ui, context, &theme);
    }
    let mut state = context.locals.take::<State>();
    let of = (context.shared.program, context.shared.color);
    if state.of != Some(of) {
        state = State { grouping: state.grouping, show_padding: state.show_padding, of: Some(of), ..State::default() };
    }
    draw(ui, context, &theme, &mut state);
    context.locals.put(state);
}

fn draw(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, state: &mut State) {
    let full = ui.max_rect();
    let tools_rect = Rect::from_min_size(full.min + Vec2::new(16.0, 9.0), Vec2::new(full.width() - 32.0, 26.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(tools_rect).id_salt("tools"));
    let asked = tools(&mut child, context, theme, state);
    controls::hairline(ui, Rect::from_min_size(full.min, Vec2::new(full.width(), 44.0)), theme.line);
    let Some(data) = context.data() else { return };
    let spread: Option<Arc<Spread>> = if state.grouping == Grouping::Category {
        None
    } else {
        let (program, color) = (context.shared.program, context.shared.color);
        context.derived.spread(context.work, context.document, &data, program, color, state.grouping)
    };
    let groups = match &spread {
        Some(spread) => {
            let slots = spread.names.iter().enumerate().map(|(i, name)| palette::slot_of_group(i, name)).collect();
            Groups { spread, slots }
        }
        None => Groups { spread: &data.by_category, slots: Category::ALL.iter().map(|c| palette::slot(*c)).collect() },
    };
    let legend_rect =
        Rect::from_min_size(Pos2::new(full.left() + 16.0, full.top() + 48.0), Vec2::new(full.width() - 32.0, 20.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(legend_rect).id_salt("legend"));
    legends(&mut child, context, theme, &groups);
    let whole = Span::new(0.0, f64::from(data.map.points.max(1)));
    let x = context.shared.range.map_or(whole, |(lo, hi)| Span::new(lo, hi).kept_in(whole));
    let left = full.left() + GUTTER;
    let right = full.right() - 14.0;
    let top = legend_rect.bottom() + 14.0;
    let bottom = full.bottom() - 12.0;
    let mini_height = if bottom - top > 420.0 { 46.0 } else { 0.0 };
    let bands = program_band::rows(context);
    let fixed = 24.0 + 22.0 + bands as f32 * 18.0 + if mini_height > 0.0 { mini_height + 12.0 } else { 0.0 };
    let free = (bottom - top - fixed).max(80.0);
    let curve_rect = Rect::from_min_max(Pos2::new(left, top), Pos2::new(right, top + free * 0.34));
    let band_top = curve_rect.bottom() + 2.0;
    let axis_top = band_top + bands as f32 * 18.0;
    let map_rect = Rect::from_min_max(
        Pos2::new(left, axis_top + 22.0 + 22.0),
        Pos2::new(right, bottom - if mini_height > 0.0 { mini_height + 12.0 } else { 0.0 }),
    );
    if map_rect.width() < 40.0 || map_rect.height() < 20.0 {
        return;
    }
    let mut places = Places { curve: curve_rect, map: map_rect, x, whole };
    input::take(ui, context, state, &data, &mut places, asked);
    curve::show(ui, context, theme, state, &data, &groups, &places);
    program_band::show(ui, context, theme, &places, band_top);
    axis(ui, context, theme, &data, &places, axis_top);
    let title = Pos2::new(full.left() + 16.0, map_rect.top() - 11.0);
    let drawn =
        ui.painter().text(title, Align2::LEFT_CENTER, "Memory map", Weight::SemiBold.at(size::SMALL), theme.text);
    let how = "height is size, place is address: arguments, constants and results below, the heap above them";
    let at = Pos2::new(drawn.right() + 12.0, title.y);
    let room = right - at.x;
    controls::paint_cut(ui.painter(), at, Align2::LEFT_CENTER, how, Weight::Regular.at(size::SMALL), theme.text3, room);
    map::show(ui, context, theme, state, &data, &groups, &places);
    cursor(ui, context, theme, &data, &places, axis_top);
    if mini_height > 0.0 {
        let rect = Rect::from_min_max(Pos2::new(left, bottom - mini_height), Pos2::new(right, bottom));
        minimap::show(ui, context, theme, state, &data, &places, rect);
    }
}

/// What a button asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    All,
    Focus,
}

fn tools(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, state: &mut State) -> Option<Asked> {
    let mut asked = None;
    ui.horizontal(|ui| {
        let words: Vec<&str> = Grouping::ALL.iter().map(|grouping| grouping.name()).collect();
        let chosen = Grouping::ALL.iter().position(|grouping| *grouping == state.grouping).unwrap_or(0);
        if let Some(i) = segmented(ui, &words, chosen, theme) {
            state.grouping = Grouping::ALL[i];
        }
        if controls::button(ui, "Padding", "", state.show_padding, theme).clicked() {
            state.show_padding = !state.show_padding;
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if controls::button(ui, "Peak", "P", false, theme).clicked() {
                context.shared.step = None;
                context.shared.selected = None;
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

fn legends(ui: &mut Ui, context: &ViewContext<'_>, theme: &Theme, groups: &Groups<'_>) {
    ui.horizontal(|ui| {
        ui.label(text("Live bytes", size::SMALL, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        for (i, (name, slot)) in groups.spread.names.iter().zip(&groups.slots).enumerate() {
            let shown =
                groups.spread.curves.groups.get(i).is_some_and(|curve| curve.changes().any(|(_, value)| value > 0));
            if shown && ui.available_width() > 120.0 {
                legend(ui, *slot, name, theme);
                ui.add_space(6.0);
            }
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
fn axis(ui: &Ui, context: &ViewContext<'_>, theme: &Theme, data: &SpaceData, places: &Places, top: f32) {
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    let y = top + 11.0;
    let unit = data.map.axis.unit();
    let gutter = Pos2::new(places.map.left() - 10.0, y);
    painter.text(gutter, Align2::RIGHT_CENTER, unit, small.clone(), theme.text2);
    for tick in decimal_ticks(places.x, (places.map.width() / 90.0) as usize) {
        let x = places.x_of(tick + 0.5);
        if x < places.map.left() || x > places.map.right() - 6.0 {
            continue;
        }
        painter.vline(x.round(), top..=top + 4.0, Stroke::new(1.0, theme.line2));
        painter.text(Pos2::new(x, y + 2.0), Align2::CENTER_CENTER, thousands(tick as u64), small.clone(), theme.text2);
    }
    let _ = context;
}

/// The chosen step and the one under the pointer, through all bands.
fn cursor(ui: &Ui, context: &ViewContext<'_>, theme: &Theme, data: &SpaceData, places: &Places, axis_top: f32) {
    let step = context.step();
    let line = |point: u32, width: f32, color: egui::Color32| {
        let x = places.x_of(f64::from(point) + 0.5);
        if places.map.x_range().contains(x) {
            ui.painter().vline(x, places.curve.top()..=places.map.bottom(), Stroke::new(width, color));
        }
        x
    };
    if let Some(cursor) = context.shared.cursor.filter(|cursor| *cursor != step) {
        let x = line(cursor, 1.0, theme.text3);
        flag(ui, theme, x, axis_top, &thousands(cursor.into()), false, places);
    }
    let x = line(step, 1.5, theme.ink);
    let words = if context.shared.step.is_some() {
        format!("{} {}", data.map.axis.unit(), thousands(step.into()))
    } else {
        format!("peak, {} {}", data.map.axis.unit(), thousands(step.into()))
    };
    flag(ui, theme, x, axis_top, &words, true, places);
}

fn flag(ui: &Ui, theme: &Theme, x: f32, top: f32, words: &str, strong: bool, places: &Places) {
    if !places.map.x_range().contains(x) {
        return;
    }
    let (fill, color) = if strong { (theme.ink, theme.halo) } else { (theme.inset, theme.text) };
    let galley = ui.painter().layout_no_wrap(words.to_owned(), Weight::SemiBold.at(size::SMALL), color);
    let size = galley.size() + Vec2::new(12.0, 4.0);
    let center = x.clamp(
        places.map.left() + size.x / 2.0,
        (places.map.right() - size.x / 2.0).max(places.map.left() + size.x / 2.0),
    );
    let rect = Rect::from_center_size(Pos2::new(center, top + 12.0), size);
    ui.painter().rect_filled(rect, 3.0, fill);
    ui.painter().galley(rect.center() - galley.size() / 2.0, galley, color);
}
