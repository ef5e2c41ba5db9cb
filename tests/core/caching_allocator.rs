//! PyTorch's snapshots: the replay equals PyTorch's own counters and an independent implementation to the byte, and
//! hostile pickles are refused.

use std::fs;
use std::path::Path;

use highwater::analysis::ProfileAnalysis;
use highwater::export::report::{self, Format, Options};
use highwater::model::Profile;
use highwater::open;
use highwater::source::{Input, Progress};
use serde_json::Value;

use crate::common::{self, Files};

/// The JSON report's part on the allocator.
pub fn reported(profile: &Profile) -> Value {
    let analysis = ProfileAnalysis::new(profile);
    let report = report::build(&[(profile, &analysis)], &[], &Options::default());
    let mut json: Value = serde_json::from_str(&report::write(&report, Format::Json)).expect("JSON");
    json["profiles"][0]["caching_allocators"].take()
}

/// What the numbers count as gradients, temporaries or others, where the report has a category for what libraries work in.
const WITH_WORKSPACES: [&str; 4] = ["gradient", "backward_temp", "other", "library_workspace"];

/// A report's device with workspaces counted as the numbers count them: by hand, as others or as gradients of threads
/// without frames.
fn without_workspaces(found: &Value, expected: &Value) -> Value {
    let mut found = found.clone();
    let sum = |value: &Value| WITH_WORKSPACES.iter().filter_map(|name| value[name].as_u64()).sum::<u64>();
    let (ours, theirs) = (&found["by_category_at_peak"], &expected["by_category_at_peak"]);
    if ours["library_workspace"].is_u64() {
        assert_eq!(sum(ours), sum(theirs), "{ours} {theirs}");
        for name in WITH_WORKSPACES {
            found["by_category_at_peak"][name] = theirs[name].clone();
        }
    }
    found
}

/// Checks that everything expected is there; what else is there does not matter.
fn check(expected: &Value, found: &Value, place: &str) {
    match expected {
        Value::Object(fields) => {
            for (name, value) in fields {
                check(value, &found[name], &format!("{place}.{name}"));
            }
        }
        value => assert_eq!(found, value, "{place}"),
    }
}

fn expected_of(path: &Path) -> Value {
    let name = path.display().to_string();
    let stem = name.trim_end_matches(".gz").trim_end_matches(".pickle");
    let beside = ["numbers", "expected"].map(|end| format!("{stem}.{end}.json"));
    let found = beside.iter().find_map(|path| fs::read_to_string(path).ok());
    let text = found.unwrap_or_else(|| panic!("{name}: no numbers beside it"));
    serde_json::from_str(&text).expect("JSON")
}

/// PyTorch's counters, and what they are called in the report.
const COUNTERS: &[(&str, &str)] = &[
    ("allocated_bytes.all.current", "/at_end/allocated_bytes"),
    ("active_bytes.all.current", "/at_end/active_bytes"),
    ("requested_bytes.all.current", "/at_end/requested_bytes"),
    ("reserved_bytes.all.current", "/at_end/reserved_bytes"),
    ("allocated_bytes.all.peak", "/peak/allocated/bytes"),
    ("active_bytes.all.peak", "/peak/active/bytes"),
    ("requested_bytes.all.peak", "/peak/requested/bytes"),
    ("reserved_bytes.all.peak", "/peak/reserved/bytes"),
];

/// Compares every snapshot that has expected numbers beside it, key by key; returns how many there were.
pub fn compare_with_expected(files: &Files) -> usize {
    let has_numbers = |name: &str| common::ends_with(name, ".pickle");
    let mut count = 0;
    for path in files.named(has_numbers) {
        if path.components().any(|part| part.as_os_str() == "hostile") {
            continue;
        }
        let profile = open::open_path(&path, &Progress::default()).expect("opens");
        let found = reported(&profile);
        let expected = expected_of(&path);
        let name = common::name(&path);
        for (device, expected) in expected["ours"]["devices"].as_object().expect("devices") {
            let number: u64 = device.parse().expect("a number");
            let list = found.as_array().expect("a list");
            let found = list.iter().find(|found| found["device"] == number).expect("the device");
            check(expected, &without_workspaces(found, expected), &format!("{name} cuda:{device}"));
        }
        for (device, counters) in expected["torch_counters"].as_object().into_iter().flatten() {
            let list = found.as_array().expect("a list");
            let number: u64 = device.parse().expect("a number");
            let Some(found) = list.iter().find(|found| found["device"] == number) else { continue };
            for (counter, pointer) in COUNTERS {
                // Without the beginning of the history its peak is unknown.
                if counter.contains("current") || found["before"]["blocks"] == 0 {
                    assert_eq!(found.pointer(pointer), counters.get(counter), "{name} cuda:{device} {counter}");
                }
            }
        }
        count += 1;
    }
    count
}

#[test]
fn the_replay_equals_pytorch_to_the_byte() {
    assert_eq!(compare_with_expected(&Files::of_project()), 10);
}

#[test]
fn the_sentence_on_a_failed_request_adds_up() {
    for name in ["oom_fragmentation_2_6", "oom_shortage_2_15"] {
        let path = Files::of_project().ending(&format!("torch/{name}.pickle"));
        let profile = open::open_path(&path, &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        let failure = analysis.caching[0].failure().expect("a request failed");
        let short = |bytes: u64| highwater::model::Bytes(bytes).short();
        let parts = [
            (failure.device_free, "the driver had {} free"),
            (failure.free_same_pool, "{} were cached for its pool and size"),
            (failure.free_other_class, "{} for other sizes"),
            (failure.short_by, "{} are missing"),
        ];
        let sentence = failure.sentence();
        for (bytes, words) in parts {
            assert!(bytes == 0 || sentence.contains(&words.replace("{}", &short(bytes))), "{words}: {sentence}");
        }
        let sum: u64 = parts.iter().map(|part| part.0).sum();
        assert_eq!(sum.max(failure.segment), if failure.short_by > 0 { failure.segment } else { sum }, "{sentence}");
        let all = format!("{} free in the cache (all pools and sizes)", short(failure.inactive()));
        assert!(failure.headline().contains(&all), "{}", failure.headline());
    }
}

#[test]
fn every_failure_says_its_cause_in_text_and_markdown() {
    for (name, words) in [
        ("oom_fragmentation_2_6", ["Cause: fragmentation", "256 MiB requested", "74.0 MiB free in the driver"]),
        ("oom_shortage_2_15", ["Cause: too little memory", "requested", "30.9 MiB are missing"]),
    ] {
        let path = Files::of_project().ending(&format!("torch/{name}.pickle"));
        let profile = open::open_path(&path, &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        let report = report::build(&[(&profile, &analysis)], &[], &Options::default());
        for format in [Format::Text, Format::Markdown] {
            let text = report::write(&report, format);
            for words in words {
                assert!(text.contains(words), "{name}: {words} not in {text}");
            }
        }
    }
}

#[test]
fn a_leak_names_the_line_that_allocates_it() {
    let path = Files::of_project().ending("torch/leak_2_6.pickle");
    let found = reported(&open::open_path(&path, &Progress::default()).expect("opens"));
    let leak = &found[0]["leak_by_stack"][0];
    assert_eq!(leak["bytes_per_step"], 16_777_216);
    assert!(leak["at"].as_str().is_some_and(|at| at.contains("train.py")), "{leak}");
}

fn open_bytes(bytes: Vec<u8>) -> Result<Profile, String> {
    let input = Input::from_bytes("unknown.bin", bytes.into()).map_err(|error| error.to_string())?;
    open::open_input(&input, &Progress::default()).map_err(|error| error.to_string())
}

#[test]
fn a_cut_file_shows_what_it_has() {
    let path = Files::of_project().ending("torch/cpp_2_15.pickle");
    let bytes = common::bytes(&path).to_vec();
    let whole = open_bytes(bytes.clone()).expect("whole").caching.expect("a snapshot").events.len();
    let mut seen = 0;
    for part in 6..10 {
        let profile = open_bytes(bytes[..bytes.len() * part / 10].to_vec()).expect("a part");
        let source = &profile.sources[0];
        assert_eq!(source.cut_at, Some((bytes.len() * part / 10) as u64));
        let snapshot = profile.caching.as_ref().expect("a snapshot");
        assert!(snapshot.events.len() > seen && snapshot.events.len() < whole);
        seen = snapshot.events.len();
        assert_eq!(reported(&profile)[0]["problems"].as_array().map(Vec::len), Some(0));
    }
}

/// Pickles that are refused, and what is said about them.
const REFUSED: &[(&[u8], &str)] = &[
    (b"\x80\x02}q\x00cos\nsystem\nq\x01.", "would run code (`os.system`)"),
    (b"\x80\x04}\x94\x8c\x02os\x94\x8c\x06system\x94\x93.", "would run code (`os.system`)"),
    (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x00.", "a checkpoint"),
    (b"\x80\x04Pabc\n.", "PERSID"),
    (b"\x80\x02\x82\x01.", "an extension"),
    (b"\x80\x04\x8d\x00\x00\x00\x00\x00\x00\x00@abc.", "a text of 4611686018427387904 bytes"),
    (b"\x80\x02}r\xff\xff\xff\xff.", "value 4294967295 is remembered"),
    (b"\x80\x02]h\x05a.", "value 5 was never remembered"),
    (b"\x80\x04]\x94(h\x00e.", "inside itself"),
    (b"\x80\x04}u.", "a mark is missing"),
    (b"\x80\x09}.", "protocol 9"),
    (b"\x80\x04}\x94(\x8c\x01a\x94K\x01u.", "without `segments`"),
    (b"\x80", "ends too early"),
];

#[test]
fn hostile_pickles_are_refused_with_a_reason() {
    for (bytes, words) in REFUSED {
        let error = open_bytes(bytes.to_vec()).expect_err(words);
        assert!(error.contains(words), "{words}: {error}");
    }
    // Lists inside each other, and lists that hold the one before twice.
    let deep = [&b"\x80\x04"[..], &b"]".repeat(200_000), &b"a".repeat(199_999), b"."].concat();
    assert!(open_bytes(deep).is_err());
    let mut doubling = b"\x80\x04]\x94".to_vec();
    for row in 0..40 {
        doubling.extend_from_slice(&[b']', 0x94, b'(', b'h', row, b'h', row, b'e']);
    }
    doubling.push(b'.');
    assert!(open_bytes(doubling).is_err());
}

/// Rules that must find something in a sample, and rules that must not.
const RULES: &[(&str, &[&str], &[&str])] = &[
    ("oom_fragmentation_2_6", &["torch_expandable_segments"], &["torch_leak", "torch_checkpoint"]),
    ("oom_shortage_2_15", &["torch_checkpoint", "torch_logits"], &["torch_expandable_segments", "torch_leak"]),
    ("leak_2_6", &["torch_leak"], &["torch_expandable_segments", "torch_set_to_none"]),
    (
        "cpp_2_15",
        &["torch_logits"],
        &["torch_checkpoint", "torch_leak", "torch_record_earlier", "torch_optimizer_foreach"],
    ),
    ("ring_2_6", &["torch_record_earlier"], &["torch_leak"]),
    ("expandable_2_15", &[], &["torch_expandable_segments", "torch_other_process", "torch_logits"]),
];

#[test]
fn advice_follows_from_the_data() {
    for (name, fires, silent) in RULES {
        let path = Files::of_project().ending(&format!("torch/{name}.pickle"));
        let profile = open::open_path(&path, &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        let found = highwater::advisor::findings(&profile, &analysis);
        let rules: Vec<&str> = found.iter().map(|finding| finding.rule).collect();
        for rule in *fires {
            assert!(rules.contains(rule), "{name}: {rule} is missing in {rules:?}");
        }
        for rule in *silent {
            assert!(!rules.contains(rule), "{name}: {rule} in {rules:?}");
        }
        for finding in &found {
            assert!(!finding.title.is_empty() && !finding.why.is_empty() && !finding.advice.is_empty(), "{name}");
            assert!(!finding.reference.is_empty(), "{name}: {}", finding.rule);
        }
    }
}

#[test]
fn a_failed_request_fails_the_check() {
    use highwater::export::diff::Side;
    use highwater::export::gate::{Gate, LimitOutcome, Limits};
    use highwater::model::Bytes;
    for (name, limits, outcome) in [
        ("oom_fragmentation_2_6", Limits::default(), LimitOutcome::Failed),
        ("leak_2_6", Limits::default(), LimitOutcome::Passed),
        ("leak_2_6", Limits { max_peak: Some(Bytes(225_010_175)), ..Limits::default() }, LimitOutcome::Failed),
        ("leak_2_6", Limits { max_peak: Some(Bytes(225_010_176)), ..Limits::default() }, LimitOutcome::Passed),
        ("leak_2_6", Limits { max_of_capacity: Some(0.9), ..Limits::default() }, LimitOutcome::Unknown),
    ] {
        let path = Files::of_project().ending(&format!("torch/{name}.pickle"));
        let profile = open::open_path(&path, &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        let mut gate = Gate::default();
        assert!(gate.profile(name, Side { profile: &profile, analysis: &analysis, program: 0 }, None, &limits));
        assert_eq!(gate.outcome(), outcome, "{name}: {:?}", gate.checks);
    }
}

#[test]
fn the_limit_is_what_a_failed_request_could_have_had() {
    for name in ["oom_shortage_2_15", "oom_fragmentation_2_6"] {
        let path = common::samples().join(format!("torch/{name}.pickle.gz"));
        let profile = open::open_path(&path, &Progress::default()).expect("a sample");
        let device = reported(&profile)[0].take();
        let bytes = |of: &Value, field: &str| of[field].as_u64().expect("bytes");
        let failed = device["ooms"].as_array().expect("failed requests");
        let could_have = |failed: &Value| bytes(failed, "reserved_bytes") + bytes(failed, "device_free_bytes");
        let most = failed.iter().map(could_have).max().expect("one failed");
        assert_eq!(bytes(&device, "limit_at_least_bytes"), most, "{name}");
        assert!(bytes(&device["peak"]["reserved"], "bytes") <= most, "{name}");
        let analysis = ProfileAnalysis::new(&profile);
        let report = report::build(&[(&profile, &analysis)], &[], &Options::default());
        assert!(report::write(&report, Format::Text).contains("limit, at least"), "{name}");
    }
}
