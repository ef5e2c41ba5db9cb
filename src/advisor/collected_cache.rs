//! Rule `collected_cache`: a loop over layers that collects a cache anew, beside the old one, instead of writing to it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::finding::{ChangesResults, Finding, Severity};
use super::program_context::{ProgramContext, Total, listed};
use crate::analysis::category;
use crate::analysis::class::Class;
use crate::analysis::flow::loops::Role as LoopRole;
use crate::analysis::what_if::{Arguments, Edit};
use crate::model::{BufferId, Bytes, Category, ElementType};

/// Name of the rule.
pub const NAME: &str = "collected_cache";

/// Looks for arrays as large as caches at the peak that a loop over layers collects.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    if case.memory.has_backward() {
        return;
    }
    let (program, classes) = (case.program, case.analysis.classes(case.program));
    let labels = case.analysis.labels(program);
    let is_cache = |row: usize| classes.of(case.memory.base[row].buffer) == Class::Cache;
    let mut caches: BTreeMap<(ElementType, Vec<i64>), Vec<&str>> = BTreeMap::new();
    for (row, path, ..) in case.arguments().filter(|argument| is_cache(argument.0)) {
        if let Some(node) = case.node(case.memory.base[row].buffer) {
            caches.entry((node.element_type, node.dimensions.clone())).or_default().push(path);
        }
    }
    if caches.is_empty() {
        return;
    }
    let cache_of = |buffer: BufferId| {
        let node = program.buffer_node(buffer)?;
        let part = labels.role(program, buffer).filter(|part| part.role == LoopRole::Collected && part.layers > 1)?;
        let paths = caches.get(&(node.element_type, node.dimensions.clone()))?;
        Some((part, paths))
    };
    let rows = case.space.at_peak.rows.iter().filter(|row| category(program, row.0) != Category::Parameter);
    let mut found: Vec<(BufferId, u64)> =
        rows.filter(|row| cache_of(row.0).is_some()).map(|row| (row.0, row.1.0)).collect();
    found.sort_by_key(|&(buffer, bytes)| (std::cmp::Reverse(bytes), buffer));
    let bytes = found.iter().map(|row| row.1).total();
    let Some((part, paths)) = found.first().and_then(|row| cache_of(row.0)).filter(|_| case.is_worth(bytes)) else {
        return;
    };
    let steps = labels.steps.of(part.at);
    let mut finding = case.finding(NAME);
    let short = Bytes(bytes).short();
    finding.at_stake_bytes = Some(Bytes(bytes));
    finding.title =
        format!("The loop over {} {} makes the cache anew: {short} beside the old one", part.layers, steps.many());
    let names: Vec<String> = paths.iter().map(ToString::to_string).collect();
    finding.why = format!(
        "Each step takes its {}'s slice of {} and returns a new one, which the loop collects in another array.",
        steps.one(),
        listed(&names, 2)
    );
    let donated = case.try_out(&[Edit::Donate(Arguments(names))]);
    if !case.is_worth(case.saved(&donated)) {
        finding.why.push_str(" Donation alone changes nothing: the old one is read up to the last step.");
    }
    if case.severity() == Severity::Critical
        && let Some(capacity) = case.memory.capacity
    {
        let left = case.allocated().saturating_sub(bytes);
        let enough = if left <= capacity { "it may fit" } else { "that alone is not enough" };
        let _ = write!(finding.why, " Without it the program needs about {}: {enough}.", Bytes(left).short());
    }
    finding.advice.push(format!(
        "carry the whole cache through the loop, and go over the numbers of the {many} beside the weights: read its slice with `jax.lax.dynamic_index_in_dim`, write the new rows with `jax.lax.dynamic_update_slice` or `.at[…].set`, and donate it: it is then updated in place",
        many = steps.many()
    ));
    finding.at_most = Some(format!("at most {short} less, if it is updated in place"));
    finding.changes_results = ChangesResults::No;
    finding.buffers = found.iter().map(|row| row.0).collect();
    findings.push(finding);
}
