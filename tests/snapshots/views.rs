//! Pictures of every view, drawn on the CPU, compared with the ones that were looked at.

use egui_kittest::SnapshotResults;
use egui_kittest::kittest::Queryable as _;
use highwater::ui::app::DeepLink;
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui;

const VIEWS: &[&str] =
    &["overview", "failure", "timeline", "treemap", "heatmap", "padding", "buffers", "whatif", "advisor", "report"];
const IPU_VIEWS: &[&str] = &["overview", "tiles", "memory", "liveness", "insights"];

fn snap(results: &mut SnapshotResults, sample: &str, view: &str, size: [f32; 2], theme: ThemeChoice) {
    let Some(path) = common::sample_programs().into_iter().find(|path| path.to_string_lossy().contains(sample)) else {
        panic!("no sample named {sample}");
    };
    let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
    let mut harness = gui::window(&[&path], size, theme, link);
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
        snap(&mut results, "oom", view, [1000.0, 640.0], ThemeChoice::Dark);
    }
}

#[test]
fn views_of_an_ipu_look_as_they_did() {
    let mut results = SnapshotResults::default();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_profiles/ipu_over.cbor");
    for view in IPU_VIEWS {
        for (theme, name) in [(ThemeChoice::Light, "light"), (ThemeChoice::Dark, "dark")] {
            for size in [[1600.0, 1000.0], [1000.0, 640.0]] {
                let link = DeepLink { view: Some((*view).to_owned()), ..DeepLink::default() };
                let mut harness = gui::window(&[&path], size, theme, link);
                harness.snapshot(format!("ipu_{view}_{name}_{}", size[0]));
                results.extend(harness.take_snapshot_results());
            }
        }
    }
}

/// The other colourings of the heat map, and one memory space alone.
#[test]
fn the_heat_map_looks_as_it_did() {
    let mut results = SnapshotResults::default();
    let path = common::sample_programs().into_iter().find(|path| path.to_string_lossy().contains("pad_cloud"));
    let path = path.expect("the sample with padding");
    for (metric, theme) in [("Padding", ThemeChoice::Dark), ("Age", ThemeChoice::Light)] {
        let link = DeepLink { view: Some("heatmap".to_owned()), ..DeepLink::default() };
        let mut harness = gui::window(&[&path], [1600.0, 1000.0], theme, link);
        harness.get_by_role_and_label(egui::Role::RadioButton, metric).click();
        harness.run_ok();
        harness.get_by_label("Zoom into HBM").click();
        harness.run_ok();
        harness.snapshot(format!("pad_heatmap_{}", metric.to_lowercase()));
        results.extend(harness.take_snapshot_results());
    }
}

#[test]
fn a_tiny_profile_looks_as_it_did() {
    let mut results = SnapshotResults::default();
    snap(&mut results, "cpu", "timeline", [1600.0, 1000.0], ThemeChoice::Dark);
}
