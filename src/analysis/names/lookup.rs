//! Framework names of a program's instructions, arguments and buffers; a copy has the name of its source.

use rayon::prelude::*;

use super::scope;
use crate::model::{BufferId, FastMap, InstructionId, NO_ROW, Opcode, Program};

/// Longest chain of copies to trace.
const MAX_STEPS: usize = 32;

/// Short name of a buffer: the end of its op name if it has one, else the instruction's name.
#[must_use]
pub fn buffer_name(program: &Program, buffer: BufferId) -> String {
    let op = program.buffers.instruction_of(buffer).map(|i| program.text.op_name(i)).unwrap_or_default();
    if op.is_empty() { program.buffer_name(buffer) } else { scope::short(&op, 3) }
}

/// Framework op name of an instruction; a copy, prefetch or view, or the same data in another order or type, has that of its
/// operand.
#[must_use]
pub fn op_name(program: &Program, mut instruction: InstructionId) -> String {
    for _ in 0..MAX_STEPS {
        let name = program.text.op_name(instruction);
        if !name.is_empty() {
            return name;
        }
        let Some(next) = source(program, instruction) else { break };
        instruction = next;
    }
    String::new()
}

/// Paths of the entry's arguments in the program that was compiled, by their numbers: `params['w']`.
#[must_use]
pub fn argument_paths(program: &Program) -> FastMap<i64, String> {
    let Some(entry) = program.entry_computation() else {
        return FastMap::default();
    };
    let parameters: Vec<u32> = (entry.start..entry.end)
        .filter(|&row| program.instructions.opcode.get(row as usize) == Some(&Opcode::PARAMETER))
        .collect();
    let path = |&row: &u32| {
        let number = i64::from(*program.instructions.argument.get(row as usize)?);
        // One that comes in a tuple has no name.
        let in_tuple = program.are_arguments_in_tuple.then(|| format!("args[{number}]"));
        Some((number, in_tuple.unwrap_or_else(|| program.text.op_name(InstructionId(row)))))
    };
    parameters.par_iter().filter_map(path).collect::<Vec<_>>().into_iter().collect()
}

/// Place of what is written among the operands of a scatter of one array.
const UPDATES: usize = 2;

/// The source of a copy, view or asynchronous operation.
fn source(program: &Program, instruction: InstructionId) -> Option<InstructionId> {
    let operands = program.instructions.operands_of(instruction);
    let first = *operands.first().filter(|&&row| row != NO_ROW)?;
    match *program.instructions.opcode.get(instruction.index())? {
        Opcode::GET_TUPLE_ELEMENT => {
            if program.instructions.opcode.get(first as usize) == Some(&Opcode::TUPLE) {
                let element = program.instructions.argument[instruction.index()] as usize;
                let inner = *program.instructions.operands_of(InstructionId(first)).get(element)?;
                return (inner != NO_ROW).then_some(InstructionId(inner));
            }
            Some(InstructionId(first))
        }
        Opcode::COPY
        | Opcode::COPY_START
        | Opcode::COPY_DONE
        | Opcode::BITCAST
        | Opcode::TUPLE
        | Opcode::ASYNC_START
        | Opcode::ASYNC_UPDATE
        | Opcode::ASYNC_DONE => Some(InstructionId(first)),
        // What was fetched slice by slice.
        Opcode::CUSTOM_CALL if program.joins_slices(instruction) => Some(InstructionId(first)),
        Opcode::FUSION => {
            let called = program.instructions.called_by(instruction).first()?;
            let root = InstructionId(program.computations.get(called.index())?.root);
            // Begins a collective, whose name only the collective has.
            program.begun_or_ended(root).or_else(|| scattered(program, instruction, root))
        }
        _ => matches!(program.opcode_name(instruction), "reshape" | "transpose" | "convert")
            .then_some(InstructionId(first)),
    }
}

/// What a fusion around a scatter, its root, writes into places of an array.
fn scattered(program: &Program, fusion: InstructionId, root: InstructionId) -> Option<InstructionId> {
    let operand = |at: InstructionId, place: usize| {
        let row = program.instructions.operands_of(at).get(place).copied().filter(|&row| row != NO_ROW);
        row.map(InstructionId)
    };
    if program.opcode_name(root) != "scatter" {
        return None;
    }
    let mut written = operand(root, UPDATES)?;
    while program.text.op_name(written).is_empty() {
        written = match program.opcode_name(written) {
            "bitcast" | "reshape" | "transpose" | "convert" => operand(written, 0)?,
            "parameter" => {
                let place = usize::try_from(*program.instructions.argument.get(written.index())?).ok()?;
                return operand(fusion, place);
            }
            _ => return None,
        };
    }
    Some(written)
}

/// Whether an operation's name says that it convolves: a matrix product is a convolution, too, once it is compiled for a TPU.
#[must_use]
pub fn is_convolution(op_name: &str) -> bool {
    ["conv_general_dilated", "convolution", "conv2d", "conv3d"].iter().any(|word| {
        let tail = op_name.len().checked_sub(word.len()).and_then(|at| op_name.as_bytes().get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// Whether an operation's name says that it draws random numbers.
#[must_use]
pub fn is_draw(op_name: &str) -> bool {
    ["bernoulli", "random_bits", "threefry"].iter().any(|word| op_name.contains(word))
}

/// Whether an operation's name is that of what a dropout draws for each element, before it is compared: `max` is the last
/// step of `jax.random.uniform`, and nothing that a dropout does to its input.
#[must_use]
pub fn is_draw_of_dropout(op_name: &str) -> bool {
    let (scopes, operation) = op_name.rsplit_once('/').unwrap_or(("", op_name));
    is_draw(op_name) || (operation == "max" && scopes.to_ascii_lowercase().contains("dropout"))
}

/// Whether an instruction's name shows that XLA's rematerialisation made it.
#[must_use]
pub fn is_rematerialised(program: &Program, instruction: InstructionId) -> bool {
    rematerialised_at(&program.text.instruction_name_bytes(instruction)).is_some()
}

/// Where in an instruction's name begins what XLA's rematerialisation adds; what is before it is the name of the first
/// computation.
#[must_use]
pub fn rematerialised_at(name: &[u8]) -> Option<usize> {
    // Asked of every instruction: the few dots of a name are found faster than a searcher for the word is made.
    memchr::memchr_iter(b'.', name).find(|&at| name[at..].starts_with(b".remat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dropout_draws_is_not_what_it_is_applied_to() {
        for (name, expected) in [
            ("jit(step)/jvp(layer_0)/attention_dropout/max", true),
            ("jit(step)/jvp(layer_0)/Dropout_0/jit(_bernoulli)/jit(_uniform)/max", true),
            ("jit(step)/jvp(layer_0)/attention_dropout/mul", false),
            ("jit(step)/jvp(layer_0)/attention_softmax/max", false),
        ] {
            assert_eq!(is_draw_of_dropout(name), expected, "{name}");
        }
    }
}
