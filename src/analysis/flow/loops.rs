//! State of loops over layers: stacks that the forward pass saves, gradients that the backward pass accumulates, the
//! carry, and values that do not change.

use super::argument::fetched_in_slices;
use super::{Value, body, computed, node_at, opcode, operand, root};
use crate::analysis::names::lookup;
use crate::analysis::names::pass::{Pass, pass_of};
use crate::model::{ComputationId, FastMap, InstructionId, Opcode, Program, ShapeIndex, ShapeNode};

/// Role of an element of a loop's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A stack saved by a forward pass: one slice per step, read after the loop.
    Saved,
    /// As [`Self::Saved`], written by a backward pass: the gradients of stacked weights.
    Gradients,
    /// As [`Self::Saved`], in a loop of unknown pass.
    Collected,
    /// Passed from step to step.
    Carry,
    /// Passed on unchanged.
    Unchanged,
}

/// An element of a loop's state.
#[derive(Debug, Clone)]
pub struct Part {
    /// The loop.
    pub at: InstructionId,
    /// Index in its state.
    pub index: ShapeIndex,
    /// What it is.
    pub role: Role,
    /// Number of slices, one per step; 0 if it is not a stack.
    pub layers: i64,
    /// The slice that each step writes, as a value in the loop's body.
    pub written: Option<Value>,
}

/// The loops of a program.
#[derive(Debug, Default)]
pub struct Loops {
    /// Every array in the state of every loop.
    pub parts: Vec<Part>,
    by_place: FastMap<(u32, i64), usize>,
    /// The loop (or call) that runs a computation.
    callers: FastMap<ComputationId, InstructionId>,
    /// What starts a computation that runs asynchronously.
    starts: FastMap<ComputationId, InstructionId>,
    /// The loops of the source program.
    pub(super) users: Vec<InstructionId>,
}

impl Loops {
    /// Analyses every loop.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let mut loops = Self::default();
        for row in 0..program.instructions.len() {
            let at = InstructionId(row as u32);
            match opcode(program, at) {
                Opcode::WHILE => {}
                Opcode::FUSION | Opcode::CALL => {
                    for &called in program.instructions.called_by(at) {
                        loops.callers.insert(called, at);
                    }
                    continue;
                }
                Opcode::ASYNC_START => {
                    loops.starts.extend(program.instructions.called_by(at).iter().map(|&called| (called, at)));
                    continue;
                }
                _ => continue,
            }
            for &called in program.instructions.called_by(at) {
                loops.callers.insert(called, at);
            }
            let Some(root) = body(program, at).and_then(|body| root(program, body)) else { continue };
            let Some(shape) = program.shape_of(at) else { continue };
            let pass = pass_of_loop(program, at);
            let is_users = is_written_by_users(&program.text.op_name(at));
            if is_users {
                loops.users.push(at);
            }
            for place in 0..program.instructions.operands_of(root).len() as i64 {
                let index = smallvec::smallvec![place];
                let is_array = shape.find(&index).is_some_and(|n| !shape.nodes[n as usize].is_tuple());
                if !is_array {
                    continue;
                }
                let mut part = part(program, at, index, root);
                if part.layers > 0 {
                    part.role = match (is_users, pass) {
                        (false, _) => Role::Carry,
                        (true, Pass::Forward) => Role::Saved,
                        (true, Pass::Backward | Pass::Recomputed) => Role::Gradients,
                        (true, Pass::Unknown) => Role::Collected,
                    };
                    if part.role == Role::Carry {
                        part.layers = 0;
                    }
                }
                loops.by_place.insert((at.0, place), loops.parts.len());
                loops.parts.push(part);
            }
        }
        loops.tell_recomputed_stacks(program);
        loops
    }

    /// A loop of the backward pass that recomputes a forward pass saves stacks too: those that another loop then reads
    /// unchanged. What a backward pass itself collects, such as the gradients of each step's input, is none.
    fn tell_recomputed_stacks(&mut self, program: &Program) {
        let read: Vec<(u32, i64)> = self
            .parts
            .iter()
            .filter(|part| part.role == Role::Unchanged)
            .filter_map(|part| {
                let first = Value { at: operand(program, part.at, 0)?, index: part.index.clone() };
                let from = computed(program, first);
                (opcode(program, from.at) == Opcode::WHILE).then(|| Some((from.at.0, *from.index.first()?)))?
            })
            .collect();
        for key in read {
            if let Some(part) = self.by_place.get(&key).and_then(|&row| self.parts.get_mut(row))
                && part.role == Role::Gradients
                && pass_of_loop(program, part.at) == Pass::Recomputed
            {
                part.role = Role::Saved;
            }
        }
    }

    /// An element of a loop's state.
    #[must_use]
    pub fn part(&self, at: InstructionId, index: &[i64]) -> Option<&Part> {
        let &row = self.by_place.get(&(at.0, *index.first()?))?;
        self.parts.get(row)
    }

    /// Bytes of the floats that a loop passes from step to step, changed, whole, but for weights.
    #[must_use]
    pub fn carry(&self, program: &Program, at: InstructionId, is_weight: impl Fn(&ShapeNode) -> bool) -> u64 {
        let own = self.parts.iter().filter(|part| part.at == at && part.role == Role::Carry && part.layers == 0);
        own.filter_map(|part| node_at(program, at, &part.index))
            .filter(|node| !node.dimensions.is_empty() && !node.element_type.is_index() && !is_weight(node))
            .filter_map(|node| node.padded_size())
            .fold(0u64, |sum, bytes| sum.saturating_add(bytes.0))
    }

    /// The arrays that loops pass from step to step, changed, whole.
    pub fn carried<'p>(&self, program: &'p Program) -> impl Iterator<Item = &'p ShapeNode> {
        let own = self.parts.iter().filter(|part| part.role == Role::Carry && part.layers == 0);
        own.filter_map(|part| node_at(program, part.at, &part.index)).filter(|node| !node.is_tuple())
    }

    /// The instruction that runs a computation.
    #[must_use]
    pub fn caller(&self, computation: ComputationId) -> Option<InstructionId> {
        self.callers.get(&computation).copied()
    }

    /// The operand bound to a fusion's parameter.
    pub(super) fn given(&self, program: &Program, parameter: InstructionId) -> Option<Value> {
        let caller = self.caller(program.computation_of(parameter)?)?;
        let place = *program.instructions.argument.get(parameter.index())? as usize;
        let is_fusion = opcode(program, caller) == Opcode::FUSION;
        is_fusion.then(|| operand(program, caller, place))?.map(Value::whole)
    }

    /// As [`Self::caller`], or the instruction that starts a computation which runs asynchronously.
    pub(super) fn runner(&self, computation: ComputationId) -> Option<InstructionId> {
        self.caller(computation).or_else(|| self.starts.get(&computation).copied())
    }

    /// Framework op name of an instruction, as [`lookup::op_name`]; what runs asynchronously, such as a gather on another
    /// core, has that of the instruction which starts it, or of what it copies in another layout.
    #[must_use]
    pub fn op_name(&self, program: &Program, at: InstructionId) -> String {
        let own = lookup::op_name(program, at);
        if !own.is_empty() {
            return own;
        }
        let Some(start) = program.computation_of(at).and_then(|computation| self.start(computation)) else {
            return own;
        };
        let name = program.text.op_name(start);
        if !name.is_empty() {
            return name;
        }
        let elements = |at: InstructionId| program.shape_of(at).map(|shape| shape.root().element_count());
        let source = handed_to(program, start).filter(|&source| elements(source) == elements(at));
        source.map_or(name, |source| lookup::op_name(program, source))
    }

    /// What starts a computation that runs asynchronously.
    #[must_use]
    pub fn start(&self, computation: ComputationId) -> Option<InstructionId> {
        self.starts.get(&computation).copied()
    }

    /// Whether there is a stack.
    #[must_use]
    pub fn has_stacks(&self) -> bool {
        self.parts.iter().any(|part| part.layers > 0)
    }
}

/// Instructions after the start of what runs asynchronously among which is what hands it its operands.
const MOST_AFTER: u32 = 64;

/// What computes the first array that runs asynchronously from `start` on is handed, where that is no parameter.
fn handed_to(program: &Program, start: InstructionId) -> Option<InstructionId> {
    let from = super::computed(program, Value::whole(given_to(program, start, 0)?)).at;
    (opcode(program, from) != Opcode::PARAMETER).then_some(from)
}

/// What is given to a computation as one of its parameters by what calls it: an operand of the call, or of the second part
/// of one that runs asynchronously and is started with nothing.
pub(super) fn given_to(program: &Program, caller: InstructionId, place: usize) -> Option<InstructionId> {
    if opcode(program, caller) != Opcode::ASYNC_START || !program.instructions.operands_of(caller).is_empty() {
        return operand(program, caller, place);
    }
    let end = program.computations.get(program.computation_of(caller)?.index())?.end;
    let mut after = (caller.0 + 1..end.min(caller.0.saturating_add(MOST_AFTER))).map(InstructionId);
    let update =
        after.find(|&at| opcode(program, at) == Opcode::ASYNC_UPDATE && operand(program, at, 0) == Some(caller))?;
    operand(program, update, place + 1)
}

/// The pass that a loop belongs to. JAX before 0.7 names only what is inside: `jit(step)/while` runs `jvp(while)/body/…`.
pub(super) fn pass_of_loop(program: &Program, at: InstructionId) -> Pass {
    let own = pass_of(&program.text.op_name(at));
    let Some(body) = body(program, at).filter(|_| own == Pass::Unknown) else { return own };
    let Some(computation) = program.computations.get(body.index()) else { return own };
    let inside = || (computation.start..computation.end).map(|row| pass_of(&program.text.op_name(InstructionId(row))));
    [Pass::Backward, Pass::Forward].into_iter().find(|pass| inside().any(|one| one == *pass)).unwrap_or(own)
}

/// Whether the loop is from the source program: the compiler's own loops (such as split products) have the name of the
/// op they are made from.
#[must_use]
pub fn is_written_by_users(op_name: &str) -> bool {
    let last = op_name.rsplit('/').next().unwrap_or_default();
    op_name.is_empty() || matches!(last, "while" | "scan" | "fori_loop" | "while_loop" | "body")
}

/// Most loops inside each other through which an element is followed that they pass on unchanged.
const DEEPEST: u32 = 3;

/// Whether a loop passes an element of its state on unchanged.
#[must_use]
pub fn unchanged(program: &Program, at: InstructionId, index: &[i64]) -> bool {
    is_unchanged(program, at, index, DEEPEST)
}

fn is_unchanged(program: &Program, at: InstructionId, index: &[i64], deepest: u32) -> bool {
    let Some(root) = body(program, at).and_then(|body| root(program, body)) else { return false };
    let from = fetched(program, Value { at: root, index: index.into() }, deepest);
    opcode(program, from.at) == Opcode::PARAMETER && from.index[..] == *index
}

/// What a value holds, followed through copies, through fetches from other memory slice by slice, and through loops that
/// pass it on unchanged, inside each other at most as deep as said.
fn fetched(program: &Program, value: Value, deepest: u32) -> Value {
    let mut value = computed(program, value);
    for _ in 0..super::MAX_DEPTH {
        let through = match opcode(program, value.at) {
            Opcode::WHILE if deepest > 0 && !value.index.is_empty() => operand(program, value.at, 0)
                .filter(|_| is_unchanged(program, value.at, &value.index, deepest - 1))
                .map(|at| Value { at, index: value.index.clone() }),
            _ => fetched_in_slices(program, value.at).filter(|_| value.index.is_empty()).map(Value::whole),
        };
        let Some(through) = through else { break };
        value = computed(program, through);
    }
    value
}

fn part(program: &Program, at: InstructionId, index: ShapeIndex, root: InstructionId) -> Part {
    let end = fetched(program, Value { at: root, index: index.clone() }, DEEPEST);
    if opcode(program, end.at) == Opcode::PARAMETER && end.index == index {
        return Part { at, index, role: Role::Unchanged, layers: 0, written: None };
    }
    let (mut layers, mut written) = (0, None);
    if let Some((own, value)) = slice_written(program, &end)
        && own == index
        && let Some(whole) = node_at(program, at, &index)
        && let Some(slice) = node_at(program, value.at, &value.index)
        && let Some(&first) = whole.dimensions.first()
        && first > 1
        && whole.element_count() == slice.element_count().saturating_mul(first as u64)
    {
        layers = first;
        written = Some(value);
    }
    let written = written.or(Some(end));
    Part { at, index, role: Role::Carry, layers, written }
}

/// The index in the loop's state of the array that a value writes a slice into, and the slice, as a value in the body.
pub(super) fn slice_written(program: &Program, end: &Value) -> Option<(ShapeIndex, Value)> {
    let (whole, slice) = write_of(program, end, 0)?;
    Some((parameter(program, whole)?.index, slice))
}

/// The parameter that a value is, but for nested fusions that only change its layout.
fn parameter(program: &Program, value: Value) -> Option<Value> {
    let mut from = computed(program, value);
    for _ in 0..super::MAX_DEPTH {
        let is_layout = opcode(program, from.at) == Opcode::FUSION
            && program.instructions.operands_of(from.at).len() == 1
            && from.index.is_empty();
        if !is_layout {
            break;
        }
        from = computed(program, Value::whole(operand(program, from.at, 0)?));
    }
    (opcode(program, from.at) == Opcode::PARAMETER).then_some(from)
}

/// The array that a value writes a slice into, and the slice. What is written is computed where the write is, or inside
/// what the write was fused or started with.
fn write_of(program: &Program, end: &Value, depth: u32) -> Option<(Value, Value)> {
    match opcode(program, end.at) {
        Opcode::DYNAMIC_UPDATE_SLICE => {
            Some((Value::whole(operand(program, end.at, 0)?), Value::whole(operand(program, end.at, 1)?)))
        }
        Opcode::FUSION => {
            let &fused = program.instructions.called_by(end.at).first()?;
            let inner = computed(program, Value { at: self::root(program, fused)?, index: end.index.clone() });
            if opcode(program, inner.at) != Opcode::DYNAMIC_UPDATE_SLICE {
                return None;
            }
            write_through(program, end.at, write_of(program, &inner, depth + 1)?)
        }
        // GPUs write slices beside other work: the fusion that does it is started, and awaited later.
        Opcode::ASYNC_DONE if depth < super::MAX_DEPTH => {
            let start = operand(program, end.at, 0).filter(|&at| opcode(program, at) == Opcode::ASYNC_START)?;
            let &started = program.instructions.called_by(start).first()?;
            let inner = computed(program, Value { at: self::root(program, started)?, index: end.index.clone() });
            write_through(program, start, write_of(program, &inner, depth + 1)?)
        }
        _ => None,
    }
}

/// A write inside a computation, as its caller sees it: what is handed to the computation is an operand of the caller.
fn write_through(program: &Program, caller: InstructionId, inner: (Value, Value)) -> Option<(Value, Value)> {
    let operand_of = |parameter: &Value| {
        let place = *program.instructions.argument.get(parameter.at.index())? as usize;
        operand(program, caller, place).map(Value::whole)
    };
    let whole = operand_of(&parameter(program, inner.0)?)?;
    let slice = computed(program, inner.1);
    if opcode(program, slice.at) == Opcode::PARAMETER {
        return Some((whole, operand_of(&slice)?));
    }
    Some((whole, slice))
}
