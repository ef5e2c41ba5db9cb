//! Which results of a training step a gradient reaches: those are new weights and optimizer state. What has new values
//! without one, such as a simulation that the step runs too, is state.

use crate::analysis::flow::{Value, computed, root};
use crate::analysis::names::pass::Pass;
use crate::model::{InstructionId, NO_ROW, Opcode, Program};

/// Whether each result depends on something that the backward pass makes, by the passes of the instructions; empty if
/// nothing of the backward pass is known.
pub fn from_gradient(program: &Program, passes: &[Pass]) -> Vec<bool> {
    let results = || {
        let entry = program.entry_computation()?;
        let root = root(program, program.entry?)?;
        Some(((entry.start..entry.end), root))
    };
    let Some((rows, root)) = results().filter(|_| passes.contains(&Pass::Backward)) else { return Vec::new() };
    // Computations come after those that they call.
    let mut has_backward = vec![false; program.computations.len()];
    for (place, computation) in program.computations.iter().enumerate() {
        let is_of_backward = |row: u32| {
            let called = program.instructions.called_by(InstructionId(row));
            passes.get(row as usize) == Some(&Pass::Backward)
                || called.iter().any(|called| has_backward.get(called.index()) == Some(&true))
        };
        has_backward[place] = (computation.start..computation.end).any(is_of_backward);
    }
    // So do instructions after those whose results they read.
    let start = rows.start;
    let mut is_reached = vec![false; rows.len()];
    for row in rows {
        let at = InstructionId(row);
        let is_own = passes.get(row as usize) == Some(&Pass::Backward)
            || program.instructions.called_by(at).iter().any(|called| has_backward.get(called.index()) == Some(&true));
        let reads = |operand: &u32| {
            let place = operand.checked_sub(start).filter(|_| *operand != NO_ROW);
            place.is_some_and(|place| is_reached.get(place as usize) == Some(&true))
        };
        let is_read = program.instructions.operands_of(at).iter().any(reads);
        is_reached[(row - start) as usize] = is_own || is_read;
    }
    // What is returned as it was given, such as weights that are frozen, has no new value.
    let is_unchanged = |row: u32| {
        let from = computed(program, Value::whole(InstructionId(row))).at;
        program.instructions.opcode.get(from.index()) == Some(&Opcode::PARAMETER)
    };
    let of = |row: u32| {
        let place = row.checked_sub(start).filter(|_| row != NO_ROW);
        place.is_none_or(|place| is_reached.get(place as usize) != Some(&false) || is_unchanged(row))
    };
    if program.instructions.opcode.get(root.index()) == Some(&Opcode::TUPLE) {
        program.instructions.operands_of(root).iter().map(|&row| of(row)).collect()
    } else {
        vec![of(root.0)]
    }
}
