//! Rule `donation`: arguments whose memory a result of the same shape could take over.

use std::collections::{BTreeMap, HashMap};

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::program_context::{ProgramContext, Total, counted, listed, short_names};
use crate::analysis::what_if::{Arguments, Edit, Role};
use crate::model::{AllocationId, BufferId, Bytes, ElementType, FastMap, FastSet, Program};

/// Name of the rule.
pub const NAME: &str = "donation";

/// Least share of allocated bytes at which donation is reported; low, as donation is free and changes no results.
const SHARE: f64 = 0.02;

/// The smallest arguments that together hold less than this fraction of the donated bytes are not named.
const SMALL_PART: u64 = 1000;

/// Share of allocated bytes below which a possible copy of donated arguments is not reported.
const LATE_SHARE: f64 = 0.01;

/// Looks for arguments to donate, and for donated arguments that no result could use.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    unused(case, findings);
    let prediction = case.try_out(&[Edit::Donate(Arguments::all())]);
    let saved = case.saved(&prediction);
    if prediction.pairs.is_empty() || !case.is_share(saved, SHARE) {
        return;
    }
    // Ignore small arguments that happen to have the shape of a result: they would only make the names longer.
    let rows: Vec<usize> = prediction.pairs.iter().map(|pair| pair.0 as usize).collect();
    let least = least_that_counts(rows.iter().map(|&row| case.memory.base[row].size).collect());
    let counts = |row: usize| case.memory.base[row].size >= least;
    let is_kept = |row: usize| matches!(case.memory.base[row].role, Role::Argument { is_donated: false, .. });
    let counting: Vec<usize> = rows.iter().copied().filter(|&row| counts(row)).collect();
    let whole = whole_arguments(case, &counting);
    let donated_whole: FastSet<&str> = whole.iter().copied().collect();
    let is_in_whole = |row: usize| matches!(&case.memory.base[row].role, Role::Argument { path, .. } if donated_whole.contains(&first_name(path)));
    let named: Vec<usize> = rows.iter().copied().filter(|&row| counts(row) && !is_in_whole(row)).collect();
    let mut names: Vec<String> = whole.iter().map(|&name| name.to_owned()).collect();
    names.extend(case.names_of(&named, |row| is_kept(row) && counts(row)));
    let edit = if names.is_empty() { Arguments::all() } else { Arguments(names.clone()) };
    // What these names donate, small arguments among them.
    let is_meant = |row: usize| match &case.memory.base[row].role {
        Role::Argument { path, .. } => edit.include(path),
        _ => false,
    };
    let meant: Vec<usize> = rows.iter().copied().filter(|&row| is_meant(row)).collect();
    // A program with thousands of arguments receives them as one tuple, without names.
    let said = if names.is_empty() { "the arguments".to_owned() } else { Library::of(case).called(&names, 4) };
    let mut finding = case.finding(NAME);
    case.fill(&mut finding, vec![Edit::Donate(edit)]);
    finding.title = format!("Donate {said}: {}", finding.less(" at the peak"));
    finding.why = format!(
        "{} the same shape and type as a result that has memory of its own, so each is in memory twice while the program runs. If it is donated, the result is written in its place.",
        counted(meant.len(), "argument has", "arguments have")
    );
    let library = Library::of(case);
    // Where all arguments are donated, none is named by its place.
    let numbers = if names.is_empty() { String::new() } else { format!(" ({})", numbers(case, &meant)) };
    finding.advice.push(library.donate(&names, &said, &numbers));
    finding.advice.push(
        "the caller must not use the donated arrays afterwards: keep the results instead (`state = step(state, …)`)"
            .to_owned(),
    );
    finding.warnings.extend(copies(case, &prediction.pairs));
    finding.changes_results = ChangesResults::No;
    let standing = standing(case);
    let mut evidence: Vec<_> = prediction
        .pairs
        .iter()
        .flat_map(|&(a, r)| [&case.memory.base[a as usize], &case.memory.base[r as usize]])
        .map(|base| {
            let allocation = case.program.buffers.allocation_of(base.buffer);
            let there = allocation.and_then(|id| standing.get(&id).copied());
            let is_as_large = |there: &BufferId| case.program.buffers.size_of(*there) == Bytes(base.size);
            (base.size, there.filter(is_as_large).unwrap_or(base.buffer))
        })
        .collect();
    evidence.sort_by_key(|&(size, buffer)| (std::cmp::Reverse(size), buffer));
    finding.buffers = evidence.into_iter().map(|(_, buffer)| buffer).collect();
    findings.push(finding);
}

/// What stands at the peak in each allocation: the view of the peak names that, which may be an earlier value of a result
/// in the same place.
fn standing(case: &ProgramContext<'_>) -> FastMap<AllocationId, BufferId> {
    let buffers = &case.program.buffers;
    let mut standing: FastMap<AllocationId, Option<BufferId>> = FastMap::default();
    for buffer in case.space.at_peak.buffers() {
        if let Some(id) = buffers.allocation_of(buffer) {
            // Only where it stands there alone.
            standing.entry(id).and_modify(|only| *only = None).or_insert(Some(buffer));
        }
    }
    standing.into_iter().filter_map(|(id, only)| Some((id, only?))).collect()
}

/// Share of an argument's bytes that must have a result of their shape for it to be donated whole.
const NEARLY_ALL: f64 = 0.9;

/// The name of a positional argument: `params` of `params['embed']`.
fn first_name(path: &str) -> &str {
    path.split(['[', '.']).next().unwrap_or(path)
}

/// The positional arguments that are best donated whole, which is all that `donate_argnums` can do: those of some rows
/// of which nearly all has a result of its shape.
fn whole_arguments<'a>(case: &'a ProgramContext<'_>, rows: &[usize]) -> Vec<&'a str> {
    let mut results: HashMap<(ElementType, &[i64]), usize> = HashMap::new();
    for base in case.memory.base.iter().filter(|base| matches!(base.role, Role::Result(_))) {
        if let Some(node) = case.node(base.buffer) {
            *results.entry((node.element_type, &node.dimensions)).or_default() += 1;
        }
    }
    // Bytes of each argument, and those of its arrays that a result can take over.
    let mut parts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (row, path, _, is_donated) in case.arguments() {
        let base = &case.memory.base[row];
        if is_donated || path.is_empty() {
            continue;
        }
        let key = case.node(base.buffer).map(|node| (node.element_type, node.dimensions.as_slice()));
        let left = key.and_then(|key| results.get_mut(&key)).filter(|left| **left > 0);
        let part = parts.entry(first_name(path)).or_default();
        part.0 = part.0.saturating_add(base.size);
        if let Some(left) = left {
            *left -= 1;
            part.1 = part.1.saturating_add(base.size);
        }
    }
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    let (mut meant, mut seen): (Vec<&str>, FastSet<&str>) = (Vec::new(), FastSet::default());
    for row in rows {
        if let Role::Argument { path, .. } = &case.memory.base[row].role
            && seen.insert(first_name(path))
        {
            meant.push(first_name(path));
        }
    }
    // Names that begin with it come directly after it.
    let is_start_of_another = |name: &str| parts.range(name..).nth(1).is_some_and(|(other, _)| other.starts_with(name));
    let is_whole = |name: &&str| {
        parts.get(name).is_some_and(|&(all, paired)| all > 0 && paired as f64 >= all as f64 * NEARLY_ALL)
            && !is_start_of_another(name)
    };
    meant.into_iter().filter(is_whole).collect()
}

/// Most ranges of argument numbers that are listed.
const RANGES: usize = 6;

/// Smallest size of an argument worth naming: all smaller ones together hold less than 1/[`SMALL_PART`] of the bytes.
fn least_that_counts(mut sizes: Vec<u64>) -> u64 {
    sizes.sort_unstable();
    let small = sizes.iter().copied().total() / SMALL_PART;
    let mut passed = 0u64;
    let counts = |size: &u64| {
        passed = passed.saturating_add(*size);
        passed > small
    };
    sizes.into_iter().find(counts).unwrap_or(0)
}

/// Numbers of the flattened arguments as ranges: the first few, and how many more arguments there are.
fn numbers(case: &ProgramContext<'_>, rows: &[usize]) -> String {
    let number = |&row: &usize| match case.memory.base[row].role {
        Role::Argument { number, .. } => Some(number),
        _ => None,
    };
    let mut numbers: Vec<i64> = rows.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let count = numbers.len() as i64;
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(range) if range.1 + 1 == number => range.1 = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown = ranges.len().min(RANGES);
    let left = count - ranges[..shown].iter().map(|&(a, b)| b - a + 1).sum::<i64>();
    let text: Vec<String> =
        ranges[..shown].iter().map(|&(a, b)| if a == b { a.to_string() } else { format!("{a}\u{2013}{b}") }).collect();
    let more = if left > 0 { format!(" and {left} more of these") } else { String::new() };
    format!("flattened arguments {}{more}", text.join(", "))
}

/// Warns of arguments that are still read after the result that would reuse their memory is written.
fn copies(case: &ProgramContext<'_>, pairs: &[(u32, u32)]) -> Option<String> {
    let live = case.analysis.live.as_ref()?;
    let mut late: Vec<(u64, String)> = pairs
        .iter()
        .filter_map(|&(argument, result)| {
            let written = live.of(case.memory.base[result as usize].buffer)?.0;
            let read = case.memory.last_read[argument as usize];
            let base = &case.memory.base[argument as usize];
            let Role::Argument { path, .. } = &base.role else { return None };
            (read > written).then(|| (base.size, path.clone()))
        })
        .collect();
    if late.is_empty() {
        return None;
    }
    let bytes: u64 = late.iter().map(|row| row.0).total();
    if !case.is_share(bytes, LATE_SHARE) {
        return None;
    }
    late.sort_by_key(|row| std::cmp::Reverse(row.0));
    let names: Vec<String> = late.into_iter().map(|row| row.1).collect();
    Some(format!(
        "{} ({}) {} still read after the result is written in the present schedule: the compiler will either write the result later or copy the argument",
        listed(&names, 3),
        Bytes(bytes).short(),
        if names.len() == 1 { "is" } else { "are" }
    ))
}

/// Reports donated arguments that could not be paired with a result.
fn unused(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let mut rows: Vec<(u64, usize)> =
        case.memory.donors.iter().map(|&row| (case.memory.base[row as usize].size, row as usize)).collect();
    rows.sort_unstable_by(|a, b| b.cmp(a));
    let total = rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.0));
    if !case.is_worth(total) {
        return;
    }
    let mut finding = case.finding(NAME);
    let names: Vec<String> = rows
        .iter()
        .filter_map(|&(_, row)| match &case.memory.base[row].role {
            Role::Argument { path, .. } => Some(path.clone()),
            _ => None,
        })
        .collect();
    finding.title = format!("{} of donations go unused: {}", Bytes(total).short(), listed(&names, 3));
    finding.why = format!(
        "They are donated, but no result has the same shape and type on each device, so nothing reuses their memory.{}",
        near_miss(case.program, case, rows[0].1).map(|text| format!(" {text}")).unwrap_or_default()
    );
    finding.advice.push(
        "give the result the argument's sharding and type: `out_shardings` of `jax.jit`, or `with_sharding_constraint` on the result".to_owned(),
    );
    finding.buffers = rows.iter().map(|&(_, row)| case.memory.base[row].buffer).collect();
    // Sharded like the result, the argument can be paired with it.
    if let Some(parts) = parts_missing(case, rows[0].1) {
        let saved = case.fill(
            &mut finding,
            vec![Edit::Shard(
                Arguments(short_names(
                    &names.iter().map(String::as_str).collect::<Vec<_>>(),
                    &case.arguments().map(|a| a.1).filter(|p| !names.iter().any(|n| n == p)).collect::<Vec<_>>(),
                )),
                parts,
            )],
        );
        finding.title = format!("{}; {} less if sharded like the result", finding.title, Bytes(saved).short());
    }
    findings.push(finding);
}

/// Into how many parts an argument would have to be sharded to match a result.
fn parts_missing(case: &ProgramContext<'_>, row: usize) -> Option<u32> {
    let node = case.node(case.memory.base[row].buffer)?;
    case.memory.base.iter().filter(|base| matches!(base.role, Role::Result(_))).find_map(|base| {
        let result = case.node(base.buffer)?;
        if result.element_type != node.element_type || result.dimensions.len() != node.dimensions.len() {
            return None;
        }
        let mut parts = 1;
        for (&whole, &part) in node.dimensions.iter().zip(&result.dimensions) {
            if whole != part {
                if parts != 1 || part <= 0 || whole % part != 0 {
                    return None;
                }
                parts = whole / part;
            }
        }
        u32::try_from(parts).ok().filter(|&parts| parts > 1)
    })
}

/// Describes the result most similar to a donated argument.
fn near_miss(program: &Program, case: &ProgramContext<'_>, row: usize) -> Option<String> {
    let own = case.node(case.memory.base[row].buffer)?;
    let results = || case.memory.base.iter().filter(|base| matches!(base.role, Role::Result(_)));
    let text = |buffer| program.buffer_shape(buffer).map(|(shape, node)| shape.short_text_of(node));
    let by = |accept: &dyn Fn(&crate::model::ShapeNode) -> bool| {
        results().find(|base| case.node(base.buffer).is_some_and(accept)).and_then(|base| text(base.buffer))
    };
    let argument = text(case.memory.base[row].buffer)?;
    if let Some(result) = by(&|node| node.dimensions == own.dimensions && node.element_type != own.element_type) {
        return Some(format!("The argument is {argument}, the result {result}: the types differ."));
    }
    parts_missing(case, row)?;
    let result = by(&|node| {
        node.element_type == own.element_type
            && node.dimensions.len() == own.dimensions.len()
            && node.dimensions.iter().zip(&own.dimensions).filter(|(a, b)| a != b).count() == 1
    })?;
    Some(format!(
        "Each device holds {argument} of the argument but {result} of the result: they are sharded differently."
    ))
}
