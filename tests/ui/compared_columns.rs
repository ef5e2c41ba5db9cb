//! More than two profiles compared, and two folders: columns, programs matched by name, the tree and the map by keys.

use std::fs;
use std::path::{Path, PathBuf};

use egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::ProfileAnalysis;
use highwater::export::diff::{Side, Sweep};
use highwater::model::Bytes;
use highwater::open::session::{PackOptions, pack};
use highwater::open::{self, Target};
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, says, words};

fn batch(size: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/dumps/scaling/batch_{size}.hlo.pb.gz"))
}

fn pair(name: &str) -> [PathBuf; 2] {
    ["before.hlo.pb.gz", "after.hlo.pb.gz"].map(|end| common::samples().join("pairs").join(name).join(end))
}

fn window() -> Harness<'static, App> {
    gui::window(&[], [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default())
}

fn compared(paths: &[PathBuf]) -> Harness<'static, App> {
    let mut harness = window();
    harness.state_mut().open_columns(paths.iter().cloned().map(Target::Path).collect());
    harness.run_ok();
    assert_eq!(harness.state().files.current().expect("open").shared.view, "compare", "{:?}", words(&harness));
    harness
}

fn batches() -> Harness<'static, App> {
    compared(&[batch(4), batch(8), batch(16)])
}

/// Names of what is compared: before, columns, after.
fn sides(harness: &Harness<'_, App>) -> Vec<String> {
    let document = harness.state().files.current().expect("open").document.clone();
    let before = document.before.as_ref().expect("compared");
    let columns = before.beside.iter().map(|column| column.name.clone());
    std::iter::once(before.name.clone()).chain(columns).chain([document.profile.name.clone()]).collect()
}

fn rows(harness: &Harness<'_, App>) -> Vec<String> {
    harness.query_all_by_role(Role::Row).filter_map(|node| node.accesskit_node().label()).collect()
}

#[test]
fn three_files_are_columns_with_the_numbers_of_the_command() {
    let harness = batches();
    assert_eq!(sides(&harness), ["batch_4", "batch_8", "batch_16"]);
    let mut sweep = Sweep::default();
    for size in [4, 8, 16] {
        let profile = open::open_path(&batch(size), &Progress::default()).expect("a dump");
        let analysis = ProfileAnalysis::new(&profile);
        sweep.add(&profile.name, Side { profile: &profile, analysis: &analysis, program: 0 });
    }
    let listed = rows(&harness);
    for (name, cells) in sweep.rows() {
        let row = format!("{}: {}", name.trim(), cells.join(", "));
        assert!(listed.contains(&row), "{row}: {listed:?}");
    }
    for column in &sweep.columns {
        let words = format!("allocated {}", Bytes(column.allocated_bytes).short());
        let bars = harness.query_all_by_role(Role::Button).filter_map(|node| node.accesskit_node().label());
        let bar = bars.into_iter().find(|label| label.starts_with(&format!("{}, ", column.file)));
        assert!(bar.as_ref().is_some_and(|bar| bar.contains(&words)), "{words}: {bar:?}");
    }
    assert!(says(&harness, "Columns: 3"));
}

#[test]
fn a_column_is_compared_by_a_click_and_added_from_the_list_and_the_palette() {
    let mut harness = batches();
    let bar = |harness: &Harness<'_, App>, start: &str| {
        let labels = harness.query_all_by_role(Role::Button).filter_map(|node| node.accesskit_node().label());
        labels.into_iter().find(|label| label.starts_with(start)).expect("a column")
    };
    let label = bar(&harness, "batch_8, ");
    harness.get_by_role_and_label(Role::Button, &label).click();
    harness.run_ok();
    assert_eq!(sides(&harness), ["batch_8", "batch_4", "batch_16"], "what was before is a column");
    harness.get_by_role_and_label(Role::Button, "End").click();
    harness.run_ok();
    assert!(harness.state().files.current().expect("open").document.before.is_none());
    for way in ["menu", "palette", "click"] {
        let mut harness = compared(&[batch(4), batch(16)]);
        assert!(!says(&harness, "Columns: "));
        harness.state_mut().open(Target::Path(batch(8)));
        harness.run_ok();
        harness.get_by_label("File batch_16").click();
        harness.run_ok();
        match way {
            "menu" => {
                harness.get_by_label("File batch_8").click_secondary();
                harness.run_ok();
                harness.get_by_label("Add to the comparison").click();
            }
            "palette" => {
                harness.key_press_modifiers(Modifiers::COMMAND, Key::P);
                harness.run_ok();
                harness.get_by_label("Go to").type_text("add to the comparison: batch_8");
                harness.run_ok();
                harness.key_press(Key::Enter);
            }
            _ => harness.get_by_label("File batch_8").click_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT)),
        }
        harness.run_ok();
        assert_eq!(sides(&harness), ["batch_4", "batch_8", "batch_16"], "{way}");
        assert!(says(&harness, "Columns: 3"), "{way}: {:?}", words(&harness));
    }
}

/// Two folders: a program that did not change, one that did, and one in each that the other lacks.
fn folders() -> (tempfile::TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let both = ["first", "second"].map(|name| folder.path().join(name));
    let [donate, bf16] = [pair("donate_mlp_v4"), pair("bf16_mlp_v5p")];
    for (side, to) in both.iter().enumerate() {
        fs::create_dir(to).expect("made");
        let only = ["gone", "new"][side];
        for (row, name, from) in [
            (1, "jit_same", &donate[0]),
            (2, "jit_donate", &donate[side]),
            (3, "jit_bf16", &bf16[side]),
            (4, only, &donate[0]),
        ] {
            let name = format!("module_{row:04}.{name}.after_optimizations.hlo.pb.gz");
            fs::copy(from, to.join(name)).expect("copied");
        }
    }
    (folder, both)
}

#[test]
fn two_folders_are_compared_program_by_program_the_largest_change_first() {
    let (_folder, both) = folders();
    let mut harness = compared(&both);
    let programs = {
        let document = harness.state().files.current().expect("open").document.clone();
        document.before.as_ref().expect("compared").programs.clone()
    };
    let change = |row: &highwater::ui::session::PairedProgram| {
        let needs = |side: Option<highwater::ui::session::ListedProgram>| side.and_then(|side| side.needs);
        needs(row.before).zip(needs(row.after)).map(|(was, is)| was.0.abs_diff(is.0))
    };
    let changes: Vec<Option<u64>> = programs.iter().map(change).collect();
    assert_eq!(programs.len(), 5, "{programs:?}");
    assert!(changes[0] > changes[1] && changes[1] > changes[2] && changes[2] == Some(0), "{changes:?}");
    assert!(changes[3..].iter().all(Option::is_none), "{changes:?}");
    // The program with the largest change is the one that is compared.
    let name = |harness: &Harness<'_, App>| {
        let files = &harness.state().files;
        files.entries[files.current.expect("shown")].name.clone()
    };
    assert_eq!(name(&harness), programs[0].name);
    harness.get_by_label("Programs: 5").click();
    harness.run_ok();
    let listed: Vec<String> = rows(&harness);
    let order: Vec<&str> = listed.iter().filter_map(|row| row.split(' ').next()).collect();
    assert_eq!(order, programs.iter().map(|row| row.name.as_str()).collect::<Vec<_>>());
    assert!(
        listed[3..].iter().any(|row| row.ends_with("gone")) && listed[3..].iter().any(|row| row.ends_with("appeared"))
    );
    harness.query_all_by_label(&listed[1]).next().expect("its row").click();
    harness.run_ok();
    assert_eq!(name(&harness), programs[1].name, "a row compares its programs");
    assert_eq!(sides(&harness).len(), 2);
}

#[test]
fn the_map_is_read_by_keys() {
    let mut harness = compared(&pair("bf16_mlp_v5p"));
    harness.get_by_label("As a map").click();
    harness.run_ok();
    let map = |harness: &Harness<'_, App>| {
        let images = harness.query_all_by_role(Role::Image).filter_map(|node| node.accesskit_node().label());
        images.into_iter().find(|label| label.starts_with("Map of differences")).expect("the map")
    };
    assert_eq!(map(&harness), "Map of differences");
    let first = |harness: &Harness<'_, App>| harness.state().files.current().expect("open").shared.selected;
    assert_eq!(first(&harness), None);
    harness.get_by_label("Map of differences").focus();
    harness.run_ok();
    let at_first = map(&harness);
    assert!(at_first.starts_with("Map of differences: "), "{at_first}");
    let mut seen = vec![at_first];
    for key in [Key::ArrowRight, Key::ArrowDown, Key::ArrowLeft, Key::End, Key::Home] {
        harness.key_press(key);
        harness.run_ok();
        seen.push(map(&harness));
    }
    assert_eq!(seen[0], seen[5], "Home is the largest");
    assert!(seen[1..5].iter().any(|label| *label != seen[0]), "{seen:?}");
    let mut chose = false;
    for _ in 0..30 {
        harness.key_press(Key::Enter);
        harness.run_ok();
        if first(&harness).is_some() {
            chose = true;
            break;
        }
        harness.key_press(Key::ArrowRight);
        harness.run_ok();
    }
    assert!(chose, "Enter chose no row: {}", map(&harness));
}

#[test]
fn the_tree_of_differences_zooms_into_scopes() {
    let mut harness = compared(&pair("bf16_mlp_v5p"));
    harness.get_by_label("As a tree").click();
    harness.run_ok();
    let items = |harness: &Harness<'_, App>| -> Vec<String> {
        harness.query_all_by_role(Role::TreeItem).filter_map(|node| node.accesskit_node().label()).collect()
    };
    let all = items(&harness);
    assert!(all.iter().any(|label| label.starts_with("Everything ")), "{all:?}");
    let document = harness.state().files.current().expect("open").document.clone();
    let before = document.before.as_ref().expect("compared");
    let peak = |document: &highwater::ui::session::Document| document.analysis.programs[0].spaces[0].peak().0;
    assert!(peak(&document) < peak(&before.document));
    let root = all.iter().find(|label| label.starts_with("Everything ")).expect("the root");
    assert!(root.contains('\u{2212}'), "less than before: {root}");
    let class = all.iter().find(|label| !label.starts_with("Everything ")).expect("a class").clone();
    harness.query_all_by_label(&class).next().expect("its box").click();
    harness.run_ok();
    let zoomed = items(&harness);
    assert!(zoomed.len() <= all.len() && !zoomed.iter().any(|label| label.starts_with("Everything ")), "{zoomed:?}");
}

#[test]
fn a_packed_session_opens_its_comparison_elsewhere_with_names_hidden_or_not() {
    for (paths, hides_names) in [
        (pair("donate_mlp_v4").to_vec(), false),
        (pair("donate_mlp_v4").to_vec(), true),
        (vec![batch(4), batch(8), batch(16)], false),
    ] {
        let harness = compared(&paths);
        let named = sides(&harness);
        let session = harness.state().session().expect("files are open");
        assert_eq!(session.comparisons.len(), paths.len() - 1);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("packed.highwater");
        pack(&session, &file, PackOptions { hides_names }).expect("packed");
        let mut harness = window();
        harness.state_mut().open(Target::Path(file));
        harness.run_ok();
        harness.run_ok();
        let open = harness.state().files.current().expect("open");
        assert_eq!(open.shared.view, "compare", "{:?}", words(&harness));
        assert_eq!(sides(&harness).len(), paths.len());
        let needs = |document: &highwater::ui::session::Document| document.need().expect("known");
        let before = open.document.before.as_ref().expect("compared");
        let expected = |path: &Path| {
            let profile = open::open_path(path, &Progress::default()).expect("a dump");
            needs(&highwater::ui::session::Document::new(None, profile))
        };
        assert_eq!(needs(&before.document), expected(&paths[0]), "before");
        assert_eq!(needs(&open.document), expected(&paths[paths.len() - 1]), "after");
        if hides_names {
            let shown = words(&harness);
            let is_named =
                |words: &String| ["before.hlo", "after.hlo", "donate_mlp"].iter().any(|name| words.contains(name));
            assert!(!shown.iter().any(is_named), "{named:?}: {shown:?}");
        }
    }
}
