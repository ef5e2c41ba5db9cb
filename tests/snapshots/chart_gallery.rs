//! The parts of a chart, small and side by side, in every theme, compared with the reviewed pictures.

use egui::{Align, Layout, Pos2, Rect, Ui, UiBuilder, Vec2};
use egui_kittest::SnapshotResults;
use highwater::model::{Bytes, UnitSystem};
use highwater::ui::chart::legend::{self, Sign};
use highwater::ui::chart::{
    self, Areas, Chart, Cursor, Fit, Line, Peak, Reach, Spare, Strength, Tone, Window, XAxis, YAxis, highest_step,
    steps_between,
};
use highwater::ui::widget::raster::{CachedRaster, Hatch};
use highwater::ui::widget::theme::{Look, Slot, Theme};

use crate::gui;

const SIZE: [f32; 2] = [880.0, 620.0];
const GIB: u64 = 1 << 30;
const UNITS: UnitSystem = UnitSystem::Binary;
/// Number of parts drawn.
const CASES: usize = 6;

/// A curve that rises to its peak and falls again, with a spike at every eighth step.
fn live() -> Vec<u64> {
    let rise = |step: u64| step.min(120 - step);
    (0..120).map(|step| (GIB + rise(step) * GIB * 2 / 5) * if step % 8 == 3 { 5 } else { 4 } / 4).collect()
}

struct Case<'a> {
    title: &'a str,
    values: &'a [u64],
    limit: Option<u64>,
    y: YAxis,
    x: XAxis<'a>,
}

fn draw(ui: &mut Ui, theme: &Theme, cell: Rect, raster: &mut CachedRaster, case: &Case<'_>) {
    let values = case.values;
    let has = |part: &str| case.title.contains(part);
    let most = values.iter().copied().max().unwrap_or(0);
    let rect = Rect::from_min_max(
        cell.min + Vec2::new(chart::LEFT, 30.0),
        cell.max - Vec2::new(chart::RIGHT, chart::BELOW + 10.0),
    );
    let y = Fit::All.bytes(most, || most, case.limit.filter(|limit| *limit < most * 4));
    let window = Window { rect, x: Reach::steps(values.len() as u32).whole, y };
    let highest = |from: f64, to: f64| highest_step(from, to, values);
    let lowest = |from: f64, to: f64| {
        let (from, to) = steps_between(from, to, values.len() as u32);
        values[from as usize..to as usize].iter().copied().min().unwrap_or(0)
    };
    let was = |from: f64, to: f64| highest(from, to).map_or(0, |(bytes, _)| bytes + bytes / 5);
    let group = |group: usize, step: u32| {
        let (all, has_gaps) = (values[step as usize], has("gaps"));
        if group == 0 {
            all / 3
        } else if has_gaps {
            all / 2
        } else {
            all - all / 3
        }
    };
    let colors = [Slot::Weight.color(), Slot::Activation.color()];
    let areas = Areas {
        limit: case.limit,
        gaps: has("gaps").then_some(Hatch { period: 7.0, width: 1.2, color: theme.text3 }),
        before: has("before").then_some(&was as &dyn Fn(f64, f64) -> u64),
        lowest: has("paler").then_some(&lowest as &dyn Fn(f64, f64) -> u64),
        ..Areas::new(&highest, &group, &colors)
    };
    let at = values.iter().position(|&bytes| bytes == most).unwrap_or(0);
    let words = format!("peak {}", UNITS.short(Bytes(most)));
    let peak = Peak { x: at as f64 + 0.5, y: most as f64, words, is_before: false };
    let fits = case.limit.filter(|&limit| limit > most && limit < most * 2);
    legend::title(ui, theme, cell.min + Vec2::new(8.0, 12.0), cell.right(), (case.title, ""));
    let shown = Chart::new(case.title, theme, window, case.x, UNITS)
        .y_axis(case.y)
        .drawn(ui, raster, case.title, |raster, window| areas.draw(raster, window, theme))
        .limit(case.limit)
        .peak([peak])
        .spare(fits.map(|limit| Spare { of_what: "", from: most, to: limit }))
        .range(has("range").then_some((20.0, 44.0)))
        .cursors([Cursor::chosen(80.5, theme)])
        .show(ui);
    if has("readout") {
        let lines = [
            Line::new("step 80", "17.3 GiB").toned(Tone::Title),
            Line::new("fusion.504", "").toned(Tone::Name),
            Line::new("Activation", "11.5 GiB").of(Slot::Activation),
            Line::new("over capacity", "1.55 GiB").toned(Tone::Over),
        ];
        shown.readout(ui, &lines);
        let row = Rect::from_min_size(rect.left_bottom(), Vec2::new(rect.width(), chart::BELOW));
        if let Some(place) = chart::flag_place(ui, row, window.x_of(80.5), "step 80") {
            chart::flag(ui, theme, place, "step 80", Strength::Chosen);
        }
    }
}

fn gallery(ui: &mut Ui, rasters: &mut [CachedRaster; CASES]) {
    let theme = Theme::of(ui.ctx());
    ui.painter().rect_filled(ui.ctx().content_rect(), 0.0, theme.canvas);
    let live = live();
    let few = [GIB, 3 * GIB, 2 * GIB, 5 * GIB];
    let dense: Vec<u64> = (0..2400u64).map(|i| live[i as usize / 20] * (8 - i % 4) / 8).collect();
    let (steps, bytes) = (XAxis::Steps("step"), YAxis::Bytes(UNITS));
    let cases: [Case<'_>; CASES] = [
        Case { title: "over capacity, readout", values: &live, limit: Some(63 * GIB / 4), y: bytes, x: steps },
        Case { title: "before and after, room to spare", values: &live, limit: Some(38 * GIB), y: bytes, x: steps },
        Case { title: "the limit far above", values: &few, limit: Some(96 * GIB), y: bytes, x: steps },
        Case { title: "paler down to the lowest", values: &dense, limit: None, y: bytes, x: XAxis::Moments("event") },
        Case { title: "a range", values: &live, limit: Some(24 * GIB), y: bytes, x: steps },
        Case { title: "gaps, a share", values: &live, limit: None, y: YAxis::Share, x: steps },
    ];
    let cell = Vec2::new(SIZE[0] / 2.0, (SIZE[1] - 20.0) / 3.0);
    for (i, (case, raster)) in cases.iter().zip(rasters).enumerate() {
        let corner = Pos2::new((i % 2) as f32 * cell.x, (i / 2) as f32 * cell.y);
        draw(ui, &theme, Rect::from_min_size(corner, cell), raster, case);
    }
    let last = Rect::from_min_max(Pos2::new(8.0, SIZE[1] - 22.0), Pos2::new(SIZE[0], SIZE[1]));
    let builder = UiBuilder::new().max_rect(last).layout(Layout::left_to_right(Align::Center));
    let mut row = ui.new_child(builder);
    for (sign, words) in
        [(Sign::Line, "without padding"), (Sign::Dashes, "before"), (Sign::Free, "free"), (Sign::Gaps, "gaps")]
    {
        legend::entry(&mut row, &theme, sign, words);
        row.add_space(8.0);
    }
    legend::paler(&mut row, &theme);
}

#[test]
fn the_parts_of_a_chart_look_as_they_did() {
    let mut results = SnapshotResults::default();
    let looks = [
        (false, false, "light"),
        (true, false, "dark"),
        (false, true, "contrast_light"),
        (true, true, "contrast_dark"),
    ];
    for (is_dark, contrast, name) in looks {
        let mut rasters: [CachedRaster; CASES] = std::array::from_fn(|_| CachedRaster::default());
        let look = Look { contrast, ..Look::default() };
        let mut harness = gui::bare(SIZE, is_dark, look, move |ui| gallery(ui, &mut rasters));
        harness.run_ok();
        harness.snapshot(format!("gallery_charts_{name}"));
        results.extend(harness.take_snapshot_results());
    }
}
