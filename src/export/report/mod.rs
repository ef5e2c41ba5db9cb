//! The report: the same numbers as in the window, as text, JSON, Markdown or HTML. Schema `highwater.report/1`.

mod buffer;
mod build;
mod caching;
mod caching_text;
mod document;
mod failure;
mod findings;
mod instruction;
mod options;
mod padding;
mod picture;
mod range;
mod requested;
mod runtime;
mod runtime_text;
mod schema;
mod svg;
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
        Format::Markdown => super::document::markdown(&document::document(report)),
        Format::Html => {
            let names: Vec<&str> = report.profiles.iter().map(|profile| profile.name.as_str()).collect();
            super::document::html(&document::document(report), &format!("{} \u{2013} Highwater", names.join(", ")))
        }
    }
}
