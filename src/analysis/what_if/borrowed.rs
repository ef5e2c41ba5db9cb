//! Copies of donated arguments, in the order of dimensions in which a loop's products read them, that lie in the memory of
//! another argument. They do so only where the compiler is short of memory.
//!
//! Found with libtpu 0.0.52 and a decoder whose loop works on copies of both of its caches, compiled with 12 numbers of slots
//! for v4, v5e, v5p and v6e: up to 91 % of the memory each copy had its own, where both would have taken 95 % or more one
//! lay in the memory of the other's argument. With other changes that make it smaller, both have memory of their own.

use super::base::{Base, Role};
use super::memory::Memory;
use super::resize;
use super::state::{Sizes, State};
use crate::analysis::flow::{Value, computed};
use crate::analysis::packing::Block;
use crate::analysis::{ProgramAnalysis, live_range::LiveRanges};
use crate::model::{BufferId, InstructionId, Opcode, Program};

/// Share of the memory, 0 to 1, up to which such copies have memory of their own: between 0.91 and 0.95.
pub(super) const ROOM_FOR_COPIES: f64 = 0.93;

/// Share of the program's bytes below which a copy makes no difference.
const SMALL: u64 = 64;

/// A copy in the memory of another argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct Borrowed {
    /// The argument whose memory it is in, by row of the base.
    host: u32,
    /// The argument that it is a copy of, by row of the base.
    source: u32,
    /// The copy.
    buffer: BufferId,
    /// First and last program point.
    life: (u32, u32),
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
    let from = computed(program, Value { at: operand, index: Vec::new() }).at;
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

impl State<'_> {
    /// Sizes and blocks if copies of arguments in the memory of others have memory of their own, and whether they must have
    /// it, as they no longer fit where they are; `None` if there are none.
    pub(super) fn with_copies_apart(&self, sizes: &Sizes) -> Option<(Sizes, bool)> {
        let memory = self.memory;
        let family = u32::try_from(memory.families.list.len()).ok()?.checked_sub(1)?;
        let (mut apart, mut must) = (sizes.clone(), false);
        let copies = memory.borrowed.iter().map(|own| (self.block_of_copy(own), own.host));
        for (block, host) in copies.chain(self.lent.iter().copied()) {
            must |= block.size > sizes.base.get(host as usize).copied().unwrap_or_default();
            apart.blocks.push(block);
            apart.family.push(family);
        }
        (apart.blocks.len() > sizes.blocks.len()).then_some((apart, must))
    }

    /// Lends copies that lie in the memory of a result, which an argument is donated to, the memory of another donated
    /// argument that nothing reads any more; returns those for which there is none.
    pub(super) fn lend(&mut self, copies: Vec<(u64, u32, u32)>, sizes: &[u64]) -> Vec<(u64, u32, u32)> {
        let memory = self.memory;
        let mut homeless = Vec::new();
        for (size, start, end) in copies {
            let is_host = |&row: &u32| {
                sizes.get(row as usize).is_some_and(|&bytes| bytes >= size)
                    && memory.last_read.get(row as usize).is_some_and(|&point| memory.time_of(point) <= start)
                    && !self.lent.iter().any(|lent| lent.1 == row)
            };
            let host = self.donated.iter().copied().find(is_host).filter(|_| !memory.is_gpu);
            match host {
                Some(host) => self.lent.push((Block { size, start, end }, host)),
                None => homeless.push((size, start, end)),
            }
        }
        homeless
    }

    fn block_of_copy(&self, own: &Borrowed) -> Block {
        let (start, end) = (self.memory.time_of(own.life.0), self.memory.time_of(own.life.1));
        Block { size: self.size_of_copy(own), start, end }
    }

    /// Bytes of a copy with the changes to its argument.
    fn size_of_copy(&self, own: &Borrowed) -> u64 {
        let present = self.program.buffers.size_of(own.buffer).0;
        let copy = self.program.buffer_node(own.buffer);
        let item = self.memory.item_of(own.source as usize);
        let now = item.filter(|&item| self.is_changed(item)).and_then(|item| self.shape(item));
        let (Some(copy), Some(now)) = (copy, now) else { return present };
        let mut changed = copy.clone();
        for (place, &size) in now.node.dimensions.iter().enumerate() {
            if copy.dimensions.get(place) != Some(&size) {
                resize::set_dimension(&mut changed, place, size);
            }
        }
        if copy.element_type != now.node.element_type {
            resize::set_type_of_copy(&mut changed, now.node.element_type);
        }
        resize::resized(present, copy.padded_size(), changed.padded_size())
    }
}

impl Memory {
    /// The time of a program point: twice the heap event, or the point where there is no heap.
    pub(super) fn time_of(&self, point: u32) -> u32 {
        if self.points.is_empty() { point } else { 2 * self.points.partition_point(|&p| p < point) as u32 }
    }
}
