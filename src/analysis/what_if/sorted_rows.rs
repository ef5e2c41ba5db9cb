//! Rows of tokens that a program sorts, as a mixture of experts does by the expert that each goes to: a token has several,
//! so that the array of them is longer than the batch has tokens.

use super::batch::DataArgument;
use super::batch_by_shape::LEAST_FACTOR;
use super::memory::Memory;
use crate::analysis::once::once;
use crate::model::{FastSet, InstructionId, Program, Shape, ShapeNode, outline};

impl Memory {
    /// Lengths of the integer vectors that are sorted and have several rows for each token of the batch.
    pub(super) fn sorted_rows(&self, program: &Program) -> &Vec<i64> {
        once(&self.sorted_rows, || {
            let of = |data: &DataArgument| match data.dimensions[..] {
                // Of an odd number of tokens the last is only predicted.
                [batch, length] => vec![batch.saturating_mul(length), batch.saturating_mul(length - length % 2)],
                _ => Vec::new(),
            };
            let tokens: FastSet<i64> = self.data.iter().flat_map(of).filter(|&tokens| tokens >= LEAST_FACTOR).collect();
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
            found.extend(self.places_of_experts(program, &tokens));
            found.sort_unstable();
            found.dedup();
            found
        })
    }

    /// Whether rows of tokens are sorted or put into places, several for each.
    #[must_use]
    pub fn sends_rows(&self, program: &Program) -> bool {
        !self.sorted_rows(program).is_empty()
    }

    /// Numbers of places into which tokens are put by the expert that they go to: so many for each expert, together a
    /// multiple of an eighth of the tokens. There may be one more, for tokens that find no place.
    fn places_of_experts(&self, program: &Program, tokens: &FastSet<i64>) -> Vec<i64> {
        let mut found = Vec::new();
        let mut scattered: FastSet<(i64, i64)> = FastSet::default();
        for row in 0..program.instructions.len() {
            let at = InstructionId(row as u32);
            if tokens.is_empty() || program.opcode_name(at) != "scatter" {
                continue;
            }
            let Some(node) = program.shape_of(at).map(Shape::root) else { continue };
            let [places, width] = node.dimensions[..] else { continue };
            if self.weights(program).contains(&outline(&node.dimensions)) {
                continue;
            }
            let are_of =
                |places: i64| tokens.iter().any(|&tokens| places > tokens && places.saturating_mul(8) % tokens == 0);
            let Some(own) = [places, places.saturating_sub(1)].into_iter().find(|&places| are_of(places)) else {
                continue;
            };
            found.extend([own, places]);
            scattered.insert((own, width));
        }
        found.extend(self.places_of_each(program, &scattered));
        found
    }

    /// Of so many places for arrays of a width, those of each expert that a device has, and of each of the devices that they
    /// come from: the places of `[experts, places, width]`, where a weight has a dimension of as many experts.
    fn places_of_each(&self, program: &Program, scattered: &FastSet<(i64, i64)>) -> Vec<i64> {
        if scattered.is_empty() {
            return Vec::new();
        }
        let sizes: FastSet<i64> = self.weights(program).iter().flatten().copied().collect();
        let of_each = |node: &ShapeNode| {
            let [ref experts @ .., each, width] = node.dimensions[..] else { return None };
            let are_experts = !experts.is_empty() && experts.iter().all(|size| sizes.contains(size));
            let all = experts.iter().fold(each, |all, &size| all.saturating_mul(size));
            (each >= LEAST_FACTOR && are_experts && scattered.contains(&(all, width))).then_some(each)
        };
        program.shapes.iter().flat_map(|shape| &shape.nodes).filter_map(of_each).collect()
    }
}
