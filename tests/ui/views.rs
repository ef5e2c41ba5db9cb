//! Every view by mouse and keyboard on a real dump, checked by its labels.

use std::path::PathBuf;

use egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;
use highwater::ui::view::VIEWS;

use crate::common;
use crate::gui::{self, says, words};

/// The sample that does not fit.
fn dump() -> PathBuf {
    common::sample_programs()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("oom"))
        .expect("a sample that does not fit")
}

fn open(view: &str) -> Harness<'static, App> {
    let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
    gui::window(&[&dump()], [1600.0, 1000.0], ThemeChoice::Light, link)
}

/// The digit of a view, as shown on its tab.
fn key_of(harness: &Harness<'_, App>, title: &str) -> Key {
    let document = &harness.state().files.current().expect("open").document;
    let view = VIEWS.shown_for(document).find(|view| view.title == title).expect("a view of that name");
    let digit: usize = VIEWS.digit_of(view, document).parse().expect("a digit");
    [Key::Num1, Key::Num2, Key::Num3, Key::Num4, Key::Num5, Key::Num6, Key::Num7, Key::Num8, Key::Num9][digit - 1]
}

#[test]
fn views_are_chosen_by_mouse_and_by_key() {
    let mut harness = open("overview");
    harness.get_by_role_and_label(egui::Role::Tab, "Timeline").click();
    harness.run_ok();
    assert!(says(&harness, "Memory map, "));
    harness.key_press(key_of(&harness, "Buffers"));
    harness.run_ok();
    assert!(says(&harness, "Filter buffers"));
    harness.key_press(key_of(&harness, "Overview"));
    harness.run_ok();
    assert!(says(&harness, "Live memory over the program"));
    harness.key_press_modifiers(Modifiers::ALT, Key::ArrowLeft);
    harness.run_ok();
    assert!(says(&harness, "Filter buffers"), "back leads to where one was");
}

#[test]
fn a_row_that_is_clicked_shows_its_details_and_stays_selected_in_other_views() {
    let mut harness = open("buffers");
    let row = harness.get_all_by_role(egui::Role::Row).next().expect("rows");
    let name = row.accesskit_node().label().expect("a name");
    row.click();
    harness.run_ok();
    let buffer = harness.state().files.current().expect("open").shared.selected.expect("selected");
    assert!(says(&harness, "Shape and padding"));
    assert!(says(&harness, "Lifetime"));
    let first = name.split(' ').next().expect("a word").to_owned();
    assert!(says(&harness, &first));
    harness.key_press(Key::ArrowDown);
    harness.run_ok();
    let next = harness.state().files.current().expect("open").shared.selected;
    assert_ne!(next, Some(buffer), "the arrow key moves the selection");
    harness.key_press(key_of(&harness, "Timeline"));
    harness.run_ok();
    assert_eq!(harness.state().files.current().expect("open").shared.selected, next);
    harness.key_press(Key::Escape);
    harness.run_ok();
    assert_eq!(harness.state().files.current().expect("open").shared.selected, None);
}

#[test]
fn the_filter_narrows_the_rows_and_says_when_nothing_is_left() {
    let mut harness = open("buffers");
    let rows = |harness: &Harness<'_, App>| harness.get_all_by_role(egui::Role::Row).count();
    let all = rows(&harness);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::F);
    harness.run_ok();
    harness.get_by_label("Filter buffers").type_text("parameter");
    harness.run_ok();
    let some = rows(&harness);
    assert!(some > 0 && some <= all);
    harness.get_by_label("Filter buffers").type_text(" nosuchbuffer");
    harness.run_ok();
    assert!(says(&harness, "0 of "));
    let drop = words(&harness).into_iter().find(|label| label.starts_with("Remove \u{201c}")).expect("a way out");
    harness.get_by_label(&drop).click();
    harness.run_ok();
    assert_eq!(rows(&harness), some);
}

#[test]
fn heads_sort() {
    let mut harness = open("buffers");
    let first = |harness: &Harness<'_, App>| {
        harness.get_all_by_role(egui::Role::Row).next().and_then(|row| row.accesskit_node().label()).expect("a row")
    };
    let largest = first(&harness);
    let head = words(&harness).into_iter().find(|label| label.starts_with("Sort by Size")).expect("a head");
    harness.get_by_label(&head).click();
    harness.run_ok();
    assert_ne!(first(&harness), largest, "the smallest comes first now");
    harness.get_by_label_contains("Sort by Size").click();
    harness.run_ok();
    assert_eq!(first(&harness), largest);
}

#[test]
fn the_timeline_zooms_moves_and_goes_back_to_all() {
    let mut harness = open("timeline");
    let range = |harness: &Harness<'_, App>| harness.state().files.current().expect("open").shared.range;
    assert_eq!(range(&harness), None);
    harness.key_press(Key::W);
    harness.run_ok();
    let zoomed = range(&harness).expect("zoomed");
    harness.key_press(Key::D);
    harness.run_ok();
    let moved = range(&harness).expect("moved");
    assert!(moved.0 > zoomed.0 && ((moved.1 - moved.0) - (zoomed.1 - zoomed.0)).abs() < 1e-6);
    harness.key_press(Key::Num0);
    harness.run_ok();
    assert_eq!(range(&harness), None);
    let map = words(&harness).into_iter().find(|label| label.starts_with("Memory map, ")).expect("the map");
    let place = harness.get_by_label(&map).rect().center();
    harness.hover_at(place);
    harness.event(egui::Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta: egui::Vec2::new(0.0, 120.0),
        modifiers: Modifiers::NONE,
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Wheel,
    });
    harness.run_ok();
    assert!(range(&harness).is_some(), "the wheel zooms");
}

#[test]
fn a_click_above_pins_a_step_for_every_view() {
    let mut harness = open("timeline");
    let curve =
        words(&harness).into_iter().find(|label| label.starts_with("Live bytes over the program")).expect("the curve");
    harness.get_by_label(&curve).click();
    harness.run_ok();
    let step = harness.state().files.current().expect("open").shared.step.expect("a step is pinned");
    assert!(says(&harness, "Largest at this step"));
    harness.key_press(key_of(&harness, "Buffers"));
    harness.run_ok();
    let words = format!("At step {step}");
    harness.get_by_label(&words).click();
    harness.run_ok();
    assert!(harness.get_all_by_role(egui::Role::Row).count() > 0);
    harness.key_press(Key::P);
    harness.run_ok();
    assert_eq!(harness.state().files.current().expect("open").shared.step, None);
}

#[test]
fn a_capacity_can_be_chosen_and_the_verdict_follows() {
    let mut harness = open("overview");
    assert!(says(&harness, "Does not fit"));
    let memory = words(&harness).into_iter().find(|label| label.starts_with("Memory: ")).expect("the picker");
    harness.get_by_label(&memory).click();
    harness.run_ok();
    harness.get_by_label("Capacity").focus();
    harness.run_ok();
    harness.get_by_label("Capacity").type_text("4TiB");
    harness.run_ok();
    harness.get_by_label("Use").click();
    harness.run_ok();
    assert!(says(&harness, "Fits"));
}

#[test]
fn a_file_that_cannot_be_read_leaves_what_is_open() {
    let missing = std::env::temp_dir().join("highwater-no-such-file.hlo.pb");
    let mut harness = gui::window(&[&dump(), &missing], [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
    assert!(says(&harness, "Does not fit"));
    assert!(says(&harness, "Could not read highwater-no-such-file.hlo.pb"));
    harness.get_by_label("Dismiss").click();
    harness.run_ok();
    assert!(!says(&harness, "Could not read"));
    assert!(says(&harness, "Does not fit"));
}

#[test]
fn the_sheet_of_keys_comes_and_goes() {
    let mut harness = open("overview");
    harness.get_by_role_and_label(egui::Role::Button, "Help").click();
    harness.run_ok();
    assert!(says(&harness, "Open files"));
    harness.key_press(Key::Escape);
    harness.run_ok();
    assert!(!says(&harness, "Open files"));
}

#[test]
fn an_empty_window_says_what_to_do() {
    let harness = gui::window(&[], [1000.0, 640.0], ThemeChoice::Dark, DeepLink::default());
    assert!(says(&harness, "Drop a memory profile here"));
    assert!(says(&harness, "Nothing leaves this machine"));
}

#[test]
fn several_files_are_one_session() {
    let files = common::sample_programs();
    let paths: Vec<&std::path::Path> = files.iter().map(PathBuf::as_path).collect();
    let mut harness = gui::window(&paths, [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
    let names: Vec<String> = words(&harness).into_iter().filter(|label| label.starts_with("File ")).collect();
    assert_eq!(names.len(), files.len());
    harness.get_by_label(&names[0]).click();
    harness.run_ok();
    assert_eq!(harness.state().files.current, Some(0));
    harness.key_press_modifiers(Modifiers::COMMAND, Key::W);
    harness.run_ok();
    assert_eq!(harness.state().files.entries.len(), files.len() - 1);
}

#[test]
fn a_message_joins_the_program_that_it_names() {
    let folder = std::env::temp_dir().join(format!("highwater-join-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let dump = common::sample_programs()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("v5e_mlp_f32"))
        .expect("the sample that fits");
    let name = open::open_path(&dump, &Progress::default()).expect("a sample").programs[0].name.clone();
    let log = folder.join("train.log");
    let message =
        "Ran out of memory on HBM, the total memory required for HLO temporaries (25.90G) exceeds available HBM";
    std::fs::write(&log, format!("{message} (15.75G). HLO module: {name}. \n")).expect("written");
    let harness = gui::window(&[&dump, &log], [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(harness.state().files.entries.len(), 1, "{:?}", words(&harness));
    assert!(says(&harness, "Out of HBM"));
    assert!(says(&harness, "Timeline"));
}

#[test]
fn the_report_can_be_saved_as_a_page() {
    let path = common::sample_program("v5e_mlp_f32");
    let link = DeepLink { view: Some("report".to_owned()), ..DeepLink::default() };
    let harness = gui::window(&[&path], [1200.0, 800.0], ThemeChoice::Light, link);
    assert!(harness.query_by_label("Save as HTML\u{2026}").is_some(), "{:?}", words(&harness));
}
