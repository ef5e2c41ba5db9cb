//! The name of an array that a fusion makes beside what it is named for: that of its own operation inside the fusion.

use super::{Value, computed, opcode, operand, root};
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::names::plain::is_plain;
use crate::analysis::names::{lookup, scope};
use crate::model::{BufferId, InstructionId, Opcode, Program};

/// What reductions are called; they make less than they read, so that what a fusion makes beside is something else.
const REDUCTIONS: [&str; 3] = ["reduce_", "argmax", "argmin"];

/// The framework op name of a value that is not the reduction which the fusion that makes it is named for, such as the sum
/// that a norm reduces.
pub(super) fn other_result(program: &Program, value: &Value, op_name: &str) -> Option<String> {
    let path = scope::path(op_name);
    let operation = path.last()?;
    if !REDUCTIONS.iter().any(|word| operation.starts_with(word)) {
        return None;
    }
    let own = in_fusion(program, &computed(program, value.clone()))?;
    if program.opcode_name(own) == "reduce" {
        return None;
    }
    let name = lookup::op_name(program, own);
    (!is_plain(&name) && name != op_name).then_some(name)
}

/// What makes one of several results of a fusion, inside of it.
pub(super) fn in_fusion(program: &Program, made: &Value) -> Option<InstructionId> {
    let [called] = program.instructions.called_by(made.at) else { return None };
    let tuple = root(program, *called).filter(|_| opcode(program, made.at) == Opcode::FUSION)?;
    let place = usize::try_from(*made.index.first()?).ok()?;
    let element = operand(program, tuple, place).filter(|_| opcode(program, tuple) == Opcode::TUPLE)?;
    Some(computed(program, Value::whole(element)).at)
}

/// The framework op name of a buffer that a fusion makes beside what a checkpoint computes again, for which it is named,
/// where its own operation is of the backward pass: a gradient.
#[must_use]
pub fn gradient_beside(program: &Program, buffer: BufferId, op_name: &str) -> Option<String> {
    let at = program.buffers.instruction_of(buffer)?;
    if opcode(program, at) != Opcode::FUSION {
        return None;
    }
    // Most fusions have one result.
    let index = program.buffer_index(buffer);
    if index.is_empty() || pass_of(op_name) != Pass::Recomputed {
        return None;
    }
    let own = in_fusion(program, &Value { at, index })?;
    Some(program.text.op_name(own)).filter(|name| pass_of(name) == Pass::Backward)
}
