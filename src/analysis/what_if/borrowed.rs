//! Copies of donated arguments, in the order of dimensions in which a loop's products read them, that lie in the memory of
//! another argument. They do so only where the compiler is short of memory.
//!
//! Found with libtpu 0.0.52 and a decoder whose loop works on copies of both of its caches, compiled with 12 numbers of slots
//! for v4, v5e, v5p and v6e: up to 91 % of the memory each copy had its own, where both would have taken 95 % or more one
//! lay in the memory of the other's argument. With other changes that make it smaller, both have memory of their own. A step
//! of beam search, which gathers the copies' rows in another order, lays one there at 71 % as well, and with a smaller cache.

use super::base::{Base, Role};
use crate::analysis::flow::{Value, computed};
use crate::analysis::{ProgramAnalysis, live_range::LiveRanges};
use crate::model::{BufferId, InstructionId, Opcode, Program};

/// Share of the program's bytes below which a copy makes no difference.
const SMALL: u64 = 64;

/// A copy in the memory of another argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct Borrowed {
    /// The argument whose memory it is in, by row of the base.
    pub host: u32,
    /// The argument that it is a copy of, by row of the base.
    pub source: u32,
    /// The copy.
    pub buffer: BufferId,
    /// First and last program point.
    pub life: (u32, u32),
}

/// The copies of arguments in the memory of others.
pub(super) fn borrowed(program: &Program, analysis: &ProgramAnalysis, base: &[Base], allocated: u64) -> Vec<Borrowed> {
    let Some(live) = &analysis.live else { return Vec::new() };
    let mut found = Vec::new();
    for (host, own) in base.iter().enumerate() {
        if !matches!(own.role, Role::Argument { is_donated: true, .. }) || own.size < allocated / SMALL {
            continue;
        }
        let Some(allocation) = program.allocations.get(own.allocation.index()) else { continue };
        for assigned in program.assigned_to(allocation) {
            let Some(source) = source_of_copy(program, base, assigned.buffer).filter(|&source| source != host) else {
                continue;
            };
            let Some(life) = life_of(program, live, assigned.buffer) else { continue };
            found.push(Borrowed { host: host as u32, source: source as u32, buffer: assigned.buffer, life });
        }
    }
    found
}

/// The argument, by row of the base, that a buffer is a copy of, in another order of dimensions.
fn source_of_copy(program: &Program, base: &[Base], buffer: BufferId) -> Option<usize> {
    let at = program.buffers.instruction_of(buffer)?;
    if program.instructions.opcode.get(at.index()) != Some(&Opcode::COPY) {
        return None;
    }
    let operand = program.instructions.operands_of(at).first().copied().map(InstructionId)?;
    let from = computed(program, Value::whole(operand)).at;
    if program.instructions.opcode.get(from.index()) != Some(&Opcode::PARAMETER) {
        return None;
    }
    let is_source = |own: &Base| {
        matches!(own.role, Role::Argument { .. }) && program.buffers.instruction_of(own.buffer) == Some(from)
    };
    let source = base.iter().position(is_source)?;
    let (now, before) = (program.buffer_node(buffer)?, program.buffer_node(base[source].buffer)?);
    let is_relaid = now.dimensions == before.dimensions && now.order_in_memory()? != before.order_in_memory()?;
    is_relaid.then_some(source)
}

/// First and last program point of a copy and of what is written in its place, one after the other.
fn life_of(program: &Program, live: &LiveRanges, copy: BufferId) -> Option<(u32, u32)> {
    let (first, mut last) = live.of(copy)?;
    let place = |buffer: BufferId| {
        Some((program.buffers.allocation_of(buffer)?, program.buffer_node(buffer)?.order_in_memory()?))
    };
    let own = place(copy)?;
    let allocation = program.allocations.get(own.0.index())?;
    let mut lives: Vec<(u32, u32)> = program
        .assigned_to(allocation)
        .iter()
        .filter(|assigned| place(assigned.buffer).as_ref() == Some(&own))
        .filter_map(|assigned| live.of(assigned.buffer))
        .collect();
    lives.sort_unstable();
    for (begin, end) in lives {
        if begin >= first && begin <= last.saturating_add(1) {
            last = last.max(end);
        }
    }
    Some((first, last))
}
