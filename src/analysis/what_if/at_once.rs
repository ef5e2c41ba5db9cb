//! Whether a program's checkpoints recompute nearly all that they do at once.

use super::memory::Memory;
use crate::analysis::names::pass::Pass;
use crate::analysis::packing::{Block, most_live};
use crate::model::Program;

/// Share of the peak from which values that are recomputed together are what decides it.
const MUCH: f64 = 0.3;

impl Memory {
    /// Whether nearly all that checkpoints recompute, and much of the peak, is live at once, as where a single checkpoint
    /// is around the whole model. What a loop recomputes is that of one step.
    pub(super) fn recomputes_all_at_once(&self, program: &Program) -> bool {
        let families = self.families.list.iter().enumerate();
        let is_recomputed = |family: usize| self.kept.passes.get(family) == Some(&Pass::Recomputed);
        let (mut blocks, mut whole) = (Vec::new(), 0u64);
        for (row, family) in families.filter(|row| is_recomputed(row.0) && !self.kept.is_stack(row.0)) {
            whole = whole.saturating_add(family.size);
            if program.buffers.instruction_of(family.root).is_some_and(|made| program.is_in_entry(made)) {
                let &(start, end) = self.spans.get(row).unwrap_or(&(0, 0));
                blocks.push(Block { size: family.size, start, end });
            }
        }
        if (whole as f64) < self.peak as f64 * MUCH {
            return false;
        }
        let live = most_live(&blocks).0;
        live.saturating_mul(2) > whole && live as f64 >= self.peak as f64 * MUCH
    }
}
