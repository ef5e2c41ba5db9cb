//! The name of an array that a fusion makes beside what it is named for: that of its own operation inside the fusion.

use super::{Value, computed, opcode, operand, root};
use crate::analysis::names::plain::is_plain;
use crate::analysis::names::{lookup, scope};
use crate::model::{Opcode, Program};

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
    let made = computed(program, value.clone());
    let [called] = program.instructions.called_by(made.at) else { return None };
    let tuple = root(program, *called).filter(|_| opcode(program, made.at) == Opcode::FUSION)?;
    let place = usize::try_from(*made.index.first()?).ok()?;
    let element = operand(program, tuple, place).filter(|_| opcode(program, tuple) == Opcode::TUPLE)?;
    let own = computed(program, Value::whole(element)).at;
    if program.opcode_name(own) == "reduce" {
        return None;
    }
    let name = lookup::op_name(program, own);
    (!is_plain(&name) && name != op_name).then_some(name)
}
