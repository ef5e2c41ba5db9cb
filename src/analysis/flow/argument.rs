//! The entry argument that a value holds, or holds a part of.

use super::loops::{Loops, Role, given_to};
use super::{Value, handed_on, is_all_gather, opcode, operand};
use crate::model::{InstructionId, NO_ROW, Opcode, Program};

/// What is traced through beside copies, views and casts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Through {
    /// Nothing: the value is the argument.
    Copies,
    /// What gathers the parts of all devices.
    Gathers,
    /// Gathers and slices.
    Slices,
    /// Gathers, slices, lookups and what hands parts to other devices.
    Parts,
}

/// The entry's parameter whose data a value holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The parameter.
    pub parameter: InstructionId,
    /// Whether it was all-gathered on the way.
    pub is_gathered: bool,
}

/// The argument that a value is a whole copy of, in any layout or type, or that was gathered into it from all devices.
#[must_use]
pub fn held(program: &Program, loops: &Loops, value: Value) -> Option<Held> {
    walk(program, loops, value, Through::Gathers)
}

/// As [`held`], or of which it is a slice, such as one layer's weights in a scan.
#[must_use]
pub fn held_or_sliced(program: &Program, loops: &Loops, value: Value) -> Option<Held> {
    walk(program, loops, value, Through::Slices)
}

/// The entry's parameter that a value is a copy of, or with `with_parts` a part of: traced through copies, casts, loop
/// state, and with `with_parts` slices and gathers.
#[must_use]
pub fn entry_parameter(program: &Program, loops: &Loops, value: &Value, with_parts: bool) -> Option<InstructionId> {
    let through = if with_parts { Through::Parts } else { Through::Copies };
    walk(program, loops, value.clone(), through).map(|held| held.parameter)
}

fn walk(program: &Program, loops: &Loops, value: Value, through: Through) -> Option<Held> {
    let mut value = value;
    let mut is_gathered = false;
    for _ in 0..super::MAX_STEPS {
        let at = value.at;
        match opcode(program, at) {
            Opcode::PARAMETER => {
                let computation = program.computation_of(at)?;
                if Some(computation) == program.entry {
                    return Some(Held { parameter: at, is_gathered });
                }
                let caller = loops.caller(computation).or_else(|| loops.start(computation))?;
                if opcode(program, caller) == Opcode::WHILE {
                    let part = loops.part(caller, &value.index)?;
                    if part.role != Role::Unchanged {
                        return None;
                    }
                    value.at = operand(program, caller, 0)?;
                } else {
                    let place = *program.instructions.argument.get(at.index())? as usize;
                    value.at = given_to(program, caller, place)?;
                }
            }
            Opcode::WHILE if loops.part(at, &value.index).is_some_and(|p| p.role == Role::Unchanged) => {
                value.at = operand(program, at, 0)?;
            }
            _ => {
                is_gathered |= is_all_gather(program, at);
                value = step_back(program, &value, through)?;
            }
        }
    }
    None
}

/// One step back inside a computation to what a value is a copy, or a part, of; `None` if it is computed or a parameter.
fn step_back(program: &Program, value: &Value, through: Through) -> Option<Value> {
    if let Some(next) = handed_on(program, value) {
        return Some(next);
    }
    let at = value.at;
    let (with_parts, with_slices) = (through == Through::Parts, matches!(through, Through::Slices | Through::Parts));
    let first = || operand(program, at, 0).map(Value::whole);
    match opcode(program, at) {
        Opcode::FUSION => {
            let passed = || passed_by(program, value, with_slices);
            // Of several that a fusion makes, each is of its own operand.
            let moved = if value.index.is_empty() {
                moved_by(program, at, with_slices).or_else(passed)
            } else {
                passed().or_else(|| moved_by(program, at, with_slices))
            };
            moved.map(Value::whole)
        }
        Opcode::CUSTOM_CALL if with_parts && program.instructions.operands_of(at).len() == 1 => first(),
        Opcode::CUSTOM_CALL if program.joins_slices(at) => {
            let whole = fetched_in_slices(program, at).map(Value::whole);
            whole.or_else(|| first().filter(|_| with_slices))
        }
        Opcode::ASYNC_START if with_parts || (with_slices && fetches_slice(program, at)) => first(),
        Opcode::ASYNC_DONE if with_slices => first(),
        Opcode::COLLECTIVE_PERMUTE | Opcode::COLLECTIVE_PERMUTE_START | Opcode::COLLECTIVE_PERMUTE_DONE
            if with_parts =>
        {
            first()
        }
        _ if through != Through::Copies && is_all_gather(program, at) => first(),
        _ if with_slices && matches!(program.opcode_name(at), "dynamic-slice" | "slice") => first(),
        _ if with_parts && program.opcode_name(at) == "gather" => first(),
        _ => None,
    }
}

/// Whether an asynchronous operation fetches a slice.
pub(super) fn fetches_slice(program: &Program, start: InstructionId) -> bool {
    let called = program.instructions.called_by(start).first();
    called.and_then(|&called| super::root(program, called)).is_some_and(|root| program.opcode_name(root) == "slice")
}

/// The array that an operation holds whole because it was fetched slice by slice: every operand is a slice of this one
/// array, or of its bytes, and together they have as many elements as it has.
#[must_use]
pub fn fetched_in_slices(program: &Program, at: InstructionId) -> Option<InstructionId> {
    if !program.joins_slices(at) {
        return None;
    }
    let elements = |at: InstructionId| program.shape_of(at).map_or(0, |shape| shape.root().element_count());
    let (mut whole, mut fetched) = (None, 0u64);
    for place in 0..program.instructions.operands_of(at).len() {
        let mut slice = operand(program, at, place)?;
        fetched = fetched.saturating_add(elements(slice));
        if opcode(program, slice) == Opcode::ASYNC_DONE {
            slice = operand(program, slice, 0)?;
        }
        let is_slice = match opcode(program, slice) {
            Opcode::ASYNC_START => fetches_slice(program, slice),
            _ => program.opcode_name(slice) == "slice",
        };
        if !is_slice {
            return None;
        }
        let from = operand(program, slice, 0)?;
        if whole.is_some_and(|whole| whole != from) {
            return None;
        }
        whole = Some(from);
    }
    let whole = whole.filter(|&whole| fetched == elements(whole))?;
    if fetched == elements(at) {
        return Some(whole);
    }
    // Fetched as bytes, padding and all: those of the array before it, perhaps an element of a tuple.
    let node = |at: InstructionId| program.shape_of(at).map(crate::model::Shape::root);
    let own = node(at)?;
    let is_alike = |array: InstructionId| {
        node(array).is_some_and(|node| (node.element_type, &node.dimensions) == (own.element_type, &own.dimensions))
    };
    let mut array = whole;
    for _ in 0..super::MAX_STEPS {
        if is_alike(array) {
            return Some(array);
        }
        array = handed_on(program, &Value::whole(array)).filter(|next| next.index.is_empty())?.at;
    }
    None
}

/// The operand that a fusion passes on, cast at most or with `with_parts` a slice of it, beside what it computes: a step that
/// needs the norm of its weights casts them at once, and a scan those of its layer.
fn passed_by(program: &Program, value: &Value, with_parts: bool) -> Option<InstructionId> {
    let [called] = program.instructions.called_by(value.at) else { return None };
    let mut from = Value { at: super::root(program, *called)?, index: value.index.clone() };
    for _ in 0..super::MAX_STEPS {
        from = super::computed(program, from);
        let is_part = with_parts && matches!(program.opcode_name(from.at), "dynamic-slice" | "slice");
        if !is_part {
            break;
        }
        from = Value::whole(operand(program, from.at, 0)?);
    }
    let place = *program.instructions.argument.get(from.at.index())? as usize;
    (opcode(program, from.at) == Opcode::PARAMETER).then(|| operand(program, value.at, place))?
}

/// The largest operand of a fusion that only moves, casts and (with `with_parts`) slices it; `None` if the fusion
/// computes anything. Scalars in it are indices.
pub(crate) fn moved_by(program: &Program, at: InstructionId, with_parts: bool) -> Option<InstructionId> {
    moved_within(program, at, with_parts, DEEPEST_FUSION)
}

/// Most fusions inside each other that are looked into.
pub(super) const DEEPEST_FUSION: usize = 4;

fn moved_within(program: &Program, at: InstructionId, with_parts: bool, deepest: usize) -> Option<InstructionId> {
    let [called] = program.instructions.called_by(at) else { return None };
    let computation = program.computations.get(called.index())?;
    let size = |at: InstructionId| program.shape_of(at).map_or(0, |shape| shape.root().element_count());
    let moves = |inner: InstructionId| {
        let name = program.opcode_name(inner);
        matches!(name, "parameter" | "convert" | "bitcast" | "copy" | "transpose" | "reshape" | "constant")
            || (with_parts && (matches!(name, "dynamic-slice" | "slice") || size(inner) <= 1))
            || (name == "fusion" && deepest > 0 && moved_within(program, inner, with_parts, deepest - 1).is_some())
    };
    // From the result back, where what is computed mostly stands.
    if !(computation.start..computation.end).rev().map(InstructionId).all(moves) {
        return None;
    }
    let operands = program.instructions.operands_of(at).iter().filter(|&&row| row != NO_ROW);
    let largest = operands.map(|&row| InstructionId(row)).max_by_key(|&row| (size(row), std::cmp::Reverse(row)))?;
    (with_parts || size(largest) == size(at)).then_some(largest)
}
