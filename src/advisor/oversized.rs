//! Rule `oversized`: one buffer that takes more than half of the available memory.

use super::finding::{ChangesResults, Finding};
use super::program_context::ProgramContext;
use super::replicated;
use crate::analysis::class::Class;
use crate::model::{BufferId, Bytes};

/// Name of the rule.
pub const NAME: &str = "oversized";

/// What is left of a buffer on each of the fewest devices, a power of two, that leave half of the memory for the rest.
fn divided(size: u64, capacity: u64) -> String {
    let devices = size.div_ceil((capacity / 2).max(1)).max(2).next_power_of_two();
    format!("{} on each of {devices}", Bytes(size / devices).short())
}

/// Looks for single buffers larger than half of the available memory.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let Some(capacity) = case.memory.capacity else { return };
    let classes = case.analysis.classes(case.program);
    let replicated: Vec<Vec<i64>> = replicated::rows(case)
        .into_iter()
        .filter_map(|row| case.node(case.memory.base[row].buffer).map(|node| node.dimensions.clone()))
        .collect();
    // Stacks of a scan, logits and attention scores are covered by other rules.
    let kept = &case.memory.kept;
    let own = case.peak.iter().filter(|t| !kept.is_stack(t.family) && !kept.has_own_remedy(t.family));
    let mut large: Vec<(u64, BufferId)> = case
        .memory
        .base
        .iter()
        .map(|base| (base.size, base.buffer))
        .chain(own.map(|t| (t.size, t.buffer)))
        .filter(|&(size, buffer)| {
            // Replicated arguments are already reported by their own rule.
            let is_explained = || case.node(buffer).is_some_and(|node| replicated.contains(&node.dimensions));
            // A cache is as large as it is meant to be.
            size > capacity / 2 && classes.of(buffer) != Class::Cache && !is_explained()
        })
        .collect();
    large.sort_by_key(|&(size, buffer)| (std::cmp::Reverse(size), buffer));
    let Some(&(size, buffer)) = large.first() else { return };
    let mut finding = case.finding(NAME);
    case.fill_at_most(&mut finding, case.drop_all(&[buffer]));
    finding.title = format!("One buffer takes {}, {}", Bytes(size).short(), case.of_capacity(size));
    finding.at_stake_bytes = Some(Bytes(size));
    let count = large.len();
    finding.why = format!(
        "The largest is {}.{} One allocation above half of the memory is rarely a matter of capacity: usually something is replicated, sharded over the wrong mesh shape, expanded by a broadcast, or kept for debugging.",
        case.describe(buffer),
        if count > 1 { format!(" {count} buffers are that large.") } else { String::new() }
    );
    if case.program.devices() > 1 {
        finding.advice.push(
            "check that the mesh and its sharding are what you intended (`with_sharding_constraint` where it is made)"
                .to_owned(),
        );
    } else {
        finding.advice.push(format!(
            "shard it across more devices ({}), or compute it in blocks (`jax.lax.map` with `batch_size`, `jax.lax.scan`)",
            divided(size, capacity)
        ));
    }
    finding.advice.push("look for a product of two large dimensions (all pairs, one-hot, attention scores) that can be computed block by block".to_owned());
    finding.advice.push("remove `jax.debug.print` and other callbacks on it".to_owned());
    finding.changes_results = ChangesResults::Maybe;
    finding.buffers = large.into_iter().map(|row| row.1).collect();
    findings.push(finding);
}
