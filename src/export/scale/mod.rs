//! Scaling as text, JSON, Markdown and HTML: what a program takes at other values of the number that two dumps differ in.
//! Schema `highwater.scale/1`.

mod build;
mod text;

pub use build::{GrowerReport, PointReport, ScaleReport, ScaleSpace, build};

use super::report::Format;

/// Writes a report.
#[must_use]
pub fn write(report: &ScaleReport, format: Format) -> String {
    match format {
        Format::Text => text::write(report),
        Format::Json => super::json(report),
        Format::Markdown => super::document::markdown(&text::document(report)),
        Format::Html => super::document::html(&text::document(report), "Scaling \u{2013} Highwater"),
    }
}
