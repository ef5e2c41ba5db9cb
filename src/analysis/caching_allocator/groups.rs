//! Live allocations by who made them.

use std::collections::HashMap;

use super::category::{AllocationCategory, Evidence};
use super::device::CachingAnalysis;
use crate::model::{CachingSnapshot, Frame, StackId};

/// Live allocations of one stack and category. Sizes are requested bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackGroup {
    /// Who made them.
    pub stack: StackId,
    /// What they are for.
    pub category: AllocationCategory,
    /// What tells the category.
    pub evidence: Evidence,
    /// Their bytes.
    pub bytes: u64,
    /// Their number.
    pub count: u64,
}

impl StackGroup {
    /// Whether the category is only the most likely one.
    #[must_use]
    pub fn is_guess(&self) -> bool {
        self.evidence == Evidence::Guess
    }
}

impl CachingAnalysis {
    /// Live allocations at a moment by stack and category, largest first.
    #[must_use]
    pub fn by_stack_at(&self, moment: u32) -> Vec<StackGroup> {
        let mut rows: HashMap<(StackId, AllocationCategory), StackGroup> = HashMap::new();
        for row in self.live_at(moment) {
            let (lifetime, (category, evidence)) = (&self.replay.lifetimes[row], self.categories[row]);
            let new = StackGroup { stack: lifetime.stack, category, evidence, bytes: 0, count: 0 };
            let group = rows.entry((lifetime.stack, category)).or_insert(new);
            group.bytes = group.bytes.saturating_add(lifetime.requested);
            group.count += 1;
            group.evidence = group.evidence.max(evidence);
        }
        let mut groups: Vec<StackGroup> = rows.into_values().collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.bytes), group.stack, group.category));
        groups
    }
}

/// The innermost frame of a stack that is the program's own: Python outside of PyTorch and of the standard library's
/// frozen parts. Else the innermost Python frame, else the innermost frame.
#[must_use]
pub fn own_frame(snapshot: &CachingSnapshot, stack: StackId) -> Option<&Frame> {
    let file = |frame: &Frame| snapshot.strings.get(frame.file);
    #[expect(clippy::case_sensitive_file_extension_comparisons, reason = "Python's own files")]
    let is_python = |frame: &&Frame| file(frame).ends_with(".py");
    let is_own = |frame: &&Frame| is_python(frame) && !file(frame).contains("/torch/") && !file(frame).starts_with('<');
    let frames = || snapshot.frames(stack);
    frames().find(is_own).or_else(|| frames().find(is_python)).or_else(|| frames().next())
}
