//! Rule `logits`: logits over a large vocabulary, and their gradient, held for all positions at once.

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::program_context::{ProgramContext, Total, counted};
use crate::analysis::what_if::{Edit, LOGITS};
use crate::model::{Bytes, thousands};

/// Name of the rule.
pub const NAME: &str = "logits";

/// Share of allocated bytes from which logits are reported even if chunking them alone hardly lowers the peak.
const CAUSE: f64 = 0.30;

/// Number of chunks in which the loss is computed.
const PARTS: u32 = 8;

/// Looks for buffers at the peak that have the vocabulary as a dimension.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let Some(vocabulary) = case.memory.kept.vocabulary else { return };
    let held = case.held(&case.memory.kept.logits);
    let bytes: u64 = held.iter().map(|t| t.size).total();
    if !case.is_worth(bytes) {
        return;
    }
    let mut finding = case.finding(NAME);
    let saved = case.fill(&mut finding, vec![Edit::Chunk(LOGITS.to_owned(), PARTS)]);
    if !case.is_worth(saved) && !case.is_share(bytes, CAUSE) {
        return;
    }
    finding.at_stake_bytes = Some(Bytes(bytes));
    finding.title = format!(
        "Logits over {} tokens take {} of the peak: {} less in {PARTS} chunks",
        thousands(vocabulary.unsigned_abs()),
        Bytes(bytes).short(),
        Bytes(saved).short()
    );
    finding.why = format!(
        "At the peak, {} the vocabulary as a dimension, for all positions at once; the largest is {}. The loss needs only one number per position; logits and their gradient are intermediate values.",
        counted(held.len(), "temporary has", "temporaries have"),
        case.describe_first(&held)
    );
    finding.advice.push(Library::of(case).chunked_loss(PARTS));
    let nodes = || held.iter().filter_map(|t| case.node(t.buffer));
    if nodes().any(|node| node.element_type.is_wide_float()) {
        finding
            .advice
            .push("keep the logits in bfloat16, and reduce in f32 (`logsumexp` of the upcast logits fuses)".to_owned());
    }
    // What is a part of the vocabulary is sharded along it already.
    if case.program.devices() > 1 && nodes().any(|node| node.dimensions.contains(&vocabulary)) {
        finding.advice.push("shard them along the vocabulary too: `with_sharding_constraint` on the logits with the mesh axis that the output embedding is sharded over".to_owned());
    }
    finding.changes_results = ChangesResults::No;
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}
