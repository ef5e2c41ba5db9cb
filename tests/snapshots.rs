//! Pictures of every view, drawn on the CPU, compared with the ones that were looked at.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

mod common;
#[path = "common/gui.rs"]
mod gui;

use egui_kittest::SnapshotResults;
use highwater::ui::app::Place;
use highwater::ui::session::ThemeChoice;

const VIEWS: &[&str] = &["overview", "timeline", "treemap", "heatmap", "padding", "buffers", "advisor"];

fn snap(results: &mut SnapshotResults, sample: &str, view: &str, size: [f32; 2], theme: ThemeChoice) {
    let Some(path) = common::sample_programs().into_iter().find(|path| path.to_string_lossy().contains(sample)) else {
        panic!("no sample named {sample}");
    };
    let place = Place { view: Some(view.to_owned()), ..Place::default() };
    let mut harness = gui::window(&[&path], size, theme, place);
    let name = if theme == ThemeChoice::Dark { "dark" } else { "light" };
    harness.snapshot(format!("{sample}_{view}_{name}_{}", size[0]));
    results.extend(harness.take_snapshot_results());
}

#[test]
fn views_look_as_they_did() {
    let mut results = SnapshotResults::default();
    for view in VIEWS {
        snap(&mut results, "oom", view, [1600.0, 1000.0], ThemeChoice::Light);
        snap(&mut results, "oom", view, [1600.0, 1000.0], ThemeChoice::Dark);
        snap(&mut results, "oom", view, [1000.0, 640.0], ThemeChoice::Light);
    }
}

#[test]
fn a_tiny_profile_looks_as_it_did() {
    let mut results = SnapshotResults::default();
    snap(&mut results, "cpu", "timeline", [1600.0, 1000.0], ThemeChoice::Dark);
}
