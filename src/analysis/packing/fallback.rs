//! The fallback packer: largest (or longest-lived) block first, each in the smallest gap among overlapping blocks.

use super::occupied::Occupied;
use super::times::{LiveRange, Times};
use super::{Block, Placement};

/// Maximum number of blocks to pack: each is packed in two orders for every change that is tried.
pub const MAX_BLOCKS: usize = 20_000;

/// Packing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Largest first, then longest-lived.
    Size,
    /// Longest-lived first, then largest.
    Span,
}

/// Packs blocks at multiples of so many bytes; ties keep the order of the list. Live ranges include both ends.
#[must_use]
pub fn fallback(blocks: &[Block], order: Order, alignment: u64) -> Placement {
    packed(blocks, &times(blocks), (order, alignment), &|_| false).unwrap_or_default()
}

/// The live ranges of blocks that take space.
pub(super) fn times(blocks: &[Block]) -> Times {
    let range = |block: &Block| if block.size > 0 { (block.start, block.end) } else { (1, 0) };
    let ranges: Vec<LiveRange> = blocks.iter().map(range).collect();
    Times::new(&ranges)
}

/// As [`fallback`]; `None` once the heap comes to too many bytes.
pub(super) fn packed(
    blocks: &[Block],
    times: &Times,
    (order, alignment): (Order, u64),
    is_too_large: &dyn Fn(u64) -> bool,
) -> Option<Placement> {
    let mut ranked: Vec<u32> = (0..blocks.len() as u32).filter(|&i| blocks[i as usize].size > 0).collect();
    ranked.sort_by_key(|&i| {
        let block = &blocks[i as usize];
        let (size, span) = (block.size, u64::from(block.end.saturating_sub(block.start)));
        std::cmp::Reverse(match order {
            Order::Size => (size, span),
            Order::Span => (span, size),
        })
    });
    let mut placement = Placement { heap: 0, offsets: vec![0; blocks.len()] };
    let mut occupied = Occupied::new(times, order == Order::Span, alignment);
    for i in ranked {
        let block = &blocks[i as usize];
        let offset = occupied.place(block.size, i as usize..i as usize + 1);
        placement.offsets[i as usize] = offset;
        let top = offset.saturating_add(block.size);
        if top > placement.heap {
            placement.heap = top;
            if is_too_large(top) {
                return None;
            }
        }
    }
    Some(placement)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ALIGNMENT;
    use super::*;

    #[test]
    fn the_order_decides() {
        const K: u64 = ALIGNMENT;
        let blocks = [
            Block { size: 4 * K, start: 0, end: 2 },
            Block { size: K, start: 0, end: 20 },
            Block { size: 2 * K, start: 4, end: 20 },
        ];
        let by_size = fallback(&blocks, Order::Size, ALIGNMENT);
        assert_eq!((by_size.heap, by_size.offsets.clone()), (5 * K, vec![0, 4 * K, 0]));
        let by_span = fallback(&blocks, Order::Span, ALIGNMENT);
        assert_eq!((by_span.heap, by_span.offsets.clone()), (5 * K, vec![K, 0, K]));
    }

    /// Reference implementation that checks every block placed so far.
    fn one_by_one(blocks: &[Block], order: Order) -> Placement {
        let mut ranked: Vec<usize> = (0..blocks.len()).filter(|&i| blocks[i].size > 0).collect();
        ranked.sort_by_key(|&i| {
            let (size, span) = (blocks[i].size, u64::from(blocks[i].end - blocks[i].start));
            std::cmp::Reverse(if order == Order::Size { (size, span) } else { (span, size) })
        });
        let mut placement = Placement { heap: 0, offsets: vec![0; blocks.len()] };
        let mut placed: Vec<usize> = Vec::new();
        for i in ranked {
            let block = &blocks[i];
            let mut met: Vec<(u64, u64)> = placed
                .iter()
                .filter(|&&j| blocks[j].start <= block.end && block.start <= blocks[j].end)
                .map(|&j| (placement.offsets[j], placement.offsets[j] + blocks[j].size))
                .collect();
            met.sort_unstable();
            let (mut best, mut best_at, mut free_from) = (u64::MAX, None, 0u64);
            for (offset, top) in met {
                let room = offset.saturating_sub(free_from);
                if room >= block.size && room < best {
                    (best, best_at) = (room, Some(free_from));
                }
                free_from = free_from.max(top.next_multiple_of(ALIGNMENT));
            }
            placement.offsets[i] = best_at.unwrap_or(free_from);
            placement.heap = placement.heap.max(placement.offsets[i] + block.size);
            placed.push(i);
        }
        placement
    }

    proptest! {
        #[test]
        fn every_block_lies_where_a_look_at_all_others_puts_it(
            rows in proptest::collection::vec((0u64..12, 0u32..90, 0u32..60), 0..120)
        ) {
            let blocks: Vec<Block> = rows
                .into_iter()
                .map(|(size, start, span)| Block { size: size * 9000, start, end: start + span })
                .collect();
            for order in [Order::Size, Order::Span] {
                prop_assert_eq!(fallback(&blocks, order, ALIGNMENT), one_by_one(&blocks, order));
            }
        }
    }
}
