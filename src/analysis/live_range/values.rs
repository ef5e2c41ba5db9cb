//! The value at each position (instruction and shape node) of the sequence.
//!
//! A position defines a value, forwards to another position, or merges several (in loops and branches, like a phi).
//! Merges that turn out to have a single value are eliminated.

use super::flatten::{AsyncChain, Flat};
use super::merges::{self, MERGE};
use crate::analysis::stop::{Stop, Stopped};
use crate::model::{ComputationId, InstructionId, NO_ROW, Opcode, Program, Shape};

/// The value at every position. A value is identified by its defining position.
#[derive(Debug, Default, Clone)]
pub struct Values {
    /// First position of the instruction at each time, followed by the number of positions.
    pub base: Vec<u32>,
    /// Defining position by position.
    pub value: Vec<u32>,
}

impl Values {
    /// The position of a shape node of an instruction; `None` if it is not in the sequence.
    pub fn position(&self, flat: &Flat, row: u32, node: u32) -> Option<u32> {
        let time = flat.time_of(row)?;
        let position = self.base[time as usize].checked_add(node)?;
        (position < self.base[time as usize + 1]).then_some(position)
    }

    /// Positions of an instruction at a time.
    pub fn positions_at(&self, time: u32) -> std::ops::Range<u32> {
        self.base[time as usize]..self.base[time as usize + 1]
    }

    /// Resolves every position.
    ///
    /// # Errors
    /// If it was stopped.
    pub fn new(program: &Program, flat: &Flat, stop: Stop<'_>) -> Result<Self, Stopped> {
        let mut base = Vec::with_capacity(flat.sequence.len() + 1);
        let mut count = 0u32;
        for &row in &flat.sequence {
            stop.check()?;
            base.push(count);
            let nodes = program.shape_of(InstructionId(row)).map_or(1, |shape| shape.nodes.len() as u32);
            count = count.saturating_add(nodes).min(MERGE - 1);
        }
        base.push(count);
        let values = Self { base, value: Vec::new() };
        let mut builder = Builder { program, flat, values, forward: (0..count).collect(), merges: Vec::new() };
        builder.build_callers(stop)?;
        builder.forward_all(stop)?;
        builder.finish(stop)
    }
}

/// A merge of several positions.
struct Merge {
    /// Position of the merge.
    position: u32,
    /// Input positions.
    inputs: Vec<u32>,
    /// When XLA creates it: time of the loop or branch, which of its merges it is, and the shape node.
    created: (u32, Of, u32),
}

/// Which merge of a loop: in this order they are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Condition,
    Body,
    Result,
}

struct Builder<'a> {
    program: &'a Program,
    flat: &'a Flat,
    values: Values,
    forward: Vec<u32>,
    merges: Vec<Merge>,
}

impl Builder<'_> {
    fn at(&self, row: u32, node: u32) -> Option<u32> {
        self.values.position(self.flat, row, node)
    }

    fn shape(&self, row: u32) -> &Shape {
        static NOTHING: std::sync::OnceLock<Shape> = std::sync::OnceLock::new();
        self.program.shape_of(InstructionId(row)).unwrap_or_else(|| NOTHING.get_or_init(Shape::default))
    }

    fn operand(&self, row: u32, i: usize) -> u32 {
        self.program.instructions.operands_of(InstructionId(row)).get(i).copied().unwrap_or(NO_ROW)
    }

    fn root_of(&self, computation: ComputationId) -> u32 {
        self.program.computations.get(computation.index()).map_or(NO_ROW, |c| c.root)
    }

    fn called(&self, row: u32, i: usize) -> Option<ComputationId> {
        self.program.instructions.called_by(InstructionId(row)).get(i).copied()
    }

    /// Forwards the sub-tree of `count` nodes at (`row`, `node`) to the one at (`to`, `to_node`), one by one.
    fn link(&mut self, row: u32, node: u32, count: u32, to: u32, to_node: u32) {
        for i in 0..count {
            if let (Some(from), Some(target)) = (self.at(row, node + i), self.at(to, to_node.saturating_add(i))) {
                self.forward[from as usize] = target;
            }
        }
    }

    /// Merges values at (`row`, `node`), for the loop or branch `owner`.
    fn merge(&mut self, (row, node): (u32, u32), (owner, of): (u32, Of), inputs: impl Iterator<Item = Option<u32>>) {
        let Some(position) = self.at(row, node) else { return };
        let created = (self.flat.time_of(owner).unwrap_or(u32::MAX), of, node);
        let inputs: Vec<u32> = inputs.flatten().collect();
        if inputs.is_empty() {
            return;
        }
        self.forward[position as usize] = MERGE | self.merges.len() as u32;
        self.merges.push(Merge { position, inputs, created });
    }

    /// Forwards parameters of called computations to the operands of the caller.
    fn build_callers(&mut self, stop: Stop<'_>) -> Result<(), Stopped> {
        let mut by_computation: Vec<Vec<InstructionId>> = vec![Vec::new(); self.program.computations.len()];
        for &(computation, caller) in &self.flat.callers {
            if let Some(callers) = by_computation.get_mut(computation.index())
                && !callers.contains(&caller)
            {
                callers.push(caller);
            }
        }
        for (i, callers) in by_computation.iter().enumerate() {
            let computation = ComputationId(i as u32);
            if callers.is_empty() || self.flat.spans[i].is_none() {
                continue;
            }
            let rows = self.program.computations[i].schedule.clone();
            for row in rows {
                stop.check()?;
                if self.program.instructions.opcode[row as usize] == Opcode::PARAMETER {
                    self.parameter(row, computation, callers);
                }
            }
        }
        Ok(())
    }

    fn parameter(&mut self, row: u32, computation: ComputationId, callers: &[InstructionId]) {
        let number = self.program.instructions.argument[row as usize] as usize;
        let nodes = self.shape(row).nodes.len() as u32;
        let caller = callers[0];
        match self.program.instructions.opcode[caller.index()] {
            Opcode::WHILE => {
                let body = self.called(caller.0, 0);
                let body_root = body.map_or(NO_ROW, |body| self.root_of(body));
                let init = self.operand(caller.0, 0);
                let of = if body == Some(computation) { Of::Body } else { Of::Condition };
                for node in 0..nodes {
                    let inputs = [self.at(init, node), self.at(body_root, node)];
                    self.merge((row, node), (caller.0, of), inputs.into_iter());
                }
            }
            Opcode::CONDITIONAL => {
                let called = self.program.instructions.called_by(caller);
                let branch = called.iter().position(|&c| c == computation).unwrap_or(0);
                let operand = self.operand(caller.0, branch + 1);
                self.link(row, 0, nodes, operand, 0);
            }
            Opcode::CALL => {
                let operands: Vec<u32> = callers.iter().map(|caller| self.operand(caller.0, number)).collect();
                if let &[operand] = &operands[..] {
                    self.link(row, 0, nodes, operand, 0);
                } else {
                    for node in 0..nodes {
                        let inputs: Vec<_> = operands.iter().map(|&operand| self.at(operand, node)).collect();
                        self.merge((row, node), (caller.0, Of::Body), inputs.into_iter());
                    }
                }
            }
            _ => {
                let operand = AsyncChain::of(self.program, caller)
                    .and_then(|chain| chain.bound_operands(self.program).get(number).copied());
                self.link(row, 0, nodes, operand.unwrap_or(NO_ROW), 0);
            }
        }
    }

    fn forward_all(&mut self, stop: Stop<'_>) -> Result<(), Stopped> {
        for time in 0..self.flat.sequence.len() {
            stop.check()?;
            let row = self.flat.sequence[time];
            match self.program.instructions.opcode[row as usize] {
                // An argument that comes in a tuple.
                Opcode::PARAMETER if self.operand(row, 0) != NO_ROW => self.forward_one(row, Opcode::GET_TUPLE_ELEMENT),
                Opcode::PARAMETER | Opcode::FUSION | Opcode::CONSTANT | Opcode::CUSTOM_CALL => {}
                opcode => self.forward_one(row, opcode),
            }
        }
        Ok(())
    }

    fn forward_one(&mut self, row: u32, opcode: Opcode) {
        let nodes = self.shape(row).nodes.len() as u32;
        let first = self.operand(row, 0);
        match opcode {
            Opcode::BITCAST
            | Opcode::ADD_DEPENDENCY
            | Opcode::DOMAIN
            | Opcode::OPTIMIZATION_BARRIER
            | Opcode::OPT_BARRIER => self.link(row, 0, nodes, first, 0),
            Opcode::GET_TUPLE_ELEMENT => {
                let element = self.program.instructions.argument[row as usize] as usize;
                if let Some(&child) = self.shape(first).root().children.get(element) {
                    self.link(row, 0, nodes, first, child);
                }
            }
            Opcode::TUPLE => {
                for k in 0..self.shape(row).root().children.len() {
                    let operand = self.operand(row, k);
                    self.link_child(row, 0, k, operand, 0);
                }
            }
            Opcode::COPY if nodes > 1 => self.link(row, 1, nodes - 1, first, 1),
            Opcode::WHILE => {
                let body_root = self.called(row, 0).map_or(NO_ROW, |body| self.root_of(body));
                for node in 0..nodes {
                    let inputs = [self.at(body_root, node), self.at(first, node)];
                    self.merge((row, node), (row, Of::Result), inputs.into_iter());
                }
            }
            Opcode::CONDITIONAL => {
                let roots: Vec<u32> = self
                    .program
                    .instructions
                    .called_by(InstructionId(row))
                    .iter()
                    .map(|&branch| self.root_of(branch))
                    .collect();
                for node in 0..nodes {
                    let inputs: Vec<_> = roots.iter().map(|&root| self.at(root, node)).collect();
                    self.merge((row, node), (row, Of::Result), inputs.into_iter());
                }
            }
            Opcode::CALL => {
                let root = self.called(row, 0).map_or(NO_ROW, |callee| self.root_of(callee));
                self.link(row, 0, nodes, root, 0);
            }
            Opcode::ASYNC_START | Opcode::ASYNC_UPDATE => self.forward_async(row, opcode),
            Opcode::ASYNC_DONE | Opcode::COLLECTIVE_PERMUTE_DONE | Opcode::ALL_GATHER_DONE => {
                self.link_result(row, first);
            }
            Opcode::ALL_REDUCE_DONE => self.link(row, 0, nodes, first, 0),
            Opcode::COPY_START => self.link_child(row, 0, 1, first, 0),
            Opcode::COPY_DONE => {
                if let Some(&child) = self.shape(first).root().children.first() {
                    self.link(row, 0, nodes, first, child);
                }
            }
            Opcode::COLLECTIVE_PERMUTE_START | Opcode::ALL_GATHER_START => self.forward_collective_start(row),
            Opcode::SEND => self.link_child(row, 0, 0, first, 0),
            Opcode::RECV_DONE => {
                if let Some(&child) = self.shape(first).root().children.first() {
                    self.link_child(row, 0, 0, first, child);
                }
            }
            _ => {}
        }
    }

    /// Forwards element `k` of the tuple at (`row`, `node`) to (`to`, `to_node`).
    fn link_child(&mut self, row: u32, node: u32, k: usize, to: u32, to_node: u32) {
        let shape = self.shape(row);
        let Some(&child) = shape.nodes.get(node as usize).and_then(|n| n.children.get(k)) else { return };
        let count = shape.nodes[child as usize].subtree_len;
        self.link(row, child, count, to, to_node);
    }

    /// Forwards a `…-done`: its arrays are those in element 1 of the start's result; its tuples are its own.
    fn link_result(&mut self, row: u32, start: u32) {
        let Some(&output) = self.shape(start).root().children.get(1) else { return };
        for node in 0..self.shape(row).nodes.len() as u32 {
            if !self.shape(row).nodes[node as usize].is_tuple() {
                self.link(row, node, 1, start, output + node);
            }
        }
    }

    fn forward_async(&mut self, row: u32, opcode: Opcode) {
        let instruction = InstructionId(row);
        let first = self.operand(row, 0);
        let instructions = &self.program.instructions;
        if opcode == Opcode::ASYNC_UPDATE && self.shape(row) == self.shape(first) {
            for node in 0..self.shape(row).nodes.len() as u32 {
                if !self.shape(row).nodes[node as usize].is_tuple() {
                    self.link(row, node, 1, first, node);
                }
            }
            return;
        }
        let Some(chain) = AsyncChain::of(self.program, instruction) else { return };
        let operands = if opcode == Opcode::ASYNC_START {
            instructions.operands_of(instruction).to_vec()
        } else {
            chain.bound_operands(self.program)
        };
        let children = self.shape(row).root().children.clone();
        if let Some(&arguments) = children.first() {
            let elements = self.shape(row).nodes[arguments as usize].children.clone();
            for (k, &element) in elements.iter().enumerate() {
                self.link_arrays(row, element, operands.get(k).copied().unwrap_or(NO_ROW), 0);
            }
        }
        if let Some(&output) = children.get(1) {
            let root = self.root_of(chain.wrapped);
            self.link_arrays(row, output, root, 0);
        }
    }

    fn forward_collective_start(&mut self, row: u32) {
        let children = self.shape(row).root().children.clone();
        let Some(&sources) = children.first() else { return };
        let operands = self.program.instructions.operands_of(InstructionId(row)).to_vec();
        let first = operands.first().copied().unwrap_or(NO_ROW);
        let elements = self.shape(row).nodes[sources as usize].children.clone();
        if elements.is_empty() {
            self.link(row, sources, 1, first, 0);
            return;
        }
        let by_element = self.shape(first).root().is_tuple();
        for (k, &element) in elements.iter().enumerate() {
            if by_element {
                if let Some(&child) = self.shape(first).root().children.get(k) {
                    self.link_arrays(row, element, first, child);
                }
            } else {
                self.link_arrays(row, element, operands.get(k).copied().unwrap_or(NO_ROW), 0);
            }
        }
    }

    /// Forwards the arrays of the subtree at (`row`, `node`); its tuples define values of their own.
    fn link_arrays(&mut self, row: u32, node: u32, to: u32, to_node: u32) {
        let count = self.shape(row).nodes.get(node as usize).map_or(0, |n| n.subtree_len);
        for i in 0..count {
            let is_tuple = self.shape(row).nodes.get((node + i) as usize).is_none_or(|n| n.is_tuple());
            if !is_tuple {
                self.link(row, node + i, 1, to, to_node + i);
            }
        }
    }

    /// Follows every chain of forwards to its end.
    fn finish(mut self, stop: Stop<'_>) -> Result<Values, Stopped> {
        let count = self.forward.len();
        // A chain ends at a position that forwards to itself, or at a merge.
        for start in 0..count as u32 {
            stop.check()?;
            let mut end = start;
            let mut steps = 0;
            loop {
                let next = self.forward[end as usize];
                if next & MERGE != 0 {
                    end = next;
                    break;
                }
                if next == end {
                    break;
                }
                end = next;
                steps += 1;
                if steps > count {
                    // A damaged file may contain a cycle; break it here.
                    self.forward[start as usize] = start;
                    end = start;
                    break;
                }
            }
            let mut at = start;
            while at & MERGE == 0 && at != end {
                at = std::mem::replace(&mut self.forward[at as usize], end);
            }
        }
        let merged = self.dissolve(stop)?;
        for end in &mut self.forward {
            if *end & MERGE != 0 {
                *end = merged[(*end & !MERGE) as usize];
            }
        }
        self.values.value = self.forward;
        Ok(self.values)
    }

    /// The value of each merge: its own position if several values reach it.
    fn dissolve(&self, stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
        // XLA creates the merges of a loop after those in its body.
        let mut order: Vec<u32> = (0..self.merges.len() as u32).collect();
        order.sort_by_key(|&row| self.merges[row as usize].created);
        let mut rank = vec![0; order.len()];
        order.iter().zip(0u32..).for_each(|(&row, at)| rank[row as usize] = at);
        let ranked = |end: u32| if end & MERGE != 0 { MERGE | rank[(end & !MERGE) as usize] } else { end };
        let inputs = |row: &u32| {
            // The end of the chain that each input begins.
            let inputs = &self.merges[*row as usize].inputs;
            inputs.iter().map(|&position| ranked(self.forward[position as usize])).collect()
        };
        let ends = merges::optimized(order.iter().map(inputs).collect(), stop)?;
        let position = |end: u32| match end & MERGE {
            0 => end,
            _ => self.merges[order[(end & !MERGE) as usize] as usize].position,
        };
        Ok(rank.iter().map(|&at| position(ends[at as usize])).collect())
    }
}
