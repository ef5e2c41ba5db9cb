//! Folders that are followed while a program writes to them, and open files that are written again.

use std::fs;
use std::path::{Path, PathBuf};

use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, says};

/// A folder that a compiler writes to.
struct Dump(tempfile::TempDir);

impl Dump {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes the first `share` of a test program as a module of this name.
    fn write(&self, module: &str, case: &str, share: f64) -> PathBuf {
        let bytes = common::bytes(&common::Files::of_project().case(case));
        let path = self.path().join(format!("{module}.after_optimizations.hlo.pb"));
        fs::write(&path, &bytes[..(bytes.len() as f64 * share) as usize]).expect("written");
        path
    }

    /// Says what a program may have: the programs of this folder are compiled for a v5e.
    fn write_device(&self) {
        let stats = common::samples().join("v5e_gpt_m_oom/v5e_gpt_m_oom.stats.json");
        fs::copy(stats, self.path().join("device.stats.json")).expect("copied");
    }
}

fn window(paths: &[&Path], link: DeepLink) -> Harness<'static, App> {
    gui::window(paths, [1600.0, 1000.0], ThemeChoice::Light, link)
}

/// Frames enough for two looks at what is on disk.
fn look(harness: &mut Harness<'_, App>) {
    for _ in 0..3 {
        harness.step();
    }
    harness.run_ok();
}

fn shown(harness: &Harness<'_, App>) -> Option<String> {
    let files = &harness.state().files;
    files.current.and_then(|row| files.entries.get(row)).map(|entry| entry.name.clone())
}

#[test]
fn programs_of_a_followed_folder_appear_and_the_newest_failure_is_shown() {
    let dump = Dump::new();
    let mut harness = window(&[], DeepLink::default());
    let folder = dump.path().join("dump");
    harness.state_mut().follow(folder.clone());
    harness.run_ok();
    assert!(says(&harness, "Waiting for programs"), "the folder is not even there");
    fs::create_dir(&folder).expect("a folder");
    dump.write_device();
    fs::rename(dump.path().join("device.stats.json"), folder.join("device.stats.json")).expect("moved");
    let write = |module: &str, case: &str, share| {
        let path = dump.write(module, case, share);
        fs::rename(&path, folder.join(path.file_name().expect("a name"))).expect("moved");
    };

    write("module_0001.jit_small", "v5e_gpt_s_scan", 1.0);
    look(&mut harness);
    assert_eq!(shown(&harness).as_deref(), Some("jit_small"), "the first is shown");
    write("module_0002.jit_large", "v5e_gpt_m_oom", 0.5);
    look(&mut harness);
    assert_eq!(harness.state().files.entries.len(), 1, "half of a program is none");
    assert!(harness.state_mut().take_errors().is_empty());
    write("module_0003.jit_other", "v5e_gpt_s_scan", 1.0);
    look(&mut harness);
    assert_eq!(shown(&harness).as_deref(), Some("jit_small"), "one that fits does not take the place of what is shown");
    assert_eq!(harness.state().files.entries.len(), 2);

    write("module_0002.jit_large", "v5e_gpt_m_oom", 1.0);
    look(&mut harness);
    assert_eq!(shown(&harness).as_deref(), Some("jit_large"), "the newest failure comes to the front");
    assert_eq!(harness.state().files.entries[0].name, "jit_large", "and stands first as the worst");

    harness.get_by_label("Stop following dump").click();
    harness.run_ok();
    write("module_0004.jit_last", "v5e_gpt_s_scan", 1.0);
    look(&mut harness);
    assert_eq!(harness.state().files.entries.len(), 3, "it is not followed any more");
    harness.get_by_label("Follow dump").click();
    look(&mut harness);
    assert_eq!(harness.state().files.entries.len(), 4);
    assert_eq!(shown(&harness).as_deref(), Some("jit_large"), "what is there when following begins is not news");
}

#[test]
fn a_file_that_was_written_again_is_reloaded_on_request_and_keeps_the_view() {
    let dump = Dump::new();
    let path = dump.write("module_0001.jit_step", "v5e_gpt_s_scan", 1.0);
    let link = DeepLink { view: Some("buffers".to_owned()), step: Some(40), ..DeepLink::default() };
    let mut harness = window(&[&path], link);
    look(&mut harness);
    assert!(!says(&harness, "was written again"));
    let needs = |harness: &Harness<'_, App>| {
        let open = harness.state().files.current().expect("open");
        open.document.space(0, open.shared.color).expect("a space").xprof.allocated
    };
    let before = needs(&harness);

    dump.write("module_0001.jit_step", "v5e_gpt_s_nodonate", 0.5);
    look(&mut harness);
    assert!(!says(&harness, "was written again"), "half of it cannot be read");
    dump.write("module_0001.jit_step", "v5e_gpt_s_nodonate", 1.0);
    look(&mut harness);
    assert!(
        says(&harness, "was written again") && needs(&harness) == before,
        "what is shown stays until it is asked for"
    );
    harness.get_by_label("Reload").click();
    look(&mut harness);
    assert_ne!(needs(&harness), before);
    let shared = &harness.state().files.current().expect("open").shared;
    assert_eq!((shared.view, shared.step), ("buffers", Some(40)));
    assert!(!says(&harness, "was written again"));

    fs::write(&path, b"\x0a\x01x").expect("written");
    look(&mut harness);
    harness.get_by_label("Reload").click();
    look(&mut harness);
    let open = harness.state().files.current().expect("what was open stays open");
    assert!(open.document.space(0, open.shared.color).is_some());
}
