//! What surrounds a selected buffer or a chosen step; looked up on a worker, as it takes a walk through the program.

use std::sync::Arc;

use super::derived::SpaceData;
use super::job::{Job, Work};
use crate::analysis::live_range::Uses;
use crate::analysis::map::MapBox;
use crate::model::{BufferId, Bytes, MemorySpace};
use crate::ui::session::Document;

/// What belongs to one buffer.
#[derive(Debug, Default)]
pub struct RelatedToBuffer {
    /// Where its value stands and is read.
    pub uses: Uses,
    /// Buffers that share its memory at other times, and the bytes in common.
    pub sharing: Vec<(MapBox, Bytes)>,
}

/// What belongs to one step.
#[derive(Debug, Default)]
pub struct RelatedToStep {
    /// The largest free stretch of the heap: address and bytes.
    pub largest_hole: Option<(u64, Bytes)>,
    /// How many buffers live.
    pub live: usize,
    /// The largest of them.
    pub largest: Vec<MapBox>,
}

/// Buffers that are kept of a step.
const LARGEST: usize = 32;

/// (program, memory space, buffer or step)
type Key = (usize, MemorySpace, u32);

/// The last ones that were asked for.
#[derive(Default)]
pub struct Related {
    buffer: Option<(Key, Job<Arc<RelatedToBuffer>>)>,
    step: Option<(Key, Job<Arc<RelatedToStep>>)>,
}

impl Related {
    /// What belongs to a buffer, once it is known.
    pub fn buffer(
        &mut self,
        work: &Work,
        document: &Arc<Document>,
        data: &Arc<SpaceData>,
        space: (usize, MemorySpace),
        buffer: BufferId,
    ) -> Option<Arc<RelatedToBuffer>> {
        let key = (space.0, space.1, buffer.0);
        if self.buffer.as_ref().is_none_or(|(of, _)| *of != key) {
            let (document, data) = (Arc::clone(document), Arc::clone(data));
            let job = Job::start(work, "buffer", move || {
                let uses = document
                    .program(space.0)
                    .and_then(|(program, analysis)| analysis.live.as_ref().map(|live| live.uses_of(program, buffer)));
                Arc::new(RelatedToBuffer { uses: uses.unwrap_or_default(), sharing: data.map.sharing(buffer) })
            });
            self.buffer = Some((key, job));
        }
        self.buffer.as_mut()?.1.poll().cloned()
    }

    /// What belongs to a step, once it is known.
    pub fn step(
        &mut self,
        work: &Work,
        data: &Arc<SpaceData>,
        space: (usize, MemorySpace),
        step: u32,
    ) -> Option<Arc<RelatedToStep>> {
        let key = (space.0, space.1, step);
        if self.step.as_ref().is_none_or(|(of, _)| *of != key) {
            let data = Arc::clone(data);
            let job = Job::start(work, "step", move || {
                let mut largest = data.map.live_at(step);
                let live = largest.len();
                largest.truncate(LARGEST);
                Arc::new(RelatedToStep { largest_hole: data.map.largest_hole(step), live, largest })
            });
            self.step = Some((key, job));
        }
        self.step.as_mut()?.1.poll().cloned()
    }
}
