//! Data on the selected buffer or step, computed on a worker because it requires a walk of the program.

use std::collections::HashMap;
use std::sync::Arc;

use super::derived::SpaceData;
use super::job::{Job, Work};
use crate::analysis::Scene;
use crate::analysis::contributors::{Contributor, contributors};
use crate::analysis::hlo_text::{self, instruction_text};
use crate::analysis::live_at::{LiveBuffer, unwritten};
use crate::analysis::live_range::Uses;
use crate::analysis::map::MapBox;
use crate::model::{BufferId, Bytes, InstructionId, MemorySpace, Program};
use crate::ui::session::Document;

/// Data on one buffer.
#[derive(Debug, Default)]
pub struct RelatedToBuffer {
    /// Where its value is defined and read.
    pub uses: Uses,
    /// Buffers that reuse its addresses at other times, with the number of bytes in common.
    pub sharing: Vec<(MapBox, Bytes)>,
    /// Its instruction as HLO text; empty if it is not in the file.
    pub hlo: String,
    /// What stands at the peak and is equal to it, itself included, with the bytes of all together: the same part of each
    /// layer, say. `None` where it is alone.
    pub equal: Option<(Arc<[BufferId]>, Bytes)>,
    /// Operands of its instruction: name, and the largest buffer of the memory space that it defines.
    pub operands: Vec<(String, Option<BufferId>)>,
}

/// Data on one step.
#[derive(Debug, Default)]
pub struct RelatedToStep {
    /// Offset and size of the largest gap in the heap.
    pub largest_hole: Option<(u64, Bytes)>,
    /// Number of buffers that have memory.
    pub live: usize,
    /// Bytes of those whose memory is reserved at the step but not written yet.
    pub unwritten: Bytes,
    /// The largest of them, at most 32.
    pub largest: Vec<LiveBuffer>,
    /// The same with equal layers folded, at most 32; empty where there are too many to fold at every step.
    pub folded: Vec<Contributor>,
}

/// Maximum length of [`RelatedToStep::largest`].
const LARGEST: usize = 32;
/// Buffers at a step that are folded at most.
const FOLDED: usize = 20_000;

/// (program, memory space, buffer or step)
type Key = (usize, MemorySpace, u32);

/// The last buffer and step requested.
#[derive(Default)]
pub struct Related {
    buffer: Option<(Key, Job<Arc<RelatedToBuffer>>)>,
    step: Option<(Key, Job<Arc<RelatedToStep>>)>,
}

/// The buffers of the same row at the peak that are as large as one of them.
fn equal(program: &Program, rows: &[Contributor], buffer: BufferId) -> Option<(Arc<[BufferId]>, Bytes)> {
    let row = rows.iter().find(|row| row.buffers.contains(&buffer))?;
    let bytes = program.buffers.size_of(buffer);
    let all: Arc<[BufferId]> =
        row.buffers.iter().copied().filter(|&other| program.buffers.size_of(other) == bytes).collect();
    let together = Bytes(bytes.0.saturating_mul(all.len() as u64));
    (all.len() > 1).then_some((all, together))
}

fn operands(scene: Scene<'_>, instruction: InstructionId) -> Vec<(String, Option<BufferId>)> {
    let program = scene.program;
    let rows = hlo_text::operands(program, instruction);
    let mut largest: HashMap<u32, BufferId> = HashMap::new();
    for &buffer in &scene.space.buffers {
        let Some(row) = program.buffers.instruction_of(buffer).filter(|row| rows.contains(row)) else { continue };
        let kept = largest.entry(row.0).or_insert(buffer);
        if program.buffers.size_of(buffer) > program.buffers.size_of(*kept) {
            *kept = buffer;
        }
    }
    rows.iter().map(|&row| (program.text.instruction_name(row), largest.get(&row.0).copied())).collect()
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
                let mut related = RelatedToBuffer { sharing: data.map.sharing(buffer), ..RelatedToBuffer::default() };
                if let Some(scene) = document.scene(space.0, space.1) {
                    let (program, live) = (scene.program, scene.analysis.live.as_ref());
                    related.equal = equal(program, &data.contributors, buffer);
                    related.uses = live.map(|live| live.uses_of(program, buffer)).unwrap_or_default();
                    if let Some(instruction) = program.buffers.instruction_of(buffer) {
                        related.hlo = instruction_text(program, instruction);
                        related.operands = operands(scene, instruction);
                    }
                }
                Arc::new(related)
            });
            self.buffer = Some((key, job));
        }
        self.buffer.as_mut()?.1.poll().cloned()
    }

    /// Data on a step; `None` until computed.
    pub fn step(
        &mut self,
        work: &Work,
        document: &Arc<Document>,
        data: &Arc<SpaceData>,
        space: (usize, MemorySpace),
        step: u32,
    ) -> Option<Arc<RelatedToStep>> {
        let key = (space.0, space.1, step);
        if self.step.as_ref().is_none_or(|(of, _)| *of != key) {
            let (document, data) = (Arc::clone(document), Arc::clone(data));
            let job = Job::start(work, "step", move || {
                let scene = document.scene(space.0, space.1);
                let mut largest = scene.map(|scene| scene.live_at(step)).unwrap_or_default();
                let live = largest.len();
                let rows: Vec<(BufferId, Bytes)> = largest.iter().map(|live| (live.buffer, live.bytes)).collect();
                let mut folded = scene
                    .filter(|_| live <= FOLDED)
                    .map(|scene| contributors(scene.program, scene.analysis, &rows))
                    .unwrap_or_default();
                folded.truncate(LARGEST);
                let unwritten = unwritten(&largest, step);
                largest.truncate(LARGEST);
                Arc::new(RelatedToStep { largest_hole: data.map.largest_hole(step), live, unwritten, largest, folded })
            });
            self.step = Some((key, job));
        }
        self.step.as_mut()?.1.poll().cloned()
    }
}
