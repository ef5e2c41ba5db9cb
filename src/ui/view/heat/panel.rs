//! The heat map panel of one memory space: cells, axes, chosen step, and pointer input.

use std::sync::Arc;

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, WidgetInfo};

use super::by_keys;
use super::metric::Metric;
use super::picture::{Picture, Shown};
use crate::analysis::heat::HeatGrid;
use crate::analysis::map::MapBox;
use crate::model::{BufferId, Bytes, MemorySpace, percent, thousands};
use crate::ui::chart::{self, Cursor, Reach, Span, Window, XAxis, YAxis};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};
use crate::ui::widget::{heat_map, keys};
use crate::ui::work::{DeferredPicture, Highlight, Job, Sheet, SpaceData};

/// Maximum number of buffers drawn within the frame; more are drawn on a worker.
const AT_ONCE: usize = 3000;

/// State of a memory space's panel.
#[derive(Default)]
pub struct State {
    /// Visible addresses; `None` for all.
    pub addresses: Option<Span>,
    /// Position of the keyboard cursor.
    at: Option<by_keys::Target>,
    picture: DeferredPicture<Arc<Shown>>,
    at_step: Option<(u32, Job<AtStep>)>,
}

/// Figures of a step for the title.
struct AtStep {
    used: u64,
    hole: u64,
    holes: usize,
}

/// A memory space and where its panel is drawn.
pub struct Panel<'a> {
    pub color: MemorySpace,
    pub name: &'a str,
    pub data: &'a Arc<SpaceData>,
    pub metric: Metric,
    /// Rectangle below the title.
    pub rect: Rect,
    /// Whether it is the only panel.
    pub is_only: bool,
    /// Whether this panel handles the keys.
    pub has_keys: bool,
    /// Whether the whole program and all addresses are to be shown.
    pub wants_all: bool,
}

/// Visible and whole range of steps and addresses.
struct Axes {
    x: Span,
    steps: Reach,
    y: Span,
    addresses: Reach,
}

/// Result of drawing a panel.
#[derive(Default)]
pub struct PanelResult {
    /// Contents, once drawn.
    pub shown: Option<Arc<Shown>>,
    /// Whether to toggle between this space alone and all.
    pub zoom: bool,
    /// The buffer under the pointer.
    pub under: Option<BufferId>,
    /// The buffer under the keyboard cursor, and the rectangle of its cell.
    pub aimed: Option<(Option<BufferId>, Rect)>,
}

/// Capacity of the space in bytes: the one chosen in the window, else the document's.
pub fn capacity(context: &ViewContext<'_>, color: MemorySpace) -> Option<u64> {
    let chosen = context.shared.capacity.get(&color).map(|capacity| capacity.bytes.0);
    let space = || context.document.program(context.shared.program)?.1.space(color);
    chosen.or_else(|| space()?.capacity.as_ref().map(|capacity| capacity.bytes.0))
}

impl Panel<'_> {
    pub fn show(&self, ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) -> PanelResult {
        let theme = context.theme;
        let mut outcome = PanelResult::default();
        let map = &self.data.map;
        let capacity = capacity(context, self.color);
        let addresses = Reach::addresses(map.height, capacity);
        let limit = capacity.filter(|&limit| limit as f64 <= addresses.whole.hi);
        let plot = Rect::from_min_max(
            Pos2::new(self.rect.left() + chart::LEFT, self.rect.top()),
            Pos2::new(self.rect.right() - chart::RIGHT, self.rect.bottom() - chart::BELOW),
        );
        outcome.zoom = self.title(ui, context, state);
        if plot.width() < 30.0 || plot.height() < 20.0 {
            return outcome;
        }
        let steps = Reach::steps(map.points);
        let x = steps.visible(context.shared.range.map(|(lo, hi)| Span::new(lo, hi)));
        let y = addresses.visible(state.addresses);
        let mut axes = Axes { x, steps, y, addresses };
        let response = ui.interact(plot, ui.scope_id().with(("heat", self.color)), Sense::click_and_drag());
        let before = x;
        self.take_input(ui, context, &response, &mut axes);
        let Axes { x, y, .. } = axes;
        if x != before {
            context.shared.zoom_to(steps.chosen(x).map(|span| (span.lo, span.hi)));
        }
        state.addresses = addresses.chosen(y);
        let window = Window { rect: plot, x, y };
        let picture = Picture {
            document: Arc::clone(context.document),
            program: context.shared.program,
            data: Arc::clone(self.data),
            theme: *theme,
            window,
            capacity,
            metric: self.metric,
            // Matches are known for the chosen space only.
            lit: (context.is_finding() && context.shared.color == self.color)
                .then(|| Highlight { hits: context.hits.clone(), hidden: context.shared.hidden.clone() }),
        };
        let key = (
            context.document.id(),
            (context.shared.program, self.color, self.metric, capacity),
            theme.dark,
            picture.lit.is_some().then(|| context.find_key()),
        );
        let at_once = map.boxes.len() <= AT_ONCE;
        let draw = move |raster: &mut _| picture.paint(raster);
        let sheet = Sheet { window, name: "heat map", ground: theme.panel, at_once };
        let shown = state.picture.show(ui, context.work, sheet, key, draw);
        outcome.shown = shown.cloned();
        let view = View { theme, window };
        YAxis::Bytes(context.options.units).draw(ui, theme, &window);
        XAxis::Steps(map.axis.unit()).draw(ui, theme, &window, plot.bottom());
        chart::limit(ui, theme, &window, limit, context.options.units);
        view.steps(ui, context);
        self.selection(ui, context, &view);
        let mut spoken = self.spoken(context, outcome.shown.as_deref());
        if let Some(shown) = &outcome.shown {
            let keyed = self.keyed(ui, context, state, (&view, &shown.grid), &response);
            outcome.aimed = keyed.map(|(words, buffer, place)| {
                spoken = format!("{spoken}; {words}");
                (buffer, place)
            });
        }
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
        if response.double_clicked() {
            if self.is_only {
                context.shared.zoom_to(None);
                state.addresses = None;
            } else {
                outcome.zoom = true;
            }
        } else if let (Some(at), Some(shown)) = (response.hover_pos(), &outcome.shown) {
            outcome.under = self.hover(ui, context, (&view, &shown.grid), response, at);
        }
        outcome
    }

    /// Draws the name and the bytes in use at the chosen step; returns whether the name was clicked.
    fn title(&self, ui: &Ui, context: &ViewContext<'_>, state: &mut State) -> bool {
        let theme = context.theme;
        let step = context.step().min(self.data.map.points.saturating_sub(1));
        if state.at_step.as_ref().is_none_or(|(of, _)| *of != step) {
            let data = Arc::clone(self.data);
            let job = Job::start(context.work, "step", move || {
                let holes = data.map.holes_at(step);
                AtStep {
                    used: data.by_class.curves.total.at(step),
                    hole: holes.iter().map(|hole| hole.1).max().unwrap_or(0),
                    holes: holes.len(),
                }
            });
            state.at_step = Some((step, job));
        }
        let does = if self.is_only { "Zoom out from" } else { "Zoom into" };
        let response = heat_map::panel_title(ui, theme, self.rect, self.name, does);
        if let Some(at_step) = state.at_step.as_mut().and_then(|(_, job)| job.poll()) {
            let units = context.options.units;
            let limit = capacity(context, self.color);
            let limit = limit.map_or_else(String::new, |limit| format!(" of {}", units.capacity(Bytes(limit))));
            let hole = units.short(Bytes(at_step.hole));
            let holes = match at_step.holes {
                0 => String::new(),
                1 => format!("; one hole of {hole}"),
                count => format!("; {} holes, largest {hole}", thousands(count as u64)),
            };
            let used = units.short(Bytes(at_step.used));
            let words = format!("at step {step}: {used}{limit}{holes}");
            let at = Pos2::new(response.rect.right() + 10.0, response.rect.bottom());
            let room = self.rect.right() - at.x;
            let font = Weight::Regular.at(size::SMALL);
            paint_cut(ui.painter(), (at, Align2::LEFT_BOTTOM), &words, font, theme.text2, room);
        }
        response.clicked()
    }

    /// Handles wheel, drag and keys as in the timeline.
    fn take_input(
        &self,
        ui: &Ui,
        context: &mut ViewContext<'_>,
        response: &egui::Response,
        Axes { x, steps, y, addresses }: &mut Axes,
    ) {
        let plot = response.rect;
        if ui.rect_contains_pointer(plot) {
            addresses.alt_wheel(ui, plot, y);
            steps.wheel(ui, plot, x);
        }
        if response.dragged() {
            let delta = response.drag_delta();
            steps.drag(plot, x, delta.x);
            addresses.drag_up(plot, y, delta.y);
        }
        let mut all = self.wants_all;
        if self.has_keys && keys::are_free(ui.ctx()) {
            all |= steps.keys(ui, plot, x, f64::from(context.step()) + 0.5);
            context.step_by(chart::steps(ui), self.data.map.points);
            let fits = ui.input(|input| !input.modifiers.any() && input.key_pressed(egui::Key::F));
            if let Some(item) = self.selected(context).filter(|_| fits) {
                *x = Span::around(f64::from(item.start), f64::from(item.end) + 1.0, 0.25, steps.whole, 8.0);
                let end = item.address.saturating_add(item.size) as f64;
                *y = Span::around(item.address as f64, end, 1.0, addresses.whole, addresses.whole.len() * 1e-6);
            }
        }
        if all {
            *x = steps.whole;
            *y = addresses.whole;
        }
    }

    /// The selected buffer, if it is in this space.
    fn selected(&self, context: &ViewContext<'_>) -> Option<MapBox> {
        let is_here = context.shared.color == self.color;
        context.shared.selected.filter(|_| is_here).and_then(|buffer| self.data.box_of(buffer)).copied()
    }

    fn selection(&self, ui: &Ui, context: &ViewContext<'_>, view: &View<'_>) {
        let Some(item) = self.selected(context) else { return };
        let painter = ui.painter().with_clip_rect(view.window.rect.intersect(ui.clip_rect()));
        let rect = view.rect_of(&item).expand(1.0);
        painter.rect_stroke(rect.expand(2.5), 0.0, Stroke::new(2.0, view.theme.halo), StrokeKind::Outside);
        painter.rect_stroke(rect, 0.0, Stroke::new(2.5, view.theme.ink), StrokeKind::Outside);
    }

    fn spoken(&self, context: &ViewContext<'_>, shown: Option<&Shown>) -> String {
        let step = context.step();
        let used = context.short(Bytes(self.data.by_class.curves.total.at(step)));
        let cells = shown.map_or_else(String::new, |shown| {
            format!(", {} by {} cells", thousands(shown.grid.columns() as u64), thousands(shown.grid.rows as u64))
        });
        let unit = self.data.map.axis.unit();
        format!("Heat map of {}, {}: {used} at {unit} {step}{cells}", self.name, self.metric.name())
    }

    /// The cell under the keyboard cursor: in words, its largest buffer and its rectangle.
    fn keyed(
        &self,
        ui: &Ui,
        context: &mut ViewContext<'_>,
        state: &mut State,
        (view, grid): (&View<'_>, &HeatGrid),
        response: &egui::Response,
    ) -> Option<(String, Option<BufferId>, Rect)> {
        let first = (context.step(), self.selected(context).map_or(0, |item| item.address));
        let keyed = by_keys::take(ui, &mut state.at, grid, response, first)?;
        let (low, high) = grid.addresses_of(keyed.row);
        let (from, to) = grid.points_of(keyed.column);
        let stands = grid.points[keyed.column];
        let largest = self.data.map.largest_in(stands, low, high).copied();
        let buffer = largest.map(|item| item.buffer);
        if keyed.enter {
            context.shared.choose(context.shared.program, self.color);
            context.shared.choose_step(stands);
            context.shared.select(buffer);
        }
        context.shared.hover_step(stands);
        if context.shared.color == self.color {
            context.shared.hover(buffer);
        }
        let units = context.options.units;
        let cell = grid.cell(keyed.column, keyed.row);
        let unit = self.data.map.axis.unit();
        let filled = percent(cell.occupied, grid.row_bytes);
        let mut words = format!(
            "{unit} {}, {} from {}, {filled} filled, {}",
            stands,
            units.capacity(Bytes(grid.row_bytes)),
            units.short(Bytes(low)),
            units.short(Bytes(cell.occupied))
        );
        if let (Some(item), Some((program, analysis))) = (largest, context.document.program(context.shared.program)) {
            let name = analysis.buffer_name(program, item.buffer);
            words = format!("{words}; {name} {}", units.short(Bytes(item.size)));
        }
        let place = view.frame((from, to), (low, high));
        let painter = ui.painter().with_clip_rect(view.window.rect.intersect(ui.clip_rect()));
        keys::ring_at(&painter, place.expand(3.0), view.theme);
        Some((words, buffer, place))
    }

    fn hover(
        &self,
        ui: &Ui,
        context: &mut ViewContext<'_>,
        (view, grid): (&View<'_>, &HeatGrid),
        response: egui::Response,
        at: Pos2,
    ) -> Option<BufferId> {
        let point = view.window.step_at(at.x, self.data.map.points);
        context.shared.hover_step(point);
        let address = view.window.at(at).1.max(0.0) as u64;
        let (column, row) = grid.place_of(point, address)?;
        let cell = grid.cell(column, row);
        let (low, high) = grid.addresses_of(row);
        let (from, to) = grid.points_of(column);
        let stands = grid.points[column];
        let largest = self.data.map.largest_in(stands, low, high).copied();
        if response.clicked_by(egui::PointerButton::Primary) {
            // The clicked space becomes the chosen one in every view.
            context.shared.choose(context.shared.program, self.color);
            context.shared.choose_step(stands);
            context.shared.select(largest.map(|item| item.buffer));
        }
        if response.secondary_clicked() {
            context.shared.choose(context.shared.program, self.color);
        }
        let under = largest.map(|item| item.buffer);
        if context.shared.color == self.color {
            context.shared.hover(under);
        }
        if response.dragged() {
            return under;
        }
        let painter = ui.painter().with_clip_rect(view.window.rect.intersect(ui.clip_rect()));
        let frame = view.frame((from, to), (low, high));
        painter.rect_stroke(frame, 0.0, Stroke::new(1.5, view.theme.ink), StrokeKind::Outside);
        let (theme, units) = (view.theme, context.options.units);
        let unit = self.data.map.axis.unit();
        response.on_hover_ui_at_pointer(|ui| {
            let words = format!("{}, {unit} {}", self.name, stands);
            ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
            let words = if grid.stride > 1 {
                format!("the fullest of {} to {}", thousands(from.into()), thousands(u64::from(to) - 1))
            } else {
                String::new()
            };
            if !words.is_empty() {
                ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
            }
            let words = format!("{} from {}", units.capacity(Bytes(grid.row_bytes)), units.short(Bytes(low)));
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
            let used = units.short(Bytes(cell.occupied));
            let words = format!("{} filled, {used}", percent(cell.occupied, grid.row_bytes));
            ui.label(text(words, size::BODY, Weight::Medium, theme.text));
            if cell.occupied > 0 {
                let padding = percent((f64::from(cell.padding) * 1e6) as u64, 1_000_000);
                let words = format!("{padding} padding, allocated {} steps ago", thousands(cell.age.round() as u64));
                ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
            }
            if let (Some(item), Some((program, analysis))) = (largest, context.document.program(context.shared.program))
            {
                let name = analysis.buffer_name(program, item.buffer);
                let words = format!("{name}  {}", units.short(Bytes(item.size)));
                ui.label(text(words, size::SMALL, Weight::Medium, theme.text2));
            }
        });
        under
    }
}

/// Layout of the view in this frame.
struct View<'a> {
    theme: &'a Theme,
    window: Window,
}

impl View<'_> {
    /// The rectangle of a cell from its first and last points and addresses.
    fn frame(&self, points: (u32, u32), addresses: (u64, u64)) -> Rect {
        self.window.rect_of((f64::from(points.0), f64::from(points.1)), (addresses.0 as f64, addresses.1 as f64))
    }

    fn rect_of(&self, item: &MapBox) -> Rect {
        self.frame((item.start, item.end.saturating_add(1)), (item.address, item.address.saturating_add(item.size)))
    }

    /// Marks the chosen step and the hovered one, in every panel.
    fn steps(&self, ui: &Ui, context: &ViewContext<'_>) {
        let step = context.step();
        let middle = |step: u32| f64::from(step) + 0.5;
        let other = context.shared.cursor.filter(|cursor| *cursor != step);
        let lines = other.map(|other| Cursor::pointed(middle(other), self.theme));
        for line in lines.into_iter().chain([Cursor::chosen(middle(step), self.theme)]) {
            line.draw(ui.painter(), &self.window, &[self.window.rect]);
        }
    }
}
