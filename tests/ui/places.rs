//! Places that are kept and gone to: ranges and comparisons in sessions and command lines, programs from the palette, the
//! tab of the view that is shown.

use std::fs;
use std::path::PathBuf;

use egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::tree::TreeKind;
use highwater::open::{self, Target};
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, words};
use crate::window::{copied_text, press};

fn window(paths: &[&std::path::Path], link: DeepLink) -> Harness<'static, App> {
    gui::window(paths, [1600.0, 1000.0], ThemeChoice::Light, link)
}

/// A folder with the programs `jit_first` and `jit_second`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (row, name, part) in [(1, "first", "mlp"), (2, "second", "gpt_m_oom")] {
        let from = common::sample_programs();
        let from = from.iter().find(|path| path.to_string_lossy().contains(part)).expect("a sample");
        let end = if from.extension().is_some_and(|end| end == "gz") { ".gz" } else { "" };
        let to = folder.path().join(name);
        fs::create_dir(&to).expect("made");
        fs::copy(from, to.join(format!("module_000{row}.jit_{name}.after_optimizations.hlo.pb{end}"))).expect("copied");
    }
    folder
}

fn copied_line(harness: &mut Harness<'_, App>) -> String {
    press(harness, Modifiers::COMMAND, Key::L);
    copied_text(harness)
}

/// Names of what is shown and of what is before it.
fn compared(harness: &Harness<'_, App>) -> (String, String) {
    let open = harness.state().files.current().expect("open");
    let before = open.document.before.as_ref().expect("compared");
    (open.document.profile.name.clone(), before.name.clone())
}

#[test]
fn a_session_keeps_the_range_measured_the_steps_shown_and_the_grouping() {
    let path = common::sample_programs().remove(0);
    let mut harness = window(&[&path], DeepLink { view: Some("timeline".to_owned()), ..DeepLink::default() });
    let shared = &mut harness.state_mut().files.current_mut().expect("open").shared;
    shared.measure((10, 20));
    shared.zoom_to((5.0, 40.0));
    shared.divide_tree(TreeKind::Class);
    let session = harness.state().session().expect("a session");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("saved.highwater");
    open::session::write(&session, &file).expect("written");
    let again = window(&[&file], DeepLink::default());
    let shared = &again.state().files.current().expect("open").shared;
    assert_eq!((shared.measured, shared.range), (Some((10, 20)), Some((5.0, 40.0))));
    assert_eq!(shared.tree.kind, TreeKind::Class);
    assert_eq!(shared.view, "timeline");
}

#[test]
fn two_programs_of_one_folder_are_compared_again_by_command_line_and_by_session() {
    let folder = folder();
    let mut harness = window(&[folder.path()], DeepLink::default());
    let files = &harness.state().files;
    let current = files.current.expect("shown");
    let other = 1 - current;
    let name = files.entries[other].name.clone();
    harness.query_all_by_label(&format!("Program {name}")).next().expect("its row").click_modifiers(Modifiers::COMMAND);
    harness.run_ok();
    let (after, before) = compared(&harness);
    let line = copied_line(&mut harness);
    let session = harness.state().session().expect("a session");
    assert_eq!(session.profiles.len(), 1, "{:?}", session.profiles);
    let option = |name: &str| {
        let rest = line.split_once(&format!("{name} ")).unwrap_or_else(|| panic!("no {name} in {line}")).1;
        rest.split(' ').next().unwrap_or_default().to_owned()
    };
    let link = DeepLink {
        view: Some(option("--view")),
        program: Some(option("--program")),
        against: Some(option("--against")),
        ..DeepLink::default()
    };
    let by_line = window(&[folder.path()], link);
    assert_eq!(compared(&by_line), (after.clone(), before.clone()), "{line}");
    let file: PathBuf = folder.path().join("saved.highwater");
    open::session::write(&session, &file).expect("written");
    let mut by_session = window(&[], DeepLink::default());
    by_session.state_mut().open(Target::Path(file));
    by_session.run_ok();
    assert_eq!(compared(&by_session), (after, before));
}

#[test]
fn the_palette_goes_to_a_program_of_a_folder_and_finds_no_scattered_letters() {
    let folder = folder();
    let mut harness = window(&[folder.path()], DeepLink::default());
    let files = &harness.state().files;
    let shown = files.entries[files.current.expect("shown")].name.clone();
    let other = files.entries.iter().map(|entry| entry.name.clone()).find(|name| *name != shown).expect("two");
    harness.key_press_modifiers(Modifiers::COMMAND, Key::P);
    harness.run_ok();
    harness.get_by_label("Go to").type_text(&other);
    harness.run_ok();
    // Keys of what is behind the palette do nothing while it is open.
    harness.key_press_modifiers(Modifiers::COMMAND, Key::W);
    harness.run_ok();
    assert_eq!(harness.state().files.entries.len(), 2);
    harness.key_press(Key::Enter);
    harness.run_ok();
    let files = &harness.state().files;
    assert_eq!(files.entries[files.current.expect("shown")].name, other);
}

#[test]
fn the_tab_of_a_file_without_an_overview_is_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("train.log");
    fs::write(&path, "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 536870912 bytes.\n").expect("written");
    let mut harness = window(&[&path], DeepLink::default());
    let tab = harness.get_by_role_and_label(Role::Tab, "Failure");
    assert_eq!(tab.accesskit_node().toggled(), Some(egui::accesskit::Toggled::True), "{:?}", words(&harness));
    assert!(copied_line(&mut harness).contains("--view failure"));
}
