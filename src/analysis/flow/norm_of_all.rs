//! The norm over the gradients of all weights, as clipping by it takes: no weight is updated before all are there.

use super::loops::Loops;
use super::{Value, computed, opcode};
use crate::model::{FastSet, InstructionId, NO_ROW, Opcode, Program, Shape};

/// Arrays whose sums make the norm of several.
const SEVERAL: usize = 2;

/// Most values looked at behind one root.
const MOST_LOOKED_AT: usize = 4096;

/// Whether a program takes the root of one number that it sums up from several arrays: its optimizer clips, or scales, by
/// the norm over all gradients.
#[must_use]
pub fn takes_norm_of_all(program: &Program, loops: &Loops) -> bool {
    // A bias of one element has a moment of one, whose root Adam takes.
    let has_no_dimensions =
        |at: InstructionId| program.shape_of(at).is_some_and(|shape| shape.root().dimensions.is_empty());
    let is_root = |at: &InstructionId| {
        program.opcode_name(*at) == "sqrt" && has_no_dimensions(*at) && is_number(program, &Value::whole(*at))
    };
    program.instructions.ids().filter(is_root).any(|at| is_of_several(program, loops, at))
}

fn is_number(program: &Program, value: &Value) -> bool {
    let node = super::node_at(program, value.at, &value.index);
    node.is_some_and(|node| node.element_count() <= 1 && node.element_type.is_float())
}

/// Whether a number is summed up from several arrays.
fn is_of_several(program: &Program, loops: &Loops, root: InstructionId) -> bool {
    let mut waiting = vec![Value::whole(root)];
    let mut seen: FastSet<Value> = FastSet::default();
    let mut arrays: FastSet<InstructionId> = FastSet::default();
    while let Some(value) = waiting.pop().map(|value| computed(program, value)) {
        if seen.len() >= MOST_LOOKED_AT || !seen.insert(value.clone()) {
            continue;
        }
        if opcode(program, value.at) == Opcode::PARAMETER {
            waiting.extend(loops.given(program, value.at));
            continue;
        }
        for &row in program.instructions.operands_of(value.at).iter().filter(|&&row| row != NO_ROW) {
            let of = Value::whole(InstructionId(row));
            let is_array = program.shape_of(of.at).map(Shape::root).is_some_and(|node| node.element_count() > 1);
            if is_number(program, &of) || program.shape_of(of.at).is_some_and(|shape| shape.root().is_tuple()) {
                waiting.push(of);
            } else if is_array {
                arrays.insert(computed(program, of).at);
            }
        }
        if arrays.len() >= SEVERAL {
            return true;
        }
    }
    false
}
