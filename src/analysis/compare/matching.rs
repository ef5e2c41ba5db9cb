//! Pairs the buffers of two programs, from what is surely the same to what is alike. Each pass looks only at what those
//! before it left, and takes buffers with equal keys in the order in which they come to live.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::identity::{Identity, Rows, hash};
use crate::model::FastSet;

/// How alike two buffers of a pair are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sameness {
    /// The same operation with the same shape.
    Equal,
    /// The same operation; its shape differs.
    Resized,
    /// The same shape where a scope or source line is the same: the operation was renamed.
    Renamed,
    /// The same shape, class and kind of instruction where names tell nothing: a guess.
    Alike,
}

/// Two buffers that are the same one in two programs, as rows of the two sides.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    pub(super) before: u32,
    pub(super) after: u32,
    /// How alike they are.
    pub sameness: Sameness,
}

/// Which buffers of two programs are the same.
#[derive(Debug, Default)]
pub struct Matching {
    pub(super) pairs: Vec<Pair>,
    pub(super) only_before: Vec<u32>,
    pub(super) only_after: Vec<u32>,
    /// Bytes of all buffers of each side: before, after.
    pub bytes: [u64; 2],
    /// Bytes of those that have a counterpart.
    pub matched_bytes: [u64; 2],
    /// Bytes of those whose counterpart is a guess.
    pub guessed_bytes: [u64; 2],
    /// Buffers without a counterpart.
    pub unmatched: [usize; 2],
}

struct Pass {
    sameness: Sameness,
    /// The key; `None` for a buffer that the pass does not look at.
    key: fn(&Identity) -> Option<u64>,
    /// Whether buffers may be paired where the key stands for more of them on one side than on the other.
    uneven: bool,
}

/// From the strictest to the loosest.
const PASSES: &[Pass] = &[
    Pass { sameness: Sameness::Equal, key: |id| named(id, (id.op, id.stem, id.index, id.layout)), uneven: true },
    Pass { sameness: Sameness::Equal, key: |id| named(id, (id.op, id.opcode, id.index, id.shape)), uneven: true },
    Pass {
        sameness: Sameness::Equal,
        key: |id| named(id, (id.path, id.backward, id.opcode, id.index, id.shape)),
        uneven: true,
    },
    Pass { sameness: Sameness::Equal, key: |id| named(id, (id.path, id.backward, id.shape, id.class)), uneven: true },
    Pass { sameness: Sameness::Equal, key: |id| named(id, (id.path, id.opcode, id.index, id.shape)), uneven: true },
    Pass { sameness: Sameness::Equal, key: |id| named(id, (id.path, id.shape, id.class)), uneven: true },
    Pass { sameness: Sameness::Equal, key: |id| named(id, (id.op, id.shape)), uneven: true },
    Pass { sameness: Sameness::Equal, key: |id| named(id, (id.path, id.shape)), uneven: true },
    Pass { sameness: Sameness::Equal, key: |id| called(id, (id.name, id.opcode, id.index, id.shape)), uneven: true },
    Pass { sameness: Sameness::Equal, key: |id| called(id, (id.name, id.shape)), uneven: true },
    Pass { sameness: Sameness::Resized, key: |id| named(id, (id.op, id.stem, id.index, id.rank)), uneven: false },
    Pass { sameness: Sameness::Resized, key: |id| named(id, (id.path, id.opcode, id.index, id.rank)), uneven: false },
    Pass {
        sameness: Sameness::Resized,
        key: |id| named(id, (id.path, id.opcode, id.index, id.dimensions)),
        uneven: true,
    },
    Pass { sameness: Sameness::Resized, key: |id| named(id, (id.path, id.dimensions)), uneven: true },
    Pass { sameness: Sameness::Resized, key: |id| named(id, (id.path, id.inner)), uneven: true },
    Pass { sameness: Sameness::Resized, key: |id| named(id, (id.path, id.opcode, id.rank, id.class)), uneven: true },
    Pass { sameness: Sameness::Resized, key: |id| named(id, (id.path, id.rank)), uneven: false },
    Pass { sameness: Sameness::Resized, key: parameter, uneven: true },
    Pass { sameness: Sameness::Renamed, key: |id| inside(id, (id.parent, id.shape, id.class)), uneven: true },
    Pass { sameness: Sameness::Renamed, key: |id| sourced(id, (id.source, id.shape, id.opcode)), uneven: false },
    Pass { sameness: Sameness::Renamed, key: |id| inside(id, (id.parent, id.rank, id.class)), uneven: false },
    Pass { sameness: Sameness::Renamed, key: |id| scoped(id, (id.scope, id.shape, id.class)), uneven: false },
    Pass { sameness: Sameness::Alike, key: |id| shaped(id, (id.stem, id.layout, id.class, id.index)), uneven: false },
    Pass { sameness: Sameness::Alike, key: |id| shaped(id, (id.opcode, id.shape, id.class)), uneven: false },
];

fn named<T: std::hash::Hash>(id: &Identity, key: T) -> Option<u64> {
    (id.path != 0).then(|| hash(&key))
}

fn called<T: std::hash::Hash>(id: &Identity, key: T) -> Option<u64> {
    (id.name != 0).then(|| hash(&key))
}

fn sourced<T: std::hash::Hash>(id: &Identity, key: T) -> Option<u64> {
    (id.source != 0 && id.shape != 0).then(|| hash(&key))
}

fn inside<T: std::hash::Hash>(id: &Identity, key: T) -> Option<u64> {
    (id.parent != 0 && id.shape != 0).then(|| hash(&key))
}

fn scoped<T: std::hash::Hash>(id: &Identity, key: T) -> Option<u64> {
    (id.scope != 0 && id.shape != 0).then(|| hash(&key))
}

fn shaped<T: std::hash::Hash>(id: &Identity, key: T) -> Option<u64> {
    (id.shape != 0).then(|| hash(&key))
}

/// Arguments without names, by their place among the arguments.
fn parameter(id: &Identity) -> Option<u64> {
    (id.parameter != 0 && id.path == 0).then(|| hash(&(id.parameter, id.index, id.rank, id.class)))
}

impl Matching {
    pub(super) fn new(before: &Rows, after: &Rows) -> Self {
        let mut matching = Self::default();
        let mut left: [Vec<u32>; 2] = [before, after].map(|rows| (0..rows.len() as u32).collect());
        let parents = [before, after].map(|rows| rows.identity.iter().map(|id| id.parent).collect());
        for pass in PASSES {
            if left.iter().any(Vec::is_empty) {
                break;
            }
            matching.run(pass, ([before, after], &parents), &mut left);
        }
        [matching.only_before, matching.only_after] = left;
        matching.count(before, after);
        matching
    }

    /// One pass over the rows that are left; `parents` are the scopes of each side's operations.
    fn run(&mut self, pass: &Pass, (sides, parents): ([&Rows; 2], &[FastSet<u64>; 2]), left: &mut [Vec<u32>; 2]) {
        // Sorted by key, the rows of a group stand together: those before first, each side in its order.
        let mut keyed: Vec<(u64, u32, u32)> = Vec::with_capacity(left[0].len() + left[1].len());
        for (side, rows) in left.iter().enumerate() {
            let key = |&row: &u32| {
                let id = &sides[side].identity[row as usize];
                let argument = if pass.sameness == Sameness::Alike { 0 } else { id.argument };
                Some((hash(&((pass.key)(id)?, argument)), side as u32, row))
            };
            keyed.extend(rows.iter().filter_map(key));
        }
        keyed.sort_unstable();
        let mut taken = [none_taken(sides[0]), none_taken(sides[1])];
        let mut found: Vec<Pair> = Vec::new();
        for group in keyed.chunk_by(|one, other| one.0 == other.0) {
            let (before, after) = group.split_at(group.partition_point(|row| row.1 == 0));
            let is_even = before.len() == after.len();
            if before.is_empty() || after.is_empty() || !(is_even || pass.uneven) {
                continue;
            }
            pair([before, after], sides, pass.sameness, &mut found);
        }
        if matches!(pass.sameness, Sameness::Renamed | Sameness::Alike) {
            let id = |side: usize, row: u32| &sides[side].identity[row as usize];
            found.retain(|pair| !are_of_two_layers(id(0, pair.before), id(1, pair.after), parents));
        }
        for pair in &found {
            taken[0][pair.before as usize] = true;
            taken[1][pair.after as usize] = true;
        }
        for (side, rows) in left.iter_mut().enumerate() {
            rows.retain(|&row| !taken[side][row as usize]);
        }
        // In the order in which they come to live before.
        found.sort_unstable_by_key(|pair| (pair.before, pair.after));
        self.pairs.append(&mut found);
    }

    fn count(&mut self, before: &Rows, after: &Rows) {
        self.bytes = [before, after].map(|rows| rows.size.iter().sum());
        for pair in &self.pairs {
            let sizes = [before.size[pair.before as usize], after.size[pair.after as usize]];
            for (side, size) in sizes.into_iter().enumerate() {
                self.matched_bytes[side] += size;
                if pair.sameness == Sameness::Alike {
                    self.guessed_bytes[side] += size;
                }
            }
        }
        self.unmatched = [self.only_before.len(), self.only_after.len()];
    }
}

/// Whether two operations differ in the numbers of their scopes alone, such as those of layers, that both programs have.
fn are_of_two_layers(before: &Identity, after: &Identity, parents: &[FastSet<u64>; 2]) -> bool {
    before.scope != 0
        && before.scope == after.scope
        && before.parent != after.parent
        && parents[1].contains(&before.parent)
        && parents[0].contains(&after.parent)
}

fn none_taken(rows: &Rows) -> Vec<bool> {
    vec![false; rows.len()]
}

/// Pairs a group, whose rows are the last of each entry: those of equal size first, then the others in order.
fn pair(group: [&[(u64, u32, u32)]; 2], sides: [&Rows; 2], sameness: Sameness, found: &mut Vec<Pair>) {
    let [before, after] = group;
    if let ([only], [other]) = (before, after) {
        found.push(Pair { before: only.2, after: other.2, sameness });
        return;
    }
    let mut by_size: HashMap<u64, Vec<u32>, RandomState> = HashMap::default();
    for &(.., row) in after.iter().rev() {
        by_size.entry(sides[1].size[row as usize]).or_default().push(row);
    }
    let mut rest = Vec::new();
    for &(.., row) in before {
        match by_size.get_mut(&sides[0].size[row as usize]).and_then(Vec::pop) {
            Some(other) => found.push(Pair { before: row, after: other, sameness }),
            None => rest.push(row),
        }
    }
    let mut others: Vec<u32> = by_size.into_values().flatten().collect();
    others.sort_unstable();
    found.extend(rest.into_iter().zip(others).map(|(before, after)| Pair { before, after, sameness }));
}
