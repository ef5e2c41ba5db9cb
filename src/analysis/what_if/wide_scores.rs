//! What stays in 32 bits where the rest of a program is computed in fewer: attention scores, Fourier transforms.

use std::collections::HashSet;

use super::memory::Memory;
use crate::model::Program;

/// What names of attention say whose softmax is in the type of what it is given: the product that makes the scores of
/// Haiku's, and the layers of Keras.
const IN_GIVEN_TYPE: [&str; 2] = ["...thd,...Thd->...htT", "multi_head_attention"];

/// What names of the parts of Fourier transforms contain. Complex numbers take 64 bits at least in JAX, so that neither what
/// is transformed nor what comes of it has fewer than 32.
const TRANSFORM: &str = "fft";

impl Memory {
    /// Whether a family holds a part of a Fourier transform.
    #[must_use]
    pub fn is_transform(&self, family: usize) -> bool {
        self.family_name(family).contains(TRANSFORM)
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
