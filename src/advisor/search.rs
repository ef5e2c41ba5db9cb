//! The search for the best set of changes: each set is judged once, however often it comes up.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::finding::{ChangesResults, Finding};
use super::plan::Plan;
use super::program_context::ProgramContext;
use crate::analysis::what_if::{Arguments, Depth, Edit, Trial};
use crate::model::Bytes;

/// How good a set of changes is: whether the program fits, whether results stay the same, whether it costs nothing,
/// allocated bytes.
pub(super) type Rank = (bool, Reverse<ChangesResults>, bool, Reverse<Bytes>);

/// Whether changes cost nothing, neither in time nor in other code: donation alone.
pub(super) fn are_free(edits: &[Edit]) -> bool {
    edits.iter().all(|edit| matches!(edit, Edit::Donate(_)))
}

/// The findings whose changes may be combined, and what is known of sets of them.
pub(super) struct Search<'a, 'c> {
    case: &'a ProgramContext<'c>,
    /// The best findings that have a change.
    pub candidates: Vec<&'a Finding>,
    bounds: Mutex<HashMap<Vec<usize>, Rank>>,
    plans: Mutex<HashMap<(Vec<usize>, Depth), Plan>>,
    /// Sets that are promising, applied: they are packed next.
    applied: Mutex<Vec<(Rank, Arc<Trial<'a>>)>>,
}

/// Most sets that are kept applied: each takes as much memory as there are buffers.
const MOST_APPLIED: usize = 2;

/// What is remembered under a key, or worked out without holding the lock.
fn remembered<K: std::hash::Hash + Eq, V: Clone>(known: &Mutex<HashMap<K, V>>, key: K, make: impl FnOnce() -> V) -> V {
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(&key) {
        return found.clone();
    }
    let made = make();
    lock().insert(key, made.clone());
    made
}

impl<'a, 'c> Search<'a, 'c> {
    /// A search among some findings.
    pub fn new(case: &'a ProgramContext<'c>, candidates: Vec<&'a Finding>) -> Self {
        Self { case, candidates, bounds: Mutex::default(), plans: Mutex::default(), applied: Mutex::default() }
    }

    /// The changes of some findings (rows of the candidates), their rules, and whether results may change.
    fn together(&self, chosen: &[usize]) -> (Vec<Edit>, Vec<&'static str>, ChangesResults) {
        let findings = || chosen.iter().filter_map(|&row| self.candidates.get(row));
        let edits = joined(findings().flat_map(|f| f.edits()));
        let changes = findings().map(|f| effort(f)).max().unwrap_or_default();
        (edits, findings().map(|f| f.rule).collect(), changes)
    }

    /// The best a set of changes can be, by the bytes that are live at once, which takes no packing.
    pub fn bound(&self, chosen: &[usize]) -> Rank {
        let mut key = chosen.to_vec();
        key.sort_unstable();
        remembered(&self.bounds, key, || {
            let (edits, _, changes) = self.together(chosen);
            let trial = self.case.untried(&edits);
            let least = trial.as_ref().map_or_else(|| self.case.least(&edits), Trial::least);
            let fits = self.case.memory.capacity.is_some_and(|capacity| least.0 <= capacity);
            let rank = (fits, Reverse(changes), fits && are_free(&edits), Reverse(least));
            if let Some(trial) = trial {
                self.case.remember_least(&edits, least);
                self.keep(rank, trial);
            }
            rank
        })
    }

    /// Keeps a set that was applied, if it is among the most promising ones.
    fn keep(&self, rank: Rank, trial: Trial<'a>) {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let at = applied.partition_point(|kept| kept.0 >= rank);
        if at < MOST_APPLIED {
            applied.insert(at, (rank, Arc::new(trial)));
            applied.truncate(MOST_APPLIED);
        }
    }

    /// The changes applied, where they were kept.
    fn applied(&self, edits: &[Edit]) -> Option<Arc<Trial<'a>>> {
        let applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        applied.iter().find(|kept| kept.1.edits() == edits).map(|kept| Arc::clone(&kept.1))
    }

    /// What a set of changes comes to, in this order.
    pub fn try_out(&self, chosen: &[usize], depth: Depth) -> Plan {
        remembered(&self.plans, (chosen.to_vec(), depth), || {
            let (edits, rules, changes) = self.together(chosen);
            super::plan::evaluated(self.case, (&edits, self.applied(&edits).as_deref()), rules, changes, depth)
        })
    }

    /// What a set of changes comes to by estimate; their order makes no difference.
    fn estimate(&self, chosen: &[usize]) -> Plan {
        let mut chosen = chosen.to_vec();
        chosen.sort_unstable();
        self.try_out(&chosen, Depth::Estimate)
    }

    /// The best of some sets by estimate, the first of equal ones. Those are packed that may be the best, the most
    /// promising first.
    pub fn best_of(&self, sets: &[Vec<usize>]) -> Option<(usize, Plan)> {
        // What was promising before has been packed by now, and another level of changes has other ranks.
        self.applied.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let bounds: Vec<Rank> = sets.par_iter().map(|chosen| self.bound(chosen)).collect();
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_by_key(|&row| (Reverse(bounds[row]), row));
        let mut best: Option<(usize, Plan)> = None;
        for rows in order.chunks(rayon::current_num_threads().max(1)) {
            let is_open = |row: usize| best.as_ref().is_none_or(|best| (bounds[row], best.0) > (best.1.rank(), row));
            let open: Vec<usize> = rows.iter().copied().filter(|&row| is_open(row)).collect();
            let tried: Vec<(usize, Plan)> = open.par_iter().map(|&row| (row, self.estimate(&sets[row]))).collect();
            best = best.into_iter().chain(tried).max_by_key(|(row, plan)| (plan.rank(), Reverse(*row)));
        }
        best
    }
}

/// Several changes as one set, in which none does again what another does.
pub(super) fn joined<'e>(edits: impl Iterator<Item = &'e Edit>) -> Vec<Edit> {
    let mut together = Vec::new();
    edits.for_each(|edit| add_once(&mut together, edit));
    together
}

/// Adds a change to others, but for what one of them does already: arguments that are divided are not divided again.
fn add_once(edits: &mut Vec<Edit>, edit: &Edit) {
    if edits.contains(edit) {
        return;
    }
    let Edit::Shard(arguments, parts) = edit else {
        edits.push(edit.clone());
        return;
    };
    // It takes the place of one that divides no others.
    let is_narrower = |known: &Edit| matches!(known, Edit::Shard(known, of) if of == parts && known.0.iter().all(|path| arguments.include(path)));
    edits.retain(|known| !is_narrower(known));
    let mut left = arguments.0.clone();
    for known in edits.iter().filter_map(|known| if let Edit::Shard(known, _) = known { Some(known) } else { None }) {
        left.retain(|path| !known.include(path));
    }
    if !left.is_empty() {
        edits.push(Edit::Shard(Arguments(left), *parts));
    }
}

/// How late a change is tried: as safe as it is for results, but a smaller batch last, even where its parts can run one
/// after the other.
pub(super) fn effort(finding: &Finding) -> ChangesResults {
    let is_batch = finding.edits().iter().any(|edit| matches!(edit, Edit::Batch(_)));
    if is_batch { ChangesResults::Yes } else { finding.changes_results }
}

/// Calls `each` with every subset of `size` rows out of `count`, in lexicographic order.
pub(super) fn subsets(count: usize, size: usize, each: &mut dyn FnMut(&[usize])) {
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

    #[test]
    fn arguments_are_divided_once() {
        let together = |words: &[&str]| {
            let edits: Vec<Edit> = words.iter().map(|word| word.parse().expect("an edit")).collect();
            joined(edits.iter()).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(together(&["shard w,m 8", "constrain 8", "shard w,m 8"]), "shard w,m 8; constrain 8");
        assert_eq!(together(&["shard w,m 8", "shard m['x'] 8"]), "shard w,m 8");
        assert_eq!(together(&["shard m 8", "shard w,m 8"]), "shard w,m 8");
        assert_eq!(together(&["shard w,m 8", "shard m,x 8"]), "shard w,m 8; shard x 8");
        assert_eq!(together(&["donate m", "shard m 8"]), "donate m; shard m 8");
    }

    #[test]
    fn what_is_remembered_is_made_once() {
        let known = Mutex::default();
        let made = std::cell::Cell::new(0);
        let ask = || {
            remembered(&known, "key", || {
                made.set(made.get() + 1);
                7
            })
        };
        assert_eq!((ask(), ask(), made.get()), (7, 7, 1));
    }
}
