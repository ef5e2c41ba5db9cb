//! When blocks come and go, in the order of time: what counting live bytes and packing in program order both follow.

use super::Block;

/// Bits of a block's row in an entry.
const ROW_BITS: u32 = 31;

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
pub struct Moves(Vec<u64>);

impl Moves {
    /// Sorts the moves of blocks that take memory.
    #[must_use]
    pub fn new(blocks: &[Block]) -> Self {
        let mut moves = Vec::with_capacity(2 * blocks.len());
        for (row, block) in blocks.iter().enumerate().take(1 << ROW_BITS).filter(|(_, block)| block.size > 0) {
            let entry = |time: u32, goes: bool| (u64::from(time) << 32) | (u64::from(goes) << ROW_BITS) | row as u64;
            moves.extend([entry(block.start, false), entry(block.end, true)]);
        }
        moves.sort_unstable();
        Self(moves)
    }

    /// Every move, in order.
    pub fn iter(&self) -> impl Iterator<Item = Move> + '_ {
        self.0.iter().map(|&entry| Move {
            time: (entry >> 32) as u32,
            goes: (entry >> ROW_BITS) & 1 == 1,
            block: (entry & ((1 << ROW_BITS) - 1)) as usize,
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
}
