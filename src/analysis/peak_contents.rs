//! What stands at the peak: buffers with the bytes that count for each, their padding and categories.

use std::cmp::Reverse;

use rayon::slice::ParallelSliceMut as _;

use super::sizes::{category, unpadded};
use super::xprof::Traces;
use crate::model::{BufferId, Bytes, Category, Program};

/// Buffers at one peak. Their bytes and those unlisted add up to it; every list, sum and share at the peak comes from here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeakContents {
    /// Buffers with the bytes that count for each, most bytes first.
    pub rows: Vec<(BufferId, Bytes)>,
    /// Padding in these bytes.
    pub padding: Bytes,
    /// Bytes of the peak in buffers that the file does not list: XProf merges small ones into a sum.
    pub unlisted: Bytes,
    /// Bytes and buffers by category, largest first.
    pub by_category: Vec<(Category, Bytes, usize)>,
}

impl PeakContents {
    /// Sorts and sums some rows.
    #[must_use]
    pub fn new(program: &Program, traces: &Traces, mut rows: Vec<(BufferId, Bytes)>) -> Self {
        rows.par_sort_by_key(|&(buffer, bytes)| (Reverse(bytes), program.buffers.number[buffer.index()]));
        let mut padding = 0i128;
        let mut by_category: Vec<(Category, Bytes, usize)> =
            Category::ALL.iter().map(|&category| (category, Bytes::ZERO, 0)).collect();
        for &(buffer, bytes) in &rows {
            padding += padding_in(program, traces, buffer, bytes);
            let row = &mut by_category[category(program, buffer) as usize];
            row.1 += bytes;
            row.2 += 1;
        }
        by_category.retain(|row| row.2 > 0);
        by_category.sort_by_key(|row| (Reverse(row.1), row.0));
        Self { rows, padding: Bytes(u64::try_from(padding).unwrap_or(0)), unlisted: Bytes::ZERO, by_category }
    }

    /// Number of buffers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing is known to stand at the peak.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The buffers, most bytes first.
    pub fn buffers(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.rows.iter().map(|row| row.0)
    }

    /// Their sum.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.rows.iter().map(|row| row.1).sum()
    }
}

/// Padding in some bytes of a buffer: in proportion where they are fewer than its size. Negative for the few buffers
/// that are smaller than their arrays.
#[must_use]
pub fn padding_in(program: &Program, traces: &Traces, buffer: BufferId, bytes: Bytes) -> i128 {
    let size = i128::from(program.buffers.size_of(buffer).0);
    let waste = size - i128::from(unpadded(program, traces, buffer).0);
    let bytes = i128::from(bytes.0);
    if bytes < size { waste * bytes / size } else { waste }
}
