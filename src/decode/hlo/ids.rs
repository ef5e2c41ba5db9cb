//! Maps the ids of instructions and buffers in the file to rows.
//!
//! Instruction ids are 64-bit and sparse, but consecutive inside nearly every computation, so one block of (first id,
//! first row, count) covers most computations. Nothing is ever sized by the largest id.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::model::NO_ROW;
use crate::source::{Cancelled, Progress};

/// A computation in the file.
#[derive(Debug, Default, Clone)]
pub struct ComputationEntry {
    /// Its number.
    pub number: i64,
    /// Number of its root instruction.
    pub root: i64,
    /// First row of its instructions.
    pub start: u32,
    /// One past the last row.
    pub end: u32,
    /// Id of its first instruction; in nearly every computation the others are consecutive.
    pub first_number: i64,
}

/// Rows of instructions by number.
#[derive(Debug, Default)]
pub struct IdIndex {
    /// (first number, count, first row) of regular computations, ascending and disjoint.
    blocks: Vec<(i64, u32, u32)>,
    /// Every number of the other computations; wins over the blocks.
    singles: HashMap<i64, u32, RandomState>,
    /// Numbers inside irregular computations, which another computation may use too.
    local: HashMap<(u32, i64), u32, RandomState>,
    irregular: Vec<u32>,
    /// First number of each regular computation.
    regular: Vec<Option<i64>>,
}

impl IdIndex {
    /// Builds the index. `odd_numbers` are the rows whose number does not run on, ascending by row; `i64::MIN` for
    /// one that could not be read.
    ///
    /// # Errors
    /// If it was cancelled.
    pub fn new(
        computations: &[ComputationEntry],
        odd_numbers: &[(u32, i64)],
        progress: &Progress,
    ) -> Result<Self, Cancelled> {
        let mut index = Self { blocks: Vec::with_capacity(computations.len()), ..Self::default() };
        let mut odd = odd_numbers;
        for (i, entry) in computations.iter().enumerate() {
            progress.check()?;
            let mine = odd.partition_point(|&(row, _)| row < entry.end);
            let (own, rest) = odd.split_at(mine);
            odd = rest;
            index.regular.push(None);
            if entry.start == entry.end {
                continue;
            }
            if own.is_empty() {
                index.blocks.push((entry.first_number, entry.end - entry.start, entry.start));
                index.regular[i] = Some(entry.first_number);
            } else {
                index.add_irregular(i as u32, entry, own, progress)?;
            }
        }
        if !index.blocks.is_sorted() {
            index.blocks.sort_unstable();
        }
        let overlap = index.blocks.windows(2).any(|pair| pair[0].0.saturating_add(i64::from(pair[0].1)) > pair[1].0);
        if overlap {
            // Numbers used twice: list them all, the later computation wins.
            index = Self::default();
            let mut odd = odd_numbers;
            for (i, entry) in computations.iter().enumerate() {
                let (own, rest) = odd.split_at(odd.partition_point(|&(row, _)| row < entry.end));
                odd = rest;
                index.regular.push(None);
                index.add_irregular(i as u32, entry, own, progress)?;
            }
        }
        Ok(index)
    }

    fn add_irregular(
        &mut self,
        computation: u32,
        entry: &ComputationEntry,
        odd: &[(u32, i64)],
        progress: &Progress,
    ) -> Result<(), Cancelled> {
        self.irregular.push(computation);
        let mut odd = odd.iter().peekable();
        for row in entry.start..entry.end {
            progress.check()?;
            let number = match odd.next_if(|&&(odd_row, _)| odd_row == row) {
                Some(&(_, number)) => number,
                None => entry.first_number.wrapping_add(i64::from(row - entry.start)),
            };
            if number != i64::MIN {
                self.singles.insert(number, row);
                self.local.insert((computation, number), row);
            }
        }
        Ok(())
    }

    /// Computations whose ids are not consecutive.
    pub fn irregular(&self) -> &[u32] {
        &self.irregular
    }

    /// The row of a number, [`NO_ROW`] where there is none. `hint` remembers the block of the last call: numbers come
    /// in runs.
    pub fn row(&self, number: i64, hint: &mut usize) -> u32 {
        if !self.singles.is_empty()
            && let Some(&row) = self.singles.get(&number)
        {
            return row;
        }
        let inside = |&(first, count, row): &(i64, u32, u32)| {
            let local = number.wrapping_sub(first);
            // The difference of two numbers of opposite sign may wrap round.
            (number >= first && (0..i64::from(count)).contains(&local)).then(|| row + local as u32)
        };
        if let Some(row) = self.blocks.get(*hint).and_then(inside) {
            return row;
        }
        let at = self.blocks.partition_point(|&(first, _, _)| first <= number);
        let Some(block) = at.checked_sub(1) else { return NO_ROW };
        *hint = block;
        self.blocks.get(block).and_then(inside).unwrap_or(NO_ROW)
    }

    /// The row of an id inside a computation; an id of another computation is not an operand.
    pub fn in_computation(&self, computation: u32, entry: &ComputationEntry, number: i64) -> u32 {
        if !self.regular.get(computation as usize).is_some_and(|first| first.is_some()) {
            return self.local.get(&(computation, number)).copied().unwrap_or(NO_ROW);
        }
        let first = self.regular[computation as usize].unwrap_or(0);
        match u32::try_from(number.wrapping_sub(first)) {
            Ok(local) if local < entry.end - entry.start => entry.start + local,
            _ => NO_ROW,
        }
    }
}

/// Rows of logical buffers by number: a table where the numbers are dense, else a map. The later of two wins.
#[derive(Debug)]
pub enum BufferIndex {
    /// Row by number.
    Dense(Vec<u32>),
    /// Row by number, for sparse numbers.
    Sparse(HashMap<i64, u32, RandomState>),
}

impl BufferIndex {
    /// Builds the index over the numbers of all rows.
    pub fn new(numbers: &[i64]) -> Self {
        let largest = numbers.iter().copied().max().unwrap_or(0);
        let smallest = numbers.iter().copied().min().unwrap_or(0);
        if smallest >= 0 && largest < 4 * numbers.len() as i64 + 1024 {
            let mut rows = vec![NO_ROW; largest as usize + 1];
            for (row, &number) in numbers.iter().enumerate() {
                rows[number as usize] = row as u32;
            }
            return Self::Dense(rows);
        }
        Self::Sparse(numbers.iter().enumerate().map(|(row, &number)| (number, row as u32)).collect())
    }

    /// The row of a number, [`NO_ROW`] where there is none.
    pub fn row(&self, number: i64) -> u32 {
        match self {
            Self::Dense(rows) => usize::try_from(number).ok().and_then(|n| rows.get(n)).copied().unwrap_or(NO_ROW),
            Self::Sparse(rows) => rows.get(&number).copied().unwrap_or(NO_ROW),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start: u32, end: u32, first_number: i64) -> ComputationEntry {
        ComputationEntry { start, end, first_number, ..ComputationEntry::default() }
    }

    fn index_of(computations: &[ComputationEntry], odd_numbers: &[(u32, i64)]) -> IdIndex {
        IdIndex::new(computations, odd_numbers, &Progress::default()).expect("not cancelled")
    }

    #[test]
    fn numbers_that_run_on_and_numbers_that_do_not() {
        let numbers = [1 << 32, (1 << 32) + 1, 7, 9, 8, 100, 101];
        let computations = [entry(0, 2, 1 << 32), entry(2, 5, 7), entry(5, 7, 100)];
        let index = index_of(&computations, &[(3, 9), (4, 8)]);
        assert_eq!(index.irregular(), &[1]);
        let mut hint = 0;
        for (row, &number) in numbers.iter().enumerate() {
            assert_eq!(index.row(number, &mut hint), row as u32, "{number}");
        }
        assert_eq!(index.row(102, &mut hint), NO_ROW);
        assert_eq!(index.row(-5, &mut hint), NO_ROW);
    }

    #[test]
    fn numbers_far_apart_do_not_wrap_round() {
        let index = index_of(&[entry(0, 1, -4777836433235033831)], &[]);
        assert_eq!(index.row(4445535603619741977, &mut 0), NO_ROW);
        assert_eq!(index.row(-4777836433235033831, &mut 0), 0);
    }

    #[test]
    fn a_number_used_twice_is_the_later_one() {
        // Numbers 5, 6 and 6, 7.
        let computations = [entry(0, 2, 5), entry(2, 4, 6)];
        let index = index_of(&computations, &[]);
        let mut hint = 0;
        assert_eq!(index.row(6, &mut hint), 2);
        assert_eq!(index.in_computation(0, &computations[0], 6), 1);
    }

    #[test]
    fn sparse_buffer_numbers_take_no_table() {
        let index = BufferIndex::new(&[i64::MAX, -4, 3]);
        assert_eq!(index.row(i64::MAX), 0);
        assert_eq!(index.row(-4), 1);
        assert_eq!(index.row(4), NO_ROW);
        assert_eq!(BufferIndex::new(&[]).row(0), NO_ROW);
    }
}
