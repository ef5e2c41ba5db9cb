//! Every number with a unit in the window follows the chosen units and is in the report: of every sample, in every view.

use std::collections::BTreeSet;
use std::path::Path;

use egui_kittest::Harness;
use highwater::analysis::ProfileAnalysis;
use highwater::export::report;
use highwater::model::{Bytes, UnitSystem};
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::{Options, ThemeChoice};
use highwater::ui::view::VIEWS;
use regex::Regex;
use serde_json::Value;

use crate::common;
use crate::gui::{self, painted, words};

fn opened(path: &Path, units: UnitSystem) -> (Harness<'static, App>, Vec<(&'static str, &'static str)>) {
    let options = Options { theme: ThemeChoice::Light, units, ..Options::default() };
    let harness = gui::window_with(&[path], [1600.0, 1000.0], options, DeepLink::default());
    let document = &harness.state().files.current().expect("open").document;
    let views = VIEWS.shown_for(document).map(|view| (view.id, view.title)).collect();
    (harness, views)
}

fn show(harness: &mut Harness<'_, App>, view: &'static str) {
    harness.state_mut().files.current_mut().expect("open").shared.show_view(view);
    harness.run_ok();
}

fn sizes(text: &str, pattern: &Regex) -> Vec<String> {
    pattern.find_iter(text).map(|found| found.as_str().to_owned()).collect()
}

/// Sizes of three digits, as sums and parts are written; numbers of axes and capacities are round.
fn three_digits() -> Regex {
    Regex::new(r"\b(?:\d\.\d\d|\d\d\.\d|\d{3}) (?:KiB|MiB|GiB|TiB)\b").expect("a pattern")
}

#[test]
fn in_decimal_units_no_binary_one_is_left() {
    let mut mixed = BTreeSet::new();
    for path in common::sample_profiles() {
        let (mut harness, views) = opened(&path, UnitSystem::Decimal);
        for (view, title) in views {
            // The report is a text of its own, and a failure quotes what was printed.
            if ["report", "failure"].contains(&view) {
                continue;
            }
            // An allocator's bins are powers of two, and its message is quoted; a filter is written as it is read.
            let is_fixed = |words: &str| view == "allocator" || words.contains("size>64MiB");
            show(&mut harness, view);
            for text in painted(&harness) {
                let is_binary = ["KiB", "MiB", "GiB", "TiB"].iter().any(|unit| text.words.contains(unit));
                if is_binary && !is_fixed(&text.words) {
                    mixed.insert(format!("{} {title}: {}", common::name(&path), text.words));
                }
            }
        }
    }
    assert!(mixed.is_empty(), "{} texts: {mixed:#?}", mixed.len());
}

fn bytes_in(value: &Value, found: &mut BTreeSet<u64>) {
    match value {
        Value::Number(number) => found.extend(number.as_f64().map(|number| number.abs() as u64)),
        Value::Array(list) => list.iter().for_each(|value| bytes_in(value, found)),
        Value::Object(map) => map.values().for_each(|value| bytes_in(value, found)),
        _ => {}
    }
}

/// All sizes of the report, written as the window writes them: numbers of its JSON and sentences of its text.
fn reported(path: &Path, pattern: &Regex) -> BTreeSet<String> {
    let profile = open::open_path(path, &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    let options = report::Options { top: 0, ..report::Options::default() };
    let report = report::build(&[(&profile, &analysis)], &[], &options);
    let json: Value = serde_json::from_str(&report::write(&report, report::Format::Json)).expect("JSON");
    let mut numbers = BTreeSet::new();
    bytes_in(&json, &mut numbers);
    let text = report::write(&report, report::Format::Text);
    let mut found: BTreeSet<String> = numbers.into_iter().map(|bytes| Bytes(bytes).short()).collect();
    found.extend(sizes(&text, pattern));
    // Equal buffers that are one row of Overview: the report lists each of them.
    for (row, program) in analysis.programs.iter().enumerate() {
        let scene = program.main_space().and_then(|space| analysis.scene(&profile, row, space.color));
        let groups = scene.iter().flat_map(|scene| scene.contributors().iter().map(|group| group.bytes.short()));
        found.extend(groups);
    }
    found.extend(sizes(&json.to_string(), pattern));
    found
}

/// What is in no plain report, and why: view, or all; words of the label; reason.
const OF_THE_WINDOW_ALONE: &[(&str, &str, &str)] = &[
    ("", "0 B to ", "the range of an axis"),
    ("", " shapes, ", "the ranges of two axes"),
    ("allocator", " free", "total less what is in use, both in the report"),
    ("allocator", " chunks in ", "total less what is in use, both in the report"),
    ("allocator", "0x", "one of the free blocks: the report lists them by size"),
    ("allocator", "Highest use ", "the allocator's own statistics: the report has those of the dump"),
    ("allocator", "Largest allocation ", "the allocator's own statistics: the report has those of the dump"),
    ("runtime", "Free ", "the capacity less what is in use, both in the report"),
    ("runtime", "step ", "of one step: the report says by how much the lowest use rises"),
    ("report", "0x", "the card beside it, as in Allocator"),
    ("report", "Highest use ", "the card beside it, as in Allocator"),
    ("report", "Largest allocation ", "the card beside it, as in Allocator"),
    ("report", "Free ", "the card beside it, as in Runtime"),
    ("report", "step ", "the card beside it, as in Runtime"),
    ("live", ".py:", "the sum of a frame: the report lists the stacks"),
    ("", "poplin::", "a variable of one tile: the report lists categories and tiles"),
    ("", "popops::", "a variable of one tile: the report lists categories and tiles"),
    ("", "above the mean", "of one tile: the report lists categories and tiles"),
    ("", "in total", "a list of one tile: the report lists categories and tiles"),
    ("overview", "Vertex state", "categories taken together"),
    ("overview", "Messages", "categories taken together"),
    ("overview", "Exchange code", "categories taken together"),
    ("overview", "\u{d7}", "equal buffers taken together: the report lists each"),
    ("treemap", "", "in the report with `--tree`"),
    ("padding", "Shape ", "each times its number, both in the report"),
    ("overview", "then ", "capacity less what the change of the finding needs"),
    ("overview", " more rows", "the rest of the list"),
    ("padding", "useful ", "the peak less its padding"),
    ("padding", "Dimension ", "the report has the padding of the whole shape"),
    ("padding", "layout ", "the peak then less the peak now"),
    ("padding", "dimension", "the report has the effect on each buffer"),
    ("whatif", "", "in the report with `--edit`"),
    ("", "Largest hole in the heap", "of one step: in the report with `--step`"),
    ("heatmap", "Heat map of ", "what is occupied, with holes: in the report with `--step`"),
];

#[test]
fn what_is_said_is_in_the_report() {
    let pattern = three_digits();
    let mut missing = BTreeSet::new();
    let mut all = 0;
    for path in common::sample_profiles() {
        let known = reported(&path, &pattern);
        let (mut harness, views) = opened(&path, UnitSystem::Binary);
        for (view, title) in views {
            show(&mut harness, view);
            for label in words(&harness) {
                if OF_THE_WINDOW_ALONE.iter().any(|(of, part, _)| [view, ""].contains(of) && label.contains(part)) {
                    continue;
                }
                for size in sizes(&label, &pattern) {
                    all += 1;
                    if !known.contains(&size) {
                        let short: String = label.chars().take(140).collect();
                        missing.insert(format!("{} {title}: '{size}' in '{short}'", common::name(&path)));
                    }
                }
            }
        }
    }
    assert!(all > 1000, "{all} numbers are said");
    assert!(missing.is_empty(), "{} of {all}: {missing:#?}", missing.len());
}
