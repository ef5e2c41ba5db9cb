//! What an allocator held at one moment, in two files: which stacks and operations hold more, less, or are new or gone, block
//! by block. Every row and what no row holds add up to the bytes of the whole, to the byte.

mod matching;
mod sides;

pub use sides::held;

use super::groups::Change;

/// An allocator, a device or a set of live arrays at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Its name: `cuda:0`, `GPU_0_bfc`, `live arrays`.
    pub name: String,
    /// What recorded it.
    pub source: Source,
    /// When, in words: `at the peak`.
    pub moment: &'static str,
    /// Bytes of the whole, and in a word what they are: `reserved`.
    pub total: (u64, &'static str),
    /// Whether a request failed; `None` where the file cannot tell.
    pub has_failed: Option<bool>,
    /// Who holds what.
    pub holders: Vec<Holder>,
    /// What is in the whole and nobody holds, by what it is. The holders and these add up to the whole.
    pub rest: Vec<(&'static str, i128)>,
}

impl Held {
    /// Bytes in use, as its holders have them.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.holders.iter().fold(0, |sum, holder| sum.saturating_add(holder.bytes()))
    }

    /// The same with all that nobody holds as one thing.
    fn with_rest(mut self, name: &'static str) -> Self {
        self.rest = vec![(name, i128::from(self.total.0) - i128::from(self.in_use()))];
        self
    }
}

/// What recorded an allocator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A snapshot of PyTorch's caching allocator.
    #[default]
    Torch,
    /// A dump of a BFC allocator.
    Bfc,
    /// The history of an allocator in a trace.
    Trace,
    /// A profile of live arrays.
    LiveArrays,
}

impl Source {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Torch => "PyTorch",
            Self::Bfc => "BFC allocator",
            Self::Trace => "allocator history",
            Self::LiveArrays => "live arrays",
        }
    }

    /// What its holders are: call stacks or operations.
    #[must_use]
    pub const fn holders(self) -> &'static str {
        match self {
            Self::Torch | Self::LiveArrays => "stack",
            Self::Bfc | Self::Trace => "op",
        }
    }
}

/// Blocks of one stack or operation, and of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// What they are for, as far as it is known: a category, a region, a kind of object.
    pub kind: String,
    /// Who made them, shortly: the innermost frame of one's own, or the operation.
    pub name: String,
    /// The shape, or from where the function was called.
    pub detail: String,
    /// The whole stack, innermost first; empty for an operation.
    pub stack: Vec<String>,
    /// What it is known by in another run: with lines, without them, by one's own functions alone, by the innermost one and
    /// what it called, by the innermost one.
    pub keys: [u64; 5],
    /// Lines of the stack, by which holders with equal keys are in order.
    pub lines: Vec<u32>,
    /// Bytes of each block, and how many there are of so many bytes.
    pub blocks: Vec<(u64, u64)>,
}

impl Holder {
    /// Bytes of all blocks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().fold(0, |sum, &(bytes, count)| sum.saturating_add(bytes.saturating_mul(count)))
    }

    /// Number of blocks.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.blocks.iter().fold(0, |sum, &(_, count)| sum.saturating_add(count))
    }
}

/// A holder on both sides, or on one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderRow {
    /// Its place among the holders before.
    pub before: Option<usize>,
    /// Its place among those after.
    pub after: Option<usize>,
    /// Bytes before.
    pub before_bytes: u64,
    /// Bytes after.
    pub after_bytes: u64,
    /// Bytes of blocks that have no counterpart before.
    pub appeared: u64,
    /// Bytes of blocks that have none after.
    pub gone: u64,
    /// What the blocks with a counterpart grew, less what they shrank.
    pub resized: i128,
}

impl HolderRow {
    /// After less before.
    #[must_use]
    pub fn difference(&self) -> i128 {
        i128::from(self.after_bytes) - i128::from(self.before_bytes)
    }

    /// What became of it.
    #[must_use]
    pub const fn change(&self) -> Change {
        Change::of(self.before_bytes, self.after_bytes)
    }
}

/// Two allocators compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldComparison {
    /// The allocator before.
    pub before: Held,
    /// The allocator after.
    pub after: Held,
    /// Every holder, the largest difference first.
    pub rows: Vec<HolderRow>,
}

impl HeldComparison {
    /// Compares two allocators.
    #[must_use]
    pub fn new(before: Held, after: Held) -> Self {
        let mut rows = matching::rows(&before.holders, &after.holders);
        let found = Self { before, after, rows: Vec::new() };
        let name = |row: &HolderRow| found.holder(row).map(|holder| (&holder.kind, &holder.name));
        rows.sort_by(|a, b| {
            let key = |row: &HolderRow| (std::cmp::Reverse(row.difference().unsigned_abs()), row.after_bytes);
            key(a).cmp(&key(b)).then_with(|| name(a).cmp(&name(b)))
        });
        Self { rows, ..found }
    }

    /// The holder of a row as it is after, or else before.
    #[must_use]
    pub fn holder(&self, row: &HolderRow) -> Option<&Holder> {
        let after = row.after.and_then(|at| self.after.holders.get(at));
        after.or_else(|| row.before.and_then(|at| self.before.holders.get(at)))
    }

    /// The kinds of a row before and after.
    #[must_use]
    pub fn kinds(&self, row: &HolderRow) -> [Option<&str>; 2] {
        let before = row.before.and_then(|at| self.before.holders.get(at)).map(|holder| holder.kind.as_str());
        let after = row.after.and_then(|at| self.after.holders.get(at)).map(|holder| holder.kind.as_str());
        [before, after]
    }

    /// What nobody holds, by what it is: before, after.
    #[must_use]
    pub fn rest(&self) -> Vec<(&'static str, [i128; 2])> {
        let mut rows: Vec<(&'static str, [i128; 2])> = Vec::new();
        for (side, rest) in [&self.before.rest, &self.after.rest].into_iter().enumerate() {
            for &(name, bytes) in rest {
                let at = rows.iter().position(|row| row.0 == name).unwrap_or_else(|| {
                    rows.push((name, [0; 2]));
                    rows.len() - 1
                });
                rows[at].1[side] += bytes;
            }
        }
        rows.retain(|row| row.1 != [0; 2]);
        rows
    }
}

/// Pairs the allocators of two files: of one source by name; where each side has one of a source only, whatever its name.
/// What only one side has is held against nothing.
#[must_use]
pub fn compare_held(before: &[Held], after: &[Held]) -> Vec<HeldComparison> {
    let only = |list: &[Held], source: Source| list.iter().filter(|held| held.source == source).count() == 1;
    let mut left: Vec<Option<Held>> = before.iter().cloned().map(Some).collect();
    let mut found = Vec::new();
    for held in after {
        let alone = only(before, held.source) && only(after, held.source);
        let is_same = |other: &Held| other.source == held.source && (alone || other.name == held.name);
        let place = left.iter().position(|other| other.as_ref().is_some_and(is_same));
        let was = place.and_then(|at| left[at].take());
        let nothing =
            || Held { name: held.name.clone(), source: held.source, total: (0, held.total.1), ..Held::default() };
        found.push(HeldComparison::new(was.unwrap_or_else(nothing), held.clone()));
    }
    for was in left.into_iter().flatten() {
        let nothing = Held { name: was.name.clone(), source: was.source, total: (0, was.total.1), ..Held::default() };
        found.push(HeldComparison::new(was, nothing));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(name: &str, keys: [u64; 5], lines: &[u32], blocks: &[(u64, u64)]) -> Holder {
        let (name, lines, blocks) = (name.to_owned(), lines.to_vec(), blocks.to_vec());
        Holder { name, keys, lines, blocks, ..Holder::default() }
    }

    fn held(total: u64, holders: Vec<Holder>) -> Held {
        let held = Held { name: "cuda:0".to_owned(), total: (total, "reserved"), holders, ..Held::default() };
        held.with_rest("free")
    }

    #[test]
    fn lines_that_moved_are_the_same_function() {
        let before = held(
            1000,
            vec![holder("a", [1, 7, 7, 7, 7], &[10], &[(100, 2)]), holder("b", [2, 7, 7, 7, 7], &[20], &[(50, 1)])],
        );
        let after = held(
            1200,
            vec![holder("a", [2, 7, 7, 7, 7], &[20], &[(100, 3)]), holder("b", [3, 7, 7, 7, 7], &[30], &[(60, 1)])],
        );
        let found = HeldComparison::new(before, after);
        let rows: Vec<_> = found.rows.iter().map(|row| (row.before, row.after, row.difference())).collect();
        assert_eq!(rows, [(Some(0), Some(0), 100), (Some(1), Some(1), 10)]);
        assert_eq!((found.rows[0].appeared, found.rows[0].gone, found.rows[0].resized), (100, 0, 0));
        assert_eq!((found.rows[1].appeared, found.rows[1].gone, found.rows[1].resized), (0, 0, 10));
        let of_rows: i128 = found.rows.iter().map(HolderRow::difference).sum();
        let of_rest: i128 = found.rest().iter().map(|row| row.1[1] - row.1[0]).sum();
        assert_eq!(of_rows + of_rest, 200);
    }

    #[test]
    fn what_only_one_side_has_is_held_against_nothing() {
        let found = compare_held(&[], &[held(10, vec![holder("a", [1; 5], &[], &[(10, 1)])])]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rows[0].change(), Change::Appeared);
        assert_eq!(found[0].before.total.0, 0);
    }
}
