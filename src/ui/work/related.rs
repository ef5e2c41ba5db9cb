//! Data on the selected buffer or step, computed on a worker because it requires a walk of the program.

use std::sync::Arc;

use super::derived::SpaceData;
use super::job::{Job, Work};
use crate::analysis::live_range::Uses;
use crate::analysis::map::MapBox;
use crate::model::{BufferId, Bytes, MemorySpace};
use crate::ui::session::Document;

/// Data on one buffer.
#[derive(Debug, Default)]
pub struct RelatedToBuffer {
    /// Where its value is defined and read.
    pub uses: Uses,
    /// Buffers that reuse its addresses at other times, with the number of bytes in common.
    pub sharing: Vec<(MapBox, Bytes)>,
}

/// Data on one step.
#[derive(Debug, Default)]
pub struct RelatedToStep {
    /// Offset and size of the largest gap in the heap.
    pub largest_hole: Option<(u64, Bytes)>,
    /// Number of live buffers.
    pub live: usize,
    /// The largest live buffers, at most 32.
    pub largest: Vec<MapBox>,
}

/// Maximum length of [`RelatedToStep::largest`].
const LARGEST: usize = 32;

/// (program, memory space, buffer or step)
type Key = (usize, MemorySpace, u32);

/// The last buffer and step requested.
#[derive(Default)]
pub struct Related {
    buffer: Option<(Key, Job<Arc<RelatedToBuffer>>)>,
    step: Option<(Key, Job<Arc<RelatedToStep>>)>,
}

impl Related {
    /// Data on a buffer; `None` until computed.
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

    /// Data on a step; `None` until computed.
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
