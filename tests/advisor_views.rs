//! What if and the advisor in the window: switching changes on moves the answer, and the two share what is on.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

mod common;
#[path = "common/gui.rs"]
mod gui;

use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::ui::app::{App, Place};
use highwater::ui::session::ThemeChoice;

fn open(view: &str, edits: &[&str]) -> Harness<'static, App> {
    let path = common::sample_programs()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("v6e_replicated_oom"))
        .expect("a sample that does not fit");
    let edits = edits.iter().map(|text| text.parse().expect("an edit")).collect();
    let place = Place { view: Some(view.to_owned()), edits, ..Place::default() };
    gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, place)
}

fn says(harness: &Harness<'_, App>, part: &str) -> bool {
    let all = harness.get_all(egui_kittest::kittest::by());
    all.flat_map(|node| [node.accesskit_node().label(), node.accesskit_node().value()])
        .flatten()
        .any(|label| label.contains(part))
}

#[test]
fn a_switch_moves_the_answer_and_back() {
    let mut harness = open("whatif", &[]);
    assert!(says(&harness, "Still 17.0 GiB over"), "the program as it is");
    harness.get_all_by_label("Divide table, stats by 4").next().expect("a switch").click();
    harness.run();
    assert!(says(&harness, "Fits with 6.99 GiB to spare"), "divided over the devices it fits");
    assert!(says(&harness, "sharding: arguments and results exact"), "how far to believe it");
    harness.get_by_label("All off").click();
    harness.run();
    assert!(says(&harness, "Still 17.0 GiB over"), "as it was");
}

#[test]
fn changes_of_the_command_line_are_on() {
    let harness = open("whatif", &["shard table 4"]);
    assert!(says(&harness, "shard table 4"));
    assert!(!says(&harness, "Switch changes on"));
}

#[test]
fn the_advisor_names_the_cause_and_the_plan() {
    let mut harness = open("advisor", &[]);
    assert!(says(&harness, "of arguments are whole on each of 4 devices: `table`, `stats`"));
    assert!(says(&harness, "With `shard table,stats 4` it fits with 6.99 GiB to spare"));
    harness.get_by_label("Show it in What if").click();
    harness.run();
    assert!(says(&harness, "Fits with 6.99 GiB to spare"));
}
