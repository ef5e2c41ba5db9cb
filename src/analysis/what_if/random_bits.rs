//! Random bits of dropout on attention probabilities in checkpointed layers. What the default generator of JAX (threefry)
//! computes for a large array is part of one fused operation as a rule. Computed again in a checkpointed layer, it is not
//! on TPUs: each of its steps is an array of its own, and all of them are live at once.
//!
//! Found by compiling one layer of 32 heads and 1,024 positions with 1, 2, 3, 4, 5 and 8 samples for TPU v5p: 0.3, 8.2,
//! 12.2, 16.3, 20.4 and 32.6 GiB, where the scores of a sample take 128 MiB in 32 bits; 1.9 GiB with 8 samples without the
//! checkpoint. With 2 samples it is 8.1 GiB for v4 and v5e, but 0.6 GiB for v6e and v7x, whose vector units compute in
//! bfloat16, and 0.8 GiB for v5p where the probabilities are float32. In a scan over layers it is the same; with heads of
//! 256 elements instead of 64 or 128, with the generator `rbg`, or with dropout on the layer's output alone, there is
//! nothing of the kind. For v5p there is none either with 16, 20 and 24 heads of 64 elements (4 and 40 samples), but with 8,
//! 12, 32 and 40 of these, with 16 and 32 of 32, and with 16 of 96 and 128; v4 and v5e had it with 8 to 32 heads of 64.

use std::ops::RangeInclusive;

use super::head_size::widest_head;
use super::memory::Memory;
use super::saved_for_backward::{BLOCK, is_among};
use super::state::State;
use crate::analysis::names::lookup::is_draw;
use crate::analysis::names::pass::Pass;
use crate::analysis::once::once;
use crate::analysis::packing::Block;
use crate::model::{Bytes, FastSet, Program, ShapeNode};

/// Fewest elements of an array whose bits are computed so: 32 Mi were not, 64 Mi were.
const LEAST: u64 = 1 << 26;

/// Generations of TPUs whose compiler computes them so, as far as they were tried.
const GENERATIONS: [&str; 3] = ["v4", "v5e", "v5p"];

/// Heads, and elements of one, with which they are not computed so for v5p.
const NOT_ON_V5P: (RangeInclusive<i64>, i64) = (16..=24, 64);

/// One of how many of the scores of the forward pass must be narrow.
const FEW: usize = 4;

/// Arrays of 32 bits that are live at once.
const ARRAYS: u64 = 30;

impl Memory {
    /// Numbers of elements of the arrays whose random bits are computed by JAX's default generator.
    fn drawn(&self, program: &Program) -> &FastSet<u64> {
        once(&self.drawn, || {
            let mut drawn = FastSet::default();
            let mut by_device = FastSet::default();
            for at in program.instructions.ids() {
                let Some(node) = program.shape_of(at).map(crate::model::Shape::root) else { continue };
                let count = node.element_count();
                if count < LEAST / 64 || node.is_tuple() {
                    continue;
                }
                if program.opcode_name(at) == "rng-bit-generator" {
                    by_device.insert(count);
                } else if !node.element_type.is_float()
                    && node.element_type.storage_bits() == 32
                    && is_draw(&program.text.op_name(at))
                {
                    drawn.insert(count);
                }
            }
            let are_so = |scores: &ShapeNode| {
                let Some(width) = widest_head(program, scores).and_then(|width| i64::try_from(width).ok()) else {
                    return false;
                };
                let (several, elements) = NOT_ON_V5P;
                let is_fused = || width == elements && self.heads(scores).is_some_and(|heads| several.contains(&heads));
                width <= BLOCK && !(self.generation == Some("v5p") && is_fused())
            };
            let is_so = by_device.is_empty() && self.largest_scores(program).is_some_and(are_so);
            if is_so { drawn } else { FastSet::default() }
        })
    }

    /// Whether the compiler for the device is known to compute random bits so.
    fn may_compute_so(&self) -> bool {
        self.generation.is_some_and(|name| GENERATIONS.contains(&name))
    }

    /// Whether scores are narrow floats of the program's own: what the backward pass narrows, such as what it adds up, or
    /// what it computes again for that, says nothing of the probabilities.
    fn are_narrow(&self, row: u32, node: &ShapeNode) -> bool {
        node.element_type.is_narrow_float() && self.is_before_backward(row)
    }

    /// Whether a family is of neither the backward pass nor what is computed again for it.
    fn is_before_backward(&self, row: u32) -> bool {
        !matches!(self.kept.passes.get(row as usize), Some(Pass::Backward | Pass::Recomputed))
    }

    /// Whether a good part of the scores of the forward pass are narrow: a few are what one product wants so.
    fn has_narrow_scores(&self, program: &Program) -> bool {
        let nodes = self.kept.scores.iter().filter_map(|&row| Some((row, self.node_of_family(program, row)?)));
        let (mut all, mut narrow) = (0usize, 0usize);
        for (row, node) in nodes.filter(|known| self.is_before_backward(known.0)) {
            all += 1;
            narrow += usize::from(self.are_narrow(row, node));
        }
        narrow > 0 && narrow * FEW >= all
    }

    /// Bytes that random bits of dropout on attention probabilities take where a layer is computed again; `None` if the
    /// program has no such dropout, or its device computes them otherwise.
    #[must_use]
    pub fn random_bits_again(&self, program: &Program) -> Option<Bytes> {
        if !self.may_compute_so() || !self.has_narrow_scores(program) {
            return None;
        }
        let of_layer = |row: &u32| {
            let node = self.node_of_family(program, *row)?;
            let stack = self.kept.stacks.iter().find(|stack| stack.family == *row);
            let layers = stack.map_or(1, |stack| stack.layers.max(1).unsigned_abs());
            self.are_narrow(*row, node).then(|| node.element_count() / layers)
        };
        let largest = self.kept.scores.iter().filter_map(of_layer).max().filter(|&count| count >= LEAST)?;
        self.drawn(program).contains(&largest).then(|| Bytes(bytes_of(largest)))
    }
}

/// Bytes of the arrays that are live at once for so many scores of a layer.
const fn bytes_of(scores: u64) -> u64 {
    scores.saturating_mul(4).saturating_mul(ARRAYS)
}

impl State<'_> {
    /// What random bits take in each layer that is computed again, when that begins.
    pub(super) fn blocks_of_random_bits(&self) -> Vec<(Block, u32)> {
        let memory = self.memory;
        if !self.kinds.remat || !memory.may_compute_so() || !memory.has_narrow_scores(self.program) {
            return Vec::new();
        }
        let drawn = memory.drawn(self.program);
        if drawn.is_empty() {
            return Vec::new();
        }
        let node = |row: u32| memory.node_of_family(self.program, row);
        let narrow: FastSet<u64> = memory
            .kept
            .scores
            .iter()
            .filter_map(|&row| node(row).filter(|node| memory.are_narrow(row, node)))
            .map(ShapeNode::element_count)
            .collect();
        let of_scores = |row: u32| is_among(&memory.kept.scores, row as usize);
        let layers = self.again.iter().map(|&(row, start, _)| (row, 1, start));
        let scans = self.again_in_scans.iter().copied();
        let mut known = FastSet::default();
        let mut blocks = Vec::new();
        for (row, steps, start) in layers.chain(scans).filter(|found| of_scores(found.0)) {
            let at = row as usize;
            let is_dropped = self.dropped.get(at) == Some(&true) || self.in_blocks.get(at) == Some(&true);
            let steps = steps.max(1).unsigned_abs();
            // Bits are drawn for the scores as they are; other batches have as many more or fewer.
            let Some(present) = node(row).map(ShapeNode::element_count).filter(|count| narrow.contains(count)) else {
                continue;
            };
            let present = present / steps;
            let now = self.shape(self.first_item_of(row)).map_or(0, |known| known.node.element_count() / steps);
            if is_dropped || now < LEAST || !drawn.contains(&present) {
                continue;
            }
            if known.insert(start) {
                blocks.push((Block { size: bytes_of(now), start, end: start }, row));
            }
        }
        blocks
    }

    /// In words, what random bits take in a layer that is computed again; `None` if they take nothing.
    pub(super) fn random_bits_in_words(&self) -> Option<String> {
        let largest = self.blocks_of_random_bits().into_iter().map(|found| found.0.size).max()?;
        Some(format!(
            "the layers drop bfloat16 attention probabilities, with random bits from JAX's default generator: where a layer \
             is checkpointed, the compiler then makes some {ARRAYS} arrays of the scores' shape at once ({}, which is \
             counted); dropout on the attention's output alone needs none of them",
            Bytes(largest).short()
        ))
    }
}
