//! The chart: an `egui_plot::Plot` with Highwater's frame, axes, limit, peaks, cursor and readout.

use egui::{Color32, Rect, Response, Role, Sense, Stroke, Ui, UiBuilder, WidgetInfo};
use egui_plot::Plot;

use super::axes::{self, XAxis, YAxis};
use super::item::{Item, Layer, Picture};
use super::keyboard::{self, Events};
use super::marks::{self, Cursor, Peak, Spare};
use super::readout::{self, Line};
use super::window::Window;
use crate::model::UnitSystem;
use crate::ui::widget::raster::{CachedRaster, Raster, RasterArea};
use crate::ui::widget::theme::Theme;

/// The contents of a chart. Zooming and panning are done beforehand, by [`super::Reach`]: charts that share an axis are
/// given the same window.
pub struct Chart<'a> {
    title: &'a str,
    theme: &'a Theme,
    window: Window,
    units: UnitSystem,
    x: XAxis<'a>,
    y: YAxis,
    has_row: bool,
    has_cursor: bool,
    picture: Option<Picture>,
    limit: Option<u64>,
    limit_name: &'a str,
    peaks: Vec<Peak>,
    cursors: Vec<Cursor>,
    range: Option<(f64, f64)>,
    spare: Option<Spare>,
    start: f64,
    events: Option<Events<'a>>,
}

impl<'a> Chart<'a> {
    /// A chart of bytes over `x`. The title is its accessible name.
    #[must_use]
    pub fn new(title: &'a str, theme: &'a Theme, window: Window, x: XAxis<'a>, units: UnitSystem) -> Self {
        Self {
            title,
            theme,
            window,
            units,
            x,
            y: YAxis::Bytes(units),
            has_row: true,
            has_cursor: true,
            picture: None,
            limit: None,
            limit_name: marks::CAPACITY,
            peaks: Vec::new(),
            cursors: Vec::new(),
            range: None,
            spare: None,
            start: window.x.at(0.5),
            events: None,
        }
    }

    /// With a y axis other than bytes.
    #[must_use]
    pub fn y_axis(mut self, y: YAxis) -> Self {
        self.y = y;
        self
    }

    /// Without tick labels below, if another band of the view has them.
    #[must_use]
    pub fn without_row(mut self) -> Self {
        self.has_row = false;
        self
    }

    /// Without a cursor, for charts that have no readout along the x axis; keys move between marks.
    #[must_use]
    pub fn without_cursor(mut self) -> Self {
        self.has_cursor = false;
        self
    }

    /// With a picture drawn by a worker.
    #[must_use]
    pub fn picture(mut self, picture: Option<Picture>) -> Self {
        self.picture = picture;
        self
    }

    /// With a picture drawn on this thread, redrawn only when `key`, the window or the theme changes.
    #[must_use]
    pub fn drawn(
        mut self,
        ui: &Ui,
        raster: &mut CachedRaster,
        key: impl std::hash::Hash,
        draw: impl FnOnce(&mut Raster, &Window),
    ) -> Self {
        let window = self.window;
        let values = [window.x.lo, window.x.hi, window.y.lo, window.y.hi].map(f64::to_bits);
        let key = (key, values, self.theme.panel);
        let texture = raster.texture(
            ui,
            RasterArea { rect: window.rect, name: self.title, ground: Color32::TRANSPARENT },
            key,
            |raster| draw(raster, &window),
        );
        self.picture = texture.map(|texture| Picture { texture, window });
        self
    }

    /// With a limit, in bytes.
    #[must_use]
    pub fn limit(mut self, limit: Option<u64>) -> Self {
        self.limit = limit;
        self
    }

    /// What the limit is called, if it is not the capacity.
    #[must_use]
    pub fn limit_named(mut self, name: &'a str) -> Self {
        self.limit_name = name;
        self
    }

    /// With peak marks.
    #[must_use]
    pub fn peak(mut self, peak: impl IntoIterator<Item = Peak>) -> Self {
        self.peaks.extend(peak);
        self
    }

    /// With vertical lines.
    #[must_use]
    pub fn cursors(mut self, cursors: impl IntoIterator<Item = Cursor>) -> Self {
        self.cursors.extend(cursors);
        self
    }

    /// With a chosen range.
    #[must_use]
    pub fn range(mut self, range: Option<(f64, f64)>) -> Self {
        self.range = range;
        self
    }

    /// With the headroom below the limit.
    #[must_use]
    pub fn spare(mut self, spare: Option<Spare>) -> Self {
        self.spare = spare;
        self
    }

    /// Initial position of the keyboard cursor.
    #[must_use]
    pub fn start(mut self, at: f64) -> Self {
        self.start = at;
        self
    }

    /// The events that `.` and `,` move to while the chart has the focus.
    #[must_use]
    pub fn events(mut self, events: Events<'a>) -> Self {
        self.events = Some(events);
        self
    }

    /// Draws the chart.
    pub fn show(self, ui: &mut Ui) -> Shown<'a> {
        let (theme, window) = (self.theme, self.window);
        let rect = window.rect;
        ui.painter().rect_filled(rect, 0.0, theme.panel);
        let ticks = self.y.ticks(&window);
        axes::grid(ui, theme, &window, self.x, &ticks);
        let builder = UiBuilder::new().max_rect(rect).id_salt(self.title);
        let response = self.plot(&mut ui.new_child(builder));
        axes::write_left(ui, theme, &window, &ticks);
        if self.has_row {
            self.x.draw(ui, theme, &window, rect.bottom());
        }
        axes::ground_line(ui, theme, rect);
        // The sign of a peak at an edge is whole.
        let painter = ui.painter().with_clip_rect(rect.expand2(egui::vec2(marks::SIGN, 0.0)));
        let mut taken = Vec::new();
        let mut flag = None;
        if let Some(limit) = self.limit {
            if let Some(y) = marks::limit_line(&window, limit) {
                taken.push(Rect::from_x_y_ranges(rect.x_range(), y - 2.0..=y + 2.0));
            }
            flag = marks::limit_words(ui, theme, &window, (limit, self.units, self.limit_name), &self.peaks);
            taken.extend(flag);
        }
        taken.extend(self.spare.map(|spare| marks::spare_words(&painter, theme, &window, spare, self.units)));
        marks::peaks(&painter, theme, &window, &self.peaks, taken);
        let at = if self.has_cursor {
            keyboard::take(ui, &response, &window, self.x, self.start, self.events)
        } else {
            keyboard::At::default()
        };
        let spoken = self.spoken();
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
        Shown {
            at: at.x,
            is_chosen: at.is_pinned || response.clicked(),
            is_by_keys: at.is_by_keys,
            flag,
            response,
            theme,
            room: Rect::from_min_max(
                egui::pos2(
                    rect.left(),
                    flag.filter(|flag| flag.right() >= rect.right()).map_or(rect.top(), |flag| flag.bottom()),
                ),
                rect.max,
            ),
            spoken,
        }
    }

    /// Draws the data with `egui_plot`. Pointer input is handled by [`super::Reach`], which knows the limits of
    /// zooming, and by the view; axes are drawn by [`axes`].
    fn plot(&self, ui: &mut Ui) -> Response {
        let (theme, window) = (self.theme, self.window);
        let plot = Plot::new("plot")
            .width(window.rect.width())
            .height(window.rect.height())
            .sense(Sense::click_and_drag())
            .show_axes(false)
            .show_grid(false)
            .show_background(false)
            .show_x(false)
            .show_y(false)
            .allow_axis_zoom_drag(false)
            .allow_boxed_zoom(false)
            .allow_double_click_reset(false)
            .allow_drag(false)
            .allow_scroll(false)
            .allow_zoom(false);
        let picture = self.picture.map(Layer::Picture);
        let range = self.range.map(|(from, to)| Layer::Columns(from, to, theme.accent.gamma_multiply(0.12)));
        let edges = self.range.into_iter().flat_map(|(from, to)| [from, to]);
        let edges = edges.map(|edge| Layer::Vertical(edge, Stroke::new(1.0, theme.accent)));
        let limit = self.limit.map(|limit| Layer::Horizontal(limit as f64, Stroke::new(2.0, theme.over)));
        let cursors = self.cursors.iter().map(|cursor| Layer::Vertical(cursor.x, cursor.stroke));
        let ok = theme.ok.gamma_multiply(0.08);
        let spare = self.spare.map(|spare| Layer::Rows(spare.from as f64, spare.to as f64, ok));
        let layers = picture.into_iter().chain(spare).chain(range).chain(edges).chain(limit).chain(cursors);
        let items: Vec<Item> = layers.map(|layer| Item::new(window, layer)).collect();
        let shown = plot.show(ui, |plot| {
            plot.set_plot_bounds(window.bounds());
            for item in items {
                plot.add(item);
            }
        });
        shown.response
    }

    /// Accessible name: title, peaks with positions, limit, both ranges.
    fn spoken(&self) -> String {
        let Self { window, x, .. } = self;
        let step = x.tick_step(window);
        let mut words = self.title.to_owned();
        for peak in self.peaks.iter().filter(|peak| !peak.words.is_empty()) {
            words = format!("{words}, {} at {} {}", peak.words, x.unit(), x.words(peak.x, step / 100.0));
        }
        if let Some(limit) = self.limit {
            words = format!("{words}, {} {}", self.limit_name, self.units.capacity(crate::model::Bytes(limit)));
        }
        let last = (window.x.hi - 2.0 * x.middle()).max(window.x.lo);
        let unit = if x.unit().is_empty() { String::new() } else { format!("{} ", x.unit()) };
        words = format!("{words}, {unit}{} to {}", x.words(window.x.lo, step), x.words(last, step));
        match self.y.range(window) {
            Some(range) => format!("{words}, {range}"),
            None => words,
        }
    }
}

/// Result of drawing a chart in this frame.
pub struct Shown<'a> {
    /// The plot: clicks, drags, menus.
    pub response: Response,
    /// Position of the cursor on the x axis: under the pointer, or where the keys moved it.
    pub at: Option<f64>,
    /// Whether the position of the cursor was chosen, by a click or by Enter.
    pub is_chosen: bool,
    /// Whether keys moved the cursor.
    pub is_by_keys: bool,
    /// The flag of a limit that is out of sight.
    pub flag: Option<Rect>,
    theme: &'a Theme,
    /// Where the readout may be drawn.
    room: Rect,
    spoken: String,
}

impl Shown<'_> {
    /// Draws the readout of the cursor at the top right, at most four lines.
    pub fn readout(&self, ui: &Ui, lines: &[Line]) {
        readout::draw(ui, self.theme, self.room, lines);
        if self.is_by_keys {
            let words = format!("{}; {}", self.spoken, readout::spoken(lines));
            self.response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &words));
        }
    }
}
