//! Rows of tokens that a program sorts, as a mixture of experts does by the expert that each goes to: a token has several,
//! so that the array of them is longer than the batch has tokens.

use super::batch::DataArgument;
use super::batch_by_shape::LEAST_FACTOR;
use super::memory::Memory;
use crate::analysis::once::once;
use crate::model::{FastSet, InstructionId, Program};

impl Memory {
    /// Lengths of the integer vectors that are sorted and have several rows for each token of the batch.
    pub(super) fn sorted_rows(&self, program: &Program) -> &Vec<i64> {
        once(&self.sorted_rows, || {
            let of = |data: &DataArgument| match data.dimensions[..] {
                [batch, length] => Some(batch.saturating_mul(length)).filter(|&tokens| tokens >= LEAST_FACTOR),
                _ => None,
            };
            let tokens: FastSet<i64> = self.data.iter().filter_map(of).collect();
            let mut found: Vec<i64> = (0..program.instructions.len())
                .map(|row| InstructionId(row as u32))
                .filter(|&at| !tokens.is_empty() && program.opcode_name(at) == "sort")
                .filter_map(|at| {
                    let shape = program.shape_of(at)?;
                    let keys = shape.nodes.iter().find(|node| node.element_type.is_array())?;
                    let [length] = keys.dimensions[..] else { return None };
                    let is_of_tokens = tokens.iter().any(|&tokens| length > tokens && length % tokens == 0);
                    (keys.element_type.is_index() && is_of_tokens).then_some(length)
                })
                .collect();
            found.sort_unstable();
            found.dedup();
            found
        })
    }
}
