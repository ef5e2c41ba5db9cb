//! Gradients of weights that the compiler postpones, and what the backward pass keeps for them alone.

use std::collections::HashMap;

use super::memory::Memory;
use super::turn::Turn;
use crate::analysis::flow::{Value, computed};
use crate::analysis::once::once;
use crate::analysis::packing::Families;
use crate::model::{FastSet, InstructionId, Program, outline};

/// Most readers followed from a value to the gradient that is made from it.
const FURTHEST: u32 = 4;

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
}

impl Memory {
    /// What the backward pass keeps for gradients of weights alone, worked out once.
    pub(super) fn postponed(&self, program: &Program) -> &Vec<Postponed> {
        once(&self.postponed, || {
            let Some(turn) = &self.kept.turn else { return Vec::new() };
            let mut search = Search::new(program, self, turn);
            (0..self.families.list.len() as u32).filter_map(|family| search.postponed(family)).collect()
        })
    }
}

/// Tells what is read for gradients of weights alone.
struct Search<'a> {
    program: &'a Program,
    turn: &'a Turn,
    families: &'a Families,
    weights: &'a FastSet<Vec<i64>>,
    /// Families by the instruction that makes them.
    made_by: HashMap<u32, Vec<u32>>,
    known: HashMap<u32, bool>,
    /// Place in the entry's schedule, by instruction of it.
    places: HashMap<u32, u32>,
}

impl<'a> Search<'a> {
    fn new(program: &'a Program, memory: &'a Memory, turn: &'a Turn) -> Self {
        let mut made_by: HashMap<u32, Vec<u32>> = HashMap::new();
        for (row, family) in memory.families.list.iter().enumerate() {
            if let Some(at) = program.buffers.instruction_of(family.root) {
                made_by.entry(at.0).or_default().push(row as u32);
            }
        }
        let weights = memory.weights(program);
        let schedule = program.entry_computation().map_or(&[][..], |entry| entry.schedule.as_slice());
        let places = schedule.iter().zip(0..).map(|(&row, place)| (row, place)).collect();
        Self { program, turn, families: &memory.families, weights, made_by, known: HashMap::new(), places }
    }

    fn postponed(&mut self, family: u32) -> Option<Postponed> {
        let reads: Vec<(u32, u32)> = self.turn.late_reads_of(family).collect();
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
        let gradients: Vec<u32> = last.iter().flat_map(|read| self.gradients_of(read.1)).collect();
        let until = others.map_or(0, |row| reads[row].0);
        (!last.is_empty()).then_some(Postponed { family, until, gradients })
    }

    /// Whether an instruction that makes little beside weights, against a value of some bytes that it reads, could run right
    /// after another one.
    fn may_come_after(&self, instruction: u32, other: u32, bytes: u64) -> bool {
        let after = self.places.get(&other);
        after.is_some_and(|&after| self.could_run(instruction, after, bytes / SMALL, FURTHEST))
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
            let is_there = self.places.get(&row).is_some_and(|&place| place <= after);
            is_there || self.could_run(row, after, most, furthest - 1)
        })
    }

    /// Gradients of weights that an instruction makes.
    fn gradients_of(&self, instruction: u32) -> impl Iterator<Item = u32> + '_ {
        let is_gradient = |&&row: &&u32| {
            let root = self.families.list.get(row as usize).map(|family| family.root);
            let node = root.and_then(|root| self.program.buffer_node(root));
            node.is_some_and(|node| self.weights.contains(&outline(&node.dimensions)))
        };
        self.made_by(instruction).iter().filter(is_gradient).copied()
    }

    fn made_by(&self, instruction: u32) -> &[u32] {
        self.made_by.get(&instruction).map_or(&[], Vec::as_slice)
    }

    /// Whether all that an instruction makes has the shape of weights, or is only read to make such.
    fn is_for_weights(&mut self, instruction: u32, furthest: u32) -> bool {
        if let Some(&known) = self.known.get(&instruction) {
            return known;
        }
        let Some(shape) = self.program.shape_of(InstructionId(instruction)) else { return false };
        let rows = shape.nodes.iter().zip(0u32..);
        let arrays = rows.filter(|(node, _)| node.children.is_empty() && node.element_type.is_float());
        let others = arrays.filter(|(node, _)| !self.weights.contains(&outline(&node.dimensions)));
        let others: Vec<u32> = others.map(|row| row.1).collect();
        let is_made = |node: u32| furthest > 0 && self.is_made_into_weights((instruction, node), furthest - 1);
        let found = others.into_iter().all(is_made);
        self.known.insert(instruction, found);
        found
    }

    /// What has no memory of its own is written in place of something else, and is not followed.
    fn is_made_into_weights(&mut self, (instruction, node): (u32, u32), furthest: u32) -> bool {
        let turn = self.turn;
        let is_meant = |&&row: &&u32| {
            let root = self.families.list.get(row as usize).map(|family| family.root.index());
            root.and_then(|root| self.program.buffers.node.get(root)) == Some(&node)
        };
        let Some(&row) = self.made_by(instruction).iter().find(is_meant) else { return false };
        let readers: Vec<u32> = turn.late_reads_of(row).map(|read| read.1).collect();
        !readers.is_empty() && readers.into_iter().all(|reader| self.is_for_weights(reader, furthest))
    }
}
