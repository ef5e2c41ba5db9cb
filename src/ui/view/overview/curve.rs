//! A small curve of live memory over the program; a click opens the timeline at that step.

use egui::{Pos2, Rect, Sense, Stroke, Ui, Vec2};

use crate::analysis::class::Class;
use crate::model::Bytes;
use crate::ui::chart::{
    self, Areas, Chart, Cursor, Fit, Line, Peak, Reach, Tone, Window, XAxis, step_of, steps_between,
};
use crate::ui::part::{ViewContext, colors};
use crate::ui::view::overview::largest;
use crate::ui::widget::controls::link;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::theme::size;
use crate::ui::work::SpaceData;

/// Height of the curve with its numbers, and the most of a tall window that it takes.
const HEIGHT: f32 = 190.0;
const SHARE: f32 = 0.42;
/// Room for titles below and above it.
const TITLES: f32 = 90.0;

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, data: &SpaceData, raster: &mut CachedRaster) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        ui.label(text("Live memory over the program", size::BODY, Weight::SemiBold, theme.text));
        chart::legend::paler(ui, theme);
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if link(ui, "open Timeline", theme).clicked() {
                context.go("timeline");
            }
        });
    });
    let Some(scene) = context.scene() else { return };
    // What a tall window leaves above the table.
    let clip = ui.clip_rect();
    let left = clip.bottom() - ui.cursor().top().max(clip.top()) - largest::height(clip.height(), data) - TITLES;
    let height = left.clamp(HEIGHT, (clip.height() * SHARE).max(HEIGHT));
    let (outer, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), height), Sense::hover());
    let limit = context.capacity().map(|c| c.bytes.0);
    let right = if limit.is_some() { chart::RIGHT } else { chart::RIGHT_PLAIN };
    let rect = Rect::from_min_max(
        outer.min + Vec2::new(chart::LEFT, 14.0),
        Pos2::new(outer.right() - right, outer.bottom() - chart::BELOW),
    );
    let peak = scene.space.peak();
    let count = data.map.points;
    let y = Fit::of(ui.ctx()).bytes(peak.0, || peak.0, limit);
    let window = Window { rect, x: Reach::steps(count).whole, y };
    let (stacked, total) = (&data.by_class, &data.by_class.curves.total);
    let colors: Vec<_> = Class::ALL.iter().map(|class| colors::slot_of_class(*class).color()).collect();
    let highest = |from: f64, to: f64| {
        let (from, to) = steps_between(from, to, count);
        stacked.highest(from, to)
    };
    let lowest = |from: f64, to: f64| {
        let (from, to) = steps_between(from, to, count);
        stacked.lowest(from, to)
    };
    let group = |group: usize, point: u32| stacked.curves.groups[group].at(point);
    let areas = Areas { lowest: Some(&lowest), limit, ..Areas::new(&highest, &group, &colors) };
    let key = (context.shared.program, context.shared.color, limit);
    let unit = data.map.axis.unit();
    let words = format!("peak {}", context.short(peak));
    let chosen = context.shared.step.map(|step| Cursor::chosen(f64::from(step) + 0.5, theme));
    let shown = Chart::new("Live memory over the program", theme, window, XAxis::Steps(unit), context.options.units)
        .drawn(ui, raster, key, |raster, window| areas.draw(raster, window, theme))
        .limit(limit)
        .cursors(chosen)
        .peak([Peak { x: f64::from(scene.space.peak_point()) + 0.5, y: peak.0 as f64, words, is_before: false }])
        .start(f64::from(context.step()) + 0.5)
        .show(ui);
    let Some(at) = shown.at else { return };
    let step = step_of(at, count);
    context.shared.hover_step(step);
    let pointed = Cursor { x: f64::from(step) + 0.5, stroke: Stroke::new(1.0, theme.ink) };
    pointed.draw(ui.painter(), &window, &[rect]);
    let live = total.at(step);
    let title = format!("{unit} {step}");
    let mut lines = vec![Line::new(title, context.short(Bytes(live))).toned(Tone::Title)];
    lines.extend(context.instruction_at(step).map(|name| Line::new(name, "").toned(Tone::Name)));
    if let Some(limit) = limit.filter(|&limit| live > limit) {
        lines.push(Line::new("over capacity", context.short(Bytes(live - limit))).toned(Tone::Over));
    }
    shown.readout(ui, &lines);
    if shown.is_chosen {
        context.shared.choose_step(step);
        context.go("timeline");
    }
}
