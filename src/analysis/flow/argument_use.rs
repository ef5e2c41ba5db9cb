//! What arguments serve whose paths have nothing but numbers (`state[0][17]`, as of Keras, or `args[3]` of a program with
//! thousands of them): the part of the model that reads them, or whose weight they update.

use super::argument::fetches_slice;
use super::results::Flow;
use super::{Value, handed_on, opcode};
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::names::plain::{is_named, named_scopes};
use crate::analysis::names::scope;
use crate::model::{ComputationId, FastMap, FastSet, InstructionId, NO_ROW, Opcode, Program};

/// Most scopes that are said.
const MOST_SCOPES: usize = 3;

/// Fusions in fusions that are looked into.
const MAX_DEPTH: u32 = 3;

/// Operands of an instruction from which on it is not looked into: it moves or updates many arguments at once.
const MOST_OPERANDS: usize = 64;

/// The words for each argument, by its number; for one of a tuple, by its place there.
pub type ArgumentUses = FastMap<i64, String>;

/// Whether a path has nothing but numbers after its first name.
#[must_use]
pub fn is_of_numbers(path: &str) -> bool {
    path.split_once('[').is_some_and(|(_, keys)| {
        keys.ends_with(']') && keys.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'[' | b']'))
    })
}

/// What each of the entry's arguments serves; those of which that is not seen are not among them.
#[must_use]
pub fn argument_uses(program: &Program) -> ArgumentUses {
    let mut uses = read_in(program);
    let flow = Flow::new(program);
    // A weight that is seen only where the optimizer updates it is no part of that.
    let is_seen_in_update =
        |&(number, served): &(i64, i64)| uses.get(&number).is_some_and(|own| uses.get(&served) == Some(own));
    let served = |number: &i64| Some((*number, flow.served(*number)?));
    let only_updated: Vec<i64> =
        flow.arguments.keys().filter_map(served).filter(is_seen_in_update).map(|row| row.1).collect();
    for weight in only_updated {
        uses.remove(&weight);
    }
    // By its own name where the optimizer has a scope: `adam_w for token_embedding`.
    let words = |number: i64| {
        // A cache that is written row by row reaches what later layers write to theirs.
        flow.arguments.get(&number).filter(|own| !own.is_updated_in_place)?;
        let weight = uses.get(&flow.served(number)?)?;
        Some(format!("{} for {weight}", uses.get(&number).map_or("optimizer", String::as_str)))
    };
    let served: Vec<(i64, String)> =
        flow.arguments.keys().filter_map(|&number| Some((number, words(number)?))).collect();
    uses.extend(served);
    uses
}

/// The part of the model that first reads each argument, before the backward pass.
fn read_in(program: &Program) -> ArgumentUses {
    let mut uses = ArgumentUses::default();
    let Some(entry) = program.entry_computation() else { return uses };
    // The argument that an instruction only passes on.
    let mut passed: FastMap<u32, i64> = FastMap::default();
    let mut readers = Readers::default();
    for row in entry.start..entry.end {
        let at = InstructionId(row);
        let operands = program.instructions.operands_of(at);
        if opcode(program, at) == Opcode::PARAMETER {
            // An element of the tuple that holds them all is an argument of its own.
            let number = program.instructions.argument.get(at.index()).copied().map(i64::from);
            let number = number.filter(|_| !program.are_arguments_in_tuple || !operands.is_empty());
            passed.extend(number.map(|number| (row, number)));
            continue;
        }
        if passes_on(program, at) {
            let number = operands.first().and_then(|of| passed.get(of)).copied();
            passed.extend(number.map(|number| (row, number)));
            continue;
        }
        if operands.len() > MOST_OPERANDS {
            continue;
        }
        for (place, operand) in operands.iter().enumerate() {
            let Some(&number) = passed.get(operand).filter(|number| !uses.contains_key(number)) else { continue };
            uses.extend(readers.of(program, at, place, 0).map(|words| (number, words)));
        }
    }
    uses
}

/// Whether an instruction gives its first operand on, fetches it slice by slice, or gathers it from other devices.
fn passes_on(program: &Program, at: InstructionId) -> bool {
    match opcode(program, at) {
        Opcode::ALL_GATHER_START | Opcode::ALL_GATHER_DONE | Opcode::ASYNC_DONE => true,
        Opcode::ASYNC_START => fetches_slice(program, at),
        Opcode::CUSTOM_CALL => program.joins_slices(at),
        _ => handed_on(program, &Value::whole(at)).is_some() || program.opcode_name(at) == "all-gather",
    }
}

/// Who reads what computations are given, each looked for once: the same one may be called from many places.
#[derive(Default)]
struct Readers(FastMap<(u32, usize), Option<String>>);

impl Readers {
    /// The part of the model that an instruction is of that reads an operand; of a fusion, that what reads it inside is of.
    fn of(&mut self, program: &Program, at: InstructionId, place: usize, depth: u32) -> Option<String> {
        let called = program.instructions.called_by(at).first().copied();
        let fused = called.filter(|_| opcode(program, at) == Opcode::FUSION && depth < MAX_DEPTH);
        let inside = fused.and_then(|called| {
            if let Some(known) = self.0.get(&(called.0, place)) {
                return known.clone();
            }
            let found = self.inside(program, called, place, depth + 1);
            self.0.insert((called.0, place), found.clone());
            found
        });
        inside.or_else(|| words(&program.text.op_name(at)))
    }

    fn inside(&mut self, program: &Program, called: ComputationId, place: usize, depth: u32) -> Option<String> {
        let computation = program.computations.get(called.index())?;
        let mut passed: FastSet<u32> = FastSet::default();
        for row in computation.start..computation.end {
            let at = InstructionId(row);
            if opcode(program, at) == Opcode::PARAMETER {
                let number = program.instructions.argument.get(at.index()).copied();
                if number.and_then(|number| usize::try_from(number).ok()) == Some(place) {
                    passed.insert(row);
                }
                continue;
            }
            let operands = program.instructions.operands_of(at);
            let Some(found) = operands.iter().position(|operand| *operand != NO_ROW && passed.contains(operand)) else {
                continue;
            };
            if passes_on(program, at) || program.opcode_name(at) == "broadcast" {
                passed.insert(row);
            } else if let Some(words) = self.of(program, at, found, depth) {
                return Some(words);
            }
        }
        None
    }
}

/// The scopes of an operation of the forward pass, from the last layer's on: `transformer_layer_0/self_attention/query`.
fn words(op_name: &str) -> Option<String> {
    if named_scopes(op_name).is_empty() || !matches!(pass_of(op_name), Pass::Forward | Pass::Unknown) {
        return None;
    }
    let parts = scope::path(op_name);
    let scopes: Vec<&str> = parts.split_last()?.1.iter().copied().filter(|part| is_named(part)).collect();
    let layer = scopes.iter().rposition(|part| scope::numbered(part).is_some());
    let from = layer.unwrap_or_else(|| scopes.len().saturating_sub(2));
    let till = scopes.len().min(from + MOST_SCOPES);
    Some(scopes.get(from..till)?.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_numbers_say_nothing() {
        for path in ["state[0][17]", "args[3]", "x[0]"] {
            assert!(is_of_numbers(path), "{path}");
        }
        for path in ["state", "params['w'][0]", "opt_state[0].mu", "model.layers[0].weight", ""] {
            assert!(!is_of_numbers(path), "{path}");
        }
    }

    #[test]
    fn scopes_are_said_from_the_layer_on() {
        let of = |name: &str| words(name).unwrap_or_default();
        assert_eq!(
            of(
                "jit(train_step)/jvp(llama_backbone)/transformer_layer_0/self_attention/query/bqm,muh->bquh/dot_general"
            ),
            "transformer_layer_0/self_attention/query"
        );
        assert_eq!(of("jit(train_step)/jvp(llama_backbone)/token_embedding/take"), "llama_backbone/token_embedding");
        assert_eq!(of("jit(train_step)/transpose(jvp(llama_backbone))/token_embedding/mul"), "");
        assert_eq!(of("jit(train_step)/mul"), "");
    }
}
