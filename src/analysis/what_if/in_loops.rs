//! What each step of a loop over layers recomputes for its backward pass: where memory is short, the compiler recomputes
//! a part of that once more instead of keeping all of it.

use super::memory::Memory;
use super::saved_for_backward::is_among;
use super::state::Sizes;
use crate::analysis::names::pass::Pass;
use crate::analysis::once::once;
use crate::model::Program;

/// Share of what a step recomputes that the compiler need not keep at once: in a real program with four layers in each
/// step it was 0.61.
const SPARED: f64 = 2.0 / 3.0;

impl Memory {
    /// Families that steps of loops recompute; ascending.
    fn recomputed_in_loops(&self, program: &Program) -> &Vec<u32> {
        once(&self.recomputed_in_loops, || {
            let is_meant = |family: usize| {
                let is_recomputed = self.kept.passes.get(family) == Some(&Pass::Recomputed);
                let root = self.families.list.get(family).map(|row| row.root);
                let made = root.and_then(|root| program.buffers.instruction_of(root));
                is_recomputed && made.is_some_and(|made| !program.is_in_entry(made))
            };
            (0..self.families.list.len()).filter(|&family| is_meant(family)).map(|family| family as u32).collect()
        })
    }

    /// Bytes live at a time that the compiler can spare by recomputing more in the steps of loops.
    pub(super) fn spared_in_loops(&self, program: &Program, sizes: &Sizes, at: u32) -> u64 {
        let families = self.recomputed_in_loops(program);
        let live = sizes.blocks.iter().zip(&sizes.family).filter(|(block, _)| block.start <= at && at <= block.end);
        let recomputed = live.filter(|(_, family)| is_among(families, **family as usize)).map(|(block, _)| block.size);
        (recomputed.fold(0u64, u64::saturating_add) as f64 * SPARED) as u64
    }
}
