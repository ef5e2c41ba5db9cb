//! The heat map's colour scale, below its panels.

use egui::{Rect, Ui};

use super::metric::{Metric, age_share};
use super::picture::{BARS, Shown};
use crate::model::{Bytes, thousands};
use crate::ui::part::ViewContext;
use crate::ui::widget::heat_legend::HeatLegend;

/// Share of the scale below the capacity, if something exceeds it.
const BELOW: f32 = 0.86;

/// Totals over all panels.
pub struct Totals {
    /// Histogram of filled cells over the scale.
    pub bars: [u32; BARS],
    /// Number of filled cells over a capacity.
    pub over: u32,
    /// The capacity, if known and there is one panel.
    pub capacity: Option<u64>,
    /// Number of panels with cells.
    pub panels: usize,
    /// Number of steps in the program.
    pub points: u32,
    /// Size of a cell of the last panel: steps and bytes.
    pub cell: (u32, u64),
}

impl Totals {
    /// Totals over no panels.
    pub const fn new() -> Self {
        Self { bars: [0; BARS], over: 0, capacity: None, panels: 0, points: 1, cell: (1, 1) }
    }

    /// Adds a panel.
    pub fn add(&mut self, shown: &Shown, capacity: Option<u64>, points: u32) {
        for (sum, more) in self.bars.iter_mut().zip(shown.bars) {
            *sum += more;
        }
        self.over += shown.over;
        self.capacity = if self.panels == 0 { capacity } else { None };
        self.panels += 1;
        self.points = self.points.max(points);
        self.cell = (shown.grid.stride, shown.grid.row_bytes);
    }
}

pub fn show(ui: &Ui, context: &ViewContext<'_>, metric: Metric, totals: &Totals, rect: Rect) {
    let theme = context.theme;
    let capacity = totals.capacity.filter(|_| metric.shows_over());
    let limit = capacity.map(|bytes| context.options.units.capacity(Bytes(bytes)));
    let has_end = totals.over > 0 || limit.is_some();
    let end = if has_end { BELOW } else { 1.0 };
    let at = |bar: usize| end * bar as f32 / BARS as f32;
    let mut bars: Vec<(f32, f32, u32, bool)> =
        totals.bars.iter().enumerate().map(|(bar, &count)| (at(bar), at(bar + 1), count, false)).collect();
    bars.push((BELOW + 0.02, BELOW + 0.12, totals.over, true));
    let ticks = match metric {
        Metric::Occupancy | Metric::Padding => {
            [0u32, 25, 50, 75, 100].map(|part| (end * part as f32 / 100.0, format!("{part} %"))).to_vec()
        }
        Metric::Age => std::iter::once(0)
            .chain((0..10).map(|power| 10u64.pow(power)))
            .take_while(|&age| age == 0 || age < u64::from(totals.points))
            .filter(|&age| age != 1)
            .map(|age| (end * age_share(age as f64, totals.points), thousands(age)))
            .collect(),
    };
    let (steps, bytes) = totals.cell;
    let cell = if steps == 1 {
        format!("a cell: {} by 1 step", context.options.units.capacity(Bytes(bytes)))
    } else {
        format!("a cell: {} by {steps} steps", context.options.units.capacity(Bytes(bytes)))
    };
    let lines = [
        (metric.counted().to_owned(), theme.text),
        ("height: square root of count".to_owned(), theme.text3),
        (if totals.panels == 1 { cell } else { String::new() }, theme.text2),
        ("each column shows its fullest step".to_owned(), theme.text2),
    ];
    let words = match (&limit, totals.over > 0) {
        (Some(limit), _) => Some(format!("over {limit}")),
        (None, true) => Some("over capacity".to_owned()),
        (None, false) => None,
    };
    let legend = HeatLegend {
        end,
        over_end: if has_end { 1.0 } else { end },
        reversed: false,
        floor: metric.floor(),
        limit: words.map(|words| (end, words)),
        ticks,
        bars,
        lines: &lines,
    };
    legend.show(ui, theme, rect);
}
