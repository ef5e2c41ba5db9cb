//! Rule `results`: what a program returns is the largest part of the peak, and no other finding says so.

use std::cmp::Reverse;
use std::fmt::Write as _;

use super::finding::{ChangesResults, Finding};
use super::program_context::{ProgramContext, Total, counted};
use crate::analysis::flow::loops::Role as LoopRole;
use crate::analysis::what_if::{Base, Role};
use crate::model::{Bytes, percent};

/// Name of the rule.
pub const NAME: &str = "results";

/// Share of allocated bytes from which results are reported.
const SHARE: f64 = 0.40;

/// Names the results that have memory of their own, and what of them a loop collects.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let is_result = |base: &&Base| matches!(base.role, Role::Result(_));
    let mut held: Vec<&Base> = case.memory.base.iter().filter(is_result).collect();
    held.sort_by_key(|base| (Reverse(base.size), base.buffer));
    let bytes: u64 = held.iter().map(|base| base.size).total();
    let is_told = |f: &Finding| f.program == Some(case.row) && !f.is_remedy && f.weight().saturating_mul(2) > bytes;
    if !case.is_share(bytes, SHARE) || findings.iter().any(is_told) {
        return;
    }
    let labels = case.analysis.labels(case.program);
    let steps_of = |base: &Base| {
        let part = labels.role(case.program, base.buffer)?;
        matches!(part.role, LoopRole::Collected | LoopRole::Saved).then_some(part.layers)
    };
    let collected: Vec<(&Base, i64)> = held.iter().filter_map(|&base| Some((base, steps_of(base)?))).collect();
    let in_loops: u64 = collected.iter().map(|row| row.0.size).total();
    let is_collected = in_loops.saturating_mul(2) > bytes;
    let mut finding = case.finding(NAME);
    case.stake(&mut finding, bytes);
    finding.title = format!("Results take {} of the peak: {}", percent(bytes, case.at_peak()), Bytes(bytes).short());
    if let Some(&(_, steps)) = collected.first().filter(|_| is_collected) {
        let _ = write!(finding.title, ", {} of it collected by a loop over {steps} steps", Bytes(in_loops).short());
    }
    finding.why = format!(
        "{} for the whole run of the program; the largest is {}.",
        counted(held.len(), "result has memory of its own", "results have memory of their own"),
        held.first().map(|base| case.describe(base.buffer)).unwrap_or_default()
    );
    if is_collected {
        finding.advice.push("collect less in each step: only the arrays that are read afterwards, or what is made of them (a mean, the last step)".to_owned());
        finding
            .advice
            .push("run fewer steps in a call, and take what they collect off the device between calls".to_owned());
    } else {
        finding.advice.push(
            "return only what is read afterwards, or donate arguments of the same shape and type (`donate_argnums`)"
                .to_owned(),
        );
    }
    finding.advice.push("return it in a narrower type, or sharded over devices along its samples".to_owned());
    finding.changes_results = ChangesResults::Maybe;
    finding.buffers = held.iter().map(|base| base.buffer).collect();
    findings.push(finding);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::Opcode;

    #[test]
    fn results_that_are_most_of_the_peak_are_named() {
        let mut sketch = Sketch::default();
        let x = sketch.argument(array(&[8, 16], &[1, 0]), "x");
        let made = sketch.instruction(Opcode::FUSION, array(&[1024, 1024], &[1, 0]), &[x], "jit(f)/scan");
        sketch.result(made);
        let findings = sketch.findings(1 << 30, run);
        assert_eq!(findings.iter().map(|found| found.rule).collect::<Vec<_>>(), [NAME]);
        assert!(findings[0].title.starts_with("Results take over 99.9"), "{}", findings[0].title);
        assert!(findings[0].advice[0].contains("donate_argnums"), "{:?}", findings[0].advice);
    }
}
