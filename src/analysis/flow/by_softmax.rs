//! What a softmax shows an array to be, where its name tells nothing: logits, attention scores, or the gradient of them.

use std::sync::OnceLock;

use super::other_result::own_name;
use super::softmax::{Softmax, elements};
use super::{Value, computed};
use crate::analysis::names::lookup::{is_convolution, is_draw_of_dropout};
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::once::once;
use crate::model::{Program, ShapeNode, outline};

/// Fewest positions of which all but one are taken.
const LEAST_CUT: i64 = 16;

/// The word for what a softmax over classes runs over.
pub const LOGITS: &str = "logits";

/// The words for their gradient.
pub const OF_LOGITS: &str = "gradient of the logits";

/// The words for what a dropout draws for each attention score.
const RANDOM: &str = "random numbers";

/// The softmaxes of a program, looked for when they are first asked for.
#[derive(Debug, Default)]
pub struct Softmaxes(OnceLock<Softmax>);

impl Softmaxes {
    /// What the program's softmaxes run over.
    pub fn of(&self, program: &Program) -> &Softmax {
        once(&self.0, || Softmax::new(program))
    }

    /// What a value is by the softmax that runs over arrays of its dimensions, without that of the layers of a stack:
    /// `logits`. `is_of_weight` tells whether a product with a weight makes it: such are features, or logits.
    pub(super) fn kind(
        &self,
        program: &Program,
        (value, node, dimensions): (&Value, &ShapeNode, &[i64]),
        is_of_weight: impl FnOnce() -> bool,
    ) -> Option<&'static str> {
        if !node.element_type.is_float() || dimensions.len() < 2 {
            return None;
        }
        let (softmax, own) = (self.of(program), outline(dimensions));
        // Scores of the positions of one sequence for those of another have as many keys as there may be classes.
        let are_crossed = softmax.are_batched(&own);
        let whole = like_logits(softmax, &own).filter(|_| !are_crossed);
        let may_be_scores = are_crossed || softmax.scores.contains(&own);
        if whole.is_none() && !may_be_scores {
            return None;
        }
        let name = own_name(program, value.clone());
        let is_gradient = pass_of(&name) == Pass::Backward;
        if whole.is_some_and(|whole| softmax.make_logits(program, value.clone(), whole)) {
            return Some(if is_gradient { OF_LOGITS } else { LOGITS });
        }
        let is_of_convolution =
            || is_convolution(&name) || is_convolution(&program.text.op_name(computed(program, value.clone()).at));
        if may_be_scores && is_draw_of_dropout(&name) {
            return Some(RANDOM);
        }
        let are_scores = may_be_scores && !is_of_convolution() && !is_of_weight();
        are_scores.then_some(if is_gradient { "gradient of attention scores" } else { "attention scores" })
    }

    /// Whether an array has the classes and the size of logits, whatever makes it.
    #[must_use]
    pub fn are_like_logits(&self, program: &Program, node: &ShapeNode) -> bool {
        let (softmax, own) = (self.of(program), outline(&node.dimensions));
        node.element_type.is_float() && like_logits(softmax, &own).is_some() && !softmax.are_batched(&own)
    }
}

/// The dimensions above 1, sorted, of the logits with the classes and the elements of an array of such dimensions: samples
/// and positions may be one. An array with one position fewer is of all logits but those of the last or the first one.
fn like_logits<'a>(softmax: &'a Softmax, own: &[i64]) -> Option<&'a Vec<i64>> {
    let is_alike = |known: &&(i64, Vec<i64>)| own.contains(&known.0) && elements(&known.1) == elements(own);
    let is_cut = |known: &&(i64, Vec<i64>)| own.contains(&known.0) && is_cut(own, known);
    let found = softmax.logits.iter().find(is_alike).or_else(|| softmax.logits.iter().find(is_cut));
    found.map(|known| &known.1)
}

/// Whether an array has the dimensions of logits with one position fewer.
fn is_cut(own: &[i64], (classes, whole): &(i64, Vec<i64>)) -> bool {
    let mut left = whole.clone();
    let mut positions = own.iter().filter(|&size| match left.iter().position(|known| known == size) {
        Some(place) => {
            left.swap_remove(place);
            false
        }
        None => true,
    });
    let (cut, others) = (positions.next().copied(), positions.next());
    own.len() > 2
        && own.len() == whole.len()
        && others.is_none()
        && cut.is_some_and(|size| size >= LEAST_CUT && size != *classes && left == [size + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_are_known_with_samples_and_positions_as_one_dimension() {
        let mut softmax = Softmax::default();
        softmax.logits.push((197_285, vec![16, 512, 197_285]));
        let are_like = |own: &[i64]| like_logits(&softmax, own).is_some();
        assert!(are_like(&[16, 512, 197_285]) && are_like(&[8192, 197_285]));
        assert!(!are_like(&[768, 197_285]), "the gradient of the table that makes them");
        assert!(!are_like(&[8192, 768]));
        assert!(are_like(&[16, 511, 197_285]) && !are_like(&[16, 510, 197_285]), "all but the last position");
        assert!(!are_like(&[511, 197_285]) && !are_like(&[15, 512, 197_285]));
    }
}
