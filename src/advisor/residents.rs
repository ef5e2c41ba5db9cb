//! Rule `residents`: arguments of one kind that are most of what is allocated, where no other rule explains the peak.

use super::finding::{ChangesResults, Finding};
use super::program_context::{ProgramContext, Total, counted, listed, short_names};
use crate::analysis::class::Class;
use crate::model::{Bytes, percent};

/// Share of allocated bytes from which arguments of one kind are reported.
const SHARE: f64 = 0.40;

/// A kind of argument: its class, the name of its finding, what it is called, and what to do about it.
type Kind = (Class, &'static str, &'static str, &'static str);

const KINDS: [Kind; 4] = [
    (
        Class::Input,
        "inputs",
        "Inputs",
        "pass less of them at a time, in a narrower type, or shard them over devices along their samples",
    ),
    (
        Class::Optimizer,
        "optimizer_state",
        "Optimizer state",
        "an optimizer with less state (`optax.adafactor`, a shorter history, `mu_dtype=jnp.bfloat16`), or its state sharded over devices (ZeRO)",
    ),
    (
        Class::Weight,
        "weights",
        "Weights",
        "store them in a narrower type, or shard them over devices (FSDP, tensor parallelism)",
    ),
    (
        Class::Cache,
        "cache",
        "The cache",
        "store it in a narrower type (bfloat16, int8), for fewer positions, or shard it along its heads",
    ),
];

/// Names the kind of argument that takes most, if no other rule found a cause.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    if findings.iter().any(|f| f.program == Some(case.row) && !f.is_remedy) {
        return;
    }
    let classes = case.analysis.classes(case.program);
    let held = |class: Class| {
        let mut rows: Vec<(u64, usize)> = case
            .arguments()
            .map(|argument| (case.memory.base[argument.0].size, argument.0))
            .filter(|row| classes.of(case.memory.base[row.1].buffer) == class)
            .collect();
        rows.sort_unstable_by(|a, b| b.cmp(a));
        rows
    };
    let largest = KINDS.iter().map(|kind| (held(kind.0), kind)).max_by_key(|row| row.0.iter().map(|row| row.0).total());
    let Some((rows, &(_, name, words, advice))) = largest else { return };
    let bytes: u64 = rows.iter().map(|row| row.0).total();
    if !case.is_share(bytes, SHARE) {
        return;
    }
    let mut finding = case.finding(name);
    case.stake(&mut finding, bytes);
    let is_meant = |row: usize| rows.iter().any(|own| own.1 == row);
    let meant: Vec<&str> = rows
        .iter()
        .filter_map(|own| case.arguments().find(|argument| argument.0 == own.1).map(|argument| argument.1))
        .collect();
    let others: Vec<&str> = case.arguments().filter(|a| !is_meant(a.0)).map(|a| a.1).collect();
    let names = short_names(&meant, &others);
    let of = if names.is_empty() { String::new() } else { format!(" ({})", listed(&names, 3)) };
    finding.title = format!(
        "{words} take{} {} of the peak: {}{of}",
        if words.ends_with('s') { "" } else { "s" },
        percent(bytes, case.at_peak()),
        Bytes(bytes).short()
    );
    finding.why = format!(
        "{} for the whole run of the program; the largest is {}.",
        counted(rows.len(), "argument occupies memory", "arguments occupy memory"),
        rows.first().map(|row| case.describe(case.memory.base[row.1].buffer)).unwrap_or_default()
    );
    finding.advice.push(advice.to_owned());
    finding.changes_results = ChangesResults::Maybe;
    finding.buffers = rows.iter().map(|row| case.memory.base[row.1].buffer).collect();
    findings.push(finding);
}
