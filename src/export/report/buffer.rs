//! One buffer in the report.

use super::schema::{BufferReport, PeakBufferReport};
use crate::analysis::class::Reason;
use crate::analysis::live_at::{Residency, argument_before};
use crate::analysis::names::scope;
use crate::analysis::{Scene, category, has_no_shape, unpadded};
use crate::model::{BufferId, Bytes};

/// A buffer at a peak, with its bytes there.
pub(super) fn standing(scene: Scene<'_>, (buffer, bytes): (BufferId, Bytes)) -> PeakBufferReport {
    PeakBufferReport { bytes_at_peak: bytes.0, added: None, buffer: buffer_report(scene, buffer) }
}

/// The report's row for one buffer.
pub(super) fn buffer_report(scene: Scene<'_>, buffer: BufferId) -> BufferReport {
    let Scene { program, analysis, space, .. } = scene;
    let row = buffer.index();
    let metadata = program.buffers.instruction_of(buffer).map(|i| program.text.metadata(i)).unwrap_or_default();
    let span = space.span(buffer);
    let live = analysis.live.as_ref().and_then(|live| live.of(buffer));
    let allocation = program.buffers.allocation_of(buffer);
    let spans = live.and_then(|_| Residency::in_words_of(program, scene.map(), buffer));
    let classes = analysis.classes(program);
    BufferReport {
        id: program.buffers.number[row],
        name: program.buffer_name(buffer),
        bytes: program.buffers.size_of(buffer).0,
        unpadded_bytes: (!has_no_shape(program, buffer)).then(|| unpadded(program, &analysis.traces, buffer).0),
        shape: program.buffer_shape(buffer).map(|(shape, node)| shape.text_of(node)),
        category: category(program, buffer).name(),
        class: classes.of(buffer).name(),
        class_guessed_from: Some(classes.reason(buffer)).filter(|reason| reason.is_guess()).map(Reason::words),
        class_certainty: classes.reason(buffer).certainty().words(),
        label: analysis.label(program, buffer).map(|label| label.text),
        op_name: Some(scope::without_attributes(&metadata.op_name).into_owned()).filter(|name| !name.is_empty()),
        source: metadata.source.map(|source| format!("{}:{}", source.file, source.line)),
        offset: allocation.filter(|_| !program.is_listing).map(|_| program.buffers.offset[row]),
        // Negative numbers are our own, for allocations that have none in the report.
        allocation: allocation.map(|id| program.allocations[id.index()].index).filter(|&index| index >= 0),
        start: span.map(|s| s.0),
        end: span.map(|s| s.1),
        live_start: live.map(|l| l.0),
        live_end: live.map(|l| l.1),
        reserved: spans.map(|spans| spans.reserved),
        in_memory_of: spans
            .filter(|spans| spans.written.0 > spans.reserved.0)
            .and_then(|_| argument_before(program, analysis, scene.map(), buffer))
            .map(str::to_owned),
        is_empty: spans.is_some_and(|spans| spans.is_empty),
        written_again: spans.and_then(|spans| spans.written_again),
        is_recomputed: spans.is_some_and(|spans| spans.is_recomputed),
        lifetime_from: analysis
            .lifetime_from(program, space, buffer)
            .filter(|_| !program.is_listing)
            .map(crate::analysis::LifetimeFrom::name),
    }
}
