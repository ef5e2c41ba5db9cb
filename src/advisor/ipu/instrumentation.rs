//! `instrumentation`: memory taken by cycle counters for profiling.

use super::evidence::{finding, severity, tiles};
use crate::advisor::finding::{Finding, Severity};
use crate::advisor::subject::Subject;
use crate::model::Bytes;

/// Applies the rule to a profile's tiles.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((_, tiles)) = tiles(subject) else { return };
    let bytes = tiles.category("instrumentationResults");
    let severity = severity(tiles);
    if bytes == 0 || severity == Severity::Hint {
        return;
    }
    let mut finding = finding("instrumentation", severity);
    finding.title = format!("Profiling itself takes {}", Bytes(bytes).short());
    finding.why =
        "The category `instrumentationResults` would be empty without execution profiling; near the limit it \
                   can be what makes the program not fit"
            .to_owned();
    finding.advice = vec![
        "Profile memory only: `autoReport.outputExecutionProfile` false".to_owned(),
        "Or a coarser level: `debug.computeInstrumentationLevel` tile, ipu or device".to_owned(),
    ];
    findings.push(finding);
}
