//! Scatter plot of size against waste on logarithmic axes, with a mark for each shape group: the most wasteful are at
//! the upper right, those that are all padding on the diagonal.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, Ui, Vec2, WidgetInfo};

use crate::analysis::Scene;
use crate::analysis::shape_groups::ShapeGroup;
use crate::model::{Bytes, percent, thousands};
use crate::ui::chart::{self, Chart, Span, Window, XAxis, YAxis};
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::cut::Cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Slot, Theme, size};

/// Number of marks described for screen readers, most wasteful first.
const NAMED: usize = 40;

/// Maximum distance of the pointer from a mark, in points.
const NEAR: f32 = 9.0;

/// Maximum number of marks drawn, most wasteful first.
const MOST: usize = 4000;

/// Width of the strip at the left for shapes without padding, in points.
const NOTHING: f32 = 14.0;

/// The visible range of both axes: base-2 logarithms of waste and size.
fn window_of(plot: Rect, groups: &[ShapeGroup]) -> Window {
    let sizes = || groups.iter().map(|group| log(group.bytes));
    let wastes = || groups.iter().filter(|g| g.waste > Bytes::ZERO).map(|group| log(group.waste));
    let span = |values: &dyn Fn() -> Vec<f64>| {
        let lo = values().into_iter().fold(f64::INFINITY, f64::min);
        let hi = values().into_iter().fold(lo + 1.0, f64::max);
        if lo.is_finite() { Span::new(lo - 0.6, hi + 0.8) } else { Span::new(0.0, 10.0) }
    };
    let (x, y) = (span(&|| wastes().collect()), span(&|| sizes().collect()));
    let nothing = x.len() * f64::from(NOTHING / (plot.width() - NOTHING).max(1.0));
    Window { rect: plot, x: Span::new(x.lo - nothing, x.hi), y }
}

fn log(bytes: Bytes) -> f64 {
    (bytes.0.max(1) as f64).log2()
}

/// Position of a group; at the left edge if it wastes nothing.
fn place_of(window: &Window, group: &ShapeGroup) -> Pos2 {
    let wastes = group.waste > Bytes::ZERO;
    let x = if wastes { window.x_of(log(group.waste)) } else { window.rect.left() + 4.0 };
    Pos2::new(x, window.y_of(log(group.bytes)))
}

/// Draws the marks; returns the group that was clicked, or is under the pointer.
pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    scene: Scene<'_>,
    groups: &[ShapeGroup],
    chosen: usize,
) -> Option<usize> {
    let theme = context.theme;
    let outer = ui.available_rect_before_wrap();
    let painter = ui.painter().with_clip_rect(outer.intersect(ui.clip_rect()));
    let bold = Weight::SemiBold.at(size::BODY);
    let small = Weight::Regular.at(size::SMALL);
    let middle = outer.top() + 13.0;
    painter.text(Pos2::new(outer.left(), middle), Align2::LEFT_CENTER, "Size against waste", bold, theme.text);
    let right = Pos2::new(outer.right(), middle);
    painter.text(right, Align2::RIGHT_CENTER, "each dot is a shape", small.clone(), theme.text3);
    let plot = Rect::from_min_max(outer.min + Vec2::new(chart::LEFT, 34.0), outer.max - Vec2::new(4.0, chart::BELOW));
    if plot.width() < 60.0 || plot.height() < 40.0 || groups.is_empty() {
        return None;
    }
    let shown = groups.len().min(MOST);
    let window = window_of(plot, &groups[..shown]);
    let units = context.options.units;
    let title = format!("Size against waste of {} shapes", thousands(groups.len() as u64));
    let ground = Chart::new(&title, theme, window, XAxis::LogBytes(units), units)
        .y_axis(YAxis::LogBytes(units))
        .without_cursor()
        .show(ui)
        .response;
    shares(ui, theme, &window);
    let pointer = ui.input(|i| i.pointer.hover_pos()).filter(|at| ui.rect_contains_pointer(plot) && plot.contains(*at));
    let near = pointer.and_then(|pointer| {
        let far = |group: &ShapeGroup| place_of(&window, group).distance(pointer);
        let nearest = groups[..shown].iter().enumerate().min_by(|a, b| far(a.1).total_cmp(&far(b.1)))?;
        (far(nearest.1) <= NEAR).then_some(nearest.0)
    });
    let slot = |group: &ShapeGroup| {
        group
            .buffers
            .first()
            .map_or(Slot::Temporary, |b| colors::slot_of_class(scene.analysis.class_now(scene.program, *b)))
    };
    // The most wasteful are drawn last, on top.
    for group in groups[..shown].iter().rev() {
        let at = place_of(&window, group);
        if group.waste.0 == 0 {
            painter.rect_filled(Rect::from_center_size(at, Vec2::new(7.0, 2.0)), 0.0, slot(group).color());
        } else {
            painter.circle(at, 4.5, slot(group).color(), Stroke::new(1.0, theme.canvas));
        }
    }
    if let Some(group) = groups.get(chosen).filter(|_| chosen < shown) {
        let at = place_of(&window, group);
        painter.circle_stroke(at, 7.5, Stroke::new(2.5, theme.ink));
        let words = format!("{} \u{d7}{}", group.shape, thousands(group.buffers.len() as u64));
        let (align, dx) =
            if at.x > plot.center().x { (Align2::RIGHT_CENTER, -13.0) } else { (Align2::LEFT_CENTER, 13.0) };
        let room = (at.x - plot.left()).max(plot.right() - at.x) - 16.0;
        let cut = Cut::new(&painter, &words, Weight::Mono.at(size::SMALL), theme.text, room);
        let y = at.y.clamp(plot.top() + 8.0, plot.bottom() - 8.0);
        let place = align.anchor_size(Pos2::new(at.x + dx, y), cut.size());
        painter.rect_filled(place.expand2(Vec2::new(3.0, 1.0)), 2.0, theme.canvas.gamma_multiply(0.85));
        cut.paint(&painter, place.min);
    }
    let said = |group: &ShapeGroup| {
        format!(
            "Shape {} \u{d7}{}: {}, wastes {}",
            group.shape,
            group.buffers.len(),
            units.short(group.bytes),
            units.short(group.waste)
        )
    };
    let mut clicked = None;
    for (i, group) in groups[..shown.min(NAMED)].iter().enumerate() {
        let place = Rect::from_center_size(place_of(&window, group), Vec2::splat(12.0));
        let response = ui.interact(place, ui.scope_id().with(("mark", i)), Sense::click());
        response.widget_info(|| WidgetInfo::selected(Role::Button, true, i == chosen, said(group)));
        if response.has_focus() {
            painter.circle_stroke(place.center(), 9.0, Stroke::new(2.0, theme.accent));
        }
        // Of overlapping marks the nearest one counts, unless a key was pressed on this one.
        if response.clicked() {
            clicked = if response.has_focus() || near.is_none() { Some(i) } else { near };
        }
    }
    if ground.clicked() {
        clicked = clicked.or(near);
    }
    if let Some(i) = near {
        let group = &groups[i];
        painter.circle_stroke(place_of(&window, group), 6.5, Stroke::new(1.5, theme.ink));
        context.shared.hover(group.buffers.first().copied());
        egui::Tooltip::always_open(
            ui.ctx().clone(),
            ui.layer_id(),
            ui.scope_id().with("scatter tip"),
            egui::PopupAnchor::Pointer,
        )
        .gap(14.0)
        .show(|ui| tooltip(ui, theme, units, group));
    }
    clicked
}

fn tooltip(ui: &mut Ui, theme: &Theme, units: crate::model::UnitSystem, group: &ShapeGroup) {
    let count = thousands(group.buffers.len() as u64);
    ui.label(text(format!("{} \u{d7}{count}", group.shape), size::BODY, Weight::MonoMedium, theme.text));
    if !group.layout.is_empty() {
        ui.label(text(&group.layout, size::SMALL, Weight::Mono, theme.text2));
    }
    let line = format!("{}   {}", units.short(group.bytes), group.bytes.exact());
    ui.label(text(line, size::SMALL, Weight::Medium, theme.text));
    let line = format!("{} wasted, {}", units.short(group.waste), percent(group.waste.0, group.bytes.0));
    let color = if group.waste.0 > 0 { theme.warn } else { theme.text2 };
    ui.label(text(line, size::SMALL, Weight::Regular, color));
}

/// Guide lines where waste is all, and a tenth, of the size.
fn shares(ui: &Ui, theme: &Theme, window: &Window) {
    let painter = ui.painter().with_clip_rect(window.rect);
    let labels = [(1.0f64, "all waste", 0.62, Vec2::new(8.0, 9.0)), (0.1, "10 %", 0.5, Vec2::new(-6.0, -8.0))];
    for (share, words, place, beside) in labels {
        let at = |size: f64| Pos2::new(window.x_of(size + share.log2()), window.y_of(size));
        let ends = [at(window.y.lo), at(window.y.hi)];
        painter.extend(egui::Shape::dashed_line(&ends, Stroke::new(1.0, theme.line2), 4.0, 3.0));
        let middle = at(window.x.at(place) - share.log2()) + beside;
        let align = if beside.x > 0.0 { Align2::LEFT_CENTER } else { Align2::RIGHT_CENTER };
        if window.rect.shrink(6.0).contains(middle) {
            painter.text(middle, align, words, Weight::Regular.at(size::SMALL), theme.text3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BufferId, ElementType, ShapeNode};

    fn group(each: u64, useful: u64, count: u32) -> ShapeGroup {
        ShapeGroup {
            node: ShapeNode::array(ElementType::F32, vec![1]),
            shape: "f32[1]".to_owned(),
            layout: String::new(),
            buffers: (0..count).map(BufferId).collect(),
            each: Bytes(each),
            useful: Bytes(useful),
            bytes: Bytes(each.saturating_mul(count.into())),
            waste: Bytes((each - useful).saturating_mul(count.into())),
            everywhere: Vec::new(),
            saves: Bytes::ZERO,
            fixed_by: None,
        }
    }

    #[test]
    fn larger_stands_higher_and_more_waste_further_right() {
        let groups = [group(1 << 20, 1 << 19, 4), group(1 << 10, 1 << 9, 1), group(1 << 15, 1 << 15, 1)];
        let plot = Rect::from_min_size(Pos2::ZERO, Vec2::new(300.0, 200.0));
        let window = window_of(plot, &groups);
        let places = groups.each_ref().map(|group| place_of(&window, group));
        assert!(places[0].y < places[2].y && places[2].y < places[1].y);
        assert!(places[0].x > places[1].x);
        assert!(places[2].x < places[1].x, "shapes without padding are at the left edge");
        assert!(places.iter().all(|place| plot.contains(*place)), "{places:?}");
    }

    #[test]
    fn one_group_and_groups_without_waste_have_a_place() {
        let plot = Rect::from_min_size(Pos2::ZERO, Vec2::new(300.0, 200.0));
        for groups in
            [vec![group(512, 4, 1)], vec![group(512, 512, 1)], vec![group(0, 0, 1)], vec![group(u64::MAX, 0, 9)]]
        {
            let window = window_of(plot, &groups);
            assert!(plot.expand(1.0).contains(place_of(&window, &groups[0])), "{:?}", place_of(&window, &groups[0]));
        }
    }
}
