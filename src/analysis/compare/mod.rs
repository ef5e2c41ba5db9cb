//! Two memory spaces compared: which buffers are the same in both, and what the difference between the two is made of.

mod aligned;
mod groups;
pub mod held;
mod identity;
mod matching;
mod programs;
mod waterfall;

pub use aligned::{Aligned, Mark};
pub use groups::{Change, GroupRow};
pub use matching::{Matching, Sameness};
pub use programs::{ProgramName, ProgramPairs, pair_programs};
pub use waterfall::{StepOf, WaterfallStep};

use super::scene::Scene;
use crate::model::{BufferId, Bytes};
use identity::Rows;

/// The comparison of one memory space in two programs. Bytes are those at the peak of each side, where the sizes of the
/// buffers that XProf lists there add up to its peak.
#[derive(Debug)]
pub struct SpaceComparison {
    /// Which buffers are the same.
    pub matching: Matching,
    /// From the allocated bytes before to those after, by class; the steps add up to the byte.
    pub waterfall: Vec<WaterfallStep>,
    /// The same by folded scope.
    pub waterfall_by_scope: Vec<WaterfallStep>,
    /// What the peaks hold, equal layers folded; the largest difference first.
    pub groups: Vec<GroupRow>,
    /// Single buffers at either peak, the largest difference first; those without any are left out.
    pub buffers: Vec<BufferRow>,
    /// Every buffer with its counterpart: before, after.
    pub matched: Vec<(BufferId, BufferId)>,
}

/// A buffer at one of the peaks or at both, which differs between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferRow {
    /// The buffer before; `None` where it has no counterpart there.
    pub before: Option<BufferId>,
    /// The buffer after.
    pub after: Option<BufferId>,
    /// Its bytes at the peak before; 0 where it is not live there.
    pub before_bytes: Bytes,
    /// Its bytes at the peak after.
    pub after_bytes: Bytes,
}

impl BufferRow {
    /// After less before.
    #[must_use]
    pub fn difference(&self) -> i128 {
        i128::from(self.after_bytes.0) - i128::from(self.before_bytes.0)
    }
}

impl SpaceComparison {
    /// Compares a memory space before and after. Takes as long as describing every buffer of both does.
    #[must_use]
    pub fn new(before: Scene<'_>, after: Scene<'_>) -> Self {
        let (rows_before, rows_after) = rayon::join(|| Rows::new(before), || Rows::new(after));
        let matching = Matching::new(&rows_before, &rows_after);
        let waterfall = waterfall::by_class(before, after, &rows_before, &rows_after, &matching);
        let waterfall_by_scope = waterfall::by_scope(before, after, &rows_before, &rows_after, &matching);
        let groups = groups::rows(before, after, &rows_before, &rows_after, &matching);
        let buffers = buffers(&rows_before, &rows_after, &matching);
        let place = |pair: &matching::Pair| {
            (rows_before.buffers[pair.before as usize], rows_after.buffers[pair.after as usize])
        };
        let matched = matching.pairs.iter().map(place).collect();
        Self { matching, waterfall, waterfall_by_scope, groups, buffers, matched }
    }
}

fn buffers(before: &Rows, after: &Rows, matching: &Matching) -> Vec<BufferRow> {
    let mut rows: Vec<BufferRow> = Vec::new();
    for pair in &matching.pairs {
        let [from, to] = [before.at_peak[pair.before as usize], after.at_peak[pair.after as usize]];
        rows.push(BufferRow {
            before: Some(before.buffers[pair.before as usize]),
            after: Some(after.buffers[pair.after as usize]),
            before_bytes: Bytes(from),
            after_bytes: Bytes(to),
        });
    }
    for &row in &matching.only_before {
        let bytes = Bytes(before.at_peak[row as usize]);
        let buffer = Some(before.buffers[row as usize]);
        rows.push(BufferRow { before: buffer, after: None, before_bytes: bytes, after_bytes: Bytes::ZERO });
    }
    for &row in &matching.only_after {
        let bytes = Bytes(after.at_peak[row as usize]);
        let buffer = Some(after.buffers[row as usize]);
        rows.push(BufferRow { before: None, after: buffer, before_bytes: Bytes::ZERO, after_bytes: bytes });
    }
    rows.retain(|row| row.difference() != 0);
    rows.sort_by_key(|row| (std::cmp::Reverse(row.difference().unsigned_abs()), row.after, row.before));
    rows
}
