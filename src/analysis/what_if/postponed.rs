//! Gradients of weights that the compiler postpones, and what the backward pass keeps for them alone.

use std::collections::HashMap;

use super::batch::outline;
use super::memory::Memory;
use super::turn::Turn;
use crate::analysis::once::once;
use crate::analysis::packing::Families;
use crate::model::{FastSet, InstructionId, Program};

/// Most readers followed from a value to the gradient that is made from it.
const FURTHEST: u32 = 4;

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
        Self { program, turn, families: &memory.families, weights, made_by, known: HashMap::new() }
    }

    fn postponed(&mut self, family: u32) -> Option<Postponed> {
        let reads: Vec<(u32, u32)> = self.turn.late_reads_of(family).collect();
        let others = reads.iter().rposition(|&(_, reader)| !self.is_for_weights(reader, FURTHEST));
        let last = reads.get(others.map_or(0, |row| row + 1)..)?;
        let gradients: Vec<u32> = last.iter().flat_map(|read| self.gradients_of(read.1)).collect();
        let until = others.map_or(0, |row| reads[row].0);
        (!last.is_empty()).then_some(Postponed { family, until, gradients })
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
