//! The order of what makes and reads logits, once their loss is the peak.

use super::saved_for_backward::is_among;
use super::trial::Trial;
use crate::analysis::packing;

/// How many arrays as large as the logits are there at once where their loss is the peak: what is read, what is made of it,
/// and what is kept.
const AT_ONCE: usize = 3;

/// Part of the logits' bytes by which others as large differ at most.
const NEAR: u64 = 32;

impl Trial<'_> {
    /// Bytes that are not live at the peak together, though they are in the program as it is: where checkpoints leave more
    /// than [`AT_ONCE`] arrays as large as the logits at the peak, the compiler orders what makes and reads them anew. Two
    /// real programs have four and five of them at once while their layers take more, and three once these are
    /// checkpointed.
    pub(super) fn saved_by_order(&self) -> u64 {
        let logits = &self.memory.kept.logits;
        if !self.state.kinds.remat || logits.is_empty() || self.memory.is_gpu {
            return 0;
        }
        let at_peak: Vec<(u32, u64)> = self.at_peak().map(|row| (row.0, row.1.0)).collect();
        let of_logits = at_peak.iter().filter(|row| is_among(logits, row.0 as usize));
        let Some(largest) = of_logits.map(|row| row.1).max() else { return 0 };
        let is_as_large = |bytes: u64| bytes.abs_diff(largest) <= largest / NEAR;
        let alike: Vec<u32> = at_peak.iter().filter(|row| is_as_large(row.1)).map(|row| row.0).collect();
        let mut left = alike.len().saturating_sub(AT_ONCE);
        if left == 0 {
            return 0;
        }
        let mut blocks = self.sizes.blocks.clone();
        for (block, family) in blocks.iter_mut().zip(&self.sizes.family) {
            if left > 0 && alike.contains(family) && is_as_large(block.size) {
                (block.size, left) = (0, left - 1);
            }
        }
        self.most_live.0.saturating_sub(packing::most_live(&blocks).0)
    }
}
