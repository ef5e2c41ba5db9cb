//! `temporary`: one step needs far more not-always-live memory than the others.

use super::evidence::{finding, severity, tiles};
use crate::advisor::finding::{ChangesResults, Finding};
use crate::advisor::subject::Subject;
use crate::analysis::tiles::step_bytes;
use crate::model::Bytes;

/// Applies the rule to a profile's tiles.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((memory, tiles)) = tiles(subject) else { return };
    let Some(peak) = tiles.peak.filter(|peak| peak.bytes > 0) else { return };
    let (mut sum, mut count) = (0.0, 0.0);
    for bytes in step_bytes(memory).filter(|&bytes| bytes > 0) {
        sum += bytes as f64;
        count += 1.0;
    }
    let mean = sum / f64::max(count, 1.0);
    let whole = peak.bytes.saturating_add(tiles.always_live.unwrap_or(0));
    if count < 3.0 || (peak.bytes as f64) < mean * 1.5 || (peak.bytes as f64) < whole as f64 * 0.15 {
        return;
    }
    let name = memory.step_name(peak.step as usize);
    let guessed = memory.liveness.names_are_guessed && !name.is_empty();
    let at = if name.is_empty() { format!("step {}", peak.step) } else { format!("step {}, {name}", peak.step) };
    let mut finding = finding("temporary", severity(tiles));
    finding.title = format!("{at} needs {} of temporary memory", Bytes(peak.bytes).short());
    let guess = if guessed { " (its name is a guess, matched by order)" } else { "" };
    finding.why = format!(
        "Steps need {} on average; this one sets the peak of {}{guess}",
        Bytes(mean as u64).short(),
        Bytes(whole).short()
    );
    let lower = name.to_ascii_lowercase();
    if lower.contains("convolve") || lower.contains("matmul") || lower.contains("conv") {
        finding
            .advice
            .push("Lower `availableMemoryProportion` of this operation (default 0.6, keep above 0.05)".to_owned());
        finding.advice.push("Use half-precision partials".to_owned());
        finding.changes_results = ChangesResults::Maybe;
    }
    finding.advice.push("Recompute activations in the backward pass, or reduce the batch size".to_owned());
    finding.is_guess = guessed;
    findings.push(finding);
}
