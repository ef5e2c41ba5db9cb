//! Equal names have equal values: every sample is opened in every view, every size is read by its accessible label, and
//! what one view calls `Peak` must be the same number of bytes in every other view, in tooltips and in the report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use highwater::analysis::ProfileAnalysis;
use highwater::export::report;
use highwater::model::{Bytes, parse_size};
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::DeepLink;
use highwater::ui::session::ThemeChoice;
use highwater::ui::view::VIEWS;
use regex::Regex;
use serde_json::Value;

use crate::common;
use crate::gui::{self, words};

/// Names whose meaning depends on the context, and why.
const LOCAL: &[(&str, &str)] = &[
    ("At the peak", "rows of What if: each names its own group"),
    ("Bytes", "of whatever is selected"),
    ("Padding", "a row of Details is of the step, the map's of the shape"),
    ("Size", "of whatever row it stands in"),
];

/// (name, size as written) of a label such as `Name 1.25 GiB`.
fn readings(label: &str, pattern: &Regex) -> Vec<(String, String)> {
    let found = pattern.captures_iter(label);
    found.map(|parts| (parts[1].trim().to_owned(), parts[2].to_owned())).collect()
}

/// Whether two sizes agree to the precision of the coarser one.
fn agree(a: &str, b: &str) -> bool {
    let of = |text: &str| parse_size(&text.replace(',', "")).map(|bytes| bytes.0 as f64);
    match (of(a), of(b)) {
        (Ok(a), Ok(b)) => (a - b).abs() <= 0.006 * a.max(b),
        _ => a == b,
    }
}

fn reported(path: &Path) -> BTreeMap<&'static str, Bytes> {
    let profile = open::open_path(path, &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    let report = report::build(&[(&profile, &analysis)], &[], &report::Options::default());
    let json: Value = serde_json::from_str(&report::write(&report, report::Format::Json)).expect("JSON");
    let profile = &json["profiles"][0];
    let main = analysis.programs.first().and_then(|program| program.main_space()).map(|space| space.color.0);
    let spaces = profile["programs"][0]["spaces"].as_array().cloned().unwrap_or_default();
    let space = spaces.iter().find(|space| Some(space["colour"].as_i64().unwrap_or(-1)) == main);
    let of = |value: Option<&Value>| value.and_then(Value::as_u64).map(Bytes);
    let space = |key: &str| of(space.map(|space| &space[key]));
    let tiles = |key: &str| of(Some(&profile["tiles"][key]));
    let named = [
        ("Peak", space("reserved_peak_bytes").or(space("peak_bytes"))),
        ("Padding at the peak", space("padding_at_peak_bytes")),
        ("Fragmentation", space("fragmentation_bytes")),
        ("Arguments", space("parameter_bytes")),
        ("Outputs", space("output_bytes")),
        ("All tiles", tiles("total_including_gaps_bytes").or(tiles("total_bytes"))),
        ("Always live", tiles("always_live_bytes")),
    ];
    named.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))).collect()
}

/// Programs, and profiles without a program: an IPU, allocators, traces.
fn samples() -> Vec<std::path::PathBuf> {
    let others = ["ipu_fits.json", "ipu_over.cbor", "gpu_training.xplane.pb", "gpu_0_bfc.memory_dump"];
    let files = common::Files::of_project();
    common::sample_programs().into_iter().chain(others.map(|name| files.ending(name))).collect()
}

#[test]
fn every_view_and_the_report_give_a_name_one_value() {
    let pattern =
        Regex::new(r"(?:^|[.;] )([A-Z][A-Za-z ,\-]*?) (\d[\d,.]* (?:B|KiB|MiB|GiB|TiB))\b").expect("a pattern");
    let mut contradictions = Vec::new();
    let mut compared = 0;
    for path in samples() {
        let mut said: BTreeMap<String, BTreeSet<(String, &str)>> = BTreeMap::new();
        let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
        let views: Vec<(&str, &str)> = {
            let document = &harness.state().files.current().expect("open").document;
            VIEWS.shown_for(document).map(|view| (view.id, view.title)).collect()
        };
        for (id, title) in views {
            let open = harness.state_mut().files.current_mut().expect("open");
            open.shared.show_view(id);
            harness.run_ok();
            for label in words(&harness) {
                for (name, value) in readings(&label, &pattern) {
                    said.entry(name).or_default().insert((value, title));
                }
            }
        }
        for (name, bytes) in reported(&path) {
            if let Some(shown) = said.get(name) {
                compared += 1;
                for (value, view) in shown {
                    if !agree(value, &bytes.short()) {
                        contradictions.push(format!(
                            "{}: {name} is {value} in {view}, {} in the report",
                            path.display(),
                            bytes.short()
                        ));
                    }
                }
            }
        }
        for (name, values) in said {
            let Some((first, _)) = values.first() else { continue };
            // A link to a buffer has the buffer's name, and several buffers may have the same name.
            if LOCAL.iter().any(|(local, _)| *local == name) || name.starts_with("Show ") {
                continue;
            }
            compared += 1;
            if values.iter().any(|(value, _)| !agree(value, first)) {
                contradictions.push(format!("{}: {name} is {values:?}", path.display()));
            }
        }
    }
    assert!(contradictions.is_empty(), "{contradictions:#?}");
    assert!(compared >= 100, "{compared} names compared");
}
