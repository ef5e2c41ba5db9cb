//! The chart of live bytes over the program, stacked by group, with limit, peak and a line without padding.

use egui::{Color32, Rect, Stroke, Ui};

use super::groups::Groups;
use super::state::{AT_ONCE, Drawn, FrameLayout, State};
use crate::analysis::SpaceAnalysis;
use crate::model::{Bytes, percent};
use crate::ui::chart::{Areas, Chart, Fit, Line, Peak, Tone, Window, XAxis, step_of, steps_between};
use crate::ui::part::ViewContext;
use crate::ui::work::{Sheet, SpaceData};

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, Drawn { data, groups, layout }: Drawn<'_>) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let limit = context.capacity().map(|c| c.bytes.0);
    let peak = scene.space.peak();
    let count = data.map.points;
    let stacked = groups.stacked();
    let visible = || {
        let (from, to) = steps_between(layout.x.lo, layout.x.hi, count);
        stacked.highest(from, to).map_or(0, |highest| highest.0)
    };
    let y = Fit::of(ui.ctx()).bytes(peak.0, visible, limit);
    let window = Window { rect: layout.curve, x: layout.x, y };
    let shows_line = shows_line(scene.space);
    let key = (state.of, state.grouping, context.document.id(), limit, (theme.panel, stacked.names.len()));
    let at_once = data.map.boxes.len() <= AT_ONCE;
    let sheet = Sheet { window, name: "timeline curve", ground: Color32::TRANSPARENT, at_once };
    let (own, style) = (groups.clone(), *theme);
    let picture = state.curve.picture(ui, context.work, sheet, key, move |raster| {
        let stacked = own.stacked();
        let colors: Vec<_> = own.slots().iter().map(|slot| slot.color()).collect();
        let unpadded = |point: u32| stacked.curves.unpadded.at(point);
        let highest = |from: f64, to: f64| {
            let (from, to) = steps_between(from, to, count);
            stacked.highest(from, to)
        };
        let lowest = |from: f64, to: f64| {
            let (from, to) = steps_between(from, to, count);
            stacked.lowest(from, to)
        };
        let group = |group: usize, point: u32| stacked.curves.groups[group].at(point);
        let line = shows_line.then_some(&unpadded as &dyn Fn(u32) -> u64);
        Areas { lowest: Some(&lowest), line, limit, ..Areas::new(&highest, &group, &colors) }
            .draw(raster, &window, &style);
    });
    let unit = data.map.axis.unit();
    let words = format!("peak {}", context.short(peak));
    let peak = Peak { x: f64::from(scene.space.peak_point()) + 0.5, y: peak.0 as f64, words, is_before: false };
    let shown = Chart::new("Live bytes over the program", theme, window, XAxis::Steps(unit), context.options.units)
        .without_row()
        .picture(picture.map(|(picture, ())| picture))
        .limit(limit)
        .peak([peak])
        .start(f64::from(context.step()) + 0.5)
        .show(ui);
    state.limit_flags.extend(shown.flag);
    life(ui, context, data, layout);
    let Some(at) = shown.at else { return };
    let step = step_of(at, count);
    context.shared.hover_step(step);
    if shown.response.double_clicked() {
        context.shared.zoom_to(None);
    } else if shown.is_chosen {
        context.shared.choose_step(step);
        context.shared.select(None);
    }
    if !shown.response.dragged() {
        let pointer = shown.response.hover_pos().map(|at| window.at(at).1);
        shown.readout(ui, &readout(context, groups, data, step, pointer));
    }
}

/// The hover readout: live bytes at a step, instruction, group under the pointer (or the largest), excess.
fn readout(context: &ViewContext<'_>, groups: &Groups, data: &SpaceData, step: u32, pointer: Option<f64>) -> Vec<Line> {
    let curves = &groups.stacked().curves;
    let total = curves.total.at(step);
    let title = format!("{} {step}", data.map.axis.unit());
    let mut lines = vec![Line::new(title, context.short(Bytes(total))).toned(Tone::Title)];
    if let Some(name) = context.instruction_at(step) {
        lines.push(Line::new(name, "").toned(Tone::Name));
    }
    let bytes: Vec<u64> = curves.groups.iter().map(|group| group.at(step)).collect();
    let mut sum = 0u64;
    let under = bytes.iter().position(|&bytes| {
        sum = sum.saturating_add(bytes);
        bytes > 0 && pointer.is_some_and(|at| at <= sum as f64)
    });
    let largest = || (0..bytes.len()).max_by_key(|&group| bytes[group]);
    if let Some(group) = under.or_else(largest).filter(|&group| bytes[group] > 0) {
        let value = format!("{}  {}", context.short(Bytes(bytes[group])), percent(bytes[group], total));
        lines.push(Line::new(&groups.stacked().names[group], value).of(groups.slots()[group]));
    }
    let limit = context.capacity().map(|c| c.bytes.0);
    let padding = total.saturating_sub(curves.unpadded.at(step));
    if let Some(limit) = limit.filter(|&limit| total > limit) {
        lines.push(Line::new("over capacity", context.short(Bytes(total - limit))).toned(Tone::Over));
    } else if padding > 0 {
        lines.push(Line::new("padding", context.short(Bytes(padding))));
    }
    lines
}

/// Whether there is enough padding for the line without it to be distinguishable.
pub fn shows_line(space: &SpaceAnalysis) -> bool {
    space.at_peak.padding.0.saturating_mul(100) >= space.peak().0.max(1)
}

/// The live range of the hovered or selected buffer, under the curve.
fn life(ui: &Ui, context: &ViewContext<'_>, data: &SpaceData, layout: &FrameLayout) {
    let theme = context.theme;
    let Some(item) = context.shared.hovered.or(context.shared.selected).and_then(|b| data.box_of(b)) else { return };
    let rect: Rect = layout.curve;
    let left = layout.x_of(f64::from(item.start)).max(rect.left());
    let right = layout.x_of(f64::from(item.end) + 1.0).min(rect.right());
    if left > right {
        return;
    }
    let y = rect.bottom() - 4.0;
    ui.painter().hline(left..=right, y, Stroke::new(3.0, theme.halo));
    ui.painter().hline(left..=right, y, Stroke::new(2.0, theme.ink));
    for x in [left, right] {
        ui.painter().vline(x, y - 4.0..=y + 4.0, Stroke::new(2.0, theme.ink));
    }
}
