//! State of many samples that a program which trains carries from call to call, such as environments that are simulated:
//! each array of it has a row for each sample, where the arrays of weights have nothing in common.

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

/// An argument as far as it tells whether it is of samples.
pub(super) struct Row<'a> {
    /// Its number in the entry computation.
    pub number: i64,
    /// Its path in the tree of arguments.
    pub path: &'a str,
    /// Dimensions of the array that it is; empty if it is none.
    pub dimensions: &'a [i64],
    /// Whether it has the name of a weight, of optimizer state or of a cache.
    pub is_named: bool,
    /// Whether its class is told by its use alone.
    pub is_open: bool,
}

/// The arguments whose class is open in containers beside a tree of weights of which no array has a name that tells, nearly
/// all arrays have one leading dimension, and hardly any has the shape of a weight: they are state of the samples. What
/// layers take slices of has a leading dimension in common, too: that of the layers.
pub(super) fn of_samples(arguments: &[Row<'_>], steps: &LoopSteps) -> Vec<i64> {
    let named = arguments.iter().filter(|row| row.is_named && !row.dimensions.is_empty());
    let weights: FastSet<&[i64]> = named.map(|row| row.dimensions).collect();
    if weights.is_empty() {
        return Vec::new();
    }
    let mut containers: FastMap<&str, Vec<&Row<'_>>> = FastMap::default();
    for argument in arguments.iter().filter(|argument| is_nested(argument.path)) {
        containers.entry(first_word(argument.path)).or_default().push(argument);
    }
    let mut found = Vec::new();
    for held in containers.into_values() {
        if held.iter().any(|row| row.is_named || steps.of_argument(row.number) == Some(Steps::Layers)) {
            continue;
        }
        let arrays: Vec<(&[i64], i64)> =
            held.iter().filter_map(|row| Some((row.dimensions, leading(row.dimensions)?))).collect();
        let mut counts: FastMap<i64, usize> = FastMap::default();
        for (_, first) in &arrays {
            *counts.entry(*first).or_default() += 1;
        }
        let most = counts.into_values().max().unwrap_or(0);
        let like_weights = arrays.iter().filter(|row| weights.contains(row.0)).count();
        if arrays.len() < FEWEST || (most as f64) < arrays.len() as f64 * IN_COMMON || like_weights * 2 > arrays.len() {
            continue;
        }
        found.extend(held.iter().filter(|row| row.is_open).map(|row| row.number));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of ten arrays beside a weight, each with such dimensions, are state of samples.
    fn found(dimensions: impl Fn(i64) -> Vec<i64>) -> usize {
        let shapes: Vec<Vec<i64>> = (0..10).map(dimensions).collect();
        let paths: Vec<String> = (0..10).map(|i| format!("environments.part_{i}")).collect();
        let weight = Row {
            number: 100,
            path: "learner.params['kernel']",
            dimensions: &[256, 256],
            is_named: true,
            is_open: false,
        };
        let rows = (0..).zip(paths.iter().zip(&shapes)).map(|(number, (path, dimensions))| Row {
            number,
            path,
            dimensions,
            is_named: false,
            is_open: true,
        });
        let arguments: Vec<Row<'_>> = std::iter::once(weight).chain(rows).collect();
        of_samples(&arguments, &LoopSteps::default()).len()
    }

    #[test]
    fn arrays_with_a_row_for_each_environment_are_no_weights() {
        assert_eq!(found(|i| vec![1, 4096, 3 + i]), 10);
    }

    #[test]
    fn arrays_that_have_nothing_in_common_or_the_shapes_of_weights_are_no_samples() {
        assert_eq!(found(|i| vec![64 + i, 32]), 0);
        assert_eq!(found(|_| vec![256, 256]), 0);
    }
}
