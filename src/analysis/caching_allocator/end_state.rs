//! The state when the snapshot was taken, from its segments and blocks.

use std::collections::BTreeSet;

use super::replay::Replay;
use crate::model::{BlockState, CachingSnapshot};

/// The state when the snapshot was taken. Sizes are bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndState {
    /// Number of segments.
    pub segments: u64,
    /// Bytes of segments.
    pub reserved: u64,
    /// Bytes of blocks in use.
    pub allocated: u64,
    /// The same with blocks that a stream still uses.
    pub active: u64,
    /// Bytes the program asked for, of active blocks.
    pub requested: u64,
    /// Bytes the program asked for, of blocks in use.
    pub allocated_requested: u64,
    /// Bytes of blocks that a stream still uses after they were freed.
    pub pending: u64,
    /// Bytes of free blocks.
    pub inactive: u64,
    /// Largest free block.
    pub largest_free: u64,
    /// Bytes of segments without a block in use.
    pub whole_free_segments: u64,
    /// Number of active blocks.
    pub blocks: u64,
    /// Number of streams that segments serve.
    pub streams: u64,
    /// Number of private pools.
    pub pools: u64,
    /// Bytes of segments in private pools.
    pub private_pools: u64,
}

impl EndState {
    /// The state of a device.
    #[must_use]
    pub fn new(snapshot: &CachingSnapshot, device: u32) -> Self {
        let mut state = Self::default();
        let (mut streams, mut pools) = (BTreeSet::new(), BTreeSet::new());
        let add = |sum: &mut u64, bytes: u64| *sum = sum.saturating_add(bytes);
        for segment in snapshot.segments.iter().filter(|segment| segment.device == device) {
            state.segments += 1;
            add(&mut state.reserved, segment.size);
            streams.insert(segment.stream);
            if segment.pool != (0, 0) {
                pools.insert(segment.pool);
                add(&mut state.private_pools, segment.size);
            }
            let mut is_used = false;
            let rows = segment.blocks.start as usize..segment.blocks.end as usize;
            for block in snapshot.blocks.get(rows).unwrap_or_default() {
                match block.state {
                    BlockState::Inactive => {
                        add(&mut state.inactive, block.size);
                        state.largest_free = state.largest_free.max(block.size);
                        continue;
                    }
                    BlockState::Allocated => {
                        add(&mut state.allocated, block.size);
                        add(&mut state.allocated_requested, block.requested);
                    }
                    BlockState::Pending => add(&mut state.pending, block.size),
                }
                is_used = true;
                state.blocks += 1;
                add(&mut state.active, block.size);
                add(&mut state.requested, block.requested);
            }
            if !is_used {
                add(&mut state.whole_free_segments, segment.size);
            }
        }
        state.streams = streams.len() as u64;
        state.pools = pools.len() as u64;
        state
    }

    /// Bytes lost to rounding.
    #[must_use]
    pub const fn rounding(&self) -> u64 {
        self.active.saturating_sub(self.requested)
    }
}

/// Whether a replay ends with the blocks of the file.
pub fn equals_end(snapshot: &CachingSnapshot, device: u32, replay: &Replay) -> bool {
    let mut count = 0;
    for segment in snapshot.segments.iter().filter(|segment| segment.device == device) {
        let rows = segment.blocks.start as usize..segment.blocks.end as usize;
        for block in snapshot.blocks.get(rows).unwrap_or_default() {
            if block.state == BlockState::Inactive {
                continue;
            }
            count += 1;
            let row = replay.live_at_end.get(&block.address).copied();
            let lifetime = row.and_then(|row| replay.lifetimes.get(row as usize));
            if lifetime.is_none_or(|life| (life.requested, life.size) != (block.requested, block.size)) {
                return false;
            }
        }
    }
    count == replay.live_at_end.len()
}
