//! The card of one shape: its size, waste and tiles, and alternative shapes.

use egui::{Align2, Color32, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use super::drawing;
use crate::analysis::Scene;
use crate::analysis::alternatives::Form;
use crate::analysis::caution;
use crate::analysis::padding::in_words;
use crate::analysis::shape_groups::ShapeGroup;
use crate::model::{Bytes, counted, factor, percent};
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::controls::{cut_label, hairline, paint_cut};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::theme::{Slot, size, space};

/// The alternative to draw beside the current form: the first one with the same data that saves nearly as much as the
/// best. Layouts come before reshapes.
fn best_of<'a>(group: &ShapeGroup, forms: &'a [Form]) -> Option<&'a Form> {
    let saved = |form: &Form| group.each.saturating_sub(form.what.each).0;
    let same = || forms.iter().filter(|form| form.what.is_same_data);
    let most = same().map(saved).max()?;
    same().find(|form| saved(form) >= most / 20 * 19)
}

/// Minimum height and width for drawing the best alternative beside the current form.
const DRAWN: f32 = 230.0;
const WIDE: f32 = 760.0;

/// Room for the peak that an alternative leads to.
const TO: f32 = 84.0;
/// Least room for the layout beside a shape.
const LAYOUT: f32 = 60.0;
/// Least width of a number with its words.
const READOUT: f32 = 96.0;

/// Draws the card in Details.
pub fn show(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    (scene, forms): (Scene<'_>, &[Form]),
    group: &ShapeGroup,
    rect: Rect,
    tiles: &mut [CachedRaster; 2],
) {
    let theme = context.theme;
    ui.painter().rect(rect, space::RADIUS, theme.panel, Stroke::new(1.0, theme.line), StrokeKind::Inside);
    let wastes = caution::is_padding(group.waste, scene.space.peak());
    if wastes {
        ui.painter().rect_filled(Rect::from_min_size(rect.min, Vec2::new(4.0, rect.height())), 0.0, theme.warn);
    }
    let inner = rect.shrink2(Vec2::new(22.0, 14.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(inner).id_salt("shape card"));
    let ui = &mut child;
    ui.set_clip_rect(rect.intersect(ui.clip_rect()));
    ui.horizontal(|ui| {
        let count = group.buffers.len();
        let words = counted(count as u64, "buffer");
        let bold = Weight::SemiBold.at(size::BODY);
        let wide = ui.painter().layout_no_wrap(words.clone(), bold, theme.text).size().x;
        let between = ui.spacing().item_spacing.x;
        let room = ui.available_width() - wide - between;
        cut_label(ui, &group.shape, Weight::MonoMedium.at(size::HEADLINE), theme.text, room);
        let room = ui.available_width() - wide - 2.0 * between;
        if room > LAYOUT {
            cut_label(ui, &group.layout, Weight::Mono.at(size::SMALL), theme.text2, room);
        }
        ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
    });
    readouts(ui, context, scene, group);
    ui.add(
        egui::Label::new(text(
            context.said(&in_words(&group.node, group.each)),
            size::BODY,
            Weight::Regular,
            theme.text2,
        ))
        .wrap(),
    );
    ui.add_space(8.0);
    let rest = ui.available_rect_before_wrap();
    let left = Rect::from_min_max(rest.min, Pos2::new(rest.left() + rest.width() * 0.52, rest.bottom()));
    let right = Rect::from_min_max(Pos2::new(left.right() + 28.0, rest.top()), rest.max);
    let slot = colors::slot_of_all(scene, &group.buffers).unwrap_or(Slot::Temporary);
    let [now, then] = tiles;
    let look = drawing::Look { slot, is_caution: wastes };
    let Some(better) = best_of(group, forms).filter(|_| rest.height() >= DRAWN && rest.width() >= WIDE) else {
        // Where nothing can be drawn, or the words beside the drawing would be cut, the alternatives have all of it.
        let is_low = rest.height() < drawing::LEAST || rest.width() < drawing::LEAST * 4.0;
        if is_low || !drawing::has_tiles(&group.node) || (right.height() < TALL && !fits_beside(ui, forms, right)) {
            other_forms(ui, context, scene, (group, forms), rest);
            return;
        }
        drawing::show(ui, theme, &group.node, look, left, ("tiles", now));
        other_forms(ui, context, scene, (group, forms), right);
        return;
    };
    let head = |at: Pos2, end: f32, words: &str, bytes: Bytes, color| {
        let bold = Weight::SemiBold.at(size::SMALL);
        let bytes = context.short(bytes);
        let drawn = ui.painter().text(Pos2::new(end, at.y), Align2::RIGHT_TOP, bytes, bold.clone(), color);
        let room = drawn.left() - at.x - 12.0;
        paint_cut(ui.painter(), (at, Align2::LEFT_TOP), words, bold, color, room);
    };
    head(left.min, left.right(), "As it is", group.each, theme.text);
    let below = Pos2::new(left.left(), left.top() + 20.0);
    drawing::show(ui, theme, &group.node, look, Rect::from_min_max(below, left.max), ("tiles", now));
    head(right.min, right.right(), &format!("Better: {}", better.what.words), better.what.each, theme.ok);
    let middle = right.top() + 20.0 + (right.height() * 0.42).min(132.0);
    let upper = Rect::from_min_max(Pos2::new(right.left(), right.top() + 20.0), Pos2::new(right.right(), middle));
    drawing::show(ui, theme, &better.what.node, look, upper, ("better tiles", then));
    let lower = Rect::from_min_max(Pos2::new(right.left(), middle + 10.0), right.max);
    other_forms(ui, context, scene, (group, forms), lower);
}

fn readouts(ui: &mut Ui, context: &ViewContext<'_>, scene: Scene<'_>, group: &ShapeGroup) {
    let theme = context.theme;
    let units = context.options.units;
    let expansion = group.expansion().map_or_else(|| "\u{2013}".to_owned(), factor);
    let share = percent(group.each.saturating_sub(group.useful).0, group.each.0);
    let more = group.everywhere.len().saturating_sub(group.buffers.len());
    let without = match more {
        0 => "of this padding".to_owned(),
        n => format!("{} elsewhere", counted(n as u64, "buffer")),
    };
    let cells = [
        ("Each takes", units.split(group.each), group.each.exact()),
        ("Useful", units.split(group.useful), group.useful.exact()),
        ("Expansion", (expansion, ""), format!("{share} padding")),
        ("Padding of all", units.split(group.waste), group.waste.exact()),
        ("Costs at the peak", units.split(group.saves), without),
    ];
    // A listing has no peak.
    let cells = &cells[..if scene.program.is_listing { cells.len() - 1 } else { cells.len() }];
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 66.0), Sense::hover());
    // Where there is no room for all, the last two stay: what the padding costs.
    let shown = ((rect.width() / READOUT) as usize).clamp(2, cells.len());
    let width = (rect.width() / shown as f32).min(200.0);
    let skipped = cells.len() - shown;
    for (i, (title, (number, unit), remark)) in cells.iter().skip(skipped).enumerate() {
        let at = rect.min + Vec2::new(width * i as f32, 4.0);
        let top_left = Align2::LEFT_TOP;
        let small = Weight::Regular.at(size::SMALL);
        paint_cut(ui.painter(), (at, top_left), title, small.clone(), theme.text2, width - 6.0);
        let drawn = ui.painter().text(
            at + Vec2::new(0.0, 15.0),
            top_left,
            number,
            Weight::SemiBold.at(size::READOUT),
            theme.text,
        );
        let unit_at = Pos2::new(drawn.right() + 5.0, drawn.bottom() - 4.0);
        ui.painter().text(unit_at, Align2::LEFT_BOTTOM, unit, Weight::Medium.at(size::BODY), theme.text2);
        paint_cut(ui.painter(), (at + Vec2::new(0.0, 43.0), top_left), remark, small, theme.text2, width - 10.0);
        let cell = Rect::from_min_size(at, Vec2::new(width - 8.0, 60.0));
        let response = ui.interact(cell, ui.scope_id().with(("card", title)), Sense::hover());
        let words = format!("{title} {number} {unit}, {remark}");
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &words));
    }
}

/// Height of alternatives from which each has a line for its effect.
const TALL: f32 = 140.0;
/// Room for the bytes of each.
const EACH: f32 = 70.0;

/// Width of the change at the peak.
fn change_room(rect: Rect) -> f32 {
    (rect.width() * 0.34).clamp(76.0, 128.0)
}

/// Whether the words of all forms fit on a line with their numbers.
fn fits_beside(ui: &Ui, forms: &[Form], rect: Rect) -> bool {
    let room = rect.width() - change_room(rect) - EACH;
    let wide = |form: &Form| {
        let font = Weight::Mono.at(size::SMALL);
        ui.painter().layout_no_wrap(form.what.words.clone(), font, Color32::PLACEHOLDER).size().x
    };
    forms.iter().all(|form| wide(form) <= room)
}

fn other_forms(
    ui: &Ui,
    context: &ViewContext<'_>,
    scene: Scene<'_>,
    (group, forms): (&ShapeGroup, &[Form]),
    rect: Rect,
) {
    let theme = context.theme;
    let small = Weight::Regular.at(size::SMALL);
    let painter = ui.painter();
    let peak = scene.space.peak().0;
    let columns = [rect.left(), rect.right() - change_room(rect), rect.right()];
    let head = Rect::from_min_size(rect.min, Vec2::new(rect.width(), 20.0));
    painter.text(head.left_center(), Align2::LEFT_CENTER, "Alternatives", Weight::SemiBold.at(size::BODY), theme.text);
    painter.text(Pos2::new(columns[1], head.center().y), Align2::RIGHT_CENTER, "each", small.clone(), theme.text2);
    let change = |words: &str| painter.layout_no_wrap(words.to_owned(), small.clone(), theme.text2);
    let forms_of_head = [change("change at the peak"), change("at the peak"), change("change")];
    let fits = |galley: &std::sync::Arc<egui::Galley>| galley.size().x <= columns[2] - columns[1] - 12.0;
    let of_listing = if scene.program.is_listing { forms_of_head.len() - 1 } else { 0 };
    if let Some(galley) = forms_of_head.into_iter().skip(of_listing).find(fits) {
        let place = Align2::RIGHT_CENTER.anchor_size(Pos2::new(columns[2], head.center().y), galley.size());
        painter.galley(place.min, galley, theme.text2);
    }
    hairline(ui, head, theme.line2);
    if forms.is_empty() {
        let at = Pos2::new(rect.left(), head.bottom() + 14.0);
        let words = match group.fixed_by {
            _ if group.waste == Bytes::ZERO => "It has no padding.".to_owned(),
            Some(by) => format!("None: {by} takes or makes it, in the layout that it needs."),
            None => "No other form needs less memory.".to_owned(),
        };
        let words = painter.layout(words, small, theme.text2, rect.width());
        painter.galley(at - Vec2::new(0.0, 7.0), words, theme.text2);
        return;
    }
    // In a low card, the effect of a form is in its tooltip.
    let is_tall = rect.height() >= TALL;
    // Where a description would be cut, it has the first line to itself, and the numbers stand on the second.
    let is_stacked = is_tall && !fits_beside(ui, forms, rect);
    let room = columns[1] - columns[0] - EACH;
    let mono = Weight::Mono.at(size::SMALL);
    let mut top = head.bottom();
    for (i, Form { what: form, peak: after }) in forms.iter().enumerate() {
        let change = i128::from(after.0) - i128::from(peak);
        let beside = columns[2] - columns[0] - if change < 0 { TO } else { 0.0 };
        let words_room = if is_stacked { columns[2] - columns[0] } else { room };
        let words = painter.layout(form.words.clone(), mono.clone(), theme.text, words_room);
        let effect_room = if is_stacked { room } else { beside };
        let effect = is_tall.then(|| painter.layout(form.effect.clone(), small.clone(), theme.text2, effect_room));
        let tall = words.size().y + effect.as_ref().map_or(0.0, |effect| effect.size().y) + 8.0;
        let row = Rect::from_min_size(Pos2::new(rect.left(), top), Vec2::new(rect.width(), tall));
        if row.bottom() > rect.bottom() {
            break;
        }
        top = row.bottom();
        let first = row.top() + 4.0;
        let second = first + words.size().y;
        let numbers = if is_stacked { second } else { first };
        painter.galley(Pos2::new(columns[0], first), words, theme.text);
        if let Some(effect) = effect {
            painter.galley(Pos2::new(columns[0], second), effect, theme.text2);
        }
        let each = context.short(form.each);
        painter.text(Pos2::new(columns[1], numbers), Align2::RIGHT_TOP, each, small.clone(), theme.text);
        let words = if change == 0 { "none".to_owned() } else { context.options.units.signed(change) };
        let color = if change < 0 { theme.ok } else { theme.text2 };
        painter.text(
            Pos2::new(columns[2], numbers),
            Align2::RIGHT_TOP,
            &words,
            Weight::SemiBold.at(size::SMALL),
            color,
        );
        if change < 0 && is_tall && !is_stacked {
            let to = format!("to {}", context.short(*after));
            painter.text(Pos2::new(columns[2], second), Align2::RIGHT_TOP, to, small.clone(), theme.text2);
        }
        hairline(ui, row, theme.line);
        let response = ui.interact(row, ui.scope_id().with(("form", i)), Sense::hover());
        let spoken = format!("{}: {}, peak {words}", form.words, form.effect);
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &spoken));
        response.on_hover_text(format!("{}\n{} each, {}", form.words, form.each.exact(), form.effect));
    }
}
