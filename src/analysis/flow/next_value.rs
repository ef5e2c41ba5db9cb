//! Results that are next values of arguments: in the memory of these, or with memory of their own.

use std::collections::VecDeque;
use std::sync::OnceLock;

use super::argument::fetched_in_slices;
use super::{Value, computed, opcode, operand, root};
use crate::analysis::names::argument::is_nested;
use crate::analysis::once::once;
use crate::model::{BufferId, Category, FastSet, InstructionId, NO_ROW, Opcode, Program, ShapeNode};

/// What follows the path of an argument in the name of what is written in its memory.
pub const IN_PLACE: &str = ", updated in place";

/// What follows the path of an argument in the name of a result with memory of its own that is its next value.
pub const NEXT_VALUE: &str = ", next value";

/// Most buffers of an argument's memory among which the argument is looked for: it comes first in most.
const MOST_BEFORE: usize = 64;

/// Most operations of a fusion to look at for the argument that its result is the next value of.
const MOST_LOOKED_AT: usize = 64;

/// The name of what is written in the memory of an argument and has its elements: the argument's path, and how it is.
pub(super) fn updated_argument(program: &Program, buffer: BufferId) -> Option<String> {
    let allocation = program.allocations.get(program.buffers.allocation_of(buffer)?.index())?;
    let is_parameter = |of: BufferId| {
        let at = program.buffers.instruction_of(of)?;
        (opcode(program, at) == Opcode::PARAMETER && program.is_in_entry(at)).then(|| (of, program.text.op_name(at)))
    };
    let mut assigned = program.assigned_to(allocation).iter().filter(|_| allocation.is_parameter).take(MOST_BEFORE);
    let (own, path) = assigned.find_map(|own| is_parameter(own.buffer)).filter(|own| !own.1.is_empty())?;
    // Before the next value is written, others may lie there.
    let elements = |of: BufferId| program.buffer_node(of).map(ShapeNode::element_count);
    (elements(own) == elements(buffer)).then(|| format!("{path}{IN_PLACE}"))
}

/// The name of a result with memory of its own that is an argument's next value: the path of the argument of its shape and type that
/// comes into it first, going back from it.
pub(super) fn next_value(program: &Program, buffer: BufferId, value: &Value, returned: &Returned) -> Option<String> {
    let allocation = program.allocations.get(program.buffers.allocation_of(buffer)?.index())?;
    // Others may lie there before the result.
    if allocation.category() != Category::Output || !returned.include(program, value) {
        return None;
    }
    argument_of(program, buffer, value).map(|path| format!("{path}{NEXT_VALUE}"))
}

/// What a program returns, looked for when it is first asked for.
#[derive(Debug, Default)]
pub(super) struct Returned(OnceLock<FastSet<Value>>);

impl Returned {
    /// Whether a value is what the program returns, or what that is a copy or a view of.
    fn include(&self, program: &Program, value: &Value) -> bool {
        let find = || {
            let root = program.entry.and_then(|entry| root(program, entry));
            let operands = root.map_or(&[][..], |root| program.instructions.operands_of(root));
            let mut all: FastSet<Value> = FastSet::default();
            all.reserve(operands.len());
            for &row in operands.iter().filter(|&&row| row != NO_ROW) {
                let given = Value::whole(InstructionId(row));
                let made = computed(program, given.clone());
                // A copy has memory of its own.
                if made != given && opcode(program, given.at) != Opcode::GET_TUPLE_ELEMENT {
                    all.insert(given);
                }
                all.insert(made);
            }
            all
        };
        once(&self.0, find).contains(value)
    }
}

/// The path of the argument whose next value a result is.
fn argument_of(program: &Program, buffer: BufferId, value: &Value) -> Option<String> {
    let node = program.buffer_node(buffer).filter(|node| !node.is_tuple())?;
    let path = |at: InstructionId| {
        let is_argument = opcode(program, at) == Opcode::PARAMETER && program.is_in_entry(at);
        let is_alike = program.shape_of(at).is_some_and(|shape| {
            let held = shape.root();
            !held.is_tuple() && held.element_type == node.element_type && held.dimensions == node.dimensions
        });
        (is_argument && is_alike).then(|| program.text.op_name(at)).filter(|path| is_nested(path))
    };
    let source = |at: InstructionId, place: usize| {
        let from = computed(program, Value::whole(operand(program, at, place)?)).at;
        // It may be fetched slice by slice.
        path(fetched_in_slices(program, from).map_or(from, |whole| computed(program, Value::whole(whole)).at))
    };
    if opcode(program, value.at) != Opcode::FUSION {
        return (0..program.instructions.operands_of(value.at).len()).find_map(|place| source(value.at, place));
    }
    let called = *program.instructions.called_by(value.at).first()?;
    let mut start = root(program, called)?;
    for &place in &value.index {
        if opcode(program, start) == Opcode::TUPLE {
            start = operand(program, start, usize::try_from(place).ok()?)?;
        }
    }
    let mut waiting = VecDeque::from([start]);
    let mut seen: FastSet<InstructionId> = FastSet::default();
    while let Some(at) = waiting.pop_front().filter(|_| seen.len() < MOST_LOOKED_AT) {
        if !seen.insert(at) {
            continue;
        }
        if opcode(program, at) == Opcode::PARAMETER {
            let place = usize::try_from(*program.instructions.argument.get(at.index())?).ok()?;
            if let Some(path) = source(value.at, place) {
                return Some(path);
            }
        }
        let operands = program.instructions.operands_of(at).len();
        waiting.extend((0..operands).filter_map(|place| operand(program, at, place)));
    }
    None
}
