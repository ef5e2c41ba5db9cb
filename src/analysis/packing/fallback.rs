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
#[derive(Clone, Copy, Default)]
struct Placed {
    offset: u64,
    top: u64,
    start: u32,
    end: u32,
}

/// Blocks by offset, in pieces short enough to insert into.
#[derive(Default)]
struct Shelf {
    pieces: Vec<Vec<Placed>>,
    /// Those that a block meets: (offset, top), by offset; memory kept from one block to the next.
    met: Vec<(u64, u64)>,
}

/// Longest piece of a [`Shelf`].
const PIECE: usize = 512;

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
    let mut shelf = Shelf { met: vec![(0, 0); ranked.len()], ..Shelf::default() };
    for i in ranked {
        let block = &blocks[i as usize];
        let offset = shelf.smallest_gap(block);
        let top = offset.saturating_add(block.size);
        placement.offsets[i as usize] = offset;
        placement.heap = placement.heap.max(top);
        shelf.insert(Placed { offset, top, start: block.start, end: block.end });
    }
    placement
}

impl Shelf {
    /// The start of the smallest gap that holds a block; the top where none does.
    fn smallest_gap(&mut self, block: &Block) -> u64 {
        // Most blocks are not met; each is written down, and the place moves on only behind those that are.
        let mut count = 0;
        for other in self.pieces.iter().flatten() {
            if let Some(slot) = self.met.get_mut(count) {
                *slot = (other.offset, other.top);
            }
            count += usize::from((other.start <= block.end) && (block.start <= other.end));
        }
        let mut best = u64::MAX;
        let mut best_at = None;
        // First aligned address above everything met so far.
        let mut free_from = 0u64;
        for &(offset, top) in &self.met[..count] {
            let room = offset.saturating_sub(free_from);
            if room >= block.size && room < best {
                best = room;
                best_at = Some(free_from);
            }
            let above = top.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
            free_from = free_from.max(above);
        }
        best_at.unwrap_or(free_from)
    }

    fn insert(&mut self, placed: Placed) {
        let piece = self.pieces.partition_point(|piece| piece.first().is_some_and(|p| p.offset <= placed.offset));
        let piece = piece.saturating_sub(1);
        let Some(list) = self.pieces.get_mut(piece) else {
            self.pieces.push(vec![placed]);
            return;
        };
        let at = list.partition_point(|p| p.offset <= placed.offset);
        list.insert(at, placed);
        if list.len() > PIECE {
            let rest = list.split_off(PIECE / 2);
            self.pieces.insert(piece + 1, rest);
        }
    }
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
