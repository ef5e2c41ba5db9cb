//! The online packer: best fit in program order.
//!
//! A block goes into the gap with the smallest aligned size that fits, the lowest on ties, or else to the top of the heap.
//! Alignment slack before a block belongs to it and is freed with it; slack after it becomes a gap.

use super::block::{Block, Placement};
use super::gaps::Heap;
use super::moves::{Move, Moves};
use crate::model::NO_ROW;

/// Packs blocks in order of their start; ties keep the order of the list.
#[must_use]
pub fn online(blocks: &[Block]) -> Placement {
    online_along(blocks, &Moves::new(blocks))
}

/// As [`online`], with the moves of the blocks.
#[must_use]
pub fn online_along(blocks: &[Block], moves: &Moves) -> Placement {
    let mut offsets = vec![0; blocks.len()];
    let heap = placed(blocks, moves, |block, offset| offsets[block] = offset);
    Placement { heap, offsets }
}

/// Bytes of the heap that [`online`] comes to, with the moves of the blocks.
#[must_use]
pub fn online_heap(blocks: &[Block], moves: &Moves) -> u64 {
    placed(blocks, moves, |_, _| {})
}

/// Packs blocks; `put` is told the offset of each. Returns the bytes of the heap.
fn placed(blocks: &[Block], moves: &Moves, mut put: impl FnMut(usize, u64)) -> u64 {
    let mut heap = Heap::new();
    let mut places = vec![NO_ROW; blocks.len()];
    let mut most = 0u64;
    for Move { goes, block: i, .. } in moves.iter() {
        let Block { size, start, end } = blocks[i];
        if start > end {
            continue;
        }
        if goes {
            heap.give_back(places[i]);
        } else {
            let (place, offset) = heap.take(size);
            places[i] = place;
            put(i, offset);
            most = most.max(offset.saturating_add(size));
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::super::ALIGNMENT;
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

    /// Reference implementation that looks up gaps by address.
    fn by_address(blocks: &[Block]) -> Placement {
        let mut order: Vec<(u32, bool, usize)> = Vec::new();
        for (i, block) in blocks.iter().enumerate().filter(|(_, block)| block.size > 0) {
            order.extend([(block.start, false, i), (block.end, true, i)]);
        }
        order.sort_unstable();
        let mut gaps: BTreeMap<u64, u64> = BTreeMap::new();
        let mut top = 0u64;
        let mut placement = Placement { heap: 0, offsets: vec![0; blocks.len()] };
        let mut taken_from = vec![0u64; blocks.len()];
        for (_, goes, i) in order {
            let size = blocks[i].size;
            if !goes {
                let usable = |start: u64, end: u64| end.saturating_sub(start.next_multiple_of(ALIGNMENT));
                let fitting: BTreeSet<(u64, u64)> =
                    gaps.iter().map(|(&start, &end)| (usable(start, end), start)).filter(|gap| gap.0 >= size).collect();
                let start = fitting.first().map_or(top, |gap| gap.1);
                let offset = start.next_multiple_of(ALIGNMENT);
                match gaps.remove(&start) {
                    Some(end) if offset + size < end => _ = gaps.insert(offset + size, end),
                    Some(_) => {}
                    None => top = offset + size,
                }
                (taken_from[i], placement.offsets[i]) = (start, offset);
                placement.heap = placement.heap.max(offset + size);
                continue;
            }
            let (mut start, mut end) = (taken_from[i], placement.offsets[i] + size);
            if let Some((&before, _)) = gaps.range(..start).next_back().filter(|gap| *gap.1 == start) {
                gaps.remove(&before);
                start = before;
            }
            if let Some(after) = gaps.remove(&end) {
                end = after;
            }
            if end == top { top = start } else { _ = gaps.insert(start, end) }
        }
        placement
    }

    proptest! {
        #[test]
        fn every_block_lies_where_a_look_at_all_gaps_puts_it(
            rows in proptest::collection::vec((0u64..12, 0u32..400, 0u32..90), 0..600),
            unit in 1u64..20_000,
        ) {
            let blocks: Vec<Block> = rows.into_iter().map(|(size, start, span)| block(size * unit, start, start + span)).collect();
            let placement = online(&blocks);
            prop_assert_eq!(online_heap(&blocks, &Moves::new(&blocks)), placement.heap);
            prop_assert_eq!(placement, by_address(&blocks));
        }
    }
}
