//! No text is truncated without a tooltip: in every view at a small size, text painted with an ellipsis is shown in
//! full while the pointer is over it. Truncated text is found in the painted shapes, not in accessible labels.

use std::path::{Path, PathBuf};

use egui::Pos2;
use egui_kittest::Harness;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, painted};

/// Truncated texts of a view that are not shown in full on hover, and the number of all truncated texts.
fn cut_in(harness: &mut Harness<'_, App>) -> (usize, Vec<String>) {
    let cut: Vec<(Pos2, String)> =
        painted(harness).into_iter().filter(|text| text.cut).map(|text| (text.place.center(), text.words)).collect();
    let mut silent = Vec::new();
    for (at, words) in &cut {
        harness.hover_at(*at);
        harness.run_ok();
        harness.step();
        let whole = words.trim();
        if !painted(harness).iter().any(|text| !text.cut && text.words.contains(whole)) {
            silent.push(format!("'{whole}' at {at:?}"));
        }
    }
    harness.remove_cursor();
    harness.run_ok();
    (cut.len(), silent)
}

fn check(path: &Path, views: &[&str]) -> usize {
    let mut all = 0;
    let mut silent = Vec::new();
    for view in views {
        let link = DeepLink { view: Some((*view).to_owned()), ..DeepLink::default() };
        let mut harness = gui::window(&[path], [1000.0, 640.0], ThemeChoice::Light, link);
        let (cut, without) = cut_in(&mut harness);
        all += cut;
        silent.extend(without.into_iter().map(|words| format!("{view}: {words}")));
    }
    assert!(silent.is_empty(), "{} of {all} texts are cut without a tooltip: {silent:#?}", silent.len());
    all
}

fn sample(part: &str) -> PathBuf {
    let mut all = common::sample_programs().into_iter();
    all.find(|path| path.to_string_lossy().contains(part)).expect("a sample of that name")
}

#[test]
fn in_the_views_of_a_program() {
    let views = ["overview", "timeline", "treemap", "heatmap", "padding", "buffers", "whatif", "advisor", "report"];
    let cut = check(&sample("gpt_m_oom"), &views);
    assert!(cut > 3, "only {cut} texts are cut in so small a window: is this test blind?");
}

#[test]
fn in_the_views_of_an_ipu() {
    check(&common::samples().join("ipu_over.cbor"), &["overview", "tiles", "memory", "liveness"]);
}

#[test]
fn in_the_views_of_what_ran() {
    let made = common::samples().join("made");
    check(&made.join("gpu_training.xplane.pb"), &["runtime"]);
    check(&made.join("tpu_training.prof"), &["live"]);
    check(&made.join("gpu_0_bfc.memory_dump"), &["allocator"]);
    check(&common::samples().join("v5e_gpt_m_oom/v5e_gpt_m_oom.err.txt"), &["failure"]);
}

#[test]
fn in_the_details_of_a_buffer() {
    let sample = sample("gpt_m_oom");
    let link = DeepLink { view: Some("buffers".to_owned()), ..DeepLink::default() };
    let mut harness = gui::window(&[&sample], [1600.0, 1000.0], ThemeChoice::Dark, link);
    harness.key_press(egui::Key::ArrowDown);
    harness.run_ok();
    let (_, silent) = cut_in(&mut harness);
    assert!(silent.is_empty(), "cut without a tooltip: {silent:#?}");
}
