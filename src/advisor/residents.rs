//! Rule `residents`: arguments of one kind that are the largest part of the peak, where no other finding says so.

use std::collections::BTreeMap;

use super::finding::{ChangesResults, Finding, Severity};
use super::library::Library;
use super::made_of::Kinds;
use super::program_context::{ProgramContext, Total, counted, listed, short_names};
use super::state_in_place::{self, parts};
use super::{arguments, donation, oversized, replicated, temporaries};
use crate::analysis::class::{Certainty, Class};
use crate::analysis::what_if::{Arguments, Edit, Role};
use crate::model::{BufferId, Bytes, ElementType, FastSet, percent};

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
        "an optimizer with less state (`optax.adafactor`, `mu_dtype=jnp.bfloat16`), or its state sharded over devices (ZeRO)",
    ),
    (
        Class::Weight,
        "weights",
        "Weights",
        "shard them over more devices (tensor parallelism; FSDP where they are gathered layer by layer)",
    ),
    (
        Class::Cache,
        "cache",
        "The cache",
        "store it in a narrower type (bfloat16, int8), for fewer positions, or shard it along its heads",
    ),
];

/// Weights and what their optimizer keeps of them, where neither is as much alone.
const STATE: Kind = (
    Class::Weight,
    "training_state",
    "Weights and optimizer state",
    "shard them over more devices (FSDP, where weights are gathered layer by layer, or ZeRO for optimizer state alone), keep optimizer state in fewer bytes (`mu_dtype=jnp.bfloat16`, `optax.adafactor`) or on the host",
);

/// What arguments are called that hold state of each sample or of what was seen before, and what to do about it.
const PASSED_ON: (&str, &str) = (
    "State that is passed from call to call",
    "keep less of it, in a narrower type, or shard it over devices along its samples",
);

/// Part of the bytes of some arguments below which one is not named.
const NAMED: u64 = 1000;

/// Share of allocated bytes from which they are reported together, after the causes that can be removed below [`SHARE`].
const TOGETHER: f64 = 0.25;

/// Share of the bytes of weights and optimizer state that another cause may have where they are the first.
const CLEARLY_LESS: f64 = 0.75;

/// The arguments of some classes, largest first, with their bytes.
fn held(case: &ProgramContext<'_>, meant: &[Class]) -> Vec<(u64, usize)> {
    let classes = case.analysis.classes(case.program);
    let mut rows: Vec<(u64, usize)> = case
        .arguments()
        .map(|argument| (case.memory.base[argument.0].size, argument.0))
        .filter(|row| meant.contains(&classes.of(case.memory.base[row.1].buffer)))
        .collect();
    // Of equal ones the first stays the first.
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    rows
}

/// Whether no class but those meant has more bytes at the peak than `bytes`.
fn is_largest(case: &ProgramContext<'_>, meant: &[Class], bytes: u64) -> bool {
    let sums = case.analysis.classes(case.program).sums(case.space.at_peak.rows.iter().copied());
    sums.iter().filter(|row| !meant.contains(&row.0)).all(|row| row.1.0 <= bytes)
}

/// Rules about arguments as such, rather than about how some of their bytes are wasted.
const ABOUT_ARGUMENTS: [&str; 5] =
    [replicated::NAME, arguments::NAME, oversized::NAME, state_in_place::NAME, donation::NAME];

/// Whether a finding is of temporaries that are not mostly one thing: their sum says less than any one cause.
fn is_of_many_kinds(case: &ProgramContext<'_>, finding: &Finding) -> bool {
    finding.rule == temporaries::NAME
        && finding.program == Some(case.row)
        && Kinds::new(case, &case.peak.iter().collect::<Vec<_>>()).largest().is_none()
}

/// Whether a finding about the program's arguments names most bytes of some of them, or any has more bytes at stake.
fn is_told(case: &ProgramContext<'_>, findings: &[Finding], rows: &[(u64, usize)], bytes: u64) -> bool {
    findings.iter().filter(|finding| finding.program == Some(case.row) && !finding.is_remedy).any(|finding| {
        (ABOUT_ARGUMENTS.contains(&finding.rule) && names_most(case, finding, rows, bytes))
            || (finding.weight() > bytes && !is_of_many_kinds(case, finding))
    })
}

/// Share of allocated bytes from which a kind of argument is named after the causes, where no finding names it.
const MUCH: f64 = 0.20;

/// Fewer bytes are not worth a finding after the causes.
const LEAST: u64 = 1 << 20;

/// Names the kinds of arguments that take most: the largest part of the peak as a cause, others after the causes.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let sums = case.argument_bytes();
    main(case, findings, &sums);
    let is_much = |class: Class| sums.get(&class).is_some_and(|&sum| sum >= LEAST && case.is_share(sum, MUCH));
    for kind in KINDS.iter().filter(|kind| is_much(kind.0)) {
        let rows = held(case, &[kind.0]);
        let bytes = rows.iter().map(|row| row.0).total();
        let is_named = |finding: &Finding| {
            let is_about = ABOUT_ARGUMENTS.contains(&finding.rule)
                || finding.rule == STATE.1
                || KINDS.iter().any(|kind| kind.1 == finding.rule);
            // A donated cache is in memory once, and may be narrower all the same.
            let is_of_copy = kind.0 == Class::Cache && finding.rule == donation::NAME;
            is_about && !is_of_copy && finding.program == Some(case.row) && names_most(case, finding, &rows, bytes)
        };
        if findings.iter().any(is_named) {
            continue;
        }
        let mut found = Vec::new();
        report(case, &mut found, &rows, kind);
        findings.extend(found.into_iter().filter(|finding| !finding.is_guess).map(after_the_causes));
    }
    both(case, findings);
}

/// Names weights and optimizer state together after the causes, where neither is as much alone and no finding names any.
fn both(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let rows = held(case, &[Class::Weight, Class::Optimizer]);
    let bytes = rows.iter().map(|row| row.0).total();
    if !case.memory.has_backward() || bytes < LEAST || !case.is_share(bytes, MUCH) {
        return;
    }
    let named: FastSet<BufferId> = findings
        .iter()
        .filter(|finding| finding.program == Some(case.row))
        .flat_map(|finding| finding.buffers.iter().copied())
        .collect();
    if rows.iter().any(|row| named.contains(&case.memory.base[row.1].buffer)) {
        return;
    }
    let mut found = Vec::new();
    report(case, &mut found, &rows, &STATE);
    findings.extend(found.into_iter().map(after_the_causes));
}

/// A finding that is told after the causes.
fn after_the_causes(finding: Finding) -> Finding {
    Finding { is_remedy: true, severity: finding.severity.min(Severity::Warning), ..finding }
}

/// Whether the buffers of a finding are most bytes of some arguments.
fn names_most(case: &ProgramContext<'_>, finding: &Finding, rows: &[(u64, usize)], bytes: u64) -> bool {
    let named: FastSet<BufferId> = finding.buffers.iter().copied().collect();
    let told = rows.iter().filter(|row| named.contains(&case.memory.base[row.1].buffer)).map(|row| row.0).total();
    told.saturating_mul(2) > bytes
}

/// Names the kind of argument that takes most, if it is the largest part of the peak and no other finding says so; where
/// none is, weights and optimizer state together.
fn main(case: &ProgramContext<'_>, findings: &mut Vec<Finding>, sums: &BTreeMap<Class, u64>) {
    let sum = |class: Class| sums.get(&class).copied().unwrap_or(0);
    let largest = KINDS.iter().map(|kind| (sum(kind.0), kind)).max_by_key(|row| row.0);
    if let Some((bytes, kind)) = largest
        && case.is_share(bytes, SHARE)
    {
        let rows = held(case, &[kind.0]);
        if is_largest(case, &[kind.0], bytes) && !is_told(case, findings, &rows, bytes) {
            report(case, findings, &rows, kind);
        }
        return;
    }
    let both = [Class::Weight, Class::Optimizer];
    let rows = held(case, &both);
    let bytes = rows.iter().map(|row| row.0).total();
    let less = (bytes as f64 * CLEARLY_LESS) as u64;
    if case.memory.has_backward()
        && case.is_share(bytes, TOGETHER)
        && is_largest(case, &both, bytes)
        && !is_told(case, findings, &rows, less)
    {
        report(case, findings, &rows, &STATE);
        let is_remedy = !case.is_share(bytes, SHARE);
        if let Some(finding) = findings.last_mut() {
            finding.is_remedy = is_remedy;
        }
        for finding in findings.iter_mut().filter(|_| !is_remedy) {
            finding.is_remedy |= is_of_many_kinds(case, finding);
        }
    }
}

/// Most names that a title lists.
const MOST_NAMES: usize = 3;

/// The first names of some arguments, and how many of these have other names.
fn named<'a>(names: &[String], paths: impl FnOnce() -> Vec<&'a str>) -> String {
    if names.len() <= MOST_NAMES {
        return listed(names, MOST_NAMES);
    }
    let shown = &names[..MOST_NAMES];
    let others = paths().iter().filter(|path| !shown.iter().any(|name| path.starts_with(name.as_str()))).count();
    format!("{} and {others} more", listed(shown, MOST_NAMES))
}

fn report(
    case: &ProgramContext<'_>,
    findings: &mut Vec<Finding>,
    rows: &[(u64, usize)],
    &(class, name, words, advice): &Kind,
) {
    let bytes: u64 = rows.iter().map(|row| row.0).total();
    let state = rows.iter().filter(|row| case.memory.base[row.1].is_state()).map(|row| row.0).total();
    let is_state = class == Class::Input && state.saturating_mul(2) > bytes;
    let (words, advice) = if is_state { PASSED_ON } else { (words, advice) };
    let mut finding = case.finding(name);
    let is_meant = |row: usize| rows.iter().any(|own| own.1 == row);
    let is_worth_a_name = |own: &&(u64, usize)| own.0 >= bytes / NAMED;
    let meant: Vec<&str> = rows
        .iter()
        .filter(is_worth_a_name)
        .filter_map(|own| case.arguments().find(|argument| argument.0 == own.1).map(|argument| argument.1))
        .collect();
    let others: Vec<&str> =
        case.arguments().filter(|a| !is_meant(a.0) && case.counts_beside(a.0, bytes)).map(|a| a.1).collect();
    let names = short_names(&meant, &others);
    let paths = || {
        let own: FastSet<usize> = rows.iter().filter(|own| own.0 > 0).map(|own| own.1).collect();
        case.arguments().filter(|argument| own.contains(&argument.0)).map(|argument| argument.1).collect()
    };
    let of = if names.is_empty() { String::new() } else { format!(" ({})", named(&names, paths)) };
    finding.changes_results = ChangesResults::Maybe;
    if class == Class::Weight && name != STATE.1 {
        in_fewer_bits(case, &mut finding, rows, &names);
    }
    if is_state {
        seen_in_16_bits(case, &mut finding, rows);
    }
    if class == Class::Cache {
        in_8_bits(case, &mut finding, rows, &names);
    }
    case.stake(&mut finding, bytes);
    finding.title = format!(
        "{words} take{} {} of the peak: {}{of}",
        if words.ends_with('s') || words.contains(" and ") { "" } else { "s" },
        percent(bytes, case.at_peak()),
        Bytes(bytes).short()
    );
    finding.why = format!(
        "{} for the whole run of the program; the largest is {}.{}",
        counted(rows.iter().filter(|row| row.0 > 0).count(), "argument occupies memory", "arguments occupy memory"),
        rows.first().map(|row| case.describe(case.memory.base[row.1].buffer)).unwrap_or_default(),
        if case.severity() == Severity::Hint { "" } else { " Changing only the computation leaves this as it is." }
    );
    let classes = case.analysis.classes(case.program);
    let is_guess = |row: usize| classes.reason(case.memory.base[row].buffer).certainty() == Certainty::Guess;
    let guessed = rows.iter().filter(|row| is_guess(row.1)).map(|row| row.0).total();
    finding.is_guess = guessed.saturating_mul(2) > bytes;
    if let Some(row) = rows.iter().find(|row| finding.is_guess && is_guess(row.1)) {
        let reason = classes.reason(case.memory.base[row.1].buffer).words();
        let guess = format!(" That they are {} is a guess: {reason}.", words.to_lowercase());
        finding.why.push_str(&guess);
    }
    // Narrow already.
    let is_wide = |row: &&(u64, usize)| {
        case.node(case.memory.base[row.1].buffer).is_some_and(|node| node.element_type.is_wide_float())
    };
    let wide = rows.iter().filter(is_wide).map(|row| row.0).total();
    let of_bits_up_to = |most: u32| -> u64 {
        let is_meant = |row: &&(u64, usize)| {
            let node = case.node(case.memory.base[row.1].buffer);
            node.is_some_and(|node| node.element_type.storage_bits() <= most)
        };
        rows.iter().filter(is_meant).map(|row| row.0).total()
    };
    // Narrower than 16 bits is 8.
    let (half, narrow) = (of_bits_up_to(16), of_bits_up_to(8));
    let advice =
        if half.saturating_mul(2) > bytes { advice.replace("(bfloat16, int8)", "(int8)") } else { advice.to_owned() };
    let advice = if narrow.saturating_mul(2) > bytes {
        advice.replace("store it in a narrower type (int8), for", "store it for")
    } else {
        advice
    };
    let advice = match Library::of(case).narrow_moments(case).filter(|_| case.is_worth(wide)) {
        Some(option) => advice.replace("`mu_dtype=jnp.bfloat16`", option),
        None => advice.replace("`mu_dtype=jnp.bfloat16`, ", "").replace(", `mu_dtype=jnp.bfloat16`", ""),
    };
    let advice = match Library::of(case) {
        // MaxText has no Adafactor.
        Library::MaxText => advice
            .replace("`optax.adafactor`, ", "")
            .replace(", `optax.adafactor`", "")
            .replace(" (`optax.adafactor`)", "")
            .replace(" or on the host", " or on the host (`optimizer_memory_host_offload=True`)"),
        // Keras has no switch for the state alone.
        Library::Keras => advice
            .replace("`optax.adafactor`", "`keras.optimizers.Adafactor`")
            .replace(", or its state sharded over devices (ZeRO)", "")
            .replace(", or ZeRO for optimizer state alone", ""),
        _ => advice,
    };
    // For every token that is made, FSDP would gather all weights.
    let advice = if case.memory.has_backward() {
        advice
    } else {
        advice.replace("(tensor parallelism; FSDP where they are gathered layer by layer)", "(tensor parallelism)")
    };
    let has_one_head = class == Class::Cache && rows.first().is_some_and(|row| is_divided_to_one(case, row.1));
    let (advice, devices) = if has_one_head {
        let others = advice.replace(
            "or shard it along its heads",
            "or shard it along the batch or its positions: along the dimension that it is divided along, a device has one element already",
        );
        (others, String::new())
    } else {
        let (devices, are_all) = over_devices(case, rows, bytes);
        let more =
            || advice.replace("over devices", "over more devices").replace("shard it along", "shard it further along");
        // Those that are there do not divide them yet.
        let present = || advice.replace("over more devices", "over the devices");
        let advice = match (are_all, case.program.devices() > 1) {
            (true, _) => more(),
            (false, true) => present(),
            (false, false) => advice,
        };
        (advice, devices)
    };
    finding.advice.push(format!("{advice}{devices}"));
    finding.buffers = rows.iter().map(|row| case.memory.base[row.1].buffer).collect();
    findings.push(finding);
}

/// Whether an argument is divided along a dimension of which each device has one element.
pub(super) fn is_divided_to_one(case: &ProgramContext<'_>, row: usize) -> bool {
    let base = &case.memory.base[row];
    let Role::Argument { number, .. } = base.role else { return false };
    let sharding = case.program.sharding_of_parameter(number).filter(|sharding| sharding.parts() > 1);
    let sizes = case.node(base.buffer).map(|node| node.dimensions.as_slice());
    let (Some(sharding), Some(sizes)) = (sharding, sizes) else { return false };
    sizes.iter().zip(&sharding.tiles).any(|(&size, &parts)| size == 1 && parts > 1)
}

/// A memory of what was seen can be kept in 16 bits, where it is in 32: attaches that change.
fn seen_in_16_bits(case: &ProgramContext<'_>, finding: &mut Finding, rows: &[(u64, usize)]) {
    let is_wide = |row: usize| {
        let base = &case.memory.base[row];
        base.is_memory() && case.node(base.buffer).is_some_and(|node| node.element_type.is_wide_float())
    };
    let wide: Vec<usize> = rows.iter().map(|row| row.1).filter(|&row| is_wide(row)).collect();
    if case.is_worth(wide.iter().map(|&row| case.memory.base[row].size).total()) {
        let names = case.names_of_wide(&wide);
        case.fill(finding, vec![Edit::Dtype(Arguments(names), ElementType::BF16)]);
    }
}

/// A cache can be kept in 8 bits: attaches that change.
fn in_8_bits(case: &ProgramContext<'_>, finding: &mut Finding, rows: &[(u64, usize)], names: &[String]) {
    let is_wide = |row: usize| {
        let node = case.node(case.memory.base[row].buffer);
        node.is_some_and(|node| node.element_type.is_float() && node.element_type.storage_bits() > 8)
    };
    let Some(to) = ElementType::from_name("f8e4m3fn").filter(|_| rows.iter().all(|row| is_wide(row.1))) else { return };
    let mut tried = case.finding(finding.rule);
    if case.is_worth(case.fill(&mut tried, vec![Edit::Dtype(Arguments(names.to_vec()), to)])) {
        finding.effect = tried.effect;
        finding.changes_results = ChangesResults::Yes;
    }
}

/// Weights that are only read, and tables that are trained, can be stored in half as many bits: attaches that change and
/// says what it is.
fn in_fewer_bits(case: &ProgramContext<'_>, finding: &mut Finding, rows: &[(u64, usize)], names: &[String]) {
    let bits = |row: usize| {
        let node = case.node(case.memory.base[row].buffer)?;
        node.element_type.is_float().then(|| node.element_type.storage_bits())
    };
    let with = |least: u64| {
        let wide = rows.iter().filter(|row| bits(row.1).is_some_and(|bits| u64::from(bits) > least));
        wide.map(|row| row.0).total()
    };
    let all: u64 = rows.iter().map(|row| row.0).total();
    let is_trained = case.memory.has_backward();
    let (to, how) = if is_trained {
        // What an optimizer keeps of weights has a finding of its own.
        let state = || case.argument_bytes().get(&Class::Optimizer).copied().unwrap_or(0);
        if with(16).saturating_mul(2) <= all || state().saturating_mul(2) > all {
            return;
        }
        (
            Some(ElementType::BF16),
            "keep them in bfloat16 (small updates are lost unless they are rounded stochastically)",
        )
    } else if with(16).saturating_mul(2) > all {
        (Some(ElementType::BF16), "store them in bfloat16: most are wider, and they are only read")
    } else if with(8).saturating_mul(2) > all {
        (ElementType::from_name("s8"), "store them in 8 bits (int8 with scales for each channel, `float8_e4m3fn`)")
    } else {
        return;
    };
    let Some(to) = to.filter(|_| !names.is_empty()) else { return };
    let saved = case.fill(finding, vec![Edit::Dtype(Arguments(names.to_vec()), to)]);
    if saved > 0 {
        finding.advice.push(format!("{how}: {} less", Bytes(saved).short()));
        finding.changes_results = ChangesResults::Yes;
    } else {
        finding.effect = None;
    }
}

/// How the largest of some arguments are sharded now, and what is left of all on each device if over twice as many; and
/// whether all devices divide them already.
fn over_devices(case: &ProgramContext<'_>, rows: &[(u64, usize)], bytes: u64) -> (String, bool) {
    let devices = case.program.devices();
    if devices <= 1 || case.program.parameter_shardings.is_empty() {
        return (format!(": over 2, {} would be left on each", Bytes(bytes / 2).short()), false);
    }
    let twice = u64::from(devices).saturating_mul(2);
    // Bytes by the parts that they are divided into, of which those of most count.
    let mut by_parts: BTreeMap<i64, u64> = BTreeMap::new();
    for &(size, row) in rows {
        let sum = by_parts.entry(parts(case, row).max(1)).or_default();
        *sum = sum.saturating_add(size);
    }
    let whole = by_parts.get(&1).copied().unwrap_or(0);
    let divided = by_parts.into_iter().max_by_key(|found| found.1).map_or(1, |found| found.0).unsigned_abs();
    let words = if whole.saturating_mul(2) > bytes {
        format!(": now every device holds {} in full", Bytes(whole).short())
    } else if divided < u64::from(devices) {
        format!(
            ": most are divided over {divided} now, and {} devices hold the same; over all {devices}, {} would be left on each",
            u64::from(devices) / divided,
            Bytes((bytes as f64 * divided as f64 / f64::from(devices)) as u64).short()
        )
    } else {
        let left = Bytes(whole.saturating_add((bytes - whole) / 2)).short();
        let but = if case.is_worth(whole) {
            format!(" but for {}, which each has in full", Bytes(whole).short())
        } else {
            String::new()
        };
        return (
            format!("; divided over all {devices} devices already{but}, over {twice} it leaves {left} on each"),
            true,
        );
    };
    (words, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::Opcode;

    /// Findings about a weight, and what is made of it in rows, many or few.
    fn of_product(rows: i64) -> Vec<Finding> {
        let mut sketch = Sketch::default();
        let weight = sketch.argument(array(&[1024, 1024], &[1, 0]), "params['w']");
        let x = sketch.argument(array(&[8, 1024], &[1, 0]), "x");
        let dot = sketch.instruction(Opcode::FUSION, array(&[rows, 1024], &[1, 0]), &[x, weight], "jit(f)/dot_general");
        sketch.alloc(dot);
        sketch.free(dot);
        sketch.findings(1 << 30, run)
    }

    #[test]
    fn weights_that_are_most_of_the_peak_are_named() {
        let findings = of_product(8);
        assert_eq!(findings.iter().map(|found| found.rule).collect::<Vec<_>>(), ["weights"]);
        let found = &findings[0];
        assert!(found.title.starts_with("Weights take 98") && found.title.contains("(`params`)"), "{}", found.title);
        assert!(found.advice[0].contains("bfloat16") && found.advice[1].contains("over 2"), "{:?}", found.advice);
        assert_eq!(found.buffers, [BufferId(0)]);
    }

    #[test]
    fn weights_beside_larger_temporaries_are_not() {
        assert!(of_product(4096).is_empty());
    }

    #[test]
    fn a_title_counts_all_arguments_that_it_does_not_name() {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        assert_eq!(named(&names, || vec!["a", "b", "c", "d", "step"]), "`a`, `b`, `c` and 2 more");
        assert_eq!(named(&names, || vec!["a['x']", "a['y']", "b", "c", "d"]), "`a`, `b`, `c` and 1 more");
        assert_eq!(named(&names[..2], || vec!["a", "b", "step"]), "`a`, `b`");
    }
}
