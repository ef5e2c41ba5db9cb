//! The timeline's bands: lifetimes, measured ranges, related buffers; figures compared with a plain loop over the
//! buffers.

use std::path::PathBuf;

use egui::{Event, Modifiers, PointerButton, Pos2, Rect};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::ProfileAnalysis;
use highwater::analysis::map::MemoryMap;
use highwater::model::Bytes;
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, words};

fn dump() -> PathBuf {
    let mut samples = common::sample_programs().into_iter();
    samples.find(|path| path.to_string_lossy().contains("gpt_m_oom")).expect("a sample that does not fit")
}

fn timeline(size: [f32; 2], theme: ThemeChoice) -> Harness<'static, App> {
    let link = DeepLink { view: Some("timeline".to_owned()), ..DeepLink::default() };
    gui::window(&[&dump()], size, theme, link)
}

fn rows(harness: &Harness<'_, App>) -> Vec<String> {
    harness.query_all_by_role(egui::Role::Row).filter_map(|row| row.accesskit_node().label()).collect()
}

/// Drags from one position to another.
fn drag(harness: &mut Harness<'_, App>, from: Pos2, to: Pos2) {
    let button = |pos, pressed| Event::PointerButton {
        pos,
        button: PointerButton::Primary,
        pressed,
        modifiers: Modifiers::NONE,
    };
    harness.event(Event::PointerMoved(from));
    harness.event(button(from, true));
    harness.run_ok();
    for part in 1..=5 {
        harness.event(Event::PointerMoved(from.lerp(to, part as f32 / 5.0)));
        harness.run_ok();
    }
    harness.event(button(to, false));
    harness.run_ok();
}

fn axis(harness: &Harness<'_, App>) -> Rect {
    harness.get_by_label("Drag to measure a range of steps").rect()
}

#[test]
fn lifetimes_are_listed_by_size_start_length_and_name() {
    let mut harness = timeline([1600.0, 1000.0], ThemeChoice::Light);
    assert!(rows(&harness).is_empty(), "the memory map is shown first");
    harness.get_by_label("Lifetimes").click();
    harness.run_ok();
    let by_size = rows(&harness);
    assert!(by_size.len() > 10, "{by_size:?}");
    assert!(by_size[0].contains("3.07 GiB") && by_size[1].contains("1.50 GiB"), "{:?}", &by_size[..2]);
    harness.get_by_label("Start").click();
    harness.run_ok();
    let starts: Vec<u64> = rows(&harness)
        .iter()
        .map(|row| {
            let from = row.split("steps ").nth(1).expect("steps").split(" to ").next().expect("from");
            from.replace(',', "").parse().expect("a number")
        })
        .collect();
    assert!(starts.is_sorted(), "{starts:?}");
    harness.get_by_label("Fold layers").click();
    harness.run_ok();
    let folded = rows(&harness);
    assert!(folded.iter().any(|row| row.contains("layer_*/attn")), "{folded:?}");
}

#[test]
fn a_row_selects_its_buffer_in_every_view() {
    let mut harness = timeline([1600.0, 1000.0], ThemeChoice::Light);
    harness.get_by_label("Lifetimes").click();
    harness.run_ok();
    let first = rows(&harness)[0].clone();
    harness.get_by_label(&first).click();
    harness.run_ok();
    let open = harness.state().files.current().expect("a file");
    let buffer = open.shared.selected.expect("a selection");
    let (program, _) = open.document.program(0).expect("a program");
    assert_eq!(program.buffers.size_of(buffer).short(), "3.07 GiB");
}

#[test]
fn a_range_dragged_on_the_axis_is_measured() {
    let mut harness = timeline([1600.0, 1000.0], ThemeChoice::Light);
    let axis = axis(&harness);
    let at = |share: f32| Pos2::new(axis.left() + axis.width() * share, axis.center().y);
    drag(&mut harness, at(0.1), at(0.3));
    let (from, to) = harness.state().files.current().expect("a file").shared.measured.expect("a range");
    let profile = open::open_path(&dump(), &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let space = own.main_space().expect("HBM");
    let map = MemoryMap::new(program, own, space);
    let came: Vec<_> = map.boxes.iter().filter(|b| b.start > from && b.start <= to).collect();
    let went: Vec<_> = map.boxes.iter().filter(|b| b.end >= from && b.end < to).collect();
    let sum = |boxes: &[&highwater::analysis::map::MapBox]| Bytes(boxes.iter().map(|b| b.size).sum());
    let curve = &space.occupancy.as_ref().expect("a curve").reserved;
    let (peak, point) =
        (from..=to).map(|p| (curve.at(p), p)).max_by_key(|&(bytes, p)| (bytes, std::cmp::Reverse(p))).expect("points");
    let said = words(&harness);
    for wanted in [
        sum(&came).short(),
        sum(&went).short(),
        format!("in {}", highwater::model::counted(came.len() as u64, "buffer")),
        format!("in {}", highwater::model::counted(went.len() as u64, "buffer")),
        Bytes(peak).short(),
        format!("step {point}"),
    ] {
        assert!(said.contains(&wanted), "no '{wanted}' in {said:?}");
    }
    // The largest growth is that of activations kept by the forward pass.
    assert!(said.iter().any(|words| words.starts_with("Activation grew by")), "{said:?}");
    assert!(map.boxes.iter().any(|b| own.classes(program).of(b.buffer).name() == "Activation"));
    harness.key_press(egui::Key::Escape);
    harness.run_ok();
    assert_eq!(harness.state().files.current().expect("a file").shared.measured, None);
}

#[test]
fn the_curve_can_be_divided_by_source_file() {
    let mut harness = timeline([1600.0, 1000.0], ThemeChoice::Light);
    harness.get_by_label("Group: Class").click();
    harness.run_ok();
    harness.get_by_label("Source file").click();
    harness.run_ok();
    assert!(words(&harness).iter().any(|label| label.contains("gen_tpu.py")), "{:?}", words(&harness));
}

#[test]
fn the_visible_steps_follow_the_step_that_keys_choose_and_a_bracket_marks_where_a_range_begins() {
    let mut harness = timeline([1440.0, 900.0], ThemeChoice::Light);
    let shared = |harness: &Harness<'_, App>| {
        let shared = &harness.state().files.current().expect("open").shared;
        (shared.step, shared.range.expect("zoomed"))
    };
    harness.state_mut().files.current_mut().expect("open").shared.zoom_to((100.0, 200.0));
    harness.run_ok();
    assert_eq!(shared(&harness).1, (100.0, 200.0), "the peak is elsewhere");
    for key in [egui::Key::Period, egui::Key::Period, egui::Key::Comma] {
        harness.key_press(key);
        harness.run_ok();
        let (step, (from, to)) = shared(&harness);
        let step = f64::from(step.expect("a step"));
        assert!(from <= step && step <= to, "{step} in {from} to {to}");
        assert!((to - from - 100.0).abs() < 1e-6, "as far zoomed as before: {from} to {to}");
    }
    let step = shared(&harness).0.expect("a step");
    harness.key_press(egui::Key::OpenBracket);
    harness.run_ok();
    assert!(gui::says(&harness, &format!("Steps {step} to {step} (1)")), "{:?}", words(&harness));
}

/// The upright lines that are painted: position and extent.
fn upright(shape: &egui::Shape, found: &mut Vec<(f32, egui::Rangef)>) {
    match shape {
        egui::Shape::Vec(shapes) => shapes.iter().for_each(|shape| upright(shape, found)),
        egui::Shape::LineSegment { points: [from, to], .. } if (from.x - to.x).abs() < 0.1 => {
            found.push((from.x, egui::Rangef::new(from.y.min(to.y), from.y.max(to.y))));
        }
        _ => {}
    }
}

#[test]
fn numbers_and_flags_of_steps_do_not_lie_over_each_other_wherever_the_pointer_is() {
    let mut harness = timeline([1440.0, 900.0], ThemeChoice::Light);
    let map = words(&harness).into_iter().find(|label| label.starts_with("Memory map, ")).expect("the map");
    let map = harness.get_by_label(&map).rect();
    for share in 0..40 {
        let x = map.left() + map.width() * (share as f32 + 0.3) / 40.0;
        harness.hover_at(Pos2::new(x, map.center().y));
        harness.run_ok();
        let row = gui::painted(&harness);
        let peak = row.iter().find(|text| text.words.starts_with("peak, step")).expect("the peak's flag").place;
        let row: Vec<_> =
            row.into_iter().filter(|text| (text.place.center().y - peak.center().y).abs() < 3.0).collect();
        let row: Vec<_> = row.into_iter().filter(|text| map.x_range().contains(text.place.center().x)).collect();
        assert!(row.len() > 5, "numbers, the peak's flag and the pointer's");
        for (i, text) in row.iter().enumerate() {
            let other = row[i + 1..].iter().find(|other| other.place.intersects(text.place));
            assert!(other.is_none(), "{} over {:?} with the pointer at {x}", text.words, other.map(|text| &text.words));
        }
    }
}

#[test]
fn the_line_of_a_step_does_not_go_through_the_words_of_a_limit_out_of_sight() {
    let link = DeepLink { view: Some("timeline".to_owned()), ..DeepLink::default() };
    let path = common::sample_program("v5e_mlp_f32");
    let mut harness = gui::window(&[&path], [1280.0, 800.0], ThemeChoice::Light, link);
    harness.get_by_label("Fit").click();
    harness.run_ok();
    let flag = |harness: &Harness<'_, App>| {
        let found = gui::painted(harness).into_iter().find(|text| text.words.starts_with("capacity 15.75 GiB, above"));
        found.expect("a flag at the edge").place
    };
    let place = flag(&harness);
    harness.hover_at(Pos2::new(place.center().x, place.bottom() + 40.0));
    harness.run_ok();
    let place = flag(&harness);
    let mut lines = Vec::new();
    harness.output().shapes.iter().for_each(|shape| upright(&shape.shape, &mut lines));
    let near: Vec<_> = lines.iter().filter(|(x, _)| place.x_range().contains(*x)).collect();
    assert!(!near.is_empty(), "the line of the step under the pointer");
    let through = near.iter().find(|(_, extent)| extent.min < place.center().y && place.center().y < extent.max);
    assert!(through.is_none(), "{through:?} through {place}");
}

#[test]
fn the_tooltip_of_a_buffer_says_of_what_it_takes_a_share() {
    let mut harness = timeline([1440.0, 900.0], ThemeChoice::Light);
    let map = words(&harness).into_iter().find(|label| label.starts_with("Memory map, ")).expect("the map");
    let map = harness.get_by_label(&map).rect();
    let said = (1..20).find_map(|part| {
        harness.hover_at(Pos2::new(map.left() + map.width() * part as f32 / 20.0, map.bottom() - 30.0));
        (0..12).for_each(|_| harness.step());
        words(&harness).into_iter().find(|words| words.contains(" B   ") && words.contains('%'))
    });
    let said = said.expect("a tooltip with exact bytes and a share");
    assert!(said.ends_with("of the peak"), "{said}");
}

#[test]
fn memory_reserved_for_results_that_are_not_written_yet_says_so() {
    let link = || DeepLink { view: Some("timeline".to_owned()), ..DeepLink::default() };
    let named = common::sample_programs().into_iter().filter(|path| {
        let harness = gui::window(&[path], [1440.0, 1000.0], ThemeChoice::Light, link());
        gui::painted(&harness).iter().any(|text| text.words.starts_with("reserved for results, "))
    });
    assert!(named.count() > 0, "no sample has results that are written late");
}
