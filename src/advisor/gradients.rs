//! Rule `gradients`: f32 gradients of all layers of a scan that are live at once.

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::program_context::{AtPeak, ProgramContext, Total, counted};
use super::replicated;
use crate::analysis::flow::steps::Steps;
use crate::model::{Bytes, FastSet, outline};

/// Name of the rule.
pub const NAME: &str = "gradients";

/// Looks for stacks of gradients at the peak.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let mut held = case.held(&case.memory.kept.gradients);
    let labels = case.analysis.labels(case.program);
    let steps = |t: &AtPeak| labels.role(case.program, t.buffer).map(|part| labels.steps.of(part.at));
    held.retain(|t| steps(t).is_some_and(Steps::are_layers));
    held.retain(|t| case.node(t.buffer).is_some_and(|node| node.element_type.is_wide_float()));
    let bytes: u64 = held.iter().map(|t| t.size).total();
    if !case.is_worth(bytes) {
        return;
    }
    let are_added_up = case.memory.summed_parts(case.program) > 1;
    let mut finding = case.remedy(NAME);
    finding.at_stake_bytes = Some(Bytes(bytes));
    let of = if are_added_up { "all layers, of one micro-batch," } else { "all layers" };
    finding.title = format!("f32 gradients of {of} at the peak: {}", Bytes(bytes).short());
    finding.why = format!(
        "The scan of the backward pass writes {} with one slice for each {}, the largest {}; {}.",
        counted(held.len(), "stack", "stacks"),
        held.first().and_then(|t| steps(t)).map_or("layer", Steps::one),
        case.describe_first(&held),
        if are_added_up {
            "each is then added to the sum over the micro-batches, which has as many bytes more"
        } else {
            "they are kept for the update"
        }
    );
    finding.advice.push(Library::of(case).narrow_gradients().to_owned());
    // Each is as large as the whole weight, though what updates it is divided.
    let outline_of = |buffer| case.node(buffer).map(|node| outline(&node.dimensions));
    let known = case.arguments().filter(|argument| !case.is_data(argument.0));
    let known = known.filter_map(|(row, _, number, _)| Some((number, outline_of(case.memory.base[row].buffer)?)));
    let (whole, divided): (Vec<_>, Vec<_>) = known.partition(|argument| replicated::is_whole(case, argument.0));
    let divided: FastSet<Vec<i64>> = divided.into_iter().map(|argument| argument.1).collect();
    let is_divided = |t: &&AtPeak| outline_of(t.buffer).is_some_and(|outline| divided.contains(&outline));
    if !divided.is_empty() && !whole.is_empty() && !held.iter().any(is_divided) {
        finding.advice.push("shard gradients like the optimizer state (`with_sharding_constraint` on them): they are then reduce-scattered instead of all-reduced".to_owned());
    }
    finding.changes_results = ChangesResults::Maybe;
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}
