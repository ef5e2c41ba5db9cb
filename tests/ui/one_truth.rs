//! Equal names have equal values: every sample is opened in every view, every number with a unit is read by its
//! accessible label and by the tooltip it shows, and what one view calls `Peak` another view, a tooltip and the report call the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use egui::Pos2;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::ProfileAnalysis;
use highwater::export::report;
use highwater::model::{Bytes, parse_size};
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink};
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

/// Most places of a view that the pointer is laid on.
const PLACES: usize = 40;

/// What has a size in its name, with the tooltip that it shows.
fn tooltips(harness: &mut Harness<'_, App>) -> Vec<(String, String)> {
    let screen = harness.ctx.content_rect();
    let named: Vec<(String, Pos2)> = {
        let nodes = harness.get_all(egui_kittest::kittest::by());
        let named = nodes.filter_map(|node| Some((node.accesskit_node().label()?, node.rect())));
        named
            .filter(|(label, rect)| label.contains("iB") && screen.contains_rect(*rect) && rect.area() > 16.0)
            .map(|(label, rect)| (label, rect.center()))
            .take(PLACES)
            .collect()
    };
    let before: BTreeSet<String> = gui::painted(harness).into_iter().map(|text| text.words).collect();
    let mut found = Vec::new();
    for (label, at) in named {
        harness.hover_at(at);
        harness.run_ok();
        harness.step();
        let shown = gui::painted(harness).into_iter().map(|text| text.words).filter(|words| !before.contains(words));
        let shown: Vec<String> = shown.filter(|words| words.contains("iB") || words.ends_with(" B")).collect();
        if !shown.is_empty() {
            found.push((label, shown.join("; ")));
        }
    }
    harness.remove_cursor();
    harness.run_ok();
    found
}

/// Sizes of a tooltip that are written short and, behind it, exact: `1.50 GiB   1,610,612,736 B`.
fn short_and_exact(tooltip: &str, pattern: &Regex) -> Vec<(String, String)> {
    pattern.captures_iter(tooltip).map(|parts| (parts[1].to_owned(), parts[2].to_owned())).collect()
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
    let space = |key: &str| of(space.and_then(|space| space.pointer(key)));
    let tiles = |key: &str| of(Some(&profile["tiles"][key]));
    let named = [
        ("Peak", space("/peak/bytes")),
        ("Padding at the peak", space("/peak/padding_bytes")),
        ("Fragmentation", space("/peak/fragmentation_bytes")),
        ("Arguments", space("/parameter_bytes")),
        ("Outputs", space("/output_bytes")),
        ("All tiles", tiles("total_including_gaps_bytes").or(tiles("total_bytes"))),
        ("Always live", tiles("always_live_bytes")),
    ];
    named.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))).collect()
}

#[test]
fn every_view_and_the_report_give_a_name_one_value() {
    let pattern =
        Regex::new(r"(?:^|[.;] )([A-Z][A-Za-z ,\-]*?) (\d[\d,.]* (?:B|KiB|MiB|GiB|TiB))\b").expect("a pattern");
    let mut contradictions = Vec::new();
    let both = Regex::new(r"(\d[\d.]* [KMGT]iB)\s{2,}(\d[\d,]* B)\b").expect("a pattern");
    let mut compared = 0;
    let (mut tips, mut pairs) = (0, 0);
    for path in common::sample_profiles() {
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
            for (words, tooltip) in tooltips(&mut harness) {
                tips += 1;
                // A tooltip writes what its words shorten: the same name has the same value there.
                for (name, value) in readings(&tooltip, &pattern) {
                    said.entry(name).or_default().insert((value, title));
                }
                for (short, exact) in short_and_exact(&tooltip, &both) {
                    pairs += 1;
                    if !agree(&short, &exact) {
                        let file = path.display();
                        contradictions
                            .push(format!("{file}, {title}: the tooltip of '{words}' says {short} and {exact}"));
                    }
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
    assert!(tips >= 100 && pairs >= 20, "{tips} tooltips read, {pairs} of them with exact bytes");
}
