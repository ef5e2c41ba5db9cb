//! What if and the advisor in the window: switching changes on updates the verdict, and both views share the changes.

use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui;

fn open(view: &str, edits: &[&str]) -> Harness<'static, App> {
    let path = common::sample_programs()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("v6e_replicated_oom"))
        .expect("a sample that does not fit");
    let edits = edits.iter().map(|text| text.parse().expect("an edit")).collect();
    let link = DeepLink { view: Some(view.to_owned()), edits, ..DeepLink::default() };
    gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link)
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
    assert!(says(&harness, "17.0 GiB over, no\u{a0}change\u{a0}on"), "the program as it is");
    harness.get_all_by_label("Shard table, stats 4 ways").next().expect("a switch").click();
    harness.run();
    assert!(says(&harness, "Fits with 6.99 GiB to spare"), "sharded over the devices it fits");
    assert!(
        says(&harness, "Sharding: of 43 programs that were really changed like this, 28 came within 22 %"),
        "how far to believe it"
    );
    harness.get_by_label("All off").click();
    harness.run();
    assert!(says(&harness, "17.0 GiB over, no\u{a0}change\u{a0}on"), "as it was");
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
    assert!(says(&harness, "of arguments are replicated on all 4 devices: table, stats"));
    assert!(says(
        &harness,
        "With \u{201c}Shard table, stats 4 ways\u{201d} it fits in 31.24 GiB, with 6.99 GiB to spare"
    ));
    harness.get_by_label("Show it in What if").click();
    harness.run();
    assert!(says(&harness, "Fits with 6.99 GiB to spare"));
}

#[test]
fn a_set_is_saved_under_a_name_taken_again_and_stands_in_the_report() {
    let mut harness = open("whatif", &["shard table,stats 4"]);
    harness.get_by_label("Name of this set").focus();
    harness.run();
    harness.get_by_label("Name of this set").type_text("over the mesh");
    harness.run();
    harness.get_by_label("Save set").click();
    harness.run();
    let saved = harness.state().files.current().expect("open").shared.changes.saved.clone();
    assert_eq!(saved.len(), 1);
    assert_eq!(saved[0].name, "over the mesh");
    harness.get_by_label("All off").click();
    harness.run();
    assert!(says(&harness, "17.0 GiB over, no\u{a0}change\u{a0}on"));
    harness.get_by_label("over the mesh").click();
    harness.run();
    assert!(says(&harness, "Fits with 6.99 GiB to spare"));
    harness.get_by_label("Open the report").click();
    harness.run();
    assert!(says(&harness, "what if over the mesh: shard table,stats 4: fits with 6.99 GiB to spare"));
}

#[test]
fn the_overview_shows_the_plan_and_findings_that_lead_on() {
    let mut harness = open("overview", &[]);
    assert!(says(&harness, "One change makes it fit, 6.99 GiB to spare"), "the plan in a line");
    let card = harness
        .get_all_by_role(egui::Role::Button)
        .filter_map(|node| node.accesskit_node().label())
        .find(|label| label.starts_with("Finding: ") && label.contains("then fits with 6.99 GiB to spare"))
        .expect("the card of the cause");
    harness.get_by_role_and_label(egui::Role::Button, &card).click();
    harness.run();
    assert!(says(&harness, "in_shardings"), "the finding is open in the advisor");
    let evidence = harness
        .get_all_by_role(egui::Role::Link)
        .filter_map(|node| node.accesskit_node().label())
        .find(|label| label.starts_with("Show table"))
        .expect("a link to the buffer");
    harness.get_by_role_and_label(egui::Role::Link, &evidence).click();
    harness.run();
    let open = harness.state().files.current().expect("open");
    assert_eq!(open.shared.view, "timeline");
    assert!(open.shared.selected.is_some());
}

#[test]
fn show_me_lights_all_buffers_of_the_finding_and_zooms_to_their_lives() {
    let path = common::sample_programs()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("v5e_gpt_m_oom"))
        .expect("a sample that does not fit");
    let link = DeepLink { view: Some("advisor".to_owned()), ..DeepLink::default() };
    let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Dark, link);
    harness.get_all_by_label("Show me").next().expect("a link").click();
    harness.run();
    let open = harness.state().files.current().expect("open");
    assert_eq!(open.shared.view, "timeline");
    let lit = open.shared.lit.clone().expect("the buffers of the finding");
    let (_, analysis) = open.document.program(open.shared.program).expect("a program");
    let live = analysis.live.as_ref().expect("lives");
    let lives: Vec<(u32, u32)> = lit.buffers.iter().filter_map(|&buffer| live.of(buffer)).collect();
    assert!(lives.len() > 5, "{} buffers", lives.len());
    if let Some((from, to)) = open.shared.range {
        assert!(lives.iter().all(|&(start, end)| from <= f64::from(start) && f64::from(end) <= to), "{from} to {to}");
    }
    let number = format!("{} lit: ", lit.buffers.len());
    assert!(says(&harness, &number), "it is said how many: {number}");
    // The next match is one of them, and every view lights the same.
    harness.key_press(egui::Key::F3);
    harness.run();
    let open = harness.state().files.current().expect("open");
    assert!(open.shared.selected.is_some_and(|buffer| lit.buffers.contains(&buffer)));
    harness.get_by_role_and_label(egui::Role::Tab, "Treemap").click();
    harness.run();
    assert!(says(&harness, &number), "in the treemap too");
    harness.get_by_label("Close").click();
    harness.run();
    assert!(harness.state().files.current().expect("open").shared.lit.is_none());
}

#[test]
fn the_new_peak_says_who_stands_in_it_and_a_click_selects_it() {
    let mut harness = open("whatif", &["shard table,stats 4"]);
    let row = harness
        .get_all_by_role(egui::Role::Button)
        .filter_map(|node| node.accesskit_node().label())
        .find(|label| label.starts_with("At the peak: table"))
        .expect("the divided table");
    assert!(row.ends_with("4.00 GiB"), "a quarter of 16 GiB: {row}");
    harness.get_by_role_and_label(egui::Role::Button, &row).click();
    harness.run();
    assert!(harness.state().files.current().expect("open").shared.selected.is_some());
}

#[test]
fn the_advisor_says_which_other_chips_it_fits() {
    let harness = open("advisor", &[]);
    assert!(says(&harness, "On other chips"));
    // 48.3 GiB: more than a v6e has, less than a v5p has.
    let all = harness.get_all(egui_kittest::kittest::by());
    // Plain labels have their text as the accessible value.
    let labels: Vec<String> =
        all.flat_map(|node| [node.accesskit_node().label(), node.accesskit_node().value()]).flatten().collect();
    let of = |chip: &str| labels.iter().find(|label| label.starts_with(chip)).cloned().unwrap_or_default();
    assert!(of("TPU v6e ").ends_with("over"), "{}", of("TPU v6e "));
    assert!(of("TPU v5p ").contains("to spare"), "{}", of("TPU v5p "));
    // Those of other makers come when they are asked for, with the reason why they do not offer all they have.
    assert_eq!(of("H200 "), "");
    let mut harness = harness;
    harness.get_by_label("Show the chips of other makers").click_accesskit();
    harness.run();
    assert!(says(&harness, "H200 ") && says(&harness, "A100 40 GB 30 GiB: "));
    assert!(says(&harness, "75\u{2009}% of its memory, the share that JAX takes"));
}

#[test]
fn a_checkpoint_is_a_switch_for_so_many_of_the_layers() {
    let path = common::sample_programs()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("v5e_gpt_m_oom"))
        .expect("a sample with layers");
    let edits = vec!["remat layer_* 6".parse().expect("an edit")];
    let link = DeepLink { view: Some("whatif".to_owned()), edits, ..DeepLink::default() };
    let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link);
    let on = |harness: &Harness<'_, App>| -> Vec<String> {
        let changes = &harness.state().files.current().expect("open").shared.changes.on;
        changes.iter().map(ToString::to_string).collect()
    };
    assert!(says(&harness, "in 6 of 12 layers"), "what the command line asked for");
    harness.get_by_label("Checkpoint more layers").click();
    harness.run();
    assert!(says(&harness, "in 7 of 12 layers"));
    assert_eq!(on(&harness), ["remat layer_* 7"]);
    for _ in 0..5 {
        harness.get_by_label("Checkpoint more layers").click();
        harness.run();
    }
    assert_eq!(on(&harness), ["remat layer_*"], "all of them");
    harness.get_all_by_label("Checkpoint layer_*").next().expect("its switch").click();
    harness.run();
    assert_eq!(on(&harness), [] as [&str; 0], "switched off");
}

#[test]
fn parts_of_the_bar_without_room_for_their_words_are_told_below_it() {
    let link = DeepLink { view: Some("overview".to_owned()), ..DeepLink::default() };
    let path = common::samples().join("v5e_mlp_f32");
    let harness = gui::window(&[&path], [1280.0, 800.0], ThemeChoice::Light, link);
    let painted = gui::painted(&harness);
    let capacity = painted.iter().find(|text| text.words == "capacity 15.75 GiB").expect("below the bar").place;
    // 297 MiB of 15.75 GiB: no part of the bar is wide enough for a letter. In the bar, the words would seem to fill it.
    for name in ["Parameter  ", "Temporary  "] {
        let found = painted.iter().find(|text| text.words.starts_with(name) && text.words.ends_with("iB"));
        let place = found.unwrap_or_else(|| panic!("{name}: {:?}", gui::words(&harness))).place;
        assert!((place.center().y - capacity.center().y).abs() < 4.0, "{name} at {place}, capacity at {capacity}");
    }
}

/// How many findings are unfolded, and how many there are.
fn unfolded(harness: &Harness<'_, App>) -> (usize, usize) {
    let results = ["Results stay the same.", "Results may change.", "Results change."];
    let words = gui::words(harness);
    let open = words.iter().filter(|words| results.contains(&words.as_str())).count();
    (open, words.iter().filter(|words| *words == "Copy as text").count())
}

#[test]
fn all_findings_are_unfolded_where_there_is_room_and_each_shows_that_it_can_be() {
    let path = common::sample_program("v5e_gpt_m_oom");
    let open = |height| {
        let link = DeepLink { view: Some("advisor".to_owned()), ..DeepLink::default() };
        gui::window(&[&path], [1440.0, height], ThemeChoice::Light, link)
    };
    let (unfolded_with_room, all) = unfolded(&open(3000.0));
    assert!(all > 2 && unfolded_with_room == all, "{unfolded_with_room} of {all}");
    let mut harness = open(900.0);
    assert_eq!(unfolded(&harness), (1, all), "only the first");
    let is_folded = |node: &egui_kittest::Node<'_>| {
        let node = node.accesskit_node();
        node.label().is_some_and(|label| label.contains("GiB"))
            && node.toggled() == Some(egui::accesskit::Toggled::False)
    };
    let folded = harness.get_all_by_role(egui::Role::Button).find(is_folded).expect("a folded finding").rect();
    // The sign before the title belongs to what is clicked.
    let sign = folded.left_center() + egui::Vec2::new(4.0, 0.0);
    harness.drag_at(sign);
    harness.drop_at(sign);
    harness.run();
    assert_eq!(unfolded(&harness), (2, all), "{:?}", gui::words(&harness));
}
