//! Both curves over one axis: the steps after, those before stretched between the passes that both have.

use egui::{Align2, Pos2, Rect, Stroke, Ui, Vec2};

use super::state::{Curves, Found, State};
use crate::model::Bytes;
use crate::ui::chart::legend::{self, Sign};
use crate::ui::chart::{
    self, Between, Chart, Cursor, Fit, Line, Peak, Reach, Tone, Window, XAxis, step_of, steps_between,
};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Height of the title, and of the row of passes below it.
const TITLE: f32 = 22.0;
const PASSES: f32 = 16.0;

/// Draws the curves into a rectangle.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, found: &Found, rect: Rect) {
    let theme = context.theme;
    heading(ui, theme, rect);
    let Some(curves) = &found.curves else { return };
    let limit = found.space().and_then(|space| space.capacity.after);
    let right = if limit.is_some() { chart::RIGHT } else { chart::RIGHT_PLAIN };
    let plot = Rect::from_min_max(
        Pos2::new(rect.left() + chart::LEFT, rect.top() + TITLE + PASSES),
        Pos2::new(rect.right() - right, rect.bottom() - chart::BELOW),
    );
    let count = curves.aligned.points.1;
    let most = curves.peak_before.0.max(curves.peak_after.0);
    let window =
        Window { rect: plot, x: Reach::steps(count).whole, y: Fit::of(ui.ctx()).bytes(most, || most, found.limit()) };
    let before = |from: f64, to: f64| {
        let (from, to) = (curves.aligned.before_of(from), curves.aligned.before_of(to));
        let (from, to) = steps_between(from, to, curves.aligned.points.0);
        curves.before.highest(from, to).map(|highest| highest.0)
    };
    let after = |from: f64, to: f64| {
        let (from, to) = steps_between(from, to, count);
        curves.after.highest(from, to).map(|highest| highest.0)
    };
    let between = Between { before: &before, after: &after };
    let key = (found.number, limit);
    let units = context.options.units;
    let peak = |(bytes, point): (u64, u32), words: &str, is_before: bool| {
        let x = if is_before { after_of(curves, point) } else { f64::from(point) + 0.5 };
        let words = format!("{} {words}", units.short(Bytes(bytes)));
        Peak { x, y: bytes as f64, words, is_before }
    };
    let peaks = [peak(curves.peak_after, "after", false), peak(curves.peak_before, "before", true)];
    let title = "Live memory before and after, over one axis";
    let marks = curves.aligned.marks.iter().map(|mark| Cursor::pinned(f64::from(mark.after), theme));
    let shown = Chart::new(title, theme, window, XAxis::Steps(curves.unit), units)
        .drawn(ui, &mut state.raster, key, |raster, window| between.draw(raster, window, theme))
        .limit(limit)
        .cursors(marks.map(|cursor| Cursor { stroke: Stroke::new(1.0, theme.line2), ..cursor }))
        .peak(peaks)
        .start(f64::from(curves.peak_after.1) + 0.5)
        .show(ui);
    passes(ui, theme, curves, &window);
    let Some(at) = shown.at else { return };
    let step = step_of(at, count);
    context.shared.hover_step(step);
    let pointed = Cursor { x: f64::from(step) + 0.5, stroke: Stroke::new(1.0, theme.ink) };
    pointed.draw(ui.painter(), &window, &[plot]);
    let from = f64::from(step);
    let there = step_of(curves.aligned.before_of(from), curves.aligned.points.0);
    let is = curves.after.curves.total.at(step);
    let was = curves.before.curves.total.at(there);
    let lines = [
        Line::new(format!("{} {step}", curves.unit), units.short(Bytes(is))).toned(Tone::Title),
        Line::new(format!("before, at {there}"), units.short(Bytes(was))),
        Line::new(
            "difference",
            if is == was { "=".to_owned() } else { units.signed(i128::from(is) - i128::from(was)) },
        ),
    ];
    shown.readout(ui, &lines);
    if shown.is_chosen {
        context.shared.choose_step(step);
    }
}

/// The position after of a step before, found on the stretched axis.
fn after_of(curves: &Curves, point: u32) -> f64 {
    let (mut low, mut high) = (0.0, f64::from(curves.aligned.points.1));
    let wanted = f64::from(point) + 0.5;
    // The axis only rises, so halving finds the place; 60 halves are exact to less than a step.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if curves.aligned.before_of(middle) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn heading(ui: &mut Ui, theme: &Theme, rect: Rect) {
    let line = Rect::from_min_size(rect.min, Vec2::new(rect.width(), 18.0));
    let layout = egui::Layout::left_to_right(egui::Align::Center);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(line).layout(layout).id_salt("curves head"));
    child.label(text("Live memory over the program", size::BODY, Weight::SemiBold, theme.text));
    child.add_space(8.0);
    legend::entry(&mut child, theme, Sign::Dashes, "before");
    child.add_space(6.0);
    legend::entry(&mut child, theme, Sign::Line, "after");
}

/// The names of the passes above the plot, between the marks at which both are aligned.
fn passes(ui: &Ui, theme: &Theme, curves: &Curves, window: &Window) {
    let marks = &curves.aligned.marks;
    let small = Weight::Regular.at(size::SMALL);
    let y = window.rect.top() - PASSES / 2.0;
    if marks.is_empty() {
        let at = (Pos2::new(window.rect.left(), y), Align2::LEFT_CENTER);
        let words = "stretched from end to end: no passes in both";
        paint_cut(ui.painter(), at, words, small, theme.text3, window.rect.width());
        return;
    }
    for (row, mark) in marks.iter().enumerate() {
        let from = window.x_of(f64::from(mark.after));
        let to = marks.get(row + 1).map_or(window.rect.right(), |next| window.x_of(f64::from(next.after)));
        if to - from < 24.0 {
            continue;
        }
        let at = (Pos2::new(from + 4.0, y), Align2::LEFT_CENTER);
        paint_cut(ui.painter(), at, &mark.name, small.clone(), theme.text3, to - from - 8.0);
    }
}
