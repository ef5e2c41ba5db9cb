//! Rule `batch`: buffers that scale with the batch, and the largest batch that fits.

use std::fmt::Write as _;

use super::finding::{ChangesResults, Finding, Severity};
use super::library::Library;
use super::program_context::ProgramContext;
use crate::analysis::class::Class;
use crate::analysis::once::once;
use crate::analysis::what_if::{Depth, Edit, IN_LOOP, Outcome, Role, TryVerdict, batch};
use crate::model::{Bytes, ShardingKind, UnitSystem, capitalised, percent, thousands};

/// Name of the rule.
pub const NAME: &str = "batch";

/// Largest multiple of the present batch that is tried.
pub const MOST_TIMES: i64 = 64;

/// Largest batch per device that fits, and the present one; `None` if no argument holds a batch, the capacity is
/// unknown, or the answer is a batch whose memory cannot be told.
#[must_use]
pub fn largest(case: &ProgramContext<'_>) -> Option<(i64, i64)> {
    let now = case.memory.data.first().map(batch::DataArgument::batch).filter(|&b| b > 0)?;
    // What an estimate leaves open is packed, as a change that is asked for is.
    let fits = |edits: &[Edit]| case.fits_with(edits, Depth::Estimate) || case.fits_with(edits, Depth::Verdict);
    once(&case.largest_batch, || search(case, now, &fits).map(|size| in_units(case, size))).map(|size| (size, now))
}

/// The largest batch up to a size that divides into as many micro-batches as the step has already.
fn in_units(case: &ProgramContext<'_>, size: i64) -> i64 {
    size - size % case.memory.micro_batches(case.program)
}

/// Why a larger batch of a program that trains may fit.
pub const WITH_MORE_RECOMPUTED: &str = ", as the compiler may recompute more";

/// Whether a batch of another size is one whose memory cannot be told from that of the present one.
fn is_beyond(case: &ProgramContext<'_>, now: i64, size: i64) -> bool {
    case.memory.is_folded(case.program, size) != case.memory.is_folded(case.program, now)
}

/// Largest batch per device that may fit: as far as is known, and if the compiler recomputes all it can.
#[must_use]
pub fn largest_maybe(case: &ProgramContext<'_>) -> Option<i64> {
    let now = case.memory.data.first().map(batch::DataArgument::batch).filter(|&b| b > 0)?;
    let may_fit =
        |edits: &[Edit]| matches!(case.try_to(edits, Depth::Estimate).verdict, TryVerdict::Fits | TryVerdict::MayFit);
    search(case, now, &may_fit).map(|size| in_units(case, size))
}

/// How many devices share a part of the batch, such as those of tensor parallelism.
#[must_use]
pub fn sharing(case: &ProgramContext<'_>) -> i64 {
    let parts = case.memory.data.iter().map(|data| data.parts).max().unwrap_or(1);
    let devices = i64::from(case.program.devices());
    match parts {
        ..=1 if is_on_all(case) => devices,
        ..=1 => 1,
        _ => devices / parts,
    }
}

/// Whether every device has the whole batch, and other arguments are divided over the devices, such as by tensor
/// parallelism alone.
fn is_on_all(case: &ProgramContext<'_>) -> bool {
    let sharding = |row: usize| match case.memory.base[row].role {
        Role::Argument { number, .. } => case.program.sharding_of_parameter(number),
        _ => None,
    };
    // Known not to be divided along the batch: a cache may be along its heads.
    let is_known = |kind: ShardingKind| matches!(kind, ShardingKind::Replicated | ShardingKind::Tiled);
    let is_whole = |row: usize| sharding(row).is_some_and(|sharding| is_known(sharding.kind));
    !case.memory.data.is_empty()
        && case.memory.data.iter().all(|data| is_whole(data.base as usize))
        && case.arguments().any(|argument| sharding(argument.0).is_some_and(|sharding| sharding.parts() > 1))
}

/// What a batch is counted for: `per device`, `per group of 2 devices`.
#[must_use]
pub fn unit(sharing: i64) -> String {
    if sharing > 1 { format!("per group of {sharing} devices") } else { "per device".to_owned() }
}

fn search(case: &ProgramContext<'_>, now: i64, accept: &dyn Fn(&[Edit]) -> bool) -> Option<i64> {
    case.memory.capacity?;
    let fits = |size: i64| {
        if size == now {
            return case.fits_already() == Some(true);
        }
        accept(&[Edit::Batch(size as f64 / now as f64)])
    };
    // Memory grows with the batch: double until it does not fit, then bisect.
    let (mut low, mut high) =
        if case.fits_already() == Some(true) { (now, now.saturating_mul(MOST_TIMES)) } else { (0, now) };
    if low == now {
        // What more samples take may not be known at all.
        let twice = now.saturating_mul(2);
        if !is_beyond(case, now, twice) && case.try_to(&[Edit::Batch(2.0)], Depth::Estimate).undecided.is_some() {
            return None;
        }
        let mut size = now;
        while size < high && fits(size.saturating_mul(2)) {
            size = size.saturating_mul(2);
        }
        // More is not tried.
        (low, high) = (size, if size < high { size.saturating_mul(2) } else { size });
    } else if now > 1 && !is_beyond(case, now, now / 2) {
        // Nor what fewer take.
        let half = (now / 2) as f64 / now as f64;
        if case.try_to(&[Edit::Batch(half)], Depth::Estimate).undecided.is_some() {
            return None;
        }
    }
    while high - low > (low / 64).max(1) && !is_beyond(case, now, high) {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (!is_beyond(case, now, low) && !is_beyond(case, now, high)).then_some(low)
}

/// Whether a program changes weights: by a backward pass, or by what it tries out.
#[must_use]
pub fn is_training(case: &ProgramContext<'_>) -> bool {
    case.memory.has_backward() || batch::trains(case.analysis.classes(case.program), &case.memory.base)
}

/// Whether a smaller batch changes results: of training, but not where its parts can run one after the other.
#[must_use]
pub fn changes_results(case: &ProgramContext<'_>) -> ChangesResults {
    if is_training(case) { ChangesResults::Yes } else { ChangesResults::No }
}

/// A number of samples with separators.
#[must_use]
pub fn count(samples: i64) -> String {
    thousands(samples.unsigned_abs())
}

/// Batches up to a size: `up to about 1,010`, `a batch of 1`.
#[must_use]
pub fn up_to(size: i64) -> String {
    if size == 1 { "a batch of 1".to_owned() } else { format!("up to about {}", count(size)) }
}

/// How much of the batch a smaller one is: `Half`, or `A smaller part of`.
const fn share_in_words(half: i64, now: i64) -> &'static str {
    if (2 * half - now) * NEARLY <= now { "Half" } else { "A part of" }
}

/// Part of a batch by which what is called half of it may be more.
const NEARLY: i64 = 8;

/// Numbers of micro-batches that are tried, where they divide the batch.
const MICRO: [u32; 8] = [2, 3, 4, 5, 7, 8, 16, 32];

/// The numbers of micro-batches to try, fewest first: those of [`equal_parts`]. Those that are written out run in a loop,
/// whatever their number. None where the step collects its samples itself.
pub fn micro_batches(case: &ProgramContext<'_>) -> impl Iterator<Item = u32> + Clone {
    let in_loop = case.memory.written_out(case.program).map(|_| IN_LOOP);
    let is_collected = case.memory.is_batch_of_state();
    in_loop.into_iter().chain(equal_parts(case).filter(move |_| in_loop.is_none() && !is_collected))
}

/// Numbers of equal parts of what the step runs on at once now.
pub fn equal_parts(case: &ProgramContext<'_>) -> impl Iterator<Item = u32> + Clone {
    let batch = case.memory.data.first().map_or(0, batch::DataArgument::batch);
    let at_once = batch / case.memory.micro_batches(case.program).max(1);
    MICRO.into_iter().filter(move |&parts| at_once >= i64::from(parts) && at_once % i64::from(parts) == 0)
}

/// What the fewest equal micro-batches that fit come to, which keep the sums of the gradients beside, or where none fit the
/// fewest: `; with 2 of them, whose summed gradients take extra memory, the program may fit: …`.
fn micro_in_words(case: &ProgramContext<'_>) -> String {
    let mut numbers = micro_batches(case);
    let Some(fewest) = numbers.clone().next() else { return String::new() };
    let fitting = numbers.find(|&parts| case.fits_with(&[Edit::Micro(parts)], Depth::Verdict));
    let parts = fitting.unwrap_or(fewest);
    let prediction = case.try_out(&[Edit::Micro(parts)]);
    let needs = prediction.expected();
    // What two of them take besides half the batch, which has been tried, is not less than nothing.
    let is_less = || parts == 2 && needs < case.try_out(&[Edit::Batch(0.5)]).expected();
    if prediction.undecided.is_some() {
        return String::new();
    }
    if is_less() {
        let fits = if prediction.verdict == TryVerdict::Fits { "; two of them are predicted to fit" } else { "" };
        return fits.to_owned();
    }
    let with = if parts == IN_LOOP { "with it".to_owned() } else { format!("with {parts} of them") };
    // The inputs are those of the whole batch, whatever part of them is computed with.
    let inputs =
        case.memory.data.iter().filter_map(|data| case.memory.base.get(data.base as usize)).map(|base| base.size);
    let extra = if case.is_worth(inputs.sum()) {
        "for which the inputs stay whole and the summed gradients take extra memory"
    } else {
        "whose summed gradients take extra memory"
    };
    let more = needs.0.saturating_sub(case.allocated());
    if prediction.is_told() && case.is_worth(more) {
        let (needs, more) = (needs.short(), Bytes(more).short());
        return format!("; that does not help here: {with}, {extra}, the program needs {needs}, {more} more");
    }
    let over = prediction.outcome(case.memory.capacity).filter(|outcome| matches!(outcome, Outcome::Over(_)));
    let comes_to = match over {
        Some(over) if prediction.is_told() => format!("is still {}", over.words(UnitSystem::Binary)),
        _ => prediction.sentence(case.memory.capacity, UnitSystem::Binary),
    };
    format!("; {with}, {extra}, the program {comes_to}")
}

/// Half the batch (`times` as many), of which nothing is predicted as convolutions are computed in other shapes then; `None` where there is room,
/// or where it is something else that makes no difference.
fn untold(case: &ProgramContext<'_>, mut finding: Finding, times: f64, (now, half): (i64, i64)) -> Option<Finding> {
    let is_other = case.memory.is_folded(case.program, half) != case.memory.is_folded(case.program, now);
    if !is_other || case.severity() == Severity::Hint {
        return None;
    }
    let why = case.try_out(&[Edit::Batch(times)]).undecided.clone()?;
    let unit = unit(sharing(case));
    finding.title =
        format!("Half the batch ({} to {} {unit}): how much less is not predicted", count(now), count(half));
    finding.why = format!("{}.", capitalised(&why));
    finding.advice.push("compile the step with the smaller batch, and open both dumps to compare them".to_owned());
    finding.changes_results = changes_results(case);
    finding.buffers = case.memory.data.iter().map(|d| case.memory.base[d.base as usize].buffer).collect();
    Some(finding)
}

/// Whether what a device has one of is a batch of graphs, padded to fixed numbers of nodes and edges, as of jraph: those are
/// what a larger batch has more of.
#[must_use]
pub fn is_of_graphs(case: &ProgramContext<'_>) -> bool {
    let is_one = case.memory.data.first().is_some_and(|data| data.batch() == 1);
    let is_of_graph = |path: &str| path.ends_with("n_node") || path.ends_with("senders");
    is_one && case.arguments().any(|argument| case.is_data(argument.0) && is_of_graph(argument.1))
}

/// Reports what half the batch would save, and the largest batch that fits.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let Some(first) = case.memory.data.first() else { return };
    let now = first.batch();
    if now < 2 {
        return;
    }
    // A step that runs on parts of its batch needs as many of them in a smaller one.
    let micro = case.memory.micro_batches(case.program);
    let half = if micro > 1 { in_units(case, now / 2).max(micro) } else { (now + 1) / 2 };
    if half >= now {
        return;
    }
    let times = if half * 2 == now || micro <= 1 { 0.5 } else { half as f64 / now as f64 };
    let mut finding = case.remedy(NAME);
    let saved = case.fill(&mut finding, vec![Edit::Batch(times)]);
    if !case.is_worth(saved) || case.severity() == Severity::Hint {
        findings.extend(untold(case, finding, times, (now, half)));
        return;
    }
    let largest = largest(case);
    let unit = unit(sharing(case));
    let fitting = match largest {
        Some((size, now)) if size < now && size > 0 => format!("; {} {unit} is predicted to fit", up_to(size)),
        Some((0, _)) => match largest_maybe(case) {
            Some(size) if size > 0 => {
                let why = if case.memory.has_backward() { WITH_MORE_RECOMPUTED } else { "" };
                format!("; {} {unit} cannot be ruled out{why}", up_to(size))
            }
            _ => format!("; not even a batch of {micro} fits"),
        },
        _ => String::new(),
    };
    finding.title = format!(
        "{} the batch ({} to {} {unit}): {} less{fitting}",
        share_in_words(half, now),
        count(now),
        count(half),
        Bytes(saved).short()
    );
    let recomputes = case.memory.rematerialised > 0;
    let scales = if recomputes {
        let now = count(now);
        format!("Temporaries scale with the batch of {now}, but with a smaller one the compiler recomputes less.")
    } else {
        let share = percent(saved.min(case.memory.peak), case.memory.peak.max(1));
        format!("The peak falls by {share} with a batch of {} instead of {}.", count(half), count(now))
    };
    finding.why = format!(
        "{scales}{}",
        if first.by_name { " The arguments that hold the batch are guessed from their names." } else { "" }
    );
    finding.is_guess = first.by_name;
    if !recomputes
        && saved.saturating_mul(5) < case.memory.temporaries()
        && case.is_share(case.memory.temporaries(), 0.5)
    {
        finding.warnings.push(
            "the saving is less than proportional: the batch may be the minor dimension, which is padded to a multiple of 128".to_owned(),
        );
    }
    if micro > 1 {
        let how = if case.memory.written_out(case.program).is_some() { "" } else { " one after the other" };
        let _ = if case.memory.leaves_samples_out(case.program) {
            let used = count(now / micro);
            write!(
                finding.why,
                " The step uses {used} of the {} samples that it is given, and leaves out the others.",
                count(now)
            )
        } else {
            write!(
                finding.why,
                " The step runs on {micro} micro-batches{how}, so the batch stays a multiple of {micro}."
            )
        };
    }
    let results = if case.normalises_over_the_batch() {
        "change results only a little"
    } else if case.has_experts() {
        "keep results the same where the loss is a mean over samples and, where experts have a number of places, these are enough in each part"
    } else {
        "keep results the same where the loss is a mean over samples"
    };
    if is_training(case) && case.memory.is_batch_of_state() {
        finding.advice.push(
            "each update then learns from fewer samples: to keep their number, add up the gradients of several rollouts"
                .to_owned(),
        );
    } else if is_training(case) {
        let how = Library::of(case).micro_batches(None);
        let summed = case.memory.summed_parts(case.program);
        let is_divisible = micro_batches(case).next().is_some();
        if case.memory.written_out(case.program).is_some() {
            finding.advice.push(format!(
                "a loop over the {summed} micro-batches, which are written out and in memory at once now, would {results} ({how}){}",
                micro_in_words(case)
            ));
        } else if is_divisible && summed > 1 {
            finding.advice.push(format!(
                "more micro-batches {results}: the step adds up the gradients of {summed} of them already"
            ));
        } else if is_divisible {
            finding.advice.push(format!(
                "micro-batches {results}: split the batch, average the gradients, update once ({how}){}",
                micro_in_words(case)
            ));
        } else if micro == 1 {
            finding.advice.push(format!(
                "micro-batches {results}, but their number has to divide the batch: {now} can only be split into micro-batches of one sample, while {} {unit} can be split in two ({how})",
                now + 1
            ));
        }
        finding
            .advice
            .push("a smaller batch changes training; the learning rate usually has to be adjusted".to_owned());
    } else {
        let classes = case.analysis.classes(case.program);
        let has_cache = case.memory.base.iter().any(|base| classes.of(base.buffer) == Class::Cache);
        let each = if has_cache {
            ", each until it has finished, so that only its part of the cache is in memory"
        } else {
            ""
        };
        finding.advice.push(format!("run the parts one after the other{each}: results stay the same, in more time"));
    }
    // Equal parts, as for micro-batches: the fewest that fit.
    let parts = [2i64, 4, 8, 16, 32, 64].into_iter().filter(|parts| now % (parts * micro) == 0);
    if let Some((size, now)) = largest
        && size < now
        && let Some(parts) = parts.into_iter().find(|parts| now / parts <= size)
        && parts > 2
    {
        finding.warnings.clear();
        case.fill(&mut finding, vec![Edit::Batch(1.0 / parts as f64)]);
        finding.title = format!(
            "1/{parts} of the batch ({} to {} {unit}): {}{fitting}",
            count(now),
            count(now / parts),
            finding.less("")
        );
    }
    finding.changes_results = changes_results(case);
    finding.buffers = case.memory.data.iter().map(|d| case.memory.base[d.base as usize].buffer).collect();
    findings.push(finding);
}
