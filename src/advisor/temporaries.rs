//! Rule `temporaries`: a peak of temporaries that no other rule explains.

use super::finding::{ChangesResults, Finding};
use super::program_context::{ProgramContext, Total, counted};
use crate::model::{Bytes, percent};

/// Name of the rule.
pub const NAME: &str = "temporaries";

/// Least share of allocated bytes at which temporaries are reported.
const SHARE: f64 = 0.50;

/// Most buffers named.
const MOST: usize = 3;

/// Names the largest temporaries, where they are most of the peak and no other rule found a cause.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
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
        "{} live at the peak; the largest: {}.",
        counted(case.peak.len(), "temporary is", "temporaries are"),
        largest.join("; ")
    );
    finding.advice.push("compute the largest of them in chunks (`jax.lax.map` with `batch_size`, `jax.lax.scan`), or in a narrower type".to_owned());
    finding.advice.push("if they are kept for a backward pass, `jax.checkpoint` around what computes them".to_owned());
    finding.changes_results = ChangesResults::No;
    finding.buffers = case.peak.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}
