//! The lifetime chart: a row for each buffer, or for equal buffers of all layers, over the time axis.

use std::sync::Arc;

use super::groups::Groups;
use super::lifetime_rows::{Group, Lifetimes, Rows, Sort};
use super::map;
use super::state::{AT_ONCE, Drawn};
use crate::analysis::live_at::{Residency, argument_before};
use crate::model::{Bytes, counted, thousands};
use crate::ui::chart::{self, Span, Window, YAxis};
use crate::ui::part::{ViewContext, menu};
use crate::ui::session::RowScope;
use crate::ui::widget::controls::{self, paint_cut, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::raster::Raster;
use crate::ui::widget::theme::{NO_MATCH, Theme, mix, size};
use crate::ui::work::{Highlight, Sheet, SpaceData};
use egui::{Align2, Pos2, Rangef, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

/// Height of a row.
const ROW: f32 = 20.0;
/// Width of the scroll bar.
const BAR: f32 = 8.0;

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut Lifetimes, drawn: Drawn<'_>) {
    let Drawn { data, groups, layout } = drawn;
    let theme = context.theme;
    if context.scene().is_none() {
        return;
    }
    let band = layout.lifetimes;
    let rect = layout.lifetime_rows();
    let head =
        Rect::from_min_max(Pos2::new(band.left() - 56.0, band.top() - 22.0), Pos2::new(band.right(), rect.top() - 2.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(head).id_salt("lifetimes head"));
    switches(&mut child, context, state);
    state.update(context, data, groups);
    if rect.height() < ROW {
        return;
    }
    let rows = Arc::clone(&state.shown);
    let count = rows.lines.len();
    let visible = f64::from(rect.height() / ROW);
    by_keys(ui, context, state, data, rect, visible);
    scroll(ui, context, state, data, rect, visible);
    let y = Span::new(-(state.top + visible), -state.top);
    let key = (
        (context.shared.program, context.shared.color),
        state.version,
        context.document.id(),
        (theme.dark, groups.stacked().names.len()),
        context.find_key(),
    );
    let window = Window { rect, x: layout.x, y };
    let painted = Picture {
        rows: Arc::clone(&rows),
        data: Arc::clone(data),
        groups: groups.clone(),
        theme: *theme,
        window,
        lit: context.lit(),
    };
    let at_once = count <= AT_ONCE;
    let sheet = Sheet { window, name: "lifetimes", ground: theme.panel, at_once };
    state.picture.show(ui, context.work, sheet, key, move |raster| painted.paint(raster));
    YAxis::Plain.draw(ui, theme, &window);
    if count == 0 {
        let words = if state.is_listing() { "" } else { "No buffer is live here: choose another step, or All" };
        let font = Weight::Regular.at(size::BODY);
        ui.painter().text(rect.center(), Align2::CENTER_CENTER, words, font, theme.text2);
    }
    let clip = rect.intersect(ui.clip_rect());
    let first = state.top.floor() as usize;
    for row in first..(first + visible.ceil() as usize + 1).min(count) {
        let top = rect.top() + ((row as f64 - state.top) * f64::from(ROW)) as f32;
        let line = Rect::from_min_size(Pos2::new(rect.left(), top), Vec2::new(rect.width(), ROW));
        let sensed = line.intersect(clip);
        if sensed.height() >= 2.0 {
            one(ui, context, state, drawn, &rows, &RowRect { row, line, sensed });
        }
    }
    bar(ui, theme, state, rect, count, visible);
}

fn switches(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut Lifetimes) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        ui.label(text("Lifetimes", size::SMALL, Weight::SemiBold, theme.text));
        let at_step = format!("At step {}", context.step());
        let chosen = RowScope::ALL.iter().position(|scope| *scope == context.shared.rows).unwrap_or(0);
        if let Some(i) = segmented(ui, &["At the peak", &at_step, "All"], chosen, theme) {
            context.shared.list_rows(RowScope::ALL[i]);
        }
        ui.label(text("by", size::SMALL, Weight::Regular, theme.text2));
        let chosen = Sort::ALL.iter().position(|sort| *sort == state.sort).unwrap_or(0);
        if let Some(i) = segmented(ui, &["Size", "Start", "Length", "Name"], chosen, theme) {
            state.sort = Sort::ALL[i];
            state.top = 0.0;
        }
        if controls::toggle_button(ui, "Fold layers", "", controls::On(state.fold), theme).clicked() {
            state.fold = !state.fold;
            state.top = 0.0;
        }
        if ui.available_width() > 90.0 {
            let words = counted(state.shown.lines.len() as u64, "row");
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        }
    });
}

/// Everything the picture depends on, for the worker that draws it.
struct Picture {
    rows: Arc<Rows>,
    data: Arc<SpaceData>,
    groups: Groups,
    theme: Theme,
    window: Window,
    lit: Option<Highlight>,
}

impl Picture {
    fn paint(&self, raster: &mut Raster) {
        let (width, height) = (raster.width() as f64, raster.height() as f64);
        let (x, y) = (self.window.x, self.window.y);
        let px = |point: f64| (x.share(point) * width).round().clamp(-2.0, width + 2.0) as i64;
        let py = |row: f64| ((1.0 - y.share(-row)) * height).round() as i64;
        let first = (-y.hi).floor().max(0.0) as usize;
        let last = ((-y.lo).ceil().max(0.0) as usize).min(self.rows.lines.len());
        let gap = (raster.scale() * 2.0).round() as i64;
        for row in first..last {
            let (top, bottom) = (py(row as f64) + gap, py(row as f64 + 1.0) - gap);
            let line = self.rows.lines[row] as usize;
            match self.rows.groups.get(line) {
                Some(group) => paint_group(raster, &self.theme, group, x, (top, bottom)),
                None => {
                    let Some(item) = self.data.map.boxes.get(line) else { continue };
                    let left = px(f64::from(item.start));
                    let right = px(f64::from(item.end) + 1.0).max(left + 1);
                    let color = self.groups.slot_of(item.buffer).color();
                    let is_lit = self.lit.as_ref().is_none_or(|lit| lit.has(item.buffer));
                    let color = if is_lit { color } else { mix(color, self.theme.panel, NO_MATCH) };
                    // Memory reserved before it is first written and after it is last read: a line at the bottom.
                    if let Some(spans) = Residency::of(&self.data.map, item.buffer) {
                        let foot = (raster.scale() * 2.0).round() as i64;
                        let (first, last) = (px(f64::from(spans.reserved.0)), px(f64::from(spans.reserved.1) + 1.0));
                        raster.fill(first, bottom - foot, last, bottom, mix(color, self.theme.panel, 0.35));
                    }
                    raster.fill(left, top, right, bottom, color);
                }
            }
        }
    }
}

/// Draws a folded row: its live bytes over time.
fn paint_group(raster: &mut Raster, theme: &Theme, group: &Group, x: Span, (top, bottom): (i64, i64)) {
    let width = raster.width() as i64;
    let ground = mix(theme.panel, group.slot.color(), 0.18);
    for column in 0..width {
        let from = x.at(column as f64 / width as f64).floor().max(0.0) as u32;
        let to = (x.at((column + 1) as f64 / width as f64).ceil() as u32).max(from + 1);
        if to <= group.start || from > group.end {
            continue;
        }
        raster.fill(column, top, column + 1, bottom, ground);
        let Some((value, _)) = group.pyramid.max_in(&group.curve, from.max(group.start), to) else { continue };
        if value > 0 {
            let high = ((value as f64 / group.highest as f64) * (bottom - top) as f64).round().max(1.0) as i64;
            raster.fill(column, bottom - high, column + 1, bottom, group.slot.color());
        }
    }
}

/// Where a row is drawn.
struct RowRect {
    /// Index in the list.
    row: usize,
    line: Rect,
    /// Visible part of the row.
    sensed: Rect,
}

/// Draws the name and size of a row and handles its input.
fn one(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut Lifetimes,
    Drawn { data, groups, layout }: Drawn<'_>,
    rows: &Rows,
    &RowRect { row, line, sensed }: &RowRect,
) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let index = rows.lines[row] as usize;
    let group = rows.groups.get(index);
    let (buffer, start, end, bytes, slot) = match (group, data.map.boxes.get(index)) {
        (Some(g), _) => (g.largest, g.start, g.end, g.bytes, g.slot),
        (None, Some(b)) => (b.buffer, b.start, b.end, b.size, groups.slot_of(b.buffer)),
        (None, None) => return,
    };
    let name = match group {
        Some(group) if group.count == 1 => group.name.clone(),
        Some(group) => format!("{} \u{d7} {}", group.name, thousands(group.count as u64)),
        None => state.names.name(context.program_id(), scene, buffer).to_owned(),
    };
    let painter = ui.painter().with_clip_rect(
        Rect::everything_above(line.bottom())
            .intersect(sensed.union(Rect::from_min_max(Pos2::new(line.left() - 72.0, sensed.top()), sensed.max))),
    );
    let small = Weight::Regular.at(size::SMALL);
    let y = line.center().y.round();
    let cursor = layout.x_of(f64::from(context.step()) + 0.5);
    let left = layout.x_of(f64::from(start)).max(line.left());
    let right = layout.x_of(f64::from(end) + 1.0).min(line.right());
    let size_at = Pos2::new(line.left() - 10.0, y);
    painter.text(size_at, Align2::RIGHT_CENTER, context.short(Bytes(bytes)), small.clone(), theme.text2);
    let selected = context.shared.selected == Some(buffer);
    let response = ui.interact(sensed, ui.scope_id().with(("lifetime", row)), Sense::CLICK);
    let spans = Residency::in_words_of(scene.program, &data.map, buffer).filter(|_| group.is_none());
    let unit = data.map.axis.unit();
    let mut spoken = format!(
        "{name} {}, {unit}s {} to {}",
        context.short(Bytes(bytes)),
        thousands(start.into()),
        thousands(end.into())
    );
    if let Some(words) =
        spans.and_then(|spans| spans.note(unit, || argument_before(scene.program, scene.analysis, &data.map, buffer)))
    {
        spoken = format!("{spoken}; {words}");
    }
    response.widget_info(|| WidgetInfo::selected(Role::Row, true, selected, &spoken));
    let outside = right < line.left() || left > line.right() || right <= left;
    if outside {
        // Outside the visible range: an arrow points to it.
        let before = layout.x_of(f64::from(start)) < line.left();
        let (at, align, words) = if before {
            (Pos2::new(line.left() + 6.0, y), Align2::LEFT_CENTER, format!("\u{2190} {name}"))
        } else {
            (Pos2::new(line.right() - 14.0, y), Align2::RIGHT_CENTER, format!("{name} \u{2192}"))
        };
        painter.text(at, align, words, small, theme.text3);
    } else if right - left > 90.0 {
        let color = if group.is_some() { theme.text } else { slot.text() };
        let font = Weight::Medium.at(size::SMALL);
        let whole = painter.layout_no_wrap(name.clone(), font.clone(), color).size().x;
        let place = chart::aside(Rangef::new(left + 6.0, right - 4.0), whole, cursor);
        let at = Pos2::new(place.min, y);
        if group.is_some() {
            // Over a partly filled area, the text needs a background of its own.
            let wide = whole.min(place.span());
            let ground = Rect::from_min_size(at - Vec2::new(3.0, 7.5), Vec2::new(wide + 6.0, 15.0));
            painter.rect_filled(ground, 2.0, theme.canvas.gamma_multiply(0.82));
        }
        paint_cut(&painter, (at, Align2::LEFT_CENTER), &name, font, color, place.span());
    } else if line.right() - right > 140.0 {
        let whole = painter.layout_no_wrap(name.clone(), small.clone(), theme.text).size().x;
        let place = chart::aside(Rangef::new(right + 6.0, line.right() - 14.0), whole, cursor);
        let at = Pos2::new(place.min, y);
        paint_cut(&painter, (at, Align2::LEFT_CENTER), &name, small, theme.text, place.span());
    } else {
        let galley = painter.layout_no_wrap(name.clone(), small, theme.text);
        let at = Pos2::new((left - 6.0 - galley.size().x).max(line.left() + 4.0), y - galley.size().y / 2.0);
        painter.galley(at, galley, theme.text);
    }
    if selected || response.hovered() {
        let outline = Rect::from_min_max(
            Pos2::new(left, line.top() + 1.0),
            Pos2::new(right.max(left + 2.0), line.bottom() - 1.0),
        );
        painter.rect_stroke(
            outline,
            0.0,
            Stroke::new(if selected { 2.5 } else { 1.5 }, theme.ink),
            StrokeKind::Outside,
        );
    }
    if response.clicked() {
        context.shared.select(buffer);
        state.last_selected = Some(buffer);
    }
    if response.double_clicked()
        && let Some(item) = data.box_of(buffer)
    {
        context.shared.zoom_to(map::fit_time(item, layout.whole));
    }
    if response.hovered() {
        context.shared.hover(buffer);
        if let Some(at) = response.hover_pos() {
            context.shared.hover_step(layout.window().step_at(at.x, data.map.points));
        }
    }
    let item = data.box_of(buffer).copied();
    response.on_hover_ui_at_pointer(|ui| {
        if let Some(group) = group {
            ui.label(text(&group.name, size::BODY, Weight::SemiBold, theme.text));
            let words = format!(
                "{}, {} in total, at most {} at a time",
                counted(group.count as u64, "buffer"),
                context.short(Bytes(group.bytes)),
                context.short(Bytes(group.highest))
            );
            ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
        } else if let Some(item) = item {
            map::tooltip(ui, context, scene, &item);
        }
    });
}

/// Keyboard input: arrows choose the row above or below, Enter focuses its buffer.
fn by_keys(ui: &Ui, context: &mut ViewContext<'_>, state: &mut Lifetimes, data: &SpaceData, rect: Rect, visible: f64) {
    let rows = Arc::clone(&state.shown);
    let count = rows.lines.len();
    let field = ui.interact(rect, ui.scope_id().with("lifetimes"), Sense::FOCUSABLE);
    field.widget_info(|| WidgetInfo::labeled(Role::Table, true, format!("Lifetimes of {count} rows")));
    let pressed = keys::field(ui, &field);
    if pressed.has_focus {
        let selected = context.shared.selected;
        menu::aim(context, selected, rect);
    }
    if count == 0 || !(pressed.moves() || pressed.enter) {
        return;
    }
    let buffer_of = |line: u32| {
        let group = rows.groups.get(line as usize).map(|group| group.largest);
        group.or_else(|| data.map.boxes.get(line as usize).map(|item| item.buffer))
    };
    let selected = context.shared.selected;
    let own = selected.and_then(|buffer| data.map.row_of(buffer));
    let now = match (rows.groups.is_empty(), own) {
        (true, Some(own)) => rows.lines.iter().position(|line| *line == own),
        _ => rows.lines.iter().position(|line| selected.is_some() && buffer_of(*line) == selected),
    };
    let to = match now {
        _ if pressed.first => 0,
        _ if pressed.last => count - 1,
        None => 0,
        Some(now) => {
            let by = pressed.by.y as isize + (f64::from(pressed.pages) * visible.floor()) as isize;
            now.saturating_add_signed(by).min(count - 1)
        }
    };
    context.shared.select(rows.lines.get(to).and_then(|line| buffer_of(*line)).or(selected));
    if pressed.enter
        && let Some(item) = context.shared.selected.and_then(|buffer| data.box_of(buffer))
    {
        context.shared.zoom_to(map::fit_time(item, Span::new(0.0, f64::from(data.map.points.max(1)))));
    }
}

/// Scrolls the rows by wheel, and to the selection.
fn scroll(ui: &Ui, context: &ViewContext<'_>, state: &mut Lifetimes, data: &SpaceData, rect: Rect, visible: f64) {
    if ui.rect_contains_pointer(rect) {
        let (wheel, zooms) = ui.input(|i| (i.smooth_scroll_delta().y, i.modifiers.command));
        if !zooms {
            state.top -= f64::from(wheel / ROW);
        }
    }
    if context.shared.selected != state.last_selected {
        state.last_selected = context.shared.selected;
        let row = context.shared.selected.and_then(|buffer| {
            let own = data.map.row_of(buffer)?;
            if state.shown.groups.is_empty() {
                state.shown.lines.iter().position(|&line| line == own)
            } else {
                state.shown.groups.iter().position(|group| group.largest == buffer)
            }
        });
        if let Some(row) = row.map(|row| row as f64).filter(|row| *row < state.top || *row + 1.0 > state.top + visible)
        {
            state.top = row - visible / 2.0;
        }
    }
    let count = state.shown.lines.len();
    state.top = state.top.clamp(0.0, (count as f64 - visible + 0.5).max(0.0));
}

fn bar(ui: &Ui, theme: &Theme, state: &mut Lifetimes, rect: Rect, count: usize, visible: f64) {
    let last = count as f64 - visible;
    if last <= 0.0 {
        return;
    }
    let track = Rect::from_min_max(Pos2::new(rect.right() - BAR, rect.top()), rect.max);
    let length = (f64::from(track.height()) * visible / count as f64).max(24.0);
    let room = f64::from(track.height()) - length;
    let drag = ui.interact(track, ui.scope_id().with("lifetimes bar"), Sense::click_and_drag());
    drag.widget_info(|| WidgetInfo::labeled(Role::ScrollBar, true, "Scroll lifetimes"));
    if let Some(at) = drag.interact_pointer_pos().filter(|_| room > 0.0) {
        state.top = ((f64::from(at.y - track.top()) - length / 2.0) / room * last).clamp(0.0, last);
    }
    let top = track.top() + (room * (state.top / last).min(1.0)) as f32;
    let thumb = Rect::from_min_size(Pos2::new(track.left() + 1.0, top), Vec2::new(BAR - 2.0, length as f32));
    ui.painter().rect_filled(thumb, 3.0, if drag.hovered() || drag.dragged() { theme.text3 } else { theme.line2 });
}
