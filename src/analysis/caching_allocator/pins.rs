//! What keeps segments from being returned or reused: how each segment is used at a moment, and the blocks that hold
//! back the most free bytes.

use super::device::CachingAnalysis;
use super::failure::{FailedRequest, Moment};
use super::space::{Reserved, class_of};
use crate::model::{Bytes, CachingSnapshot, UnitSystem};

/// How a segment is used at a moment. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentUse {
    /// First byte.
    pub address: u64,
    /// The segment.
    pub reserved: Reserved,
    /// Bytes of active blocks.
    pub active: u64,
    /// Free bytes.
    pub free: u64,
    /// Free ranges.
    pub holes: u64,
    /// Largest free range.
    pub largest_hole: u64,
    /// Active blocks: rows of the lifetimes.
    pub blocks: Vec<usize>,
}

impl SegmentUse {
    /// Whether it could be returned to the driver.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.active == 0
    }
}

/// A block in a segment that is partly free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// Row of the lifetimes.
    pub lifetime: usize,
    /// Free bytes of its segment.
    pub free: u64,
    /// Bytes of its segment.
    pub segment: u64,
    /// Whether it is the only block in it, so that the segment could be returned without it.
    pub is_alone: bool,
}

impl Pin {
    /// How much such blocks, of a size, hold back, in words: `27 blocks of 16.0 MiB each hold back 42.0 MiB of a segment`.
    #[must_use]
    pub fn words(&self, bytes: u64, count: usize, units: UnitSystem) -> String {
        let short = |bytes: u64| units.short(Bytes(bytes));
        let blocks = match count {
            1 => format!("{} holds", short(bytes)),
            count => format!("{count} blocks of {} each hold", short(bytes)),
        };
        let alone = if self.is_alone { ", alone in it" } else { "" };
        format!("{blocks} back {} of a segment of {}{alone}", short(self.free), short(self.segment))
    }
}

impl CachingAnalysis {
    /// Blocks that are alike in size, segment and stack together, in their order; at most so many groups.
    #[must_use]
    pub fn alike(&self, pins: &[Pin], most: usize) -> Vec<Vec<Pin>> {
        let kind = |pin: &Pin| {
            let lifetime = &self.replay.lifetimes[pin.lifetime];
            (lifetime.size, lifetime.stack, pin.free, pin.segment, pin.is_alone)
        };
        let mut found: Vec<Vec<Pin>> = Vec::new();
        for pin in pins {
            match found.iter().position(|group| group.first().is_some_and(|first| kind(first) == kind(pin))) {
                Some(row) => found[row].push(*pin),
                None if found.len() < most => found.push(vec![*pin]),
                None => {}
            }
        }
        found
    }

    /// The segments at a moment, by address.
    #[must_use]
    pub fn segments_at(&self, state: &Moment, moment: u32) -> Vec<SegmentUse> {
        let mut live: Vec<usize> = self.live_at(moment).collect();
        live.sort_by_key(|&row| self.replay.lifetimes[row].address);
        let of = |(&address, &reserved): (&u64, &Reserved)| {
            let end = address.saturating_add(reserved.size);
            let at = |row: &usize| self.replay.lifetimes[*row].address;
            let first = live.partition_point(|row| at(row) < address);
            let last = live.partition_point(|row| at(row) < end);
            let blocks = live[first..last.max(first)].to_vec();
            let holes = || state.free.by_address.range(address..end).map(|(_, &length)| length);
            SegmentUse {
                address,
                reserved,
                active: blocks.iter().map(|&row| self.replay.lifetimes[row].size).fold(0, u64::saturating_add),
                free: holes().fold(0, u64::saturating_add),
                holes: holes().count() as u64,
                largest_hole: holes().max().unwrap_or(0),
                blocks,
            }
        };
        state.segments.by_address.iter().map(of).collect()
    }

    /// Whether free memory in a segment could have served a failed request: it is for the same stream, pool and sizes.
    #[must_use]
    pub fn serves(&self, snapshot: &CachingSnapshot, failure: &FailedRequest, segment: &Reserved) -> bool {
        let event = self.device.events.start + (failure.moment as usize).saturating_sub(1);
        segment.stream == snapshot.stream_of(event)
            && segment.pool == snapshot.pool_of(event)
            && segment.class == class_of(failure.requested)
    }

    /// The moment at which fragmentation matters, and the segments then: the last failed request, or else the peak of
    /// the reserved bytes.
    #[must_use]
    pub fn fragmentation(&self, snapshot: &CachingSnapshot) -> (u32, Vec<SegmentUse>) {
        let moment = self.failure().map_or(self.replay.peaks.reserved.moment, |failure| failure.moment);
        (moment, self.segments_at(&self.state_at(snapshot, moment), moment))
    }

    /// The blocks that hold back the most free bytes: those of partly used segments, the most free bytes first, among
    /// equals those that are alone and the smallest first.
    #[must_use]
    pub fn pins(&self, segments: &[SegmentUse], count: usize) -> Vec<Pin> {
        let mut partly: Vec<&SegmentUse> =
            segments.iter().filter(|segment| !segment.is_whole() && segment.free > 0).collect();
        partly.sort_by_key(|segment| (std::cmp::Reverse(segment.free), segment.blocks.len(), segment.address));
        let mut pins = Vec::new();
        for segment in partly {
            let mut blocks = segment.blocks.clone();
            blocks.sort_by_key(|&row| (self.replay.lifetimes[row].size, row));
            for row in blocks {
                if pins.len() == count {
                    return pins;
                }
                pins.push(Pin {
                    lifetime: row,
                    free: segment.free,
                    segment: segment.reserved.size,
                    is_alone: segment.blocks.len() == 1,
                });
            }
        }
        pins
    }
}
