//! Definition and uses of a buffer's value, computed for one buffer at a time.

use super::LiveRanges;
use crate::model::{BufferId, FastMap, InstructionId, NO_ROW, Opcode, Program, ShapeIndex};

/// Where a value occurs and is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// Instructions whose result contains it, the defining one first: (point, instruction row).
    pub positions: Vec<(u32, u32)>,
    /// Instructions that read it: (point, instruction row), ascending.
    pub readers: Vec<(u32, u32)>,
}

impl LiveRanges {
    /// Where a buffer's value occurs and is read. Scans the whole sequence.
    #[must_use]
    pub fn uses_of(&self, program: &Program, buffer: BufferId) -> Uses {
        let mut uses = Uses::default();
        let (Some(&instruction), Some(&node)) =
            (program.buffers.instruction.get(buffer.index()), program.buffers.node.get(buffer.index()))
        else {
            return uses;
        };
        if instruction == NO_ROW || node == NO_ROW {
            return uses;
        }
        let Some(own) = self.values.position(&self.flat, instruction, node) else { return uses };
        let value = self.values.value[own as usize];
        for (time, &row) in self.flat.sequence.iter().enumerate() {
            let time = time as u32;
            if self.values.positions_at(time).any(|position| self.values.value[position as usize] == value) {
                uses.positions.push((time, row));
            }
            let Some(&opcode) = program.instructions.opcode.get(row as usize) else { continue };
            if matches!(opcode, Opcode::TUPLE | Opcode::DOMAIN) {
                continue;
            }
            let whole = !matches!(opcode, Opcode::GET_TUPLE_ELEMENT | Opcode::COPY | Opcode::PARAMETER);
            let reads = program.instructions.operands_of(InstructionId(row)).iter().any(|&operand| {
                let Some(operand_time) = (operand != NO_ROW).then(|| self.flat.time_of(operand)).flatten() else {
                    return false;
                };
                let mut positions = self.values.positions_at(operand_time);
                if !whole {
                    positions.end = positions.end.min(positions.start + 1);
                }
                positions.into_iter().any(|position| self.values.value[position as usize] == value)
            });
            if reads {
                uses.readers.push((time, row));
            }
        }
        uses
    }
}

impl LiveRanges {
    /// Every read of a buffer's value in the order of the program: (buffer row, point, reading instruction). Tuples and
    /// views read nothing.
    #[must_use]
    pub fn reads(&self, program: &Program) -> Vec<(u32, u32, u32)> {
        let mut reads = Vec::new();
        for (time, &row) in self.flat.sequence.iter().enumerate() {
            let Some(&opcode) = program.instructions.opcode.get(row as usize) else { continue };
            if matches!(
                opcode,
                Opcode::TUPLE | Opcode::DOMAIN | Opcode::GET_TUPLE_ELEMENT | Opcode::BITCAST | Opcode::PARAMETER
            ) {
                continue;
            }
            for &operand in program.instructions.operands_of(InstructionId(row)) {
                let Some(operand_time) = (operand != NO_ROW).then(|| self.flat.time_of(operand)).flatten() else {
                    continue;
                };
                for position in self.values.positions_at(operand_time) {
                    let value = self.values.value.get(position as usize).copied().unwrap_or(NO_ROW);
                    if let Some(&buffer) = self.buffer_at.get(value as usize).filter(|&&buffer| buffer != NO_ROW) {
                        reads.push((buffer, time as u32, row));
                    }
                }
            }
        }
        reads
    }

    /// The buffers of the program's result: (shape index in the result, buffer).
    #[must_use]
    pub fn results(&self, program: &Program) -> Vec<(ShapeIndex, BufferId)> {
        let root = program.entry_computation().map_or(NO_ROW, |c| c.root);
        let Some(shape) = program.shape_of(InstructionId(root)) else { return Vec::new() };
        // Position in the result, by value; those of values that are returned more than once besides.
        let mut wanted = vec![NO_ROW; self.values.value.len()];
        let mut again: FastMap<u32, Vec<u32>> = FastMap::default();
        for (node, leaf) in shape.nodes.iter().enumerate() {
            if !leaf.is_tuple()
                && let Some(position) = self.values.position(&self.flat, root, node as u32)
                && let Some(&value) = self.values.value.get(position as usize)
            {
                match wanted.get_mut(value as usize) {
                    Some(first) if *first == NO_ROW => *first = node as u32,
                    _ => again.entry(value).or_default().push(node as u32),
                }
            }
        }
        let mut found: Vec<(u32, BufferId)> = Vec::new();
        for (row, (&instruction, &node)) in program.buffers.instruction.iter().zip(&program.buffers.node).enumerate() {
            if instruction == NO_ROW || node == NO_ROW {
                continue;
            }
            let Some(own) = self.values.position(&self.flat, instruction, node) else { continue };
            let Some(&first) = wanted.get(own as usize).filter(|&&first| first != NO_ROW) else { continue };
            let others = again.get(&own).into_iter().flatten();
            found.extend(std::iter::once(&first).chain(others).map(|&node| (node, BufferId(row as u32))));
        }
        found.sort_unstable();
        found.into_iter().map(|(node, buffer)| (shape.index_of(node), buffer)).collect()
    }
}
