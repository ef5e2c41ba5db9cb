//! The fallback packer: largest (or longest-lived) block first, each in the smallest gap among overlapping blocks.

use super::{ALIGNMENT, Block, Placement};

/// Maximum number of blocks to pack; the time is quadratic.
pub const MAX_BLOCKS: usize = 20_000;

/// Packing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Largest first, then longest-lived.
    Size,
    /// Longest-lived first, then largest.
    Span,
}

/// A placed block.
#[derive(Clone, Copy, Default)]
struct Placed {
    offset: u64,
    top: u64,
    start: u32,
    end: u32,
}

/// Placed blocks sorted by offset, in chunks short enough for fast insertion.
#[derive(Default)]
struct PlacedBlocks {
    chunks: Vec<Vec<Placed>>,
    /// Scratch space: (offset, top) of the blocks that overlap in time, by offset.
    met: Vec<(u64, u64)>,
}

/// Maximum length of a chunk of [`PlacedBlocks`].
const CHUNK: usize = 512;

/// Packs blocks; ties keep the order of the list. Live ranges include both ends.
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
    let mut placed_blocks = PlacedBlocks { met: vec![(0, 0); ranked.len()], ..PlacedBlocks::default() };
    for i in ranked {
        let block = &blocks[i as usize];
        let offset = placed_blocks.smallest_gap(block);
        let top = offset.saturating_add(block.size);
        placement.offsets[i as usize] = offset;
        placement.heap = placement.heap.max(top);
        placed_blocks.insert(Placed { offset, top, start: block.start, end: block.end });
    }
    placement
}

impl PlacedBlocks {
    /// The offset of the smallest gap that fits a block, or the top of the heap.
    fn smallest_gap(&mut self, block: &Block) -> u64 {
        // Branch-free compaction: every block is stored, but the slot advances only for overlapping ones.
        let mut count = 0;
        for other in self.chunks.iter().flatten() {
            if let Some(slot) = self.met.get_mut(count) {
                *slot = (other.offset, other.top);
            }
            count += usize::from((other.start <= block.end) && (block.start <= other.end));
        }
        let mut best = u64::MAX;
        let mut best_at = None;
        // First aligned address above all overlapping blocks so far.
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
        let chunk = self.chunks.partition_point(|chunk| chunk.first().is_some_and(|p| p.offset <= placed.offset));
        let chunk = chunk.saturating_sub(1);
        let Some(list) = self.chunks.get_mut(chunk) else {
            self.chunks.push(vec![placed]);
            return;
        };
        let at = list.partition_point(|p| p.offset <= placed.offset);
        list.insert(at, placed);
        if list.len() > CHUNK {
            let rest = list.split_off(CHUNK / 2);
            self.chunks.insert(chunk + 1, rest);
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
