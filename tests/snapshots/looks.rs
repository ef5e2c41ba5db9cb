//! Pictures of presenter mode, of high contrast and of hidden names, compared with the ones that were looked at.

use egui_kittest::SnapshotResults;
use highwater::ui::app::DeepLink;
use highwater::ui::session::{Options, ThemeChoice};

use crate::common;
use crate::gui;

fn snap(results: &mut SnapshotResults, name: &str, view: &str, size: [f32; 2], options: Options) {
    let mut all = common::sample_programs().into_iter();
    let path = all.find(|path| path.to_string_lossy().contains("gpt_m_oom")).expect("the sample that does not fit");
    let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
    let mut harness = gui::window_with(&[&path], size, options, link);
    harness.snapshot(name);
    results.extend(harness.take_snapshot_results());
}

#[test]
fn presenter_mode_looks_as_it_did() {
    let mut results = SnapshotResults::default();
    for (view, theme) in [
        ("overview", ThemeChoice::Dark),
        ("timeline", ThemeChoice::Light),
        ("treemap", ThemeChoice::Dark),
        ("heatmap", ThemeChoice::Light),
        ("padding", ThemeChoice::Light),
        ("buffers", ThemeChoice::Light),
        ("whatif", ThemeChoice::Dark),
        ("advisor", ThemeChoice::Light),
    ] {
        let options = Options { theme, presenter: true, ..Options::default() };
        snap(&mut results, &format!("presenter_{view}_1280"), view, [1280.0, 720.0], options);
    }
}

#[test]
fn high_contrast_looks_as_it_did() {
    let mut results = SnapshotResults::default();
    for (theme, name) in [(ThemeChoice::ContrastLight, "light"), (ThemeChoice::ContrastDark, "dark")] {
        let options = Options { theme, ..Options::default() };
        snap(&mut results, &format!("contrast_overview_{name}_1600"), "overview", [1600.0, 1000.0], options);
    }
}

#[test]
fn hidden_names_look_as_they_did() {
    let mut results = SnapshotResults::default();
    let options = Options { theme: ThemeChoice::Light, names_hidden: true, ..Options::default() };
    snap(&mut results, "hidden_treemap_light_1600", "treemap", [1600.0, 1000.0], options);
}
