//! The advisor: what to change, what it saves at the peak, and what that rests on. One file for each rule.

mod finding;
pub mod ipu;

pub use finding::{ChangesResults, Finding, Severity};

use crate::analysis::ProfileAnalysis;
use crate::model::Profile;

/// What a rule about a whole profile looks at: a profile and its analysis.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Its analysis.
    pub analysis: &'a ProfileAnalysis,
}

/// A rule about a whole profile. It looks, and says what it found; without evidence it says nothing.
pub struct Rule {
    /// Its name, as the report writes it.
    pub name: &'static str,
    /// Looks at a profile.
    pub run: fn(&Subject<'_>, &mut Vec<Finding>),
}

/// Rules about whole profiles.
const RULES: &[&[Rule]] = &[ipu::RULES];

/// Everything the rules find, gravest first, then most bytes saved.
#[must_use]
pub fn advise(profile: &Profile, analysis: &ProfileAnalysis) -> Vec<Finding> {
    let subject = Subject { profile, analysis };
    let mut findings = Vec::new();
    for rule in RULES.iter().copied().flatten() {
        (rule.run)(&subject, &mut findings);
    }
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), std::cmp::Reverse(finding.weight())));
    findings
}
