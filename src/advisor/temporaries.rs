//! Rule `temporaries`: a peak of temporaries of which no other rule knows the cause.

use super::case::{Case, Total, counted};
use super::finding::{ChangesResults, Finding};
use crate::model::{Bytes, percent};

/// Name of the rule.
pub const NAME: &str = "temporaries";

/// Share of what is allocated from which temporaries are named.
const SHARE: f64 = 0.50;

/// Buffers that are named.
const MOST: usize = 3;

/// Names the largest temporaries, where they are most of the peak and no other rule found a cause.
pub fn run(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let bytes: u64 = case.peak.iter().map(|t| t.size).total();
    if !case.is_share(bytes, SHARE) || findings.iter().any(|f| f.program == Some(case.row) && !f.is_remedy) {
        return;
    }
    let mut finding = case.finding(NAME);
    case.stake(&mut finding, bytes);
    finding.title =
        format!("Temporaries take {} of the peak: {}", percent(bytes, case.at_peak()), Bytes(bytes).short());
    let largest: Vec<String> =
        case.peak.iter().take(MOST).map(|t| format!("{} {}", Bytes(t.size).short(), case.describe(t.buffer))).collect();
    finding.why = format!(
        "{} at the peak; the largest: {}.",
        counted(case.peak.len(), "temporary stands", "temporaries stand"),
        largest.join("; ")
    );
    finding.advice.push("compute what makes the largest of them in parts (`jax.lax.map` with `batch_size`, `jax.lax.scan`), or in a narrower type".to_owned());
    finding.advice.push("where they are kept for a backward pass, `jax.checkpoint` around what makes them".to_owned());
    finding.changes_results = ChangesResults::No;
    finding.buffers = case.peak.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}
