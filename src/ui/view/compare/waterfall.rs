//! From the allocated bytes before to those after, class by class or scope by scope: every step starts where the last one ended.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, UiBuilder, WidgetInfo};

use super::state::{Chart, Found, List, State};
use super::words::slot_of_step;
use crate::export::diff::{SpaceDiff, StepDiff, UNUSED, parts};
use crate::model::{Bytes, UnitSystem, capitalised};
use crate::ui::chart::legend::{self, Sign};
use crate::ui::chart::{self, Fit, Span, Window, YAxis};
use crate::ui::part::{ViewContext, class_legend};
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Slot, Theme, size};

/// Height of the title, and of two lines of words below the bars.
const TITLE: f32 = 22.0;
const BELOW: f32 = 34.0;
/// Steps that are drawn singly; the rest are one step.
const MOST: usize = 7;
/// Least width of a bar with its words: a change in bytes with its unit.
const LEAST: f32 = 70.0;

/// A bar of the drawing.
struct Bar<'a> {
    name: String,
    difference: i128,
    /// Bytes at which it starts and ends.
    from: i128,
    to: i128,
    steps: Vec<&'a StepDiff>,
}

/// Draws the waterfall into a rectangle; a click on a class or scope lists its rows.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, found: &Found, rect: Rect) {
    let Some(space) = found.space() else { return };
    let theme = context.theme;
    let units = context.options.units;
    let head = Pos2::new(rect.left(), rect.top() + 8.0);
    let (words, steps) = match state.chart {
        Chart::Scopes => (found.words().by_scope, &space.waterfall_by_scope),
        _ => (found.words().by_class, &space.waterfall),
    };
    let words = found.allocator().map_or_else(|| words.to_owned(), |held| words.replacen("{}", held.total_is, 1));
    let words = capitalised(&words);
    let bold = Weight::SemiBold.at(size::BODY);
    let (title, _) = paint_cut(ui.painter(), (head, Align2::LEFT_CENTER), &words, bold, theme.text, rect.width());
    parts_legend(ui, theme, space, Rect::from_x_y_ranges(title.right() + 12.0..=rect.right(), title.y_range()));
    let (Some(before), Some(after)) = (space.allocated.before, space.allocated.after) else { return };
    let limit = space.capacity.after;
    let right = if limit.is_some() { chart::RIGHT } else { chart::RIGHT_PLAIN };
    let plot = Rect::from_min_max(
        Pos2::new(rect.left() + chart::LEFT, rect.top() + TITLE),
        Pos2::new(rect.right() - right, rect.bottom() - BELOW),
    );
    // As many bars as have room for their words.
    let room = ((plot.width() / LEAST) as usize).saturating_sub(2).clamp(1, MOST);
    let bars = bars(steps, i128::from(before), room);
    let most = bars.iter().flat_map(|bar| [bar.from, bar.to]).max().unwrap_or(0).max(i128::from(after));
    let most = u64::try_from(most).unwrap_or(0).max(before);
    let window =
        Window { rect: plot, x: Span::new(0.0, 1.0), y: Fit::of(ui.ctx()).bytes(most, || most, found.limit()) };
    ui.painter().rect_filled(plot, 0.0, theme.panel);
    YAxis::Bytes(units).draw(ui, theme, &window);
    let width = plot.width() / (bars.len() + 2) as f32;
    let column = |at: usize| {
        let left = plot.left() + width * at as f32;
        Rect::from_x_y_ranges((left + width * 0.14).round()..=(left + width * 0.86).round(), plot.y_range())
    };
    let end = bars.len() + 1;
    whole(ui, context, &window, column(0), ("Before", space, |step| step.before));
    whole(ui, context, &window, column(end), ("After", space, |step| step.after));
    let y = |bytes: i128| window.y_of(bytes as f64).clamp(plot.top(), plot.bottom());
    for (at, bar) in bars.iter().enumerate() {
        let place = column(at + 1);
        let (top, bottom) = (y(bar.from.max(bar.to)), y(bar.from.min(bar.to)));
        let color = if bar.difference > 0 { theme.grew } else { theme.shrank };
        let fill = Rect::from_x_y_ranges(place.x_range(), top..=bottom.max(top + 1.5));
        ui.painter().rect_filled(fill, 0.0, color);
        sign(ui, theme, fill, bar.difference);
        if step(ui, context, bar, Rect::from_x_y_ranges(place.x_range(), plot.top()..=rect.bottom())) {
            state.wanted.words = match &bar.steps[..] {
                [only] => only.name.text().to_owned(),
                _ => String::new(),
            };
            state.list = List::Differences;
        }
        let name = if bar.name == UNUSED { "unused" } else { &bar.name };
        label(ui, theme, (place, plot.bottom(), width), name, &amount(units, bar.difference));
    }
    // What a step ends at is where the next one starts.
    let line = Stroke::new(1.0, theme.text3);
    for at in 0..=bars.len() {
        let level = y(bars.get(at).map_or(i128::from(after), |bar| bar.from));
        ui.painter().hline(column(at).right()..=column(at + 1).left(), level.round(), line);
    }
    let short = |bytes: u64| units.short(Bytes(bytes));
    label(ui, theme, (column(0), plot.bottom(), width), "Before", &short(before));
    label(ui, theme, (column(end), plot.bottom(), width), "After", &short(after));
    chart::limit(ui, theme, &window, limit, units);
}

/// Room for the entry of what is unused.
const UNUSED_ROOM: f32 = 80.0;

/// What the colours in the bars before and after are, beside the title.
fn parts_legend(ui: &mut Ui, theme: &Theme, space: &SpaceDiff, place: Rect) {
    let shown = |step: &StepDiff| step.before > 0 || step.after > 0;
    let mut entries: Vec<(&str, Slot, u64)> = Vec::new();
    for step in space.waterfall.iter().filter(|step| shown(step)) {
        let most = u64::try_from(step.before.max(step.after)).unwrap_or(0);
        entries.extend(slot_of_step(step).map(|slot| (step.name.text(), slot, most)));
    }
    entries.sort_by_key(|(_, slot, _)| *slot as usize);
    if entries.is_empty() || place.width() < LEAST {
        return;
    }
    let layout = egui::Layout::left_to_right(egui::Align::Center);
    let mut child = ui.new_child(UiBuilder::new().max_rect(place).layout(layout).id_salt("parts of the bars"));
    // What no buffer has at the peak is outlined.
    let is_unused = |step: &StepDiff| shown(step) && slot_of_step(step).is_none();
    let has_unused = place.width() > 4.0 * UNUSED_ROOM && space.waterfall.iter().any(is_unused);
    class_legend::fitting(&mut child, theme, &entries, if has_unused { UNUSED_ROOM } else { 0.0 });
    if has_unused {
        legend::entry(&mut child, theme, Sign::Free, "unused");
    }
}

/// The steps as bars; what is small is one bar, so that its words can be read.
fn bars<'a>(steps: &'a [StepDiff], before: i128, most: usize) -> Vec<Bar<'a>> {
    let mut steps: Vec<&StepDiff> = steps.iter().filter(|step| step.difference != 0).collect();
    if steps.len() > most {
        // The small ones are together at the end; the others keep their order.
        let mut sizes: Vec<u128> = steps.iter().map(|step| step.difference.unsigned_abs()).collect();
        sizes.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
        let least = sizes.get(most.saturating_sub(2)).copied().unwrap_or(0);
        steps.sort_by_key(|step| step.difference.unsigned_abs() < least);
    }
    let single = if steps.len() <= most { steps.len() } else { most - 1 };
    let mut bars = Vec::new();
    let mut at = before;
    let mut add = |name: String, steps: Vec<&'a StepDiff>| {
        let difference: i128 = steps.iter().map(|step| step.difference).sum();
        bars.push(Bar { name, difference, from: at, to: at + difference, steps });
        at += difference;
    };
    for one in &steps[..single] {
        add(one.name.text().to_owned(), vec![*one]);
    }
    if single < steps.len() {
        add(format!("{} others", steps.len() - single), steps[single..].to_vec());
    }
    bars
}

fn amount(units: UnitSystem, difference: i128) -> String {
    if difference == 0 { "=".to_owned() } else { units.signed(difference) }
}

/// All classes of one side, stacked.
fn whole(
    ui: &Ui,
    context: &ViewContext<'_>,
    window: &Window,
    place: Rect,
    (name, space, of): (&str, &SpaceDiff, fn(&StepDiff) -> i128),
) {
    let theme = context.theme;
    let order = |step: &&StepDiff| slot_of_step(step).map_or(usize::MAX, |slot| slot as usize);
    let mut steps: Vec<&StepDiff> = space.waterfall.iter().collect();
    steps.sort_by_key(order);
    let mut at = 0i128;
    let mut spoken = vec![name.to_owned()];
    for step in steps {
        let bytes = of(step);
        if bytes == 0 {
            continue;
        }
        let y = |bytes: i128| window.y_of(bytes.max(0) as f64).clamp(window.rect.top(), window.rect.bottom());
        let part = Rect::from_x_y_ranges(place.x_range(), y(at + bytes)..=y(at));
        match slot_of_step(step) {
            Some(slot) => ui.painter().rect_filled(part, 0.0, slot.color()),
            None => ui.painter().rect(part, 0.0, theme.inset, Stroke::new(1.0, theme.text3), StrokeKind::Inside),
        };
        at += bytes;
        let size =
            u64::try_from(bytes).map_or_else(|_| context.options.units.signed(bytes), |b| context.short(Bytes(b)));
        spoken.push(format!("{} {size}", step.name.text()));
    }
    let words = spoken.join(", ");
    let response = ui.interact(place, ui.scope_id().with(("whole", name)), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &words));
    response.on_hover_ui_at_pointer(|ui| {
        for line in &spoken {
            ui.label(text(line, size::SMALL, Weight::Regular, theme.text));
        }
    });
}

/// The mark of a bar that does not rest on its colour: a plus or a minus where there is room.
fn sign(ui: &Ui, theme: &Theme, fill: Rect, difference: i128) {
    if fill.height() < 16.0 {
        return;
    }
    let words = if difference > 0 { "+" } else { "\u{2212}" };
    ui.painter().text(fill.center(), Align2::CENTER_CENTER, words, Weight::SemiBold.at(size::LEAD), theme.halo);
}

/// The part of the chart that a step answers to; returns whether it was clicked.
fn step(ui: &Ui, context: &ViewContext<'_>, bar: &Bar<'_>, place: Rect) -> bool {
    let (theme, units) = (context.theme, context.options.units);
    let response = ui.interact(place, ui.scope_id().with(("step", &bar.name)), Sense::click());
    let words = format!("{} {}", bar.name, amount(units, bar.difference));
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, &words));
    if response.has_focus() {
        ui.painter().rect_stroke(place, 0.0, Stroke::new(1.5, theme.accent), StrokeKind::Inside);
    }
    let clicked = response.clicked();
    response.on_hover_ui_at_pointer(|ui| {
        for step in &bar.steps {
            let (slot, name) = (slot_of_step(step).unwrap_or(Slot::Temporary), step.name.text());
            crate::ui::widget::controls::legend(ui, slot, name, theme);
            let size =
                |bytes: i128| u64::try_from(bytes).map_or_else(|_| units.signed(bytes), |b| units.short(Bytes(b)));
            let words =
                format!("{} \u{2192} {}, {}", size(step.before), size(step.after), amount(units, step.difference));
            ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
            let made_of = parts(step, units);
            if !made_of.is_empty() {
                ui.label(text(made_of, size::SMALL, Weight::Regular, theme.text2));
            }
        }
    });
    clicked
}

/// Two lines of words below a bar.
fn label(ui: &Ui, theme: &Theme, (place, bottom, width): (Rect, f32, f32), name: &str, amount: &str) {
    let painter = ui.painter();
    for (row, (words, weight, color)) in
        [(amount, Weight::SemiBold, theme.text), (name, Weight::Regular, theme.text2)].into_iter().enumerate()
    {
        let galley = painter.layout_no_wrap(words.to_owned(), weight.at(size::SMALL), color);
        // A number without its unit means nothing: where there is no room for both, neither.
        if row == 0 && galley.size().x > width - 2.0 {
            continue;
        }
        let y = bottom + 11.0 + 15.0 * row as f32;
        let left = (place.center().x - galley.size().x / 2.0).max(place.center().x - width / 2.0 + 1.0);
        paint_cut(
            painter,
            (Pos2::new(left, y), Align2::LEFT_CENTER),
            words,
            weight.at(size::SMALL),
            color,
            width - 2.0,
        );
    }
}
