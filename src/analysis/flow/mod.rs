//! Data flow of a program: which results an argument reaches, what loops save and accumulate, and what a temporary was
//! made from. Uses instructions only, never names.

pub mod argument;
mod argument_label;
mod argument_use;
pub mod by_softmax;
pub mod collective;
pub mod copied_state;
pub mod dimensions;
pub mod held;
mod kernel;
pub mod label;
mod like_weights;
pub mod loops;
pub mod loss_in_parts;
mod made_from;
pub mod made_of;
pub mod next_value;
pub mod norm_of_all;
mod operation;
pub mod other_result;
mod partial_sum;
pub mod product;
mod read_by;
pub mod results;
pub mod softmax;
pub mod steps;
mod summed;
mod words;

use crate::model::{BufferId, ComputationId, InstructionId, NO_ROW, Opcode, Program, ShapeIndex, ShapeNode};

/// Most steps to trace back.
const MAX_STEPS: usize = 64;

/// Deepest nesting of loops and calls to trace back through.
const MAX_DEPTH: u32 = 6;

/// Opcode of an instruction.
fn opcode(program: &Program, at: InstructionId) -> Opcode {
    program.instructions.opcode.get(at.index()).copied().unwrap_or_default()
}

/// An operand of an instruction.
fn operand(program: &Program, at: InstructionId, place: usize) -> Option<InstructionId> {
    program.instructions.operands_of(at).get(place).filter(|&&row| row != NO_ROW).map(|&row| InstructionId(row))
}

/// Root of a computation.
pub(super) fn root(program: &Program, computation: ComputationId) -> Option<InstructionId> {
    program.computations.get(computation.index()).map(|c| c.root).filter(|&row| row != NO_ROW).map(InstructionId)
}

/// Whether an instruction only hands on what it reads: from one memory to another, in parts or as it is.
#[must_use]
pub fn hands_on(program: &Program, at: InstructionId) -> bool {
    match opcode(program, at) {
        Opcode::COPY_START
        | Opcode::COPY_DONE
        | Opcode::ASYNC_START
        | Opcode::ASYNC_DONE
        | Opcode::BITCAST
        | Opcode::GET_TUPLE_ELEMENT => true,
        Opcode::CUSTOM_CALL => program.joins_slices(at),
        _ => false,
    }
}

/// Body of a loop: of its two computations the one that returns the loop's state.
#[must_use]
pub fn body(program: &Program, at: InstructionId) -> Option<ComputationId> {
    let parts = program.shape_of(at)?.nodes.len();
    program.instructions.called_by(at).iter().copied().find(|&computation| {
        root(program, computation)
            .and_then(|root| program.shape_of(root))
            .is_some_and(|shape| shape.root().is_tuple() && shape.nodes.len() == parts)
    })
}

/// The array at a shape index of an instruction's value.
#[must_use]
pub fn node_at<'a>(program: &'a Program, at: InstructionId, index: &[i64]) -> Option<&'a ShapeNode> {
    let shape = program.shape_of(at)?;
    shape.nodes.get(shape.find(index)? as usize)
}

/// A value: an instruction and a shape index into its tuple.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value {
    /// The instruction.
    pub at: InstructionId,
    /// The shape index in its tuple; empty for an array.
    pub index: ShapeIndex,
}

/// As the derived one, which would copy the index number by number.
impl Clone for Value {
    fn clone(&self) -> Self {
        Self { at: self.at, index: ShapeIndex::from_slice(&self.index) }
    }
}

impl Value {
    /// The whole value of an instruction.
    #[must_use]
    pub fn whole(at: InstructionId) -> Self {
        Self { at, index: ShapeIndex::new() }
    }

    /// The value that a buffer holds; `None` if no instruction defines it.
    #[must_use]
    pub fn of_buffer(program: &Program, buffer: BufferId) -> Option<Self> {
        Some(Self { at: program.buffers.instruction_of(buffer)?, index: program.buffer_index(buffer) })
    }
}

/// One step back through an instruction that only passes data on: views, copies, casts, prefetches, tuples, barriers.
/// `None` if the value is computed.
#[must_use]
pub fn handed_on(program: &Program, value: &Value) -> Option<Value> {
    let Value { at, index } = value;
    let at = *at;
    let to = |index: &[i64]| Some(Value { at: operand(program, at, 0)?, index: index.into() });
    match opcode(program, at) {
        Opcode::GET_TUPLE_ELEMENT => {
            let mut inner: ShapeIndex = smallvec::smallvec![i64::from(*program.instructions.argument.get(at.index())?)];
            inner.extend_from_slice(index);
            to(&inner)
        }
        Opcode::TUPLE => {
            let (&first, rest) = index.split_first()?;
            Some(Value { at: operand(program, at, usize::try_from(first).ok()?)?, index: rest.into() })
        }
        Opcode::OPTIMIZATION_BARRIER | Opcode::OPT_BARRIER | Opcode::DOMAIN | Opcode::ADD_DEPENDENCY => to(index),
        // The destination and the source of a copy hold the same.
        Opcode::COPY_START if index.first().is_none_or(|&part| part < 2) => to(&[]),
        Opcode::COPY | Opcode::COPY_DONE | Opcode::BITCAST => to(&[]),
        Opcode::ASYNC_UPDATE => to(index),
        Opcode::FUSION => is_copy(program, at).then(|| to(&[])).flatten(),
        _ => match program.opcode_name(at) {
            "convert" | "reshape" | "transpose" | "bitcast-convert" | "reduce-precision" => to(&[]),
            _ => None,
        },
    }
}

/// Whether a fusion does nothing but copy what it is given, as those do that fusions for several results hold.
fn is_copy(program: &Program, fusion: InstructionId) -> bool {
    let called = program.instructions.called_by(fusion).first();
    let Some(of) = called.and_then(|called| program.computations.get(called.index())) else { return false };
    // What it is given, and the copy.
    of.end.saturating_sub(of.start) == 2 && program.instructions.opcode.get(of.root as usize) == Some(&Opcode::COPY)
}

/// Follows [`handed_on`] to where the value is computed.
#[must_use]
pub fn computed(program: &Program, value: Value) -> Value {
    let mut value = value;
    for _ in 0..MAX_STEPS {
        match handed_on(program, &value) {
            Some(next) => value = next,
            None => break,
        }
    }
    value
}

/// Whether an instruction is an all-gather, or a part of an asynchronous one.
#[must_use]
pub fn is_all_gather(program: &Program, at: InstructionId) -> bool {
    program.opcode_name(at).starts_with("all-gather")
}

/// The instruction that makes what another one hands on: through views, copies, casts, and fetches of all or a part of it.
#[must_use]
pub fn made_by(program: &Program, at: InstructionId) -> InstructionId {
    let mut value = Value::whole(at);
    for _ in 0..MAX_STEPS {
        let fetched = || operand(program, value.at, 0).filter(|_| hands_on(program, value.at)).map(Value::whole);
        let Some(next) = handed_on(program, &value).or_else(fetched) else { break };
        value = next;
    }
    value.at
}

/// The call that allocates memory for what a loop fills.
pub const ALLOCATE: &str = "AllocateBuffer";

/// Whether a value is an array that holds nothing yet: one number everywhere, or memory that was only allocated.
#[must_use]
pub fn is_blank(program: &Program, value: &Value) -> bool {
    let at = value.at;
    match opcode(program, at) {
        Opcode::CUSTOM_CALL => program.text.custom_call_target(at) == ALLOCATE,
        // What is made of nothing is made of constants.
        Opcode::FUSION => {
            if !program.instructions.operands_of(at).is_empty() {
                return false;
            }
            let root = program.instructions.called_by(at).first().and_then(|&called| root(program, called));
            let inner = root.map(|root| computed(program, Value { at: root, index: value.index.clone() }));
            inner.is_some_and(|inner| {
                program.opcode_name(inner.at) == "broadcast" && is_of_one_number(program, inner.at)
            })
        }
        _ => program.opcode_name(at) == "broadcast",
    }
}

/// Whether a broadcast spreads a single number.
fn is_of_one_number(program: &Program, broadcast: InstructionId) -> bool {
    let from = operand(program, broadcast, 0).and_then(|from| program.shape_of(from));
    from.is_some_and(|shape| shape.root().element_count() == 1)
}

/// The parameter that a value updated in place started as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// The parameter.
    pub parameter: InstructionId,
    /// The shape index in it.
    pub index: ShapeIndex,
    /// Whether a part of it was written on the way.
    pub is_updated: bool,
}

/// The operand that a fusion slices a value from.
fn part_of(program: &Program, value: &Value) -> Option<Value> {
    let &computation = program.instructions.called_by(value.at).first()?;
    let inner = computed(program, Value { at: root(program, computation)?, index: value.index.clone() });
    if !matches!(program.opcode_name(inner.at), "dynamic-slice" | "slice") {
        return None;
    }
    let from = computed(program, Value::whole(operand(program, inner.at, 0)?));
    let place = (opcode(program, from.at) == Opcode::PARAMETER)
        .then(|| program.instructions.argument.get(from.at.index()))??;
    Some(Value::whole(operand(program, value.at, *place as usize)?))
}

/// Traces a value back through instructions that pass it on or update part of it, to a parameter of its computation;
/// `None` if it is computed. Where each device updates its part of an array that all then gather, that is the array.
#[must_use]
pub fn beginning(program: &Program, value: Value, depth: u32) -> Option<Beginning> {
    trace_back(program, value, depth, false)
}

/// As [`beginning`], for the part of an array that one device updates before all gather it.
#[must_use]
pub fn beginning_of_part(program: &Program, value: Value) -> Option<Beginning> {
    trace_back(program, value, 0, true)
}

/// The array whose slices a loop updates one after the other and collects in another array, as a scan over layers does
/// with a cache of all of them.
fn updated_slice_by_slice(program: &Program, value: &Value, depth: u32) -> Option<Value> {
    let root = root(program, body(program, value.at)?)?;
    let end = computed(program, Value { at: root, index: value.index.clone() });
    let (own, slice) = loops::slice_written(program, &end)?;
    let from = trace_back(program, slice, depth + 1, true)?;
    let is_other = own == value.index && from.is_updated && from.index != value.index;
    let alike = |index: &[i64]| node_at(program, value.at, index).map(|node| (node.element_type, &node.dimensions));
    if !is_other || alike(&from.index)? != alike(&value.index)? || !loops::unchanged(program, value.at, &from.index) {
        return None;
    }
    Some(Value { at: operand(program, value.at, 0)?, index: from.index })
}

fn trace_back(program: &Program, value: Value, depth: u32, is_part: bool) -> Option<Beginning> {
    let mut value = value;
    let mut is_updated = false;
    let mut is_gathered = is_part;
    for _ in 0..MAX_STEPS {
        if let Some(next) = handed_on(program, &value) {
            value = next;
            continue;
        }
        let at = value.at;
        match opcode(program, at) {
            Opcode::PARAMETER => return Some(Beginning { parameter: at, index: value.index, is_updated }),
            Opcode::DYNAMIC_UPDATE_SLICE | Opcode::SCATTER => {
                is_updated = true;
                value = Value::whole(operand(program, at, 0)?);
            }
            Opcode::ALL_GATHER_START | Opcode::ALL_GATHER_DONE => {
                is_gathered = true;
                value = Value::whole(operand(program, at, 0)?);
            }
            _ if program.opcode_name(at) == "all-gather" => {
                is_gathered = true;
                value = Value::whole(operand(program, at, 0)?);
            }
            _ if is_part && matches!(program.opcode_name(at), "dynamic-slice" | "slice") => {
                value = Value::whole(operand(program, at, 0)?);
            }
            Opcode::FUSION if is_gathered && part_of(program, &value).is_some() => {
                value = part_of(program, &value)?;
            }
            Opcode::FUSION | Opcode::CALL if depth < MAX_DEPTH => {
                let &computation = program.instructions.called_by(at).first()?;
                let inner =
                    beginning(program, Value { at: root(program, computation)?, index: value.index }, depth + 1)?;
                is_updated |= inner.is_updated;
                let place = *program.instructions.argument.get(inner.parameter.index())? as usize;
                value = Value { at: operand(program, at, place)?, index: inner.index };
            }
            Opcode::WHILE if depth < MAX_DEPTH => {
                if let Some(from) = updated_slice_by_slice(program, &value, depth) {
                    is_updated = true;
                    value = from;
                    continue;
                }
                let root = root(program, body(program, at)?)?;
                let inner = beginning(program, Value { at: root, index: value.index.clone() }, depth + 1)?;
                if inner.index != value.index {
                    return None;
                }
                is_updated |= inner.is_updated;
                value.at = operand(program, at, 0)?;
            }
            Opcode::CUSTOM_CALL if program.joins_slices(at) => {
                value = Value::whole(argument::fetched_in_slices(program, at)?);
            }
            // A kernel that updates an operand in place declares it.
            Opcode::CUSTOM_CALL => {
                let aliases = program.instructions.output_aliases.of(at.0);
                let alias = aliases.iter().find(|alias| alias.output_index == value.index)?;
                is_updated = true;
                value = Value {
                    at: operand(program, at, usize::try_from(alias.operand).ok()?)?,
                    index: alias.operand_index.clone(),
                };
            }
            _ => return None,
        }
    }
    None
}
