//! What the forward pass passes on in on-chip memory, and its copies in HBM that are kept for the backward pass.

use crate::analysis::live_range::LiveRanges;
use crate::analysis::packing::Families;
use crate::model::{BufferId, FastMap, InstructionId, MemorySpace, Opcode, Program};

/// A value in on-chip memory that one layer makes and another reads, with no copy in HBM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnChip {
    /// Its bytes.
    pub bytes: u64,
    /// Time at which it is made.
    pub made: u32,
    /// The layer that reads it.
    pub layer: u32,
}

/// Values in on-chip memory of which HBM has a copy.
#[derive(Debug, Default)]
pub(super) struct Evicted {
    /// The family of the copy, by buffer.
    family_of: FastMap<u32, u32>,
    /// Program point at which the value is made, by family of the copy.
    made: FastMap<u32, u32>,
}

impl Evicted {
    /// Looks for copies, by the reads of the forward pass.
    pub fn new(program: &Program, live: &LiveRanges, families: &Families, forward: &[(u32, u32, u32)]) -> Self {
        let copies = families.list.iter().zip(0u32..).filter_map(|(family, row)| {
            let at = program.buffers.instruction_of(family.root)?;
            (program.instructions.opcode.get(at.index()) == Some(&Opcode::COPY_START)).then_some((at.0, row))
        });
        let copies: FastMap<u32, u32> = copies.collect();
        let mut found = Self::default();
        for &(buffer, _, reader) in forward {
            if let Some(&family) = copies.get(&reader)
                && is_on_chip(program, BufferId(buffer))
                && let Some((made, _)) = live.of(BufferId(buffer))
            {
                found.family_of.entry(buffer).or_insert(family);
                found.made.entry(family).or_insert(made);
            }
        }
        found
    }

    /// The family that holds a buffer, or its copy.
    pub fn family(&self, families: &Families, buffer: u32) -> Option<usize> {
        families.of(BufferId(buffer)).or_else(|| self.family_of.get(&buffer).map(|&family| family as usize))
    }

    /// Program point at which the value is made of which a family is a copy.
    pub fn made(&self, family: usize) -> Option<u32> {
        self.made.get(&(family as u32)).copied()
    }
}

/// Whether a buffer is in memory of the chip itself.
fn is_on_chip(program: &Program, buffer: BufferId) -> bool {
    let allocation = program.buffers.allocation_of(buffer).and_then(|at| program.allocations.get(at.index()));
    allocation.is_some_and(|allocation| matches!(allocation.color, MemorySpace::VMEM | MemorySpace::CMEM))
}

/// The instruction that computes a buffer in memory of the chip itself; `None` for copies of what is elsewhere.
pub(super) fn computed_on_chip(program: &Program, buffer: BufferId) -> Option<InstructionId> {
    let at = program.buffers.instruction_of(buffer).filter(|_| is_on_chip(program, buffer))?;
    let is_computed = program.instructions.opcode.get(at.index()) == Some(&Opcode::FUSION)
        || matches!(program.opcode_name(at), "dot" | "convolution" | "add");
    is_computed.then_some(at)
}
