//! Rule `unsharded_activations`: temporaries that hold the global batch on every device.

use super::finding::{ChangesResults, Finding};
use super::program_context::{AtPeak, ProgramContext, Total, counted};
use crate::analysis::class::Class;
use crate::analysis::names::scope::path;
use crate::analysis::what_if::Edit;
use crate::analysis::what_if::batch::DataArgument;
use crate::model::Bytes;

/// Name of the rule.
pub const NAME: &str = "unsharded_activations";

/// Looks for temporaries at the peak that hold the global batch.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let Some(batch) = case.memory.global_batch(case.program) else { return };
    // What is divided over the same devices along another dimension is as small as if it were divided along the batch.
    let whole = case.memory.whole_batches(case.program, &case.peak.iter().map(|t| t.buffer).collect());
    // Of a function that is mapped over devices, sizes are those of one device.
    let is_mapped = |t: &AtPeak| path(case.name(t.family)).contains(&"shard_map");
    let held: Vec<_> = case.peak.iter().filter(|t| whole.contains(&t.buffer) && !is_mapped(t)).collect();
    let bytes: u64 = held.iter().map(|t| t.size).total();
    if !case.is_worth(bytes) {
        return;
    }
    let Ok(parts) = u32::try_from(batch.parts) else { return };
    let mut finding = case.finding(NAME);
    let saved = case.fill(&mut finding, vec![Edit::Constrain(parts)]);
    if !case.is_worth(saved) {
        return;
    }
    let data = case.memory.data.iter().find(|d| d.parts == batch.parts);
    let local = batch.of_each();
    // A loop over micro-batches has one of them at a time.
    let (what, held_by) = match data.map_or(local, DataArgument::batch) / local.max(1) {
        ..=1 => ("global batch", format!("The data arguments hold a batch of {local} per device")),
        parts => ("micro-batch", format!("Each of {parts} micro-batches has {local} samples per device")),
    };
    finding.at_stake_bytes = Some(Bytes(bytes - bytes / u64::from(parts)));
    finding.title = format!(
        "{} of temporaries hold the {what} of all {parts} devices: {}",
        Bytes(bytes).short(),
        finding.less(" if sharded")
    );
    finding.why = format!(
        "{held_by}, but {} at the peak {} {} (all {parts} devices), the largest {}. This happens when nothing constrains the activations, and weights are sharded over the batch axis or a reshape merges the batch with another dimension: the compiler then shards the wrong dimension, or none, and every device keeps the whole batch.",
        counted(held.len(), "temporary", "temporaries"),
        if held.len() == 1 { "holds" } else { "hold" },
        local.saturating_mul(batch.parts),
        case.describe_first(&held)
    );
    let is_behind = data.is_some_and(|data| {
        let node = case.node(case.memory.base[data.base as usize].buffer);
        node.is_some_and(|node| node.dimensions.first() != data.dimensions.first())
    });
    if is_behind {
        finding.advice.push(
            "the batch is not the first dimension of the data: bring it to the front before it is merged with others (`reshape`), or merge them under `jax.shard_map`; behind another dimension it cannot stay divided".to_owned(),
        );
    }
    finding.advice.push(
        if case.memory.kept.vocabulary.is_some() {
            "`x = jax.lax.with_sharding_constraint(x, P(\"data\"))` on the residual stream, with the batch axis: after the embedding and at the end of each layer".to_owned()
        } else {
            "`x = jax.lax.with_sharding_constraint(x, P(\"data\"))` with the batch axis, on the input of the first layer and on what each layer passes on".to_owned()
        },
    );
    finding
        .advice
        .push("check with `jax.debug.visualize_array_sharding` or the sharding in the type (`jax.typeof`)".to_owned());
    if has_divided_weights(case) {
        finding.warnings.push(
            "weights are then gathered layer by layer: add one layer's full weights for each prefetch in flight"
                .to_owned(),
        );
    }
    if data.is_some_and(|d| !d.by_name) {
        finding.warnings.push("which arguments hold the batch is known from their sharding alone".to_owned());
    }
    finding.changes_results = ChangesResults::No;
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Whether any weight is known to be divided over devices, or it is not known of one.
fn has_divided_weights(case: &ProgramContext<'_>) -> bool {
    let classes = case.analysis.classes(case.program);
    let mut weights = case.arguments().filter(|(row, ..)| classes.of(case.memory.base[*row].buffer) == Class::Weight);
    weights.any(|(_, _, number, _)| case.program.sharding_of_parameter(number).is_none_or(|of| of.parts() > 1))
}
