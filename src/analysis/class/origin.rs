//! Traces a temporary to the argument whose data it holds: through copies, casts, prefetches, views, gathers and loop
//! state, as long as the number of elements stays the same.

use crate::analysis::flow::argument::fetched_in_slices;
use crate::model::{BufferId, InstructionId, NO_ROW, Opcode, Program, ShapeNode};

/// Most operations to trace back through.
const MAX_STEPS: usize = 32;

/// The argument whose data a temporary holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Number of the entry argument.
    pub argument: i64,
    /// Whether it was all-gathered on the way.
    pub is_gathered: bool,
}

/// The argument that a buffer's data comes from, if it comes from one alone.
pub fn of(program: &Program, buffer: BufferId) -> Option<Origin> {
    let mut at = program.buffers.instruction_of(buffer)?;
    let mut index = program.buffer_index(buffer);
    let elements = program.buffer_node(buffer).filter(|node| !node.is_tuple()).map(ShapeNode::element_count)?;
    let entry = program.entry_computation()?;
    let mut is_gathered = false;
    for _ in 0..MAX_STEPS {
        let row = at.index();
        let opcode = *program.instructions.opcode.get(row)?;
        if opcode == Opcode::PARAMETER {
            let is_of_entry = (entry.start..entry.end).contains(&(row as u32));
            let argument = i64::from(*program.instructions.argument.get(row)?);
            let held = program.shape_of(at)?.root();
            let is_whole = is_gathered || (!held.is_tuple() && held.element_count() == elements);
            return (is_of_entry && index.is_empty() && is_whole).then_some(Origin { argument, is_gathered });
        }
        let operands = program.instructions.operands_of(at);
        let operand = |place: usize| operands.get(place).filter(|&&row| row != NO_ROW).map(|&row| InstructionId(row));
        match opcode {
            Opcode::GET_TUPLE_ELEMENT => {
                index.insert(0, i64::from(*program.instructions.argument.get(row)?));
                at = operand(0)?;
            }
            Opcode::TUPLE if !index.is_empty() => {
                let place = usize::try_from(index.remove(0)).ok()?;
                at = operand(place)?;
            }
            Opcode::OPTIMIZATION_BARRIER | Opcode::OPT_BARRIER => at = operand(0)?,
            // The destination and the source of a copy hold the same.
            Opcode::COPY_START if index.first().is_none_or(|&part| part < 2) => {
                index.clear();
                at = operand(0)?;
            }
            Opcode::COPY | Opcode::COPY_DONE | Opcode::BITCAST => {
                index.clear();
                at = operand(0)?;
            }
            Opcode::ALL_GATHER_START | Opcode::ALL_GATHER_DONE => {
                is_gathered = true;
                index.clear();
                at = operand(0)?;
            }
            Opcode::CUSTOM_CALL => at = fetched_in_slices(program, at)?,
            // Unchanged loop state is the loop's operand.
            Opcode::WHILE if !index.is_empty() => at = carried(program, at, &index)?,
            _ => match program.opcode_name(at) {
                "all-gather" => {
                    is_gathered = true;
                    index.clear();
                    at = operand(0)?;
                }
                "convert" | "transpose" | "reshape" => at = operand(0)?,
                // One array in, one array of as many elements out: a cast, a change of layout.
                "fusion" if operands.len() == 1 && index.is_empty() => {
                    let next = operand(0)?;
                    let count = |id: InstructionId| {
                        program
                            .shape_of(id)
                            .map(crate::model::Shape::root)
                            .filter(|n| !n.is_tuple())
                            .map(ShapeNode::element_count)
                    };
                    if count(next)? != count(at)? || !is_cast(program, at) {
                        return None;
                    }
                    at = next;
                }
                _ => return None,
            },
        }
    }
    None
}

/// Whether a fusion only casts and moves its operands.
fn is_cast(program: &Program, fusion: InstructionId) -> bool {
    let called = program.instructions.called_by(fusion);
    let [inner] = called else { return false };
    let Some(computation) = program.computations.get(inner.index()) else { return false };
    (computation.start..computation.end).all(|row| {
        matches!(
            program.opcode_name(InstructionId(row)),
            "parameter" | "convert" | "bitcast" | "copy" | "transpose" | "reshape"
        )
    })
}

/// The loop's operand for a part of its state that the body passes on unchanged.
fn carried(program: &Program, at: InstructionId, index: &[i64]) -> Option<InstructionId> {
    for &called in program.instructions.called_by(at) {
        let computation = program.computations.get(called.index())?;
        let root = InstructionId(computation.root);
        if program.instructions.opcode.get(root.index()) != Some(&Opcode::TUPLE) {
            continue;
        }
        let place = usize::try_from(*index.first()?).ok()?;
        let element = *program.instructions.operands_of(root).get(place)?;
        if element == NO_ROW {
            return None;
        }
        let is_same = program.instructions.opcode.get(element as usize) == Some(&Opcode::GET_TUPLE_ELEMENT)
            && program.instructions.argument.get(element as usize).map(|&part| part as usize) == Some(place)
            && program
                .instructions
                .operands_of(InstructionId(element))
                .first()
                .is_some_and(|&from| program.instructions.opcode.get(from as usize) == Some(&Opcode::PARAMETER));
        if !is_same {
            return None;
        }
    }
    let first = *program.instructions.operands_of(at).first()?;
    (first != NO_ROW).then_some(InstructionId(first))
}
