//! Output: reports as text, JSON, Markdown and HTML, tables, data sets and pictures; and reading the what-if sets for them.

pub mod dataset;
pub mod diff;
pub mod document;
pub mod gate;
pub mod image;
pub mod palette;
pub mod report;
pub mod scale;
pub mod sets;
pub mod table;
pub mod wrapped;

/// JSON for people and programs: indented, with a line break at its end.
fn json(value: &impl serde::Serialize) -> String {
    let mut json = serde_json::to_string_pretty(value).unwrap_or_else(|error| error.to_string());
    json.push('\n');
    json
}
