//! Axes of a chart: tick labels beside the plot, and grid lines.

use egui::{Align2, Pos2, Rangef, Rect, Stroke, Ui, Vec2};

use super::ticks::{self, Tick, byte_ticks, decimal_ticks, power_ticks};
use super::window::Window;
use crate::model::{Bytes, UnitSystem};
use crate::ui::widget::controls;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size};

/// Width of the tick labels left of a plot, in points.
pub const LEFT: f32 = 68.0;
/// Width of the limit's label right of a plot, in points.
pub const RIGHT: f32 = 82.0;
/// Margin right of a plot without a limit, in points.
pub const RIGHT_PLAIN: f32 = 14.0;
/// Height of the tick labels below a plot, in points.
pub const BELOW: f32 = 22.0;
/// Minimum distance between labels of the left axis, in points.
const APART: f32 = 16.0;
/// About how many numbers of steps an axis has room for.
fn step_ticks(width: f32) -> usize {
    if width < 240.0 { 3 } else { (width / 80.0) as usize }
}

/// Addresses are labelled in hexadecimal if fewer bytes than this are visible.
const CLOSE: f64 = 1e6;

/// The x axis, by the kind of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XAxis<'a> {
    /// Integers that each span a unit of width, such as steps, events or tiles; with the singular noun.
    Steps(&'a str),
    /// Times in picoseconds, labelled in milliseconds.
    Milliseconds,
    /// Positions in a history without times; with the singular noun.
    Moments(&'a str),
    /// Base-2 logarithms of bytes.
    LogBytes(UnitSystem),
}

impl XAxis<'_> {
    /// The unit, shown once at the end of the axis.
    #[must_use]
    pub const fn unit(&self) -> &str {
        match self {
            Self::Steps(unit) | Self::Moments(unit) => unit,
            Self::Milliseconds => "ms",
            Self::LogBytes(_) => "",
        }
    }

    /// A value as text without unit, precise enough to tell values `step` apart.
    #[must_use]
    pub fn words(&self, value: f64, step: f64) -> String {
        match self {
            Self::Steps(_) | Self::Moments(_) => format!("{:.0}", value.floor().max(0.0)),
            Self::Milliseconds => milliseconds(value, step),
            Self::LogBytes(units) => log_words(*units, value),
        }
    }

    /// Distance from the start of a value to its middle.
    #[must_use]
    pub const fn middle(&self) -> f64 {
        match self {
            Self::Steps(_) => 0.5,
            Self::Milliseconds | Self::Moments(_) | Self::LogBytes(_) => 0.0,
        }
    }

    /// Distance between the ticks of a window.
    pub(super) fn tick_step(&self, window: &Window) -> f64 {
        let ticks = self.ticks(window);
        ticks.windows(2).next().map_or(window.x.len(), |pair| pair[1] - pair[0])
    }

    fn ticks(self, window: &Window) -> Vec<f64> {
        match self {
            Self::LogBytes(units) => power_ticks(window.x, units),
            Self::Milliseconds => decimal_ticks(window.x, (window.rect.width() / 100.0) as usize),
            Self::Steps(_) | Self::Moments(_) => decimal_ticks(window.x, step_ticks(window.rect.width())),
        }
    }

    /// Draws tick labels in a row below the plot, with the unit once at the end.
    pub fn draw(&self, ui: &Ui, theme: &Theme, window: &Window, top: f32) {
        self.draw_beside(ui, theme, window, top, &[]);
    }

    /// As [`Self::draw`], without the numbers that would stand under what lies at `taken` in the row.
    pub fn draw_beside(&self, ui: &Ui, theme: &Theme, window: &Window, top: f32, taken: &[Rangef]) {
        let painter = ui.painter();
        let small = Weight::Regular.at(size::SMALL);
        let (rect, y) = (window.rect, top + 12.0);
        let right = Pos2::new(rect.right(), y);
        let is_free = |place: Rangef| !taken.iter().any(|other| other.intersects(place.expand(4.0)));
        let unit = painter.layout_no_wrap(self.unit().to_owned(), small.clone(), theme.text3);
        let unit_place = Align2::RIGHT_CENTER.anchor_size(right, unit.size());
        if is_free(unit_place.x_range()) {
            painter.galley(unit_place.min, unit, theme.text3);
        }
        let step = self.tick_step(window);
        let mut free = f32::NEG_INFINITY;
        for tick in self.ticks(window) {
            let x = window.x_of(tick + self.middle());
            let galley = painter.layout_no_wrap(self.words(tick, step), small.clone(), theme.text3);
            // A label at the edge of the plot is moved inside.
            let least = rect.left().min(x);
            let left = (x - galley.size().x / 2.0).max(least);
            let end = left + galley.size().x;
            if x < rect.left() || x > rect.right() || left < free || end + 8.0 > unit_place.left() {
                continue;
            }
            free = end + 8.0;
            painter.vline(x.round(), top..=top + 4.0, Stroke::new(1.0, theme.line2));
            if !is_free(Rangef::new(left, end)) {
                continue;
            }
            painter.galley(Pos2::new(left, y - galley.size().y / 2.0), galley, theme.text3);
        }
    }
}

/// Writes round numbers of bytes above a bar whose length is bytes; `top` is where the words begin. The number that a
/// line at `line` would go through is left out.
pub fn bytes_above(ui: &Ui, theme: &Theme, window: &Window, top: f32, units: UnitSystem, line: Option<f32>) {
    let painter = ui.painter();
    for tick in byte_ticks(window.x, 8, units) {
        let x = window.x_of(tick.value);
        let align = if tick.value == 0.0 { Align2::LEFT_TOP } else { Align2::CENTER_TOP };
        let galley = painter.layout_no_wrap(tick.words, Weight::Regular.at(size::SMALL), theme.text3);
        let place = align.anchor_size(Pos2::new(x, top), galley.size());
        let is_crossed = line.is_some_and(|line| place.x_range().expand(3.0).contains(line));
        if x < window.rect.right() - 24.0 && !is_crossed {
            painter.galley(place.min, galley, theme.text3);
        }
        painter.vline(x.round(), top + 14.0..=top + 18.0, Stroke::new(1.0, theme.line2));
    }
}

/// A time in picoseconds as milliseconds, precise enough to tell times `step_ps` apart.
#[must_use]
pub fn milliseconds(ps: f64, step_ps: f64) -> String {
    let digits = (9.0 - step_ps.max(1.0).log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{:.digits$}", ps / 1e9)
}

/// The y axis, by the kind of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YAxis {
    /// Bytes.
    Bytes(UnitSystem),
    /// Addresses in bytes; in hexadecimal when zoomed in.
    Addresses(UnitSystem),
    /// Base-2 logarithms of bytes.
    LogBytes(UnitSystem),
    /// A share, 0 at the bottom and 100 % at the top.
    Share,
    /// No labels.
    Plain,
}

impl YAxis {
    /// The ticks of a window.
    #[must_use]
    pub fn ticks(self, window: &Window) -> Vec<Tick> {
        let most = ((window.rect.height() / APART) as usize).clamp(2, ticks::MOST);
        match self {
            Self::Addresses(_) if window.y.len() < CLOSE => {
                let ticks = byte_ticks(window.y, most, UnitSystem::Binary).into_iter();
                ticks.map(|tick| Tick { words: format!("{:09X}", tick.value as u64), ..tick }).collect()
            }
            Self::Bytes(units) | Self::Addresses(units) => byte_ticks(window.y, most, units),
            Self::LogBytes(units) => {
                let words = |value: f64| log_words(units, value);
                power_ticks(window.y, units).into_iter().map(|value| Tick { value, words: words(value) }).collect()
            }
            Self::Share => [(window.y.lo, "0"), (window.y.hi, "100\u{2009}%")]
                .map(|(value, words)| Tick { value, words: words.to_owned() })
                .to_vec(),
            Self::Plain => Vec::new(),
        }
    }

    /// The visible range in words; `None` for an axis without labels.
    #[must_use]
    pub fn range(self, window: &Window) -> Option<String> {
        let (lo, hi) = (window.y.lo.max(0.0), window.y.hi.max(0.0));
        let bytes = |value: f64| Bytes(value as u64);
        match self {
            Self::Bytes(units) | Self::Addresses(units) => {
                Some(format!("{} to {}", units.short(bytes(lo)), units.short(bytes(hi))))
            }
            Self::LogBytes(units) => {
                Some(format!("{} to {}", units.short(bytes(lo.exp2())), units.short(bytes(hi.exp2()))))
            }
            Self::Share => Some("0 to 100\u{2009}%".to_owned()),
            Self::Plain => None,
        }
    }

    /// Draws the tick labels left of a window, and the base line.
    pub fn draw(self, ui: &Ui, theme: &Theme, window: &Window) {
        write_left(ui, theme, window, &self.ticks(window));
        ground_line(ui, theme, window.rect);
    }
}

/// Draws tick labels left of a window; the uppermost does not extend above the plot.
pub(super) fn write_left(ui: &Ui, theme: &Theme, window: &Window, ticks: &[Tick]) {
    let (rect, half) = (window.rect, size::SMALL / 2.0);
    let mut last: Option<f32> = None;
    for tick in ticks {
        let y = window.y_of(tick.value).max(rect.top() + half);
        if last.is_some_and(|last| (last - y).abs() < APART - 2.0) {
            continue;
        }
        last = Some(y);
        let at = Pos2::new(rect.left() - 8.0, y);
        ui.painter().text(at, Align2::RIGHT_CENTER, &tick.words, Weight::Regular.at(size::SMALL), theme.text3);
    }
}

/// Grid lines at the ticks, behind the data; vertical ones only for a logarithmic x axis.
pub(super) fn grid(ui: &Ui, theme: &Theme, window: &Window, x: XAxis<'_>, ticks: &[Tick]) {
    let line = theme.line.gamma_multiply(0.5);
    if matches!(x, XAxis::LogBytes(_)) {
        for tick in x.ticks(window) {
            let at = window.x_of(tick).round();
            controls::vline(ui, at, window.rect.top(), window.rect.bottom(), line);
        }
    }
    for tick in ticks.iter().filter(|tick| tick.value > window.y.lo) {
        let y = window.y_of(tick.value).round();
        let row = Rect::from_min_max(Pos2::new(window.rect.left(), y), Pos2::new(window.rect.right(), y + 1.0));
        controls::hairline(ui, row, line);
    }
}

/// The base line of a plot.
pub(super) fn ground_line(ui: &Ui, theme: &Theme, rect: Rect) {
    controls::hairline(ui, Rect::from_min_size(rect.min, rect.size() + Vec2::new(0.0, 1.0)), theme.line2);
}

/// A size at a place of a logarithmic axis: `16 GiB` where it is round, else three digits.
fn log_words(units: UnitSystem, value: f64) -> String {
    let bytes = Bytes(value.exp2().round() as u64);
    let (round, short) = (units.capacity(bytes), units.short(bytes));
    if round.len() < short.len() { round } else { short }
}
