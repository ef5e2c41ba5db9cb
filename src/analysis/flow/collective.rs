//! Collectives: what brings together the parts of an array that devices have, or exchanges them, on its own or beside other
//! work.

use super::argument::fetched_in_slices;
pub use super::is_all_gather;
use super::loops::given_to;
use super::{MAX_STEPS, Value, computed, opcode, operand, root};
use crate::model::{BufferId, Computation, InstructionId, Opcode, Program};

/// Most calls in one another around a collective.
const MOST_CALLS: usize = 3;

/// Whether a program has any collective.
#[must_use]
pub(super) fn has_collectives(program: &Program) -> bool {
    const NAMES: [&str; 5] = ["all-gather", "all-reduce", "all-to-all", "reduce-scatter", "collective-permute"];
    let mut is_one = [false; 256];
    for opcode in program.opcodes.named(|name| NAMES.iter().any(|known| name.starts_with(known))) {
        is_one[usize::from(opcode.0)] = true;
    }
    program.instructions.opcode.iter().any(|opcode| is_one[usize::from(opcode.0)])
}

/// Whether an instruction is a collective permute, or a part of an asynchronous one.
#[must_use]
pub fn is_permute(program: &Program, at: InstructionId) -> bool {
    matches!(
        opcode(program, at),
        Opcode::COLLECTIVE_PERMUTE | Opcode::COLLECTIVE_PERMUTE_START | Opcode::COLLECTIVE_PERMUTE_DONE
    )
}

/// Whether an instruction exchanges data between devices so that each has others' instead of its own.
pub(super) fn is_exchange(program: &Program, at: InstructionId) -> bool {
    let is_all_to_all = |at: InstructionId| program.opcode_name(at).contains("all-to-all");
    let started = || {
        let called = program.instructions.called_by(at);
        called.iter().filter_map(|&called| root(program, called)).any(is_all_to_all)
    };
    is_all_to_all(at) || (opcode(program, at) == Opcode::ASYNC_START && started())
}

/// What an element of a fusion's result is, where the fusion runs a part of a collective beside its own work.
enum Beside {
    /// What the collective takes: a value of the program around.
    Taken(Value),
    /// What the collective makes: the collective, inside the fusion.
    Made(InstructionId),
}

/// What a value is to the collective that its fusion runs beside its own work; `None` for all else. The TPU's compiler
/// begins such a collective in one fusion, carries it on in others, whose results hold its arrays besides their own, and
/// ends it in a last one.
fn beside(program: &Program, value: &Value) -> Option<Beside> {
    if opcode(program, value.at) != Opcode::FUSION {
        return None;
    }
    let &called = program.instructions.called_by(value.at).first()?;
    let root = root(program, called)?;
    let taken = |collective| Some(Beside::Taken(Value::whole(taken_by(program, value.at, collective)?)));
    match (opcode(program, root), &value.index[..]) {
        (Opcode::CUSTOM_CALL, index) => {
            let collective = program.begun_or_ended(root)?;
            if index == [0] { taken(collective) } else { Some(Beside::Made(collective)) }
        }
        (Opcode::TUPLE, &[place]) => {
            let element = operand(program, root, usize::try_from(place).ok()?)?;
            let is_one = |at: &InstructionId| is_collective(program, *at);
            if opcode(program, element) != Opcode::PARAMETER {
                return is_one(&element).then_some(Beside::Made(element));
            }
            let own = program.computations.get(called.index())?;
            let collective = rows(own).find(is_one)?;
            if operand(program, collective, 0) == Some(element) {
                return taken(collective);
            }
            let is_alike =
                program.shape_of(element)?.root().dimensions == program.shape_of(collective)?.root().dimensions;
            is_alike.then_some(Beside::Made(collective))
        }
        _ => None,
    }
}

/// Whether a value is an array of a collective that its fusion carries on beside its own work.
#[must_use]
pub fn is_carried(program: &Program, value: &Value) -> bool {
    beside(program, value).is_some()
}

/// Whether a fusion does nothing but begin a collective.
#[must_use]
pub fn is_begin_alone(program: &Program, fusion: InstructionId) -> bool {
    let root = || root(program, *program.instructions.called_by(fusion).first()?);
    root().is_some_and(|root| {
        program.begun_or_ended(root).is_some() && program.text.custom_call_target(root) == "AsyncCollectiveStart"
    })
}

/// The operand of a fusion that a collective inside of it takes.
fn taken_by(program: &Program, fusion: InstructionId, collective: InstructionId) -> Option<InstructionId> {
    let parameter = operand(program, collective, 0).filter(|&from| opcode(program, from) == Opcode::PARAMETER)?;
    operand(program, fusion, *program.instructions.argument.get(parameter.index())? as usize)
}

/// As [`computed`], also back through fusions that only carry the value on to a collective, and slices that are joined.
fn before_collectives(program: &Program, value: Value) -> Value {
    let mut value = computed(program, value);
    for _ in 0..MAX_STEPS {
        value = match (beside(program, &value), fetched_in_slices(program, value.at)) {
            (Some(Beside::Taken(from)), _) => computed(program, from),
            (None, Some(whole)) => computed(program, Value::whole(whole)),
            _ => break,
        };
    }
    value
}

/// What names an array of a collective that a fusion carries on beside its own work.
pub(super) struct NamedBy {
    /// What it is, or is brought together of.
    pub value: Value,
    /// The collective that makes it; `None` for what one takes.
    pub collective: Option<InstructionId>,
}

/// What names a value, where it is an array of a collective that a fusion carries on, or a copy of one: the fusion's own
/// work does not.
pub(super) fn named_by(program: &Program, value: &Value) -> Option<NamedBy> {
    let found = if opcode(program, value.at) == Opcode::FUSION {
        beside(program, value)?
    } else if is_call_or_copy(program, value.at) {
        let made = computed(program, value.clone());
        if let Some((collective, given)) = called_gather(program, made.at) {
            let value = before_collectives(program, Value::whole(given));
            return Some(NamedBy { value, collective: Some(collective) });
        }
        beside(program, &made).filter(|_| is_copy(program, value.at))?
    } else {
        return None;
    };
    Some(match found {
        Beside::Made(collective) => NamedBy {
            value: gathered_from(program, value.clone()).unwrap_or_else(|| value.clone()),
            collective: Some(collective),
        },
        Beside::Taken(from) => NamedBy { value: before_collectives(program, from), collective: None },
    })
}

fn rows(computation: &Computation) -> impl Iterator<Item = InstructionId> + use<> {
    (computation.start..computation.end).map(InstructionId)
}

/// Whether an instruction gives devices what others have.
fn is_collective(program: &Program, at: InstructionId) -> bool {
    let name = program.opcode_name(at);
    ["all-gather", "all-reduce", "all-to-all", "reduce-scatter", "collective-permute"].contains(&name)
}

/// Whether an instruction is a copy or another view of what it is given.
fn is_copy(program: &Program, at: InstructionId) -> bool {
    matches!(opcode(program, at), Opcode::COPY | Opcode::COPY_START | Opcode::COPY_DONE | Opcode::BITCAST)
}

/// Whether an instruction may be a call that runs asynchronously, or a copy of what one makes.
fn is_call_or_copy(program: &Program, at: InstructionId) -> bool {
    let may_be_call = matches!(
        opcode(program, at),
        Opcode::ASYNC_START | Opcode::ASYNC_UPDATE | Opcode::ASYNC_DONE | Opcode::CUSTOM_CALL
    );
    may_be_call || is_copy(program, at)
}

/// The all-gather that a call makes, which may run asynchronously and call another, and what each device gives to it.
fn called_gather(program: &Program, at: InstructionId) -> Option<(InstructionId, InstructionId)> {
    if !matches!(opcode(program, at), Opcode::ASYNC_START | Opcode::CUSTOM_CALL) {
        return None;
    }
    let mut inner = at;
    for _ in 0..MOST_CALLS {
        inner = root(program, *program.instructions.called_by(inner).first()?)?;
        if is_all_gather(program, inner) {
            return Some((inner, given_to(program, at, 0)?));
        }
    }
    None
}

/// Whether a value is what an all-gather has brought together, or a copy of it: by the opcode of what computes it, by the
/// name of the fusion that it was put into, or by what a fusion runs beside its own work.
#[must_use]
pub fn is_gathered(program: &Program, value: Value) -> bool {
    let value = computed(program, value);
    is_all_gather(program, value.at)
        || program.text.instruction_name(value.at).starts_with("all-gather")
        || called_gather(program, value.at).is_some()
        || matches!(beside(program, &value), Some(Beside::Made(collective)) if is_all_gather(program, collective))
}

/// The part of an array that each device has, of which an all-gather brings together the whole that a value is.
#[must_use]
pub fn gathered_from(program: &Program, value: Value) -> Option<Value> {
    let value = computed(program, value);
    let from = if is_all_gather(program, value.at) {
        operand(program, value.at, 0)?
    } else if let Some((_, given)) = called_gather(program, value.at) {
        given
    } else {
        let Some(Beside::Made(collective)) = beside(program, &value) else { return None };
        if !is_all_gather(program, collective) {
            return None;
        }
        taken_by(program, value.at, collective)?
    };
    Some(before_collectives(program, Value::whole(from)))
}

/// As [`is_gathered`], of a buffer.
#[must_use]
pub fn holds_gathered(program: &Program, buffer: BufferId) -> bool {
    Value::of_buffer(program, buffer).is_some_and(|value| is_gathered(program, value))
}
