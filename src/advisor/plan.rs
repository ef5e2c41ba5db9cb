//! The plan: a short set of changes that makes a program fit, safest first, with what is left after each of them.

use std::cmp::Reverse;

use rayon::prelude::*;

use super::case::Case;
use super::finding::{ChangesResults, Finding};
use super::library::Library;
use crate::analysis::names::pattern::matches;
use crate::analysis::what_if::{Depth, Edit, LOGITS, Outcome, SCAN, TryVerdict};
use crate::model::{Bytes, UnitSystem};

/// A set of changes and what it comes to.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Program of the profile.
    pub program: usize,
    /// Rules whose changes it takes, in order.
    pub rules: Vec<&'static str>,
    /// The changes.
    pub edits: Vec<Edit>,
    /// Peak and allocated bytes after them.
    pub peak: Bytes,
    /// Allocated bytes after them.
    pub allocated: Bytes,
    /// Whether the program fits then.
    pub fits: bool,
    /// Allocated bytes beyond what there is, where it does not.
    pub over: Bytes,
    /// The least that the program may need then, as far as such predictions reach.
    pub at_best: Bytes,
    /// Whether it fits only when the compiler repacks, and maybe rematerialises.
    pub is_tight: bool,
    /// Whether results may change.
    pub changes_results: ChangesResults,
    /// One sentence that says so.
    pub summary: String,
    /// The changes one after the other.
    pub steps: Vec<Step>,
}

/// A change of a plan, and what it comes to with those before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The change.
    pub edit: Edit,
    /// The change in words, in those of the library that made the program where it has its own.
    pub words: String,
    /// Allocated bytes then.
    pub allocated: Bytes,
    /// Allocated bytes beyond what there is then.
    pub over: Bytes,
    /// Whether the program fits then.
    pub verdict: TryVerdict,
}

/// Changes of which every set is looked at, at most; longer plans are put together one change at a time.
const MOST_TOGETHER: usize = 3;

/// Candidates looked at, at most: the best of the findings.
const MOST_CANDIDATES: usize = 10;

/// Parts of the batch that are tried when everything else is not enough.
const BATCH_PARTS: [u32; 5] = [2, 4, 8, 16, 32];

/// Searches the findings for a plan; `None` for a program that fits, or that offers nothing to change.
#[must_use]
pub fn plan(case: &Case<'_>, findings: &[Finding]) -> Option<Plan> {
    if case.before.fits != Some(false) {
        return None;
    }
    let own = findings.iter().filter(|f| f.program == Some(case.row) && !f.edits().is_empty() && f.weight() > 0);
    let candidates: Vec<&Finding> = own.filter(|f| !f.edits().iter().any(|e| matches!(e, Edit::Drop(_)))).collect();
    let mut nearest: Option<Plan> = None;
    let mut before = 0;
    for level in [ChangesResults::No, ChangesResults::Maybe, ChangesResults::Yes] {
        let allowed: Vec<&Finding> =
            candidates.iter().copied().filter(|f| f.changes_results <= level).take(MOST_CANDIDATES).collect();
        if allowed.len() == before {
            continue;
        }
        before = allowed.len();
        for size in 1..=MOST_TOGETHER.min(allowed.len()) {
            let mut sets: Vec<Vec<&Finding>> = Vec::new();
            subsets(allowed.len(), size, &mut |rows| sets.push(rows.iter().map(|&i| allowed[i]).collect()));
            let Some((row, _)) = best_of(case, &sets) else { continue };
            let best = try_out(case, &sets[row], Depth::Verdict);
            if best.fits {
                return Some(best.with_steps(case));
            }
            if nearest.as_ref().is_none_or(|nearest| best.allocated < nearest.allocated) {
                nearest = Some(best);
            }
        }
        if allowed.len() > MOST_TOGETHER
            && let Some(longer) = lengthen(case, &allowed)
        {
            if longer.fits {
                return Some(longer.with_steps(case));
            }
            if nearest.as_ref().is_none_or(|nearest| longer.allocated < nearest.allocated) {
                nearest = Some(longer);
            }
        }
        if level == ChangesResults::No
            && let Some(with_batch) = nearest.as_ref().and_then(|nearest| divide_batch(case, nearest))
        {
            return Some(with_batch.with_steps(case));
        }
    }
    nearest.map(|nearest| nearest.with_steps(case))
}

/// Takes one change after the other, the one that helps most first, until the program fits or nothing helps.
fn lengthen<'a>(case: &Case<'_>, allowed: &[&'a Finding]) -> Option<Plan> {
    let mut chosen: Vec<&'a Finding> = Vec::new();
    let mut waiting: Vec<&'a Finding> = allowed.to_vec();
    let mut best: Option<Plan> = None;
    while !waiting.is_empty() {
        let with = |finding: &&'a Finding| chosen.iter().chain([finding]).copied().collect();
        let sets: Vec<Vec<&Finding>> = waiting.iter().map(with).collect();
        let (row, plan) = best_of(case, &sets)?;
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
    best.map(|_| try_out(case, &chosen, Depth::Verdict))
}

/// What else is there after every safe change: the batch in the fewest equal parts that fit.
fn divide_batch(case: &Case<'_>, nearest: &Plan) -> Option<Plan> {
    let now = case.memory.data.first()?.batch();
    if nearest.edits.iter().any(|edit| matches!(edit, Edit::Batch(_) | Edit::Micro(_))) {
        return None;
    }
    let parts: Vec<u32> = BATCH_PARTS.into_iter().filter(|&parts| now % i64::from(parts) == 0).collect();
    let with = |edit: Edit, changes: ChangesResults| {
        let edits: Vec<Edit> = nearest.edits.iter().cloned().chain([edit]).collect();
        if !case.can_fit(&edits) {
            return None;
        }
        let rules = nearest.rules.iter().copied().chain([super::batch_size::NAME]).collect();
        let plan = evaluated(case, edits, rules, nearest.changes_results.max(changes), Depth::Verdict);
        plan.fits.then_some(plan)
    };
    // Micro-batches compute the same; where their gradients take too much, the batch itself has to be smaller.
    let micro = || parts.iter().find_map(|&parts| with(Edit::Micro(parts), ChangesResults::No));
    micro().or_else(|| parts.iter().find_map(|&parts| with(Edit::Batch(1.0 / f64::from(parts)), ChangesResults::Yes)))
}

/// How good a set of changes is: whether the program fits, whether results stay the same, allocated bytes.
type Rank = (bool, Reverse<ChangesResults>, Reverse<Bytes>);

impl Plan {
    fn rank(&self) -> Rank {
        (self.fits, Reverse(self.changes_results), Reverse(self.allocated))
    }
}

/// The best a set of changes can be, by the bytes that are live at once, which takes no packing.
fn bound(case: &Case<'_>, chosen: &[&Finding]) -> Rank {
    let (edits, changes) = together(chosen);
    let least = case.memory.least(case.program, &edits);
    (case.memory.capacity.is_some_and(|capacity| least.0 <= capacity), Reverse(changes), Reverse(least))
}

/// The best of some sets by estimate, the first of equal ones. Those are packed that may be the best, the most promising
/// first.
fn best_of(case: &Case<'_>, sets: &[Vec<&Finding>]) -> Option<(usize, Plan)> {
    let bounds: Vec<Rank> = sets.par_iter().map(|chosen| bound(case, chosen)).collect();
    let mut order: Vec<usize> = (0..sets.len()).collect();
    order.sort_by_key(|&row| (Reverse(bounds[row]), row));
    let mut best: Option<(usize, Plan)> = None;
    for rows in order.chunks(rayon::current_num_threads().max(1)) {
        let is_open = |row: usize| best.as_ref().is_none_or(|best| (bounds[row], best.0) > (best.1.rank(), row));
        let open: Vec<usize> = rows.iter().copied().filter(|&row| is_open(row)).collect();
        let try_set = |&row: &usize| (row, try_out(case, &sets[row], Depth::Estimate));
        let tried: Vec<(usize, Plan)> = open.par_iter().map(try_set).collect();
        best = best.into_iter().chain(tried).max_by_key(|(row, plan)| (plan.rank(), Reverse(*row)));
    }
    best
}

/// Calls `each` with every set of `size` rows of `count`, in order.
fn subsets(count: usize, size: usize, each: &mut dyn FnMut(&[usize])) {
    let mut rows: Vec<usize> = (0..size).collect();
    if size > count {
        return;
    }
    loop {
        each(&rows);
        let Some(at) = (0..size).rev().find(|&i| rows[i] < count - size + i) else { return };
        rows[at] += 1;
        for i in at + 1..size {
            rows[i] = rows[i - 1] + 1;
        }
    }
}

/// The changes of some findings, and whether results may change with them.
fn together(chosen: &[&Finding]) -> (Vec<Edit>, ChangesResults) {
    let edits = chosen.iter().flat_map(|f| f.edits().iter().cloned()).collect();
    (edits, chosen.iter().map(|f| f.changes_results).max().unwrap_or_default())
}

fn try_out(case: &Case<'_>, chosen: &[&Finding], depth: Depth) -> Plan {
    let (edits, changes) = together(chosen);
    evaluated(case, edits, chosen.iter().map(|f| f.rule).collect(), changes, depth)
}

fn evaluated(
    case: &Case<'_>,
    edits: Vec<Edit>,
    rules: Vec<&'static str>,
    changes_results: ChangesResults,
    depth: Depth,
) -> Plan {
    let outcome = case.try_to(&edits, depth);
    let capacity = case.memory.capacity.unwrap_or(u64::MAX);
    let fits = outcome.fits == Some(true) && outcome.verdict == TryVerdict::Fits;
    let allocated = outcome.expected();
    let over = allocated.0.saturating_sub(capacity);
    Plan {
        program: case.row,
        rules,
        peak: outcome.peak,
        allocated,
        fits,
        over: Bytes(if fits { 0 } else { over }),
        at_best: outcome.allocated_range.0,
        is_tight: outcome.is_tight,
        changes_results,
        summary: summary(&edits, &outcome, capacity, fits),
        edits,
        steps: Vec::new(),
    }
}

/// Leaves out changes without which a plan fits as well, those that change results first and the later ones before the
/// earlier; then checkpoints no more layers than it takes.
fn pruned(case: &Case<'_>, plan: Plan) -> Plan {
    let mut plan = plan;
    let mut at = plan.edits.len();
    while plan.fits && plan.edits.len() > 1 && at > 0 {
        at -= 1;
        let mut edits = plan.edits.clone();
        edits.remove(at);
        if !case.can_fit(&edits) {
            continue;
        }
        let shorter = evaluated(case, edits, plan.rules.clone(), plan.changes_results, Depth::Verdict);
        if shorter.fits {
            let mut rules = plan.rules.clone();
            if rules.len() == plan.edits.len() {
                rules.remove(at);
            }
            plan = Plan { rules, ..shorter };
        }
    }
    fewest_layers(case, plan)
}

/// Share of the layers from which on it is simpler to checkpoint all of them.
const NEARLY_ALL: f64 = 0.75;

/// Checkpoints only as many layers as it takes to fit.
fn fewest_layers(case: &Case<'_>, plan: Plan) -> Plan {
    let at = plan.edits.iter().position(|edit| matches!(edit, Edit::Remat(scope, None) if scope != SCAN));
    let (Some(at), Some(turn), true) = (at, &case.memory.kept.turn, plan.fits) else { return plan };
    let Edit::Remat(scope, _) = &plan.edits[at] else { return plan };
    let all = turn.layers.iter().filter(|layer| matches(scope, &layer.name)).count() as u32;
    let edits = |layers: u32| {
        let mut edits = plan.edits.clone();
        edits[at] = Edit::Remat(scope.clone(), Some(layers));
        edits
    };
    let with = |layers: u32| evaluated(case, edits(layers), plan.rules.clone(), plan.changes_results, Depth::Verdict);
    // More layers never take more.
    let (mut low, mut high) = (0, all);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if case.can_fit(&edits(middle)) && with(middle).fits {
            high = middle;
        } else {
            low = middle;
        }
    }
    let fewest = with(high);
    if high > 0 && f64::from(high) <= f64::from(all) * NEARLY_ALL && fewest.fits { fewest } else { plan }
}

impl Plan {
    /// Works out what is left after each change.
    fn with_steps(self, case: &Case<'_>) -> Self {
        let mut pruned = pruned(case, self);
        pruned.work_out_steps(case);
        pruned
    }

    fn work_out_steps(&mut self, case: &Case<'_>) {
        let capacity = case.memory.capacity.unwrap_or(u64::MAX);
        let library = Library::of(case);
        self.steps = (1..=self.edits.len())
            .map(|count| {
                let outcome = case.try_out(&self.edits[..count]);
                let edit = self.edits[count - 1].clone();
                Step {
                    words: words(&edit, library),
                    edit,
                    allocated: outcome.expected(),
                    over: Bytes(outcome.expected().0.saturating_sub(capacity)),
                    verdict: outcome.verdict,
                }
            })
            .collect();
    }
}

/// A change in the words of the library that made the program.
fn words(edit: &Edit, library: Library) -> String {
    match edit {
        Edit::Remat(scope, _) if scope == SCAN => library.remat(None),
        Edit::Remat(scope, None) => library.remat(Some(scope)),
        Edit::Remat(scope, Some(layers)) => format!("{} (the first {layers} are enough)", library.remat(Some(scope))),
        Edit::Micro(parts) => format!(
            "{parts} micro-batches: the step on a part of the batch at a time (`jax.lax.scan` over the parts, or `optax.MultiSteps`), gradients added up"
        ),
        Edit::Chunk(scope, parts) if scope == LOGITS => library.chunked_loss(*parts),
        Edit::Blockwise(_) => library.blockwise_attention().to_owned(),
        Edit::Donate(arguments) => library.donate(&arguments.to_string()),
        other => other.in_words(),
    }
}

fn summary(edits: &[Edit], outcome: &Outcome, capacity: u64, fits: bool) -> String {
    let list: Vec<String> = edits.iter().map(|edit| format!("`{edit}`")).collect();
    let list = list.join(" and ");
    let limit = UnitSystem::Binary.capacity(Bytes(capacity));
    if !fits && outcome.verdict == TryVerdict::MayFit {
        return format!(
            "Nothing found is surely enough: with {list} the program may fit, it needs between {} and {} of {limit}; the compiler can still recompute",
            outcome.allocated_range.0.short(),
            outcome.allocated_range.1.short()
        );
    }
    if !fits {
        return format!(
            "Nothing found is enough: with {list} the program still needs {} of {limit}, {} over",
            outcome.expected().short(),
            Bytes(outcome.expected().0.saturating_sub(capacity)).short()
        );
    }
    let spare = Bytes(capacity.saturating_sub(outcome.expected().0)).short();
    if outcome.is_tight {
        format!("With {list} it fits, the compiler will repack and may rematerialise ({spare} to spare of {limit})")
    } else {
        format!("With {list} it fits with {spare} to spare of {limit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subset_comes_once() {
        let mut seen = Vec::new();
        subsets(4, 2, &mut |rows| seen.push(rows.to_vec()));
        assert_eq!(seen, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        subsets(1, 2, &mut |_| panic!("there is none"));
    }
}
