//! The name of an array that a fusion makes beside what it is named for: that of its own operation inside the fusion.

use super::words::{Label, PARTS, backward};
use super::{Value, computed, opcode, operand, root};
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::names::{lookup, scope};
use crate::model::{BufferId, InstructionId, Opcode, Program};

/// The framework op name of one of several results of a fusion, where the fusion is named for another: the sum that a norm
/// reduces, the input of the next block beside the product that it is added to.
pub(super) fn other_result(program: &Program, value: &Value, op_name: &str) -> Option<String> {
    let own = in_fusion(program, &computed(program, value.clone()))?;
    if opcode(program, own) == Opcode::PARAMETER {
        return None;
    }
    let name = lookup::op_name(program, own);
    (!name.is_empty() && name != op_name).then_some(name)
}

/// The framework op name of the operation that makes a value, also where that is inside a fusion, which has the name of
/// another or none; the fusion's where it has none itself.
#[must_use]
pub fn own_name(program: &Program, value: Value) -> String {
    let made = computed(program, value);
    let whole = || {
        let called =
            program.instructions.called_by(made.at).first().filter(|_| opcode(program, made.at) == Opcode::FUSION);
        Some(computed(program, Value::whole(root(program, *called?)?)).at)
    };
    let name = program.text.op_name(made.at);
    let inside = in_fusion(program, &made).or_else(|| if name.is_empty() { whole() } else { None });
    inside.map(|at| program.text.op_name(at)).filter(|own| !own.is_empty()).unwrap_or(name)
}

/// The label of what a fusion makes beside what it is named for: the sum of a product with the input of its block, or what a
/// norm reduces.
pub(super) fn beside_operation(of_fusion: &str, own: String, operation: &str) -> Label {
    let text = format!("{operation}, computed with {}{}", scope::short(of_fusion, PARTS), backward(&own));
    Label { text, borrowed: own, ..Label::default() }
}

/// Whether a name is that of a container of arguments, such as all there are, and of no argument or part of one.
pub(super) fn is_of_all(program: &Program, name: &str) -> bool {
    let rows = program.entry_computation().map_or(0..0, |entry| entry.start..entry.end).map(InstructionId);
    let parameters = rows.filter(|&at| opcode(program, at) == Opcode::PARAMETER);
    let behind = |path: String| path.strip_prefix(name).map(|rest| rest.starts_with(['[', '.']));
    let found: Vec<bool> = parameters.filter_map(|at| behind(program.text.op_name(at))).collect();
    !found.is_empty() && found.iter().all(|is_container| *is_container)
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

/// Whether nothing reads one of several results of a fusion.
pub(super) fn is_never_read(program: &Program, at: InstructionId, index: &[i64]) -> bool {
    let &[place] = index else { return false };
    let own = program.computation_of(at).and_then(|own| program.computations.get(own.index()));
    let reads = |row: InstructionId| {
        let is_other = || {
            opcode(program, row) == Opcode::GET_TUPLE_ELEMENT
                && program.instructions.argument.get(row.index()).map(|&own| i64::from(own)) != Some(place)
        };
        program.instructions.operands_of(row).contains(&at.0) && !is_other()
    };
    opcode(program, at) == Opcode::FUSION && own.is_some_and(|own| !(at.0 + 1..own.end).map(InstructionId).any(reads))
}
