//! The colour scale with the limit, and above it how many tiles have how much.

use egui::{Align2, Pos2, Rect, Stroke, Ui};

use super::State;
use super::map::scale_end;
use super::metric::Metric;
use crate::analysis::tiles::{TileAnalysis, histogram};
use crate::model::{Bytes, UnitSystem, thousands};
use crate::ui::session::ViewContext;
use crate::ui::widget::axis::{Span, byte_ticks};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, heat, size};

/// Bars up to the limit.
const BARS: usize = 64;

pub fn show(ui: &Ui, context: &ViewContext<'_>, theme: &Theme, tiles: &TileAnalysis, state: &State, rect: Rect) {
    let end = scale_end(state);
    let most = state.values.iter().max().copied().unwrap_or(0);
    let whole = end.max(most).max(1);
    let scale = Rect::from_min_max(
        Pos2::new(rect.left(), rect.top() + 34.0),
        Pos2::new(rect.right() - 190.0, rect.top() + 46.0),
    );
    let x = Span::new(0.0, whole as f64);
    let at = |bytes: u64| scale.left() + (x.share(bytes as f64) * f64::from(scale.width())) as f32;
    let painter = ui.painter();
    let headroom = state.metric == Metric::Headroom;
    for i in 0..96 {
        let (from, to) = (i as f32 / 96.0, (i + 1) as f32 / 96.0);
        let right = at(end) - scale.left();
        let part = Rect::from_min_max(
            Pos2::new(scale.left() + right * from, scale.top()),
            Pos2::new(scale.left() + right * to + 0.5, scale.bottom()),
        );
        let share = f32::midpoint(from, to);
        painter.rect_filled(part, 0.0, heat(theme, if headroom { 1.0 - share } else { share }));
    }
    if most > end {
        let part = Rect::from_min_max(Pos2::new(at(end), scale.top()), Pos2::new(at(most), scale.bottom()));
        painter.rect_filled(part, 0.0, theme.over);
    }
    let bars = histogram(&state.values, end, BARS);
    let highest = bars.counts.iter().max().copied().unwrap_or(1).max(1);
    for (i, &count) in bars.counts.iter().enumerate().filter(|bar| *bar.1 > 0) {
        let height = (count as f32 / highest as f32).sqrt() * 26.0;
        let (left, right) = (at(bars.step * i as u64), at(bars.step * (i as u64 + 1)));
        let color = if bars.step * i as u64 >= end && state.metric.is_whole() { theme.over } else { theme.text2 };
        let bar = Rect::from_min_max(
            Pos2::new(left, scale.top() - 3.0 - height.max(1.5)),
            Pos2::new((right - 1.0).max(left + 1.0), scale.top() - 3.0),
        );
        painter.rect_filled(bar, 0.0, color);
    }
    let small = Weight::Regular.at(size::SMALL);
    let base = if context.options.units == UnitSystem::Binary { 1024.0 } else { 1000.0 };
    let limit_at = state.metric.is_whole().then(|| at(end));
    for tick in byte_ticks(x, 6, base) {
        let place = at(tick as u64);
        if limit_at.is_some_and(|limit| (limit - place).abs() < 44.0) {
            continue;
        }
        let align = if tick == 0.0 { Align2::LEFT_TOP } else { Align2::CENTER_TOP };
        let words = context.options.units.capacity(Bytes(tick as u64));
        painter.text(Pos2::new(place, scale.bottom() + 2.0), align, words, small.clone(), theme.text2);
    }
    if let (Some(place), Some(limit)) = (limit_at, state.limit) {
        painter.vline(place.round(), rect.top() + 4.0..=scale.bottom() + 3.0, Stroke::new(2.0, theme.over));
        let words = format!("limit {}", context.options.units.capacity(Bytes(limit)));
        let align = if place > scale.right() - 90.0 { Align2::RIGHT_TOP } else { Align2::CENTER_TOP };
        painter.text(
            Pos2::new(place, scale.bottom() + 2.0),
            align,
            words,
            Weight::SemiBold.at(size::SMALL),
            theme.danger,
        );
    }
    let count = state.values.len();
    let mean = state.values.iter().fold(0u64, |sum, &value| sum.saturating_add(value)) / count.max(1) as u64;
    let fit = format!("{} fit, {} over", thousands((count - tiles.over.len().min(count)) as u64), tiles.over.len());
    let lines = [
        ("tiles by bytes".to_owned(), theme.text),
        ("height: square root of count".to_owned(), theme.text3),
        (format!("mean {}", context.short(Bytes(mean))), theme.text2),
        (if state.limit.is_some() { fit } else { String::new() }, theme.text2),
    ];
    for (i, (words, color)) in lines.into_iter().enumerate() {
        let place = Pos2::new(rect.right(), rect.top() + 2.0 + 15.0 * i as f32);
        painter.text(place, Align2::RIGHT_TOP, words, small.clone(), color);
    }
}
