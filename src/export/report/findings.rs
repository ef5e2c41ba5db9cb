//! The advisor's findings in the report.

use serde::Serialize;

use crate::advisor::{Finding, advise};
use crate::analysis::ProfileAnalysis;
use crate::model::{Bytes, Profile};

/// A finding.
#[derive(Debug, Serialize)]
pub struct FindingReport {
    /// Rule.
    pub rule: &'static str,
    /// `critical`, `warning` or `hint`.
    pub severity: &'static str,
    /// One line.
    pub title: String,
    /// What it rests on.
    pub why: String,
    /// What to do.
    pub advice: Vec<String>,
    /// Bytes saved at the peak.
    pub saves_bytes: Option<Bytes>,
    /// The peak after it.
    pub peak_after_bytes: Option<Bytes>,
    /// Whether it fits then.
    pub fits_after: Option<bool>,
    /// `no`, `maybe` or `yes`.
    pub changes_results: &'static str,
    /// Buffers.
    pub buffers: Vec<u32>,
    /// Tiles.
    pub tiles: Vec<u32>,
    /// Page.
    pub reference: &'static str,
}

/// The findings of a profile.
pub fn report(profile: &Profile, analysis: &ProfileAnalysis) -> Vec<FindingReport> {
    advise(profile, analysis).into_iter().map(row).collect()
}

fn row(finding: Finding) -> FindingReport {
    FindingReport {
        rule: finding.rule,
        severity: finding.severity.name(),
        title: finding.title,
        why: finding.why,
        advice: finding.advice,
        saves_bytes: finding.saves_bytes,
        peak_after_bytes: finding.peak_after_bytes,
        fits_after: finding.fits_after,
        changes_results: finding.changes_results.name(),
        buffers: finding.buffers.iter().map(|buffer| buffer.0).collect(),
        tiles: finding.tiles,
        reference: finding.reference,
    }
}
