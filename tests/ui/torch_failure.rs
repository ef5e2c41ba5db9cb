//! A failed request of PyTorch's allocator: its own view, and the message about it is joined to the snapshot.

use std::path::{Path, PathBuf};

use egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::ProfileAnalysis;
use highwater::export::report::{self, Format};
use highwater::model::Bytes;
use highwater::open::{self, Target};
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, says, words};

/// What PyTorch printed for the failed request of `oom_fragmentation_2_6`.
const MESSAGE: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total \
                       capacity of 2.00 GiB of which 74.00 MiB is free. Of the allocated memory 507.58 MiB is allocated \
                       by PyTorch, and 1.14 GiB is reserved by PyTorch but unallocated.\n";

fn snapshot(name: &str) -> PathBuf {
    common::samples().join(format!("torch/{name}.pickle.gz"))
}

fn window(paths: &[&Path], view: Option<&str>) -> Harness<'static, App> {
    let link = DeepLink { view: view.map(str::to_owned), ..DeepLink::default() };
    gui::window(paths, [1600.0, 2000.0], ThemeChoice::Light, link)
}

#[test]
fn a_failed_request_is_shown_beside_what_was_free_with_the_setting_to_copy() {
    for (name, cause) in [("oom_fragmentation_2_6", "fragmentation"), ("oom_shortage_2_15", "too little memory")] {
        let path = snapshot(name);
        let profile = open::open_path(&path, &Progress::default()).expect("a sample");
        let analysis = ProfileAnalysis::new(&profile);
        let failure = analysis.caching[0].failure().expect("a request failed").clone();
        let harness = window(&[&path], Some("failure"));
        assert!(says(&harness, &format!("Out of memory: {cause}")), "{:?}", words(&harness));
        assert!(says(&harness, &failure.sentence()));
        let short = |bytes: u64| Bytes(bytes).short();
        for words in [
            format!("asked of the driver {}", short(failure.segment)),
            format!("free in the driver {}", short(failure.device_free)),
            format!("the largest hole of it {}", short(failure.largest_free_same_pool)),
            format!("{} asked for in one piece", short(failure.segment)),
        ] {
            assert!(says(&harness, &words), "{words}: {:?}", self::words(&harness));
        }
        let is_copied = says(&harness, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
        assert_eq!(is_copied, cause == "fragmentation", "{name}");
    }
    assert!(window(&[&snapshot("train_2_15")], None).query_by_role_and_label(Role::Tab, "Failure").is_none());
}

#[test]
fn a_message_and_the_snapshot_it_is_about_are_one_entry_in_either_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("train.log");
    std::fs::write(&text, MESSAGE).expect("written");
    let other = folder.path().join("other.log");
    std::fs::write(&other, MESSAGE.replace("256.00", "300.00")).expect("written");
    let snapshot = snapshot("oom_fragmentation_2_6");
    for order in [[&snapshot, &text], [&text, &snapshot]] {
        let mut harness = window(&[], None);
        for path in order {
            harness.state_mut().open(Target::Path(path.clone()));
            harness.run_ok();
        }
        assert_eq!(harness.state().files.entries.len(), 1, "{:?}", words(&harness));
        let open = harness.state().files.current().expect("open");
        assert_eq!(open.shared.view, "failure");
        // The capacity is known from the message alone, the cause from the snapshot alone.
        assert!(says(&harness, "Out of memory: fragmentation") && says(&harness, "Capacity"), "{:?}", words(&harness));
    }
    let harness = window(&[&snapshot, &other], None);
    assert_eq!(harness.state().files.entries.len(), 2, "another request");
}

#[test]
fn the_message_of_a_run_is_joined_to_its_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(snapshot("oom_fragmentation_2_6"), folder.path().join("torch_memory-7-oom.pickle.gz"))
        .expect("copied");
    std::fs::write(folder.path().join("error.txt"), MESSAGE).expect("written");
    let listed = open::Collection::open(folder.path(), &Progress::default()).expect("listed");
    let row = listed.entries.iter().position(|entry| entry.file.contains("pickle")).expect("the snapshot");
    let joined = listed.open_entry(row, &Progress::default()).expect("decoded");
    assert_eq!(joined.failures.len(), 1);
    assert!(joined.caching.is_some());
    std::fs::write(folder.path().join("error.txt"), MESSAGE.replace("256.00", "300.00")).expect("written");
    let listed = open::Collection::open(folder.path(), &Progress::default()).expect("listed");
    let other = listed.open_entry(row, &Progress::default()).expect("decoded");
    assert!(other.failures.is_empty(), "another request");
}

#[test]
fn pieces_of_the_map_are_named() {
    let harness = window(&[&snapshot("oom_fragmentation_2_6")], Some("failure"));
    let images: Vec<String> =
        harness.query_all_by_role(Role::Image).filter_map(|node| node.accesskit_node().label()).collect();
    assert!(images.iter().any(|words| words.starts_with("44 segments with 1.14 GiB free")), "{images:?}");
    let listed =
        gui::painted(&harness).into_iter().any(|text| text.words.contains("blocks of 16.0 MiB each hold back"));
    assert!(listed, "{:?}", words(&harness));
}

/// A message of a card that something else has filled.
const OTHERS: &str = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity \
                      of 16.00 GiB of which 0 bytes is free. Of the allocated memory 40.00 MiB is allocated by PyTorch, \
                      and 24.00 MiB is reserved by PyTorch but unallocated.\n";

#[test]
fn what_others_hold_on_the_card_is_said_first_drawn_and_advised_on_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("train.log");
    std::fs::write(&log, OTHERS).expect("written");
    let harness = window(&[&log], Some("failure"));
    let said = words(&harness);
    assert!(says(&harness, "15.94 GiB of 16 GiB are held outside PyTorch"), "{said:?}");
    assert!(says(&harness, "outside PyTorch: 15.9 GiB"), "a part of the bar: {said:?}");
    let texts = gui::painted(&harness);
    let place = |part: &str| texts.iter().find(|text| text.words.contains(part)).map(|text| text.place);
    let (others, batch) = (place("Something outside PyTorch"), place("A smaller batch"));
    assert!(others.zip(batch).is_some_and(|(others, batch)| others.top() < batch.top()), "{said:?}");
    // What is free ends at the capacity, so the request begins there.
    let (request, capacity) = (place("requested 96.0 MiB").expect("it"), place("capacity 16 GiB").expect("it"));
    assert!(request.right() >= capacity.right() - 1.0, "{request:?} {capacity:?}");
    let profile = open::open_path(&log, &Progress::default()).expect("a message");
    let analysis = ProfileAnalysis::new(&profile);
    let report = report::build(&[(&profile, &analysis)], &[], &report::Options::default());
    let text = report::write(&report, Format::Text);
    for part in ["15.94 GiB of 16 GiB are held outside PyTorch", "rocm-smi --showpids"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut lines = text.lines().map(str::trim);
    assert!(lines.any(|line| line.starts_with("outside PyTorch ") && line.ends_with("15.9 GiB")), "a part: {text}");
}

#[test]
fn details_are_in_units_that_can_be_read_out_with_all_digits_beside_them() {
    let path = snapshot("oom_shortage_2_15");
    let profile = open::open_path(&path, &Progress::default()).expect("a sample");
    let peak = Bytes(ProfileAnalysis::new(&profile).caching[0].replay.peaks.allocated.bytes);
    let link = DeepLink { view: Some("allocator".to_owned()), ..DeepLink::default() };
    let harness = gui::window(&[&path], [1440.0, 900.0], ThemeChoice::Light, link);
    let spoken = format!("Peak allocated {}, {}", peak.short(), peak.exact());
    assert!(says(&harness, &spoken), "{spoken}: {:?}", words(&harness));
    let painted = gui::painted(&harness);
    let name = painted.iter().find(|text| text.words == "Peak allocated").expect("the name").place;
    for number in [peak.short(), peak.exact()] {
        let is_beside = |text: &&gui::Painted| (text.place.center().y - name.center().y).abs() < 3.0;
        assert!(painted.iter().filter(is_beside).any(|text| text.words == number), "{number}");
    }
}

#[test]
fn the_list_of_files_tells_the_peak_that_the_views_tell() {
    let path = snapshot("oom_shortage_2_15");
    let profile = open::open_path(&path, &Progress::default()).expect("a sample");
    let peak = Bytes(ProfileAnalysis::new(&profile).caching[0].replay.peaks.allocated.bytes).short();
    let harness = window(&[&path], Some("overview"));
    let name = harness.state().files.entries[0].name.clone();
    let row = harness.get_by_label(&format!("File {name}")).rect();
    let texts = gui::painted(&harness);
    let told: Vec<&str> =
        texts.iter().filter(|text| row.contains(text.place.center())).map(|text| text.words.as_str()).collect();
    assert!(told.contains(&peak.as_str()), "{peak}: {told:?}");
    assert!(texts.iter().any(|text| text.words == format!("peak {peak}")), "the curve: {:?}", words(&harness));
}

#[test]
fn the_limit_that_a_failed_request_tells_is_drawn_and_the_numbers_say_what_they_count() {
    let path = snapshot("oom_shortage_2_15");
    let profile = open::open_path(&path, &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    let device = &analysis.caching[0];
    let failure = device.failure().expect("a request failed");
    let limit = device.limit().expect("it tells the limit");
    assert_eq!(limit, failure.totals.reserved + failure.device_free);
    assert!(device.replay.peaks.reserved.bytes <= limit);
    let limit = highwater::model::UnitSystem::Binary.capacity(Bytes(limit));
    for view in ["overview", "allocator"] {
        let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
        let harness = gui::window(&[&path], [1440.0, 900.0], ThemeChoice::Light, link);
        let painted = gui::painted(&harness);
        let stands = |words: &str| painted.iter().any(|text| text.words == words);
        assert!(stands("limit, at least") && stands(&limit), "{view}");
        assert!(says(&harness, "reserved and free in the driver when it failed"), "{view}");
        assert!(stands("allocated"), "the row of the file says what its number is");
    }
    assert!(analysis.caching.iter().all(|device| device.failure().is_some()));
    let other = open::open_path(&snapshot("train_2_0"), &Progress::default()).expect("a sample");
    assert_eq!(ProfileAnalysis::new(&other).caching[0].limit(), None, "nothing failed");
}
