//! Live ranges of values, and the classes of values that must share memory.

use super::flatten::{AsyncChain, Flat};
use super::in_place;
use super::values::Values;
use crate::analysis::stop::{Stop, Stopped};
use crate::model::{FastMap, InstructionId, NO_ROW, Opcode, Program};

/// First and last point of every value, by defining position.
pub struct Ranges {
    /// First point; [`NO_ROW`] if the position does not define a value.
    pub start: Vec<u32>,
    /// Last point, inclusive; possibly the end of the program.
    pub end: Vec<u32>,
}

/// Values that must share memory, as a union-find over positions.
struct Classes {
    parent: Vec<u32>,
}

impl Classes {
    fn find(&mut self, mut x: u32) -> u32 {
        while self.parent[x as usize] != x {
            let up = self.parent[self.parent[x as usize] as usize];
            self.parent[x as usize] = up;
            x = up;
        }
        x
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        if a != b {
            self.parent[a.max(b) as usize] = a.min(b);
        }
    }
}

/// Inputs of the rules.
struct Context<'a> {
    program: &'a Program,
    flat: &'a Flat,
    values: &'a Values,
    /// Row of each parameter of the entry, by its number.
    parameters: FastMap<u32, u32>,
    stop: Stop<'a>,
}

impl Context<'_> {
    fn value_at(&self, row: u32, node: u32) -> Option<u32> {
        self.values.position(self.flat, row, node).map(|p| self.values.value[p as usize])
    }

    fn opcode(&self, row: u32) -> Opcode {
        self.program.instructions.opcode[row as usize]
    }

    /// Time until which a value at an instruction is live at least: one past the computation if it is the root.
    fn position_time(&self, row: u32, time: u32) -> u32 {
        let computation = self.flat.computation[time as usize];
        if self.program.computations[computation.index()].root == row {
            return self.flat.spans[computation.index()].map_or(time, |span| span.1);
        }
        time
    }
}

/// Computes the ranges. `buffer_order` breaks ties between values with equal ranges by buffer id.
///
/// # Errors
/// If it was stopped.
pub fn ranges(
    program: &Program,
    flat: &Flat,
    values: &Values,
    buffer_order: &dyn Fn(u32) -> i64,
    stop: Stop<'_>,
) -> Result<Ranges, Stopped> {
    let context = Context { program, flat, values, parameters: parameters(program), stop };
    let count = values.value.len();
    let mut ranges = Ranges { start: vec![NO_ROW; count], end: vec![0; count] };
    let (extended, joined) = rayon::join(|| extend(&context, &mut ranges), || join_classes(&context));
    extended?;
    hand_over(&context, &mut ranges, joined?, buffer_order)?;
    Ok(ranges)
}

/// The range of each value by itself.
fn extend(context: &Context<'_>, ranges: &mut Ranges) -> Result<(), Stopped> {
    define(context, ranges)?;
    extend_by_async_callers(context, ranges)?;
    extend_by_positions(context, ranges)?;
    let pinned = pin_arguments(context, ranges)?;
    extend_by_uses(context, &pinned, ranges)
}

/// Row of each parameter of the entry by its number; of several with one number the first in the schedule.
fn parameters(program: &Program) -> FastMap<u32, u32> {
    let mut rows = FastMap::default();
    let instructions = &program.instructions;
    for &row in program.entry_computation().map_or(&[][..], |entry| &entry.schedule[..]) {
        if instructions.opcode[row as usize] == Opcode::PARAMETER {
            rows.entry(instructions.argument[row as usize]).or_insert(row);
        }
    }
    rows
}

/// The range of each value from its definition alone, as if it had no uses.
fn define(context: &Context<'_>, ranges: &mut Ranges) -> Result<(), Stopped> {
    for (time, &row) in context.flat.sequence.iter().enumerate() {
        context.stop.check()?;
        let time = time as u32;
        let computation = context.flat.computation[time as usize];
        let span = context.flat.spans[computation.index()].unwrap_or((time, time));
        let start = if context.opcode(row) == Opcode::PARAMETER { span.0 } else { time };
        let end = context.position_time(row, time);
        for position in context.values.positions_at(time) {
            if context.values.value[position as usize] == position {
                ranges.start[position as usize] = start;
                ranges.end[position as usize] = end;
            }
        }
    }
    Ok(())
}

/// Values of an asynchronous computation are live until the async op is done. On TPUs its result is live from the start of
/// the op, elsewhere from the instruction that makes it (libtpu 0.0.52 and jaxlib 0.11.2 on an H200).
fn extend_by_async_callers(context: &Context<'_>, ranges: &mut Ranges) -> Result<(), Stopped> {
    let program = context.program;
    let is_tpu = program.is_tiled();
    // For each wrapped computation: (time of its start, latest time of a done).
    let mut limits: Vec<(u32, u32)> = vec![(NO_ROW, 0); program.computations.len()];
    let mut any = false;
    for (time, &row) in context.flat.sequence.iter().enumerate() {
        context.stop.check()?;
        let time = time as u32;
        match context.opcode(row) {
            Opcode::ASYNC_START => {
                if let Some(&wrapped) = program.instructions.called_by(InstructionId(row)).first()
                    && let Some(limit) = limits.get_mut(wrapped.index())
                {
                    limit.0 = limit.0.min(time);
                    any = true;
                }
            }
            Opcode::ASYNC_DONE => {
                // Only directly linked chains are followed; one carried through a loop has no reachable done.
                if let Some(wrapped) = direct_chain(program, InstructionId(row))
                    && let Some(limit) = limits.get_mut(wrapped)
                {
                    limit.1 = limit.1.max(time);
                }
            }
            _ => {}
        }
    }
    if !any {
        return Ok(());
    }
    for (i, computation) in program.computations.iter().enumerate() {
        let Some(wrapped) = context.flat.async_context[i] else { continue };
        let (started, done) = limits[wrapped.index()];
        for &row in &computation.schedule {
            context.stop.check()?;
            let Some(time) = context.flat.time_of(row) else { continue };
            for position in context.values.positions_at(time) {
                if context.values.value[position as usize] != position {
                    continue;
                }
                let at = position as usize;
                ranges.end[at] = ranges.end[at].max(done);
                if is_tpu && wrapped.index() == i && computation.root == row && started != NO_ROW {
                    ranges.start[at] = ranges.start[at].max(started);
                }
            }
        }
    }
    Ok(())
}

/// The wrapped computation of the chain an `async-done` ends.
fn direct_chain(program: &Program, done: InstructionId) -> Option<usize> {
    AsyncChain::of(program, done).map(|chain| chain.wrapped.index())
}

/// Extends values over every position at which they occur.
fn extend_by_positions(context: &Context<'_>, ranges: &mut Ranges) -> Result<(), Stopped> {
    for (time, &row) in context.flat.sequence.iter().enumerate() {
        context.stop.check()?;
        let time = time as u32;
        let until = context.position_time(row, time);
        for position in context.values.positions_at(time) {
            let value = context.values.value[position as usize];
            if value != position {
                let end = &mut ranges.end[value as usize];
                *end = (*end).max(until);
            }
        }
    }
    Ok(())
}

/// Extends parameters that are never overwritten to the end of the program; returns these values.
fn pin_arguments(context: &Context<'_>, ranges: &mut Ranges) -> Result<Vec<bool>, Stopped> {
    let mut pinned = vec![false; context.values.value.len()];
    let program = context.program;
    let Some(entry) = program.entry_computation() else { return Ok(pinned) };
    let mut donated: Vec<(u32, u32)> = Vec::new();
    for alias in &program.aliases {
        let Ok(parameter) = u32::try_from(alias.parameter) else { continue };
        let row = context.parameters.get(&parameter).copied();
        let node = row.and_then(|row| program.shape_of(InstructionId(row))?.find(&alias.parameter_index));
        if let (Some(row), Some(node)) = (row, node) {
            donated.push((row, node));
        }
    }
    donated.sort_unstable();
    let end = context.flat.sequence.len() as u32;
    for &row in &entry.schedule {
        context.stop.check()?;
        if context.opcode(row) != Opcode::PARAMETER {
            continue;
        }
        let Some(time) = context.flat.time_of(row) else { continue };
        for (node, position) in context.values.positions_at(time).enumerate() {
            let is_own = context.values.value[position as usize] == position;
            if is_own && donated.binary_search(&(row, node as u32)).is_err() {
                pinned[position as usize] = true;
                ranges.end[position as usize] = end;
            }
        }
    }
    Ok(pinned)
}

/// Extends values to their last use.
fn extend_by_uses(context: &Context<'_>, pinned: &[bool], ranges: &mut Ranges) -> Result<(), Stopped> {
    for (time, &row) in context.flat.sequence.iter().enumerate() {
        context.stop.check()?;
        let Some(at) = use_time(context, row, time as u32) else { continue };
        // An argument that comes in a tuple is a parameter that reads its element.
        let whole = !matches!(context.opcode(row), Opcode::GET_TUPLE_ELEMENT | Opcode::COPY | Opcode::PARAMETER);
        for &operand in context.program.instructions.operands_of(InstructionId(row)) {
            if operand == NO_ROW {
                continue;
            }
            let Some(operand_time) = context.flat.time_of(operand) else { continue };
            let mut positions = context.values.positions_at(operand_time);
            if !whole {
                positions.end = positions.end.min(positions.start + 1);
            }
            for position in positions {
                let value = context.values.value[position as usize] as usize;
                if !pinned[value] {
                    ranges.end[value] = ranges.end[value].max(at);
                }
            }
        }
    }
    Ok(())
}

/// Time at which an instruction uses its operands; `None` if it only forwards them.
fn use_time(context: &Context<'_>, row: u32, time: u32) -> Option<u32> {
    match context.opcode(row) {
        Opcode::TUPLE | Opcode::DOMAIN => None,
        Opcode::CALL => {
            let callee = context.program.instructions.called_by(InstructionId(row)).first()?;
            let flattened = context.flat.spans.get(callee.index()).is_some_and(Option::is_some);
            (!flattened).then_some(time)
        }
        // A loop reads its operand at its body's parameter.
        Opcode::WHILE => {
            let body = context.program.instructions.called_by(InstructionId(row)).first()?;
            let body = context.program.computations.get(body.index())?;
            let parameter = body.schedule.iter().find(|&&row| context.opcode(row) == Opcode::PARAMETER);
            Some(parameter.and_then(|&row| context.flat.time_of(row)).unwrap_or(time))
        }
        _ => Some(time),
    }
}

/// Trims values of one class so that each ends where the next begins; the last one extends to the end of the class.
fn hand_over(
    context: &Context<'_>,
    ranges: &mut Ranges,
    (mut classes, mut joined): (Classes, Vec<u32>),
    buffer_order: &dyn Fn(u32) -> i64,
) -> Result<(), Stopped> {
    joined.sort_unstable();
    joined.dedup();
    let mut members: Vec<(u32, u32, u32, i64, u32)> = joined
        .into_iter()
        .filter(|&value| ranges.start[value as usize] != NO_ROW)
        .map(|value| {
            let at = value as usize;
            (classes.find(value), ranges.start[at], ranges.end[at], buffer_order(value), value)
        })
        .collect();
    context.stop.check()?;
    members.sort_unstable();
    for pair in 1..members.len() {
        let (class, _, _, _, x) = members[pair - 1];
        let (other, _, _, _, y) = members[pair];
        if class != other {
            continue;
        }
        let (x, y) = (x as usize, y as usize);
        ranges.end[y] = ranges.end[y].max(ranges.end[x]);
        ranges.end[x] = ranges.end[x].min(ranges.start[y]);
    }
    Ok(())
}

/// The classes, and the values that are in one with others.
fn join_classes(context: &Context<'_>) -> Result<(Classes, Vec<u32>), Stopped> {
    let count = context.values.value.len() as u32;
    let mut classes = Classes { parent: (0..count).collect() };
    let mut joined: Vec<u32> = Vec::new();
    join_values(context, &mut |a, b| {
        if a != b {
            classes.join(a, b);
            joined.push(a);
            joined.push(b);
        }
    })?;
    Ok((classes, joined))
}

/// Calls `join` with every two values that must share memory.
fn join_values(context: &Context<'_>, join: &mut dyn FnMut(u32, u32)) -> Result<(), Stopped> {
    let program = context.program;
    if let Some(entry) = program.entry_computation() {
        let root = InstructionId(entry.root);
        for alias in &program.aliases {
            let Ok(parameter) = u32::try_from(alias.parameter) else { continue };
            let row = context.parameters.get(&parameter).copied();
            let (Some(row), Some(result)) = (row, program.shape_of(root)) else { continue };
            let from = program.shape_of(InstructionId(row)).and_then(|shape| shape.find(&alias.parameter_index));
            let to = result.find(&alias.output_index);
            if let (Some(from), Some(to)) = (from, to)
                && let (Some(a), Some(b)) = (context.value_at(row, from), context.value_at(root.0, to))
            {
                join(a, b);
            }
        }
    }
    let mut pairs = Vec::new();
    for &row in &context.flat.sequence {
        context.stop.check()?;
        let instruction = InstructionId(row);
        match context.opcode(row) {
            Opcode::WHILE => join_loop(context, instruction, join),
            Opcode::CONDITIONAL => {
                for &branch in program.instructions.called_by(instruction) {
                    let Some(root) = program.computations.get(branch.index()).map(|c| c.root) else { continue };
                    let nodes = program.shape_of(instruction).map_or(1, |shape| shape.nodes.len() as u32);
                    for node in 0..nodes {
                        if let (Some(a), Some(b)) = (context.value_at(row, node), context.value_at(root, node)) {
                            join(a, b);
                        }
                    }
                }
            }
            _ => {
                in_place::pairs(program, instruction, &mut pairs);
                for &(operand, from, to) in &pairs {
                    let Some(&operand) = program.instructions.operands_of(instruction).get(operand) else { continue };
                    if let (Some(a), Some(b)) = (context.value_at(operand, from), context.value_at(row, to)) {
                        join(a, b);
                    }
                }
            }
        }
    }
    Ok(())
}

fn join_loop(context: &Context<'_>, instruction: InstructionId, join: &mut dyn FnMut(u32, u32)) {
    let program = context.program;
    let nodes = program.shape_of(instruction).map_or(1, |shape| shape.nodes.len() as u32);
    let init = program.instructions.operands_of(instruction).first().copied().unwrap_or(NO_ROW);
    let called = program.instructions.called_by(instruction);
    let computation = |i: usize| called.get(i).and_then(|c| program.computations.get(c.index()));
    let body_root = computation(0).map_or(NO_ROW, |body| body.root);
    let parameters: Vec<u32> = (0..2)
        .filter_map(|i| computation(i)?.schedule.iter().copied().find(|&row| context.opcode(row) == Opcode::PARAMETER))
        .collect();
    for node in 0..nodes {
        let Some(own) = context.value_at(instruction.0, node) else { continue };
        for other in [init, body_root] {
            if let Some(value) = context.value_at(other, node) {
                join(own, value);
            }
        }
        for &parameter in &parameters {
            // Only values defined at the parameter itself belong to the loop.
            if let Some(position) = context.values.position(context.flat, parameter, node)
                && context.values.value[position as usize] == position
            {
                join(own, position);
            }
        }
    }
}
