//! Packer B: the largest (or longest-lived) first, each at the smallest gap among those it meets in time.

use super::{ALIGNMENT, Block, Placement};

/// More blocks are not packed this way: the time grows with their square.
pub const MAX_BLOCKS: usize = 20_000;

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The larger; of equal ones the longer-lived.
    Size,
    /// The longer-lived; of equal ones the larger.
    Span,
}

/// A block that has its place.
#[derive(Clone, Copy)]
struct Placed {
    offset: u64,
    top: u64,
    start: u32,
    end: u32,
}

/// Packs the blocks; of two that come at the same rank, the earlier in the list first. Both ends of a lifetime are
/// included.
#[must_use]
pub fn fallback(blocks: &[Block], order: Order) -> Placement {
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
    let mut placed: Vec<Placed> = Vec::with_capacity(ranked.len());
    for i in ranked {
        let block = &blocks[i as usize];
        let offset = smallest_gap(&placed, block);
        let top = offset.saturating_add(block.size);
        placement.offsets[i as usize] = offset;
        placement.heap = placement.heap.max(top);
        let at = placed.partition_point(|p| p.offset <= offset);
        placed.insert(at, Placed { offset, top, start: block.start, end: block.end });
    }
    placement
}

/// The start of the smallest gap that holds a block; the top where none does. `placed` is sorted by offset.
fn smallest_gap(placed: &[Placed], block: &Block) -> u64 {
    let mut best = u64::MAX;
    let mut best_at = None;
    // First aligned address above everything met so far.
    let mut free_from = 0u64;
    for other in placed {
        if other.start > block.end || block.start > other.end {
            continue;
        }
        let room = other.offset.saturating_sub(free_from);
        if room >= block.size && room < best {
            best = room;
            best_at = Some(free_from);
        }
        let above = other.top.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        free_from = free_from.max(above);
    }
    best_at.unwrap_or(free_from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_decides() {
        const K: u64 = ALIGNMENT;
        let blocks = [
            Block { size: 4 * K, start: 0, end: 2 },
            Block { size: K, start: 0, end: 20 },
            Block { size: 2 * K, start: 4, end: 20 },
        ];
        let by_size = fallback(&blocks, Order::Size);
        assert_eq!((by_size.heap, by_size.offsets.clone()), (5 * K, vec![0, 4 * K, 0]));
        let by_span = fallback(&blocks, Order::Span);
        assert_eq!((by_span.heap, by_span.offsets.clone()), (5 * K, vec![K, 0, K]));
    }
}
