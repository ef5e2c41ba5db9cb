//! The plan: a short list of changes that make a program fit, safest first, with the memory needed after each.

use std::cmp::Reverse;
use std::sync::Arc;

use rayon::prelude::*;

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::logits;
use super::program_context::{ProgramContext, in_a_row};
use super::scan_parts;
use super::search::{Rank, Search, are_free, effort, subsets};
use crate::analysis::flow::steps::Steps;
use crate::analysis::names::pattern::matches;
use crate::analysis::what_if::{Checkpoint, Depth, Edit, IN_LOOP, LOGITS, Outcome, Prediction, Trial, TryVerdict};
use crate::model::{Bytes, UnitSystem};

/// A list of changes and their combined effect.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Program of the profile.
    pub program: usize,
    /// Rules that suggested its changes, in order.
    pub rules: Vec<&'static str>,
    /// The changes.
    pub edits: Vec<Edit>,
    /// Peak after all changes.
    pub peak: Bytes,
    /// Allocated bytes after all changes.
    pub allocated: Bytes,
    /// Whether the program fits after the changes.
    pub fits: bool,
    /// Allocated bytes over capacity; 0 if it fits.
    pub over: Bytes,
    /// Lower end of the predicted allocated bytes.
    pub at_best: Bytes,
    /// Whether its bytes say anything ([`Prediction::is_told`]).
    pub is_told: bool,
    /// What it comes to; `None` if nothing can be said.
    pub outcome: Option<Outcome>,
    /// Whether results may change.
    pub changes_results: ChangesResults,
    /// The conclusion in one sentence.
    pub summary: String,
    /// The changes one by one, with cumulative effect.
    pub steps: Vec<Step>,
    /// What to know before trusting the prediction of all of them.
    pub warnings: Vec<String>,
}

/// A change of a plan, and the effect of all changes up to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The change.
    pub edit: Edit,
    /// The change in words, with the API of the library that made the program where it has one.
    pub words: String,
    /// Allocated bytes after it.
    pub allocated: Bytes,
    /// Allocated bytes over capacity after it.
    pub over: Bytes,
    /// Range of allocated bytes after it.
    pub range: (Bytes, Bytes),
    /// Whether the program fits after it.
    pub verdict: TryVerdict,
    /// Whether the bytes say anything ([`Prediction::is_told`]).
    pub is_told: bool,
}

/// Largest number of changes of which all combinations are tried; longer plans are built greedily.
const MOST_TOGETHER: usize = 3;

/// Most candidates tried: the best findings.
const MOST_CANDIDATES: usize = 10;

/// Builds a plan from the findings; `None` if the program fits or no finding has a change.
#[must_use]
pub fn plan(case: &ProgramContext<'_>, findings: &[Finding]) -> Option<Plan> {
    let mut plan = safest(case, findings)?;
    // What is tried last may change no results.
    if plan.edits.iter().any(|edit| matches!(edit, Edit::Batch(_))) {
        let is_other = |f: &&Finding| {
            f.program == Some(case.row) && f.rule != super::batch_size::NAME && plan.rules.contains(&f.rule)
        };
        let others = findings.iter().filter(is_other).map(|f| f.changes_results).max().unwrap_or_default();
        plan.changes_results = others.max(super::batch_size::changes_results(case));
    }
    Some(plan)
}

fn safest(case: &ProgramContext<'_>, findings: &[Finding]) -> Option<Plan> {
    if case.fits_already() != Some(false) {
        return None;
    }
    let own = findings.iter().filter(|f| f.program == Some(case.row) && !f.edits().is_empty() && f.weight() > 0);
    let candidates = own.filter(|f| !f.edits().iter().any(|e| matches!(e, Edit::Drop(_)))).collect();
    let search = Search::new(case, candidates);
    let mut nearest: Option<Plan> = None;
    let mut before = 0;
    for level in [ChangesResults::No, ChangesResults::Maybe, ChangesResults::Yes] {
        let is_allowed = |row: &usize| effort(search.candidates[*row]) <= level;
        let allowed: Vec<usize> = (0..search.candidates.len()).filter(is_allowed).take(MOST_CANDIDATES).collect();
        if allowed.len() > before {
            before = allowed.len();
            if let Some(found) = of_candidates(&search, &allowed, &mut nearest) {
                return Some(found.with_steps(case));
            }
        }
        // Where no finding is as safe as this, the batch alone may be divided.
        let so_far =
            nearest.clone().unwrap_or_else(|| of_prediction(case, &case.before, Vec::new(), ChangesResults::No));
        if let Some(with_batch) = divide_batch(case, &so_far, level) {
            return Some(with_batch.with_steps(case));
        }
    }
    nearest.map(|nearest| with_what_helps(case, nearest).with_steps(case))
}

/// Drops changes of a plan that is not enough without which the program needs no more.
fn with_what_helps(case: &ProgramContext<'_>, plan: Plan) -> Plan {
    let most = plan.allocated;
    let attempt = |edits: &[Edit]| {
        let prediction = case.try_within(edits, Depth::Verdict, most)?;
        prediction.undecided.is_none().then_some(prediction)
    };
    shortened(case, plan, &attempt, &|shorter, plan| shorter.allocated <= plan.allocated)
}

/// Drops changes of a plan, from last to first, without which an attempt comes to a plan that is still enough.
fn shortened(
    case: &ProgramContext<'_>,
    plan: Plan,
    attempt: &dyn Fn(&[Edit]) -> Option<Arc<Prediction>>,
    is_enough: &dyn Fn(&Plan, &Plan) -> bool,
) -> Plan {
    let mut plan = plan;
    let mut at = plan.edits.len();
    while plan.edits.len() > 1 && at > 0 {
        at -= 1;
        let Some(prediction) = attempt(&without(&plan.edits, at)) else { continue };
        let shorter = of_prediction(case, &prediction, plan.rules.clone(), plan.changes_results);
        if is_enough(&shorter, &plan) {
            let mut rules = plan.rules.clone();
            if rules.len() == plan.edits.len() {
                rules.remove(at);
            }
            plan = Plan { rules, ..shorter };
        }
    }
    plan
}

/// A plan of some candidates that fits; else notes the one that comes nearest.
fn of_candidates(search: &Search<'_, '_>, allowed: &[usize], nearest: &mut Option<Plan>) -> Option<Plan> {
    let is_long = allowed.len() > MOST_TOGETHER;
    // Where all changes together are not enough, no few of them are.
    let most = if is_long && !search.bound(allowed).0 { 1 } else { MOST_TOGETHER.min(allowed.len()) };
    let mut keep = |plan: Plan| {
        if plan.fits {
            return Some(plan);
        }
        if nearest.as_ref().is_none_or(|nearest| plan.allocated < nearest.allocated) {
            *nearest = Some(plan);
        }
        None
    };
    for size in 1..=most {
        let mut sets: Vec<Vec<usize>> = Vec::new();
        subsets(allowed.len(), size, &mut |rows| sets.push(rows.iter().map(|&i| allowed[i]).collect()));
        let Some((row, _)) = search.best_of(&sets) else { continue };
        if let Some(found) = keep(search.try_out(&sets[row], Depth::Verdict)) {
            return Some(found);
        }
    }
    if is_long { lengthen(search, allowed).and_then(keep) } else { None }
}

/// Greedily adds the change that helps most until the program fits or nothing helps.
fn lengthen(search: &Search<'_, '_>, allowed: &[usize]) -> Option<Plan> {
    let mut chosen: Vec<usize> = Vec::new();
    let mut waiting: Vec<usize> = allowed.to_vec();
    let mut best: Option<Plan> = None;
    while !waiting.is_empty() {
        let with = |&row: &usize| chosen.iter().copied().chain([row]).collect();
        let sets: Vec<Vec<usize>> = waiting.iter().map(with).collect();
        let (row, plan) = search.best_of(&sets)?;
        let helps = best.as_ref().is_none_or(|best| plan.allocated < best.allocated);
        if !helps {
            break;
        }
        chosen.push(waiting.remove(row));
        let fits = plan.fits;
        best = Some(plan);
        if fits {
            break;
        }
    }
    best.map(|_| search.try_out(&chosen, Depth::Verdict))
}

/// Last resort after all changes that are as safe: split the batch into the fewest equal parts that fit. Micro-batches
/// keep results the same, where the step does not normalise over the batch; if their gradients take too much, the batch
/// itself has to shrink, once nothing that may keep results is left.
fn divide_batch(case: &ProgramContext<'_>, nearest: &Plan, level: ChangesResults) -> Option<Plan> {
    if nearest.edits.iter().any(|edit| matches!(edit, Edit::Batch(_) | Edit::Micro(_))) {
        return None;
    }
    let of_micro = if case.normalises_over_the_batch() { ChangesResults::Maybe } else { ChangesResults::No };
    let with = |edit: Edit, changes: ChangesResults| {
        let edits: Vec<Edit> = nearest.edits.iter().cloned().chain([edit]).collect();
        let prediction = case.try_if_it_can_fit(&edits, Depth::Verdict)?;
        let rules = nearest.rules.iter().copied().chain([super::batch_size::NAME]).collect();
        let plan = of_prediction(case, &prediction, rules, nearest.changes_results.max(changes));
        plan.fits.then_some(plan)
    };
    let parts: Vec<u32> = super::batch_size::micro_batches(case).collect();
    let first = |parts: &[u32], with: &(dyn Fn(u32) -> Option<Plan> + Sync)| {
        parts.chunks(2).find_map(|few| few.par_iter().find_map_first(|&parts| with(parts)))
    };
    let micro = || first(&parts, &|parts| with(Edit::Micro(parts), of_micro));
    let halved: Vec<u32> = super::batch_size::equal_parts(case).filter(|parts| parts.is_power_of_two()).collect();
    let batch = || first(&halved, &|parts| with(Edit::Batch(1.0 / f64::from(parts)), ChangesResults::Yes));
    // What is in memory all the time is not divided.
    let always = if nearest.edits.is_empty() { case.before.base } else { case.try_out(&nearest.edits).base };
    let may_help = case.memory.capacity.is_none_or(|capacity| always.0 <= capacity);
    let micro = if level >= of_micro && may_help { micro() } else { None };
    micro.or_else(|| if level == ChangesResults::Maybe { batch() } else { None })
}

impl Plan {
    /// [`Self::summary`] with the changes as the window calls them.
    #[must_use]
    pub fn in_words(&self) -> String {
        let called = |edit: &Edit| format!("\u{201c}{}\u{201d}", edit.in_words());
        self.edits.iter().fold(self.summary.clone(), |words, edit| words.replace(&format!("`{edit}`"), &called(edit)))
    }

    /// How good it is.
    pub(super) fn rank(&self) -> Rank {
        let is_free = self.fits && are_free(&self.edits);
        (self.fits, Reverse(self.changes_results), is_free, Reverse(self.allocated))
    }
}

/// What some changes of some rules come to; they may have been applied already.
pub(super) fn evaluated(
    case: &ProgramContext<'_>,
    (edits, applied): (&[Edit], Option<&Trial<'_>>),
    rules: Vec<&'static str>,
    changes_results: ChangesResults,
    depth: Depth,
) -> Plan {
    let tried = applied.map_or_else(|| case.try_to(edits, depth), |applied| case.try_applied(applied, depth));
    of_prediction(case, &tried, rules, changes_results)
}

/// What a prediction for the changes of some rules comes to.
fn of_prediction(
    case: &ProgramContext<'_>,
    prediction: &Prediction,
    rules: Vec<&'static str>,
    changes_results: ChangesResults,
) -> Plan {
    let capacity = case.memory.capacity.unwrap_or(u64::MAX);
    let fits = prediction.fits == Some(true) && prediction.verdict == TryVerdict::Fits;
    let allocated = prediction.expected();
    let over = allocated.0.saturating_sub(capacity);
    Plan {
        program: case.row,
        rules,
        peak: prediction.peak,
        allocated,
        fits,
        over: Bytes(if fits { 0 } else { over }),
        at_best: prediction.allocated_range.0,
        is_told: prediction.is_told(),
        outcome: prediction.outcome(case.memory.capacity),
        changes_results,
        summary: summary(&prediction.edits, prediction, capacity, fits),
        edits: prediction.edits.clone(),
        steps: Vec::new(),
        warnings: prediction.warnings.clone(),
    }
}

/// Drops changes that the plan does not need in order to fit, from last to first, then checkpoints only as many layers
/// as necessary.
fn pruned(case: &ProgramContext<'_>, plan: Plan) -> Plan {
    let attempt = |edits: &[Edit]| case.try_if_it_can_fit(edits, Depth::Verdict);
    let plan = if plan.fits { shortened(case, plan, &attempt, &|shorter, _| shorter.fits) } else { plan };
    // Its setting is one for all layers.
    if Library::of(case) == Library::Tunix { plan } else { least_of_layers(case, fewest_layers(case, plan)) }
}

/// Share of the layers above which it is simpler to checkpoint all of them.
const NEARLY_ALL: f64 = 0.75;

/// Layers up to which halving what is open takes no more attempts than a guess.
const FEW_LAYERS: u32 = 64;

/// Checkpoints only a part of the layers of a scan, where that is enough: the one that saves least.
fn least_of_layers(case: &ProgramContext<'_>, plan: Plan) -> Plan {
    let at = plan.edits.iter().position(|edit| *edit == Edit::Remat(Checkpoint::Scan));
    let (Some(at), true) = (at, plan.fits) else { return plan };
    let with = |part: &scan_parts::Part| {
        let mut edits = plan.edits.clone();
        edits[at] = part.edit.clone();
        let prediction = case.try_if_it_can_fit(&edits, Depth::Verdict)?;
        Some(of_prediction(case, &prediction, plan.rules.clone(), plan.changes_results)).filter(|less| less.fits)
    };
    scan_parts::of(case).iter().find_map(with).unwrap_or(plan)
}

/// Checkpoints only as many layers as it takes to fit.
fn fewest_layers(case: &ProgramContext<'_>, plan: Plan) -> Plan {
    let of_layers = plan.edits.iter().enumerate().find_map(|(at, edit)| match edit {
        Edit::Remat(Checkpoint::Layers(pattern, None)) => Some((at, pattern.clone())),
        _ => None,
    });
    let (Some((at, pattern)), Some(turn), true) = (of_layers, &case.memory.kept.turn, plan.fits) else { return plan };
    let all = turn.layers.iter().filter(|layer| matches(&pattern, &layer.name)).count() as u32;
    let edits = |layers: u32| {
        let mut edits = plan.edits.clone();
        edits[at] = Edit::Remat(Checkpoint::Layers(pattern.clone(), Some(layers)));
        edits
    };
    let of = |prediction: &Prediction| of_prediction(case, prediction, plan.rules.clone(), plan.changes_results);
    // As surely as with all of them: what only just fits is left to the compiler.
    let is_tight = |plan: &Plan| matches!(plan.outcome, Some(Outcome::Tight { .. }));
    let is_enough = |fewer: &Plan| fewer.fits && (is_tight(&plan) || !is_tight(fewer));
    // Checkpointing more layers never needs more memory.
    let fits = |layers: u32| {
        case.try_if_it_can_fit(&edits(layers), Depth::Verdict).is_some_and(|prediction| is_enough(&of(&prediction)))
    };
    let guess = if all > FEW_LAYERS { guessed_layers(case, &plan, at, all) } else { 0 };
    let most = (f64::from(all) * NEARLY_ALL) as u32;
    // Where it seems to take nearly all of them, whether it does is asked first: how many exactly is not said then.
    if guess > most && !fits(most) {
        return plan;
    }
    let high = first_that_fits(all, guess, fits);
    let fewest = of(&case.try_out(&edits(high)));
    if high > 0 && high <= most && is_enough(&fewest) { fewest } else { plan }
}

/// About how many layers it takes to fit, of those that the change at a place checkpoints: each saves about the same, so a
/// straight line through what none and all of them need tells.
fn guessed_layers(case: &ProgramContext<'_>, plan: &Plan, at: usize, all: u32) -> u32 {
    let (none, every) = (case.least(&without(&plan.edits, at)).0 as f64, case.least(&plan.edits).0 as f64);
    // Certain to fit is what fits at the upper end of its range.
    let certain = case.try_out(&plan.edits).allocated_range.1.0 as f64 / every.max(1.0);
    let over = none - case.memory.capacity.unwrap_or(u64::MAX) as f64 / certain.max(1.0);
    (f64::from(all) * over / (none - every).max(1.0)) as u32
}

/// Some changes without the one at a place.
fn without(edits: &[Edit], at: usize) -> Vec<Edit> {
    edits.iter().enumerate().filter(|row| row.0 != at).map(|row| row.1.clone()).collect()
}

/// The smallest number from 1 to `all` that fits, where every larger one does, too, and `all` is known to; looked for from
/// a guess on in steps that double, or by halving what is open where there is none (0).
fn first_that_fits(all: u32, guess: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, all);
    let (mut at, mut step) = (guess, 1u32);
    while high - low > 1 {
        // Outside what is still open, a guess says nothing.
        let is_guess = low < at && at < high;
        let middle = if is_guess { at } else { low + (high - low) / 2 };
        let is_enough = fits(middle);
        if is_enough {
            high = middle;
        } else {
            low = middle;
        }
        if is_guess {
            at = if is_enough { middle.saturating_sub(step) } else { middle.saturating_add(step) };
            step = step.saturating_mul(2);
        }
    }
    high
}

impl Plan {
    /// Prunes the plan and computes the memory needed after each change.
    fn with_steps(self, case: &ProgramContext<'_>) -> Self {
        let mut pruned = pruned(case, self);
        pruned.work_out_steps(case);
        pruned
    }

    fn work_out_steps(&mut self, case: &ProgramContext<'_>) {
        let capacity = case.memory.capacity.unwrap_or(u64::MAX);
        let library = Library::of(case);
        self.steps = (1..=self.edits.len())
            .map(|count| {
                let prediction = case.try_out(&self.edits[..count]);
                let edit = self.edits[count - 1].clone();
                Step {
                    words: words(case, &edit, library, case.main_scan(&|_| true)),
                    edit,
                    allocated: prediction.expected(),
                    over: Bytes(prediction.expected().0.saturating_sub(capacity)),
                    range: prediction.allocated_range,
                    verdict: prediction.verdict,
                    is_told: prediction.is_told(),
                }
            })
            .collect();
    }
}

/// Describes a change with the API of the library that made the program.
fn words(case: &ProgramContext<'_>, edit: &Edit, library: Library, main_scan: (i64, Steps)) -> String {
    match edit {
        Edit::Remat(Checkpoint::Scan) => {
            library.remat_scan(main_scan, case.try_out(std::slice::from_ref(edit)).scan_segments)
        }
        Edit::Remat(Checkpoint::ScanPart(pattern)) => scan_parts::words(library, pattern),
        Edit::Remat(Checkpoint::Layers(pattern, None)) => library.remat(pattern),
        Edit::Remat(Checkpoint::Layers(pattern, Some(layers))) => {
            let enough = match layers {
                1 => "one is enough".to_owned(),
                layers => format!("{layers} are enough, with a margin"),
            };
            format!("{} ({enough})", library.remat_first(*layers, pattern))
        }
        Edit::Micro(IN_LOOP) => {
            let now = case.memory.summed_parts(case.program);
            format!("the {now} micro-batches in a loop of the program: {}", library.micro_batches(None))
        }
        Edit::Micro(parts) => {
            let now = u32::try_from(case.memory.summed_parts(case.program)).unwrap_or(1).max(1);
            let all = parts.saturating_mul(now);
            let of_now = if now > 1 { format!(", {parts} of each of the {now} of now") } else { String::new() };
            format!(
                "{all} micro-batches{of_now}: run the step on one part of the batch at a time ({}) and average the gradients",
                library.micro_batches(Some(all))
            )
        }
        Edit::Chunk(scope, parts) if scope == LOGITS => {
            library.chunked_loss(*parts, &case.memory, logits::divided(case))
        }
        Edit::Blockwise(_) => super::attention::blockwise(case).to_owned(),
        Edit::Donate(arguments) => library.donate(&arguments.0, &arguments.in_words(), ""),
        Edit::Constrain(parts) => format!(
            "activations divided {parts} ways along the batch (`jax.lax.with_sharding_constraint` on the residual stream), where nothing keeps them so yet"
        ),
        // Nothing of the batch is left out.
        Edit::Batch(factor) if *factor < 1.0 && !super::batch_size::is_training(case) => {
            format!("{} at a time, one part after the other, each until it has finished", edit.in_words())
        }
        other => other.in_words(),
    }
}

/// Longest change that a summary writes out.
const WRITTEN_OUT: usize = 80;

/// A change as it can be given again; one that names many arguments in words.
fn shortly(edit: &Edit) -> String {
    let written = edit.to_string();
    if written.len() > WRITTEN_OUT { edit.in_words() } else { format!("`{written}`") }
}

fn summary(edits: &[Edit], prediction: &Prediction, capacity: u64, fits: bool) -> String {
    let list = in_a_row(edits.iter().map(shortly).collect());
    let limit = UnitSystem::Binary.capacity(Bytes(capacity));
    if !prediction.is_told() {
        let begin = if fits { "With" } else { "Nothing found is certain to be enough: with" };
        return format!(
            "{begin} {list} the program {}",
            prediction.verdict_in_words(Some(capacity), UnitSystem::Binary)
        );
    }
    if !fits && prediction.verdict == TryVerdict::MayFit {
        return format!(
            "Nothing found is certain to be enough: with {list} the program may fit; it needs between {} and {} of {limit}{}",
            prediction.allocated_range.0.short(),
            prediction.allocated_range.1.short(),
            prediction.depends_on.words()
        );
    }
    if !fits {
        return format!(
            "No combination found is enough: with {list} the program still needs {} of {limit}, {} over",
            UnitSystem::Binary.beside(prediction.expected(), Bytes(capacity)),
            Bytes(prediction.expected().0.saturating_sub(capacity)).short()
        );
    }
    let spare = Bytes(capacity.saturating_sub(prediction.expected().0)).short();
    if prediction.is_tight {
        let fits = match prediction.outcome(Some(capacity)) {
            Some(Outcome::Tight { is_little: true, .. }) => "just fits",
            _ => "fits",
        };
        format!(
            "With {list} it {fits} in {limit}, with {spare} to spare; the compiler will repack and may rematerialise"
        )
    } else {
        format!("With {list} it fits in {limit}, with {spare} to spare")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_layers_are_found_from_any_guess_in_few_steps() {
        for all in [1, 2, 3, 12, 18_000] {
            for first in [1, 2, all / 3, all - 1, all].into_iter().filter(|first| (1..=all).contains(first)) {
                for guess in [0, 1, first - 1, first, first + 1, first + 40, all, u32::MAX] {
                    let asked = std::cell::Cell::new(0);
                    let fits = |layers: u32| {
                        asked.set(asked.get() + 1);
                        layers >= first
                    };
                    assert_eq!(first_that_fits(all, guess, fits), first, "{all} layers, guess {guess}");
                    assert!(asked.get() <= 2 * u32::BITS, "{} of {all}", asked.get());
                    if guess > 0 && guess.abs_diff(first) <= 1 && guess < all {
                        assert!(asked.get() <= 4, "{} for a good guess", asked.get());
                    }
                }
            }
        }
    }

    #[test]
    fn changes_are_listed_as_a_sentence_lists_them() {
        let list = |words: &[&str]| in_a_row(words.iter().map(|&word| word.to_owned()).collect());
        assert_eq!((list(&[]), list(&["a"])), (String::new(), "a".to_owned()));
        assert_eq!((list(&["a", "b"]), list(&["a", "b", "c"])), ("a and b".to_owned(), "a, b and c".to_owned()));
    }
}
