//! Rule `precision`: 32-bit floats where 16 bits might do.

use super::finding::{ChangesResults, Finding, Severity};
use super::program_context::{ProgramContext, Total};
use crate::analysis::class::Class;
use crate::analysis::names::pass::Pass;
use crate::analysis::what_if::{Arguments, Edit};
use crate::model::{Bytes, ElementType, percent};

/// Name of the rule.
pub const NAME: &str = "precision";

/// Least share of allocated bytes at which wide floats are reported.
const SHARE: f64 = 0.30;

/// Looks at the wide floats at the peak.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let is_wide = |buffer| case.node(buffer).is_some_and(|node| node.element_type.is_wide_float());
    // 16 bits are known to suffice for neural networks only (not for, say, a physics solver).
    let classes = case.analysis.classes(case.program);
    let weights = case.memory.base.iter().filter(|base| classes.of(base.buffer) == Class::Weight);
    let weights: u64 = weights.map(|base| base.size).total();
    let has_backward = case.memory.kept.passes.contains(&Pass::Backward);
    if !has_backward && !case.is_worth(weights) {
        return;
    }
    let temporaries: u64 = case.peak.iter().filter(|t| is_wide(t.buffer)).map(|t| t.size).total();
    let kept: u64 = case.memory.base.iter().filter(|base| is_wide(base.buffer)).map(|base| base.size).total();
    if !case.is_share(temporaries.saturating_add(kept), SHARE) {
        return;
    }
    // With room to spare, 32-bit arguments do not matter; few 32-bit temporaries: it computes in 16 bits already.
    if case.severity() == Severity::Hint && !case.is_share(temporaries, SHARE) {
        return;
    }
    let bf16 = ElementType::BF16;
    let everything = case.try_out(&[Edit::Dtype(Arguments::all(), bf16)]);
    let compute = case.try_out(&[Edit::Compute(bf16)]);
    let (all, some) = (case.saved(&everything), case.saved(&compute));
    if !case.is_worth(all) {
        return;
    }
    let mut finding = case.remedy(NAME);
    let only_compute = case.is_worth(some) && some.saturating_mul(2) >= all;
    let edit = if only_compute { Edit::Compute(bf16) } else { Edit::Dtype(Arguments::all(), bf16) };
    let saved = case.fill(&mut finding, vec![edit]);
    finding.title = format!(
        "{} of the peak is 32-bit floats: {} less in bfloat16",
        percent(temporaries.saturating_add(kept), case.at_peak()),
        Bytes(saved).short()
    );
    finding.why = format!(
        "{} of temporaries and {} of arguments and results are f32. Everything in bfloat16 would take {} less, temporaries alone at most {} less.",
        Bytes(temporaries).short(),
        Bytes(kept).short(),
        Bytes(all).short(),
        Bytes(some).short()
    );
    finding.advice.push("compute in bfloat16 and keep the parameters in f32: cast weights and inputs where they are used (`x.astype(jnp.bfloat16)`, `dtype=jnp.bfloat16` of the layers)".to_owned());
    finding.advice.push("parameters or optimizer state in bfloat16 take half as much too, at more risk".to_owned());
    if only_compute {
        finding.warnings.push("softmax, losses and norms that the program deliberately computes in f32 stay f32: the saving is between nothing and this".to_owned());
    }
    finding.changes_results = ChangesResults::Yes;
    let mut evidence: Vec<_> = case
        .peak
        .iter()
        .map(|t| (t.size, t.buffer))
        .chain(case.memory.base.iter().map(|base| (base.size, base.buffer)))
        .filter(|row| is_wide(row.1))
        .collect();
    evidence.sort_by_key(|&(size, buffer)| (std::cmp::Reverse(size), buffer));
    finding.buffers = evidence.into_iter().map(|row| row.1).collect();
    findings.push(finding);
}
