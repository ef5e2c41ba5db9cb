//! Program runs: a lane for each device on the time axis of the curve.

use std::collections::HashMap;
use std::sync::Arc;

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, WidgetInfo};

use super::state::{AT_ONCE, FrameLayout, State, times_of};
use crate::model::{Execution, thousands};
use crate::ui::chart::{self, Span, Window, milliseconds};
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::Raster;
use crate::ui::widget::theme::{Slot, size};
use crate::ui::work::Sheet;

/// Height of a lane.
const LANE: f32 = 18.0;
/// Maximum number of lanes; further devices are only counted.
const MAX_LANES: usize = 4;

/// One run.
#[derive(Debug, Clone, Copy)]
struct Run {
    start: i64,
    end: i64,
    /// Row of [`Lanes::names`].
    name: u32,
}

/// Runs by device and start.
#[derive(Default)]
pub struct Lanes {
    names: Vec<String>,
    /// Number of runs of each program, on all devices.
    times: Vec<u64>,
    /// From the first start to the last end.
    span: Option<(i64, i64)>,
    count: u64,
    slots: Vec<Slot>,
    /// Devices with their runs, by start.
    devices: Vec<(String, Vec<Run>)>,
    hidden: usize,
}

impl Lanes {
    /// The programs with their colours and the number of their runs.
    pub fn programs(&self) -> Vec<(&str, Slot, u64)> {
        let names = self.names.iter().map(String::as_str);
        names.zip(&self.slots).zip(&self.times).map(|((name, &slot), &times)| (name, slot, times)).collect()
    }

    /// Sorts runs by device and time.
    pub fn new(executions: &[Execution]) -> Self {
        let mut all = Self { count: executions.len() as u64, ..Self::default() };
        let mut names: HashMap<&str, u32> = HashMap::new();
        let mut time: Vec<i64> = Vec::new();
        let mut lanes: HashMap<&str, usize> = HashMap::new();
        for run in executions {
            let name = *names.entry(&run.name).or_insert_with(|| {
                all.names.push(run.name.clone());
                time.push(0);
                all.times.push(0);
                (time.len() - 1) as u32
            });
            let length = run.end_ps.saturating_sub(run.start_ps).max(0);
            time[name as usize] = time[name as usize].saturating_add(length);
            all.times[name as usize] += 1;
            let end = run.start_ps.saturating_add(length);
            let (first, last) = all.span.unwrap_or((run.start_ps, end));
            all.span = Some((first.min(run.start_ps), last.max(end)));
            let lane = *lanes.entry(&run.device).or_insert_with(|| {
                all.devices.push((run.device.clone(), Vec::new()));
                all.devices.len() - 1
            });
            all.devices[lane].1.push(Run { start: run.start_ps, end, name });
        }
        all.devices.sort_by(|a, b| a.0.cmp(&b.0));
        for (_, runs) in &mut all.devices {
            runs.sort_by_key(|run| (run.start, run.end));
        }
        all.hidden = all.devices.len().saturating_sub(MAX_LANES);
        // The programs with the longest total run time have colours of their own.
        let mut order: Vec<usize> = (0..time.len()).collect();
        order.sort_by_key(|&name| std::cmp::Reverse(time[name]));
        all.slots = vec![Slot::Temporary; time.len()];
        for (rank, name) in order.into_iter().enumerate() {
            all.slots[name] = colors::slot_of_group(rank, "");
        }
        all
    }

    /// Height of all visible lanes.
    pub fn height(&self) -> f32 {
        self.devices.len().min(MAX_LANES) as f32 * LANE
    }

    /// Draws the lanes over a time range.
    fn paint(&self, raster: &mut Raster, x: Span) {
        let width = raster.width() as i64;
        let scale = raster.scale();
        for (i, (_, runs)) in self.devices.iter().take(MAX_LANES).enumerate() {
            let top = (i as f32 * LANE * scale).round() as i64;
            let bottom = ((i + 1) as f32 * LANE * scale).round() as i64 - 1;
            let mut before: Option<i64> = None;
            for column in 0..width {
                let (from, to) = times_of(x, column, width);
                let Some(run) = run_at(runs, from, to) else {
                    before = None;
                    continue;
                };
                // Adjacent runs are separated by a pixel if there is room.
                let is_wide = (run.end - run.start) as f64 > x.len() / width as f64 * 4.0;
                let parted = is_wide && before.is_some_and(|start| start != run.start);
                before = Some(run.start);
                if !parted {
                    raster.fill(column, top, column + 1, bottom, self.slots[run.name as usize].color());
                }
            }
        }
    }

    /// From the first start to the last end.
    pub const fn span(&self) -> Option<(i64, i64)> {
        self.span
    }
}

/// The run at a time, or the longest run within a time range.
fn run_at(runs: &[Run], from: i64, to: i64) -> Option<Run> {
    let end = runs.partition_point(|run| run.start < to);
    let last = runs[..end].last()?;
    (last.end > from || last.start >= from).then_some(*last)
}

pub fn show(ui: &mut Ui, context: &ViewContext<'_>, state: &mut State, lanes: &Arc<Lanes>, layout: &FrameLayout) {
    let theme = context.theme;
    let rect = layout.runs;
    if rect.height() < 1.0 {
        return;
    }
    let key = (state.lanes_of, lanes.count, theme.dark);
    let window = Window::strip(rect, layout.x);
    let own = Arc::clone(lanes);
    let at_once = lanes.count < AT_ONCE as u64;
    let sheet = Sheet { window, name: "runs of programs", ground: theme.panel, at_once };
    state.runs.show(ui, context.work, sheet, key, move |raster| own.paint(raster, window.x));
    let small = Weight::Regular.at(size::SMALL);
    for (i, (device, runs)) in lanes.devices.iter().take(MAX_LANES).enumerate() {
        let top = rect.top() + i as f32 * LANE;
        let at = Pos2::new(rect.left() - 10.0, top + LANE / 2.0);
        let words = device.trim_start_matches("/device:");
        paint_cut(ui.painter(), (at, Align2::RIGHT_CENTER), words, small.clone(), theme.text2, chart::LEFT - 16.0);
        captions(ui, lanes, runs, layout, top);
    }
    let response = ui.interact(rect, ui.scope_id().with("runs"), Sense::hover());
    let hidden =
        if lanes.hidden > 0 { format!("; {} further devices are not shown", lanes.hidden) } else { String::new() };
    let spoken = format!("{} runs of {} programs{hidden}", thousands(lanes.count), thousands(lanes.names.len() as u64));
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
    let (Some(at), Some(time)) = (response.hover_pos(), state.cursor) else { return };
    let lane = ((at.y - rect.top()) / LANE) as usize;
    let Some((device, runs)) = lanes.devices.get(lane).filter(|_| lane < MAX_LANES) else { return };
    let pixel = (layout.x.len() / f64::from(rect.width())) as i64;
    let Some(run) = run_at(runs, time.saturating_sub(pixel), time.saturating_add(pixel).saturating_add(1)) else {
        return;
    };
    let left = layout.x_of(run.start as f64).max(rect.left());
    let right = layout.x_of(run.end as f64).min(rect.right());
    let top = rect.top() + lane as f32 * LANE;
    let place = Rect::from_min_max(Pos2::new(left, top), Pos2::new(right.max(left + 2.0), top + LANE - 1.0));
    ui.painter().rect_stroke(place, 0.0, Stroke::new(1.5, theme.ink), StrokeKind::Outside);
    let name = lanes.names[run.name as usize].clone();
    let times = lanes.times[run.name as usize];
    response.on_hover_ui_at_pointer(|ui| {
        ui.label(text(name, size::BODY, Weight::SemiBold, theme.text));
        let length = (run.end - run.start) as f64;
        let words = format!(
            "{} ms, from {} to {} ms on {device}",
            milliseconds(length, length / 1000.0),
            milliseconds(run.start as f64, 1e6),
            milliseconds(run.end as f64, 1e6)
        );
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text));
        ui.label(text(format!("ran {} times", thousands(times)), size::SMALL, Weight::Regular, theme.text2));
    });
}

/// Names of the runs that are wide enough.
fn captions(ui: &Ui, lanes: &Lanes, runs: &[Run], layout: &FrameLayout, top: f32) {
    let rect = layout.runs;
    let (lo, hi) = (layout.x.lo as i64, layout.x.hi as i64);
    let least = layout.x.len() / f64::from(rect.width()) * 50.0;
    let mut at = runs.partition_point(|run| run.start < lo).saturating_sub(1);
    let mut looked = 0;
    while let Some(run) = runs.get(at).filter(|run| run.start <= hi && looked < 4000) {
        looked += 1;
        at += 1;
        if ((run.end - run.start) as f64) < least {
            continue;
        }
        let left = layout.x_of(run.start as f64).max(rect.left());
        let right = layout.x_of(run.end as f64).min(rect.right());
        let color = lanes.slots[run.name as usize].text();
        let name = &lanes.names[run.name as usize];
        if right - left > 50.0 {
            let place = Pos2::new(left + 5.0, top + LANE / 2.0 - 0.5);
            let font = Weight::Medium.at(size::SMALL);
            paint_cut(ui.painter(), (place, Align2::LEFT_CENTER), name, font, color, right - left - 8.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_where_it_is_on() {
        let run = |start, end| Run { start, end, name: 0 };
        let runs = [run(10, 20), run(20, 30), run(50, 51)];
        let at = |from, to| run_at(&runs, from, to).map(|run| run.start);
        assert_eq!((at(0, 5), at(12, 13), at(20, 21), at(31, 45)), (None, Some(10), Some(20), None));
        assert_eq!(at(40, 60), Some(50));
    }
}
