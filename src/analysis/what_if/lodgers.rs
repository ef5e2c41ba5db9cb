//! What lies in the memory of results before they do: it loses that memory where an argument is donated to the result.

use super::base::{Base, Role};
use crate::analysis::ProgramAnalysis;
use crate::analysis::flow::{Value, computed, is_blank};
use crate::analysis::live_range::LiveRanges;
use crate::analysis::packing::Block;
use crate::model::{BufferId, FastMap, InstructionId, NO_ROW, Opcode, Program, outline};

/// A buffer that lies in a result's memory before the result does, such as a gradient or an array that a loop fills.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lodger {
    /// The last of the values that are there one after the other.
    pub(super) buffer: BufferId,
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

/// What has lived in the memory of a result, and needs memory of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Housed {
    pub block: Block,
    /// The buffer that it is, or the last of several.
    pub buffer: BufferId,
}

/// A copy in the memory of a result, which an argument is donated to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copied {
    pub size: u64,
    /// First and last program point.
    pub first: u32,
    pub last: u32,
    /// The result, by row of the base.
    pub result: u32,
    /// The copy.
    pub buffer: BufferId,
}

/// A copy that is lent the memory of a donated argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lent {
    pub block: Block,
    /// The argument, by row of the base.
    pub host: u32,
    /// The copy.
    pub buffer: BufferId,
    /// Whether the copy is read, as by a gather of its rows, before its result is written, which is then no copy of it: it is
    /// lent that memory though there is room for its own.
    pub is_read_before: bool,
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
        let is_copy = || analysis.labels(program).copied_by(program, buffer).is_some();
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
        let buffer = assigned.buffer;
        Some(Lodger {
            buffer,
            size,
            place: (start, start.saturating_add(size)),
            first,
            last,
            is_like_result,
            is_relaid,
        })
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
                if own.last >= group.last {
                    (group.buffer, group.last) = (own.buffer, own.last);
                }
                group.is_like_result &= own.is_like_result;
                group.is_relaid |= own.is_relaid;
            }
            None => groups.push(own),
        }
    }
    groups
}

/// Ends those early whose only reader makes the result of them and of what is there before them, as each weight's update of
/// its gradient. In the order in which a program is printed that does not fit, all gradients may be there before the first
/// update; of one that fits, each update comes as soon as it can, for less memory.
pub(super) fn end_early(program: &Program, live: &LiveRanges, lodgers: &mut [Vec<Lodger>]) {
    let mut readers: FastMap<u32, Vec<u32>> = FastMap::default();
    // What has another layout is copied into the result at the end, in the order of the results.
    let may_end = |own: &&Lodger| own.is_like_result && !own.is_relaid;
    readers.extend(lodgers.iter().flatten().filter(may_end).map(|own| (own.buffer.0, Vec::new())));
    if readers.is_empty() {
        return;
    }
    for (buffer, _, reader) in live.reads(program) {
        if let Some(own) = readers.get_mut(&buffer) {
            own.push(reader);
        }
    }
    for own in lodgers.iter_mut().flatten() {
        let Some((made, _)) = live.of(own.buffer) else { continue };
        let Some([reader]) = readers.get(&own.buffer.0).map(Vec::as_slice) else { continue };
        let mut left = MOST_FOLLOWED;
        let is_there = |&operand: &u32| {
            operand != NO_ROW && is_there_at(program, live, InstructionId(operand), (made, 0), &mut left)
        };
        if program.instructions.operands_of(InstructionId(*reader)).iter().all(is_there) {
            own.last = own.last.min(made.saturating_add(1));
        }
    }
}

/// How far operands are followed to arguments, and how many of them.
const FURTHEST: u32 = 8;
const MOST_FOLLOWED: u32 = 512;

/// Whether an operand is there at a point: made before it, or of arguments and constants alone.
fn is_there_at(
    program: &Program,
    live: &LiveRanges,
    operand: InstructionId,
    (point, depth): (u32, u32),
    left: &mut u32,
) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let at = computed(program, Value::whole(operand)).at;
    let opcode = program.instructions.opcode.get(at.index()).copied();
    if live.point_of(at.0).is_some_and(|made| made <= point)
        || matches!(opcode, Some(Opcode::PARAMETER | Opcode::CONSTANT))
    {
        return true;
    }
    let operands = program.instructions.operands_of(at);
    depth < FURTHEST
        && !operands.is_empty()
        && operands
            .iter()
            .all(|&row| row != NO_ROW && is_there_at(program, live, InstructionId(row), (point, depth + 1), left))
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
