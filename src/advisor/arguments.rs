//! Rule `arguments`: arguments that alone nearly fill the memory.

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::program_context::{ProgramContext, Total, short_names};
use super::replicated;
use super::residents::is_divided_to_one;
use crate::analysis::class::Class;
use crate::analysis::what_if::Depth;
use crate::model::{Bytes, Opcode};

/// Name of the rule.
pub const NAME: &str = "arguments";

/// Share of the available memory above which arguments leave no room for anything else.
const SHARE: f64 = 0.90;

/// How to shard the class that takes most of the arguments' bytes.
fn division(case: &ProgramContext<'_>) -> &'static str {
    match case.argument_bytes().into_iter().max_by_key(|row| (row.1, std::cmp::Reverse(row.0))).map(|row| row.0) {
        Some(Class::Optimizer) if Library::of(case) == Library::Keras => {
            "most of it is optimizer state, which Keras cannot shard alone: shard it with the weights (FSDP; `keras.distribution.ModelParallel` with a `LayoutMap`)"
        }
        Some(Class::Optimizer) => {
            "most of it is optimizer state: shard it and its update alone (ZeRO), which leaves the computation as it is, or the weights too (FSDP)"
        }
        Some(Class::Cache) if is_cache_divided_to_one(case) => {
            "most of it is a cache, of which each device has one element along the dimension that it is divided along already: divide it along the batch too, over more devices, or run parts of the batch"
        }
        Some(Class::Cache) => {
            "most of it is a cache: shard it along its heads together with the attention that reads it (tensor parallelism), or along the batch"
        }
        Some(Class::Input) if case.memory.data.iter().any(|d| case.memory.base[d.base as usize].size > 0) => {
            "most of it is data, or state passed from call to call: shard it along the batch (data parallelism)"
        }
        _ => {
            "most of it is weights: shard each across all devices and gather layer by layer (FSDP), or shard the matrix products themselves (tensor parallelism; expert parallelism for a mixture of experts)"
        }
    }
}

/// Whether the largest argument that is a cache is divided along a dimension of which each device has one element.
fn is_cache_divided_to_one(case: &ProgramContext<'_>) -> bool {
    let classes = case.analysis.classes(case.program);
    let caches = case.arguments().filter(|a| classes.of(case.memory.base[a.0].buffer) == Class::Cache);
    caches.max_by_key(|a| case.memory.base[a.0].size).is_some_and(|a| is_divided_to_one(case, a.0))
}

/// Looks at the arguments as a whole.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let Some(capacity) = case.memory.capacity else { return };
    let mut rows: Vec<(u64, usize)> = case.arguments().map(|a| (case.memory.base[a.0].size, a.0)).collect();
    let bytes: u64 = rows.iter().map(|row| row.0).total();
    if !case.is_share_of_capacity(bytes, SHARE) {
        return;
    }
    rows.sort_unstable_by(|a, b| b.cmp(a));
    let mut finding = case.finding(NAME);
    // Whether or not a change of theirs is known, nothing else helps.
    finding.severity = case.severity();
    finding.at_stake_bytes = Some(Bytes(bytes));
    finding.title = format!("Arguments alone take {}", case.of_capacity(bytes));
    finding.why = format!(
        "{} of arguments leave {} for results and temporaries, so changing only the computation can hardly help. The largest is {}.",
        Bytes(bytes).short(),
        Bytes(capacity.saturating_sub(bytes)).short(),
        rows.first().map(|row| case.describe(case.memory.base[row.1].buffer)).unwrap_or_default()
    );
    divide(case, &mut finding, bytes);
    finding.advice.push(division(case).to_owned());
    finding.advice.push("store them in a narrower type".to_owned());
    // A loop that makes one token after the other uses everything in each.
    if case.memory.has_backward() || !case.program.instructions.opcode.contains(&Opcode::WHILE) {
        finding
            .advice
            .push("keep what is used only once per step on the host (`memory_kind=\"pinned_host\"`)".to_owned());
    }
    finding.changes_results = ChangesResults::Maybe;
    finding.buffers = rows.iter().map(|row| case.memory.base[row.1].buffer).collect();
    findings.push(finding);
}

/// Smaller parts of all arguments are not named.
const MANY: u64 = 100_000;

/// Numbers of shards that are tried.
const PARTS: [u32; 8] = [2, 4, 8, 16, 32, 64, 128, 256];

/// Finds the fewest devices across which the arguments have to be sharded for the program to fit, or else for half of
/// the memory to be left for the computation.
fn divide(case: &ProgramContext<'_>, finding: &mut Finding, bytes: u64) {
    // Steps and seeds are not worth a word.
    let is_large = |row: usize| case.memory.base[row].size.saturating_mul(MANY) >= bytes;
    let meant: Vec<&str> = case.arguments().filter(|a| !case.is_data(a.0) && is_large(a.0)).map(|a| a.1).collect();
    // Of caches that hold the batch, weights are a small part.
    let named: u64 = case.arguments().filter(|a| !case.is_data(a.0)).map(|a| case.memory.base[a.0].size).total();
    if named.saturating_mul(2) < bytes {
        return;
    }
    let others: Vec<&str> = case.arguments().filter(|a| case.is_data(a.0)).map(|a| a.1).collect();
    let names = short_names(&meant, &others);
    let edit = |parts: u32| replicated::edits(case, &names, parts);
    let devices = u64::from(case.program.devices());
    let whole = replicated::bytes(case);
    if whole.saturating_mul(2) > bytes {
        // Mostly replicated: use the devices already there first.
        case.fill(finding, edit(case.program.devices()));
        finding.advice.push(format!(
            "every device holds a full copy: sharded across the {devices} devices they take {} on each",
            Bytes(bytes / devices.max(1)).short()
        ));
        return;
    }
    let half = case.memory.capacity.unwrap_or(0) / 2;
    let fits = |parts: &u32| case.fits_with(&edit(*parts), Depth::Verdict);
    let enough = |parts: &u32| bytes / u64::from(*parts) <= half;
    // In more parts no more is left, so that half of those that may be the fewest need not be tried.
    let fewest = PARTS.get(PARTS.partition_point(|parts| !fits(parts))).copied();
    let Some(parts) = fewest.or_else(|| PARTS.into_iter().find(enough)) else { return };
    if !case.is_worth(case.saved(&case.try_out(&edit(parts)))) {
        return;
    }
    case.fill(finding, edit(parts));
    finding.advice.push(format!(
        "sharded across {} devices instead of {devices} they take {} on each",
        devices.saturating_mul(u64::from(parts)),
        Bytes(bytes / u64::from(parts)).short()
    ));
}
