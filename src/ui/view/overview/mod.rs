//! Overview: does it fit, what would make it fit, what stands at the peak, how memory goes over the program, the largest
//! contributors.

mod advice;
mod bar;
mod largest;
mod readouts;
mod tiles;
mod verdict;

use std::sync::Arc;

use egui::{Align2, Pos2, Rect, Sense, Stroke, Ui, Vec2};

use crate::advisor::Advice;
use crate::analysis::Verdict;
use crate::analysis::class::Class;
use crate::model::{MemorySpace, Note, NoteLevel, thousands};
use crate::ui::part::{Find, View, ViewContext, colors, empty};
use crate::ui::session::Document;
use crate::ui::widget::axis::{Span, byte_ticks};
use crate::ui::widget::controls::{self, link, paint_peak};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::stack::Stack;
use crate::ui::widget::theme::{size, space};
use crate::ui::work::SpaceData;

/// The view.
pub const VIEW: View =
    View { applies, find: Find::Dim, shows_buffers: true, ..View::new("overview", "Overview", show) };

fn applies(document: &Document) -> bool {
    document.has_times() || document.profile.tiles.is_some() || !document.profile.facts.is_empty()
}

/// Notes that are shown; the rest is counted.
const SHOWN_NOTES: usize = 8;

#[derive(Default)]
struct State {
    curve: CachedRaster,
    largest: largest::State,
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    if context.scene().is_none() && context.document.profile.tiles.is_some() {
        return tiles::show(ui, context);
    }
    if context.scene().is_none() {
        return empty::without_memory(ui, context);
    }
    let mut state = context.locals.take::<State>();
    let data = context.data();
    keys::scrolled(egui::ScrollArea::vertical().id_salt("overview").auto_shrink([false, false]), ui, true, |ui| {
        let margin = if ui.available_width() < 760.0 { 16.0 } else { space::MARGIN };
        egui::Frame::new().inner_margin(egui::Margin::symmetric(margin as i8, 18)).show(ui, |ui| {
            ui.set_width(ui.available_width());
            let advice = context.advice();
            verdict_and_plan(ui, context, advice.as_ref());
            ui.add_space(14.0);
            bar::show(ui, context, data.as_deref());
            ui.add_space(10.0);
            readouts::show(ui, context);
            ui.add_space(10.0);
            notes(ui, context);
            let Some(data) = data else { return };
            let full = ui.available_width();
            if full < WIDE {
                advice::findings(ui, context, advice.as_ref(), (full / 290.0) as usize);
                ui.add_space(10.0);
                curve(ui, context, &data, &mut state.curve);
                ui.add_space(12.0);
                largest::show(ui, context, &data, &mut state.largest);
                return;
            }
            let top = ui.cursor().min;
            let column =
                |left: f32, width: f32| Rect::from_min_size(top + Vec2::new(left, 0.0), Vec2::new(width, 4000.0));
            let mut left =
                ui.new_child(egui::UiBuilder::new().max_rect(column(0.0, full - COLUMN - 28.0)).id_salt("left"));
            curve(&mut left, context, &data, &mut state.curve);
            left.add_space(12.0);
            largest::show(&mut left, context, &data, &mut state.largest);
            let mut right =
                ui.new_child(egui::UiBuilder::new().max_rect(column(full - COLUMN, COLUMN)).id_salt("right"));
            advice::findings(&mut right, context, advice.as_ref(), 1);
            let height = left.min_rect().height().max(right.min_rect().height());
            ui.allocate_exact_size(Vec2::new(full, height), Sense::hover());
        });
    });
    context.locals.put(state);
}

/// Room for a column of findings beside the rest.
const WIDE: f32 = 1180.0;

/// Width of that column, and of the plan beside the verdict.
const COLUMN: f32 = 400.0;

/// The verdict, and beside or below it the plan where it does not fit.
fn verdict_and_plan(ui: &mut Ui, context: &mut ViewContext<'_>, advice: Option<&Arc<Advice>>) {
    let plan = advice::plan_of(advice.map(AsRef::as_ref), context.shared.program)
        .filter(|_| context.shared.color == MemorySpace::HBM);
    let full = ui.available_width();
    // While the advisor looks, the room for its plan is kept.
    let is_awaited = advice.is_none() && matches!(context.verdict(), Verdict::Over { .. });
    let Some(width) = (full >= 860.0 && (plan.is_some() || is_awaited)).then(|| COLUMN.min(full * 0.4)) else {
        verdict::show(ui, context);
        if let Some(plan) = plan {
            ui.add_space(10.0);
            advice::plan(ui, context, plan);
        } else if is_awaited {
            ui.add_space(10.0 + advice::PLAN);
        }
        return;
    };
    let top = ui.cursor().min;
    let left = Rect::from_min_size(top, Vec2::new(full - width - 28.0, advice::PLAN));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(left).id_salt("verdict"));
    verdict::show(&mut child, context);
    let height = child.min_rect().height().max(advice::PLAN);
    let (whole, _) = ui.allocate_exact_size(Vec2::new(full, height), Sense::hover());
    if let Some(plan) = plan {
        let right = Rect::from_min_max(Pos2::new(whole.right() - width, whole.top()), whole.max);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(right).id_salt("plan"));
        advice::plan(&mut child, context, plan);
    }
}

/// What does not fit together, or could not be read.
fn notes(ui: &mut Ui, context: &ViewContext<'_>) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    // What does not fit together before what is only worth knowing.
    let document = context.document;
    let level = |note: &&Note| std::cmp::Reverse(note.level);
    let mut read: Vec<&Note> = document.profile.notes.iter().collect();
    read.sort_by_key(level);
    let (grave, worth): (Vec<&Note>, Vec<&Note>) = read.into_iter().partition(|note| note.level != NoteLevel::Info);
    let mut words: Vec<(String, bool)> = grave.iter().map(|note| (note.to_string(), true)).collect();
    words.extend(document.analysis.notes.iter().map(|note| (note.clone(), true)));
    words.extend(scene.space.xprof.inconsistencies.iter().map(|note| (note.clone(), true)));
    words.extend(worth.iter().map(|note| (note.to_string(), false)));
    let difference = scene.space.peak_difference(scene.program, scene.analysis.live.as_ref());
    for (note, is_grave) in words.iter().take(SHOWN_NOTES) {
        let color = if *is_grave { theme.warn } else { theme.text3 };
        ui.horizontal(|ui| {
            let (rect, _) = ui.allocate_exact_size(Vec2::new(3.0, 16.0), Sense::hover());
            ui.painter().rect_filled(rect, 0.0, if *is_grave { theme.warn } else { theme.line2 });
            ui.add(egui::Label::new(text(note, size::SMALL, Weight::Regular, color)).wrap());
        });
    }
    if let Some(more) = words.len().checked_sub(SHOWN_NOTES).filter(|&more| more > 0) {
        let more = format!("and {} more, in the report", thousands(more as u64));
        ui.label(text(more, size::SMALL, Weight::Regular, theme.text3));
    }
    if let Some(note) = difference {
        ui.add(egui::Label::new(text(format!("{note}."), size::SMALL, Weight::Regular, theme.text3)).wrap());
    }
    if !words.is_empty() {
        ui.add_space(8.0);
    }
}

fn curve(ui: &mut Ui, context: &mut ViewContext<'_>, data: &SpaceData, raster: &mut CachedRaster) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        ui.label(text("Live memory over the program", size::BODY, Weight::SemiBold, theme.text));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if link(ui, "open Timeline", theme).clicked() {
                context.go("timeline");
            }
        });
    });
    let Some(scene) = context.scene() else { return };
    let (outer, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 190.0), Sense::click());
    let plot = Rect::from_min_max(outer.min + Vec2::new(58.0, 22.0), outer.max - Vec2::new(0.0, 20.0));
    let limit = context.capacity().map(|c| c.bytes.0 as f64);
    let peak = scene.space.peak().0 as f64;
    let y = Span::new(0.0, peak.max(limit.unwrap_or(0.0)).max(1.0) * 1.04);
    let x = Span::new(0.0, f64::from(data.map.points));
    let stacked = &data.by_class;
    let slots: Vec<_> = Class::ALL.iter().map(|class| colors::slot_of_class(*class)).collect();
    let stack = Stack {
        points: data.map.points,
        highest: &|from, to| stacked.pyramid.max_in(&stacked.curves.total, from, to),
        group: &|group, point| stacked.curves.groups[group].at(point),
        slots: &slots,
        line: None,
        limit,
    };
    let key = (context.shared.program, context.shared.color, limit.map(f64::to_bits), theme.dark);
    raster.show(ui, plot, "overview curve", key, theme.panel, |raster| stack.draw(raster, x, y, theme));
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    let base = if context.options.units == crate::model::UnitSystem::Binary { 1024.0 } else { 1000.0 };
    for tick in byte_ticks(y, 4, base) {
        let at = plot.bottom() - (y.share(tick) * f64::from(plot.height())) as f32;
        let words = context.options.units.capacity(crate::model::Bytes(tick as u64));
        painter.text(Pos2::new(plot.left() - 8.0, at), Align2::RIGHT_CENTER, words, small.clone(), theme.text2);
    }
    if let Some(limit) = limit {
        let at = (plot.bottom() - (y.share(limit) * f64::from(plot.height())) as f32).round();
        painter.hline(plot.x_range(), at, Stroke::new(2.0, theme.over));
        let words = context.capacity().map(|c| context.options.units.capacity(c.bytes)).unwrap_or_default();
        let label = painter.layout_no_wrap(words, Weight::SemiBold.at(size::SMALL), theme.danger);
        let place = Rect::from_min_size(
            Pos2::new(plot.right() - label.size().x - 8.0, at - label.size().y - 3.0),
            label.size(),
        );
        painter.rect_filled(place.expand2(Vec2::new(4.0, 1.0)), 0.0, theme.panel.gamma_multiply(0.85));
        painter.galley(place.min, label, theme.danger);
    }
    let point = scene.space.peak_point();
    let px = plot.left() + (x.share(f64::from(point) + 0.5) * f64::from(plot.width())) as f32;
    let py = plot.bottom() - (y.share(peak) * f64::from(plot.height())) as f32;
    paint_peak(painter, Pos2::new(px, py - 1.0), theme.ink);
    let words = format!("peak {}", context.short(scene.space.peak()));
    let (align, dx) = if px > plot.center().x { (Align2::RIGHT_CENTER, -10.0) } else { (Align2::LEFT_CENTER, 10.0) };
    painter.text(Pos2::new(px + dx, py - 8.0), align, words, Weight::SemiBold.at(size::SMALL), theme.text);
    let unit = data.map.axis.unit();
    let y_axis = plot.bottom() + 10.0;
    painter.text(Pos2::new(plot.left(), y_axis), Align2::LEFT_CENTER, format!("{unit} 0"), small.clone(), theme.text2);
    let last = format!("{unit} {}", thousands(u64::from(data.map.points.saturating_sub(1))));
    painter.text(Pos2::new(plot.right(), y_axis), Align2::RIGHT_CENTER, last, small, theme.text2);
    controls::hairline(ui, Rect::from_min_max(plot.min, Pos2::new(plot.right(), plot.bottom() + 1.0)), theme.line2);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, "Live memory over the program"));
    if let Some(at) = response.hover_pos().filter(|at| plot.x_range().contains(at.x)) {
        let step = x.at(f64::from((at.x - plot.left()) / plot.width())).floor() as u32;
        context.shared.hover_step(step);
        ui.painter().vline(at.x, plot.y_range(), Stroke::new(1.0, theme.ink));
        if response.clicked() {
            context.shared.choose_step(step);
            context.go("timeline");
        }
    }
}
