//! Legend of a heat map: the colour scale with the limit, and a histogram of cells above it.

use egui::{Align2, Color32, Pos2, Rect, Stroke, Ui, Vec2};

use super::fonts::Weight;
use super::theme::{Theme, heat, size};

/// Height of a legend in points.
pub const HEIGHT: f32 = 62.0;

/// Contents of a legend. Positions are fractions of the scale's width, 0 to 1.
pub struct HeatLegend<'a> {
    /// End of the colour scale; values beyond it are over the limit.
    pub end: f32,
    /// End of the range over the limit; equal to `end` if nothing is over.
    pub over_end: f32,
    /// Whether higher values are paler.
    pub reversed: bool,
    /// Start on the theme's colour scale, 0 to 1; above 0 if an empty cell must look different from the value 0.
    pub floor: f32,
    /// Position and label of the limit.
    pub limit: Option<(f32, String)>,
    /// (position, label) of the ticks under the scale.
    pub ticks: Vec<(f32, String)>,
    /// Histogram bars: (start, end, count, whether over the limit).
    pub bars: Vec<(f32, f32, u32, bool)>,
    /// Lines of text to the right of the scale.
    pub lines: &'a [(String, Color32)],
}

impl HeatLegend<'_> {
    /// Draws the legend in `rect`.
    pub fn show(&self, ui: &Ui, theme: &Theme, rect: Rect) {
        let painter = ui.painter();
        let small = Weight::Regular.at(size::SMALL);
        let wide = |words: &String| painter.layout_no_wrap(words.clone(), small.clone(), theme.text2).size().x;
        let beside = self.lines.iter().map(|(words, _)| wide(words)).fold(0.0, f32::max) + 24.0;
        let scale = Rect::from_min_max(
            Pos2::new(rect.left(), rect.top() + 34.0),
            Pos2::new((rect.right() - beside).max(rect.left()), rect.top() + 46.0),
        );
        let at = |share: f32| scale.left() + share * scale.width();
        for i in 0..96 {
            let (from, to) = (i as f32 / 96.0, (i + 1) as f32 / 96.0);
            let part = Rect::from_min_max(
                Pos2::new(at(self.end * from), scale.top()),
                Pos2::new(at(self.end * to) + 0.5, scale.bottom()),
            );
            let share = f32::midpoint(from, to);
            let share = if self.reversed { 1.0 - share } else { share };
            painter.rect_filled(part, 0.0, heat(theme, share.mul_add(1.0 - self.floor, self.floor)));
        }
        if self.over_end > self.end {
            let part =
                Rect::from_min_max(Pos2::new(at(self.end), scale.top()), Pos2::new(at(self.over_end), scale.bottom()));
            painter.rect_filled(part, 0.0, theme.over);
        }
        let highest = self.bars.iter().map(|bar| bar.2).max().unwrap_or(1).max(1);
        for &(from, to, count, over) in self.bars.iter().filter(|bar| bar.2 > 0) {
            let height = (count as f32 / highest as f32).sqrt() * 26.0;
            let bar = Rect::from_min_max(
                Pos2::new(at(from), scale.top() - 3.0 - height.max(1.5)),
                Pos2::new((at(to) - 1.0).max(at(from) + 1.0), scale.top() - 3.0),
            );
            painter.rect_filled(bar, 0.0, if over { theme.over } else { theme.text2 });
        }
        let below = |place: f32| Pos2::new(place, scale.bottom() + 2.0);
        let mut taken = None;
        if let Some((share, words)) = &self.limit {
            let place = at(*share);
            painter.vline(place.round(), rect.top() + 4.0..=scale.bottom() + 3.0, Stroke::new(2.0, theme.over));
            // Below what is over it, as far as that has room.
            let galley = painter.layout_no_wrap(words.clone(), Weight::SemiBold.at(size::SMALL), theme.danger);
            let left = (place + 2.0).min(scale.right() - galley.size().x).max(scale.left());
            let label = Rect::from_min_size(Pos2::new(left, scale.bottom() + 2.0), galley.size());
            painter.galley(label.min, galley, theme.danger);
            taken = Some(label.expand2(Vec2::new(4.0, 0.0)));
        }
        let mut free = f32::NEG_INFINITY;
        for (share, words) in &self.ticks {
            let galley = painter.layout_no_wrap(words.clone(), small.clone(), theme.text2);
            let is_limit = self.limit.as_ref().is_some_and(|(limit, _)| share >= limit);
            let align = match (*share <= 0.0, is_limit || at(*share) + galley.size().x / 2.0 > scale.right()) {
                (true, _) => Align2::LEFT_TOP,
                (false, true) => Align2::RIGHT_TOP,
                (false, false) => Align2::CENTER_TOP,
            };
            let inset = if is_limit { 6.0 } else { 0.0 };
            let place = align.anchor_size(below(at(*share) - inset), galley.size());
            // The limit's label has the room, and then the number before.
            if taken.is_none_or(|taken| !taken.intersects(place)) && place.left() > free {
                free = place.right() + 4.0;
                painter.galley(place.min, galley, theme.text2);
            }
        }
        for (i, (words, color)) in self.lines.iter().enumerate() {
            let place = Pos2::new(rect.right(), rect.top() + 2.0 + 15.0 * i as f32);
            painter.text(place, Align2::RIGHT_TOP, words, small.clone(), *color);
        }
    }
}
