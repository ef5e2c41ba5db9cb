//! What loops over micro-batches add up: the gradients of weights.

use super::label::{Labels, SUMMED};
use super::like_weights::like_weights;
use super::loops::Role;
use super::steps::Steps;
use super::{Value, node_at, opcode};
use crate::model::{Opcode, Program};

impl Labels {
    /// The label of the sum of the gradients of a weight, where a value is the state of a loop over micro-batches, inside of
    /// it or behind it; `None` for all else.
    #[must_use]
    pub fn summed(&self, program: &Program, value: &Value) -> Option<String> {
        let at = match opcode(program, value.at) {
            Opcode::PARAMETER => self.loops.caller(program.computation_of(value.at)?)?,
            Opcode::WHILE => value.at,
            _ => return None,
        };
        if opcode(program, at) != Opcode::WHILE || self.steps.of(at) != Steps::MicroBatches {
            return None;
        }
        let part = self.loops.part(at, &value.index).filter(|part| part.role == Role::Carry)?;
        let node = node_at(program, at, &part.index).filter(|node| node.element_type.is_float())?;
        like_weights(program, node).map(|like| format!("{SUMMED}: gradient of {like}"))
    }
}
