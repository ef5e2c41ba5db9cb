//! Arrays that a softmax runs over, recognised by their exponentials: attention scores and logits, whatever their names.

use std::collections::HashSet;

use super::product::is_product;
use super::{Value, computed, opcode};
use crate::analysis::names::lookup::is_convolution;
use crate::analysis::names::pass::{Pass, pass_of};
use crate::model::{ComputationId, InstructionId, NO_ROW, Opcode, Program, ShapeNode, outline};

/// Fewest positions of attention scores that matter: pictures of 224 points in patches of 16 have 196 and a class.
pub const LEAST_POSITIONS: i64 = 128;

/// Fewest keys of attention scores that only their heads tell from logits of classes.
const LEAST_KEYS: i64 = 256;

/// Most heads, or channels, of the attention of graphs.
const MOST_CHANNELS: i64 = 512;

/// Fewest classes of logits that matter.
const LEAST_CLASSES: i64 = 1024;

/// Most dimensions above 1 of logits: parts of the batch, heads of a model that says several tokens at once, positions and
/// classes. Scores of queries in groups for a cache and what is new have more.
const MOST_OF_LOGITS: usize = 4;

/// Scores by relative position have up to about twice as many keys as positions.
const MOST_WIDER: i64 = 2;

/// Dimensions above 1 of the arrays that softmaxes run over, sorted.
#[derive(Debug, Clone, Default)]
pub struct Softmax {
    /// Those with two equal large dimensions and others: a score for each pair of positions.
    pub scores: HashSet<Vec<i64>>,
    /// The same of sequences that are shorter than a block of the kernels for attention.
    pub short_scores: HashSet<Vec<i64>>,
    /// Those without, with their largest dimension: a score for each class.
    pub logits: Vec<(i64, Vec<i64>)>,
    /// Those without that one matrix product makes and another takes, with a batch and more: so do scores of some
    /// positions for others.
    pub crossed: Vec<Crossed>,
    /// Those with two equal large dimensions that are summed over another: classes of the points of pictures.
    of_points: HashSet<Vec<i64>>,
    /// Computations with an exponential of logits.
    logits_in: HashSet<ComputationId>,
}

/// Scores of some positions for others, as far as shapes tell.
#[derive(Debug, Clone)]
pub struct Crossed {
    /// Positions, or classes, that the softmax runs over.
    pub keys: i64,
    /// Dimensions above 1, sorted.
    pub outline: Vec<i64>,
    /// Whether the product that makes them has a batch on both sides: what is classified meets the same weights in every
    /// sample, queries meet the keys of their own.
    pub is_batched: bool,
}

impl Softmax {
    /// Looks at every exponential of a program, in fusions and loops too.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let mut found = Self::default();
        let products = Products::new(program);
        for row in 0..program.instructions.len() {
            let at = InstructionId(row as u32);
            if program.opcode_name(at) != "exponential" || !is_shifted(program, at) {
                continue;
            }
            let Some(node) = program.shape_of(at).map(crate::model::Shape::root) else { continue };
            let dimensions = outline(&node.dimensions);
            // Where a picture's points have classes, the classes are what a softmax runs over.
            let summed = summed_over(program, at, &dimensions);
            let side = repeated(&dimensions);
            if side.is_some_and(|side| side < LEAST_POSITIONS && summed.is_none_or(|size| size == side))
                && dimensions.len() > 2
                && products.include(&dimensions)
            {
                found.short_scores.insert(dimensions.clone());
            }
            let positions = side.filter(|&d| d >= LEAST_POSITIONS);
            let is_over = |positions: &i64| summed.is_none_or(|size| size == *positions);
            if positions.is_some_and(|positions| !is_over(&positions)) {
                found.of_points.insert(dimensions.clone());
            }
            if let Some(positions) = positions.filter(is_over) {
                let others = dimensions.iter().filter(|&&d| d != positions).count();
                if (others > 0 || dimensions.len() > 2) && products.include(&dimensions) {
                    found.scores.insert(dimensions);
                }
            } else if let Some(&widest) = dimensions.last().filter(|_| dimensions.len() > 1) {
                // Shares of the edges that meet at a node: heads or channels come last, and what is summed up are scattered edges.
                let first = node.dimensions.iter().find(|&&d| d > 1);
                let of_each: i64 = dimensions.iter().rev().skip(1).fold(1, |all, &size| all.saturating_mul(size));
                if summed.is_none() && first == Some(&widest) && of_each <= MOST_CHANNELS {
                    continue;
                }
                let summed = summed.unwrap_or(widest);
                // With heads besides, fewer keys tell scores from classes; what comes first is the batch.
                let is_first = first == Some(&summed);
                let has_heads = dimensions.len() > 3 && !is_first;
                // There may be fewer keys than queries, of classes there are more than of what is classified.
                let fewest = if has_heads || summed < widest { LEAST_KEYS } else { LEAST_CLASSES };
                let is_new = !found.crossed.iter().any(|known| known.outline == dimensions);
                if dimensions.len() > 2 && summed >= fewest && is_new && products.make_and_take(&dimensions) {
                    let is_batched = products.are_batched(&dimensions);
                    found.crossed.push(Crossed { keys: summed, outline: dimensions.clone(), is_batched });
                }
                if summed == widest && widest >= LEAST_CLASSES && dimensions.len() <= MOST_OF_LOGITS {
                    found.logits_in.extend(program.computation_of(at));
                    if !found.logits.iter().any(|known| known.1 == dimensions) {
                        found.logits.push((widest, dimensions));
                    }
                }
            }
        }
        found.scores.retain(|known| !found.of_points.contains(known));
        found
    }

    /// Whether an array (its dimensions above 1, sorted) has scores of the positions of one sequence for those of another, sample
    /// by sample.
    #[must_use]
    pub fn are_batched(&self, outline: &[i64]) -> bool {
        self.crossed.iter().any(|crossed| crossed.is_batched && crossed.is(outline))
    }

    /// Whether a value of the dimensions of logits (those above 1, sorted), or what it is a copy of, is made as logits are:
    /// by a fusion that takes their exponentials, which makes probabilities or their gradient, or by a product of the
    /// forward pass, which makes no gradients of weights.
    #[must_use]
    pub fn make_logits(&self, program: &Program, value: Value, dimensions: &[i64]) -> bool {
        if !self.logits.iter().any(|known| known.1 == dimensions) {
            return false;
        }
        let made = computed(program, value).at;
        let takes_exponentials = opcode(program, made) == Opcode::FUSION
            && program.instructions.called_by(made).iter().any(|called| self.logits_in.contains(called));
        let is_forward = || matches!(pass_of(&program.text.op_name(made)), Pass::Forward | Pass::Recomputed);
        takes_exponentials || (is_product(program, made) && is_forward())
    }

    /// Whether an array (its dimensions above 1, sorted) has the dimensions of attention scores that a softmax runs over.
    #[must_use]
    pub fn are_whole_scores(&self, outline: &[i64]) -> bool {
        self.scores.contains(outline)
            // Batch and heads merged: what has as many dimensions of other sizes is something else.
            || square(outline).is_some_and(|own| {
                self.scores.iter().any(|known| known.len() != outline.len() && square(known) == Some(own))
            })
            // Positions of pictures apart, as rows and columns.
            || self.scores.iter().filter_map(|known| square(known)).any(|known| are_rows_and_columns(outline, known))
    }

    /// Whether an array (its dimensions above 1, sorted) holds attention scores: what a softmax runs over, or that with
    /// more keys than are kept in the end, as relative positions make them.
    #[must_use]
    pub fn are_scores(&self, outline: &[i64], weight_sizes: &HashSet<i64>) -> bool {
        self.are_whole_scores(outline)
            || outline.iter().enumerate().any(|(at, &wide)| {
                let mut narrow = outline.to_vec();
                narrow.remove(at);
                let of_positions = |positions: i64| {
                    let mut narrow = narrow.clone();
                    narrow.push(positions);
                    narrow.sort_unstable();
                    self.scores.contains(&narrow)
                };
                let fits = |positions: i64| wide > positions && wide <= positions.saturating_mul(MOST_WIDER);
                !weight_sizes.contains(&wide)
                    && narrow
                        .iter()
                        .any(|&positions| positions >= LEAST_POSITIONS && fits(positions) && of_positions(positions))
            })
    }

    /// Whether what looks like scores by its dimensions (those above 1, sorted) may be such: scores that a softmax shows are
    /// part of it, as of those that a loop keeps of each step, or none shows any.
    #[must_use]
    pub fn may_be_scores(&self, outline: &[i64]) -> bool {
        let is_part = |scores: &Vec<i64>| {
            let mut left = outline.iter();
            scores.iter().all(|size| left.any(|other| other == size))
        };
        !self.of_points.contains(outline) && (self.scores.is_empty() || self.scores.iter().any(is_part))
    }
}

impl Crossed {
    /// Whether an array (its dimensions above 1, sorted) is of these scores, its batch and heads merged or not.
    #[must_use]
    pub fn is(&self, outline: &[i64]) -> bool {
        self.outline == outline
            || (outline.len() > 2 && outline.contains(&self.keys) && widest(&self.outline) == widest(outline))
    }
}

/// Arrays that matrix products take or make: attention scores are made by one and taken by another. Sums of logarithms,
/// as of a hidden Markov model's states, have the same exponentials and shapes, but no products.
#[derive(Debug, Default)]
struct Products {
    /// Largest dimension that occurs twice, and number of elements.
    squares: HashSet<(i64, i64)>,
    /// Largest dimension, and number of elements, of what they make.
    made: HashSet<(i64, i64)>,
    /// The same of what they take.
    taken: HashSet<(i64, i64)>,
    /// The same of what they make where a dimension of it is one of both operands: a batch.
    batched: HashSet<(i64, i64)>,
}

impl Products {
    fn new(program: &Program) -> Self {
        let mut found = Self::default();
        for row in 0..program.instructions.len() {
            let at = InstructionId(row as u32);
            if !multiplies_matrices(program, at) {
                continue;
            }
            let rows = program.instructions.operands_of(at).iter().filter(|&&row| row != NO_ROW);
            let operands: Vec<InstructionId> = rows.map(|&row| InstructionId(row)).collect();
            let node = |at: InstructionId| program.shape_of(at).map(crate::model::Shape::root);
            let is_in_all = |size: i64| {
                size > 1 && operands.iter().all(|&at| node(at).is_some_and(|node| node.dimensions.contains(&size)))
            };
            // Weights that classify are a matrix.
            let is_wide =
                |at: &InstructionId| node(*at).is_some_and(|n| n.dimensions.iter().filter(|&&d| d > 1).count() > 2);
            let is_batched = |made: &&ShapeNode| made.dimensions.iter().any(|&size| is_in_all(size));
            if let Some(made) = node(at).filter(|_| operands.iter().all(is_wide)).filter(is_batched) {
                found.batched.extend(widest(&made.dimensions));
            }
            for operand in operands.iter().copied().chain([at]) {
                let Some(node) = node(operand) else { continue };
                if let Some(square) = square(&node.dimensions) {
                    found.squares.insert(square);
                }
                let kept = if operand == at { &mut found.made } else { &mut found.taken };
                kept.extend(widest(&node.dimensions));
            }
        }
        found
    }

    /// Whether one of them makes an array of these dimensions and one takes it.
    fn make_and_take(&self, dimensions: &[i64]) -> bool {
        widest(dimensions).is_some_and(|widest| self.made.contains(&widest) && self.taken.contains(&widest))
    }

    /// Whether one of them makes an array of these dimensions sample by sample.
    fn are_batched(&self, dimensions: &[i64]) -> bool {
        widest(dimensions).is_some_and(|widest| self.batched.contains(&widest))
    }

    /// Whether an array of these dimensions is among them, its other dimensions merged or not.
    fn include(&self, dimensions: &[i64]) -> bool {
        square(dimensions).is_some_and(|square| self.squares.contains(&square))
    }
}

/// Whether an instruction multiplies matrices: for a TPU that is a convolution, too, but one that no op name calls so.
#[must_use]
pub fn multiplies_matrices(program: &Program, at: InstructionId) -> bool {
    let opcode = program.opcode_name(at);
    opcode == "dot" || (opcode == "convolution" && !is_convolution(&program.text.op_name(at)))
}

/// The largest dimension that occurs twice, and the number of elements.
fn square(dimensions: &[i64]) -> Option<(i64, i64)> {
    repeated(dimensions).map(|side| (side, elements(dimensions)))
}

/// Whether an array has, as rows and columns of each, the positions of scores of that many positions and elements:
/// 24 × 64 × 64 × 64 × 64 for 24 × 4096 × 4096.
fn are_rows_and_columns(outline: &[i64], (positions, all): (i64, i64)) -> bool {
    let times = |size: i64| outline.iter().filter(|&&d| d == size).count();
    let is_pair = |&rows: &i64| {
        let columns = positions / rows;
        rows > 1
            && columns > 1
            && rows * columns == positions
            && times(rows) >= if rows == columns { 4 } else { 2 }
            && times(columns) >= 2
    };
    outline.len() >= 4 && elements(outline) == all && outline.iter().any(is_pair)
}

/// The largest dimension, if there may be as many classes or keys, and the number of elements.
fn widest(dimensions: &[i64]) -> Option<(i64, i64)> {
    let largest = dimensions.iter().copied().max().filter(|&largest| largest >= LEAST_POSITIONS);
    largest.map(|largest| (largest, elements(dimensions)))
}

/// Elements of an array of such dimensions.
pub(super) fn elements(dimensions: &[i64]) -> i64 {
    dimensions.iter().fold(1i64, |product, &d| product.saturating_mul(d))
}

/// Whether the operand of an exponential may be what a softmax takes: a difference, usually from the largest value. A
/// sigmoid takes the negated value, a soft maximum of two the difference of two selections.
fn is_shifted(program: &Program, at: InstructionId) -> bool {
    let operand = |at: InstructionId, place: usize| {
        let rows = program.instructions.operands_of(at);
        rows.get(place).filter(|&&row| row != NO_ROW).map(|&row| InstructionId(row))
    };
    let Some(from) = operand(at, 0).map(|from| computed(program, Value::whole(from)).at) else { return true };
    let both = |at: InstructionId, opcode: &str| {
        (0..2).all(|place| operand(at, place).is_some_and(|at| program.opcode_name(at) == opcode))
    };
    match program.opcode_name(from) {
        // Decays and rates are kept within bounds, what a softmax runs over is not.
        "negate" | "multiply" | "clamp" | "minimum" | "maximum" => false,
        // Decays between the positions of a chunk, in a state space model, are differences of one sum over time.
        "subtract" => !both(from, "select") && !both(from, "broadcast"),
        "select" => {
            let is_decay = |at: InstructionId| program.opcode_name(at) == "subtract" && both(at, "broadcast");
            !(1..3).filter_map(|place| operand(from, place)).any(is_decay)
        }
        _ => true,
    }
}

/// The size of the dimension that a softmax runs over, of the sorted dimensions of its exponential: the one that the
/// largest value, which is subtracted, does not have, nor the sum of the exponentials. `None` where it is not known.
fn summed_over(program: &Program, at: InstructionId, dimensions: &[i64]) -> Option<i64> {
    let operand = |at: InstructionId, place: usize| {
        let row = *program.instructions.operands_of(at).get(place)?;
        (row != NO_ROW).then(|| computed(program, Value::whole(InstructionId(row))).at)
    };
    let of_difference = || {
        let difference = operand(at, 0).filter(|&from| program.opcode_name(from) == "subtract")?;
        let spread = operand(difference, 1).filter(|&from| program.opcode_name(from) == "broadcast")?;
        program.instructions.operands_of(spread).first().filter(|&&row| row != NO_ROW).map(|&row| InstructionId(row))
    };
    let of_sum = || {
        let computation = program.computations.get(program.computation_of(at)?.index())?;
        let sums = |row: &InstructionId| program.opcode_name(*row) == "reduce" && operand(*row, 0) == Some(at);
        (at.0..computation.end).map(InstructionId).take(FURTHEST_SUM).find(sums)
    };
    of_difference().or_else(of_sum).and_then(|without| missing(program, without, dimensions))
}

/// Most instructions after an exponential among which its sum is looked for.
const FURTHEST_SUM: usize = 16;

/// The one dimension, of several sorted ones, that an array does not have.
fn missing(program: &Program, without: InstructionId, dimensions: &[i64]) -> Option<i64> {
    let mut left = dimensions.to_vec();
    for size in &program.shape_of(without)?.root().dimensions {
        let place = left.iter().position(|d| d == size);
        match place {
            Some(place) => drop(left.remove(place)),
            None if *size > 1 => return None,
            None => {}
        }
    }
    match left[..] {
        [size] => Some(size),
        _ => None,
    }
}

/// The largest dimension that occurs twice.
#[must_use]
pub fn repeated(dimensions: &[i64]) -> Option<i64> {
    let is_twice = |d: &i64| *d > 1 && dimensions.iter().filter(|other| *other == d).count() > 1;
    dimensions.iter().copied().filter(is_twice).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_two_sequences_are_made_and_taken_by_products() {
        let of = |dimensions: &[i64]| widest(dimensions).into_iter().collect();
        let products = Products { made: of(&[32, 512, 16384]), taken: of(&[32, 512, 16384]), ..Products::default() };
        assert!(products.make_and_take(&[4, 8, 512, 16384]), "batch and heads merged");
        assert!(!products.make_and_take(&[4, 8, 512, 8192]) && !products.make_and_take(&[4, 8, 256, 16384]));
        let logits = Products { made: of(&[4, 512, 32000]), ..Products::default() };
        assert!(!logits.make_and_take(&[4, 512, 32000]), "logits of a program that does not train");
    }

    #[test]
    fn scores_of_fewer_keys_than_queries_are_known_with_heads_merged_or_not() {
        let crossed = Crossed { keys: 1024, outline: vec![64, 1024, 4096], is_batched: true };
        assert!(crossed.is(&[64, 1024, 4096]) && crossed.is(&[8, 8, 1024, 4096]));
        assert!(!crossed.is(&[64, 512, 4096]) && !crossed.is(&[65536, 4096]), "other keys; no batch");
    }

    #[test]
    fn scores_by_relative_position_are_wider() {
        let softmax = Softmax { scores: [vec![8, 16, 1500, 1500]].into(), ..Softmax::default() };
        let are_scores = |outline: &[i64]| softmax.are_scores(outline, &[2048].into());
        assert!(are_scores(&[8, 16, 1500, 1500]) && are_scores(&[8, 16, 1500, 2999]));
        assert!(!are_scores(&[8, 16, 1500, 6000]) && !are_scores(&[8, 16, 1500, 2048]));
        assert!(!are_scores(&[8, 16, 1500]));
    }

    #[test]
    fn features_of_pairs_are_no_scores() {
        let softmax = Softmax { scores: [vec![4, 256, 256, 256]].into(), ..Softmax::default() };
        assert!(softmax.may_be_scores(&[4, 256, 256, 256]));
        assert!(softmax.may_be_scores(&[4, 8, 256, 256, 256]), "one more for each step of a loop");
        assert!(!softmax.may_be_scores(&[128, 256, 256]));
        assert!(Softmax::default().may_be_scores(&[128, 256, 256]), "nothing tells");
    }

    #[test]
    fn scores_are_what_matrix_products_make_or_take() {
        let products = Products { squares: square(&[128, 1500, 1500]).into_iter().collect(), ..Products::default() };
        assert!(products.include(&[8, 16, 1500, 1500]), "batch and heads merged");
        assert!(!products.include(&[8, 1500, 1500]) && !products.include(&[128, 1500, 64]));
    }

    #[test]
    fn scores_of_pictures_may_have_rows_and_columns() {
        let softmax = Softmax { scores: [vec![24, 4096, 4096]].into(), ..Softmax::default() };
        let are_scores = |outline: &[i64]| softmax.are_scores(outline, &HashSet::new());
        assert!(are_scores(&[24, 64, 64, 64, 64]) && are_scores(&[24, 32, 32, 128, 128]));
        assert!(!are_scores(&[24, 64, 64, 4096]) && !are_scores(&[12, 64, 64, 64, 64]));
        assert!(!are_scores(&[2, 12, 32, 128, 32, 64, 64]), "not both of the columns");
    }

    #[test]
    fn pairs_of_positions_have_one_dimension_twice() {
        assert_eq!(repeated(&[16, 8, 1500, 1500]), Some(1500));
        assert_eq!(repeated(&[4, 4, 1024, 1024, 1024]), Some(1024));
        assert_eq!(repeated(&[1, 1, 3]), None);
    }
}
