//! The plan: the shortest set of changes that makes a program fit, cheapest and safest first.

use rayon::prelude::*;

use super::case::Case;
use super::finding::{ChangesResults, Finding};
use crate::analysis::what_if::{Depth, Edit, Outcome};
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
}

/// Changes looked at together, at most.
const MOST_CHANGES: usize = 3;

/// Candidates looked at, at most: the best of the findings.
const MOST_CANDIDATES: usize = 6;

/// Searches the findings for a plan; `None` for a program that fits, or that offers nothing to change.
#[must_use]
pub fn plan(case: &Case<'_>, findings: &[Finding]) -> Option<Plan> {
    if case.before.fits != Some(false) {
        return None;
    }
    let own = findings.iter().filter(|f| f.program == Some(case.row) && !f.edits.is_empty() && f.weight() > 0);
    let candidates: Vec<&Finding> = own.filter(|f| !f.edits.iter().any(|e| matches!(e, Edit::Drop(_)))).collect();
    let mut nearest: Option<Plan> = None;
    let mut before = 0;
    for level in [ChangesResults::No, ChangesResults::Maybe, ChangesResults::Yes] {
        let allowed: Vec<&Finding> =
            candidates.iter().copied().filter(|f| f.changes_results <= level).take(MOST_CANDIDATES).collect();
        if allowed.len() == before {
            continue;
        }
        before = allowed.len();
        for size in 1..=MOST_CHANGES.min(allowed.len()) {
            let mut sets: Vec<Vec<usize>> = Vec::new();
            subsets(allowed.len(), size, &mut |rows| sets.push(rows.to_vec()));
            let chosen = |rows: &[usize]| rows.iter().map(|&i| allowed[i]).collect::<Vec<&Finding>>();
            // Estimates first; only the best is packed.
            let tried: Vec<Plan> = sets.par_iter().map(|rows| try_out(case, &chosen(rows), Depth::Estimate)).collect();
            let best = tried.iter().zip(&sets).reduce(|a, b| if b.0.is_better_than(a.0) { b } else { a });
            let Some((_, rows)) = best else { continue };
            let best = try_out(case, &chosen(rows), Depth::Verdict);
            if best.fits {
                return Some(best);
            }
            if nearest.as_ref().is_none_or(|nearest| best.allocated < nearest.allocated) {
                nearest = Some(best);
            }
        }
    }
    nearest
}

impl Plan {
    fn is_better_than(&self, other: &Self) -> bool {
        (self.fits, std::cmp::Reverse(self.changes_results), std::cmp::Reverse(self.allocated))
            > (other.fits, std::cmp::Reverse(other.changes_results), std::cmp::Reverse(other.allocated))
    }
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

fn try_out(case: &Case<'_>, chosen: &[&Finding], depth: Depth) -> Plan {
    let edits: Vec<Edit> = chosen.iter().flat_map(|f| f.edits.iter().cloned()).collect();
    let outcome = case.memory.evaluate(case.program, &edits, depth);
    let capacity = case.memory.capacity.unwrap_or(u64::MAX);
    let fits = outcome.fits == Some(true);
    let over = outcome.allocated.0.saturating_sub(capacity);
    Plan {
        program: case.row,
        rules: chosen.iter().map(|f| f.rule).collect(),
        peak: outcome.peak,
        allocated: outcome.allocated,
        fits,
        over: Bytes(if fits { 0 } else { over }),
        at_best: outcome.peak_range.0,
        is_tight: outcome.is_tight,
        changes_results: chosen.iter().map(|f| f.changes_results).max().unwrap_or_default(),
        summary: summary(&edits, &outcome, capacity, fits),
        edits,
    }
}

fn summary(edits: &[Edit], outcome: &Outcome, capacity: u64, fits: bool) -> String {
    let list: Vec<String> = edits.iter().map(|edit| format!("`{edit}`")).collect();
    let list = list.join(" and ");
    let limit = UnitSystem::Binary.capacity(Bytes(capacity));
    if !fits && outcome.peak_range.0.0 <= capacity {
        return format!(
            "Nothing found is surely enough: with {list} the program needs {} of {limit}, {} over, but maybe only {}",
            outcome.allocated.short(),
            Bytes(outcome.allocated.0.saturating_sub(capacity)).short(),
            outcome.peak_range.0.short()
        );
    }
    if !fits {
        return format!(
            "Nothing found is enough: with {list} the program still needs {} of {limit}, {} over",
            outcome.allocated.short(),
            Bytes(outcome.allocated.0.saturating_sub(capacity)).short()
        );
    }
    let spare = Bytes(capacity.saturating_sub(outcome.allocated.0)).short();
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
