//! What stays in 32 bits where the rest of a program is computed in fewer: attention scores, Fourier transforms, the fields of a
//! simulation.

use std::collections::HashSet;

use super::base::Base;
use super::memory::Memory;
use crate::model::{Program, ShapeNode};

/// What names of attention say whose softmax is in the type of what it is given: the product that makes the scores of
/// Haiku's, and the layers of Keras.
const IN_GIVEN_TYPE: [&str; 2] = ["...thd,...Thd->...htT", "multi_head_attention"];

/// What names of the parts of Fourier transforms contain. Complex numbers take 64 bits at least in JAX, so that neither what
/// is transformed nor what comes of it has fewer than 32.
const TRANSFORM: &str = "fft";

/// Share of the program's bytes below which state makes no difference: 1/n.
const SMALL: u64 = 64;

/// Share of the elements of a field that its neighbours in one direction have at least.
const NEARLY: f64 = 0.9;

impl Memory {
    /// Whether a family holds a part of a Fourier transform.
    #[must_use]
    pub fn is_transform(&self, family: usize) -> bool {
        self.family_name(family).contains(TRANSFORM)
    }

    /// Arrays of 32-bit state that the program passes on from call to call, such as the fields of a simulation: first
    /// dimension and elements.
    #[must_use]
    pub fn wide_state(&self, program: &Program) -> Vec<(i64, u64)> {
        let large = |base: &&Base| base.is_state() && !base.is_memory() && base.size >= self.allocated / SMALL;
        let nodes = self.base.iter().filter(large).filter_map(|base| program.buffer_node(base.buffer));
        let wide = nodes.filter(|node| node.element_type.is_wide_float() && node.dimensions.len() > 2);
        wide.filter_map(|node| Some((*node.dimensions.first()?, node.element_count()))).collect()
    }

    /// Whether an array is one of such state, whole or but for a margin, as its neighbours in a grid are.
    #[must_use]
    pub fn is_like_state(state: &[(i64, u64)], node: &ShapeNode) -> bool {
        let elements = node.element_count();
        let is_like = |&(first, all): &(i64, u64)| {
            node.dimensions.first() == Some(&first) && elements <= all && elements as f64 >= all as f64 * NEARLY
        };
        node.element_type.is_wide_float() && state.iter().any(is_like)
    }

    /// Families of scores in 32 bits that take as much whatever the type of the rest: most libraries compute a softmax in
    /// 32 bits, and those that do not keep scores both before and after it for the backward pass, unless that is so now.
    #[must_use]
    pub fn wide_scores(&self, program: &Program) -> Vec<u32> {
        if !self.has_backward() {
            return Vec::new();
        }
        let node = |row: u32| self.node_of_family(program, row);
        let scores = &self.kept.scores;
        let narrow = scores.iter().filter_map(|&row| node(row)).filter(|node| node.element_type.is_narrow_float());
        let twins: HashSet<&[i64]> = narrow.map(|node| node.dimensions.as_slice()).collect();
        let is_alone = |row: &u32| {
            node(*row)
                .is_some_and(|node| node.element_type.is_wide_float() && !twins.contains(node.dimensions.as_slice()))
                && !IN_GIVEN_TYPE.iter().any(|part| self.family_name(*row as usize).contains(part))
        };
        scores.iter().copied().filter(is_alone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ElementType;

    #[test]
    fn the_neighbours_of_a_field_are_like_it() {
        let state = [(16384, 16384 * 128 * 128)];
        let like = |ty, dims: &[i64]| Memory::is_like_state(&state, &ShapeNode::array(ty, dims.to_vec()));
        assert!(like(ElementType::F32, &[16384, 128, 127]) && like(ElementType::F32, &[16384, 4, 32, 4, 32]));
        assert!(!like(ElementType::BF16, &[16384, 128, 128]) && !like(ElementType::F32, &[16384, 512]));
    }
}
