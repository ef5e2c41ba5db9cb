//! Out-of-memory texts: every key of the expected files is in the report, in every wrapping, and a truncated text gives
//! no wrong number.

use highwater::model::MemorySpace;
use std::fs;
use std::path::{Path, PathBuf};

use highwater::analysis::ProfileAnalysis;
use highwater::export::report::{self, Format};
use highwater::open;
use highwater::source::{Input, Progress};
use serde_json::Value;

use crate::common;

/// A text, and what its report must contain.
pub struct OomText {
    path: PathBuf,
    text: Vec<u8>,
    expected: Value,
}

/// Every `NAME.txt` of a folder with its `NAME.expected.json`. One without is allowed only if the name says that a
/// compiler printed it (`gen_…`): its listing is checked by [`every_entry_is_listed`].
pub fn texts(folder: &Path) -> Vec<OomText> {
    let mut found = Vec::new();
    for path in text_files(folder) {
        let expected = path.with_extension("expected.json");
        if !expected.is_file() && name(&path).starts_with("gen_") {
            continue;
        }
        let json = fs::read_to_string(&expected).unwrap_or_else(|e| panic!("{}: {e}", expected.display()));
        let expected = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{}: {e}", expected.display()));
        found.push(OomText { text: fs::read(&path).expect("readable"), path, expected });
    }
    found
}

fn text_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "txt")).collect();
    assert!(!found.is_empty(), "no texts in {}", folder.display());
    found.sort();
    found
}

/// The texts of the project, in our own words.
fn own() -> Vec<OomText> {
    let found = texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oom_texts"));
    assert!(found.len() >= 28, "only {} texts", found.len());
    found
}

fn name(path: &Path) -> String {
    path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned()
}

fn failures(text: &[u8]) -> Vec<Value> {
    if text.is_empty() {
        return Vec::new();
    }
    let progress = Progress::default();
    let input = Input::from_bytes("run.log", text.to_vec().into()).expect("not empty");
    let profile = open::open_input(&input, &progress).expect("a text");
    let analysis = ProfileAnalysis::new(&profile);
    let report = report::build(&[(&profile, &analysis)], &[], &report::Options { top: 20, ..Default::default() });
    let json: Value = serde_json::from_str(&report::write(&report, Format::Json)).expect("JSON");
    // The other formats are written, too, to check that nothing panics.
    assert!(!report::write(&report, Format::Text).is_empty());
    assert!(!report::write(&report, Format::Markdown).is_empty());
    json["profiles"][0]["failures"].as_array().cloned().unwrap_or_default()
}

/// The parts of `expected` that are not in `actual`.
fn missing(expected: &Value, actual: &Value, place: &str, out: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, value) in expected {
                // `note` is a remark on the text for human readers.
                if key != "note" {
                    missing(value, actual.get(key).unwrap_or(&Value::Null), &format!("{place}.{key}"), out);
                }
            }
        }
        // Number of rows in a usage report.
        (Value::Array(expected), Value::Array(actual)) => {
            if expected.len() != actual.len() {
                out.push(format!("{place}: {} rows, expected {}", actual.len(), expected.len()));
            }
            for (i, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                missing(expected, actual, &format!("{place}[{i}]"), out);
            }
        }
        (expected, actual) if expected == actual => {}
        (expected, actual) => out.push(format!("{place}: {actual}, expected {expected}")),
    }
}

fn check(case: &OomText, text: &[u8], what: &str, wrong: &mut Vec<String>) {
    let OomText { path, expected, .. } = case;
    let found = failures(text);
    if expected["kind"] == "not_oom" {
        if !found.is_empty() {
            wrong.push(format!("{} {what}: {} failures in a text without any", name(path), found.len()));
        }
        return;
    }
    let best = found
        .iter()
        .map(|failure| {
            let mut out = Vec::new();
            missing(expected, failure, "", &mut out);
            out
        })
        .min_by_key(Vec::len)
        .unwrap_or_else(|| vec!["no failure found".to_owned()]);
    wrong.extend(best.into_iter().take(6).map(|line| format!("{} {what}: {line}", name(path))));
}

fn report_wrong(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

/// Checks that every expected key is in the report.
pub fn keys_are_reported(texts: &[OomText]) {
    let mut wrong = Vec::new();
    for case in texts {
        check(case, &case.text, "plain", &mut wrong);
    }
    report_wrong(&wrong);
}

#[test]
fn every_expected_key_is_in_the_report() {
    keys_are_reported(&own());
}

const PREFIXES: [&str; 15] = [
    "> ",
    "        ",
    "[rank0]: ",
    "(EngineCore_DP0 pid=4242) ",
    "(EngineCore pid=1) ERROR 06-03 01:02:03 [core.py:1] ",
    "E0118 22:42:45.712345     123 pjrt_client.cc:1034] ",
    "2024-05-28T07:02:44.349554123Z stderr F ",
    "2024-05-28 07:02:44,349 - trainer - ERROR - ",
    "trainer-worker-0  | ",
    "Nov 21 16:01:47 node7 python3[812]: ",
    "[2024-05-28 07:02:44,349][__main__][ERROR] - ",
    "[1,mpirank:3,algo-1]<stderr>:",
    "<3>[  512.123456] ",
    "2024-05-28T07:02:44.349Z\ti-0abc\t",
    "\x1b[36m(RayTrainWorker pid=4012)\x1b[0m ",
];

fn each_line(text: &[u8], change: impl Fn(&str) -> String) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    text.split_inclusive('\n').map(change).collect::<String>().into_bytes()
}

/// Checks that log prefixes, colours, quoting and surrounding lines change nothing.
pub fn wrapped_texts_say_the_same(texts: &[OomText]) {
    let mut wrong = Vec::new();
    for case in texts {
        let text = &case.text;
        for prefix in PREFIXES {
            check(case, &each_line(text, |line| format!("{prefix}{line}")), prefix, &mut wrong);
        }
        check(case, &each_line(text, |line| format!("> > {line}")), "quoted twice", &mut wrong);
        check(case, &each_line(text, |line| line.replace('\n', "\r\n")), "CRLF", &mut wrong);
        let colored = |line: &str| format!("\x1b[1;31m{}\x1b[0m\n", line.trim_end_matches('\n'));
        check(case, &each_line(text, colored), "ANSI", &mut wrong);
        let words = |line: &str| line.replace(' ', "\x1b[0m \x1b[33m");
        check(case, &each_line(text, words), "ANSI in each word", &mut wrong);
        let mut around = "step 17 loss 2.31 grad_norm 0.4 tokens/s 120345\n".repeat(2000).into_bytes();
        around.extend_from_slice(text);
        around.push(b'\n');
        around.extend_from_slice("step 18 loss 2.30 grad_norm 0.4 tokens/s 120345\n".repeat(2000).as_bytes());
        check(case, &around, "inside a log", &mut wrong);
    }
    report_wrong(&wrong);
}

#[test]
fn wrappings_change_nothing() {
    wrapped_texts_say_the_same(&own());
}

/// Checks that every number and size in the failure of a truncated text equals that of the whole text.
fn contradiction(whole: &Value, cut: &Value, place: &str, out: &mut Vec<String>) {
    match (whole, cut) {
        (_, Value::Null) => {}
        (Value::Object(whole), Value::Object(cut)) => {
            for (key, value) in cut {
                // Derived text for readers is not a number of the message.
                if matches!(
                    key.as_str(),
                    "kind"
                        | "kind_title"
                        | "explanation"
                        | "message"
                        | "truncated"
                        | "error_code"
                        | "error_code_printed"
                        | "error_page"
                        | "chunk_count"
                        | "count"
                        | "last_line"
                        | "last_offset"
                        | "processes"
                ) {
                    continue;
                }
                let other = whole.get(key).unwrap_or(&Value::Null);
                // The only line of an entry may be truncated.
                if key != "cut_allocations" {
                    contradiction(other, value, &format!("{place}.{key}"), out);
                }
            }
        }
        (Value::Array(whole), Value::Array(cut)) => {
            if cut.len() > whole.len() {
                out.push(format!("{place}: {} rows of {}", cut.len(), whole.len()));
            }
            for (i, (whole, cut)) in whole.iter().zip(cut).enumerate() {
                contradiction(whole, cut, &format!("{place}[{i}]"), out);
            }
        }
        (whole, cut) if whole == cut => {}
        (whole, cut) => out.push(format!("{place}: {cut}, in the whole text {whole}")),
    }
}

/// Checks that a truncated text gives no number that the whole text does not give.
pub fn cut_texts_do_not_contradict(texts: &[OomText]) {
    let mut wrong = Vec::new();
    for OomText { path, text, .. } in texts {
        let whole = failures(text);
        for end in (97..text.len()).step_by(97) {
            for (i, failure) in failures(&text[..end]).iter().enumerate() {
                let mut out = Vec::new();
                match whole.get(i) {
                    Some(whole) => contradiction(whole, failure, "", &mut out),
                    None => out.push("a failure the whole text does not have".to_owned()),
                }
                wrong.extend(out.into_iter().take(4).map(|line| format!("{} cut at {end}: {line}", name(path))));
            }
        }
    }
    report_wrong(&wrong);
}

#[test]
fn a_cut_text_gives_no_wrong_number() {
    cut_texts_do_not_contradict(&own());
}

/// Checks that every entry in a compiler's listing is a row with all its fields; returns the number of rows.
pub fn every_entry_is_listed(listings: &[PathBuf]) -> usize {
    let mut count = 0;
    for path in listings {
        let text = fs::read_to_string(path).expect("readable");
        let entries = text.lines().filter(|line| line.contains(". Size: ")).count();
        let found = failures(text.as_bytes());
        let rows = found[0]["allocations"].as_array().expect("rows");
        assert_eq!(rows.len(), entries, "{}", name(path));
        for row in rows {
            for key in ["number", "size_bytes", "shape", "unpadded_bytes", "label", "label_head", "allocation_type"] {
                assert!(!row[key].is_null(), "{} {key}: {row}", name(path));
            }
            let is_tuple = row["shape"].as_str().is_some_and(|shape| shape.starts_with('('));
            assert!(is_tuple || (row["layout"].is_array() && row["tiles"].is_array()), "{}: {row}", name(path));
        }
        let operators = text.lines().filter(|line| line.trim_start().starts_with("Operator: op_name=")).count();
        assert_eq!(rows.iter().filter(|row| row["op_name"].is_string()).count(), operators, "{}", name(path));
        count += rows.len();
    }
    count
}

/// The listings in a folder that were printed by libtpu itself.
pub fn printed_listings(folder: &Path) -> Vec<PathBuf> {
    text_files(folder).into_iter().filter(|path| name(path).starts_with("gen_tpu_hbm_listing")).collect()
}

#[test]
fn printed_listings_have_every_entry() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oom_texts");
    assert!(every_entry_is_listed(&printed_listings(&folder)) >= 9);
}

#[test]
fn a_message_beside_a_dump_is_the_best_evidence() {
    let profile = open::open_path(&common::sample_program("v5e_pad_cloud_oom"), &Progress::default()).expect("a dump");
    assert_eq!(profile.failures.len(), 1);
    let capacity = profile.device.capacity(MemorySpace::HBM).expect("a capacity");
    assert!(capacity.evidence.contains("out-of-memory message"), "{}", capacity.evidence);
    assert_eq!(capacity.bytes.0, 16_911_433_728);
}

/// `tests/oom_sentences.txt`: a line `@ KIND KEY=VALUE…`, then the message; `@ none` for text that is not a failure.
#[test]
fn every_kind_of_sentence_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oom_sentences.txt");
    let text = fs::read_to_string(&path).expect("the sentences");
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in text.trim_start_matches("@ ").split("\n@ ").filter(|case| !case.is_empty()) {
        count += 1;
        let (head, message) = case.split_once('\n').expect("a message below its head");
        let message = format!("{}\n", message.trim_end());
        let mut words = head.split_whitespace();
        let kind = words.next().expect("a kind");
        let found = failures(message.as_bytes());
        if kind == "none" {
            wrong.extend(found.first().map(|failure| format!("no failure, read as {}: {message}", failure["kind"])));
            continue;
        }
        let [failure] = &found[..] else {
            wrong.push(format!("{kind}: {} failures in {message}", found.len()));
            continue;
        };
        let expected = words.filter_map(|word| word.split_once('=')).chain([("kind", kind)]);
        for (key, value) in expected {
            let actual = failure[key].as_str().map_or_else(|| failure[key].to_string(), ToOwned::to_owned);
            if actual != value {
                wrong.push(format!("{kind} {key}: {actual}, expected {value}: {message}"));
            }
        }
    }
    assert!(count >= 112, "only {count} sentences");
    report_wrong(&wrong);
}
