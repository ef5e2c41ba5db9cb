//! What was there before the first event: the state at the end of the snapshot, with every event undone.

use std::collections::BTreeMap;

use super::problems::{Problem, Problems};
use super::space::{Reserved, SMALL_SEGMENT, Segments};
use crate::model::{BlockState, CachingAction, CachingDevice, CachingSnapshot, SizeClass, StackId};

/// A block that lived before the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldBlock {
    /// Bytes the program asked for.
    pub requested: u64,
    /// Bytes of the block; `None` if it was freed later, so that the file does not say.
    pub size: Option<u64>,
    /// Whether its owner had not let go of it yet.
    pub is_allocated: bool,
    /// Who allocated it, or, where that is not known, who freed it.
    pub stack: StackId,
}

/// The state before the first event.
#[derive(Debug, Clone, Default)]
pub struct Beginning {
    /// Live blocks by address.
    pub blocks: BTreeMap<u64, OldBlock>,
    /// Segments.
    pub segments: Segments,
}

/// Segments of a device when the snapshot was taken.
pub fn segments_at_end(snapshot: &CachingSnapshot, device: u32) -> Segments {
    let mut segments = Segments::default();
    for segment in snapshot.segments.iter().filter(|segment| segment.device == device) {
        let reserved = Reserved {
            size: segment.size,
            stream: segment.stream,
            pool: segment.pool,
            class: segment.class,
            is_expandable: segment.is_expandable,
        };
        segments.by_address.insert(segment.address, reserved);
    }
    segments
}

/// The segment of a trace event.
pub fn segment_of_event(snapshot: &CachingSnapshot, event: usize, is_expandable: bool) -> Reserved {
    let size = snapshot.events.size[event];
    Reserved {
        size,
        stream: snapshot.stream_of(event),
        pool: snapshot.pool_of(event),
        class: if size <= SMALL_SEGMENT { SizeClass::Small } else { SizeClass::Large },
        is_expandable,
    }
}

/// Undoes every event of a device.
///
/// A file that is cut does not say how the state at its end came about; there, only what its events free is known to
/// have been there.
pub fn beginning(snapshot: &CachingSnapshot, device: &CachingDevice, problems: &mut Problems) -> Beginning {
    let mut state = Beginning::default();
    if !snapshot.is_cut {
        state.segments = segments_at_end(snapshot, device.index);
        for segment in snapshot.segments.iter().filter(|segment| segment.device == device.index) {
            let rows = segment.blocks.start as usize..segment.blocks.end as usize;
            for block in snapshot.blocks.get(rows).unwrap_or_default() {
                if block.state != BlockState::Inactive {
                    let old = OldBlock {
                        requested: block.requested,
                        size: Some(block.size),
                        is_allocated: block.state == BlockState::Allocated,
                        stack: block.stack,
                    };
                    state.blocks.insert(block.address, old);
                }
            }
        }
    }
    let events = &snapshot.events;
    for event in device.events.clone().rev() {
        let (address, size) = (events.address[event], events.size[event]);
        let is_known = match events.action[event] {
            CachingAction::Alloc => state.blocks.remove(&address).is_some(),
            CachingAction::FreeCompleted => {
                let old = OldBlock { requested: size, size: None, is_allocated: false, stack: events.stack[event] };
                state.blocks.insert(address, old).is_none()
            }
            CachingAction::FreeRequested => match state.blocks.get_mut(&address) {
                Some(block) => {
                    block.is_allocated = true;
                    true
                }
                None => false,
            },
            CachingAction::SegmentAlloc => state.segments.by_address.remove(&address).is_some(),
            CachingAction::SegmentFree => {
                state.segments.by_address.insert(address, segment_of_event(snapshot, event, false)).is_none()
            }
            CachingAction::SegmentMap => state.segments.unmap(address, size),
            CachingAction::SegmentUnmap => {
                state.segments.map(address, segment_of_event(snapshot, event, true));
                true
            }
            _ => true,
        };
        if !is_known && !snapshot.is_cut {
            problems.add(Problem::Undo(events.action[event]));
        }
    }
    // A file may leave out when owners let go: what the trace only completes was in use, as far as is known.
    let has_requests = device.events.clone().any(|event| events.action[event] == CachingAction::FreeRequested);
    if !has_requests {
        state.blocks.values_mut().for_each(|block| block.is_allocated = true);
    }
    state
}
