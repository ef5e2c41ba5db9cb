//! Which dimensions of a program's values follow a dimension of its arguments, such as the batch: traced through every
//! instruction by its dimension numbers, through loops and calls, never by the size of a dimension alone.

mod mark;
mod transfer;

use std::collections::HashMap;

use foldhash::fast::RandomState;

pub use mark::Mark;
use transfer::Kind;

use super::argument::fetched_in_slices;
use super::{body, operand, root};
use crate::model::{BufferId, ComputationId, FastMap, InstructionId, Opcode, Program, ShapeNode};

/// Deepest nesting of loops and calls.
const MAX_DEPTH: u32 = 12;

/// Most passes over a loop's body: what a pass adds reaches the loop's state, and the body again.
const MAX_PASSES: usize = 4;

/// Most instructions looked at, for each that the program has: bodies of nested loops are looked at several times.
const MOST_LOOKS: u64 = 16;

/// The dimensions that follow.
#[derive(Debug, Clone, Default)]
pub struct Followed {
    /// Row of `sets`, by instruction and node of its shape.
    of: FastMap<(u32, u32), u32>,
    sets: Vec<Vec<Mark>>,
    /// Whether the program was looked at to its end.
    pub is_whole: bool,
}

impl Followed {
    /// The marks in what a buffer holds; empty where nothing follows.
    #[must_use]
    pub fn in_buffer(&self, program: &Program, buffer: BufferId) -> &[Mark] {
        let at = program.buffers.instruction_of(buffer);
        let node = program.buffers.node.get(buffer.index()).copied();
        let row = at.zip(node).and_then(|(at, node)| self.of.get(&(at.0, node)));
        row.and_then(|&row| self.sets.get(row as usize)).map_or(&[], Vec::as_slice)
    }
}

/// Traces dimensions of some buffers, such as arguments, through the program.
#[must_use]
pub fn follow(program: &Program, from: impl Iterator<Item = (BufferId, Mark)>) -> Followed {
    let count = program.instructions.len();
    let mut walk = Walk {
        program,
        kinds: transfer::kinds(&program.opcodes),
        found: Followed { is_whole: true, ..Followed::default() },
        numbers: HashMap::default(),
        is_marked: vec![false; count],
        is_numbering: Vec::new(),
        left: MOST_LOOKS.saturating_mul(count as u64),
    };
    for (buffer, mark) in from {
        if let (Some(at), Some(&node)) =
            (program.buffers.instruction_of(buffer), program.buffers.node.get(buffer.index()))
        {
            let row = walk.row(vec![mark]);
            walk.put(at, node, row);
        }
    }
    walk.is_numbering = program
        .computations
        .iter()
        .map(|computation| {
            let opcodes = program.instructions.opcode.get(computation.start as usize..computation.end as usize);
            opcodes.unwrap_or_default().iter().any(|&opcode| walk.kind(opcode) == Kind::Numbered)
        })
        .collect();
    if let Some(entry) = program.entry {
        walk.computation(entry, 0);
    }
    walk.found
}

struct Walk<'a> {
    program: &'a Program,
    kinds: Vec<Kind>,
    found: Followed,
    /// Row of the set of marks.
    numbers: HashMap<Vec<Mark>, u32, RandomState>,
    /// Whether any array of an instruction's value has marks.
    is_marked: Vec<bool>,
    /// Whether a computation numbers elements or draws them at random, by computation.
    is_numbering: Vec<bool>,
    /// Instructions that may still be looked at.
    left: u64,
}

impl<'a> Walk<'a> {
    /// Row of the set of marks of an array; `None` where it has none.
    fn row_of(&self, at: InstructionId, node: u32) -> Option<u32> {
        let is_marked = self.is_marked.get(at.index()) == Some(&true);
        is_marked.then(|| self.found.of.get(&(at.0, node)).copied())?
    }

    fn of(&self, at: InstructionId, node: u32) -> &[Mark] {
        self.row_of(at, node).and_then(|row| self.found.sets.get(row as usize)).map_or(&[], Vec::as_slice)
    }

    /// The row of a set of marks.
    fn row(&mut self, marks: Vec<Mark>) -> u32 {
        if let Some(&row) = self.numbers.get(&marks) {
            return row;
        }
        let row = self.found.sets.len() as u32;
        self.numbers.insert(marks.clone(), row);
        self.found.sets.push(marks);
        row
    }

    /// Adds a set of marks to an array; returns whether it had not all of them.
    fn put(&mut self, at: InstructionId, node: u32, row: u32) -> bool {
        if at.index() >= self.is_marked.len() {
            return false;
        }
        let mut row = row;
        if let Some(known) = self.row_of(at, node) {
            if known == row {
                return false;
            }
            let set = |row: u32| self.found.sets.get(row as usize).map_or(&[][..], Vec::as_slice);
            let mut all = set(known).to_vec();
            for &mark in set(row) {
                mark::add(&mut all, mark);
            }
            row = self.row(all);
            if known == row {
                return false;
            }
        }
        self.found.of.insert((at.0, node), row);
        self.is_marked[at.index()] = true;
        true
    }

    fn node(&self, at: InstructionId, node: u32) -> Option<&ShapeNode> {
        self.program.shape_of(at)?.nodes.get(node as usize)
    }

    /// Node of an element of a tuple.
    fn child(&self, at: InstructionId, element: usize) -> Option<u32> {
        self.program.shape_of(at)?.root().children.get(element).copied()
    }

    /// Hands a value, or an element of it, on as another, or an element of that; returns whether that is news there.
    fn hand_on(&mut self, (from, node): (InstructionId, u32), (to, place): (InstructionId, u32)) -> bool {
        if self.is_marked.get(from.index()) != Some(&true) {
            return false;
        }
        let Some(count) = self.node(from, node).map(|node| node.subtree_len.max(1)) else { return false };
        self.left = self.left.saturating_sub(u64::from(count / 16));
        let mut is_new = false;
        for step in 0..count {
            let Some(row) = self.row_of(from, node + step) else { continue };
            let alike = self.node(from, node + step).map(|node| node.dimensions.len())
                == self.node(to, place + step).map(|node| node.dimensions.len());
            if alike {
                is_new |= self.put(to, place + step, row);
            }
        }
        is_new
    }

    /// The instructions of a computation, in their order, in which operands come first.
    fn computation(&mut self, computation: ComputationId, depth: u32) {
        let Some((start, end)) = self.program.computations.get(computation.index()).map(|c| (c.start, c.end)) else {
            return;
        };
        for row in start..end {
            let at = InstructionId(row);
            if self.is_to_look_at(at) {
                let Some(left) = self.left.checked_sub(1) else {
                    self.found.is_whole = false;
                    return;
                };
                self.left = left;
                self.instruction(at, depth);
            }
        }
    }

    /// Whether an instruction has operands with marks, or makes some.
    fn is_to_look_at(&self, at: InstructionId) -> bool {
        let instructions = &self.program.instructions;
        let is_marked = |&operand: &u32| self.is_marked.get(operand as usize) == Some(&true);
        if instructions.operands_of(at).iter().any(is_marked) {
            return true;
        }
        match self.opcode(at) {
            Opcode::FUSION | Opcode::CALL | Opcode::WHILE => {
                instructions.called_by(at).iter().any(|called| self.is_numbering.get(called.index()) == Some(&true))
            }
            opcode => self.kind(opcode) == Kind::Numbered,
        }
    }

    fn kind(&self, opcode: Opcode) -> Kind {
        self.kinds.get(usize::from(opcode.0)).copied().unwrap_or(Kind::Same)
    }

    /// The parameters of a computation.
    fn parameters(&self, computation: ComputationId) -> impl Iterator<Item = u32> + use<'a> {
        let program = self.program;
        let rows = program.computations.get(computation.index()).map_or(0..0, |called| called.start..called.end);
        rows.filter(|&row| program.instructions.opcode.get(row as usize) == Some(&Opcode::PARAMETER))
    }

    /// Hands the operands of a call on to the parameters of what it calls, the first of which stands for operand `first`;
    /// returns whether that is news there.
    fn enter(&mut self, at: InstructionId, computation: ComputationId, first: usize) -> bool {
        let mut is_new = false;
        for row in self.parameters(computation) {
            let place = self.program.instructions.argument.get(row as usize).copied().unwrap_or(0) as usize;
            if let Some(from) = operand(self.program, at, first + place) {
                is_new |= self.hand_on((from, 0), (InstructionId(row), 0));
            }
        }
        is_new
    }

    /// What comes from a computation that is called with the operands from the `first` on.
    fn call(&mut self, at: InstructionId, computation: ComputationId, first: usize, depth: u32) {
        if depth >= MAX_DEPTH {
            self.found.is_whole = false;
            return;
        }
        self.enter(at, computation, first);
        self.computation(computation, depth + 1);
        let is_async = matches!(self.opcode(at), Opcode::ASYNC_START | Opcode::ASYNC_UPDATE);
        // What an asynchronous call returns comes after its operands.
        let to = if is_async { self.child(at, 1) } else { Some(0) };
        if let (Some(root), Some(to)) = (root(self.program, computation), to) {
            self.hand_on((root, 0), (at, to));
        }
    }

    fn opcode(&self, at: InstructionId) -> Opcode {
        super::opcode(self.program, at)
    }

    fn loops(&mut self, at: InstructionId, depth: u32) {
        let (Some(body), Some(state)) = (body(self.program, at), operand(self.program, at, 0)) else { return };
        self.hand_on((state, 0), (at, 0));
        let Some(root) = root(self.program, body) else { return };
        if depth >= MAX_DEPTH {
            self.found.is_whole = false;
            return;
        }
        let parameter = self.parameters(body).next();
        let mut is_new = self.enter(at, body, 0);
        for _ in 0..MAX_PASSES {
            if !is_new {
                break;
            }
            self.computation(body, depth + 1);
            self.hand_on((root, 0), (at, 0));
            is_new = parameter.is_some_and(|row| self.hand_on((root, 0), (InstructionId(row), 0)));
        }
    }

    fn instruction(&mut self, at: InstructionId, depth: u32) {
        let program = self.program;
        let first = operand(program, at, 0);
        match self.opcode(at) {
            Opcode::CONSTANT => {}
            Opcode::PARAMETER if first.is_none() => {}
            Opcode::TUPLE => {
                for place in 0..program.instructions.operands_of(at).len() {
                    if let (Some(from), Some(to)) = (operand(program, at, place), self.child(at, place)) {
                        self.hand_on((from, 0), (at, to));
                    }
                }
            }
            // A parameter with an operand is an argument that comes in a tuple.
            Opcode::GET_TUPLE_ELEMENT | Opcode::PARAMETER => {
                let element = program.instructions.argument.get(at.index()).copied().unwrap_or(0) as usize;
                if let Some(from) = first
                    && let Some(node) = self.child(from, element)
                {
                    self.hand_on((from, node), (at, 0));
                }
            }
            Opcode::FUSION | Opcode::CALL | Opcode::ASYNC_START => {
                if let Some(&computation) = program.instructions.called_by(at).first() {
                    self.call(at, computation, 0, depth);
                }
            }
            Opcode::CONDITIONAL => {
                for (branch, &computation) in program.instructions.called_by(at).iter().enumerate() {
                    self.call(at, computation, branch + 1, depth);
                }
            }
            Opcode::WHILE => self.loops(at, depth),
            Opcode::OPTIMIZATION_BARRIER | Opcode::OPT_BARRIER | Opcode::DOMAIN => {
                if let Some(from) = first {
                    self.hand_on((from, 0), (at, 0));
                }
            }
            // It may bring the operands of what was started.
            Opcode::ASYNC_UPDATE => {
                let Some(from) = first else { return };
                self.hand_on((from, 0), (at, 0));
                if program.instructions.operands_of(at).len() > 1
                    && let Some(&computation) = program.instructions.called_by(from).first()
                {
                    self.call(at, computation, 1, depth);
                }
            }
            Opcode::CUSTOM_CALL if program.instructions.operands_of(at).len() > 1 => {
                match fetched_in_slices(program, at) {
                    Some(from) => drop(self.hand_on((from, 0), (at, 0))),
                    None => self.computed(at),
                }
            }
            _ => self.computed(at),
        }
    }

    /// The set of marks that all operands with marks share, where they have the dimensions of the result.
    fn common(&self, at: InstructionId, result: &ShapeNode) -> Option<u32> {
        let mut common = None;
        for &operand in self.program.instructions.operands_of(at) {
            let operand = InstructionId(operand);
            if self.is_marked.get(operand.index()) != Some(&true) {
                continue;
            }
            let row = self.row_of(operand, 0)?;
            if self.node(operand, 0)?.dimensions != result.dimensions || common.is_some_and(|common| common != row) {
                return None;
            }
            common = Some(row);
        }
        common
    }

    /// An instruction that computes arrays, or starts or ends their transfer.
    fn computed(&mut self, at: InstructionId) {
        let program = self.program;
        let Some(shape) = program.shape_of(at) else { return };
        let kind = self.kind(self.opcode(at));
        if kind == Kind::Same
            && let [result] = shape.nodes.as_slice()
            && let Some(row) = self.common(at, result)
        {
            self.put(at, 0, row);
            return;
        }
        // Operands that are tuples, such as what a transfer began, count as their arrays.
        let mut operands = Vec::new();
        for &row in program.instructions.operands_of(at) {
            let at = InstructionId(row);
            let nodes = program.shape_of(at).map_or(&[][..], |shape| shape.nodes.as_slice());
            if nodes.len() <= 1 {
                operands.push(nodes.first().map(|node| (node, self.of(at, 0))));
            } else if self.is_marked.get(at.index()) == Some(&true) {
                let arrays = nodes.iter().enumerate().filter(|(_, node)| !node.is_tuple());
                operands.extend(arrays.map(|(place, node)| Some((node, self.of(at, place as u32)))));
            }
        }
        let numbers = || program.text.dimension_numbers(at);
        let arrays = shape.nodes.iter().enumerate().filter(|(_, node)| !node.is_tuple());
        let found: Vec<(u32, Vec<Mark>)> =
            arrays.map(|(place, node)| (place as u32, transfer::marks(kind, &numbers, &operands, node))).collect();
        for (place, marks) in found.into_iter().filter(|found| !found.1.is_empty()) {
            let row = self.row(marks);
            self.put(at, place, row);
        }
    }
}
