//! Two or more profiles side by side: what differs as text, JSON, Markdown and HTML. Schema `highwater.diff/1`.

mod allocators;
mod allocators_text;
mod build;
mod document;
mod schema;
mod sweep;
mod text;

pub use allocators::{AllocatorDiff, HolderDiff};
pub use build::{Builder, NEEDED, Side, UNUSED, compare_findings, compare_memory};
pub use schema::{
    BufferDiff, BytesDiff, Diff, FindingDiff, FindingsDiff, GroupDiff, MatchedReport, NumberDiff, PairDiff, PhaseDiff,
    ShapeDiff, SpaceDiff, StepDiff, StepName,
};
pub use sweep::{Column, Sweep};
pub use text::{headline, matched, parts, shapes};

use super::document::{html, markdown};
use super::json;
use super::report::Format;

/// Writes a comparison of two sides.
#[must_use]
pub fn write(diff: &Diff, format: Format) -> String {
    match format {
        Format::Text => text::write(diff),
        Format::Json => json(diff),
        Format::Markdown => markdown(&document::document(diff)),
        Format::Html => html(&document::document(diff), "Comparison \u{2013} Highwater"),
    }
}

/// Writes several profiles as columns.
#[must_use]
pub fn write_sweep(sweep: &Sweep, format: Format) -> String {
    match format {
        Format::Text => sweep.text(),
        Format::Json => json(sweep),
        Format::Markdown => markdown(&sweep.document()),
        Format::Html => html(&sweep.document(), "Comparison \u{2013} Highwater"),
    }
}
