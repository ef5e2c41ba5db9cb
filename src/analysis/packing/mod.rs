//! Reproduces, to the byte, how the TPU compiler packs a program's temporaries into the heap.
//!
//! The two packers were determined experimentally with libtpu 0.0.51 and five older releases. A program that fits easily
//! is packed online in program order ([`online`]); one that would need more than about 83 % of the memory is recompiled
//! and packed by size ([`fallback`]). A GPU's compiler packs by size or span at once, in finer steps.

mod block;
mod colocated;
mod fallback;
mod families;
mod gaps;
mod live;
mod moves;
mod occupied;
mod online;
mod times;

pub use block::{ALIGNMENT, Block, GPU_ALIGNMENT, Placement};
pub use colocated::colocated;
pub use fallback::{MAX_BLOCKS, Order, fallback};
pub use families::{Families, Family};
pub use live::most_live;
pub use moves::Moves;
pub use online::{online, online_along, online_heap};

use std::sync::atomic::{AtomicU64, Ordering};

use super::SpaceAnalysis;
use crate::model::{Bytes, Program};

/// Fraction of the available memory above which the compiler packs by size and rematerialises.
const FALLBACK_SHARE: f64 = 0.83;

/// Share of what its allocator may take down to which the GPU's compiler computes values again
/// (`xla_gpu_memory_limit_slop_factor`).
const RECOMPUTED_ON_GPUS_FROM: f64 = 0.95;

/// Share of the available memory, 0 to 1, from which on the compiler of a TPU or a GPU computes values again.
#[must_use]
pub const fn full_from(is_gpu: bool) -> f64 {
    if is_gpu { RECOMPUTED_ON_GPUS_FROM } else { FALLBACK_SHARE }
}

/// The compiler's packing algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packer {
    /// Best fit in program order.
    Online,
    /// Smallest gap, by size or by span.
    Fallback,
}

impl Packer {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Fallback => "fallback",
        }
    }
}

/// The smaller heap of the two orders of [`fallback`]; `None` if there are more than `MAX_BLOCKS` blocks.
#[must_use]
pub fn best_fallback(blocks: &[Block], alignment: u64) -> Option<Placement> {
    if blocks.len() > MAX_BLOCKS {
        return None;
    }
    Some(smaller_heap(|order| fallback(blocks, order, alignment), |heap| heap))
}

/// As [`best_fallback`], where it comes to less than `below` bytes; `None` where it does not. Packing ends as soon as
/// that is certain.
#[must_use]
pub fn fallback_below(blocks: &[Block], below: u64, alignment: u64) -> Option<Placement> {
    if blocks.len() > MAX_BLOCKS || below == 0 {
        return None;
    }
    let times = fallback::times(blocks);
    // What the other order has come to.
    let known = [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)];
    let pack = |order| {
        // Of equal heaps that by size counts, in whatever order they are finished.
        let (own, other, may_equal) = if order == Order::Size { (0, 1, true) } else { (1, 0, false) };
        let is_too_large = |heap: u64| {
            let other = known[other].load(Ordering::Relaxed);
            heap >= below || heap > other || (heap == other && !may_equal)
        };
        let placement = fallback::packed(blocks, &times, (order, alignment), &is_too_large)?;
        known[own].store(placement.heap, Ordering::Relaxed);
        Some(placement)
    };
    let (size, span) = rayon::join(|| pack(Order::Size), || pack(Order::Span));
    [size, span].into_iter().flatten().min_by_key(|placement| placement.heap)
}

/// Packs in both orders and keeps the smaller heap, as `counted`; of equal ones that by size.
fn smaller_heap(pack: impl Fn(Order) -> Placement + Sync, counted: impl Fn(u64) -> u64) -> Placement {
    let (size, span) = rayon::join(|| pack(Order::Size), || pack(Order::Span));
    if counted(span.heap) < counted(size.heap) { span } else { size }
}

/// Comparison of the reproduced packing with the compiler's.
#[derive(Debug, Clone, PartialEq)]
pub struct Reproduction {
    /// Reproduced heap size in bytes.
    pub heap: Bytes,
    /// Heap size in the dump in bytes.
    pub compiler_heap: Bytes,
    /// The packer that reproduces the dump best.
    pub packer: Packer,
    /// Fraction of families at the same offset, 0 to 1.
    pub equal_offsets: f64,
    /// Peak live bytes, a lower bound for any packer.
    pub live: Bytes,
}

/// Packs the unchanged program and compares it with the dump; `None` if the space has no heap trace. A GPU's compiler
/// always packs by size or by span.
#[must_use]
pub fn reproduce(program: &Program, space: &SpaceAnalysis, is_gpu: bool) -> Option<Reproduction> {
    let trace = space.xprof.trace?;
    let families = Families::new(program, trace)?;
    let blocks = families.blocks();
    let extent = families.extent(program);
    let compare = |placement: Placement, packer| Reproduction {
        heap: Bytes(placement.heap),
        compiler_heap: Bytes(extent.1 - extent.0),
        packer,
        equal_offsets: families.equal_offsets(program, &placement, extent.0),
        live: Bytes(most_live(&blocks).0),
    };
    let colocated =
        |alignment| colocated(program, trace, &families, alignment).map(|packed| compare(packed, Packer::Fallback));
    if is_gpu {
        return colocated(GPU_ALIGNMENT);
    }
    let online = compare(online(&blocks), Packer::Online);
    if online.heap == online.compiler_heap && online.equal_offsets >= 1.0 {
        return Some(online);
    }
    let Some(fallback) = colocated(ALIGNMENT) else {
        return Some(online);
    };
    let is_equal = |r: &Reproduction| r.heap == r.compiler_heap;
    // Online packing reproduces every offset; equal heap size with different offsets means packing by size.
    Some(if is_equal(&fallback) || !is_equal(&online) { fallback } else { online })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks() -> impl Strategy<Value = Vec<Block>> {
        proptest::collection::vec((0u64..200_000, 0u32..60, 0u32..30), 0..40).prop_map(|rows| {
            rows.into_iter()
                .map(|(size, start, span)| Block { size, start: 2 * start, end: 2 * (start + span) })
                .collect()
        })
    }

    fn check(blocks: &[Block], placement: &Placement) -> Result<(), TestCaseError> {
        let live = most_live(blocks).0;
        prop_assert!(placement.heap >= live);
        let mut highest = 0;
        for (i, a) in blocks.iter().enumerate() {
            if a.size == 0 {
                continue;
            }
            let at = placement.offsets[i];
            prop_assert_eq!(at % ALIGNMENT, 0);
            highest = highest.max(at + a.size);
            for (j, b) in blocks.iter().enumerate().skip(i + 1) {
                let together = b.size > 0 && a.start <= b.end && b.start <= a.end;
                let other = placement.offsets[j];
                prop_assert!(!together || at + a.size <= other || other + b.size <= at, "{i} and {j} overlap");
            }
        }
        prop_assert_eq!(placement.heap, highest);
        Ok(())
    }

    proptest! {
        #[test]
        fn blocks_that_live_together_never_overlap(blocks in blocks()) {
            check(&blocks, &online(&blocks))?;
            check(&blocks, &fallback(&blocks, Order::Size, ALIGNMENT))?;
            check(&blocks, &fallback(&blocks, Order::Span, ALIGNMENT))?;
        }

        #[test]
        fn a_smaller_heap_is_found_exactly_where_there_is_one(blocks in blocks(), by in 0u64..4) {
            let Some(best) = best_fallback(&blocks, ALIGNMENT) else { return Ok(()) };
            let below = (best.heap + ALIGNMENT).saturating_sub(by * ALIGNMENT / 2);
            let expected = (best.heap < below).then_some(best);
            prop_assert_eq!(fallback_below(&blocks, below, ALIGNMENT), expected);
        }

        #[test]
        fn most_live_is_a_count_of_bytes(blocks in blocks()) {
            let most = (0..200).map(|t| {
                blocks.iter().filter(|b| b.start <= t && t <= b.end).map(|b| b.size).sum::<u64>()
            }).max().unwrap_or(0);
            prop_assert_eq!(most_live(&blocks).0, most);
        }
    }
}
