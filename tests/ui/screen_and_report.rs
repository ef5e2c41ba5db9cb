//! The window shows the numbers of the report: Overview, Timeline at the peak, Padding and Buffers, for every sample.

use std::path::Path;

use egui_kittest::Harness;
use highwater::analysis::ProfileAnalysis;
use highwater::export::report;
use highwater::model::{Bytes, capitalised, factor, percent, thousands};
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;
use serde_json::Value;

use crate::common;
use crate::gui::{self, says, words};

/// The memory space that the window opens with, from the report.
fn reported(path: &Path) -> Value {
    let profile = open::open_path(path, &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    let options = report::Options { top: 0, ..report::Options::default() };
    let report = report::build(&[(&profile, &analysis)], &[], &options);
    let json: Value = serde_json::from_str(&report::write(&report, report::Format::Json)).expect("JSON");
    let main = analysis.programs[0].main_space().expect("a space").color.0;
    let spaces = json["profiles"][0]["programs"][0]["spaces"].as_array().expect("spaces");
    spaces.iter().find(|space| space["colour"] == main).expect("the same space").clone()
}

fn shown(path: &Path, view: &str) -> Harness<'static, App> {
    let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
    gui::window(&[path], [1600.0, 1000.0], ThemeChoice::Light, link)
}

fn bytes(value: &Value) -> Bytes {
    Bytes(value.as_u64().expect("bytes"))
}

fn must_say(harness: &Harness<'_, App>, path: &Path, wanted: &str) {
    assert!(says(harness, wanted), "{}: no '{wanted}' in {:?}", path.display(), words(harness));
}

#[test]
fn the_overview() {
    for path in common::sample_programs() {
        let space = reported(&path);
        let harness = shown(&path, "overview");
        let verdict = match space["verdict"].as_str() {
            Some("over") => "Does not fit",
            Some("fits") => "Fits",
            _ => "Needs",
        };
        must_say(&harness, &path, verdict);
        for (title, key) in [
            ("Peak", "/peak/bytes"),
            ("Padding at the peak", "/peak/padding_bytes"),
            ("Fragmentation", "/peak/fragmentation_bytes"),
            ("Arguments", "/parameter_bytes"),
            ("Outputs", "/output_bytes"),
        ] {
            must_say(&harness, &path, &format!("{title} {}", bytes(space.pointer(key).expect(key)).short()));
        }
        for class in space["peak"]["by_class"].as_array().expect("classes") {
            must_say(&harness, &path, class["class"].as_str().expect("a name"));
        }
    }
}

#[test]
fn the_timeline_at_the_peak() {
    for path in common::sample_programs() {
        let space = reported(&path);
        let harness = shown(&path, "timeline");
        let step = space["reserved_peak_time"].as_u64().expect("a step");
        must_say(&harness, &path, &format!("The peak, step {step}"));
        must_say(&harness, &path, &bytes(&space["reserved_peak_bytes"]).exact());
        let peak = bytes(&space["reserved_peak_bytes"]).short();
        must_say(&harness, &path, &format!("Live bytes over the program, peak {peak}"));
        for key in ["padding_bytes", "fragmentation_bytes"] {
            must_say(&harness, &path, &bytes(&space["peak"][key]).short());
        }
        let count = space["peak"]["buffer_count"].as_u64().expect("a count");
        must_say(&harness, &path, &format!("all {}", thousands(count)));
    }
}

#[test]
fn padding() {
    for path in common::sample_programs() {
        let space = reported(&path);
        let harness = shown(&path, "padding");
        let (waste, peak) = (bytes(&space["peak"]["padding_bytes"]), bytes(&space["peak"]["bytes"]));
        must_say(&harness, &path, &capitalised(&percent(waste.0, peak.0)));
        must_say(&harness, &path, &format!("{} of {}", waste.short(), peak.short()));
        let Some(first) = space["padding_by_shape"].as_array().expect("shapes").first() else { continue };
        let (each, useful) = (bytes(&first["each_bytes"]), bytes(&first["useful_bytes"]));
        must_say(&harness, &path, &format!("Each takes {}, {}", each.short(), each.exact()));
        must_say(&harness, &path, &format!("Useful {}, {}", useful.short(), useful.exact()));
        // A table of addresses has no data that could grow.
        if !first["shape"].as_str().expect("a shape").starts_with('(') {
            must_say(&harness, &path, &format!("Expansion {}", factor(each.0 as f64 / useful.0 as f64)));
        }
        must_say(&harness, &path, &format!("Padding of all {}", bytes(&first["waste_bytes"]).short()));
        must_say(&harness, &path, &format!("Costs at the peak {}", bytes(&first["saves_at_peak_bytes"]).short()));
        for form in first["other_forms"].as_array().expect("forms").iter().take(3) {
            let (change, effect) = (form["change"].as_str().expect("words"), form["effect"].as_str().expect("words"));
            must_say(&harness, &path, &format!("{change}: {effect}, peak "));
        }
    }
}

#[test]
fn buffers() {
    for path in common::sample_programs() {
        let space = reported(&path);
        let harness = shown(&path, "buffers");
        let rows = space["peak"]["buffers"].as_array().expect("rows");
        let sum: u64 = rows.iter().map(|row| row["bytes_at_peak"].as_u64().expect("bytes")).sum();
        assert_eq!(Some(sum), space["peak"]["bytes"].as_u64(), "{}", path.display());
        let count = thousands(rows.len() as u64);
        let padding = bytes(&space["peak"]["padding_bytes"]);
        must_say(&harness, &path, &format!("{count} buffers, {} in total", Bytes(sum).short()));
        if padding > Bytes::ZERO {
            must_say(&harness, &path, &format!("{} padding", padding.short()));
        }
        for row in rows.iter().take(10) {
            let name = row["name"].as_str().expect("a name");
            must_say(&harness, &path, &format!("{name} {}", bytes(&row["bytes"]).short()));
        }
    }
}
