//! The tree of live memory: every grouping has the same total, both forms show it, zooming in and out by mouse and
//! keys.

use egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::ProgramAnalysis;
use highwater::analysis::tree::{Tree, TreeKind};
use highwater::model::{Bytes, Device};
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, says, words};

fn open(sample: &str, size: [f32; 2], theme: ThemeChoice) -> Harness<'static, App> {
    let path = common::sample_programs()
        .into_iter()
        .find(|path| path.to_string_lossy().contains(sample))
        .expect("a sample of that name");
    let link = DeepLink { view: Some("treemap".to_owned()), ..DeepLink::default() };
    gui::window(&[&path], size, theme, link)
}

fn path(harness: &Harness<'_, App>) -> Vec<String> {
    harness.state().files.current().expect("open").shared.tree.path.clone()
}

fn choose(harness: &mut Harness<'_, App>, words: &str) {
    harness.get_by_role_and_label(Role::RadioButton, words).click();
    harness.run_ok();
}

#[test]
fn every_division_holds_what_stands_at_the_peak() {
    for file in common::sample_programs() {
        let program = common::program(&file);
        let analysis = ProgramAnalysis::new(&program, &Device::default());
        for space in &analysis.spaces {
            let whole = space.at_peak.bytes();
            for (kind, fold) in TreeKind::ALL.into_iter().flat_map(|kind| [(kind, true), (kind, false)]) {
                let tree = Tree::new(&program, &analysis, &space.at_peak.rows, kind, fold);
                assert_eq!(tree.nodes[0].bytes, whole, "{kind:?} of {}", common::name(&file));
                for node in &tree.nodes {
                    let below: Bytes = node.children.iter().map(|child| tree.nodes[*child].bytes).sum();
                    let own: Bytes = node.buffers.iter().map(|&b| tree.bytes_of(&program, b)).sum();
                    assert_eq!(below + own, node.bytes, "{} in {kind:?}", node.name);
                    assert!(node.padding <= node.bytes);
                }
                let held: usize = tree.nodes.iter().map(|node| node.buffers.len()).sum();
                assert_eq!(held, space.at_peak.len());
            }
        }
    }
}

#[test]
fn the_headline_goes_down_while_one_scope_holds_most() {
    let mut deep = 0;
    for file in common::sample_programs() {
        let program = common::program(&file);
        let analysis = ProgramAnalysis::new(&program, &Device::default());
        let Some(space) = analysis.main_space() else { continue };
        let tree = Tree::new(&program, &analysis, &space.at_peak.rows, TreeKind::default(), true);
        let held = tree.holds_most(0);
        let Some(&deepest) = held.last().filter(|_| held.len() > 1) else { continue };
        deep += 1;
        let harness = gui::window(
            &[&file],
            [1600.0, 1000.0],
            ThemeChoice::Light,
            DeepLink { view: Some("treemap".to_owned()), ..DeepLink::default() },
        );
        let node = &tree.nodes[deepest];
        let name = &node.name;
        let headline = |text: &String| {
            text.starts_with(&node.bytes.short())
                && (text.contains(" in ") || text.contains(" saved by "))
                && text.contains(name.as_str())
        };
        assert!(words(&harness).iter().any(headline), "{} in {name}: {:?}", node.bytes.short(), words(&harness));
    }
    assert!(deep > 0, "no sample has a scope around everything");
}

#[test]
fn layers_are_folded_with_their_count_and_unfolded_on_request() {
    let mut harness = open("v5e_gpt_m_oom", [1600.0, 1000.0], ThemeChoice::Light);
    choose(&mut harness, "Icicle");
    assert!(says(&harness, "layer_*  \u{d7}12"), "{:?}", words(&harness));
    harness.get_by_role_and_label(Role::Switch, "Fold layers").click();
    harness.run_ok();
    assert!(says(&harness, "layer_3 "), "{:?}", words(&harness));
    assert!(!says(&harness, "layer_* "));
}

#[test]
fn going_in_and_back_works_in_both_forms_and_across_divisions() {
    let mut harness = open("v5e_gpt_m_oom", [1600.0, 1000.0], ThemeChoice::Light);
    choose(&mut harness, "Icicle");
    let layers = |harness: &Harness<'_, App>| words(harness).into_iter().find(|w| w.starts_with("layer_*  \u{d7}12 "));
    let name = layers(&harness).expect("the folded layers");
    harness.get_by_role_and_label(Role::TreeItem, &name).click();
    harness.run_ok();
    assert_eq!(path(&harness), ["layer_*"]);
    // The breadcrumbs lead back, and the treemap is at the same node.
    choose(&mut harness, "Treemap");
    assert_eq!(path(&harness), ["layer_*"]);
    assert!(says(&harness, "everything"));
    choose(&mut harness, "Category");
    assert!(path(&harness).is_empty());
    harness.key_press_modifiers(Modifiers::ALT, Key::ArrowLeft);
    harness.run_ok();
    assert_eq!(path(&harness), ["layer_*"], "back leads to the place in the division before");
    harness.key_press_modifiers(Modifiers::ALT, Key::ArrowLeft);
    harness.run_ok();
    assert!(path(&harness).is_empty());
    harness.key_press_modifiers(Modifiers::ALT, Key::ArrowRight);
    harness.run_ok();
    assert_eq!(path(&harness), ["layer_*"]);
    harness.get_by_role_and_label(Role::Link, "everything").click();
    harness.run_ok();
    assert!(path(&harness).is_empty());
}

#[test]
fn the_table_below_lists_what_is_gone_into() {
    let mut harness = open("v5e_gpt_m_oom", [1600.0, 1000.0], ThemeChoice::Light);
    let rows = |harness: &Harness<'_, App>| -> Vec<String> {
        harness.query_all_by_role(Role::Row).filter_map(|row| row.accesskit_node().label()).collect()
    };
    assert_eq!(rows(&harness)[0], "logits, made from embed 3.07 GiB");
    assert!(says(&harness, "539, largest first"));
    // A row selects its buffer, whose details give its class.
    harness.get_by_role_and_label(Role::Row, "attention scores, layer_5/attn/exp 1.50 GiB").click();
    harness.run_ok();
    assert!(says(&harness, "fusion.1893.remat3{1}"));
    assert!(words(&harness).iter().any(|label| label == "Activation"));
    assert!(says(&harness, "live in the backward pass"), "{:?}", words(&harness));
    // Too low for a table: the map has all the room.
    let small = open("v5e_gpt_m_oom", [1000.0, 640.0], ThemeChoice::Light);
    assert!(rows(&small).is_empty(), "{:?}", rows(&small));
}

#[test]
fn every_division_can_be_chosen() {
    let mut harness = open("v6e_replicated_oom", [1600.0, 1000.0], ThemeChoice::Dark);
    choose(&mut harness, "Icicle");
    for (division, part) in [
        ("Category", "Parameter"),
        ("Source line", ".py"),
        ("Op", "parameter"),
        ("Type", "f32"),
        ("Shape", "f32["),
        ("Sharding", "replicated"),
        ("Name scope", "arguments"),
    ] {
        choose(&mut harness, division);
        let items = harness.get_all_by_role(Role::TreeItem).filter_map(|item| item.accesskit_node().label());
        let items: Vec<String> = items.collect();
        assert!(items.iter().any(|item| item.contains(part)), "{division}: {items:?}");
    }
}

#[test]
fn equal_buffers_of_layers_are_one_cell_that_opens_by_click_and_by_enter() {
    let parts = |harness: &Harness<'_, App>| -> Vec<String> {
        harness.query_all_by_role(Role::TreeItem).filter_map(|node| node.accesskit_node().label()).collect()
    };
    let into_layers = |harness: &mut Harness<'_, App>| {
        let open = harness.state_mut().files.current_mut().expect("open");
        open.shared.go_in_tree(vec!["layer_*".to_owned(), "attn".to_owned()]);
        harness.run_ok();
    };
    let mut harness = open("v5e_gpt_m_oom", [1600.0, 1000.0], ThemeChoice::Light);
    into_layers(&mut harness);
    let folded =
        parts(&harness).into_iter().find(|part| part.starts_with("exp  \u{d7}11 ")).expect("eleven in one cell");
    assert!(folded.contains("16.5 GiB"), "{folded}");
    harness.get_by_role_and_label(Role::TreeItem, &folded).click();
    harness.run_ok();
    assert_eq!(path(&harness), ["layer_*", "attn", "exp"]);
    let own = parts(&harness);
    assert!(
        own.iter().any(|part| part.starts_with("attention scores, layer_5/attn/exp 1.50 GiB")),
        "each by its own number: {own:?}"
    );
    assert_eq!(own.len(), 11);
    // The same by keyboard.
    let mut harness = open("v5e_gpt_m_oom", [1600.0, 1000.0], ThemeChoice::Light);
    into_layers(&mut harness);
    let map = words(&harness).into_iter().find(|word| word.starts_with("Treemap of ")).expect("the map");
    harness.get_by_label(&map).focus();
    harness.run_ok();
    harness.key_press(Key::Home);
    harness.run_ok();
    harness.key_press(Key::Enter);
    harness.run_ok();
    assert_eq!(path(&harness), ["layer_*", "attn", "exp"], "the largest part is gone into");
}
