//! The list of programs on the left and the views of run-time data, by mouse and keyboard.

use std::fs;
use std::path::{Path, PathBuf};

use egui::{Key, Modifiers, Pos2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::ProfileAnalysis;
use highwater::export::report;
use highwater::model::Bytes;
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink, MAX_DECODED};
use highwater::ui::session::ThemeChoice;
use highwater::ui::work::Job;

use crate::common;
use crate::gui::{self, says, words};

/// A temporary folder for one test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("highwater-views-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// The sample programs, each as several modules of different names.
    fn with_programs(name: &str, copies: usize) -> Self {
        let folder = Self::new(name);
        for (row, path) in common::sample_programs().iter().enumerate() {
            for copy in 0..copies {
                let packed = path.extension().is_some_and(|end| end == "gz");
                let end = if packed { ".gz" } else { "" };
                let module = row * copies + copy;
                let to = format!("module_{module:04}.jit_f{row}_{copy}.after_optimizations.hlo.pb{end}");
                fs::copy(path, folder.0.join(to)).expect("copied");
            }
        }
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn programs(harness: &Harness<'_, App>) -> Vec<String> {
    words(harness).into_iter().filter(|label| label.starts_with("Program ")).collect()
}

fn window(path: &Path, view: Option<&str>) -> Harness<'static, App> {
    let link = DeepLink { view: view.map(str::to_owned), ..DeepLink::default() };
    gui::window(&[path], [1600.0, 1000.0], ThemeChoice::Dark, link)
}

fn made(name: &str) -> PathBuf {
    common::samples().join("made").join(name)
}

/// The report's JSON of a file.
fn reported(path: &Path) -> serde_json::Value {
    let profile = open::open_path(path, &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    let report = report::build(&[(&profile, &analysis)], &[], &report::Options::default());
    serde_json::from_str(&report::write(&report, report::Format::Json)).expect("JSON")
}

fn short(value: &serde_json::Value) -> String {
    Bytes(value.as_u64().expect("bytes")).short()
}

#[test]
fn a_folder_is_a_list_with_the_worst_open() {
    let folder = Folder::with_programs("list", 2);
    let mut harness = window(&folder.0, None);
    let app = harness.state();
    let count = common::sample_programs().len() * 2;
    assert_eq!(app.files.entries.len(), count);
    assert_eq!((app.files.current, app.files.decoded()), (Some(0), 1), "only the worst is decoded");
    let needs: Vec<u64> = app.files.entries.iter().map(|entry| entry.known().expect("looked at").0.0).collect();
    let over = |row: usize| app.files.entries[row].known().and_then(|(need, limit)| Some(need.0 > limit?.0));
    assert!(over(0).is_some() || needs.is_sorted_by(|a, b| a >= b), "{needs:?}");
    assert!(says(&harness, "Search programs"));
    // The list is longer than the window is high; only visible rows are laid out.
    assert!(programs(&harness).len() <= count);

    let other = programs(&harness).get(3).cloned().expect("a fourth");
    harness.get_by_label(&other).click();
    harness.run_ok();
    let current = harness.state().files.current.expect("something is shown");
    assert_eq!(format!("Program {}", harness.state().files.entries[current].name), other);

    harness.get_by_label("Search programs").focus();
    harness.run_ok();
    harness.get_by_label("Search programs").type_text("jit_f1_");
    harness.run_ok();
    assert_eq!(programs(&harness).len(), 2, "{:?}", programs(&harness));
    assert!(says(&harness, "Overview"), "what is open stays");
}

#[test]
fn only_a_few_programs_stay_decoded_and_come_back_as_they_were() {
    let folder = Folder::with_programs("few", 2);
    let mut harness = window(&folder.0, Some("buffers"));
    harness.get_all_by_role(egui::Role::Row).next().expect("rows").click();
    harness.run_ok();
    let selected = harness.state().files.current().expect("open").shared.selected;
    assert!(selected.is_some());
    for row in 1..=MAX_DECODED + 2 {
        let work = highwater::ui::work::Work { synchronous: true, ..harness.state().work() };
        harness.state_mut().files.show(row, &work);
        harness.run_ok();
        assert_eq!(harness.state().files.current, Some(row));
        assert!(harness.state().files.decoded() <= MAX_DECODED);
    }
    let work = highwater::ui::work::Work { synchronous: true, ..harness.state().work() };
    harness.state_mut().files.show(0, &work);
    harness.run_ok();
    let open = harness.state().files.current().expect("open");
    assert_eq!((open.shared.view, open.shared.selected), ("buffers", selected));
}

#[test]
fn a_list_closes_as_a_whole_by_key_and_by_its_cross() {
    let folder = Folder::with_programs("close", 1);
    let mut harness = window(&folder.0, None);
    assert!(harness.state().files.entries.len() > 1);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::W);
    harness.run_ok();
    assert!(harness.state().files.entries.is_empty());
    let mut harness = window(&folder.0, None);
    let close = words(&harness).into_iter().find(|label| label.starts_with("Close ")).expect("a way to close it");
    harness.get_by_label(&close).click();
    harness.run_ok();
    assert!(harness.state().files.entries.is_empty());
    assert!(says(&harness, "Drop a memory profile here"));
}

#[test]
fn a_program_that_cannot_be_read_says_so_and_leaves_the_rest() {
    let folder = Folder::with_programs("damaged", 1);
    fs::write(folder.0.join("module_9999.jit_broken.after_optimizations.hlo.pb"), b"\x0a\xff\xff\xff\xff\x7f").unwrap();
    let mut harness = window(&folder.0, None);
    let index = harness.state().files.entries.iter().position(|entry| entry.name.contains("broken")).expect("listed");
    let work = highwater::ui::work::Work { synchronous: true, ..harness.state().work() };
    harness.state_mut().files.show(index, &work);
    harness.run_ok();
    assert!(says(&harness, "Could not read"), "{:?}", words(&harness));
    assert!(harness.state().files.entries[index].error.is_some());
    assert!(says(&harness, "Overview"), "what was open stays");
}

#[test]
fn a_trace_lists_its_programs() {
    let trace = &common::Files::of_project().ending("2026_11_21_03_07_16/vm.xplane.pb");
    let harness = window(trace, None);
    assert!(harness.state().files.entries.len() > 10);
    assert_eq!(harness.state().files.decoded(), 1);
    let named = DeepLink { program: Some("jit_train_step".to_owned()), ..DeepLink::default() };
    let harness = gui::window(&[trace], [1600.0, 1000.0], ThemeChoice::Light, named);
    assert!(says(&harness, "jit_train_step"));
    let open = harness.state().files.current().expect("open");
    assert_eq!(open.document.profile.programs[0].name, "jit_train_step");
}

#[test]
fn a_report_that_disagrees_with_its_dump_is_shown() {
    let folder = Folder::new("two reports");
    let from = common::samples().join("v5e_mlp_f32");
    let stem = "module_0000.jit_train_step.cl_1003875606.after_optimizations";
    fs::copy(from.join(format!("{stem}.hlo.pb")), folder.0.join(format!("{stem}.hlo.pb"))).expect("copied");
    let report = fs::read_to_string(from.join(format!("{stem}-buffer-assignment.txt"))).expect("a report");
    let path = folder.0.join(format!("{stem}-buffer-assignment.txt"));
    fs::write(&path, &report).expect("written");
    let harness = window(&folder.0, Some("overview"));
    assert!(!says(&harness, "disagrees"), "they agree as they were written");
    let line = report.lines().find(|line| line.starts_with("allocation ")).expect("an allocation");
    let (head, rest) = line.split_once("size ").expect("a size");
    let (size, rest) = rest.split_once(',').expect("more");
    let other = size.parse::<u64>().expect("a number") + 4096;
    fs::write(&path, report.replacen(line, &format!("{head}size {other},{rest}"), 1)).expect("written");
    for path in [folder.0.clone(), folder.0.join(format!("{stem}.hlo.pb"))] {
        let harness = window(&path, Some("overview"));
        assert!(says(&harness, "disagrees with the HLO proto in 1 of "), "{}: {:?}", path.display(), words(&harness));
    }
}

#[test]
fn an_error_text_in_a_folder_is_shown_with_its_program() {
    let folder = Folder::with_programs("error", 1);
    let message = "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries \
                   (25.90G) exceeds available HBM (15.75G). HLO module: jit_f1_0. \n";
    fs::write(folder.0.join("run.err.txt"), message).expect("written");
    let mut harness = window(&folder.0, None);
    let with = |harness: &Harness<'_, App>| {
        harness.get_all_by_role(egui::Role::Tab).filter_map(|tab| tab.accesskit_node().label()).any(|t| t == "Failure")
    };
    let work = highwater::ui::work::Work { synchronous: true, ..harness.state().work() };
    let named = harness.state().files.entries.iter().position(|entry| entry.name == "jit_f1_0").expect("listed");
    let other = harness.state().files.entries.iter().position(|entry| entry.name == "jit_f2_0").expect("listed");
    harness.state_mut().files.show(other, &work);
    harness.run_ok();
    assert!(!with(&harness));
    harness.state_mut().files.show(named, &work);
    harness.run_ok();
    assert!(with(&harness), "{:?}", words(&harness));
}

#[test]
fn an_error_text_dropped_later_goes_to_its_program_whether_decoded_or_not() {
    let folder = Folder::with_programs("later", 2);
    let texts = Folder::new("later-texts");
    let mut harness = window(&folder.0, None);
    let count = harness.state().files.entries.len();
    for (drop, module) in ["jit_f2_1", "jit_f1_0"].into_iter().enumerate() {
        let message = format!(
            "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (25.90G) \
             exceeds available HBM (15.75G). HLO module: {module}. \n"
        );
        let path = texts.0.join(format!("pasted{drop}.txt"));
        fs::write(&path, message).expect("written");
        let row = harness.state().files.entries.iter().position(|entry| entry.name == module).expect("listed");
        assert_ne!(harness.state().files.current, Some(row), "{module} is not decoded yet");
        harness.state_mut().open(highwater::open::Target::Path(path));
        harness.run_ok();
        let files = &harness.state().files;
        assert_eq!((files.entries.len(), files.current), (count, Some(row)), "the text is not a file of its own");
        let open = files.current().expect("open");
        assert_eq!((open.shared.view, open.document.profile.failures.len()), ("failure", 1));
    }
    // Programs with messages are unloaded like any other, and have their messages when decoded again.
    let work = highwater::ui::work::Work { synchronous: true, ..harness.state().work() };
    let named = harness.state().files.entries.iter().position(|entry| entry.name == "jit_f2_1").expect("listed");
    let others: Vec<usize> = (0..count).filter(|&row| row != named).take(MAX_DECODED + 1).collect();
    for row in others {
        harness.state_mut().files.show(row, &work);
        harness.run_ok();
    }
    let is_open = matches!(harness.state().files.entries[named].state, highwater::ui::app::FileState::Open(_));
    assert!(!is_open, "only {MAX_DECODED} stay decoded");
    harness.state_mut().files.show(named, &work);
    harness.run_ok();
    assert_eq!(harness.state().files.current().expect("open").document.profile.failures.len(), 1);
    // A message that names no program in the list is a file of its own.
    let path = texts.0.join("other.txt");
    fs::write(
        &path,
        "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries \
        (25.90G) exceeds available HBM (15.75G). HLO module: jit_elsewhere.\n",
    )
    .expect("written");
    harness.state_mut().open(highwater::open::Target::Path(path));
    harness.run_ok();
    assert_eq!(harness.state().files.entries.len(), count + 1);
}

#[test]
fn reading_can_be_stopped_and_the_list_stays() {
    let folder = Folder::with_programs("stop", 40);
    let ctx = egui::Context::default();
    let options = highwater::ui::session::Options::default();
    let mut app = App::new(&ctx, options);
    app.open(highwater::open::Target::Path(folder.0.clone()));
    let work = app.work();
    let begin = std::time::Instant::now();
    while app.files.groups.is_empty() && begin.elapsed().as_secs() < 20 {
        app.files.poll("overview", &|_| None, &work);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let listed = begin.elapsed();
    let count = common::sample_programs().len() * 40;
    assert_eq!(app.files.entries.len(), count, "the list comes first");
    // Nothing is decoded while the worst program is being determined, and Stop ends that.
    app.files.groups[0].sorting = None;
    std::thread::sleep(std::time::Duration::from_millis(300));
    app.files.poll("overview", &|_| None, &work);
    assert_eq!((app.files.decoded(), app.files.is_loading()), (0, false));
    // A program can still be chosen, and its reading cancelled.
    app.files.show(3, &work);
    assert!(app.files.is_loading());
    app.files.close(3);
    assert!(!app.files.is_loading());
    println!("{count} modules listed after {listed:?}");
}

#[test]
fn the_history_of_an_allocator_says_the_same_as_the_report() {
    let path = made("gpu_training.xplane.pb");
    let allocator = &reported(&path)["profiles"][0]["runtime"][0];
    let harness = window(&path, Some("runtime"));
    let peak = short(&allocator["peak_bytes"]);
    assert!(says(&harness, &format!("{peak} of 16 GiB in use at the peak")), "{:?}", words(&harness));
    let rises = short(&allocator["floor_rises_by_bytes"]);
    assert!(says(&harness, &format!("The lowest use rises from step to step, by {rises}")));
    let before = short(&allocator["before_trace_bytes"]);
    assert!(says(&harness, &format!("{before} (68.2\u{2009}%) from before the trace")));
    assert!(says(&harness, &format!("allocated before the trace began {before}")));
    assert!(says(&harness, "24 runs of 2 programs") || says(&harness, "48 runs of 2 programs"));
}

#[test]
fn a_drag_moves_one_with_shift_measures_a_range_and_keys_zoom() {
    let mut harness = window(&made("gpu_training.xplane.pb"), Some("runtime"));
    let curve =
        words(&harness).into_iter().find(|label| label.starts_with("Memory in use over time")).expect("the curve");
    let rect = harness.get_by_label(&curve).rect();
    let at = |share: f32| Pos2::new(rect.left() + rect.width() * share, rect.center().y);
    let drag = |harness: &mut Harness<'_, App>| {
        harness.hover_at(at(0.25));
        harness.step();
        harness.drag_at(at(0.25));
        harness.step();
        for share in [0.4, 0.5] {
            harness.hover_at(at(share));
            harness.step();
        }
        harness.drop_at(at(0.5));
        harness.run_ok();
    };
    harness.hover_at(at(0.5));
    harness.key_press(Key::W);
    harness.run_ok();
    drag(&mut harness);
    assert!(says(&harness, "Shift drag over the curve"), "as in every chart, a drag moves: {:?}", words(&harness));
    harness.key_press(Key::Num0);
    harness.run_ok();
    harness.event(egui::Event::ModifiersChanged(egui::Modifiers::SHIFT));
    drag(&mut harness);
    harness.event(egui::Event::ModifiersChanged(egui::Modifiers::NONE));
    harness.run_ok();
    let line = words(&harness).into_iter().find(|label| label.contains("on average"));
    let line = line.unwrap_or_else(|| panic!("no numbers of the range: {:?}", words(&harness)));
    assert!(line.contains("allocations of") && line.contains("frees of"), "{line}");
    assert!(says(&harness, "Highest use"));
    harness.key_press(Key::Escape);
    harness.run_ok();
    assert!(says(&harness, "Shift drag over the curve"));
    harness.hover_at(at(0.5));
    harness.key_press(Key::W);
    harness.run_ok();
    harness.key_press(Key::Num0);
    harness.run_ok();
    assert!(says(&harness, "Memory in use over time"));
}

#[test]
fn live_arrays_are_grouped_entered_and_found() {
    let mut harness = window(&made("tpu_training.prof"), None);
    let whole = short(&reported(&made("tpu_training.prof"))["profiles"][0]["live"]["total_bytes"]);
    assert!(says(&harness, &format!("{whole} live in 1,740 arrays on 4 devices")), "{:?}", words(&harness));
    // Zoom into a frame, and out again.
    let frame = words(&harness).into_iter().find(|label| label.starts_with("init_params ")).expect("a frame");
    harness.get_by_label(&frame).click();
    harness.run_ok();
    assert!(words(&harness).iter().all(|label| !label.starts_with("init_adam  optimizer")), "{:?}", words(&harness));
    harness.key_press(Key::Backspace);
    harness.run_ok();
    assert!(says(&harness, "init_adam  optimizer"));
    harness.key_press_modifiers(Modifiers::COMMAND, Key::F);
    harness.run_ok();
    harness.get_by_label("Search functions and files").type_text("adam");
    harness.run_ok();
    assert!(says(&harness, "1 of 7 frames, 9.00 GiB"), "{:?}", words(&harness));
    harness.get_by_role_and_label(egui::Role::RadioButton, "Device").click();
    harness.run_ok();
    assert!(says(&harness, "TPU_0(process=0,(0,0,0,0)) 3.54 GiB"), "{:?}", words(&harness));
}

#[test]
fn a_request_is_held_against_the_largest_free_block() {
    let mut harness = window(&made("gpu_0_bfc.memory_dump"), None);
    let heap = reported(&made("gpu_0_bfc.memory_dump"))["profiles"][0]["live"]["heap"].clone();
    let largest = short(&heap["largest_free_bytes"]);
    assert!(says(&harness, &format!("the largest free block is {largest}")), "{:?}", words(&harness));
    harness.get_by_label("Size of a request").focus();
    harness.run_ok();
    harness.get_by_label("Size of a request").type_text("100MiB");
    harness.run_ok();
    let free = short(&heap["free_bytes"]);
    assert!(says(&harness, &format!("100 MiB does not fit: {free} is free")), "{:?}", words(&harness));
}

#[test]
fn errors_are_newest_first_and_fold_once_something_opens() {
    let folder = Folder::new("errors");
    let bad = |name: &str, bytes: &[u8]| {
        let path = folder.0.join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let bad = [bad("empty.hlo.pb", b""), bad("photo.png", b"\x00\x01\x02\x05"), bad("noise.bin", b"\x01\x02\x03\x04")];
    let gone = folder.0.join("gone.hlo.pb");
    let sample = common::sample_programs().remove(0);
    let mut harness = gui::window(&[], [1280.0, 800.0], ThemeChoice::Dark, DeepLink::default());
    for path in bad.iter().chain([&gone]) {
        gui::drop_files(&mut harness, &[path]);
    }
    let height = |name: &str| {
        let painted = gui::painted(&harness);
        painted.into_iter().find(|text| text.words == format!("Could not read {name}")).map(|text| text.place.top())
    };
    assert!(height("gone.hlo.pb").expect("the newest") < height("noise.bin").expect("the one before"));
    assert_eq!(height("empty.hlo.pb"), None, "only three are shown");
    assert!(says(&harness, "3 of 4 errors are shown") && says(&harness, "Dismiss all"), "{:?}", words(&harness));
    let formats: Vec<_> = words(&harness).into_iter().filter(|label| label.starts_with("Supported files.")).collect();
    assert_eq!(formats.len(), 1, "the formats are listed once");
    assert!(!formats[0].contains('*'), "without the patterns of their names: {formats:?}");
    gui::drop_files(&mut harness, &[&sample, &folder.0.join("gone too.hlo.pb")]);
    assert!(says(&harness, "4 earlier files could not be read"), "{:?}", words(&harness));
    assert!(says(&harness, "Could not read gone too.hlo.pb"), "{:?}", words(&harness));
    assert_eq!(harness.state().files.entries.len(), 1, "the other file of the drop is open");
    harness.get_by_label("Dismiss all").click();
    harness.run_ok();
    assert!(!says(&harness, "could not be read") && !says(&harness, "Could not read"), "{:?}", words(&harness));
}

#[test]
fn programs_of_one_name_in_one_file_keep_their_names_and_are_numbered() {
    let harness = window(&common::samples().join("jax_cpu_trace"), None);
    let painted: Vec<String> = gui::painted(&harness).into_iter().map(|text| text.words).collect();
    assert!(painted.iter().any(|words| words == "jit_multiply"), "{painted:?}");
    let numbers: Vec<&String> = painted.iter().filter(|words| words.ends_with(" of 3")).collect();
    assert!(numbers.contains(&&"vm, 1 of 3".to_owned()) && numbers.contains(&&"vm, 3 of 3".to_owned()), "{painted:?}");
    assert!(painted.contains(&"vm".to_owned()), "the only one of its name has no number: {painted:?}");
}

#[test]
fn comparing_is_offered_for_a_while_and_only_between_files_of_one_kind() {
    let [first, second] = [common::sample_programs().remove(0), common::sample_programs().remove(1)];
    let heap = made("gpu_0_bfc.memory_dump");
    let mut harness = window(&first, None);
    gui::drop_files(&mut harness, &[&heap]);
    assert!(!says(&harness, "Compare with"), "{:?}", words(&harness));
    gui::drop_files(&mut harness, &[&second]);
    assert!(!says(&harness, "Compare with"), "{:?}", words(&harness));
    harness.state_mut().files.close_current();
    let work = harness.state().work();
    harness.state_mut().files.show(0, &work);
    harness.run_ok();
    let row = harness.state().files.entries.iter().position(|entry| entry.target.path() == Some(&first));
    harness.state_mut().files.show(row.expect("still open"), &work);
    gui::drop_files(&mut harness, &[&second]);
    assert!(says(&harness, "Compare with"), "{:?}", words(&harness));
    harness.input_mut().time = Some(60.0);
    harness.run_ok();
    assert!(!says(&harness, "Compare with"), "{:?}", words(&harness));
}

#[test]
fn a_session_brings_back_the_changes_of_every_file_and_what_was_pasted() {
    let folder = Folder::new("session-edits");
    let [first, second] = [common::sample_programs().remove(0), common::sample_programs().remove(1)];
    let pasted = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 536870912 bytes.";
    let mut harness = gui::window(&[&first, &second], [1600.0, 1000.0], ThemeChoice::Dark, DeepLink::default());
    harness.event(egui::Event::Paste(pasted.to_owned()));
    harness.run_ok();
    let edits = |index: usize| vec![format!("dtype * {}", ["bf16", "f32"][index]).parse().expect("a change")];
    let work = harness.state().work();
    for (index, path) in [&first, &second].into_iter().enumerate() {
        let app = harness.state_mut();
        let row = app.files.entries.iter().position(|entry| entry.target.path() == Some(path)).expect("open");
        app.files.show(row, &work);
        app.files.current_mut().expect("open").shared.changes_mut().on = edits(index);
    }
    let session = harness.state().session().expect("a session");
    let path = folder.0.join("saved.highwater");
    open::session::write(&session, &path).expect("written");
    let mut again = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Dark, DeepLink::default());
    assert!(again.state_mut().take_errors().is_empty());
    assert_eq!(again.state().files.entries.len(), 3, "{:?}", words(&again));
    assert!(says(&again, "pasted text"));
    let current = again.state().files.current.expect("shown");
    assert_eq!(again.state().files.entries[current].target.path(), Some(second.as_path()));
    for (index, path) in [&first, &second].into_iter().enumerate() {
        let app = again.state_mut();
        let row = app.files.entries.iter().position(|entry| entry.target.path() == Some(path)).expect("open");
        app.files.show(row, &work);
        assert_eq!(app.files.current_mut().expect("open").shared.changes.on, edits(index));
    }
}

#[test]
fn work_that_fails_is_a_card_with_a_report_to_copy() {
    let path = common::sample_programs().remove(0);
    let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
    let work = harness.state().work();
    let job = Job::<()>::start(&work, "memory map", || panic!("on purpose, at `jit_secret`"));
    assert!(job.has_failed());
    harness.run_ok();
    assert!(says(&harness, "Could not compute: memory map"), "{:?}", words(&harness));
    harness.get_by_label("Copy report").click();
    harness.step();
    let copied = harness.output().platform_output.commands.iter().find_map(|command| match command {
        egui::OutputCommand::CopyText(text) => Some(text.clone()),
        _ => None,
    });
    let copied = copied.expect("a report");
    assert!(copied.contains("memory map") && copied.contains("on purpose") && !copied.contains("secret"), "{copied}");
    harness.get_by_label("Dismiss").click();
    harness.run_ok();
    assert!(!says(&harness, "Could not compute"), "{:?}", words(&harness));
}

#[test]
fn files_of_a_dump_that_are_dropped_together_are_one_program() {
    let folder = common::samples().join("v5e_gpt_m_oom");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(files.len() > 1, "{files:?}");
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let mut harness = gui::window(&[], [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
    gui::drop_files(&mut harness, &files);
    assert_eq!(harness.state().files.entries.len(), 1, "{:?}", words(&harness));
    assert!(says(&harness, "Does not fit") && says(&harness, "Failure"), "{:?}", words(&harness));
}

#[test]
fn of_files_dropped_together_the_worst_is_shown_and_one_that_is_gone_is_named() {
    let dump = |name: &str| {
        let mut all = common::sample_programs().into_iter();
        all.find(|path| path.to_string_lossy().contains(name)).expect("a sample")
    };
    let (worst, fits) = (dump("gpt_m_oom"), dump("mlp_f32"));
    let gone = std::env::temp_dir().join("highwater-no-such-file.hlo.pb");
    for files in [[&worst, &gone, &fits], [&fits, &gone, &worst]] {
        let mut harness = gui::window(&[], [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
        gui::drop_files(&mut harness, &files.map(PathBuf::as_path));
        assert_eq!(harness.state().files.entries.len(), 2);
        assert!(says(&harness, "Does not fit"), "{:?}", words(&harness));
        assert!(says(&harness, "Could not read highwater-no-such-file.hlo.pb"), "{:?}", words(&harness));
    }
}

#[test]
fn each_text_that_is_pasted_is_shown() {
    let mut harness = gui::window(&[], [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
    let texts = ["22.10G of 15.75G", "9.50G of 8.00G"].map(|sizes| {
        format!(
            "XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used {sizes} hbm. Exceeded"
        )
    });
    for (text, used) in texts.iter().zip(["22.1", "9.5"]) {
        harness.input_mut().events.push(egui::Event::Paste(text.clone()));
        harness.run_ok();
        assert!(says(&harness, used), "{used}: {:?}", words(&harness));
    }
    assert!(says(&harness, "File pasted text 2"), "{:?}", words(&harness));
    assert_eq!(harness.state().files.failing(), 2, "both failed");
}
