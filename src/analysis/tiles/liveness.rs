//! Live bytes over the steps of a program, and their peak.

use crate::model::TileMemory;

/// The step with the most bytes that are live only at times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePeak {
    /// Step: an index into the steps of the liveness curve.
    pub step: u32,
    /// Bytes over all tiles that are live there and not always.
    pub bytes: u64,
}

/// Bytes at each step that are live only at times.
pub fn step_bytes(memory: &TileMemory) -> impl Iterator<Item = u64> + '_ {
    let liveness = &memory.liveness;
    liveness.steps.iter().map(|&node| liveness.nodes.get(node as usize).map_or(0, |node| node.bytes))
}

/// The first step with the most bytes. The forest's steps are those of one replica; this is its peak.
#[must_use]
pub fn live_peak(memory: &TileMemory) -> Option<LivePeak> {
    (0..)
        .zip(step_bytes(memory))
        .max_by_key(|&(step, bytes): &(u32, u64)| (bytes, std::cmp::Reverse(step)))
        .map(|(step, bytes)| LivePeak { step, bytes })
}
