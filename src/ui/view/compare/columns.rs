//! Three and more profiles side by side: what each holds at its peak by class against the limit, and a table of numbers.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, WidgetInfo};

use super::state::{Found, State};
use crate::analysis::class::Class;
use crate::export::diff;
use crate::model::{Bytes, counted};
use crate::ui::chart::{self, Fit, Span, Window, YAxis};
use crate::ui::part::colors::slot_of_class;
use crate::ui::part::{Action, ViewContext};
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table};
use crate::ui::widget::theme::size;

/// Height of the title, and of two lines of words below the bars.
const TITLE: f32 = 22.0;
const BELOW: f32 = 34.0;

/// Draws the columns; a click on one between before and after compares with it instead.
pub fn bars(ui: &mut Ui, context: &mut ViewContext<'_>, found: &Found, rect: Rect) {
    let Some(sweep) = &found.sweep else { return };
    let theme = context.theme;
    let columns = &sweep.columns;
    let head = (Pos2::new(rect.left(), rect.top() + 8.0), Align2::LEFT_CENTER);
    let bold = Weight::SemiBold.at(size::BODY);
    paint_cut(ui.painter(), head, &answer(columns, context), bold, theme.text, rect.width());
    let limit = columns.last().and_then(|column| column.capacity_bytes);
    let right = if limit.is_some() { chart::RIGHT } else { chart::RIGHT_PLAIN };
    let plot = Rect::from_min_max(
        Pos2::new(rect.left() + chart::LEFT, rect.top() + TITLE),
        Pos2::new(rect.right() - right, rect.bottom() - BELOW),
    );
    let most =
        columns.iter().map(|column| column.allocated_bytes.max(column.peak_bytes.unwrap_or(0))).max().unwrap_or(0);
    let y = Fit::of(ui.ctx()).bytes(most, || most, found.limit());
    let window = Window { rect: plot, x: Span::new(0.0, 1.0), y };
    ui.painter().rect_filled(plot, 0.0, theme.panel);
    YAxis::Bytes(context.options.units).draw(ui, theme, &window);
    let width = plot.width() / columns.len().max(1) as f32;
    for (at, column) in columns.iter().enumerate() {
        let left = plot.left() + width * at as f32;
        let half = (width * 0.36).min(60.0);
        let middle = left + width / 2.0;
        let place = Rect::from_x_y_ranges((middle - half).round()..=(middle + half).round(), plot.y_range());
        let spoken = stack(ui, context, &window, place, column);
        let whole = Rect::from_x_y_ranges(left..=left + width, plot.top()..=rect.bottom());
        let response = ui.interact(whole, ui.scope_id().with(("column", at)), Sense::click());
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, spoken.join(", ")));
        if response.hovered() || response.has_focus() {
            ui.painter().rect_stroke(place.expand(3.0), 0.0, Stroke::new(1.5, theme.accent), StrokeKind::Inside);
        }
        let color = if column.verdict == "over" { theme.danger } else { theme.text };
        let short = context.short(Bytes(column.allocated_bytes));
        let lines = [(short, Weight::SemiBold, color), (column.file.clone(), Weight::Regular, theme.text2)];
        for (row, (words, weight, color)) in lines.into_iter().enumerate() {
            let galley = ui.painter().layout_no_wrap(words.clone(), weight.at(size::SMALL), color);
            let from = (middle - galley.size().x / 2.0).max(left + 2.0);
            let at = (Pos2::new(from, plot.bottom() + 11.0 + 15.0 * row as f32), Align2::LEFT_CENTER);
            paint_cut(ui.painter(), at, &words, weight.at(size::SMALL), color, width - 4.0);
        }
        // The first column is before, the last one is shown.
        let beside = at.checked_sub(1).and_then(|at| context.document.before.as_ref()?.beside.get(at));
        if response.clicked()
            && let Some(beside) = beside
        {
            context.actions.push(Action::CompareColumn(beside.id));
        }
        response.on_hover_ui_at_pointer(|ui| {
            for line in &spoken {
                ui.label(text(line, size::SMALL, Weight::Regular, theme.text));
            }
            if beside.is_some() {
                ui.label(text("Click: compare with this one", size::SMALL, Weight::Regular, theme.text2));
            }
        });
    }
    chart::limit(ui, theme, &window, limit, context.options.units);
}

/// How many fit, and from how much to how much they need.
fn answer(columns: &[diff::Column], context: &ViewContext<'_>) -> String {
    let allocated = || columns.iter().map(|column| column.allocated_bytes);
    let (least, most) = (allocated().min().unwrap_or(0), allocated().max().unwrap_or(0));
    let sizes = format!("{} to {} allocated", context.short(Bytes(least)), context.short(Bytes(most)));
    let fitting = columns.iter().filter(|column| column.verdict == "fits").count();
    if columns.iter().any(|column| column.verdict == "unknown") {
        return format!("{}, {sizes}", counted(columns.len() as u64, "program"));
    }
    format!("{fitting} of {} fit, {sizes}", counted(columns.len() as u64, "program"))
}

/// A column by class, with what is allocated and not in use at the peak on top; returns its words.
fn stack(ui: &Ui, context: &ViewContext<'_>, window: &Window, place: Rect, column: &diff::Column) -> Vec<String> {
    let theme = context.theme;
    let y = |bytes: u64| window.y_of(bytes as f64).clamp(window.rect.top(), window.rect.bottom());
    let mut words = vec![format!("{}, {}", column.file, column.program)];
    words.push(format!("allocated {}", context.short(Bytes(column.allocated_bytes))));
    let mut at = 0u64;
    for (name, bytes) in &column.by_class {
        let Some(class) = Class::ALL.into_iter().find(|class| class.name() == *name) else { continue };
        let part = Rect::from_x_y_ranges(place.x_range(), y(at.saturating_add(*bytes))..=y(at));
        ui.painter().rect_filled(part, 0.0, slot_of_class(class).color());
        at = at.saturating_add(*bytes);
        words.push(format!("{name} {}", context.short(Bytes(*bytes))));
    }
    if column.allocated_bytes > at {
        let part = Rect::from_x_y_ranges(place.x_range(), y(column.allocated_bytes)..=y(at));
        ui.painter().rect(part, 0.0, theme.inset, Stroke::new(1.0, theme.text3), StrokeKind::Inside);
        let rest = column.allocated_bytes - at;
        words.push(format!("unused at the peak {}", context.short(Bytes(rest))));
    }
    words
}

/// The numbers of every column, as `highwater diff` prints them.
pub fn table(ui: &mut Ui, state: &mut State, found: &Found) {
    let Some(sweep) = &found.sweep else { return };
    let rows = sweep.rows();
    let count = sweep.columns.len().max(1);
    let width = ((ui.available_width() - 170.0) / count as f32).clamp(90.0, 180.0);
    let mut columns = vec![Column::text("At the peak", 150.0, 1.0).fixed()];
    columns.extend(sweep.columns.iter().map(|column| Column::number(&column.file, width).fixed()));
    let table = Table {
        columns: &columns,
        rows: rows.len(),
        selected: None,
        lit: None,
        sort: None,
        name: "columns",
        keys: true,
    };
    let label = |line: usize| format!("{}: {}", rows[line].0.trim(), rows[line].1.join(", "));
    let class = |words: &str| Class::ALL.into_iter().find(|class| class.name() == words.trim());
    table.show(ui, &mut state.columns, label, |line, column| {
        let (name, cells) = &rows[line];
        match column.checked_sub(1).and_then(|at| cells.get(at)) {
            None => {
                let cell = Cell::text(name.trim());
                class(name).map_or_else(|| cell.clone(), |class| cell.clone().swatch(slot_of_class(class)))
            }
            Some(words) => Cell::text(words.clone()),
        }
    });
}
