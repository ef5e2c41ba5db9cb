//! When blocks come and go, in the order of time: what counting live bytes and packing in program order both follow.

use super::Block;

/// Bits of a block's row in an entry.
const ROW_BITS: u32 = 32;

/// Bits of a time that are sorted by at once.
const DIGIT: u32 = 11;

/// Fewer entries than these are sorted by comparing.
const FEW: usize = 1 << DIGIT;

/// Sorts entries whose rows are ascending, by time: digit by digit, as there are many and times are small.
fn sorted(mut entries: Vec<u64>) -> Vec<u64> {
    if entries.is_sorted() {
        return entries;
    }
    if entries.len() < FEW {
        entries.sort_unstable();
        return entries;
    }
    let bits = u64::BITS - (entries.iter().fold(0, |all, entry| all | entry) >> ROW_BITS).leading_zeros();
    let mut other = vec![0u64; entries.len()];
    for shift in (ROW_BITS..ROW_BITS + bits).step_by(DIGIT as usize) {
        let digit = |entry: u64| (entry >> shift) as usize & (FEW - 1);
        let mut next = [0usize; FEW];
        for &entry in &entries {
            next[digit(entry)] += 1;
        }
        let mut sum = 0;
        for count in &mut next {
            sum += std::mem::replace(count, sum);
        }
        for &entry in &entries {
            let at = &mut next[digit(entry)];
            other[*at] = entry;
            *at += 1;
        }
        std::mem::swap(&mut entries, &mut other);
    }
    entries
}

/// A block that comes or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// When.
    pub time: u32,
    /// Whether it goes.
    pub goes: bool,
    /// Its row among the blocks.
    pub block: usize,
}

/// The moves of some blocks, sorted. Live ranges include both ends: at equal times blocks come before others go.
#[derive(Debug, Clone)]
pub struct Moves {
    /// Times and rows of blocks that come, ascending.
    come: Vec<u64>,
    /// Times and rows of blocks that go, ascending.
    go: Vec<u64>,
}

impl Moves {
    /// Sorts the moves of blocks that take memory.
    #[must_use]
    pub fn new(blocks: &[Block]) -> Self {
        let rows = || blocks.iter().zip(0u32..).filter(|(block, _)| block.size > 0);
        let entry = |time: u32, row: u32| (u64::from(time) << ROW_BITS) | u64::from(row);
        Self {
            come: sorted(rows().map(|(block, row)| entry(block.start, row)).collect()),
            go: sorted(rows().map(|(block, row)| entry(block.end, row)).collect()),
        }
    }

    /// Every move, in order.
    pub fn iter(&self) -> impl Iterator<Item = Move> + '_ {
        let (mut come, mut go) = (self.come.as_slice(), self.go.as_slice());
        std::iter::from_fn(move || {
            let goes = match (come.first(), go.first()) {
                (Some(come), Some(go)) => come >> ROW_BITS > go >> ROW_BITS,
                (come, _) => come.is_none(),
            };
            let rest = if goes { &mut go } else { &mut come };
            let (&entry, others) = rest.split_first()?;
            *rest = others;
            Some(Move { time: (entry >> ROW_BITS) as u32, goes, block: entry as u32 as usize })
        })
    }

    /// Most bytes live at once, and the first time at which they are.
    #[must_use]
    pub fn most_live(&self, blocks: &[Block]) -> (u64, u32) {
        let (mut live, mut most, mut at) = (0u64, 0, 0);
        for Move { time, goes, block } in self.iter() {
            let size = blocks[block].size;
            if goes {
                live = live.saturating_sub(size);
            } else {
                live = live.saturating_add(size);
                if live > most {
                    (most, at) = (live, time);
                }
            }
        }
        (most, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_when_another_ends_lives_beside_it() {
        let block = |size, start, end| Block { size, start, end };
        let blocks = [block(5, 0, 4), block(0, 0, 9), block(7, 4, 6), block(1, 5, 6)];
        let moves = Moves::new(&blocks);
        let order: Vec<(u32, bool, usize)> = moves.iter().map(|m| (m.time, m.goes, m.block)).collect();
        let expected = [(0, false, 0), (4, false, 2), (4, true, 0), (5, false, 3), (6, true, 2), (6, true, 3)];
        assert_eq!(order, expected);
        assert_eq!(moves.most_live(&blocks), (12, 4));
    }

    #[test]
    fn many_moves_are_sorted_as_few_are() {
        let time = |row: u64| (row * 48_271 % 65_521) << (row % 16);
        let entries: Vec<u64> = (0..5 * FEW as u64).map(|row| (time(row) << ROW_BITS) | row).collect();
        let mut expected = entries.clone();
        expected.sort_unstable();
        assert_eq!(sorted(entries), expected);
    }
}
