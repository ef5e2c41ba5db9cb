//! The colour scale of the tile map with the limit, and a histogram of tiles above it.

use egui::{Rect, Ui};

use super::map::scale_end;
use super::metric::Metric;
use super::state::State;
use crate::analysis::tiles::{TileAnalysis, histogram};
use crate::model::{Bytes, thousands};
use crate::ui::chart::{Span, byte_ticks};
use crate::ui::part::ViewContext;
use crate::ui::widget::heat_legend::HeatLegend;

/// Bars up to the limit.
const BARS: usize = 64;

pub fn show(ui: &Ui, context: &ViewContext<'_>, tiles: &TileAnalysis, state: &State, rect: Rect) {
    let theme = context.theme;
    let end = scale_end(state);
    let most = state.values.iter().max().copied().unwrap_or(0);
    let x = Span::new(0.0, end.max(most).max(1) as f64);
    let at = |bytes: u64| x.share(bytes as f64) as f32;
    let found = histogram(&state.values, end, BARS);
    let bars = found.counts.iter().enumerate().map(|(i, &count)| {
        let from = found.step * i as u64;
        (at(from), at(from + found.step), count, from >= end && state.metric.is_whole())
    });
    let ticks = byte_ticks(x, 7, context.options.units).into_iter();
    let limit = state.limit.filter(|_| state.metric.is_whole());
    let count = state.values.len();
    let mean = state.values.iter().fold(0u64, |sum, &value| sum.saturating_add(value)) / count.max(1) as u64;
    let fit = format!("{} fit, {} over", thousands((count - tiles.over.len().min(count)) as u64), tiles.over.len());
    let lines = [
        ("tiles by bytes".to_owned(), theme.text),
        ("height: square root of count".to_owned(), theme.text3),
        (format!("mean {}", context.short(Bytes(mean))), theme.text2),
        (if state.limit.is_some() { fit } else { String::new() }, theme.text2),
    ];
    let legend = HeatLegend {
        end: at(end),
        over_end: at(most),
        reversed: state.metric == Metric::Headroom,
        floor: 0.0,
        limit: limit.map(|limit| (at(end), format!("capacity {}", context.options.units.capacity(Bytes(limit))))),
        ticks: ticks.map(|tick| (at(tick.value as u64), tick.words)).collect(),
        bars: bars.collect(),
        lines: &lines,
    };
    legend.show(ui, theme, rect);
}
