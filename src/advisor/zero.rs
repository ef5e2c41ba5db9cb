//! Rule `zero`: replicated optimizer state that can be sharded without touching the computation (ZeRO).

use std::collections::BTreeMap;

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::program_context::{ProgramContext, Total, listed};
use super::replicated;
use super::state_in_place::parts;
use crate::analysis::class::Class;
use crate::analysis::what_if::{Arguments, Base, Edit};
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
    let library = Library::of(case);
    // Without a switch for it, it is only told where dividing all is not.
    if library == Library::Keras && !replicated::rows(case).is_empty() {
        return;
    }
    let is_divisible = |row: usize| replicated::is_divisible(case, row);
    // Keras divides weights and state together.
    let with_weights = library == Library::Keras;
    let is_average = |row: usize| is_average(case, row);
    let is_state = |row: usize| match classes.of(case.memory.base[row].buffer) {
        Class::Optimizer => is_divisible(row),
        Class::Weight => (with_weights || is_average(row)) && is_divisible(row),
        _ => false,
    };
    // By how many devices hold the same of it: all, or those that divide the batch beside tensor parallelism.
    let mut by_holders: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for argument in case.arguments().filter(|argument| is_state(argument.0)) {
        let parts = u32::try_from(parts(case, argument.0)).unwrap_or(1).max(1);
        if parts < devices && devices.is_multiple_of(parts) {
            by_holders.entry(devices / parts).or_default().push(argument.0);
        }
    }
    let size = |rows: &[usize]| rows.iter().map(|&row| case.memory.base[row].size).total();
    let Some((holders, rows)) = by_holders.into_iter().max_by_key(|found| size(&found.1)) else { return };
    let bytes = size(&rows);
    if !case.is_worth(bytes) {
        return;
    }
    // What is next to nothing beside them may be divided too, so that all have one name.
    let counts = |row: usize| is_divisible(row) && case.counts_beside(row, bytes);
    let names = case.names_of(&rows, counts);
    let mut finding = case.remedy(NAME);
    let edits = if with_weights {
        replicated::edits(case, &names, holders)
    } else {
        vec![Edit::Shard(Arguments(names.clone()), holders)]
    };
    let saved = case.fill(&mut finding, edits);
    if !case.is_worth(saved) {
        return;
    }
    let over = if holders == devices { "" } else { " that hold the same" };
    let holds = if holders == devices { "every device".to_owned() } else { format!("{holders} devices each") };
    let what = listed(&names, 3);
    if with_weights {
        finding.title =
            format!("Shard weights and optimizer state over the {holders} devices{over}: {}", finding.less_at_most());
        finding.why = format!(
            "{} of weights and optimizer state ({what}) is the same on {holds}. Sharded, each device keeps and updates its part, and gathers the weights where it needs them, which takes some of that.",
            Bytes(bytes).short(),
        );
    } else {
        let state = words(&rows, is_average);
        finding.title = format!("Shard {state} over the {holders} devices{over} (ZeRO): {}", finding.less(""));
        let copied = (bytes - bytes / u64::from(holders)).saturating_sub(saved);
        let allowance = if case.is_worth(copied) {
            format!(
                "; where there is room, the compiler copies the weights for that: the saving allows {} for it",
                Bytes(copied).short()
            )
        } else {
            String::new()
        };
        finding.why = format!(
            "{} of {state} ({what}) is the same on {holds}, but only the update reads it. Sharded, each device updates its part of the weights, which are then all-gathered{allowance}.",
            Bytes(bytes).short(),
        );
    }
    let results = case.counted_twice(&finding, &rows, (bytes, bytes - bytes / u64::from(holders)));
    finding.why.push_str(&results);
    finding.advice.push(library.shard_state().to_owned());
    if with_weights {
        finding.advice.push(replicated::constrain_too(case));
    } else {
        let with_results = if results.is_empty() { "" } else { ", results that donation saves as well among it" };
        finding.advice.extend(weights_too(case, &rows, holders, (saved, with_results)));
    }
    finding.changes_results = ChangesResults::No;
    finding.buffers = rows.iter().map(|&row| case.memory.base[row].buffer).collect();
    findings.push(finding);
}

/// What dividing the weights as well comes to, where all devices hold the same of them and no other finding says so.
fn weights_too(
    case: &ProgramContext<'_>,
    rows: &[usize],
    holders: u32,
    (saved, with_results): (u64, &str),
) -> Option<String> {
    if holders != case.program.devices() || !replicated::rows(case).is_empty() {
        return None;
    }
    let classes = case.analysis.classes(case.program);
    let is_weight = |row: &usize| {
        classes.of(case.memory.base[*row].buffer) == Class::Weight
            && replicated::is_divisible(case, *row)
            && parts(case, *row) <= 1
    };
    let all: Vec<usize> =
        case.arguments().map(|argument| argument.0).filter(is_weight).chain(rows.iter().copied()).collect();
    let bytes = all.iter().map(|&row| case.memory.base[row].size).total();
    let names = case.names_of(&all, |row| replicated::is_divisible(case, row) && case.counts_beside(row, bytes));
    let together = case.try_out(&replicated::edits(case, &names, holders));
    let all_saved = if together.is_told() { case.saved(&together) } else { 0 };
    case.is_worth(all_saved.saturating_sub(saved)).then(|| {
        format!(
            "the weights are the same on every device too; dividing them as well (FSDP, which gathers them layer by layer) saves up to {} in all{with_results}: {}; {}",
            Bytes(all_saved).short(),
            Library::of(case).shard_weights(),
            replicated::constrain_too(case)
        )
    })
}

/// Whether an argument is an average of the weights, which the step only updates: it is divided like optimizer state.
pub(super) fn is_average(case: &ProgramContext<'_>, row: usize) -> bool {
    case.memory.has_backward() && case.memory.base.get(row).is_some_and(Base::is_average_of_weights)
}

/// What some rows are called of which each is optimizer state or an average of the weights.
pub(super) fn words(rows: &[usize], is_average: impl Fn(usize) -> bool) -> &'static str {
    match rows.iter().filter(|&&row| is_average(row)).count() {
        0 => "optimizer state",
        all if all == rows.len() => "the average of the weights",
        _ => "optimizer state and the average of the weights",
    }
}
