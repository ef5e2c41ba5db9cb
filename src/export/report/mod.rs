//! The report: the same numbers as in the window, as text, JSON or Markdown. Schema `highwater.report/1`.

mod build;
mod failure;
mod findings;
mod instruction;
mod markdown;
mod options;
mod padding;
mod range;
mod requested;
mod runtime;
mod runtime_text;
mod schema;
mod text;
mod tiles;
mod tree;
mod what_if;
mod words;

use crate::analysis::ProfileAnalysis;
use crate::model::{Profile, SourceInfo};
pub use build::Builder;
pub use options::{Format, Options};
pub use schema::{PROFILE_FIELDS, Report, SCHEMA, SPACE_FIELDS, Shown};
pub(super) use words::{code, escape};

/// A report over profiles and the sources that could not be read.
#[must_use]
pub fn build(profiles: &[(&Profile, &ProfileAnalysis)], failed: &[SourceInfo], options: &Options) -> Report {
    let mut builder = Builder::new(options);
    for (profile, analysis) in profiles {
        builder.profile(profile, analysis);
    }
    for info in failed {
        builder.failed(info);
    }
    builder.finish().0
}

/// Writes a report.
#[must_use]
pub fn write(report: &Report, format: Format) -> String {
    match format {
        Format::Text => text::write(report),
        Format::Json => super::json(report),
        Format::Markdown => markdown::write(report),
    }
}
