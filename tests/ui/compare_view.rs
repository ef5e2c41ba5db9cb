//! Two files compared in the window: how one gets there, and that the numbers are those of `highwater diff`.

use std::path::{Path, PathBuf};

use egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::ProfileAnalysis;
use highwater::export::diff::{self, Diff, PairDiff, Side};
use highwater::export::report::Options;
use highwater::model::{Bytes, Profile, UnitSystem};
use highwater::open::{self, Target};
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, says, words};

fn pair() -> [PathBuf; 2] {
    pair_of("donate_mlp_v4")
}

fn pair_of(folder: &str) -> [PathBuf; 2] {
    ["before.hlo.pb.gz", "after.hlo.pb.gz"].map(|name| common::samples().join("pairs").join(folder).join(name))
}

fn window(paths: &[PathBuf]) -> Harness<'static, App> {
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    gui::window(&paths, [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default())
}

/// The pair as the command line opens it: `highwater BEFORE AFTER --view compare`.
fn compared() -> Harness<'static, App> {
    compared_of("donate_mlp_v4")
}

fn compared_of(folder: &str) -> Harness<'static, App> {
    let mut harness = window(&[]);
    let [before, after] = pair_of(folder).map(Target::Path);
    harness.state_mut().open_to_compare(before, after);
    harness.run_ok();
    assert_eq!(view(&harness), "compare", "{:?}", words(&harness));
    harness
}

fn view(harness: &Harness<'_, App>) -> &'static str {
    harness.state().files.current().expect("open").shared.view
}

fn read(path: &Path) -> (Profile, ProfileAnalysis) {
    let profile = open::open_path(path, &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    (profile, analysis)
}

/// What `highwater diff` prints of the pair, as data.
fn printed() -> Diff {
    printed_of("donate_mlp_v4")
}

fn printed_of(folder: &str) -> Diff {
    let [before, after] = pair_of(folder).map(|path| read(&path));
    let options = Options { top: 0, ..Options::default() };
    let [before, after] = [&before, &after].map(|(profile, analysis)| Side { profile, analysis, program: 0 });
    let mut builder = diff::Builder::new(String::new(), String::new());
    builder.pair(PairDiff {
        findings: diff::compare_findings(before, after),
        ..diff::compare_memory(before, after, &options)
    });
    builder.finish()
}

fn first(harness: &Harness<'_, App>, role: Role, start: &str) -> String {
    let labels = harness.query_all_by_role(role).filter_map(|node| node.accesskit_node().label());
    let found = labels.into_iter().find(|label| label.starts_with(start));
    found.unwrap_or_else(|| panic!("no {role:?} '{start}': {:?}", words(harness)))
}

#[test]
fn the_window_and_the_command_tell_the_same_difference() {
    let harness = compared();
    let printed = printed();
    let space = &printed.pairs[0].spaces[0];
    let headline = diff::headline(space, UnitSystem::Binary);
    let (verdict, rest) = headline.split_once(": ").expect("a verdict");
    assert!(says(&harness, verdict) && says(&harness, rest), "{headline}: {:?}", words(&harness));
    let allocated = space.allocated.difference.expect("on both sides");
    assert!(says(&harness, &UnitSystem::Binary.signed(allocated)));
    assert!(says(&harness, &diff::matched(space).expect("matched")));
    for step in space.waterfall.iter().filter(|step| step.difference != 0) {
        let words = format!("{} {}", step.name.text(), UnitSystem::Binary.signed(step.difference));
        harness.get_by_role_and_label(Role::Button, &words);
    }
    for (name, bytes) in [("Before", space.allocated.before), ("After", space.allocated.after)] {
        let short = Bytes(bytes.expect("known")).short();
        assert!(gui::painted(&harness).iter().any(|text| text.words == short), "{name} {short}");
    }
    for row in space.groups.iter().take(8) {
        let words = format!("{} {} {}", row.scope, row.change_words, UnitSystem::Binary.signed(row.difference));
        assert!(says(&harness, &words), "{words}: {:?}", words_of_rows(&harness));
    }
    let findings = &printed.pairs[0].findings;
    let words =
        format!("Findings: {} gone, {} new, {} kept", findings.gone.len(), findings.new.len(), findings.kept.len());
    assert!(says(&harness, &words), "{words}");
}

fn words_of_rows(harness: &Harness<'_, App>) -> Vec<String> {
    harness.query_all_by_role(Role::Row).filter_map(|node| node.accesskit_node().label()).collect()
}

#[test]
fn a_row_selects_its_buffer_and_shows_both_sides() {
    let mut harness = compared();
    let printed = printed();
    let row = printed.pairs[0].spaces[0].groups.iter().find(|row| row.largest_after.is_some());
    let row = row.expect("something is at the peak after");
    let label = format!("{} {} {}", row.scope, row.change_words, UnitSystem::Binary.signed(row.difference));
    harness.query_all_by_label(&label).next().expect("its row").click();
    harness.run_ok();
    assert_eq!(harness.state().files.current().expect("open").shared.selected, row.largest_after);
    let exact = format!("{}   {}", Bytes(row.before).short(), Bytes(row.before).exact());
    assert!(says(&harness, &exact), "{exact}: {:?}", words(&harness));
}

#[test]
fn the_table_is_filtered_by_words_and_by_a_click_on_a_class() {
    let mut harness = compared_of("bf16_mlp_v5p");
    let printed = printed_of("bf16_mlp_v5p");
    let groups = &printed.pairs[0].spaces[0].groups;
    let all = words_of_rows(&harness).len();
    assert!(all > 1);
    let step = printed.pairs[0].spaces[0].waterfall.iter().find(|step| step.difference != 0).expect("a difference");
    let label = format!("{} {}", step.name.text(), UnitSystem::Binary.signed(step.difference));
    harness.get_by_role_and_label(Role::Button, &label).click();
    harness.run_ok();
    let listed = words_of_rows(&harness);
    let expected = groups.iter().filter(|row| row.class == step.name.text()).count();
    assert_eq!(listed.len(), expected, "{listed:?}");
    harness.key_press(Key::Escape);
    harness.run_ok();
    assert_eq!(words_of_rows(&harness).len(), all, "Esc shows all rows again");
    let change = groups[0].change_words;
    let choice = format!("{} {change}", groups.iter().filter(|row| row.change_words == change).count());
    harness.get_by_role_and_label(Role::RadioButton, &choice).click();
    harness.run_ok();
    let listed = words_of_rows(&harness);
    assert!(!listed.is_empty() && listed.iter().all(|row| row.contains(&format!(" {change} "))), "{listed:?}");
}

#[test]
fn two_files_are_compared_from_the_list_and_from_the_palette() {
    let [before, after] = pair();
    for way in ["click", "menu", "palette"] {
        let mut harness = window(&[before.clone(), after.clone()]);
        assert!(!says(&harness, "Waterfall") && harness.query_by_role_and_label(Role::Tab, "Compare").is_none());
        let current = harness.state().files.current.expect("one is shown");
        let other = 1 - current;
        let [name, shown] = [other, current].map(|row| harness.state().files.entries[row].name.clone());
        let label = format!("File {name}");
        match way {
            "click" => {
                harness.query_all_by_label(&label).next().expect("the row").click_modifiers(Modifiers::COMMAND);
            }
            "menu" => {
                harness.query_all_by_label(&label).next().expect("the row").click_secondary();
                harness.run_ok();
                harness.get_by_label("Compare with the one shown").click();
            }
            _ => {
                harness.key_press_modifiers(Modifiers::COMMAND, Key::P);
                harness.run_ok();
                harness.get_by_label("Go to").type_text("compare with");
                harness.run_ok();
                harness.key_press(Key::Enter);
            }
        }
        harness.run_ok();
        assert_eq!(view(&harness), "compare", "{way}: {:?}", words(&harness));
        let document = harness.state().files.current().expect("open").document.clone();
        let compared = document.before.as_ref().expect("compared");
        assert_eq!(compared.name, shown, "{way}: what was shown is before");
        assert_eq!(document.profile.name, name, "{way}: what was chosen is after");
        assert!(compared.document.before.is_none());
    }
}

#[test]
fn before_and_after_are_exchanged_and_the_comparison_ends() {
    let mut harness = compared();
    let difference = |harness: &Harness<'_, App>| {
        let document = harness.state().files.current().expect("open").document.clone();
        let before = document.before.as_ref().expect("compared").document.clone();
        (document.need().expect("known"), before.need().expect("known"))
    };
    let (is, was) = difference(&harness);
    harness.get_by_role_and_label(Role::Button, "Swap").click();
    harness.run_ok();
    assert_eq!(view(&harness), "compare");
    assert_eq!(difference(&harness), (was, is));
    harness.get_by_role_and_label(Role::Button, "End").click();
    harness.run_ok();
    assert_eq!(view(&harness), "overview");
    assert!(harness.query_by_role_and_label(Role::Tab, "Compare").is_none());
}

#[test]
fn a_file_dropped_onto_an_open_one_can_be_compared_with_it() {
    let [before, after] = pair();
    let mut harness = window(&[before]);
    gui::drop_files(&mut harness, &[&after]);
    assert_eq!(view(&harness), "overview", "it is opened");
    harness.get_by_role_and_label(Role::Button, "Compare").click();
    harness.run_ok();
    assert_eq!(view(&harness), "compare");
    assert!(says(&harness, "less than before"), "{:?}", words(&harness));
}

#[test]
fn comparing_is_found_with_one_file_open() {
    let [before, after] = pair();
    let mut harness = window(&[before]);
    for typed in ["compare", "diff"] {
        harness.key_press_modifiers(Modifiers::COMMAND, Key::P);
        harness.run_ok();
        harness.get_by_label("Go to").type_text(typed);
        harness.run_ok();
        let lines = harness.query_all_by_role(Role::ListItem).filter_map(|line| line.accesskit_node().label());
        // The list of files has rows, too.
        let first = { lines }.find(|line| !line.starts_with("File ")).unwrap_or_default();
        assert!(first.starts_with("Compare with a file\u{2026}"), "{typed}: {first}");
        harness.key_press(Key::Escape);
        harness.run_ok();
    }
    harness.get_by_label("Open menu").click();
    harness.run_ok();
    harness.get_by_label_contains("Compare with a file\u{2026}");
    // The desktop's dialog answers with the file.
    harness.key_press(Key::Escape);
    harness.state_mut().open_compared(vec![after]);
    harness.run_ok();
    assert_eq!(view(&harness), "compare");
    assert!(says(&harness, "less than before"), "what was shown is before: {:?}", words(&harness));
}

#[test]
fn a_file_that_was_chosen_to_open_can_be_compared_like_one_that_was_dropped() {
    let [before, after] = pair();
    let mut harness = window(&[before]);
    harness.state_mut().open_beside(vec![after]);
    harness.run_ok();
    assert_eq!(view(&harness), "overview", "it is opened");
    harness.get_by_role_and_label(Role::Button, "Compare").click();
    harness.run_ok();
    assert_eq!(view(&harness), "compare");
}

#[test]
fn hidden_names_are_hidden_on_both_sides() {
    let mut harness = compared();
    let scope = printed().pairs[0].spaces[0].groups[0].scope.clone();
    assert!(says(&harness, &scope));
    harness.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::H);
    harness.run_ok();
    assert_eq!(view(&harness), "compare");
    assert!(says(&harness, "less than before"), "{:?}", words(&harness));
    let shown = words(&harness);
    assert!(!shown.iter().any(|words| words.contains("before.hlo") || words.contains("after.hlo")), "{shown:?}");
}

#[test]
fn a_dump_compared_with_itself_says_that_nothing_differs() {
    let [before, _] = pair();
    let folder = std::env::temp_dir().join(format!("highwater-compare-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let copy = folder.join("copy.hlo.pb.gz");
    std::fs::copy(&before, &copy).expect("copied");
    let mut harness = window(&[]);
    harness.state_mut().open_to_compare(Target::Path(before), Target::Path(copy));
    harness.run_ok();
    assert!(says(&harness, "as before") && says(&harness, "Nothing differs at the peak"), "{:?}", words(&harness));
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn a_program_is_not_compared_with_a_file_without_one() {
    let [before, _] = pair();
    let mut harness = window(&[]);
    let ipu = common::samples().join("ipu_over.cbor");
    harness.state_mut().open_to_compare(Target::Path(before), Target::Path(ipu));
    harness.run_ok();
    assert_eq!(view(&harness), "compare");
    assert!(says(&harness, "No program in both files"), "{:?}", words(&harness));
    let _ = first(&harness, Role::Button, "Swap");
}

#[test]
fn a_scope_of_the_waterfall_lists_its_rows() {
    let mut harness = compared_of("bf16_mlp_v5p");
    harness.get_by_label("By scope").click();
    harness.run_ok();
    let printed = printed_of("bf16_mlp_v5p");
    let space = &printed.pairs[0].spaces[0];
    let steps: Vec<_> = space.waterfall_by_scope.iter().filter(|step| step.difference != 0).collect();
    let label = |step: &diff::StepDiff| format!("{} {}", step.name.text(), UnitSystem::Binary.signed(step.difference));
    // The rest have no room for their words in a window of this width, and are one bar.
    for step in steps.iter().take(3) {
        harness.get_by_role_and_label(Role::Button, &label(step));
    }
    let step = steps.first().expect("a difference");
    harness.get_by_role_and_label(Role::Button, &label(step)).click();
    harness.run_ok();
    let listed = words_of_rows(&harness);
    assert!(!listed.is_empty() && listed.iter().all(|row| row.contains(step.name.text())), "{listed:?}");
}

#[test]
fn the_map_has_every_large_difference_and_chooses_its_row() {
    let mut harness = compared_of("bf16_mlp_v5p");
    harness.get_by_label("As a map").click();
    harness.run_ok();
    let printed = printed_of("bf16_mlp_v5p");
    let space = &printed.pairs[0].spaces[0];
    let label =
        |row: &diff::GroupDiff| format!("{}, {} {}", row.class, row.scope, UnitSystem::Binary.signed(row.difference));
    for row in space.groups.iter().take(5) {
        harness.get_by_role_and_label(Role::Button, &label(row));
    }
    let row = space.groups.iter().find(|row| row.largest_after.is_some()).expect("something is at the peak after");
    harness.get_by_role_and_label(Role::Button, &label(row)).click();
    harness.run_ok();
    assert_eq!(harness.state().files.current().expect("open").shared.selected, row.largest_after);
    assert!(says(&harness, &row.shape_before) && says(&harness, &row.shape_after), "{:?}", words(&harness));
}

#[test]
fn padding_is_listed_by_shape_and_other_memory_is_a_click_away() {
    let mut harness = compared();
    let printed = printed();
    let space = &printed.pairs[0].spaces[0];
    harness.get_by_label(&format!("Padding: {}", space.padding_by_shape.len())).click();
    harness.run_ok();
    for row in space.padding_by_shape.iter().take(4) {
        assert!(gui::painted(&harness).iter().any(|text| text.words == row.shape), "{}", row.shape);
    }
    let open = harness.state().files.current().expect("open");
    let (before, after) = (open.document.before.clone().expect("compared").document, open.document.clone());
    let allocated = |document: &highwater::ui::session::Document| {
        let space = document.analysis.programs[0].spaces.iter().find(|space| space.name == "VMEM");
        space.map_or(0, |space| i128::from(space.xprof.allocated.0))
    };
    let difference = allocated(&after) - allocated(&before);
    if difference == 0 {
        assert!(says(&harness, "as before"), "{:?}", words(&harness));
    } else {
        harness.get_by_label(&format!("VMEM {}", UnitSystem::Binary.signed(difference))).click();
        harness.run_ok();
        let color = harness.state().files.current().expect("open").shared.color;
        let space = after.analysis.programs[0].space(color).expect("it is chosen");
        assert_eq!(space.name, "VMEM");
    }
}

#[test]
fn tiles_of_two_profiles_are_a_map_of_their_differences() {
    let mut harness = window(&[]);
    let [before, after] = ["ipu_fits.json", "ipu_over.cbor"].map(|name| Target::Path(common::samples().join(name)));
    harness.state_mut().open_to_compare(before, after);
    harness.run_ok();
    let tiles = |document: &highwater::ui::session::Document| {
        document.profile.tiles.as_ref().and_then(|tiles| tiles.must_fit()).expect("tiles").to_vec()
    };
    let open = harness.state().files.current().expect("open");
    let was = tiles(&open.document.before.as_ref().expect("compared").document);
    let is = tiles(&open.document);
    let grew = was.iter().zip(&is).filter(|(was, is)| is > was).count();
    let most = was.iter().zip(&is).map(|(&was, &is)| is.abs_diff(was)).max().expect("tiles");
    let map = first(&harness, Role::Image, "Tiles: ");
    let words = highwater::model::thousands(grew as u64);
    assert!(map.starts_with(&format!("Tiles: {words} grew, ")) && map.ends_with(&Bytes(most).short()), "{map}");
    let fullest = i128::from(*is.iter().max().expect("tiles")) - i128::from(*was.iter().max().expect("tiles"));
    assert!(says(&harness, "Does not fit") && says(&harness, &UnitSystem::Binary.signed(fullest)));
}

#[test]
fn a_session_remembers_what_is_compared() {
    let harness = compared();
    let session = harness.state().session().expect("two files are open");
    let [[before, after]] = session.comparisons[..] else { panic!("{:?}", session.comparisons) };
    assert!(session.profiles[before].path.ends_with("before.hlo.pb.gz"), "{:?}", session.profiles);
    assert!(session.profiles[after].path.ends_with("after.hlo.pb.gz"), "{:?}", session.profiles);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("two.highwater");
    open::session::write(&session, &file).expect("written");
    let mut harness = window(&[]);
    harness.state_mut().open(Target::Path(file));
    harness.run_ok();
    assert_eq!(view(&harness), "compare", "{:?}", words(&harness));
    let document = harness.state().files.current().expect("open").document.clone();
    assert_eq!(document.before.as_ref().expect("compared").name, "before");
}

#[test]
fn snapshots_are_compared_by_stack() {
    let [before, after] = ["train_2_0", "oom_shortage_2_15"]
        .map(|name| common::samples().join("torch").join(format!("{name}.pickle.gz")));
    let sides = [&before, &after].map(|path| read(path));
    let mut harness = window(&[]);
    harness.state_mut().open_to_compare(Target::Path(before), Target::Path(after));
    harness.run_ok();
    assert_eq!(view(&harness), "compare", "{:?}", words(&harness));
    let [was, is] = [&sides[0], &sides[1]].map(|(profile, analysis)| Side { profile, analysis, program: 0 });
    let printed = diff::compare_memory(was, is, &Options { top: 0, ..Options::default() });
    let allocator = &printed.allocators[0];
    assert!(says(&harness, &allocator.headline(UnitSystem::Binary)), "{:?}", words(&harness));
    assert!(says(&harness, "Out of memory now"), "{:?}", words(&harness));
    let largest = &allocator.holders[0];
    let row = format!("{} {} {}", largest.name, largest.change, UnitSystem::Binary.signed(largest.difference));
    harness.get_by_role_and_label(Role::Row, &row).click();
    harness.run_ok();
    assert!(says(&harness, &largest.stack[0]), "the stack in Details: {:?}", words(&harness));
    harness.get_by_role_and_label(Role::RadioButton, "By stack").click();
    harness.run_ok();
    assert!(gui::painted(&harness).iter().any(|text| text.words == "Reserved, before to after, by stack"));
}

#[test]
fn programs_of_one_name_are_told_apart_by_their_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let [before, after] = pair();
    let sides = [("last_week", before), ("today", after)].map(|(name, path)| {
        let own = folder.path().join(name);
        for program in ["step", "eval"] {
            let place = own.join(program);
            std::fs::create_dir_all(&place).expect("a folder");
            std::fs::copy(&path, place.join(format!("{program}.hlo.pb.gz"))).expect("a copy");
        }
        own
    });
    let mut harness = window(&[]);
    gui::drop_files(&mut harness, &[&sides[0]]);
    gui::drop_files(&mut harness, &[&sides[1]]);
    assert!(says(&harness, "Compare the programs of last_week with those of today?"), "{:?}", words(&harness));
    harness.get_by_role_and_label(Role::Button, "Compare").click();
    harness.run_ok();
    assert_eq!(view(&harness), "compare");
    let heads = words(&harness);
    assert!(heads.iter().any(|words| words.contains("last_week") && words.contains("today")), "{heads:?}");
}

#[test]
fn the_colours_of_the_bars_before_and_after_are_named() {
    let harness = compared();
    let title = gui::painted(&harness).into_iter().find(|text| text.words.starts_with("Allocated, before to after"));
    let title = title.expect("the waterfall").place;
    let beside = |text: &gui::Painted| {
        text.place.left() > title.right() && (text.place.center().y - title.center().y).abs() < 4.0
    };
    let named: Vec<String> = gui::painted(&harness).into_iter().filter(beside).map(|text| text.words).collect();
    assert!(named.iter().any(|words| words == "Optimizer state" || words == "Weight"), "{named:?}");
}
