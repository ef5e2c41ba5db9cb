//! The heat map of memory spaces: spaces side by side, metrics, pointer input, search.

use std::path::PathBuf;

use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui;

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
fn the_chosen_space_is_large_and_another_can_fill_the_room() {
    let mut harness = window([1600.0, 1000.0]);
    assert!(says(&harness, "Heat map of HBM, Occupancy"), "{:?}", labels(&harness));
    assert!(says(&harness, "more than the"), "that it does not fit comes first: {:?}", labels(&harness));
    let hbm = harness.get_by_label_contains("Heat map of HBM").rect();
    assert!(hbm.width() > 800.0 && hbm.height() > 400.0, "the chosen space is large: {hbm:?}");
    harness.get_by_label("Zoom into VMEM").click();
    harness.run_ok();
    assert!(says(&harness, "Heat map of VMEM") && !says(&harness, "Heat map of HBM"));
    harness.get_by_label("Zoom out from VMEM").click();
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
