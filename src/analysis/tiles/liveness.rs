//! Live bytes by program step, and their peak.

use std::collections::BTreeMap;

use crate::model::{StringId, TileMemory};

/// The step with the most not-always-live bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePeak {
    /// Index of the step in the liveness curve.
    pub step: u32,
    /// Not-always-live bytes at the step, over all tiles.
    pub bytes: u64,
}

/// Not-always-live bytes by step.
pub fn step_bytes(memory: &TileMemory) -> impl Iterator<Item = u64> + '_ {
    let liveness = &memory.liveness;
    liveness.steps.iter().map(|&node| liveness.nodes.get(node as usize).map_or(0, |node| node.bytes))
}

/// The peak: the first step with the most bytes. Steps are those of one replica.
#[must_use]
pub fn live_peak(memory: &TileMemory) -> Option<LivePeak> {
    (0..)
        .zip(step_bytes(memory))
        .max_by_key(|&(step, bytes): &(u32, u64)| (bytes, std::cmp::Reverse(step)))
        .map(|(step, bytes)| LivePeak { step, bytes })
}

/// Not-always-live variables at a step, largest first: (name, bytes). Empty if not in the file.
#[must_use]
pub fn variables_at(memory: &TileMemory, step: u32) -> &[(u32, StringId, u64)] {
    let liveness = &memory.liveness;
    let Some(&node) = liveness.steps.get(step as usize) else { return &[] };
    let from = liveness.variables.partition_point(|variable| variable.0 < node);
    let here = &liveness.variables[from..];
    &here[..here.partition_point(|variable| variable.0 == node)]
}

/// A variable at two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariableChange {
    /// Name.
    pub name: StringId,
    /// Bytes at the first step; 0 if not live.
    pub before: u64,
    /// Bytes at the second step; 0 if not live.
    pub after: u64,
}

/// Variables with different bytes at two steps, largest difference first.
#[must_use]
pub fn step_changes(memory: &TileMemory, before: u32, after: u32) -> Vec<VariableChange> {
    let mut bytes: BTreeMap<StringId, (u64, u64)> = BTreeMap::new();
    for &(_, name, size) in variables_at(memory, before) {
        let of = &mut bytes.entry(name).or_default().0;
        *of = of.saturating_add(size);
    }
    for &(_, name, size) in variables_at(memory, after) {
        let of = &mut bytes.entry(name).or_default().1;
        *of = of.saturating_add(size);
    }
    let mut changes: Vec<VariableChange> = bytes
        .into_iter()
        .filter(|(_, (before, after))| before != after)
        .map(|(name, (before, after))| VariableChange { name, before, after })
        .collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.before.abs_diff(change.after)));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LiveNode, NO_ROW};

    #[test]
    fn steps_differ_by_what_comes_and_goes() {
        let mut memory = TileMemory::default();
        let liveness = &mut memory.liveness;
        let node = |bytes| LiveNode { bytes, depth: 0, below: 0, name: StringId::default(), program: NO_ROW };
        liveness.nodes = vec![node(30), node(25)];
        liveness.steps = vec![0, 1];
        let [a, b, c] = ["a", "b", "c"].map(|name| liveness.strings.intern(name));
        liveness.variables = vec![(0, a, 20), (0, b, 10), (1, c, 15), (1, b, 10)];
        assert_eq!(variables_at(&memory, 1).len(), 2);
        assert!(variables_at(&memory, 7).is_empty());
        let changes = step_changes(&memory, 0, 1);
        let expected =
            [VariableChange { name: a, before: 20, after: 0 }, VariableChange { name: c, before: 0, after: 15 }];
        assert_eq!(changes, expected);
    }
}
