//! The advisor: what to change, what it saves at the peak, and what that rests on. One file for each rule.

mod finding;
pub mod ipu;

pub use finding::{ChangesResults, Finding, Severity};

use crate::analysis::ProfileAnalysis;
use crate::model::Profile;

/// What a rule looks at: a profile and its analysis.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Its analysis.
    pub analysis: &'a ProfileAnalysis,
}

/// A rule. It looks, and says what it found; without evidence it says nothing.
pub struct Rule {
    /// Its name, as the report writes it.
    pub name: &'static str,
    /// Looks at a profile.
    pub run: fn(&Subject<'_>, &mut Vec<Finding>),
}

/// Rules about whole profiles; those about XLA programs are in `program`.
const RULES: &[&[Rule]] = &[ipu::RULES];

/// Everything the rules find, most bytes saved first. Pure and without side effects, but not free: run it off the
/// window's thread.
#[must_use]
pub fn advise(profile: &Profile, analysis: &ProfileAnalysis) -> Vec<Finding> {
    let subject = Subject { profile, analysis };
    let mut findings = Vec::new();
    for rule in RULES.iter().copied().flatten() {
        (rule.run)(&subject, &mut findings);
    }
    rank(&mut findings);
    findings
}

/// Sorts findings: by bytes saved; of two within 10 % of each other, the one that cannot change results first.
pub fn rank(findings: &mut Vec<Finding>) {
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), std::cmp::Reverse(finding.weight())));
    // "Within 10 %" is no order (it is not transitive), so safer findings move up past their neighbours one by one.
    for i in 1..findings.len() {
        let mut at = i;
        while at > 0 {
            let (before, here) = (&findings[at - 1], &findings[at]);
            let close = before.weight() as f64 <= here.weight() as f64 * 1.1 && here.weight() > 0;
            if before.severity != here.severity || !close || before.changes_results <= here.changes_results {
                break;
            }
            findings.swap(at - 1, at);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bytes;

    fn finding(rule: &'static str, saves: u64, changes: ChangesResults, severity: Severity) -> Finding {
        Finding { saves_bytes: Some(Bytes(saves)), changes_results: changes, severity, ..Finding::new(rule) }
    }

    #[test]
    fn safe_findings_pass_those_that_save_hardly_more() {
        let mut findings = vec![
            finding("hint", 900, ChangesResults::No, Severity::Hint),
            finding("batch", 105, ChangesResults::Yes, Severity::Critical),
            finding("donation", 100, ChangesResults::No, Severity::Critical),
            finding("small", 10, ChangesResults::No, Severity::Critical),
            finding("large", 200, ChangesResults::Yes, Severity::Critical),
        ];
        rank(&mut findings);
        let order: Vec<_> = findings.iter().map(|f| f.rule).collect();
        assert_eq!(order, ["large", "donation", "batch", "small", "hint"]);
    }
}
