//! Padding: how much of the peak is padding, which shapes waste it and why, and alternatives.

mod card;
mod drawing;
mod rows;
mod scatter;

use std::sync::Arc;

use egui::{Pos2, Rect, Sense, Ui, Vec2};

use crate::analysis::Scene;
use crate::analysis::alternatives::Form;
use crate::analysis::shape_groups::ShapeGroup;
use crate::model::{BufferId, Bytes, MemorySpace, capitalised, counted, percent, thousands};
use crate::ui::part::{Find, FindKey, View, ViewContext, empty};
use crate::ui::session::Document;
use crate::ui::widget::controls::{cut_label, link, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::{CachedRaster, Hatch, RasterArea};
use crate::ui::widget::table::TableState;
use crate::ui::widget::theme::size;
use crate::ui::work::Job;

/// Minimum width for the scatter plot beside the table.
const BESIDE: f32 = 860.0;

/// Which buffers are analysed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Which {
    /// Buffers live at the step, or at the peak.
    #[default]
    Step,
    /// All buffers of the memory space.
    Program,
}

/// Program, space, step, and which buffers.
type Of = (usize, MemorySpace, Option<u32>, Which);

/// Shape groups and totals of the analysed buffers.
#[derive(Default)]
struct Found {
    groups: Vec<ShapeGroup>,
    /// Number of buffers with padding, and of their shapes.
    wasting: (usize, usize),
    buffers: usize,
    bytes: Bytes,
    waste: Bytes,
    /// The most padding at one time, and its step.
    most: (Bytes, u32),
}

impl Found {
    fn new(groups: Vec<ShapeGroup>, most: (u64, u32)) -> Self {
        let wasting = groups.iter().filter(|group| group.waste > Bytes::ZERO);
        Self {
            wasting: wasting.fold((0, 0), |(b, s), group| (b + group.buffers.len(), s + 1)),
            buffers: groups.iter().map(|group| group.buffers.len()).sum(),
            bytes: groups.iter().map(|group| group.bytes).fold(Bytes::ZERO, |sum, b| Bytes(sum.0.saturating_add(b.0))),
            waste: groups.iter().map(|group| group.waste).fold(Bytes::ZERO, |sum, b| Bytes(sum.0.saturating_add(b.0))),
            most: (Bytes(most.0), most.1),
            groups,
        }
    }
}

#[derive(Default)]
struct State {
    which: Which,
    building: Option<(Of, Job<Arc<Found>>)>,
    of: Option<Of>,
    found: Arc<Found>,
    chosen: usize,
    /// The selection that was followed last.
    followed: Option<BufferId>,
    /// Alternatives to the chosen shape.
    forms: Option<((Of, usize), Vec<Form>)>,
    table: TableState,
    bar: CachedRaster,
    /// The tiles of the current form and of the best alternative.
    tiles: [CachedRaster; 2],
    /// Which groups contain a match, and the key of that result.
    lit: (Option<(Of, FindKey)>, Vec<bool>),
}

/// The view.
pub const VIEW: View = View {
    applies: Document::has_buffers,
    find: Find::Dim,
    shows_buffers: true,
    ..View::new("padding", "Padding", show).with_digit(6)
};

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let Some(scene) = context.scene() else { return empty::without_memory(ui, context) };
    let mut state = context.locals.take::<State>();
    update(context, &mut state);
    follow_selection(context, &mut state);
    egui::Frame::new().inner_margin(egui::Margin::symmetric(24, 18)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        headline(ui, context, scene, &mut state);
        ui.add_space(10.0);
        let body = ui.available_rect_before_wrap();
        let least = 170.0f32.min(body.height() * 0.4);
        let found = Arc::clone(&state.found);
        let is_flat = found.groups.get(state.chosen).is_some_and(|group| !drawing::has_tiles(&group.node));
        let most = if is_flat { FLAT } else { (body.height() - least - 12.0).min(430.0).max(body.height() * 0.68) };
        // In a low window the card has room for one alternative at least.
        let card_height = most.min(body.height() * if body.height() < 420.0 { 0.68 } else { 0.6 });
        if let (Some(group), Some(of)) = (found.groups.get(state.chosen), state.of) {
            let rect = Rect::from_min_size(body.min, Vec2::new(body.width(), card_height));
            let key = (of, state.chosen);
            if state.forms.as_ref().is_none_or(|(of, _)| *of != key) {
                state.forms = Some((key, scene.forms(group)));
            }
            let forms = state.forms.as_ref().map_or(&[][..], |(_, forms)| forms);
            card::show(ui, context, (scene, forms), group, rect, &mut state.tiles);
        }
        let rest = Rect::from_min_max(Pos2::new(body.left(), body.top() + card_height + 12.0), body.max);
        shapes(ui, context, scene, &mut state, &found, rest);
    });
    context.locals.put(state);
}

/// Room for the choice of what is counted, and for the link to the peak beside it.
const CHOICE: f32 = 206.0;
const TO_PEAK: f32 = 90.0;
/// Height of the card of a shape without tiles to draw.
const FLAT: f32 = 196.0;

/// Starts the analysis of the shown buffers, and takes its result once it is there.
fn update(context: &mut ViewContext<'_>, state: &mut State) {
    let (program, color) = (context.shared.program, context.shared.color);
    let of: Of = (program, color, context.shared.step.filter(|_| state.which == Which::Step), state.which);
    let is_wanted = state.of != Some(of) && state.building.as_ref().is_none_or(|(building, _)| *building != of);
    if is_wanted && let Some(data) = context.data() {
        let (which, step) = (state.which, context.shared.step);
        let document = Arc::clone(context.document);
        let job = Job::start(context.work, "shapes", move || {
            let Some(scene) = document.scene(program, color) else { return Arc::default() };
            let rows = match which {
                Which::Program => scene.every_buffer(),
                Which::Step => scene.live(step),
            };
            Arc::new(Found::new(scene.shapes(&rows), data.by_class.curves.most_padding()))
        });
        state.building = Some((of, job));
    }
    if let Some((of, job)) = &mut state.building
        && let Some(found) = job.poll()
    {
        state.found = Arc::clone(found);
        state.of = Some(*of);
        state.chosen = 0;
        state.followed = None;
        state.building = None;
    }
}

/// A buffer selected elsewhere chooses its shape here.
fn follow_selection(context: &ViewContext<'_>, state: &mut State) {
    let selected = context.shared.selected;
    if selected == state.followed {
        return;
    }
    state.followed = selected;
    let groups = &state.found.groups;
    if let Some(buffer) = selected
        && !groups.get(state.chosen).is_some_and(|group| group.buffers.contains(&buffer))
        && let Some(row) = groups.iter().position(|group| group.buffers.contains(&buffer))
    {
        state.chosen = row;
        state.table.reveal = Some(row);
    }
}

fn headline(ui: &mut Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, state: &mut State) {
    let theme = context.theme;
    let at_peak = context.shared.step.is_none();
    let is_listing = scene.program.is_listing;
    let step = context.step().to_string();
    let found = Arc::clone(&state.found);
    let (waste, whole) = match state.which {
        Which::Step if at_peak => (scene.space.at_peak.padding, scene.space.peak()),
        // Buffers that share memory count once in the reserved bytes.
        Which::Step => {
            let reserved = scene.space.occupancy.as_ref().map(|o| Bytes(o.reserved.at(context.step())));
            (found.waste, reserved.unwrap_or(found.bytes))
        }
        Which::Program => (found.waste, found.bytes),
    };
    ui.horizontal(|ui| {
        ui.label(text(capitalised(&percent(waste.0, whole.0)), size::VERDICT, Weight::SemiBold, theme.text));
        let of = match state.which {
            _ if is_listing => "of what is listed is padding",
            Which::Step if at_peak => "of the peak is padding",
            Which::Step => "of what is reserved here is padding",
            Which::Program => "of all buffers is padding",
        };
        let room = ui.available_width() - CHOICE - if at_peak { 0.0 } else { TO_PEAK };
        let laid = ui.painter().layout_no_wrap(of.to_owned(), Weight::Medium.at(size::HEADLINE), theme.text);
        // The sentence below says of what.
        let of = if laid.size().x > room { "is padding" } else { of };
        cut_label(ui, of, Weight::Medium.at(size::HEADLINE), theme.text, room);
        if is_listing {
            return;
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let here = if at_peak { "At the peak".to_owned() } else { format!("At step {step}") };
            let chosen = usize::from(state.which == Which::Program);
            if let Some(i) = segmented(ui, &[here.as_str(), "Whole program"], chosen, theme) {
                state.which = if i == 0 { Which::Step } else { Which::Program };
            }
            if !at_peak && link(ui, "to the peak", theme).clicked() {
                context.shared.choose_step(None);
            }
        });
    });
    let wasting = match found.wasting {
        (0, _) => "no buffer has padding".to_owned(),
        (1, _) => "1 buffer has padding".to_owned(),
        (buffers, shapes) => {
            format!("{} buffers of {} have padding", thousands(buffers as u64), counted(shapes as u64, "shape"))
        }
    };
    let amount = format!("{} of {}", context.short(waste), context.short(whole));
    let sentence = match state.which {
        _ if is_listing => format!("{amount} listed in the message hold no data: {wasting}."),
        Which::Step if at_peak => format!("{amount} at the peak, step {step}, hold no data: {wasting}."),
        Which::Step => format!("{amount} reserved at step {step} hold no data: {wasting}."),
        Which::Program => format!(
            "{amount} in {} buffers hold no data: {wasting}. The most at one time is {}, at step {}.",
            thousands(found.buffers as u64),
            context.short(found.most.0),
            found.most.1
        ),
    };
    ui.add(egui::Label::new(text(sentence, size::LEAD, Weight::Regular, theme.text2)).wrap());
    ui.add_space(6.0);
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 16.0), Sense::hover());
    let useful = rect.width() * (1.0 - (waste.0 as f64 / whole.0.max(1) as f64).clamp(0.0, 1.0)) as f32;
    state.bar.show(
        ui,
        RasterArea { rect, name: "padding bar", ground: theme.inset },
        (waste.0, whole.0, theme.dark),
        |raster| {
            let edge = (useful * raster.scale()) as i64;
            let (width, height) = (raster.width() as i64, raster.height() as i64);
            raster.fill(0, 0, edge, height, theme.text2);
            raster.hatch(edge, 0, width, height, Hatch { period: 7.0, width: 1.2, color: theme.text3 });
        },
    );
    let words = format!("useful {}, padding {}", context.short(whole.saturating_sub(waste)), context.short(waste));
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &words));
    response.on_hover_text(words);
}

/// The shapes as a table and, if there is room, a scatter plot beside it.
fn shapes(ui: &mut Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, state: &mut State, found: &Found, rect: Rect) {
    let wide = (rect.width() >= BESIDE).then(|| (rect.width() * 0.34).min(380.0));
    let split = rect.right() - wide.map_or(0.0, |width| width + 24.0);
    let left = Rect::from_min_max(rect.min, Pos2::new(split, rect.bottom()));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(left).id_salt("groups"));
    let key = state.of.map(|of| (of, context.find_key()));
    if state.lit.0 != key {
        let lit = found.groups.iter().map(|group| group.buffers.iter().any(|&buffer| context.matches(buffer)));
        state.lit = (key, lit.collect());
    }
    let listed = rows::Listed { groups: &found.groups, chosen: state.chosen, lit: &state.lit.1 };
    let mut chosen = rows::show(&mut child, context, scene, &listed, &mut state.table);
    if let Some(width) = wide {
        let right = Rect::from_min_max(Pos2::new(rect.right() - width, rect.top()), rect.max);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(right).id_salt("scatter"));
        let marked = scatter::show(&mut child, context, scene, &found.groups, state.chosen);
        if marked.is_some() {
            state.table.reveal = marked;
        }
        chosen = marked.or(chosen);
    }
    if let Some(row) = chosen.filter(|row| *row < found.groups.len()) {
        state.chosen = row;
        context.shared.select(found.groups[row].buffers.first().copied());
        state.followed = context.shared.selected;
    }
}
