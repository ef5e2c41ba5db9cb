//! Rule `attention_scores`: attention that materialises its scores for all pairs of positions.

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::program_context::{ProgramContext, Total, counted};
use crate::analysis::what_if::Edit;
use crate::analysis::what_if::saved_for_backward::BLOCK;
use crate::model::{Bytes, percent};

/// Name of the rule.
pub const NAME: &str = "attention_scores";

/// Looks for buffers at the peak with two sequence dimensions.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let Some(sequence) = case.memory.kept.sequence else { return };
    let held = case.held(&case.memory.kept.scores);
    let bytes: u64 = held.iter().map(|t| t.size).total();
    if !case.is_worth(bytes) {
        return;
    }
    let mut finding = case.finding(NAME);
    let saved = case.fill(&mut finding, vec![Edit::Blockwise("*".to_owned())]);
    if !case.is_worth(saved) {
        return;
    }
    finding.at_stake_bytes = Some(Bytes(bytes));
    finding.title = format!(
        "Attention scores take {} ({} of the peak): {}",
        Bytes(bytes).short(),
        percent(bytes, case.memory.peak.max(1)),
        finding.less(" if computed block by block")
    );
    let (pair, growth) = if case.memory.kept.are_crossed {
        ("pair of positions of two sequences".to_owned(), "product of the two lengths")
    } else {
        (format!("pair of {sequence} positions"), "square of the sequence length")
    };
    finding.why = format!(
        "At the peak {} one score for each {pair}; the largest is {}. Scores grow with the {growth}; block-wise attention never materialises them in full.",
        counted(held.len(), "temporary holds", "temporaries hold"),
        case.describe_first(&held)
    );
    let has_backward = case.memory.has_backward();
    if has_backward {
        let kept = format!(
            " Of each row of scores, splash attention keeps one number for the backward pass, JAX's flash attention two rows of {BLOCK}, which are not counted here."
        );
        finding.why.push_str(&kept);
    }
    finding.advice.push(Library::of(case).blockwise_attention().to_owned());
    if has_backward {
        finding.advice.push(
            "or `jax.checkpoint` around the attention alone: only one layer's scores are live at a time".to_owned(),
        );
    }
    // Same results up to the order of summation.
    finding.changes_results = ChangesResults::No;
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}
