//! Live memory at the peak as one bar against the limit: categories above, folded contributors by class below.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, Ui, Vec2, WidgetInfo};

use crate::analysis::SpaceAnalysis;
use crate::analysis::class::Class;
use crate::model::{Bytes, Category, counted, percent};
use crate::ui::chart::{self, Span, Window};
use crate::ui::part::{ViewContext, class_legend, colors};
use crate::ui::session::RowScope;
use crate::ui::widget::controls::{self, paint_cut};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::{CachedRaster, Hatch, RasterArea};
use crate::ui::widget::theme::{Slot, Theme, size};
use crate::ui::work::SpaceData;

/// The hatched parts beside the bar.
#[derive(Default)]
struct Hatches {
    over: CachedRaster,
}

const UPPER: f32 = 34.0;
const LOWER: f32 = 40.0;

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, data: Option<&SpaceData>) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let space = scene.space;
    ui.horizontal(|ui| {
        ui.label(text("Live at the peak", size::BODY, Weight::SemiBold, theme.text));
        ui.add_space(8.0);
        if let Some(data) = data {
            // The curve below has the same colours: what is no part of the peak may be much of it elsewhere.
            let least = space.peak().0 / 100;
            let elsewhere = |class| {
                let row = Class::ALL.iter().position(|other| *other == class)?;
                data.by_class.most.get(row).copied().filter(|&most| most > least)
            };
            class_legend::legends(ui, theme, &|class| {
                let items = data.contributors.iter().filter(|item| item.class == class);
                items.map(|item| item.bytes.0).sum::<u64>().max(elsewhere(class).unwrap_or(0))
            });
        }
    });
    let (outer, _) =
        ui.allocate_exact_size(Vec2::new(ui.available_width(), 18.0 + UPPER + LOWER + 26.0), Sense::hover());
    let capacity = context.capacity().map(|c| c.bytes);
    let needs = space.xprof.allocated;
    let whole = needs.0.max(capacity.map_or(0, |c| c.0)).max(1) as f64;
    let x = Span::new(0.0, whole * 1.005);
    let window = Window::strip(outer, x);
    let at = |bytes: f64| window.x_of(bytes);
    let line = capacity.map(|capacity| at(capacity.0 as f64).round());
    chart::bytes_above(ui, theme, &window, outer.top(), context.options.units, line);
    let upper = Rect::from_min_max(
        Pos2::new(outer.left(), outer.top() + 18.0),
        Pos2::new(outer.right(), outer.top() + 18.0 + UPPER),
    );
    let lower = Rect::from_min_max(
        Pos2::new(outer.left(), upper.bottom() + 1.0),
        Pos2::new(outer.right(), upper.bottom() + LOWER),
    );
    ui.painter().rect_filled(upper.union(lower), 0.0, theme.inset);
    let mut offset = 0.0;
    let mut untold = Vec::new();
    for (category, bytes, count) in stacked(space) {
        let rect = Rect::from_min_max(
            Pos2::new(at(offset), upper.top()),
            Pos2::new(at(offset + bytes.0 as f64), upper.bottom()),
        );
        let words = format!("{}  {}", category.name(), context.short(bytes));
        let hover =
            format!("{words}, {}, {} of the peak", counted(count as u64, "buffer"), percent(bytes.0, space.peak().0));
        let look = Look { theme, slot: colors::slot(category), line };
        let (response, is_told) = segment(ui, look, rect, &[&words], &hover);
        if response.clicked() {
            context.shared.list_rows(RowScope::Peak);
            context.shared.set_filter(category.name().to_lowercase());
            context.go("buffers");
        }
        if !is_told {
            untold.push(Untold { bytes, words, slot: colors::slot(category) });
        }
        offset += bytes.0 as f64;
    }
    untold.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    if let Some(data) = data {
        let mut further = lower_row(ui, context, data, lower, (&at, line));
        further.sort_by_key(|part| std::cmp::Reverse(part.bytes));
        untold.extend(further);
    }
    // Below the bar: within it, they would seem to fill what is free.
    let mut below = Rect::from_x_y_ranges(outer.x_range(), lower.bottom() + 5.0..=lower.bottom() + 23.0);
    if let Some(capacity) = capacity {
        let place = line.unwrap_or_default();
        let words = format!("capacity {}", context.options.units.capacity(capacity));
        let y = lower.bottom() + 14.0;
        let left_side = place > outer.left() + 160.0;
        let (align, dx) = if left_side { (Align2::RIGHT_CENTER, -8.0) } else { (Align2::LEFT_CENTER, 8.0) };
        let label = |pos: Pos2, align: Align2, words: String| {
            ui.painter().text(pos, align, words, Weight::SemiBold.at(size::SMALL), theme.danger)
        };
        let named = label(Pos2::new(place + dx, y), align, words);
        let mut labels = named;
        if needs > capacity {
            let strip = Rect::from_min_max(
                Pos2::new(place, lower.bottom() + 2.0),
                Pos2::new(at(needs.0 as f64), lower.bottom() + 8.0),
            );
            let mut hatches = context.locals.take::<Hatches>();
            hatches.over.show(
                ui,
                RasterArea { rect: strip, name: "over", ground: theme.canvas },
                (theme.dark, needs.0, capacity.0),
                |raster| {
                    let (width, height) = (raster.width() as i64, raster.height() as i64);
                    raster.hatch(0, 0, width, height, Hatch::beyond(theme.over));
                },
            );
            context.locals.put(hatches);
            let words = format!("{} over", context.short(needs - capacity));
            let end = at(needs.0 as f64);
            let font = Weight::SemiBold.at(size::SMALL);
            let width = ui.painter().layout_no_wrap(words.clone(), font, theme.danger).size().x;
            // Beside the name of the line where the excess is too small for it.
            let is_clear = if left_side { end - width > place + 8.0 } else { end - width > named.right() + 8.0 };
            let (x, align) = match (is_clear, left_side) {
                (true, _) => (end, Align2::RIGHT_CENTER),
                (false, true) if place + 8.0 + width <= outer.right() => (place + 8.0, Align2::LEFT_CENTER),
                (false, true) => (named.left() - 12.0, Align2::RIGHT_CENTER),
                (false, false) => (named.right() + 12.0, Align2::LEFT_CENTER),
            };
            labels = labels.union(label(Pos2::new(x, y), align, words));
        }
        below =
            if left_side { below.with_max_x(labels.left() - APART) } else { below.with_min_x(labels.right() + APART) };
        let line = Rect::from_min_max(
            Pos2::new(place - 1.0, upper.top() - 6.0),
            Pos2::new(place + 1.0, lower.bottom() + 22.0),
        );
        ui.painter().rect_filled(line, 0.0, theme.over);
    }
    tell_below(ui, theme, below, untold);
}

/// Distance between words below the bar.
const APART: f32 = 18.0;

/// A part of the bar with no room for its words.
struct Untold {
    bytes: Bytes,
    words: String,
    slot: Slot,
}

/// Draws the contributors; returns those with no room for their words.
fn lower_row(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    data: &SpaceData,
    row: Rect,
    (at, line): (&dyn Fn(f64) -> f32, Option<f32>),
) -> Vec<Untold> {
    let theme = context.theme;
    let mut untold = Vec::new();
    let Some(scene) = context.scene() else { return untold };
    let mut offset = 0.0;
    for (category, _, _) in stacked(scene.space) {
        let mut items: Vec<_> = data.contributors.iter().filter(|item| item.category == category).collect();
        items.sort_by_key(|item| Class::ALL.iter().position(|class| *class == item.class));
        for item in items {
            let rect = Rect::from_min_max(
                Pos2::new(at(offset), row.top()),
                Pos2::new(at(offset + item.bytes.0 as f64), row.bottom()),
            );
            offset += item.bytes.0 as f64;
            if rect.width() < 1.0 {
                continue;
            }
            let name = item.name();
            let count = if item.buffers.len() > 1 { format!("  \u{d7}{}", item.buffers.len()) } else { String::new() };
            let size_words = context.short(item.bytes);
            let hover = format!("{name}{count}, {size_words}, {}", item.shape);
            let first = format!("{name}{count}");
            let look = Look { theme, slot: colors::slot_of_class(item.class), line };
            let (response, is_told) = segment(ui, look, rect, &[&first, &size_words], &hover);
            if response.clicked() {
                context.shared.select(item.buffers.first().copied());
            }
            if !is_told {
                let words = format!("{first}  {size_words}");
                untold.push(Untold { bytes: item.bytes, words, slot: look.slot });
            }
        }
    }
    untold
}

/// Writes below a bar what its parts have no room for, each with its colour: as many as fit.
fn tell_below(ui: &Ui, theme: &Theme, free: Rect, untold: Vec<Untold>) {
    let mut x = free.left();
    for Untold { words, slot, .. } in untold {
        let galley = ui.painter().layout_no_wrap(words, Weight::Regular.at(size::SMALL), theme.text2);
        let end = x + SWATCH + galley.size().x;
        if end > free.right() {
            break;
        }
        let swatch = Rect::from_center_size(Pos2::new(x + 4.5, free.center().y), Vec2::splat(9.0));
        controls::paint_swatch(ui.painter(), swatch, slot, theme);
        let at = Pos2::new(x + SWATCH, free.center().y - galley.size().y / 2.0);
        ui.painter().galley(at, galley, theme.text2);
        x = end + APART;
    }
}

/// Width of a colour before its words.
const SWATCH: f32 = 14.0;

/// Categories in the stacking order of the memory map: always-live ones first.
fn stacked(space: &SpaceAnalysis) -> Vec<(Category, Bytes, usize)> {
    let mut rows = space.at_peak.by_category.clone();
    rows.sort_by_key(|row| row.0);
    rows
}

/// Least width of a part that carries words.
const LEAST_NAMED: f32 = 44.0;

/// How a part of the bar looks.
#[derive(Clone, Copy)]
struct Look<'a> {
    theme: &'a Theme,
    slot: Slot,
    /// Where the limit's line stands.
    line: Option<f32>,
}

/// The larger part of a segment on one side of the limit's line, so that the line goes through no words.
fn beside(rect: Rect, line: Option<f32>) -> Rect {
    let Some(line) = line.filter(|line| rect.x_range().contains(*line)) else { return rect };
    let (left, right) = rect.split_left_right_at_x(line);
    if left.width() > right.width() { left } else { right }
}

/// A part of the bar: fill, words where they fit, and everything on hover; returns whether all its words are there.
fn segment(
    ui: &mut Ui,
    Look { theme, slot, line }: Look<'_>,
    rect: Rect,
    lines: &[&str],
    hover: &str,
) -> (egui::Response, bool) {
    let response =
        ui.interact(rect, ui.scope_id().with(("segment", rect.left().to_bits(), rect.top().to_bits())), Sense::click());
    let gap = if rect.width() > 3.0 { 1.0 } else { 0.0 };
    let fill = Rect::from_min_max(rect.min, Pos2::new(rect.right() - gap, rect.bottom()));
    ui.painter().rect_filled(fill, 0.0, slot.color());
    if response.hovered() || response.has_focus() {
        ui.painter().rect_stroke(fill, 0.0, Stroke::new(1.5, theme.ink), egui::StrokeKind::Inside);
    }
    let rect = beside(rect, line);
    let mut is_told = rect.width() > LEAST_NAMED;
    if is_told {
        let font = Weight::SemiBold.at(size::SMALL);
        let width =
            |words: &str| ui.painter().layout_no_wrap(words.to_owned(), font.clone(), slot.text()).size().x + 12.0;
        // A name and its bytes on one line, else below each other.
        let parted = match lines {
            [one] if width(one) > rect.width() => one.split_once("  "),
            _ => None,
        };
        let parted = parted.map(|(name, bytes)| [name, bytes]).filter(|parts| width(parts[1]) <= rect.width());
        let lines = parted.as_ref().map_or(lines, |parts| parts.as_slice());
        let step = 15.0;
        let top = rect.center().y - step * (lines.len() as f32 - 1.0) / 2.0;
        for (i, line) in lines.iter().enumerate() {
            let at = Pos2::new(rect.left() + 7.0, top + step * i as f32);
            let weight = if i == 0 { Weight::SemiBold } else { Weight::Medium };
            // A cut number would be wrong, and one without its name says nothing: the name is shown first, cut if need be.
            let room = rect.width() - 12.0;
            let fits = |words: &str| {
                let laid = ui.painter().layout_no_wrap(words.to_owned(), weight.at(size::SMALL), slot.text());
                laid.size().x <= room
            };
            let name = line.split_once("  ").map_or(*line, |(name, _)| name);
            let shown = if fits(line) { line } else { name };
            is_told &= shown == *line && fits(shown);
            if i > 0 && !fits(shown) {
                continue;
            }
            paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), shown, weight.at(size::SMALL), slot.text(), room);
        }
    }
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, hover));
    (response.on_hover_text_at_pointer(hover), is_told)
}
