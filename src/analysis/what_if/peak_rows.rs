//! What stands at the peak after some changes: buffers of the program, and what the changes add.

use super::memory::Memory;
use super::prediction::Prediction;
use super::state::Sizes;
use crate::analysis::packing;
use crate::analysis::program::ProgramAnalysis;
use crate::model::{BufferId, Bytes, FastMap};

/// What has memory at the peak of a prediction.
#[derive(Debug, Clone, Copy)]
pub struct PeakRow {
    /// The buffer; of what is added, one that it goes with.
    pub buffer: BufferId,
    /// Bytes after the changes.
    pub bytes: Bytes,
    /// In words what the changes add, where it is no buffer of the program.
    pub added: Option<&'static str>,
}

impl Sizes {
    /// In words what a block is that the changes add; `None` where it is that of a buffer.
    #[must_use]
    pub fn added_as(&self, block: usize) -> Option<&'static str> {
        let families = self.blocks.len().saturating_sub(self.added.len());
        self.added.get(block.checked_sub(families)?).and_then(|added| added.words())
    }
}

impl Memory {
    /// What has memory at the peak after some changes, most bytes first: arguments, results and constants, for each family
    /// of buffers that share memory the one that is live then, and what the changes add.
    #[must_use]
    pub fn at_peak(&self, analysis: &ProgramAnalysis, prediction: &Prediction) -> Vec<PeakRow> {
        let sizes = &prediction.sizes;
        let base = self.base.iter().zip(&sizes.base).filter(|(_, size)| **size > 0);
        let mut found: Vec<PeakRow> =
            base.map(|(base, &size)| PeakRow { buffer: base.buffer, bytes: Bytes(size), added: None }).collect();
        let time = packing::most_live(&sizes.blocks).1;
        let live = sizes.blocks.iter().zip(&sizes.family).enumerate();
        let live = live.filter(|(_, (block, _))| block.size > 0 && block.start <= time && time <= block.end);
        let present = self.members_at(analysis, time);
        found.extend(live.map(|(number, (block, &family))| PeakRow {
            buffer: present.get(&family).copied().unwrap_or_else(|| self.buffer_of_row(family)),
            bytes: Bytes(block.size),
            added: sizes.added_as(number),
        }));
        found.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.buffer));
        found
    }

    /// Of families of several buffers, the last that is live at a time.
    fn members_at(&self, analysis: &ProgramAnalysis, time: u32) -> FastMap<u32, BufferId> {
        let mut found: FastMap<u32, (u32, BufferId)> = FastMap::default();
        let (Some(live), Some(&point)) = (&analysis.live, self.points.get(time as usize / 2)) else {
            return FastMap::default();
        };
        for &(buffer, family) in &self.families.member_of {
            let Some((start, end)) = live.of(BufferId(buffer)) else { continue };
            if start <= point && point <= end {
                let last = found.entry(family).or_insert((start, BufferId(buffer)));
                if start > last.0 {
                    *last = (start, BufferId(buffer));
                }
            }
        }
        found.into_iter().map(|(family, (_, buffer))| (family, buffer)).collect()
    }
}
