//! The batch as shapes show it, where neither names nor sharding do: the leading dimension of an argument that most
//! temporaries have too.

use std::collections::BTreeSet;

use super::base::{Base, Role};
use super::batch::DataArgument;
use crate::analysis::class::{Certainty, Class, Classes};
use crate::analysis::flow::softmax::{LEAST_POSITIONS, repeated};
use crate::analysis::flow::steps::LoopSteps;
use crate::analysis::packing::Families;
use crate::model::{FastSet, Program, ShapeNode, outline};

/// Share of the bytes of temporaries that must have the batch as a dimension.
const MOST: f64 = 0.5;

/// Smaller numbers divide too many dimensions by chance: such a batch is recognised only as a dimension of its own.
pub const LEAST_FACTOR: i64 = 16;

/// Larger vectors hold one element for each edge, node or pixel of one sample.
const LONGEST_VECTOR: i64 = 4096;

/// More rows of an argument are nodes, pixels or data points, not samples of a batch.
const LARGEST: i64 = 1 << 17;

/// Most candidates that are looked at.
const MOST_CANDIDATES: usize = 64;

/// The index of the dimension that holds a batch: the batch itself, else its first multiple that is no dimension of a
/// weight.
pub fn dimension_of(node: &ShapeNode, batch: i64, weight_sizes: &FastSet<i64>) -> Option<usize> {
    let exact = node.dimensions.iter().position(|&d| d == batch);
    let multiple = || {
        let is_multiple = |d: i64| d > batch && d % batch == 0 && !weight_sizes.contains(&d);
        (batch >= LEAST_FACTOR).then(|| node.dimensions.iter().position(|&d| is_multiple(d)))?
    };
    exact.or_else(multiple)
}

/// Whether an array may hold attention scores whose heads are folded into the batch.
pub fn are_folded_scores(node: &ShapeNode, batch: i64) -> bool {
    let [folded, ref positions @ ..] = node.dimensions[..] else { return false };
    batch > 1
        && folded > batch
        && folded % batch == 0
        && repeated(positions).is_some_and(|side| side >= LEAST_POSITIONS)
}

/// What is known of a program besides its arguments.
pub struct Known<'a> {
    /// The temporaries.
    pub families: &'a Families,
    /// Numbers of steps of loops that go over what they read or write: those of time.
    pub steps: &'a BTreeSet<i64>,
    /// Numbers of nodes and edges of graphs.
    pub of_graphs: &'a FastSet<i64>,
    /// Dimensions of arguments that are kept or passed on: what has the same is a field on the same grid.
    pub fields: &'a FastSet<&'a [i64]>,
    /// What the steps of loops are.
    pub loops: &'a LoopSteps,
}

/// Whether an array of floats is divided over devices along another dimension than its first, as the values at the points of
/// a grid are.
fn is_grid(program: &Program, base: &Base, node: &ShapeNode) -> bool {
    let Role::Argument { number, .. } = &base.role else { return false };
    let tiles = program.sharding_of_parameter(*number).map_or(&[][..], |sharding| sharding.tiles.as_slice());
    let [first, rest @ ..] = tiles else { return false };
    let mut others = rest.iter().take(node.dimensions.len().saturating_sub(1));
    node.dimensions.len() > 2 && node.element_type.is_float() && *first <= 1 && others.any(|&parts| parts > 1)
}

/// Finds the arguments that hold the batch; empty if no dimension is shared by most temporaries.
pub fn find(
    program: &Program,
    classes: &Classes,
    bases: &[Base],
    known: &Known<'_>,
    is_returned: impl Fn(&Base, &ShapeNode) -> bool,
) -> Vec<DataArgument> {
    let Known { families, steps, of_graphs, fields, loops } = known;
    let node = |base: &Base| program.buffer_node(base.buffer).filter(|node| node.element_type.is_array());
    let is_kept = |base: &Base| {
        matches!(classes.of(base.buffer), Class::Weight | Class::Optimizer | Class::Cache)
            && classes.reason(base.buffer).certainty() != Certainty::Guess
    };
    let arguments = || bases.iter().enumerate().filter(|(_, base)| matches!(base.role, Role::Argument { .. }));
    let kept: Vec<&ShapeNode> =
        arguments().filter(|(_, base)| is_kept(base)).filter_map(|(_, base)| node(base)).collect();
    let weights: FastSet<Vec<i64>> = kept.iter().map(|node| outline(&node.dimensions)).collect();
    let weight_sizes: FastSet<i64> = kept.iter().flat_map(|node| node.dimensions.iter().copied()).collect();
    // Positions and heads of a cache are no batch; where layers take slices of it, the batch is the second dimension.
    let caches = || arguments().filter(|(_, base)| classes.of(base.buffer) == Class::Cache);
    let is_of_layers = |(_, base): &(usize, &Base)| matches!(base.role, Role::Argument { number, .. } if loops.of_argument(number).is_some());
    let stacked: FastSet<usize> =
        caches().filter(is_of_layers).filter_map(|(_, base)| Some(node(base)?.dimensions.len())).collect();
    let before_positions = |node: &ShapeNode| if stacked.contains(&node.dimensions.len()) { 2 } else { 1 };
    let of_caches: FastSet<i64> = caches()
        .filter_map(|(_, base)| node(base))
        .flat_map(|node| node.dimensions.iter().skip(before_positions(node)).copied())
        .collect();
    // Arguments by their leading dimension; a dimension that a sample has twice is no batch.
    let mut candidates: Vec<(i64, Vec<usize>)> = Vec::new();
    for (row, base) in arguments() {
        let Some(node) = node(base).filter(|node| !is_kept(base) && !is_returned(base, node)) else { continue };
        let Some(&batch) = node.dimensions.first().filter(|&&batch| batch > 1 && batch <= LARGEST) else { continue };
        let is_sample = node.dimensions.len() > 1 || (node.element_type.is_index() && batch <= LONGEST_VECTOR);
        let is_other = of_graphs.contains(&batch) || of_caches.contains(&batch) || is_grid(program, base, node);
        if !is_sample
            || is_other
            || steps.contains(&batch)
            || (node.dimensions.len() > 1 && fields.contains(node.dimensions.as_slice()))
            || node.dimensions.iter().filter(|&&d| d == batch).count() > 1
        {
            continue;
        }
        if let Some(known) = candidates.iter_mut().find(|known| known.0 == batch) {
            known.1.push(row);
        } else if candidates.len() < MOST_CANDIDATES {
            candidates.push((batch, vec![row]));
        }
    }
    let temporaries: Vec<(&ShapeNode, u64)> = families
        .list
        .iter()
        .filter_map(|family| Some((program.buffer_node(family.root)?, family.size)))
        .filter(|(node, _)| node.element_type.is_array() && !weights.contains(&outline(&node.dimensions)))
        .collect();
    let bytes = temporaries.iter().fold(0u64, |sum, row| sum.saturating_add(row.1));
    // A dimension of another argument is one of its own, such as the number of edges.
    let mut taken = weight_sizes;
    taken.extend(arguments().filter_map(|(_, base)| node(base)).flat_map(|node| node.dimensions.iter().copied()));
    let share = |batch: i64| {
        let holds = |node: &ShapeNode| {
            let last = node.dimensions.len().saturating_sub(1);
            // The last dimension is that of features.
            let is_own = dimension_of(node, batch, &taken).is_some_and(|at| at < last || last == 0);
            is_own || are_folded_scores(node, batch)
        };
        let held = temporaries.iter().filter(|row| holds(row.0)).fold(0u64, |sum, row| sum.saturating_add(row.1));
        held as f64 / bytes.max(1) as f64
    };
    // What most arguments begin with is a dimension of weights without names.
    let count = arguments().count();
    let is_of_few = |rows: &[usize]| count <= 2 || rows.len() <= count / 2;
    let best = candidates
        .into_iter()
        .filter(|candidate| is_of_few(&candidate.1))
        .map(|(batch, rows)| (share(batch), batch, rows))
        .filter(|found| found.0 >= MOST)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let Some((_, _, rows)) = best else { return Vec::new() };
    let argument = |row: usize| {
        let dimensions = node(&bases[row])?.dimensions.clone();
        Some(DataArgument { base: row as u32, dimensions, parts: 1, by_name: true, pages: 0 })
    };
    rows.into_iter().filter_map(argument).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ElementType;

    #[test]
    fn heads_may_be_folded_into_the_batch_of_scores() {
        let are =
            |dims: &[i64], batch: i64| are_folded_scores(&ShapeNode::array(ElementType::F32, dims.to_vec()), batch);
        assert!(are(&[768, 577, 577], 64) && are(&[48, 2048, 2048], 4));
        assert!(!are(&[768, 577, 64], 64) && !are(&[770, 577, 577], 64) && !are(&[64, 577, 577], 64));
        assert!(!are(&[12, 577, 577], 1), "a bias by position has heads alone");
    }

    #[test]
    fn a_batch_is_a_dimension_or_a_factor_of_one() {
        let dimension = |dims: &[i64], batch: i64| {
            dimension_of(&ShapeNode::array(ElementType::F32, dims.to_vec()), batch, &FastSet::from_iter([1024, 768]))
        };
        assert_eq!(dimension(&[192, 768, 16, 64], 48), Some(0));
        assert_eq!(dimension(&[768, 48, 16], 48), Some(1));
        assert_eq!(dimension(&[768, 1024], 48), None);
        assert_eq!(dimension(&[16, 512], 8), None);
    }
}
