//! Gradients of weights that the compiler postpones, and what the backward pass keeps for them alone.

use std::collections::HashMap;

use super::batch::outline;
use super::memory::Memory;
use super::turn::Turn;
use crate::analysis::packing::Families;
use crate::model::{FastSet, InstructionId, Program};

/// Most readers followed from a value to the gradient that is made from it.
const FURTHEST: u32 = 4;

/// Tells what is read for gradients of weights alone.
pub(super) struct Postponed<'a> {
    program: &'a Program,
    turn: &'a Turn,
    families: &'a Families,
    weights: &'a FastSet<Vec<i64>>,
    /// Families by the instruction that makes them.
    made_by: HashMap<u32, Vec<u32>>,
    known: HashMap<u32, bool>,
}

impl<'a> Postponed<'a> {
    pub(super) fn new(program: &'a Program, memory: &'a Memory, turn: &'a Turn) -> Self {
        let mut made_by: HashMap<u32, Vec<u32>> = HashMap::new();
        for (row, family) in memory.families.list.iter().enumerate() {
            if let Some(at) = program.buffers.instruction_of(family.root) {
                made_by.entry(at.0).or_default().push(row as u32);
            }
        }
        Self {
            program,
            turn,
            families: &memory.families,
            weights: memory.weights(program),
            made_by,
            known: HashMap::new(),
        }
    }

    /// The instructions that read a family after a time, if all of them make gradients of weights; `None` if one does not,
    /// or there is none.
    pub(super) fn later(&mut self, family: u32, over: u32) -> Option<Vec<u32>> {
        let turn = self.turn;
        let late: Vec<u32> = turn.late_reads_of(family).filter(|read| read.0 > over).map(|read| read.1).collect();
        (!late.is_empty() && late.iter().all(|&reader| self.is_for_weights(reader, FURTHEST))).then_some(late)
    }

    /// Gradients of weights that an instruction makes.
    pub(super) fn gradients_of(&self, instruction: u32) -> impl Iterator<Item = u32> + '_ {
        let is_gradient = |&&row: &&u32| {
            let root = self.families.list.get(row as usize).map(|family| family.root);
            let node = root.and_then(|root| self.program.buffer_node(root));
            node.is_some_and(|node| self.weights.contains(&outline(&node.dimensions)))
        };
        self.made_by(instruction).iter().filter(is_gradient).copied()
    }

    /// Families that an instruction makes.
    fn made_by(&self, instruction: u32) -> &[u32] {
        self.made_by.get(&instruction).map_or(&[], Vec::as_slice)
    }

    /// Whether all that an instruction makes has the shape of weights, or is only read to make such.
    fn is_for_weights(&mut self, instruction: u32, furthest: u32) -> bool {
        if let Some(&known) = self.known.get(&instruction) {
            return known;
        }
        let Some(shape) = self.program.shape_of(InstructionId(instruction)) else { return false };
        let arrays =
            shape.nodes.iter().zip(0u32..).filter(|row| row.0.children.is_empty() && row.0.element_type.is_float());
        let others = arrays.filter(|row| !self.weights.contains(&outline(&row.0.dimensions)));
        let others: Vec<u32> = others.map(|row| row.1).collect();
        let found =
            others.into_iter().all(|node| furthest > 0 && self.is_made_into_weights((instruction, node), furthest - 1));
        self.known.insert(instruction, found);
        found
    }

    /// What has no memory of its own is written in place of something else, and is not followed.
    fn is_made_into_weights(&mut self, (instruction, node): (u32, u32), furthest: u32) -> bool {
        let turn = self.turn;
        let is_meant = |&&row: &&u32| {
            let root = self
                .families
                .list
                .get(row as usize)
                .and_then(|family| self.program.buffers.node.get(family.root.index()));
            root == Some(&node)
        };
        let Some(&row) = self.made_by(instruction).iter().find(is_meant) else { return false };
        let readers: Vec<u32> = turn.late_reads_of(row).map(|read| read.1).collect();
        !readers.is_empty() && readers.into_iter().all(|reader| self.is_for_weights(reader, furthest))
    }
}
