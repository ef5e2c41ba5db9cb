//! The weights whose dimensions an array has: what a loop collects or passes on for them has no other name.

use super::opcode;
use crate::analysis::names::argument::{Hint, is_average};
use crate::analysis::names::short_path::short_path;
use crate::model::{InstructionId, Opcode, Program, ShapeNode, outline};

/// The weights of which a step's slice of a stack may be the gradient: those with its dimensions and one for the layers,
/// wherever that is. One or two by name, more by their number; `None` if there are none.
pub(super) fn weights_like(program: &Program, node: &ShapeNode, layers: i64) -> Option<String> {
    let [steps, ref slice @ ..] = node.dimensions[..] else { return None };
    let is_alike = |dimensions: &[i64]| {
        let mut places = (0..dimensions.len()).filter(|&place| dimensions[place] == layers);
        places.any(|place| dimensions[..place].iter().chain(&dimensions[place + 1..]).eq(slice))
    };
    if steps == layers { weights_of(program, &is_alike) } else { None }
}

/// The weights with the dimensions of an array of at least two, in words as [`weights_like`] has them.
pub(super) fn like_weights(program: &Program, node: &ShapeNode) -> Option<String> {
    let is_matrix = node.dimensions.iter().filter(|&&d| d > 1).count() > 1;
    if is_matrix { weights_of(program, &|dimensions| dimensions == node.dimensions) } else { None }
}

/// The same of weights that are divided over devices, by their whole dimensions.
pub(super) fn like_whole_weights(program: &Program, node: &ShapeNode) -> Option<String> {
    let is_whole = |at: InstructionId, dimensions: &[i64]| {
        let number = program.instructions.argument.get(at.index()).map(|&number| i64::from(number));
        let sharding = number.and_then(|number| program.sharding_of_parameter(number));
        sharding.is_some_and(|sharding| {
            let whole = dimensions.iter().zip(&sharding.tiles).map(|(size, parts)| size.saturating_mul(*parts));
            sharding.tiles.len() >= dimensions.len() && whole.eq(node.dimensions.iter().copied())
        })
    };
    let is_matrix = node.dimensions.iter().filter(|&&d| d > 1).count() > 1;
    if is_matrix { weights_with(program, &is_whole) } else { None }
}

/// The weights among the arguments whose dimensions pass a test: one or two by name, more by their number.
fn weights_of(program: &Program, is_alike: &dyn Fn(&[i64]) -> bool) -> Option<String> {
    weights_with(program, &|_, dimensions| is_alike(dimensions))
}

fn weights_with(program: &Program, is_alike: &dyn Fn(InstructionId, &[i64]) -> bool) -> Option<String> {
    let entry = program.entry_computation()?;
    let parameters = (entry.start..entry.end).map(InstructionId).filter(|&at| opcode(program, at) == Opcode::PARAMETER);
    let alike =
        parameters.filter(|&at| program.shape_of(at).is_some_and(|shape| is_alike(at, &shape.root().dimensions)));
    // An average of the weights has their dimensions, and no gradient.
    let mut names: Vec<String> = alike
        .map(|at| program.text.op_name(at))
        .filter(|path| matches!(Hint::of(path), Hint::Weight | Hint::Place) && !is_average(path))
        .map(|path| short_path(&path))
        .filter(|short| !short.is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    match &names[..] {
        [] => None,
        [one] => Some(one.clone()),
        [one, other] => Some(format!("{one} or {other}")),
        more => Some(format!("one of {} weights", more.len())),
    }
}

/// Whether an array has all dimensions of another.
pub(super) fn has_dimensions_of(program: &Program, array: InstructionId, other: InstructionId) -> bool {
    let nodes = |at: InstructionId| program.shape_of(at).map(|shape| shape.nodes.as_slice()).unwrap_or_default();
    let of_other: Vec<i64> = nodes(other).iter().flat_map(|node| outline(&node.dimensions)).collect();
    nodes(array).iter().any(|node| of_other.iter().all(|size| node.dimensions.contains(size)))
}
