//! Arguments of which a loop's state is a copy, in another layout or type, that the loop writes to.

use super::loops::Loops;
use super::{MAX_DEPTH, Value, argument, beginning, body, computed, opcode, operand, root};
use crate::model::{BufferId, InstructionId, Opcode, Program};

/// Ends of the names of operations that write a part of an array.
const WRITES: [&str; 2] = ["/dynamic_update_slice", "/scatter"];

/// The entry argument that an element of a loop's state is a copy of, which the loop writes to slice by slice.
pub(super) fn copied_state(
    program: &Program,
    loops: &Loops,
    at: InstructionId,
    index: &[i64],
) -> Option<InstructionId> {
    let end = Value { at: root(program, body(program, at)?)?, index: index.into() };
    let is_named_so = || {
        let name = loops.op_name(program, computed(program, end.clone()).at);
        WRITES.iter().any(|operation| name.ends_with(operation))
    };
    let own = beginning(program, end.clone(), 0);
    if !own.is_some_and(|own| own.is_updated && own.index[..] == *index) && !is_named_so() {
        return None;
    }
    let mut begin = Value { at: operand(program, at, 0)?, index: index.into() };
    for _ in 0..MAX_DEPTH {
        if let Some(argument) = argument::entry_parameter(program, loops, &begin, false) {
            return Some(argument);
        }
        let from = beginning(program, begin, 0)?;
        let inside = program.computation_of(from.parameter)?;
        if Some(inside) == program.entry {
            return Some(from.parameter);
        }
        begin = Value { at: operand(program, loops.caller(inside)?, 0)?, index: from.index };
    }
    None
}

/// As [`copied_state`], of a buffer that holds an element of a loop's state, as it is or written to, or an argument that
/// was written to.
#[must_use]
pub fn copied_into_loop(program: &Program, loops: &Loops, buffer: BufferId) -> Option<InstructionId> {
    let value = Value::of_buffer(program, buffer)?;
    let at = value.at;
    let of_loop = match opcode(program, at) {
        Opcode::PARAMETER => loops.caller(program.computation_of(at)?)?,
        Opcode::WHILE => at,
        _ => {
            let from = beginning(program, value, 0)?;
            let inside = program.computation_of(from.parameter)?;
            return match loops.caller(inside) {
                Some(caller) if opcode(program, caller) == Opcode::WHILE => {
                    copied_state(program, loops, caller, &from.index)
                }
                _ => (Some(inside) == program.entry && from.is_updated).then_some(from.parameter),
            };
        }
    };
    let is_state = opcode(program, of_loop) == Opcode::WHILE && !value.index.is_empty();
    is_state.then(|| copied_state(program, loops, of_loop, &value.index))?
}
