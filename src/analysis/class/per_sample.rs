//! State of many samples that a program which trains carries from call to call, such as environments that are simulated:
//! each array of it has a row for each sample, where the arrays of weights have nothing in common.

use super::argument::Argument;
use super::{Class, Reason};
use crate::analysis::flow::steps::{LoopSteps, Steps};
use crate::analysis::names::argument::{first_word, is_nested};
use crate::model::{FastMap, FastSet};

/// Fewest arrays that show that a row for each sample is no chance.
const FEWEST: usize = 8;

/// Share of the arrays of a container that must have their leading dimension in common.
const IN_COMMON: f64 = 0.9;

/// The first dimension that is not 1: what devices divide has one of 1 before it.
fn leading(dimensions: &[i64]) -> Option<i64> {
    dimensions.iter().copied().find(|&size| size > 1)
}

/// Containers beside a tree of weights of which no array has the name of a weight or of optimizer state, nearly all arrays
/// have one leading dimension, and hardly any has the shape of a weight: they are state of the samples. What layers take
/// slices of has a leading dimension in common, too: that of the layers.
pub(super) fn follow_rows(arguments: &[Argument<'_>], classes: &mut FastMap<i64, (Class, Reason)>, steps: &LoopSteps) {
    let is_named = |reason: Reason| matches!(reason, Reason::WeightName | Reason::OptimizerName | Reason::CacheName);
    let reason = |argument: &Argument<'_>| classes.get(&argument.number).map(|found| found.1);
    let dimensions = |argument: &Argument<'_>| argument.node.map(|node| node.dimensions.clone()).unwrap_or_default();
    let weights: FastSet<Vec<i64>> = arguments
        .iter()
        .filter(|argument| reason(argument).is_some_and(is_named))
        .map(dimensions)
        .filter(|dimensions| !dimensions.is_empty())
        .collect();
    if weights.is_empty() {
        return;
    }
    let mut containers: FastMap<&str, Vec<&Argument<'_>>> = FastMap::default();
    for argument in arguments.iter().filter(|argument| is_nested(argument.path)) {
        containers.entry(first_word(argument.path)).or_default().push(argument);
    }
    let mut found = Vec::new();
    for held in containers.into_values() {
        let is_told = |argument: &&Argument<'_>| {
            reason(argument).is_some_and(is_named) || steps.of_argument(argument.number) == Some(Steps::Layers)
        };
        if held.iter().any(is_told) {
            continue;
        }
        let arrays: Vec<(Vec<i64>, i64)> = held
            .iter()
            .map(|argument| dimensions(argument))
            .filter_map(|own| leading(&own).map(|first| (own, first)))
            .collect();
        let mut counts: FastMap<i64, usize> = FastMap::default();
        for (_, first) in &arrays {
            *counts.entry(*first).or_default() += 1;
        }
        let most = counts.into_values().max().unwrap_or(0);
        let like_weights = arrays.iter().filter(|row| weights.contains(&row.0)).count();
        if arrays.len() < FEWEST || (most as f64) < arrays.len() as f64 * IN_COMMON || like_weights * 2 > arrays.len() {
            continue;
        }
        let is_guessed = |argument: &&Argument<'_>| {
            matches!(
                reason(argument),
                Some(Reason::UpdatedFromGradient | Reason::ServesUpdate | Reason::WrittenInPlace | Reason::NotReturned)
            )
        };
        found.extend(held.iter().filter(|argument| is_guessed(argument)).map(|argument| argument.number));
    }
    classes.extend(found.into_iter().map(|number| (number, (Class::Input, Reason::RowForEachSample))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ElementType, ShapeNode};

    /// Classes of a program with arrays of weights and a container of others, each with so many rows.
    fn of(rows: impl Fn(i64) -> Vec<i64>, in_container: &str) -> FastMap<i64, (Class, Reason)> {
        let weight = ShapeNode::array(ElementType::F32, vec![256, 256]);
        let nodes: Vec<ShapeNode> = (0..10).map(|i| ShapeNode::array(ElementType::F32, rows(i))).collect();
        let paths: Vec<String> = (0..10).map(|i| format!("{in_container}.part_{i}")).collect();
        let mut arguments =
            vec![Argument { number: 100, path: "learner.params['kernel']", bytes: 1 << 18, node: Some(&weight) }];
        for (number, (path, node)) in (0..).zip(paths.iter().zip(&nodes)) {
            arguments.push(Argument { number, path, bytes: 1 << 20, node: Some(node) });
        }
        let mut classes: FastMap<i64, (Class, Reason)> =
            (0..10).map(|number| (number, (Class::Weight, Reason::UpdatedFromGradient))).collect();
        classes.insert(100, (Class::Weight, Reason::WeightName));
        follow_rows(&arguments, &mut classes, &LoopSteps::default());
        classes
    }

    #[test]
    fn arrays_with_a_row_for_each_environment_are_no_weights() {
        let classes = of(|i| vec![1, 4096, 3 + i], "environments.state");
        assert!((0..10).all(|number| classes[&number] == (Class::Input, Reason::RowForEachSample)));
        assert_eq!(classes[&100].0, Class::Weight);
    }

    #[test]
    fn arrays_that_have_nothing_in_common_stay_weights() {
        let classes = of(|i| vec![64 + i, 32], "nets.state");
        assert!((0..10).all(|number| classes[&number].0 == Class::Weight));
        let classes = of(|_| vec![256, 256], "nets.state");
        assert!((0..10).all(|number| classes[&number].0 == Class::Weight), "they are shaped as weights are");
    }
}
