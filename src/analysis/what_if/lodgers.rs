//! What lies in the memory of results before they do: it loses that memory where an argument is donated to the result.

use super::base::{Base, Role};
use crate::analysis::ProgramAnalysis;
use crate::analysis::flow::{Value, is_blank};
use crate::model::{BufferId, InstructionId, Opcode, Program, outline};

/// A buffer that lies in a result's memory before the result does, such as a gradient or an array that a loop fills.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lodger {
    pub(super) size: u64,
    /// First and last byte in the allocation.
    pub(super) place: (u64, u64),
    /// First and last program point.
    pub(super) first: u32,
    pub(super) last: u32,
    /// Whether it has the size and shape of the result.
    pub(super) is_like_result: bool,
    /// Whether it has the dimensions of what is returned in another layout.
    pub(super) is_relaid: bool,
}

/// Share of a result's bytes below which what lies in its memory does not matter.
const LODGER: u64 = 64;

/// The buffers in a result's memory that are neither the result nor a view or copy of an argument.
pub(super) fn lodgers_of(program: &Program, analysis: &ProgramAnalysis, base: &Base) -> Vec<Lodger> {
    let allocation = program.allocations.get(base.allocation.index());
    let (Role::Result(_), Some(live), Some(allocation)) = (&base.role, &analysis.live, allocation) else {
        return Vec::new();
    };
    let lodges = |buffer: BufferId| {
        let at = program.buffers.instruction_of(buffer)?;
        let opcode = program.instructions.opcode.get(at.index()).copied()?;
        let size = program.buffers.size_of(buffer).0;
        let is_large = size >= base.size / LODGER;
        // An array that is filled later occupies the memory from the start, though it is the result.
        let is_empty = is_blank(program, &Value { at, index: program.buffer_index(buffer) });
        let is_result = buffer == base.buffer && !is_empty;
        let is_view = opcode == Opcode::COPY || opcode == Opcode::BITCAST || opcode == Opcode::DYNAMIC_UPDATE_SLICE;
        let is_copy = || analysis.labels(program).is_copy_of_argument(program, buffer);
        let is_relaid = base.returned.as_ref().zip(program.buffer_node(buffer)).is_some_and(|(returned, own)| {
            own.dimensions == returned.dimensions
                && own.order_in_memory().zip(returned.order_in_memory()).is_some_and(|(a, b)| a != b)
        });
        let is_other = || !is_result && !is_view && !updates_in_place(program, at) && !is_copy();
        let (first, last) = (is_large && (is_relaid || is_other())).then(|| live.of(buffer))??;
        Some((size, first, last, is_relaid))
    };
    let found = program.assigned_to(allocation).iter().filter_map(|assigned| {
        let (size, first, last, is_relaid) = lodges(assigned.buffer)?;
        let start = assigned.offset;
        let is_like_result = is_alike(program, assigned.buffer, base.buffer);
        Some(Lodger { size, place: (start, start.saturating_add(size)), first, last, is_like_result, is_relaid })
    });
    merged(found.collect())
}

/// Values that pass on their memory, one after the other, are one lodger.
fn merged(mut lodgers: Vec<Lodger>) -> Vec<Lodger> {
    lodgers.sort_by_key(|lodger| (lodger.first, lodger.last));
    let mut groups: Vec<Lodger> = Vec::new();
    for own in lodgers {
        let follows = |group: &&mut Lodger| {
            own.first <= group.last.saturating_add(1) && own.place.0 < group.place.1 && group.place.0 < own.place.1
        };
        match groups.iter_mut().find(follows) {
            Some(group) => {
                group.place = (group.place.0.min(own.place.0), group.place.1.max(own.place.1));
                group.size = group.place.1 - group.place.0;
                group.last = group.last.max(own.last);
                group.is_like_result &= own.is_like_result;
                group.is_relaid |= own.is_relaid;
            }
            None => groups.push(own),
        }
    }
    groups
}

/// Whether a fusion updates part of an operand in place.
fn updates_in_place(program: &Program, at: InstructionId) -> bool {
    program.instructions.called_by(at).first().and_then(|called| program.computations.get(called.index())).is_some_and(
        |called| program.instructions.opcode.get(called.root as usize) == Some(&Opcode::DYNAMIC_UPDATE_SLICE),
    )
}

/// Whether two buffers have the same size and, dimensions of 1 aside, the same shape.
pub(super) fn is_alike(program: &Program, a: BufferId, b: BufferId) -> bool {
    let outline = |buffer| program.buffer_node(buffer).map(|n| (outline(&n.dimensions), n.element_type));
    program.buffers.size_of(a) == program.buffers.size_of(b) && outline(a) == outline(b)
}
