//! The flattened instruction sequence: the instructions of every computation entered by control flow are placed directly
//! before the calling instruction. A position in the sequence is a program point.

use crate::analysis::stop::{Stop, Stopped};
use crate::model::{ComputationId, InstructionId, NO_ROW, Opcode, Program, Shape};

/// The sequence and its indexes.
#[derive(Debug, Default, Clone)]
pub struct Flat {
    /// Instruction rows by time.
    pub sequence: Vec<u32>,
    /// Computation by time.
    pub computation: Vec<ComputationId>,
    /// Time by instruction row; [`NO_ROW`] if the instruction is not in the sequence.
    pub time: Vec<u32>,
    /// For each computation, (first time, one past the last); `None` if it was not flattened.
    pub spans: Vec<Option<(u32, u32)>>,
    /// For each computation, the wrapped computation of the asynchronous op it runs in.
    pub async_context: Vec<Option<ComputationId>>,
    /// Control-flow calls: (computation, calling instruction), in sequence order.
    pub callers: Vec<(ComputationId, InstructionId)>,
}

/// A computation being flattened.
struct Frame {
    computation: ComputationId,
    context: Option<ComputationId>,
    /// Position in the schedule.
    at: usize,
    /// Computations that the instruction at `at` calls, and which is next.
    callees: Vec<(ComputationId, Option<ComputationId>)>,
    next: usize,
}

impl Flat {
    /// Flattens a program from its entry computation; `None` if it has no schedule.
    ///
    /// # Errors
    /// If it was stopped.
    pub fn new(program: &Program, stop: Stop<'_>) -> Result<Option<Self>, Stopped> {
        let is_scheduled =
            |entry: &ComputationId| program.computations.get(entry.index()).is_some_and(|entry| entry.is_scheduled);
        let Some(entry) = program.entry.filter(is_scheduled) else { return Ok(None) };
        let mut flat = Self {
            time: vec![NO_ROW; program.instructions.len()],
            spans: vec![None; program.computations.len()],
            async_context: vec![None; program.computations.len()],
            ..Self::default()
        };
        let mut stack = Vec::new();
        flat.enter(program, entry, None, &mut stack);
        while let Some(frame) = stack.last_mut() {
            stop.check()?;
            let schedule = &program.computations[frame.computation.index()].schedule;
            let Some(&row) = schedule.get(frame.at) else {
                if let Some(span) = &mut flat.spans[frame.computation.index()] {
                    span.1 = flat.sequence.len() as u32;
                }
                stack.pop();
                continue;
            };
            let instruction = InstructionId(row);
            if frame.next == 0 {
                frame.callees = callees(program, instruction, frame.context, &flat.spans);
                flat.callers.extend(frame.callees.iter().map(|&(callee, _)| (callee, instruction)));
            }
            if let Some(&(callee, context)) = frame.callees.get(frame.next) {
                frame.next += 1;
                flat.enter(program, callee, context, &mut stack);
                continue;
            }
            let computation = frame.computation;
            frame.at += 1;
            frame.next = 0;
            frame.callees = Vec::new();
            // A damaged schedule may list an instruction twice; the first one counts.
            if flat.time[row as usize] == NO_ROW {
                flat.time[row as usize] = flat.sequence.len() as u32;
                flat.sequence.push(row);
                flat.computation.push(computation);
            }
        }
        Ok(Some(flat))
    }

    fn enter(
        &mut self,
        program: &Program,
        computation: ComputationId,
        context: Option<ComputationId>,
        stack: &mut Vec<Frame>,
    ) {
        let Some(called) = program.computations.get(computation.index()) else { return };
        if !called.is_scheduled || self.spans[computation.index()].is_some() {
            return;
        }
        let start = self.sequence.len() as u32;
        self.spans[computation.index()] = Some((start, start));
        self.async_context[computation.index()] = context;
        stack.push(Frame { computation, context, at: 0, callees: Vec::new(), next: 0 });
    }

    /// Time of an instruction.
    pub fn time_of(&self, row: u32) -> Option<u32> {
        self.time.get(row as usize).copied().filter(|&time| time != NO_ROW)
    }
}

/// Computations that are flattened before an instruction, each with its asynchronous context.
fn callees(
    program: &Program,
    instruction: InstructionId,
    context: Option<ComputationId>,
    entered: &[Option<(u32, u32)>],
) -> Vec<(ComputationId, Option<ComputationId>)> {
    let called = || program.instructions.called_by(instruction);
    match program.instructions.opcode[instruction.index()] {
        Opcode::CALL | Opcode::CONDITIONAL => called().iter().map(|&c| (c, context)).collect(),
        // Listed as body, condition, but executed as condition, body.
        Opcode::WHILE => called().iter().take(2).rev().map(|&c| (c, context)).collect(),
        Opcode::ASYNC_START | Opcode::ASYNC_UPDATE | Opcode::ASYNC_DONE => {
            let Some(chain) = AsyncChain::of(program, instruction) else { return Vec::new() };
            // Usually the async-start has already entered it.
            if entered[chain.wrapped.index()].is_some() {
                return Vec::new();
            }
            if chain.binds_here(program) { vec![(chain.wrapped, Some(chain.wrapped))] } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

/// A chain of `async-start`, `async-update`… up to one of its ops.
pub struct AsyncChain {
    /// Ops in order, starting with the `async-start`.
    pub operations: Vec<InstructionId>,
    /// The computation executed asynchronously.
    pub wrapped: ComputationId,
}

/// Longer chains are taken for damaged input.
const MAX_CHAIN: usize = 4096;

impl AsyncChain {
    /// The chain that ends at an op; `None` if it does not begin with an `async-start`.
    pub fn of(program: &Program, instruction: InstructionId) -> Option<Self> {
        let mut operations = vec![instruction];
        let mut at = instruction;
        while program.instructions.opcode[at.index()] != Opcode::ASYNC_START {
            at = previous(program, at)?;
            operations.push(at);
            if operations.len() > MAX_CHAIN {
                return None;
            }
        }
        operations.reverse();
        let wrapped = *program.instructions.called_by(at).first()?;
        (wrapped.index() < program.computations.len()).then_some(Self { operations, wrapped })
    }

    /// Operands bound so far: those of the start, then those of each update after the chain operand.
    pub fn bound_operands(&self, program: &Program) -> Vec<u32> {
        let mut operands = Vec::new();
        for (i, &operation) in self.operations.iter().enumerate() {
            let all = program.instructions.operands_of(operation);
            match program.instructions.opcode[operation.index()] {
                Opcode::ASYNC_DONE => {}
                _ if i == 0 => operands.extend_from_slice(all),
                _ => operands.extend_from_slice(all.get(1..).unwrap_or(&[])),
            }
        }
        operands
    }

    /// Whether the last op of the chain is the first to have all arguments and the result.
    fn binds_here(&self, program: &Program) -> bool {
        let Some((&last, before)) = self.operations.split_last() else { return false };
        self.is_bound(program, last) && before.last().is_none_or(|&previous| !self.is_bound(program, previous))
    }

    fn is_bound(&self, program: &Program, operation: InstructionId) -> bool {
        let is_done = program.instructions.opcode[operation.index()] == Opcode::ASYNC_DONE;
        let holder = if is_done {
            let at = self.operations.iter().position(|&o| o == operation);
            at.and_then(|at| at.checked_sub(1)).map(|at| self.operations[at])
        } else {
            Some(operation)
        };
        let Some(arguments) = holder.and_then(|holder| program.shape_of(holder)) else { return false };
        let Some(&first) = arguments.root().children.first() else { return false };
        let parameters = parameter_shapes(program, self.wrapped);
        let elements = &arguments.nodes[first as usize].children;
        if elements.len() != parameters.len() {
            return false;
        }
        let all_fit = elements
            .iter()
            .zip(&parameters)
            .all(|(&element, parameter)| parameter.is_some_and(|p| arguments.compatible(element, p, 0)));
        if !all_fit {
            return false;
        }
        let root = program.computations[self.wrapped.index()].root;
        let Some(result) = program.shape_of(InstructionId(root)) else { return false };
        let Some(shape) = program.shape_of(operation) else { return false };
        if is_done {
            return shape.compatible(0, result, 0);
        }
        shape.root().children.get(1).is_some_and(|&output| shape.compatible(output, result, 0))
    }
}

/// The previous op of a chain: operand 0, traced through copies and repacked tuples.
fn previous(program: &Program, operation: InstructionId) -> Option<InstructionId> {
    let mut at = InstructionId(*program.instructions.operands_of(operation).first()?);
    for _ in 0..64 {
        let operands = program.instructions.operands_of(at);
        match *program.instructions.opcode.get(at.index())? {
            Opcode::ASYNC_START | Opcode::ASYNC_UPDATE => return Some(at),
            Opcode::COPY | Opcode::OPTIMIZATION_BARRIER | Opcode::OPT_BARRIER => at = InstructionId(*operands.first()?),
            Opcode::GET_TUPLE_ELEMENT => {
                let tuple = InstructionId(*operands.first()?);
                if *program.instructions.opcode.get(tuple.index())? != Opcode::TUPLE {
                    return None;
                }
                let element = program.instructions.argument[at.index()] as usize;
                at = InstructionId(*program.instructions.operands_of(tuple).get(element)?);
            }
            _ => return None,
        }
    }
    None
}

/// Shapes of a computation's parameters by parameter number.
fn parameter_shapes(program: &Program, computation: ComputationId) -> Vec<Option<&Shape>> {
    let mut shapes = Vec::new();
    let computation = &program.computations[computation.index()];
    for row in computation.start..computation.end {
        if program.instructions.opcode[row as usize] == Opcode::PARAMETER {
            let number = program.instructions.argument[row as usize] as usize;
            if number >= (computation.end - computation.start) as usize {
                continue;
            }
            if shapes.len() <= number {
                shapes.resize(number + 1, None);
            }
            shapes[number] = program.shape_of(InstructionId(row));
        }
    }
    shapes
}
