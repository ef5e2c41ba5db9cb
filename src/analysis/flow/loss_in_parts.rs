//! Whether a loop computes a loss in parts: every product in it makes or takes logits.

use super::argument::DEEPEST_FUSION;
use super::loops::is_written_by_users;
use super::{Value, computed, opcode};
use crate::model::{ComputationId, InstructionId, NO_ROW, Opcode, Program, Shape, outline};

/// Whether logits of some dimensions (those above 1, sorted) are made in the body of a loop that has products with such and
/// no others: parts of a sequence go through the loss one after the other. A loop over layers, micro-batches or whole steps
/// has other products.
#[must_use]
pub fn are_in_parts(program: &Program, logits: Value, dimensions: &[i64]) -> bool {
    let made = computed(program, logits).at;
    let Some(body) = program.computation_of(made).filter(|_| !program.is_in_entry(made)) else { return false };
    let (mut own, mut others) = (0, 0);
    count(program, body, DEEPEST_FUSION, &mut |product| {
        let operands = program.instructions.operands_of(product).iter().filter(|&&row| row != NO_ROW);
        let mut all = operands.map(|&row| InstructionId(row)).chain([product]);
        if all.any(|at| outline_of(program, at).is_some_and(|of| of == *dimensions)) {
            own += 1;
        } else {
            others += 1;
        }
    });
    own > 0 && others == 0
}

/// Dimensions above 1 of an array, sorted.
fn outline_of(program: &Program, at: InstructionId) -> Option<Vec<i64>> {
    program
        .shape_of(at)
        .map(Shape::root)
        .filter(|node| node.element_type.is_array())
        .map(|node| outline(&node.dimensions))
}

/// Calls `found` with each matrix product or convolution of a computation and its fusions.
fn count(program: &Program, computation: ComputationId, deepest: usize, found: &mut impl FnMut(InstructionId)) {
    let Some(rows) = program.computations.get(computation.index()).map(|c| c.start..c.end) else { return };
    for at in rows.map(InstructionId) {
        let is_loop = || opcode(program, at) == Opcode::WHILE && is_written_by_users(&program.text.op_name(at));
        // A loop over micro-batches has the layers' loops in it.
        if matches!(program.opcode_name(at), "dot" | "convolution") || is_loop() {
            found(at);
        } else if opcode(program, at) == Opcode::FUSION && deepest > 0 {
            for &called in program.instructions.called_by(at) {
                count(program, called, deepest - 1, found);
            }
        }
    }
}
