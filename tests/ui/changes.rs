//! Changes in What if: each that is on has a switch, another strength takes the place of the first, and hiding names takes
//! none away; and what is selected comes forward in the panel.

use egui::accesskit::Toggled;
use egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::what_if::{Checkpoint, Edit};
use highwater::model::UnitSystem;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, says, words};

fn open<'a>(view: &str) -> Harness<'a, App> {
    let path = common::sample_program("v5e_gpt_m_oom");
    let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
    gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link)
}

fn switch(harness: &mut Harness<'_, App>, edits: &[Edit]) {
    let open = harness.state_mut().files.current_mut().expect("open");
    open.shared.changes_mut().switch_on(edits);
    harness.run_ok();
}

fn on(harness: &Harness<'_, App>) -> Vec<Edit> {
    harness.state().files.current().expect("open").shared.changes.on.clone()
}

/// Switches that are on.
fn switches(harness: &Harness<'_, App>) -> usize {
    let is_on = |node: &egui_kittest::Node<'_>| node.accesskit_node().toggled() == Some(Toggled::True);
    harness.get_all_by_role(Role::Switch).filter(is_on).count()
}

#[test]
fn every_change_that_is_on_has_a_switch_whatever_switched_it_on() {
    let mut harness = open("whatif");
    let before = switches(&harness);
    switch(
        &mut harness,
        &[Edit::Micro(4), Edit::Chunk("logits".to_owned(), 16), Edit::Remat(Checkpoint::layers("layer_*"))],
    );
    assert_eq!(switches(&harness) - before, 3, "{:?}", words(&harness));
    assert!(says(&harness, "chunk logits 16") || says(&harness, "Compute logits in 16 parts"), "{:?}", words(&harness));
    harness.get_by_role_and_label(Role::Switch, "4 micro-batches").click();
    harness.run_ok();
    assert!(!on(&harness).contains(&Edit::Micro(4)), "its own switch switches it off");
}

#[test]
fn another_strength_takes_the_place_of_the_first() {
    let mut harness = open("whatif");
    switch(&mut harness, &[Edit::Micro(4)]);
    switch(&mut harness, &[Edit::Batch(0.5)]);
    switch(&mut harness, &[Edit::Micro(2)]);
    assert_eq!(on(&harness), [Edit::Batch(0.5), Edit::Micro(2)]);
}

#[test]
fn hiding_names_keeps_the_changes_and_showing_them_brings_back_their_names() {
    let mut harness = open("whatif");
    let edits =
        [Edit::Remat(Checkpoint::layers("layer_*")), "donate params".parse().expect("a change"), Edit::Micro(2)];
    switch(&mut harness, &edits);
    let command = Modifiers { ctrl: true, shift: true, command: true, ..Modifiers::NONE };
    for is_hidden in [true, false] {
        harness.key_press_modifiers(command, Key::H);
        for _ in 0..200 {
            harness.run_ok();
            let open = harness.state().files.current().expect("open");
            if open.named.is_some() == is_hidden {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(on(&harness).len(), 3, "hidden: {is_hidden}");
    }
    assert_eq!(on(&harness), edits);
}

#[test]
fn a_buffer_that_is_selected_in_a_view_comes_forward_in_the_panel() {
    let mut harness = open("buffers");
    harness.get_by_role_and_label(Role::Tab, "Pins").click();
    harness.run_ok();
    assert!(!says(&harness, "of the peak"), "Pins are in front: {:?}", words(&harness));
    let open = harness.state_mut().files.current_mut().expect("open");
    open.shared.select(highwater::model::BufferId(40));
    harness.hover_at(egui::pos2(500.0, 500.0));
    harness.run_ok();
    assert!(says(&harness, "Shares memory with"), "{:?}", words(&harness));
}

#[test]
fn the_status_bar_tells_how_many_changes_are_on_and_what_lives_with_them() {
    let mut harness = open("whatif");
    let stands =
        |harness: &Harness<'_, App>, part: &str| gui::painted(harness).iter().any(|text| text.words.contains(part));
    let all = harness.get_all_by_role(Role::Switch).count();
    let of_all = format!("of {all} changes on");
    assert!(!stands(&harness, &of_all));
    switch(&mut harness, &[Edit::Remat(Checkpoint::layers("layer_*"))]);
    assert!(stands(&harness, &format!("1 of {all} changes on")), "{:?}", words(&harness));
    assert!(stands(&harness, "with them"));
    harness.get_by_role_and_label(Role::Tab, "Overview").click();
    harness.run_ok();
    assert!(!stands(&harness, &of_all), "other views show the program as it is");
}

#[test]
fn a_saving_that_includes_something_else_says_so_as_the_report_does() {
    let harness = open("advisor");
    let document = harness.state().files.current().expect("open").document.clone();
    let advice = highwater::advisor::advise(&document.profile, &document.analysis);
    let finding = advice.findings.iter().find(|finding| finding.rule == "activations").expect("it has activations");
    let &(freed, what) = finding.includes.first().expect("the attention scores");
    let (saves, named) = (finding.saves_bytes().expect("a saving"), finding.at_stake_bytes.expect("what it names"));
    assert!(saves > named && what == "attention scores", "{saves:?} of {named:?}, {freed:?}");
    let words = finding.includes_in_words(UnitSystem::Binary).expect("words");
    assert!(words.contains(&freed.short()) && says(&harness, &words), "{words}: {:?}", self::words(&harness));
    assert!(finding.effect_in_words().expect("an effect").contains(&words));
}

#[test]
fn severities_have_the_words_of_the_report() {
    let harness = open("advisor");
    assert!(harness.query_all_by_label("critical").next().is_some(), "{:?}", words(&harness));
    assert!(harness.query_by_label("cause").is_none() && harness.query_by_label("saves").is_none());
}
