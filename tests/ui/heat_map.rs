//! The heat map of memory spaces: its cells add up to the occupancy curve that is tested against the compiler's
//! figures elsewhere, and the view does what a person expects of it.

use std::path::PathBuf;

use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::heat::{HeatGrid, HeatWindow};
use highwater::analysis::map::MemoryMap;
use highwater::analysis::{ProgramAnalysis, unpadded};
use highwater::model::Device;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui;

#[test]
fn a_column_adds_up_to_the_occupancy_at_its_step() {
    let mut columns_seen = 0;
    let samples = common::sample_programs().into_iter();
    for path in samples.chain(common::files(|name| name.ends_with("after_optimizations.hlo.pb"))) {
        let program = common::program(&path);
        let analysis = ProgramAnalysis::new(&program, &Device::default());
        for space in &analysis.spaces {
            let Some(occupancy) = &space.occupancy else { continue };
            let map = MemoryMap::new(&program, &analysis, space);
            let waste = |item: &highwater::analysis::map::MapBox| {
                item.size.saturating_sub(unpadded(&program, &analysis.traces, item.buffer).0)
            };
            let fullest = |from: u32, to: u32| {
                (from..to).max_by_key(|&point| (occupancy.content.at(point), std::cmp::Reverse(point))).unwrap_or(from)
            };
            let window = HeatWindow {
                points: (0.0, f64::from(map.points)),
                addresses: (0.0, map.height as f64),
                columns: 97,
                rows: 61,
            };
            let grid = HeatGrid::new(&map, window, &fullest, &waste, &|_| true);
            for column in 0..grid.columns() {
                let point = grid.points[column];
                let expected = occupancy.content.at(point);
                assert_eq!(grid.occupied_in(column), expected, "{} {} at {point}", path.display(), space.name);
                columns_seen += 1;
            }
            // What is largest in a cell is among what lives there.
            for column in (0..grid.columns()).step_by(7) {
                let (point, (low, high)) = (grid.points[column], grid.addresses_of(column % grid.rows));
                let inside = |item: &highwater::analysis::map::MapBox| {
                    (item.address + item.size).min(high).saturating_sub(item.address.max(low))
                };
                let slow = map.live_at(point).iter().map(inside).max().filter(|&bytes| bytes > 0);
                assert_eq!(map.largest_in(point, low, high).map(inside), slow);
            }
            // No peak is lost, however coarse the columns.
            let highest = (0..grid.columns()).map(|column| grid.occupied_in(column)).max().unwrap_or(0);
            assert_eq!(highest, occupancy.content_peak.0, "{} {}", path.display(), space.name);
        }
    }
    assert!(columns_seen > 0, "no program with a schedule was found");
}

/// The sample that does not fit, in a window.
fn window(size: [f32; 2]) -> Harness<'static, App> {
    let sample: PathBuf = common::sample_programs()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("oom"))
        .expect("a sample that does not fit");
    let link = DeepLink { view: Some("heatmap".to_owned()), ..DeepLink::default() };
    gui::window(&[&sample], size, ThemeChoice::Light, link)
}

fn labels(harness: &Harness<'_, App>) -> Vec<String> {
    let all = harness.get_all(egui_kittest::kittest::by());
    all.flat_map(|node| [node.accesskit_node().label(), node.accesskit_node().value()]).flatten().collect()
}

fn says(harness: &Harness<'_, App>, part: &str) -> bool {
    labels(harness).iter().any(|label| label.contains(part))
}

#[test]
fn spaces_stand_side_by_side_and_one_can_fill_the_room() {
    let mut harness = window([1600.0, 1000.0]);
    for space in ["HBM", "VMEM"] {
        assert!(says(&harness, &format!("Heat map of {space}, Occupancy")), "{space}: {:?}", labels(&harness));
    }
    harness.get_by_label("Zoom into VMEM").click();
    harness.run_ok();
    assert!(says(&harness, "Heat map of VMEM") && !says(&harness, "Heat map of HBM"));
    harness.get_by_label("Show all spaces beside VMEM").click();
    harness.run_ok();
    assert!(says(&harness, "Heat map of HBM"));
}

#[test]
fn cells_are_coloured_by_padding_and_age_too() {
    let mut harness = window([1000.0, 640.0]);
    for metric in ["Padding", "Age"] {
        harness.get_by_role_and_label(egui::Role::RadioButton, metric).click();
        harness.run_ok();
        assert!(says(&harness, &format!("Heat map of HBM, {metric}")));
    }
}

#[test]
fn a_click_pins_the_step_and_the_wheel_zooms() {
    let mut harness = window([1600.0, 1000.0]);
    let spoken = |harness: &Harness<'_, App>| {
        labels(harness).into_iter().find(|label| label.starts_with("Heat map of HBM")).expect("the panel of the HBM")
    };
    let before = spoken(&harness);
    let panel = harness.get_by_label(&before).rect();
    let place = egui::pos2(panel.left() + panel.width() * 0.6, panel.bottom() - panel.height() * 0.1);
    harness.hover_at(place);
    harness.run_ok();
    harness.event(egui::Event::PointerButton {
        pos: place,
        button: egui::PointerButton::Primary,
        pressed: true,
        modifiers: egui::Modifiers::NONE,
    });
    harness.event(egui::Event::PointerButton {
        pos: place,
        button: egui::PointerButton::Primary,
        pressed: false,
        modifiers: egui::Modifiers::NONE,
    });
    harness.run_ok();
    let pinned = spoken(&harness);
    assert_ne!(pinned, before, "another step is shown");
    harness.key_press(egui::Key::W);
    harness.run_ok();
    let zoomed = spoken(&harness);
    assert_ne!(zoomed, pinned, "other cells are shown");
    harness.key_press(egui::Key::Num0);
    harness.run_ok();
    assert_eq!(spoken(&harness), pinned, "all of it again");
}

#[test]
fn what_is_looked_for_stays_lit() {
    let mut harness = window([1600.0, 1000.0]);
    let before = harness.render().expect("a picture");
    harness.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::F);
    harness.run_ok();
    harness.get_by_label("Find").type_text("embed");
    harness.run_ok();
    assert!(says(&harness, "Find"), "{:?}", labels(&harness));
    let after = harness.render().expect("a picture");
    let other = before.pixels().zip(after.pixels()).filter(|(before, after)| before != after).count();
    assert!(other > 50_000, "only {other} pixels are another colour");
}
