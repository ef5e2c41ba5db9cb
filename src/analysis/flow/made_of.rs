//! What a value is made of: the arguments that reach it element by element, without a product or a loop on the way.

use super::argument::fetched_in_slices;
use super::loops::{Loops, Role};
use super::product::is_product;
use super::{Value, handed_on, opcode, operand};
use crate::model::{FastSet, InstructionId, NO_ROW, Opcode, Program};

/// Most values to look at behind one.
const MOST_LOOKED_AT: usize = 256;

/// What a value is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MadeOf {
    /// The entry's parameters, each once, in the order in which they were found.
    pub arguments: Vec<InstructionId>,
    /// Whether it is made of nothing else but constants: not of products, kernels or what loops hold.
    pub is_all: bool,
}

/// What a value is made of, as far as it was followed.
#[must_use]
pub fn made_of(program: &Program, value: Value) -> MadeOf {
    followed(program, None, value)
}

/// As [`made_of`], also out of loops, where these hold all the time what they were given.
#[must_use]
pub fn made_of_outside(program: &Program, loops: &Loops, value: Value) -> MadeOf {
    followed(program, Some(loops), value)
}

/// What a loop was given for a parameter of its body that no step changes.
fn given_to_all_steps(program: &Program, loops: &Loops, value: &Value) -> Option<Value> {
    let caller = loops.caller(program.computation_of(value.at)?)?;
    let part = (opcode(program, caller) == Opcode::WHILE).then(|| loops.part(caller, &value.index))??;
    let is_same = part.role == Role::Unchanged;
    is_same.then(|| Some(Value { at: operand(program, caller, 0)?, index: value.index.clone() }))?
}

fn followed(program: &Program, loops: Option<&Loops>, value: Value) -> MadeOf {
    let mut waiting = std::collections::VecDeque::from([value]);
    let mut seen: FastSet<Value> = FastSet::default();
    let mut found = MadeOf { arguments: Vec::new(), is_all: true };
    while let Some(value) = waiting.pop_front() {
        if seen.len() >= MOST_LOOKED_AT {
            found.is_all = false;
            break;
        }
        if !seen.insert(value.clone()) {
            continue;
        }
        if let Some(next) = handed_on(program, &value) {
            waiting.push_front(next);
            continue;
        }
        let at = value.at;
        match opcode(program, at) {
            Opcode::PARAMETER if program.is_in_entry(at) => {
                if !found.arguments.contains(&at) {
                    found.arguments.push(at);
                }
            }
            Opcode::CUSTOM_CALL => match fetched_in_slices(program, at) {
                Some(whole) => waiting.push_front(Value::whole(whole)),
                None => found.is_all = false,
            },
            Opcode::PARAMETER if loops.is_some() => {
                match loops.and_then(|loops| given_to_all_steps(program, loops, &value)) {
                    Some(given) => waiting.push_front(given),
                    None => found.is_all = false,
                }
            }
            // Which slice it is does not matter.
            _ if loops.is_some() && program.opcode_name(at) == "dynamic-slice" => {
                waiting.extend(operand(program, at, 0).map(Value::whole));
            }
            Opcode::PARAMETER | Opcode::WHILE | Opcode::CALL | Opcode::CONDITIONAL => found.is_all = false,
            _ if is_product(program, at) => found.is_all = false,
            _ => {
                let operands = program.instructions.operands_of(at).iter().filter(|&&row| row != NO_ROW);
                waiting.extend(operands.map(|&row| Value::whole(InstructionId(row))));
            }
        }
    }
    found
}
