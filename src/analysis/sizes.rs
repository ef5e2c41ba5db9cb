//! Category of a buffer, and its bytes without padding.

use super::xprof::Traces;
use crate::model::{BufferId, Bytes, Category, Program};

/// Category of a buffer.
#[must_use]
pub fn category(program: &Program, buffer: BufferId) -> Category {
    program.buffers.allocation_of(buffer).map_or(Category::Temporary, |id| program.allocations[id.index()].category())
}

/// Bytes of a buffer without padding. Equal to XProf's, except for nested places in tuples, where XProf takes the size
/// of another element.
#[must_use]
pub fn unpadded(program: &Program, traces: &Traces, buffer: BufferId) -> Bytes {
    if has_no_shape(program, buffer) {
        return program.buffers.size_of(buffer);
    }
    program.buffer_node(buffer).map_or_else(|| traces.unpadded_size(program, buffer), |node| node.unpadded_size())
}

/// Whether a report names the buffer without its shape, so its padding is unknown.
#[must_use]
pub fn has_no_shape(program: &Program, buffer: BufferId) -> bool {
    !program.reported.is_empty() && program.buffer_node(buffer).is_none()
}
