//! The online packer: best fit in program order.
//!
//! A block goes into the gap with the smallest aligned size that fits, the lowest on ties, or else to the top of the heap.
//! Alignment slack before a block belongs to it and is freed with it; slack after it becomes a gap.

use std::collections::{BTreeMap, BTreeSet};

use super::moves::Move;
use super::{ALIGNMENT, Block, Moves, Placement};

/// The gaps in the heap, excluding the space above its top.
#[derive(Debug, Default)]
struct Gaps {
    /// End by start.
    by_address: BTreeMap<u64, u64>,
    /// (usable bytes, start).
    by_usable: BTreeSet<(u64, u64)>,
    /// Top of the heap.
    top: u64,
}

fn aligned(address: u64) -> u64 {
    address.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX)
}

impl Gaps {
    /// Bytes of a gap after alignment; 0 if it contains no aligned address.
    fn usable(start: u64, end: u64) -> u64 {
        end.saturating_sub(aligned(start))
    }

    fn insert(&mut self, start: u64, end: u64) {
        if start < end {
            self.by_address.insert(start, end);
            let usable = Self::usable(start, end);
            if usable > 0 {
                self.by_usable.insert((usable, start));
            }
        }
    }

    fn remove(&mut self, start: u64) -> Option<u64> {
        let end = self.by_address.remove(&start)?;
        self.by_usable.remove(&(Self::usable(start, end), start));
        Some(end)
    }

    /// Allocates a block: (start of the allocated range, offset of the block).
    fn take(&mut self, size: u64) -> (u64, u64) {
        let best = self.by_usable.range((size, 0)..).next().copied();
        if let Some((_, start)) = best
            && let Some(end) = self.remove(start)
        {
            let offset = aligned(start);
            self.insert(offset.saturating_add(size), end);
            return (start, offset);
        }
        let (start, offset) = (self.top, aligned(self.top));
        self.top = offset.saturating_add(size);
        (start, offset)
    }

    /// Frees `start..end` and merges it with adjacent gaps.
    fn give_back(&mut self, mut start: u64, mut end: u64) {
        if let Some((&before, &before_end)) = self.by_address.range(..start).next_back()
            && before_end == start
        {
            self.remove(before);
            start = before;
        }
        if let Some(after_end) = self.remove(end) {
            end = after_end;
        }
        if end == self.top {
            self.top = start;
        } else {
            self.insert(start, end);
        }
    }
}

/// Packs blocks in order of their start; ties keep the order of the list.
#[must_use]
pub fn online(blocks: &[Block]) -> Placement {
    online_along(blocks, &Moves::new(blocks))
}

/// As [`online`], with the moves of the blocks.
#[must_use]
pub fn online_along(blocks: &[Block], moves: &Moves) -> Placement {
    let mut gaps = Gaps::default();
    let mut placement = Placement { heap: 0, offsets: vec![0; blocks.len()] };
    let mut taken_from = vec![0u64; blocks.len()];
    for Move { goes, block: i, .. } in moves.iter() {
        let Block { size, start, end } = blocks[i];
        if start > end {
            continue;
        }
        if goes {
            gaps.give_back(taken_from[i], placement.offsets[i].saturating_add(size));
        } else {
            let (start, offset) = gaps.take(size);
            taken_from[i] = start;
            placement.offsets[i] = offset;
            placement.heap = placement.heap.max(offset.saturating_add(size));
        }
    }
    placement
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(size: u64, start: u32, end: u32) -> Block {
        Block { size, start, end }
    }

    #[test]
    fn the_smallest_usable_gap_is_taken_and_its_front_slack_comes_back() {
        const K: u64 = 16384;
        let blocks = [
            block(100, 0, 20),    // at 0, ends at 100
            block(3 * K, 2, 6),   // at K, with slack from 100
            block(K, 4, 20),      // at 4K
            block(2 * K, 8, 20),  // into the gap 100..4K: at K, leaving 3K..4K
            block(K, 10, 12),     // into 3K..4K
            block(5 * K, 14, 20), // on top
        ];
        let placement = online(&blocks);
        assert_eq!(placement.offsets, [0, K, 4 * K, K, 3 * K, 5 * K]);
        assert_eq!(placement.heap, 10 * K);
    }

    #[test]
    fn sizes_near_the_end_of_the_address_space_do_not_wrap() {
        let blocks = [block(u64::MAX - 5, 0, 4), block(u64::MAX / 2, 2, 4), block(1, 3, 4)];
        assert_eq!(online(&blocks).heap, u64::MAX);
    }
}
