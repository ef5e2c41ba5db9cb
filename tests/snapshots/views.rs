//! Every view, light and large, and dark and small, and presenter mode, compared with the reviewed pictures.

use std::path::Path;

use egui_kittest::SnapshotResults;
use egui_kittest::kittest::Queryable as _;
use highwater::ui::app::DeepLink;
use highwater::ui::session::{Options, ThemeChoice};

use crate::{common, gui, picture};

/// Views of a program that does not fit.
const VIEWS: &[&str] =
    &["overview", "failure", "timeline", "treemap", "heatmap", "padding", "buffers", "whatif", "advisor", "report"];
/// Views of an IPU.
const IPU_VIEWS: &[&str] = &["overview", "tiles", "memory", "liveness"];
/// Views of data recorded at run time, each with its sample.
const RUN_VIEWS: &[(&str, &str)] = &[
    ("runtime", "made/gpu_training.xplane.pb"),
    ("live", "made/tpu_training.prof"),
    ("allocator", "made/gpu_0_bfc.memory_dump"),
];

/// Checks a view in light at 1600 by 1000 points and in dark at 1000 by 640.
fn both(results: &mut SnapshotResults, name: &str, path: &Path, view: &str) {
    for (theme, size, end) in
        [(ThemeChoice::Light, [1600.0, 1000.0], "light_1600"), (ThemeChoice::Dark, [1000.0, 640.0], "dark_1000")]
    {
        let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
        let mut harness = gui::window(&[path], size, theme, link);
        picture::compare(results, &mut harness, &format!("{name}_{end}"));
    }
}

#[test]
fn views_look_as_they_did() {
    let mut results = SnapshotResults::default();
    let path = common::sample_program("v5e_gpt_m_oom");
    for view in VIEWS {
        both(&mut results, &format!("oom_{view}"), &path, view);
    }
}

#[test]
fn views_of_an_ipu_look_as_they_did() {
    let mut results = SnapshotResults::default();
    let path = common::samples().join("ipu_over.cbor");
    for view in IPU_VIEWS {
        both(&mut results, &format!("ipu_{view}"), &path, view);
    }
}

#[test]
fn views_of_what_ran_look_as_they_did() {
    let mut results = SnapshotResults::default();
    for (view, sample) in RUN_VIEWS {
        both(&mut results, &format!("run_{view}"), &common::samples().join(sample), view);
    }
}

/// Variants of a view that are chosen by a control in it.
#[test]
fn other_forms_of_views_look_as_they_did() {
    let mut results = SnapshotResults::default();
    let path = common::sample_program("v5e_gpt_m_oom");
    for (name, view, control) in
        [("timeline_lifetimes", "timeline", "Lifetimes"), ("treemap_icicle", "treemap", "Icicle")]
    {
        let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
        let mut harness = gui::window(&[&path], [1000.0, 640.0], ThemeChoice::Light, link);
        harness.get_by_label(control).click();
        harness.run_ok();
        picture::compare(&mut results, &mut harness, name);
    }
}

#[test]
fn presenter_mode_looks_as_it_did() {
    let mut results = SnapshotResults::default();
    let options = Options { theme: ThemeChoice::Dark, presenter: true, ..Options::default() };
    let link = DeepLink { view: Some("overview".to_owned()), ..DeepLink::default() };
    let path = common::sample_program("v5e_gpt_m_oom");
    let mut harness = gui::window_with(&[&path], [1280.0, 720.0], options, link);
    picture::compare(&mut results, &mut harness, "presenter_overview");
}
