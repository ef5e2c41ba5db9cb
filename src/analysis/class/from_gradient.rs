//! Which results of a training step a gradient reaches: those are new weights and optimizer state. What has new values
//! without one, such as a simulation that the step runs too, is state.

use crate::analysis::flow::{Value, computed, root};
use crate::analysis::names::pass::Pass;
use crate::model::{InstructionId, NO_ROW, Opcode, Program};

/// Deepest nesting of calls.
const DEEPEST: usize = 16;

/// Whether each result depends on something that the backward pass makes, by the passes of the instructions; empty if
/// nothing of the backward pass is known.
pub fn from_gradient(program: &Program, passes: &[Pass]) -> Vec<bool> {
    let results = || {
        let entry = program.entry_computation()?;
        let root = root(program, program.entry?)?;
        Some(((entry.start..entry.end), root))
    };
    let Some((rows, root)) = results().filter(|_| passes.contains(&Pass::Backward)) else { return Vec::new() };
    let is_own = |row: u32| passes.get(row as usize) == Some(&Pass::Backward);
    let mut has_backward: Vec<bool> = program.computations.iter().map(|own| (own.start..own.end).any(is_own)).collect();
    let mut calls: Vec<(usize, usize)> = Vec::new();
    for (place, own) in program.computations.iter().enumerate() {
        let called = (own.start..own.end).flat_map(|row| program.instructions.called_by(InstructionId(row)));
        calls.extend(called.map(|called| (place, called.index())));
    }
    // A computation that calls one with a part of the backward pass has it.
    for _ in 0..DEEPEST {
        let mut is_changed = false;
        for &(place, called) in &calls {
            if has_backward.get(called) == Some(&true) && !std::mem::replace(&mut has_backward[place], true) {
                is_changed = true;
            }
        }
        if !is_changed {
            break;
        }
    }
    // So do instructions after those whose results they read.
    let start = rows.start;
    let mut is_reached = vec![false; rows.len()];
    for row in rows {
        let at = InstructionId(row);
        let is_made = is_own(row)
            || program.instructions.called_by(at).iter().any(|called| has_backward.get(called.index()) == Some(&true));
        let reads = |operand: &u32| {
            let place = operand.checked_sub(start).filter(|_| *operand != NO_ROW);
            place.is_some_and(|place| is_reached.get(place as usize) == Some(&true))
        };
        let is_read = program.instructions.operands_of(at).iter().any(reads);
        is_reached[(row - start) as usize] = is_made || is_read;
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
