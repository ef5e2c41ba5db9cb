//! Places heap events in program order: the program point of each event of a heap trace.

use super::live_range::LiveRanges;
use crate::model::{BufferId, EventKind, HeapTrace, NO_ROW, Program};

/// Program points of a trace's events.
#[derive(Debug, Clone, Default)]
pub struct EventPoints {
    /// Point by event. An allocation happens at its point, a free after it.
    pub points: Vec<u32>,
    /// Number of times the points run backwards; 0 in every trace of a complete dump.
    pub backwards: usize,
}

/// Places every event: allocations where the buffer's live range begins, frees where it ends.
#[must_use]
pub fn event_points(program: &Program, live: &LiveRanges, trace: &HeapTrace) -> EventPoints {
    let views = if trace.whole_module { None } else { Some(live.view_ends(program)) };
    let mut result = EventPoints { points: Vec::with_capacity(trace.events.len()), backwards: 0 };
    let mut now = 0;
    for event in &trace.events {
        let range = if event.buffer == NO_ROW { None } else { live.of(BufferId(event.buffer)) };
        let point = match (range, event.kind) {
            (Some((start, _)), EventKind::Alloc | EventKind::ShareWith) => start,
            (Some((_, end)), _) => {
                views.as_ref().and_then(|views| views.get(&event.buffer)).copied().unwrap_or(end).max(end)
            }
            (None, _) => now,
        };
        if point < now {
            result.backwards += 1;
        }
        now = now.max(point);
        result.points.push(now);
    }
    result
}
