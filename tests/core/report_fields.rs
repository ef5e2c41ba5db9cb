//! Every field of the report's JSON is also in the text, the Markdown and the HTML, or is listed as omitted with a reason.

use std::collections::BTreeSet;

use highwater::analysis::ProfileAnalysis;
use highwater::analysis::tree::TreeKind;
use highwater::analysis::what_if::{Arguments, Edit, EditSet};
use highwater::export::report::{self, Format, Options, PROFILE_FIELDS, SPACE_FIELDS, Shown};
use highwater::model::{Bytes, UnitSystem, thousands};
use highwater::open;
use highwater::source::Progress;
use serde_json::Value;

use crate::common;

/// The forms a value may take in a sentence or a table; none for values too short to be identified.
fn forms(value: &Value) -> Vec<String> {
    match value {
        Value::Number(number) => number.as_u64().filter(|&n| n >= 100).map_or_else(Vec::new, |n| {
            let bytes = Bytes(n);
            vec![n.to_string(), thousands(n), bytes.short(), bytes.exact(), UnitSystem::Binary.capacity(bytes)]
        }),
        Value::String(text) if text.len() > 2 => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(forms).collect(),
        Value::Object(fields) => fields.values().flat_map(forms).collect(),
        _ => Vec::new(),
    }
}

/// Checks the fields of one object; records which of those shown were found in text, HTML and Markdown.
fn check(
    of: &str,
    value: &Value,
    table: &[(&'static str, Shown)],
    texts: [&str; 3],
    seen: &mut BTreeSet<&'static str>,
) {
    let fields = value.as_object().expect("an object");
    for name in fields.keys() {
        assert!(table.iter().any(|(known, _)| known == name), "nothing says where {name} of {of} is shown");
    }
    for &(name, shown) in table {
        let mut value = fields.get(name).cloned().unwrap_or_default();
        if let (true, Some(rows)) = (name == "padding_by_shape", value.as_array_mut()) {
            // Text and Markdown omit shapes that save next to nothing.
            rows.retain(|row| row["saves_at_peak_bytes"].as_u64() >= Some(1 << 20));
        }
        let forms = forms(&value);
        if forms.is_empty() {
            continue;
        }
        let stands = |text: &str| forms.iter().any(|form| text.contains(form.as_str()));
        let places = match shown {
            Shown::Both => &texts[..],
            Shown::Text(_) => &texts[..2],
            Shown::Json(_) => &[],
        };
        for (text, which) in places.iter().zip(["text", "HTML", "Markdown"]) {
            assert!(stands(text), "{name} of {of} does not stand in the {which}: {forms:.300?}");
        }
        seen.insert(name);
    }
}

#[test]
fn what_json_says_the_other_formats_say_too() {
    let mut seen = BTreeSet::new();
    let mut paths = common::sample_programs();
    paths.push(common::samples().join("ipu_over.cbor"));
    for path in &paths {
        let profile = open::open_path(path, &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        let edits = vec![Edit::Donate(Arguments::all())];
        let options = Options {
            top: 5,
            range: Some((0, u32::MAX)),
            trees: vec![TreeKind::default()],
            depth: 3,
            curve: true,
            buffers: true,
            pictures: true,
            sets: vec![EditSet { name: "donate everything".to_owned(), edits: edits.clone() }],
            edits,
            ..Options::default()
        };
        let report = report::build(&[(&profile, &analysis)], &[], &options);
        let json: Value = serde_json::from_str(&report::write(&report, Format::Json)).expect("JSON");
        let (text, markdown) = (report::write(&report, Format::Text), report::write(&report, Format::Markdown));
        let html = common::html_text(&report::write(&report, Format::Html));
        let texts = [text.as_str(), html.as_str(), markdown.as_str()];
        let name = path.display().to_string();
        check(&name, &json["profiles"][0], PROFILE_FIELDS, texts, &mut seen);
        let spaces = json["profiles"][0]["programs"].as_array().expect("programs").iter();
        for space in spaces.flat_map(|program| program["spaces"].as_array().expect("spaces")) {
            // Small spaces have only one line each in the text.
            if space["colour"] == 0 || space["verdict"] == "over" {
                check(&format!("{name}, {}", space["name"]), space, SPACE_FIELDS, texts, &mut seen);
            }
        }
    }
    // Without these fields the samples would prove little.
    for name in ["padding_by_shape", "what_if", "what_if_sets", "range", "trees", "peak", "findings", "tiles", "plans"]
    {
        assert!(seen.contains(name), "no sample has {name}");
    }
}

#[test]
fn the_name_of_the_framework_stands_before_the_compilers() {
    let profile = open::open_path(&common::sample_program("v5e_gpt_m_oom"), &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    let report = report::build(&[(&profile, &analysis)], &[], &Options { top: 10, ..Options::default() });
    let json: Value = serde_json::from_str(&report::write(&report, Format::Json)).expect("JSON");
    let text = report::write(&report, Format::Text);
    let mut checked = 0;
    for buffer in json["profiles"][0]["programs"][0]["spaces"][0]["peak"]["buffers"].as_array().expect("buffers") {
        let own = buffer["name"].as_str().expect("a name");
        let Some(words) = buffer["label"].as_str().or(buffer["op_name"].as_str()) else { continue };
        let line = text.lines().find(|line| line.trim_end().ends_with(&format!("  {own}")));
        let line = line.unwrap_or_else(|| panic!("no line of {own}"));
        assert!(line.find(words).is_some_and(|at| at < line.len() - own.len()), "{line}");
        checked += 1;
    }
    assert!(checked > 4, "{checked} names");
}
