//! Matrix products and convolutions, and the fusions and library calls that make them.

use super::opcode;
use crate::model::{InstructionId, Opcode, Program};

/// Whether an instruction is a matrix product or convolution by a library of the GPU's maker.
fn is_library_product(program: &Program, at: InstructionId) -> bool {
    opcode(program, at) == Opcode::CUSTOM_CALL && {
        let target = program.text.custom_call_target(at);
        target.starts_with("__cublas$") || target.starts_with("__cudnn$conv")
    }
}

/// Whether an instruction is a matrix product or convolution, or a fusion around one.
#[must_use]
pub fn is_product(program: &Program, at: InstructionId) -> bool {
    is_product_within(program, at, super::argument::DEEPEST_FUSION)
}

fn is_product_within(program: &Program, at: InstructionId, deepest: usize) -> bool {
    if matches!(program.opcode_name(at), "dot" | "convolution") || is_library_product(program, at) {
        return true;
    }
    let is_fusion = opcode(program, at) == Opcode::FUSION && deepest > 0;
    let called = || program.instructions.called_by(at).iter().filter_map(|c| program.computations.get(c.index()));
    is_fusion
        && called().any(|c| (c.start..c.end).any(|row| is_product_within(program, InstructionId(row), deepest - 1)))
}

/// Whether a program has a matrix product, a convolution, a lookup in a table or a kernel of its own: without any, nothing
/// in it is a weight.
#[must_use]
pub fn may_have_weights(program: &Program) -> bool {
    program.instructions.ids().any(|at| {
        matches!(program.opcode_name(at), "dot" | "convolution" | "ragged-dot" | "gather")
            || is_library_product(program, at)
            || is_kernel(program, at)
    })
}

/// Whether an instruction is a kernel that the program brings along, as of Pallas.
#[must_use]
pub fn is_kernel(program: &Program, at: InstructionId) -> bool {
    opcode(program, at) == Opcode::CUSTOM_CALL && program.text.custom_call_target(at) == "tpu_custom_call"
}
