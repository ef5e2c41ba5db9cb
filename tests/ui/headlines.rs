//! Each view answers in one line that can be read across a table; a file that was read in part says so there; and what is
//! out of sight or not known is not drawn as if it were over.

use egui_kittest::{Harness, kittest::Queryable as _};
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, painted, says, words};

fn link(view: &str) -> DeepLink {
    DeepLink { view: Some(view.to_owned()), ..DeepLink::default() }
}

/// Types a change of one's own into its field.
fn own_change(harness: &mut Harness<'_, App>, change: &str) {
    harness.get_by_role_and_label(egui::Role::TextInput, "Your own change").focus();
    harness.run_ok();
    harness.event(egui::Event::Text(change.to_owned()));
    harness.run_ok();
    harness.key_press(egui::Key::Enter);
    harness.run_ok();
}

#[test]
fn every_view_of_a_program_answers_in_large_type() {
    let path = common::sample_program("v5e_gpt_m_oom");
    for (view, answer) in [
        ("overview", "Does not fit"),
        ("timeline", "Peak 25.9 GiB at step 1069"),
        ("treemap", "in layer_*"),
        ("heatmap", "10.1 GiB more than the 15.75 GiB of HBM"),
        ("padding", "of the peak is padding"),
        ("buffers", "539 buffers, 25.9 GiB at the peak"),
        ("whatif", "10.1 GiB over, no\u{a0}change\u{a0}on"),
        ("advisor", "makes it fit, results"),
    ] {
        let harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link(view));
        let found = painted(&harness).into_iter().find(|text| text.words.contains(answer));
        let found = found.unwrap_or_else(|| panic!("{view}: no '{answer}' in {:?}", words(&harness)));
        assert!(found.place.height() >= 22.0, "{view}: {} is {} high", found.words, found.place.height());
        assert!(found.place.top() < 200.0, "{view}: {} stands at {}", found.words, found.place);
    }
}

#[test]
fn the_headline_of_the_buffers_counts_what_matches_and_chips_filter() {
    let path = common::sample_program("v5e_gpt_m_oom");
    let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link("buffers"));
    harness.get_by_label("Filter by class:optimizer").click();
    harness.run_ok();
    assert!(says(&harness, "151 of 539 match, 949 MiB"), "{:?}", words(&harness));
    harness.get_by_label("Remove class:optimizer").click();
    harness.run_ok();
    assert!(says(&harness, "539 buffers, 25.9 GiB at the peak"));
}

#[test]
fn a_file_read_in_part_says_how_much_is_missing_and_promises_nothing() {
    let whole = common::sample_program("v5e_mlp_f32");
    let bytes = common::bytes(&whole);
    let folder = tempfile::tempdir().expect("a folder");
    let cut = folder.path().join("cut.hlo.pb");
    std::fs::write(&cut, &bytes[..bytes.len() * 98 / 100]).expect("written");
    let harness = gui::window(&[&cut], [1280.0, 800.0], ThemeChoice::Light, link("overview"));
    assert!(says(&harness, "Partly read:"), "{:?}", words(&harness));
    assert!(words(&harness).iter().any(|label| label.starts_with("at least ")), "{:?}", words(&harness));
    assert!(words(&harness).iter().any(|label| label.contains("of which is missing")), "{:?}", words(&harness));
    assert!(!says(&harness, "Fits"), "what is missing may not fit");
}

#[test]
fn a_file_cut_before_its_memory_offers_no_cause_and_no_view_of_memory() {
    let whole = common::sample_program("v5e_mlp_f32");
    let bytes = common::bytes(&whole);
    let folder = tempfile::tempdir().expect("a folder");
    let cut = folder.path().join("cut.hlo.pb");
    std::fs::write(&cut, &bytes[..bytes.len() * 3 / 10]).expect("written");
    let harness = gui::window(&[&cut], [1440.0, 900.0], ThemeChoice::Light, link("advisor"));
    assert!(!says(&harness, "No single cause"), "{:?}", words(&harness));
    assert!(says(&harness, ": no memory assignment"), "{:?}", words(&harness));
    assert!(says(&harness, "copy or write the file again"), "{:?}", words(&harness));
    for view in ["Timeline", "Treemap", "Heat map", "Padding", "Buffers", "Advisor"] {
        assert!(harness.query_by_role_and_label(egui::Role::Tab, view).is_none(), "{view} has nothing to show");
    }
}

#[test]
fn a_limit_far_above_what_is_seen_is_no_alarm() {
    let path = common::sample_program("v5e_mlp_f32");
    let mut harness = gui::window(&[&path], [1280.0, 800.0], ThemeChoice::Light, link("timeline"));
    harness.get_by_label("Fit").click();
    harness.run_ok();
    let theme = highwater::ui::widget::theme::Theme::of(&harness.ctx);
    let flags: Vec<_> = painted(&harness).into_iter().filter(|text| text.words.contains("above")).collect();
    let flag = flags.iter().find(|text| text.words.starts_with("capacity 15.75 GiB")).expect("a flag at the edge");
    assert_ne!(flag.color, theme.danger, "red is for what is over");
}

#[test]
fn an_own_change_that_names_nothing_is_refused_with_what_there_is() {
    let path = common::sample_program("v5e_gpt_m_oom");
    let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link("whatif"));
    own_change(&mut harness, "donate foo");
    assert!(says(&harness, "no argument begins with foo; there are"), "{:?}", words(&harness));
    assert!(!words(&harness).iter().any(|label| label.contains("ot predicted")), "{:?}", words(&harness));
    let switches = harness.query_all_by_label("donate foo").count();
    assert_eq!(switches, 0, "it is not among the changes");
}

#[test]
fn an_own_change_says_what_it_does_alone_and_micro_batches_are_a_switch() {
    let path = common::sample_program("v5e_gpt_m_oom");
    let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link("whatif"));
    let says_micro = words(&harness).iter().any(|label| label.contains("micro-batches"));
    assert!(says_micro, "{:?}", words(&harness));
    own_change(&mut harness, "remat layer_* 8");
    let amounts = words(&harness).into_iter().filter(|label| label.starts_with('\u{2212}')).count();
    assert!(amounts >= 3, "{:?}", words(&harness));
    assert!(says(&harness, "in 8 of 12 layers"), "{:?}", words(&harness));
    assert!(words(&harness).iter().any(|label| label.ends_with("results unchanged")), "{:?}", words(&harness));
}
