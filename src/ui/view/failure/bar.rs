//! Memory used against capacity as one bar, by part where the message has parts.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, Ui, Vec2, WidgetInfo};

use super::section::section;
use crate::analysis::failure::{Explanation, Part};
use crate::model::{Bytes, Failure, capitalised, percent};
use crate::ui::chart::legend::Sign;
use crate::ui::chart::{self, Span, Window};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::{legend, paint_cut};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::raster::{CachedRaster, Hatch, RasterArea};
use crate::ui::widget::theme::{Slot, size};

const HEIGHT: f32 = 40.0;
/// Height of a total, which has no parts to name.
const TOTAL: f32 = 14.0;
/// Least width of a part: one that is named in the legend is seen in the bar.
const LEAST: f32 = 2.0;

/// The colour of a part; `None` for free memory.
fn slot(part: &str) -> Option<Slot> {
    Some(match part {
        "arguments" => Slot::Weight,
        "outputs" | "SparseCore" => Slot::Output,
        "constants" => Slot::Constant,
        "reserved" => Slot::Input,
        "tensors" | "in use" | "TensorCore" => Slot::Activation,
        "rest of the program" | "outside PyTorch, this process" => Slot::Thread,
        "another process" | "other processes" | "outside PyTorch" => Slot::Optimizer,
        "outside this process" => Slot::Constant,
        "free" | "largest free block" | "free in smaller pieces" => return None,
        _ => Slot::Temporary,
    })
}

pub fn show(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    failure: &Failure,
    explained: &Explanation,
    hatch: &mut CachedRaster,
) {
    let theme = context.theme;
    if explained.parts.is_empty() {
        return;
    }
    let is_total = explained.is_one_total();
    let by = if is_total { "against capacity" } else { "by part" };
    let title = format!("{} {by}", capitalised(explained.memory));
    ui.horizontal(|ui| {
        section(ui, theme, &title, "");
        for part in explained.parts.iter().filter(|_| !is_total) {
            match slot(part.name) {
                Some(slot) => {
                    legend(ui, slot, part.name, theme);
                }
                None => {
                    chart::legend::entry(ui, theme, Sign::Free, part.name);
                }
            }
        }
    });
    let sum: Bytes = explained.parts.iter().map(|part| part.bytes).sum();
    // A request comes after the parts in use and free.
    let asks = failure.get("used").is_none() && !failure.kind.is_total();
    let requested = explained.needed.filter(|_| asks);
    let capacity = explained.capacity;
    let limit_at = explained.limit_at;
    // The request starts where free memory starts.
    let free = explained.parts.iter().take_while(|part| !part.is_free()).map(|part| part.bytes).sum::<Bytes>();
    let end_of_request = requested.map_or(0, |r| r.0.saturating_add(free.0));
    let whole = sum.0.max(limit_at.map_or(0, |c| c.0)).max(end_of_request).max(1) as f64;
    let x = Span::new(0.0, whole * 1.005);
    let asked_room = if requested.is_some() { 24.0 } else { 0.0 };
    let height = if is_total { TOTAL } else { HEIGHT };
    let (outer, response) =
        ui.allocate_exact_size(Vec2::new(ui.available_width(), 18.0 + height + 28.0 + asked_room), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &title));
    let window = Window::strip(outer, x);
    let at = |bytes: f64| window.x_of(bytes);
    let line = limit_at.or(capacity).map(|limit| at(limit.0 as f64).round());
    chart::bytes_above(ui, theme, &window, outer.top(), context.options.units, line);
    let row = Rect::from_min_max(
        Pos2::new(outer.left(), outer.top() + 18.0),
        Pos2::new(outer.right(), outer.top() + 18.0 + height),
    );
    ui.painter().rect_filled(row, 0.0, theme.inset);
    let mut offset = 0.0;
    for part in &explained.parts {
        let left = at(offset);
        let rect = Rect::from_min_max(
            Pos2::new(left, row.top()),
            Pos2::new(at(offset + part.bytes.0 as f64).max(left + LEAST), row.bottom()),
        );
        offset += part.bytes.0 as f64;
        if is_total {
            total(ui, context, rect, (part.bytes, explained), line);
        } else {
            segment(ui, context, rect, (part, &explained.words_of(part.bytes, context.options.units)), sum);
        }
    }
    if let Some(requested) = requested {
        let top = row.bottom() + 6.0;
        let begin = at(free.0 as f64);
        let rect = Rect::from_min_max(
            Pos2::new(begin, top),
            Pos2::new(at(end_of_request as f64).max(begin + 2.0), top + 18.0),
        );
        ui.painter().rect_stroke(rect, 0.0, Stroke::new(1.5, theme.ink), egui::StrokeKind::Inside);
        let words = format!("requested {}", context.short(requested));
        let font = Weight::SemiBold.at(size::SMALL);
        let width = ui.painter().layout_no_wrap(words.clone(), font.clone(), theme.text).size().x;
        // Inside where it fits, on one side of the capacity's line.
        let split = line.filter(|line| (rect.left()..rect.right()).contains(line)).unwrap_or(rect.right());
        let inside = [(rect.left(), split), (split, rect.right())].into_iter().find(|(a, b)| b - a > width + 16.0);
        let (place, align) = if let Some((a, b)) = inside {
            (Pos2::new(f32::midpoint(a, b), rect.center().y), Align2::CENTER_CENTER)
        } else if rect.left() - width - 10.0 > outer.left() {
            (Pos2::new(rect.left() - 8.0, rect.center().y), Align2::RIGHT_CENTER)
        } else {
            (Pos2::new(rect.right() + 8.0, rect.center().y), Align2::LEFT_CENTER)
        };
        ui.painter().text(place, align, words, font, theme.text);
    }
    if let Some(capacity) = capacity {
        let place = limit_at.unwrap_or(capacity);
        let sum = if requested.is_some() { Bytes(sum.0.min(place.0)) } else { sum };
        let reserved = failure.bytes("reserved").unwrap_or_default();
        let amount = context.options.units.capacity(capacity);
        let name = match place.saturating_sub(capacity) {
            Bytes::ZERO => format!("capacity {amount}"),
            more if more == reserved => format!("capacity {amount}, without the {} reserved", context.short(more)),
            more => format!("{amount} left beside {}", context.short(more)),
        };
        limit(ui, context, explained, &Limit { capacity, place, sum, outer, row, name }, &at, hatch);
    }
}

struct Limit {
    capacity: Bytes,
    place: Bytes,
    sum: Bytes,
    outer: Rect,
    row: Rect,
    /// What the capacity is called.
    name: String,
}

/// The capacity line and the hatching beyond it, drawn last.
fn limit(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    explained: &Explanation,
    limit: &Limit,
    at: &dyn Fn(f64) -> f32,
    hatch: &mut CachedRaster,
) {
    let theme = context.theme;
    let (outer, row) = (limit.outer, limit.row);
    let place = at(limit.place.0 as f64).round();
    let y = outer.bottom() - 8.0;
    // A total is red beyond the line already.
    if limit.sum > limit.place && !explained.is_one_total() {
        let strip = Rect::from_min_max(
            Pos2::new(place, row.bottom() + 2.0),
            Pos2::new(at(limit.sum.0 as f64), row.bottom() + 8.0),
        );
        hatch.show(
            ui,
            RasterArea { rect: strip, name: "failure over", ground: theme.canvas },
            (theme.dark, limit.sum.0, limit.capacity.0),
            |raster| {
                let (width, height) = (raster.width() as i64, raster.height() as i64);
                raster.hatch(0, 0, width, height, Hatch::beyond(theme.over));
            },
        );
    }
    let font = Weight::SemiBold.at(size::SMALL);
    let lay = |words: String| ui.painter().layout_no_wrap(words, font.clone(), theme.danger);
    let label = lay(limit.name.clone());
    let over = explained.over_by.filter(|_| limit.sum > limit.place);
    let over = over.map(|over| lay(format!("{} over", context.short(over))));
    // The capacity on the left of its line where there is room, the excess on the right; else both on one side, the
    // excess beside its hatching.
    let width = label.size().x;
    let left_side = place - outer.left() > width + 16.0;
    let mut left = if left_side { place - 8.0 - width } else { place + 8.0 };
    if let Some(over) = over {
        let room = outer.right() - place > over.size().x + 16.0;
        let x = match (left_side, room) {
            (true, true) => place + 8.0,
            (true, false) => {
                left -= 20.0 + over.size().x;
                place - 8.0 - over.size().x
            }
            (false, _) => left + width + 20.0,
        };
        ui.painter().galley(Pos2::new(x, y - over.size().y / 2.0), over, theme.danger);
    }
    ui.painter().galley(Pos2::new(left, y - label.size().y / 2.0), label, theme.danger);
    let line = Rect::from_min_max(Pos2::new(place - 1.0, row.top() - 6.0), Pos2::new(place + 1.0, outer.bottom()));
    ui.painter().rect_filled(line, 0.0, theme.over);
}

/// The one part that a message has: what is needed up to the capacity, and in red what is beyond.
fn total(ui: &Ui, context: &ViewContext<'_>, rect: Rect, (bytes, explained): (Bytes, &Explanation), line: Option<f32>) {
    let theme = context.theme;
    let split = line.unwrap_or(rect.right()).clamp(rect.left(), rect.right());
    ui.painter().rect_filled(rect.with_max_x(split), 0.0, theme.text2);
    ui.painter().rect_filled(rect.with_min_x(split), 0.0, theme.over);
    let response = ui.interact(rect, ui.scope_id().with("total"), Sense::hover());
    let needed = explained.readouts.iter().flat_map(|(_, group)| group).find(|readout| readout.size.bytes == bytes);
    let exact = needed.map_or_else(|| bytes.exact(), |readout| readout.size.evidence());
    let hover = format!("needed: {}\n{exact}", context.short(bytes));
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &hover));
    response.on_hover_text_at_pointer(hover);
}

fn segment(ui: &mut Ui, context: &ViewContext<'_>, rect: Rect, (part, words): (&Part, &str), sum: Bytes) {
    let theme = context.theme;
    let (name, bytes) = (part.name, part.bytes);
    let gap = if rect.width() > 3.0 { 1.0 } else { 0.0 };
    let fill = Rect::from_min_max(rect.min, Pos2::new(rect.right() - gap, rect.bottom()));
    let slot = slot(name);
    let color = match slot {
        Some(slot) => {
            ui.painter().rect_filled(fill, 0.0, slot.color());
            slot.text()
        }
        None => {
            ui.painter().rect_stroke(fill, 0.0, Stroke::new(1.0, theme.line2), egui::StrokeKind::Inside);
            theme.text2
        }
    };
    if rect.width() > 44.0 {
        let left = rect.left() + 7.0;
        for (line, weight, dy) in [(name, Weight::SemiBold, -7.5), (words, Weight::Medium, 7.5)] {
            let place = Pos2::new(left, rect.center().y + dy);
            let wide = ui.painter().layout_no_wrap(line.to_owned(), weight.at(size::SMALL), color).size().x;
            // A number is shown whole or not at all.
            if line == words && wide > rect.width() - 12.0 {
                continue;
            }
            paint_cut(
                ui.painter(),
                (place, Align2::LEFT_CENTER),
                line,
                weight.at(size::SMALL),
                color,
                rect.width() - 12.0,
            );
        }
    }
    let response = ui.interact(rect, ui.scope_id().with(("part", name)), Sense::hover());
    let hover = format!("{name}: {words}, {}\n{}", percent(bytes.0, sum.0), bytes.exact());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &hover));
    response.on_hover_text_at_pointer(hover);
}
