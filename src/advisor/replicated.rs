//! Rule `replicated`: large arguments of which every device holds a full copy.

use std::collections::HashSet;

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::program_context::{AtPeak, ProgramContext, Total, listed};
use super::zero;
use crate::analysis::class::{Class, Reason};
use crate::analysis::what_if::{Arguments, Edit, Role};
use crate::model::{BufferId, Bytes, outline, thousands};

/// Name of the rule.
pub const NAME: &str = "replicated";

/// Share of the available memory from which an argument counts as large.
const LARGE: f64 = 0.01;

/// Share of allocated bytes from which replicated arguments are much, whatever each of them takes.
const MUCH: f64 = 0.40;

/// Whether an argument is replicated, according to its sharding in the file.
#[must_use]
pub fn is_whole(case: &ProgramContext<'_>, number: i64) -> bool {
    let sharding = case.program.sharding_of_parameter(number);
    sharding.is_none_or(|s| s.parts() <= 1)
}

/// Rows of the large replicated arguments, largest first.
pub fn rows(case: &ProgramContext<'_>) -> Vec<usize> {
    let devices = case.program.devices();
    if devices <= 1 || case.program.parameter_shardings.is_empty() {
        return Vec::new();
    }
    // Many arrays of which each is small next to the memory are as bad as one.
    let all = bytes(case);
    // So are those that are enough to make a program fit that is over.
    let over = case.memory.capacity.map_or(0, |capacity| case.allocated().saturating_sub(capacity));
    let is_enough = over > 0 && all - all / u64::from(devices) > over;
    let is_much = case.is_share(all, MUCH) || is_enough;
    let mut rows: Vec<usize> = case
        .arguments()
        .filter(|&(row, _, number, _)| {
            let size = case.memory.base[row].size;
            let is_whole = is_whole(case, number);
            let is_large = match case.memory.capacity {
                Some(_) => case.is_share_of_capacity(size, LARGE),
                None => case.is_share(size, LARGE),
            };
            is_whole && (is_large || (is_much && is_divisible(case, row))) && !case.is_data(row)
        })
        .map(|(row, ..)| row)
        .collect();
    rows.sort_by_key(|&row| std::cmp::Reverse(case.memory.base[row].size));
    rows
}

/// What has the batch of all devices where activations are divided along their width, in words.
fn scores(case: &ProgramContext<'_>) -> &'static str {
    let kept = &case.memory.kept;
    match (kept.logits.is_empty(), kept.scores.is_empty()) {
        (false, false) => "logits and attention scores",
        (true, false) => "attention scores",
        _ => "logits",
    }
}

/// Whether some dimension of an argument can be divided over all devices: a counter cannot.
pub fn is_divisible(case: &ProgramContext<'_>, row: usize) -> bool {
    let node = case.node(case.memory.base[row].buffer);
    node.is_some_and(|node| node.dimensions.iter().any(|&size| size >= i64::from(case.program.devices())))
}

/// Bytes of all replicated arguments, large and small, that hold no batch.
pub fn bytes(case: &ProgramContext<'_>) -> u64 {
    if case.program.devices() <= 1 || case.program.parameter_shardings.is_empty() {
        return 0;
    }
    let whole = case.arguments().filter(|&(row, _, number, _)| is_whole(case, number) && !case.is_data(row));
    whole.map(|(row, ..)| case.memory.base[row].size).total()
}

/// Shards arguments over some devices; where training divides the batch over as many, the activations are constrained, too.
pub fn edits(case: &ProgramContext<'_>, names: &[String], devices: u32) -> Vec<Edit> {
    let mut edits = vec![Edit::Shard(Arguments(names.to_vec()), devices)];
    let is_divided_alike = case.memory.data.iter().any(|data| data.parts == i64::from(devices));
    if is_divided_alike && case.memory.has_backward() {
        edits.push(Edit::Constrain(devices));
    }
    edits
}

/// What has to be done besides where weights are divided over the devices that divide the batch.
pub fn constrain_too(case: &ProgramContext<'_>) -> String {
    format!(
        "if weights are sharded over the batch axis, constrain the activations too ({}), or each device may hold activations of the global batch",
        Library::of(case).constrain()
    )
}

/// Names so many that each is as much as another.
const MANY_NAMES: usize = 256;

/// Part of all that is replicated, 1/n, below which what goes by one name is left as it is.
const NEXT_TO_NOTHING: u64 = 1000;

/// Most names that are given one by one.
const FEW_NAMES: usize = 3;

/// The arguments to divide, largest first, with their names: the large ones; where these are many, or not most of the
/// bytes, with the small ones under the same names.
fn named(case: &ProgramContext<'_>, large: &[usize]) -> (Vec<usize>, Vec<String>) {
    let names = case.names_of(large, |row| case.is_data(row) || is_divisible(case, row));
    let of_large = large.iter().map(|&row| case.memory.base[row].size).total();
    if names.len() <= FEW_NAMES && of_large.saturating_mul(2) >= bytes(case) {
        return (large.to_vec(), names);
    }
    let divided: HashSet<usize> =
        case.arguments().filter(|&(_, _, number, _)| !is_whole(case, number)).map(|argument| argument.0).collect();
    let mut names = case.names_of(large, |row| case.is_data(row) || divided.contains(&row));
    // What takes next to nothing beside the others is not worth dividing.
    let bytes_of = |name: &String| {
        let own = Arguments(vec![name.clone()]);
        let rows = case.arguments().filter(|argument| own.include(argument.1)).map(|argument| argument.0);
        rows.map(|row| case.memory.base[row].size).total()
    };
    if names.len() <= MANY_NAMES {
        let of_names: Vec<u64> = names.iter().map(bytes_of).collect();
        let least = of_names.iter().copied().total() / NEXT_TO_NOTHING;
        let mut counts = of_names.iter().map(|&bytes| bytes >= least);
        names.retain(|_| counts.next().unwrap_or(true));
    }
    let meant = Arguments(names.clone());
    let is_meant = |&(row, path, number, _): &(usize, &str, i64, bool)| {
        meant.include(path) && is_whole(case, number) && !case.is_data(row) && is_divisible(case, row)
    };
    let mut rows: Vec<usize> = case.arguments().filter(is_meant).map(|argument| argument.0).collect();
    rows.sort_by_key(|&row| std::cmp::Reverse(case.memory.base[row].size));
    (rows, names)
}

/// What temporaries with the shapes of arguments are, where they are all of one kind: ` (gradients)`.
fn what_they_are(case: &ProgramContext<'_>, twins: &[&AtPeak]) -> &'static str {
    let classes = case.analysis.classes(case.program);
    let are_all = |accept: &dyn Fn(BufferId) -> bool| twins.iter().all(|t| accept(t.buffer));
    if are_all(&|buffer| classes.of(buffer) == Class::Gradient) {
        " (gradients)"
    } else if are_all(&|buffer| matches!(classes.reason(buffer), Reason::CopyOfArgument | Reason::Gathered)) {
        " (copies of them)"
    } else {
        ""
    }
}

/// Share by which what is divided may be off the part that is left of it, to be that part exactly.
const EXACTLY: f64 = 0.005;

/// Whether a finding's changes leave just the part of the arguments that is a device's, and no padding takes some of it.
fn shrinks_exactly(case: &ProgramContext<'_>, finding: &Finding, whole: u64) -> bool {
    let after = case.try_out(finding.edits());
    let less = case.before.base.0.saturating_sub(after.base.0) as f64;
    let wanted = (whole - whole / u64::from(case.program.devices().max(1))) as f64;
    less >= wanted * (1.0 - EXACTLY)
}

/// Looks for large replicated arguments.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let large = rows(case);
    if large.is_empty() {
        return;
    }
    let devices = case.program.devices();
    let (rows, names) = named(case, &large);
    let mut finding = case.finding(NAME);
    case.fill(&mut finding, edits(case, &names, devices));
    let whole: u64 = rows.iter().map(|&row| case.memory.base[row].size).total();
    // Of small ones there are many shapes, which other arrays have too.
    let outlines: Vec<Vec<i64>> = large
        .iter()
        .filter_map(|&row| case.node(case.memory.base[row].buffer))
        .map(|node| outline(&node.dimensions))
        .collect();
    let twins: Vec<_> = case
        .peak
        .iter()
        .filter(|t| case.node(t.buffer).is_some_and(|node| outlines.contains(&outline(&node.dimensions))))
        .collect();
    let twin_bytes: u64 = twins.iter().map(|t| t.size).total();
    let results: u64 = case
        .memory
        .base
        .iter()
        .filter(|base| matches!(base.role, Role::Result(_)))
        .filter(|base| case.node(base.buffer).is_some_and(|node| outlines.contains(&outline(&node.dimensions))))
        .map(|base| base.size)
        .total();
    let of_large: u64 = large.iter().map(|&row| case.memory.base[row].size).total();
    let stake = of_large.saturating_add(results).saturating_add(twin_bytes).max(whole);
    let stake = stake - stake / u64::from(devices);
    if !case.is_worth(stake) {
        return;
    }
    finding.at_stake_bytes = Some(Bytes(stake));
    let all = bytes(case).max(whole);
    finding.title = if Bytes(all).short() == Bytes(whole).short() {
        format!(
            "{} of arguments are replicated on all {devices} devices: {}",
            Bytes(all).short(),
            listed(&names, FEW_NAMES)
        )
    } else {
        format!(
            "{} of arguments are replicated on all {devices} devices; the largest take {}: {}",
            Bytes(all).short(),
            Bytes(whole).short(),
            listed(&names, FEW_NAMES)
        )
    };
    finding.why = format!(
        "{} {} not sharded over the mesh. Sharded {devices} ways, these arguments shrink by {} factor{}.",
        listed(&names, FEW_NAMES),
        if names.len() == 1 { "is" } else { "are" },
        if shrinks_exactly(case, &finding, whole) { "exactly that" } else { "about that" },
        if twin_bytes > 0 {
            format!(
                "; {} of temporaries of the same shapes{} may shrink with them: up to {} more",
                Bytes(twin_bytes).short(),
                what_they_are(case, &twins),
                Bytes(twin_bytes - twin_bytes / u64::from(devices)).short()
            )
        } else {
            String::new()
        }
    );
    finding.why.push_str(&case.counted_twice(&finding, &rows, (whole, whole - whole / u64::from(devices))));
    let largest = case.describe(case.memory.base[rows[0]].buffer);
    finding.advice.push(format!("{}; the largest is {largest}", Library::of(case).shard_weights()));
    let of_table = case.memory.indivisible_vocabulary(i64::from(devices)).filter(|_| case.memory.has_backward());
    if let Some((words, padded)) = of_table {
        let [words, padded] = [words, padded].map(|words| thousands(words.unsigned_abs()));
        finding.advice.push(format!(
            "{devices} devices do not divide the vocabulary of {words}: pad it to {padded}, or the tables of words can only be sharded along their width, and the compiler may then divide activations so, too, and each device may hold {} of the whole batch",
            scores(case)
        ));
    }
    finding.advice.push(constrain_too(case));
    let classes = case.analysis.classes(case.program);
    let is_average = |row: usize| zero::is_average(case, row);
    let is_state = |row: &usize| classes.of(case.memory.base[*row].buffer) == Class::Optimizer || is_average(*row);
    let of_update: Vec<usize> = rows.iter().copied().filter(is_state).collect();
    let state = of_update.iter().map(|&row| case.memory.base[row].size).total();
    if state > 0 {
        let alone = match Library::of(case) {
            Library::Keras => ", which Keras cannot shard alone",
            _ => ": sharding only that and its update (ZeRO) leaves the computation as it is",
        };
        finding.advice.push(format!(
            "{} of it is {}{alone}",
            Bytes(state).short(),
            zero::words(&of_update, is_average)
        ));
    }
    finding.changes_results = ChangesResults::No;
    finding.buffers = rows.iter().map(|&row| case.memory.base[row].buffer).collect();
    finding.buffers.extend(twins.iter().take(50).map(|t| t.buffer));
    findings.push(finding);
}
