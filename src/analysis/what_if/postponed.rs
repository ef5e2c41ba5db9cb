//! Gradients of weights that the compiler postpones, and what the backward pass keeps for them alone.

use std::cell::OnceCell;

use smallvec::SmallVec;

use super::batch::DataArgument;
use super::memory::Memory;
use super::turn::Turn;
use crate::analysis::flow::loops::unchanged;
use crate::analysis::flow::{Value, computed, hands_on};
use crate::analysis::once::once;
use crate::analysis::packing::Families;
use crate::model::{FastMap, FastSet, InstructionId, NO_ROW, Opcode, Program, Shape, ShapeNode, outline};

/// How far a value is followed to the gradient that is made from it: four values on the way, each handed on at most so often.
const FURTHEST: u32 = 4 * VALUE + 3;

/// How far it is to a value that another one is made into; what only hands it on is one step.
const VALUE: u32 = 4;

/// Most operations before one that could all run earlier.
const EARLIER: u32 = 4;

/// Share of a value's bytes up to which what else is made from it, such as the loss or its rows, is made as soon as that
/// frees the value.
const SMALL: u64 = 64;

/// A family that is read last for gradients of weights alone.
#[derive(Debug, Clone)]
pub(super) struct Postponed {
    /// The family.
    pub family: u32,
    /// Time of its last read for anything else; 0 if there is none.
    pub until: u32,
    /// The gradients that are made from it after that.
    pub gradients: Vec<u32>,
    /// What is made on the way to them, such as a copy in another layout, each with the time from which it can be made.
    pub on_the_way: Vec<(u32, u32)>,
}

impl Memory {
    /// Families that nothing but gradients of weights reads after an event, ascending.
    #[must_use]
    pub fn waiting_for_gradients(&self, program: &Program, event: u32) -> Vec<u32> {
        let time = event.saturating_mul(2);
        self.postponed(program).iter().filter(|row| row.until <= time).map(|row| row.family).collect()
    }

    /// What the backward pass keeps for gradients of weights alone, worked out once.
    pub(super) fn postponed(&self, program: &Program) -> &Vec<Postponed> {
        once(&self.postponed, || {
            let Some(turn) = &self.kept.turn else { return Vec::new() };
            let mut search = Search::new(program, self, turn);
            (0..self.families.list.len() as u32).filter_map(|family| search.postponed(family)).collect()
        })
    }
}

/// What reads a result: mostly one instruction, or a few.
type Users = SmallVec<[u32; 4]>;

/// Tells what is read for gradients of weights alone.
struct Search<'a> {
    program: &'a Program,
    turn: &'a Turn,
    families: &'a Families,
    weights: &'a FastSet<Vec<i64>>,
    /// Samples of a device; 0 where they are not known.
    batch: i64,
    /// Families by the instruction that makes them.
    made_by: FastMap<u32, Vec<u32>>,
    known: FastMap<u32, bool>,
    /// The schedule of the computation that the layers run in.
    schedule: &'a [u32],
    /// Place in that schedule, by instruction; [`NO_ROW`] for one of another computation.
    places: Vec<u32>,
    /// What takes an element of what is computed in the entry, by the instruction that computes it and the element, once
    /// somebody asked.
    taken: OnceCell<FastMap<(u32, u32), u32>>,
    /// Time at which all is made that an instruction reads after the turn, by instruction.
    ready: Vec<u32>,
    /// What reads the result of an instruction of the entry, once somebody asked.
    users: OnceCell<FastMap<u32, Users>>,
}

/// The schedule of the computation that makes most of what layers keep: the entry's, or that of a loop over micro-batches.
fn schedule_of_layers<'a>(program: &'a Program, families: &Families, turn: &Turn) -> &'a [u32] {
    let mut bytes: FastMap<u32, u64> = FastMap::default();
    for (family, layer) in families.list.iter().zip(&turn.layer_of) {
        let is_kept = layer.is_some() && 2 * family.first < turn.at && 2 * family.last >= turn.at;
        let made = program.buffers.instruction_of(family.root).filter(|_| is_kept);
        if let Some(of) = made.and_then(|made| program.computation_of(made)) {
            let sum = bytes.entry(of.0).or_default();
            *sum = sum.saturating_add(family.size);
        }
    }
    let most = bytes.into_iter().max_by_key(|&(of, bytes)| (bytes, std::cmp::Reverse(of)));
    let most = most.and_then(|(of, _)| program.computations.get(of as usize));
    most.or_else(|| program.entry_computation()).map_or(&[][..], |of| of.schedule.as_slice())
}

/// Computations that run beside a schedule, such as copies in another layout on SparseCores, with what hands them their
/// operands.
fn run_beside(program: &Program, schedule: &[u32]) -> FastMap<u32, u32> {
    let mut beside = FastMap::default();
    for &row in schedule {
        let at = InstructionId(row);
        let start = match program.instructions.opcode.get(at.index()) {
            Some(&Opcode::ASYNC_START) => Some(row),
            // Hands on what the start was not given.
            Some(&Opcode::ASYNC_UPDATE) => program.instructions.operands_of(at).first().copied(),
            _ => None,
        };
        let called = start.and_then(|start| program.instructions.called_by(InstructionId(start)).first());
        if let Some(called) = called {
            beside.insert(called.0, row);
        }
    }
    beside
}

impl<'a> Search<'a> {
    fn new(program: &'a Program, memory: &'a Memory, turn: &'a Turn) -> Self {
        let weights = memory.weights(program);
        let schedule = schedule_of_layers(program, &memory.families, turn);
        let mut ready = vec![0u32; program.instructions.len()];
        for (row, _, reader) in turn.late_reads() {
            let made = memory.families.list.get(row as usize).map_or(0, |family| 2 * family.first);
            if let Some(known) = ready.get_mut(reader as usize) {
                *known = made.max(*known);
            }
        }
        let mut places = vec![NO_ROW; program.instructions.len()];
        for (&row, place) in schedule.iter().zip(0..) {
            if let Some(known) = places.get_mut(row as usize) {
                *known = place;
            }
        }
        let beside = run_beside(program, schedule);
        let mut made_by: FastMap<u32, Vec<u32>> = FastMap::default();
        for (row, family) in memory.families.list.iter().enumerate() {
            let Some(at) = program.buffers.instruction_of(family.root) else { continue };
            let is_elsewhere = !beside.is_empty() && places.get(at.index()) == Some(&NO_ROW);
            let runs = program.computation_of(at).filter(|_| is_elsewhere);
            let at = runs.and_then(|of| beside.get(&of.0)).copied().unwrap_or(at.0);
            made_by.entry(at).or_default().push(row as u32);
        }
        Self {
            program,
            turn,
            families: &memory.families,
            weights,
            batch: memory.data.first().map_or(0, DataArgument::batch),
            made_by,
            known: FastMap::default(),
            schedule,
            places,
            taken: OnceCell::new(),
            ready,
            users: OnceCell::new(),
        }
    }

    fn postponed(&mut self, family: u32) -> Option<Postponed> {
        let reads = self.reads_in_entry(family);
        let size = self.families.list.get(family as usize)?.size;
        let mut others = reads.iter().rposition(|&(_, reader)| !self.is_for_weights(reader, FURTHEST));
        // What is read for little else might as well be read before, once all that is needed for it is there.
        let early = self.turn.reads()[self.turn.reads_of(family)].last().map(|read| read.reader);
        while let Some(row) = others {
            let before = reads[..row].iter().rposition(|&(_, reader)| !self.is_for_weights(reader, FURTHEST));
            let reader = before.map(|before| reads[before].1).or(early);
            if !reader.is_some_and(|reader| self.may_come_after(reads[row].1, reader, size)) {
                break;
            }
            others = before;
        }
        let last = reads.get(others.map_or(0, |row| row + 1)..)?;
        let until = others.map_or(0, |row| reads[row].0);
        let (mut gradients, mut on_the_way) = (Vec::new(), Vec::new());
        for &(_, reader) in last {
            // What makes little else is followed no further.
            let furthest = if self.is_for_weights(reader, FURTHEST) { FURTHEST } else { 0 };
            self.follow(reader, furthest, &mut gradients, &mut on_the_way);
        }
        (!last.is_empty()).then_some(Postponed { family, until, gradients, on_the_way })
    }

    /// Place of an instruction in the entry's schedule; `None` if it is of another computation.
    fn place(&self, instruction: u32) -> Option<u32> {
        self.places.get(instruction as usize).copied().filter(|&place| place != NO_ROW)
    }

    /// What takes an element of what is computed in the entry.
    fn taken(&self) -> &FastMap<(u32, u32), u32> {
        self.taken.get_or_init(|| {
            let instructions = &self.program.instructions;
            let is_element = |&&row: &&u32| instructions.opcode.get(row as usize) == Some(&Opcode::GET_TUPLE_ELEMENT);
            let taken = self.schedule.iter().filter(is_element).filter_map(|&row| {
                let of = *instructions.operands_of(InstructionId(row)).first()?;
                Some(((of, *instructions.argument.get(row as usize)?), row))
            });
            taken.collect()
        })
    }

    /// Reads of a family after the turn, of which those in a loop's steps are the loop's.
    fn reads_in_entry(&self, family: u32) -> Vec<(u32, u32)> {
        self.turn.late_reads_of(family).filter(|read| self.place(read.1).is_some()).collect()
    }

    /// Whether an instruction that makes little beside weights, against a value of some bytes that it reads, could run right
    /// after another one.
    fn may_come_after(&self, instruction: u32, other: u32, bytes: u64) -> bool {
        let after = self.place(other);
        after.is_some_and(|after| self.could_run(instruction, after, bytes / SMALL, EARLIER))
    }

    /// Whether all that an instruction needs is there after a place in the schedule, or could be, and it makes at most some
    /// bytes beside weights.
    fn could_run(&self, instruction: u32, after: u32, most: u64, furthest: u32) -> bool {
        let at = InstructionId(instruction);
        let Some(shape) = self.program.shape_of(at) else { return false };
        let arrays = shape.nodes.iter().filter(|node| node.children.is_empty() && !node.is_tuple());
        let others = arrays.filter(|node| !self.weights.contains(&outline(&node.dimensions)));
        if furthest == 0 || others.map(|node| node.unpadded_size().0).fold(0, u64::saturating_add) > most {
            return false;
        }
        self.program.instructions.operands_of(at).iter().all(|&row| {
            let row = computed(self.program, Value::whole(InstructionId(row))).at.0;
            let is_there = self.place(row).is_some_and(|place| place <= after);
            is_there || self.could_run(row, after, most, furthest - 1)
        })
    }

    /// Collects the gradients of weights that an instruction makes, at once or by what else it makes.
    fn follow(&self, instruction: u32, furthest: u32, gradients: &mut Vec<u32>, on_the_way: &mut Vec<(u32, u32)>) {
        let handed_on = if self.is_handed_on(instruction) { furthest.checked_sub(1) } else { None };
        if let Some(further) = handed_on {
            for &reader in self.users_of(instruction) {
                self.follow(reader, further, gradients, on_the_way);
            }
        }
        for &row in self.made_by(instruction) {
            let root = self.families.list.get(row as usize).map(|family| family.root);
            let node = root.and_then(|root| self.program.buffer_node(root));
            if node.is_some_and(|node| self.is_gradient(instruction, node)) {
                gradients.push(row);
            } else if let Some(further) = furthest.checked_sub(VALUE)
                && !on_the_way.iter().any(|known| known.0 == row)
            {
                on_the_way.push((row, self.ready.get(instruction as usize).copied().unwrap_or(0)));
                for (_, reader) in self.reads_in_entry(row) {
                    self.follow(reader, further, gradients, on_the_way);
                }
            }
        }
    }

    /// Whether what an instruction only hands on has no memory of its own here, such as what is fetched into on-chip memory.
    fn is_handed_on(&self, instruction: u32) -> bool {
        self.made_by(instruction).is_empty()
            && (self.program.instructions.opcode.get(instruction as usize) == Some(&Opcode::TUPLE)
                || hands_on(self.program, InstructionId(instruction)))
    }

    /// What reads the result of an instruction of the entry.
    fn users_of(&self, instruction: u32) -> &[u32] {
        let users = self.users.get_or_init(|| {
            let mut users: FastMap<u32, Users> = FastMap::default();
            for &row in self.schedule {
                for &operand in self.program.instructions.operands_of(InstructionId(row)) {
                    if operand != NO_ROW {
                        users.entry(operand).or_default().push(row);
                    }
                }
            }
            users
        });
        users.get(&instruction).map_or(&[], SmallVec::as_slice)
    }

    fn made_by(&self, instruction: u32) -> &[u32] {
        self.made_by.get(&instruction).map_or(&[], Vec::as_slice)
    }

    /// Whether all that an instruction makes has the shape of weights, or is only read to make such.
    fn is_for_weights(&mut self, instruction: u32, furthest: u32) -> bool {
        if let Some(&known) = self.known.get(&instruction) {
            return known;
        }
        if self.is_handed_on(instruction) {
            let readers = self.users_of(instruction).to_vec();
            let further = furthest.checked_sub(1).filter(|_| !readers.is_empty());
            let found = further.is_some_and(|further| readers.into_iter().all(|at| self.is_for_weights(at, further)));
            self.known.insert(instruction, found);
            return found;
        }
        let opcode = self.program.instructions.opcode.get(instruction as usize);
        let runs_beside = matches!(opcode, Some(&(Opcode::ASYNC_START | Opcode::ASYNC_UPDATE)));
        if runs_beside && !self.made_by(instruction).is_empty() {
            let made = self.made_by(instruction).to_vec();
            let further = furthest.checked_sub(VALUE);
            let is_read = |row| further.is_some_and(|further| self.is_read_for_weights(row, further));
            let found = made.into_iter().all(is_read);
            self.known.insert(instruction, found);
            return found;
        }
        let Some(shape) = self.program.shape_of(InstructionId(instruction)) else { return false };
        let rows = shape.nodes.iter().zip(0u32..);
        let arrays = rows.filter(|(node, _)| node.children.is_empty() && node.element_type.is_float());
        let others = arrays.filter(|(node, _)| !self.is_gradient(instruction, node));
        let is_loop = self.program.instructions.opcode.get(instruction as usize) == Some(&Opcode::WHILE);
        let others: Vec<u32> =
            others.map(|row| row.1).filter(|&row| !is_loop || self.is_made_by_loop(instruction, shape, row)).collect();
        let further = furthest.checked_sub(VALUE);
        let is_made =
            |node: u32| further.is_some_and(|further| self.is_made_into_weights((instruction, node), further));
        let found = others.into_iter().all(is_made);
        self.known.insert(instruction, found);
        found
    }

    /// Whether an array that an instruction makes is a gradient of weights, or of what is made of weights alone, such as a bias
    /// that all layers add to their attention scores: it has their shape, or is summed over all samples.
    fn is_gradient(&self, instruction: u32, node: &ShapeNode) -> bool {
        if self.weights.contains(&outline(&node.dimensions)) {
            return true;
        }
        let is_of_samples = |dimensions: &[i64]| {
            let Some((&first, rest)) = dimensions.split_first() else { return false };
            self.batch > 1 && first % self.batch == 0 && rest.len() > 1 && rest == node.dimensions.as_slice()
        };
        let operands = self.program.instructions.operands_of(InstructionId(instruction)).iter();
        let mut shapes = operands.filter_map(|&row| self.program.shape_of(InstructionId(row)));
        shapes.any(|shape| is_of_samples(&shape.root().dimensions))
    }

    /// Whether a loop makes an element that counts: what it only passes on or nobody takes from it but for another loop, such
    /// as an operand that it multiplies in parts, it does not make, and what is smaller than the gradients is of its working.
    fn is_made_by_loop(&self, instruction: u32, shape: &Shape, row: u32) -> bool {
        let Some(place) = shape.root().children.iter().position(|&child| child == row) else { return true };
        let bytes = |node: &ShapeNode| node.unpadded_size().0;
        let is_gradient = |node: &&ShapeNode| self.weights.contains(&outline(&node.dimensions));
        let largest = shape.nodes.iter().filter(is_gradient).map(bytes).max().unwrap_or(0);
        let is_tuple = |&user: &u32| self.program.instructions.opcode.get(user as usize) == Some(&Opcode::TUPLE);
        let taken = self.taken().get(&(instruction, place as u32));
        taken.is_some_and(|&taken| !self.users_of(taken).iter().all(is_tuple))
            && shape.nodes.get(row as usize).is_some_and(|node| bytes(node) >= largest)
            && !unchanged(self.program, InstructionId(instruction), &[place as i64])
    }

    /// What has no memory of its own is written in place of something else, and is not followed.
    fn is_made_into_weights(&mut self, (instruction, node): (u32, u32), furthest: u32) -> bool {
        let is_meant = |&&row: &&u32| {
            let root = self.families.list.get(row as usize).map(|family| family.root.index());
            root.and_then(|root| self.program.buffers.node.get(root)) == Some(&node)
        };
        let made = self.made_by(instruction).iter().find(is_meant).copied();
        made.is_some_and(|row| self.is_read_for_weights(row, furthest))
    }

    /// Whether a family is read, and for gradients of weights alone.
    fn is_read_for_weights(&mut self, row: u32, furthest: u32) -> bool {
        let readers: Vec<u32> = self.reads_in_entry(row).into_iter().map(|read| read.1).collect();
        !readers.is_empty() && readers.into_iter().all(|reader| self.is_for_weights(reader, furthest))
    }
}
