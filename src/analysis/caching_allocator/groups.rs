//! Live allocations by who made them.

use std::collections::{HashMap, HashSet};

use super::category::{AllocationCategory, Evidence};
use super::device::CachingAnalysis;
use super::frames::{is_distinct, own_frame};
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
    /// What tells the stack from others with the same own frame, once [`tell_apart`] was asked.
    pub apart: Option<Apart>,
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
            let new = StackGroup { stack: lifetime.stack, category, evidence, bytes: 0, count: 0, apart: None };
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

/// A frame that tells a stack from others with the same own frame, see [`tell_apart`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// Called from the own frame, directly or not.
    Inside(Frame),
    /// Calls the own frame, directly or not.
    Caller(Frame),
}

impl Apart {
    /// In words: `in at::_ops::softmax_int::call`.
    #[must_use]
    pub fn in_words(&self, snapshot: &CachingSnapshot) -> String {
        match self {
            Self::Inside(frame) => format!("in {}", snapshot.frame_words(frame)),
            Self::Caller(frame) => format!("from {}", snapshot.frame_words(frame)),
        }
    }
}

/// Frames looked at on each side of the own frame.
const LOOKED_AT: usize = 64;

/// Notes for each group what tells its stack from those of the other groups with the same own frame and category: the
/// frame at the distance from the own frame at which most of them differ, inside before callers. None where the own frame
/// is enough or nothing else differs.
pub fn tell_apart(snapshot: &CachingSnapshot, groups: &mut [StackGroup]) {
    let mut numbers: HashMap<(Frame, AllocationCategory), usize> = HashMap::new();
    let mut namesakes: Vec<(Frame, Vec<usize>)> = Vec::new();
    for (row, group) in groups.iter().enumerate() {
        let Some(&own) = own_frame(snapshot, group.stack) else { continue };
        let number = *numbers.entry((own, group.category)).or_insert_with(|| {
            namesakes.push((own, Vec::new()));
            namesakes.len() - 1
        });
        namesakes[number].1.push(row);
    }
    for (own, rows) in namesakes.into_iter().filter(|(_, rows)| rows.len() > 1) {
        // Each stack as what is inside its own frame and what calls it, both from the own frame on.
        let sides: Vec<[Vec<Frame>; 2]> = rows
            .iter()
            .map(|&row| {
                let is_told = |frame: &&Frame| **frame == own || is_distinct(snapshot, frame);
                let frames: Vec<Frame> = snapshot.frames(groups[row].stack).filter(is_told).copied().collect();
                let at = frames.iter().position(|frame| *frame == own).unwrap_or(0);
                let inside = frames[..at].iter().rev().take(LOOKED_AT).copied().collect();
                let callers = frames.iter().skip(at + 1).take(LOOKED_AT).copied().collect();
                [inside, callers]
            })
            .collect();
        let mut best = (1, 0, 0);
        for side in 0..2 {
            let depth = sides.iter().map(|sides| sides[side].len()).max().unwrap_or(0);
            for at in 0..depth {
                let different: HashSet<Option<&Frame>> = sides.iter().map(|sides| sides[side].get(at)).collect();
                if different.len() > best.0 {
                    best = (different.len(), side, at);
                }
            }
        }
        let (1.., side, at) = (best.0 - 1, best.1, best.2) else { continue };
        for (row, sides) in rows.into_iter().zip(&sides) {
            let frame = sides[side].get(at).copied();
            groups[row].apart = frame.map(if side == 0 { Apart::Inside } else { Apart::Caller });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_one_own_frame_are_told_apart_by_what_is_inside_it_or_calls_it() {
        let mut snapshot = CachingSnapshot::default();
        let mut frame = |name: &str, file: &str, line| {
            let (name, file) = (snapshot.strings.intern(name), snapshot.strings.intern(file));
            Frame { name, file, line }
        };
        let (step, main, again) =
            (frame("step", "train.py", 7), frame("main", "train.py", 20), frame("main", "train.py", 30));
        let (first, second) = (frame("init", "/torch/adam.py", 171), frame("init", "/torch/adam.py", 175));
        let (build, fill) = (frame("build", "train.py", 9), frame("fill", "train.py", 12));
        let stacks = [
            vec![first, step, main],
            vec![second, step, main],
            vec![build, main],
            vec![build, again],
            vec![fill, main],
        ];
        for frames in &stacks {
            let first = snapshot.stacks.frames.len() as u32;
            snapshot.stacks.frames.extend(frames);
            snapshot.stacks.flat.extend(first..first + frames.len() as u32);
            snapshot.stacks.ends.push(snapshot.stacks.flat.len());
        }
        let mut groups: Vec<StackGroup> = (0..stacks.len() as u32)
            .map(|stack| StackGroup {
                stack: StackId(stack),
                category: AllocationCategory::OptimizerState,
                evidence: Evidence::Guess,
                bytes: 1,
                count: 1,
                apart: None,
            })
            .collect();
        tell_apart(&snapshot, &mut groups);
        let apart: Vec<Option<Apart>> = groups.iter().map(|group| group.apart).collect();
        assert_eq!(apart[..2], [Some(Apart::Inside(first)), Some(Apart::Inside(second))]);
        assert_eq!(apart[2..], [Some(Apart::Caller(main)), Some(Apart::Caller(again)), None]);
    }
}
