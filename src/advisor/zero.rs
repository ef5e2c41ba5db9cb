//! Rule `zero`: replicated optimizer state that can be sharded without touching the computation (ZeRO).

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::program_context::{ProgramContext, Total, listed};
use super::replicated;
use crate::analysis::class::Class;
use crate::analysis::what_if::{Arguments, Edit};
use crate::model::Bytes;

/// Name of the rule.
pub const NAME: &str = "zero";

/// Looks for optimizer state among the replicated arguments.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let classes = case.analysis.classes(case.program);
    let devices = case.program.devices();
    if devices <= 1 || case.program.parameter_shardings.is_empty() {
        return;
    }
    let is_divisible = |row: usize| replicated::is_divisible(case, row);
    let is_state = |row: usize| classes.of(case.memory.base[row].buffer) == Class::Optimizer && is_divisible(row);
    let whole = case.arguments().filter(|&(row, _, number, _)| is_state(row) && replicated::is_whole(case, number));
    let rows: Vec<usize> = whole.map(|argument| argument.0).collect();
    let bytes: u64 = rows.iter().map(|&row| case.memory.base[row].size).total();
    if !case.is_worth(bytes) {
        return;
    }
    // What is next to nothing beside them may be divided too, so that all have one name.
    let counts = |row: usize| is_divisible(row) && case.counts_beside(row, bytes);
    let names = case.names_of(&rows, counts);
    let mut finding = case.remedy(NAME);
    let saved = case.fill(&mut finding, vec![Edit::Shard(Arguments(names.clone()), devices)]);
    if !case.is_worth(saved) {
        return;
    }
    finding.title = format!("Shard optimizer state over the {devices} devices (ZeRO): {}", finding.less(""));
    finding.why = format!(
        "{} of optimizer state ({}) is replicated on every device, but only the update reads it. Sharded, each device updates its part of the weights, which are then all-gathered; where there is room, the compiler may copy the weights for that.",
        Bytes(bytes).short(),
        listed(&names, 3)
    );
    finding.why.push_str(&case.counted_twice(&rows, (bytes, bytes - bytes / u64::from(devices)), saved));
    finding.advice.push(Library::of(case).shard_state().to_owned());
    finding.changes_results = ChangesResults::No;
    finding.buffers = rows.iter().map(|&row| case.memory.base[row].buffer).collect();
    findings.push(finding);
}
