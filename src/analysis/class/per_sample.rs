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

/// The arguments in each container of several.
fn containers<'r, 'a>(arguments: &'r [Row<'a>]) -> impl Iterator<Item = Vec<&'r Row<'a>>> {
    let mut containers: FastMap<&str, Vec<&Row<'_>>> = FastMap::default();
    for argument in arguments.iter().filter(|argument| is_nested(argument.path)) {
        containers.entry(first_word(argument.path)).or_default().push(argument);
    }
    containers.into_values()
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
    let mut found = Vec::new();
    for held in containers(arguments) {
        if held.iter().any(|row| row.is_named || steps.of_argument(row.number).is_some_and(Steps::are_layers)) {
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

/// What the last key of keys and values is called.
const KEYS_AND_VALUES: [&str; 6] = ["key", "value", "k", "v", "keys", "values"];

/// The arguments of containers beside a cache, in a program that does not train, whose arrays all have a row for each of as
/// many sequences as the cache has and as there are tokens: keys and values of what is attended to, which are only read.
/// `caches` and `tokens` are the dimensions of those arrays.
pub(super) fn beside_caches(arguments: &[Row<'_>], caches: &[&[i64]], tokens: &[&[i64]]) -> Vec<i64> {
    let mut rows: FastMap<i64, usize> = FastMap::default();
    for first in caches.iter().filter(|dimensions| dimensions.len() >= 3).filter_map(|dimensions| dimensions.first()) {
        *rows.entry(*first).or_default() += 1;
    }
    let Some((batch, _)) = rows.into_iter().max_by_key(|&(batch, count)| (count, batch)) else { return Vec::new() };
    let named = || arguments.iter().filter(|row| row.is_named && row.dimensions.len() >= 3);
    let is_of_weights = named().filter(|row| !caches.contains(&row.dimensions)).any(|row| row.dimensions[0] == batch);
    if batch <= 1 || is_of_weights || !tokens.iter().any(|dimensions| dimensions.first() == Some(&batch)) {
        return Vec::new();
    }
    let is_kept = |row: &&Row<'_>| {
        let last = row.path.trim_end_matches(".value").rsplit(['[', '.', '/']).next().unwrap_or_default();
        row.is_open
            && row.dimensions.len() >= 3
            && row.dimensions[0] == batch
            && KEYS_AND_VALUES.contains(&last.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
    };
    let whole = containers(arguments).filter(|held| held.len() > 1 && held.iter().all(is_kept));
    whole.flatten().map(|row| row.number).collect()
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
    fn keys_and_values_of_an_encoder_are_kept_beside_a_cache() {
        let row = |number, path, dimensions, is_named| Row { number, path, dimensions, is_named, is_open: !is_named };
        let (own, crossed): (&[i64], &[i64]) = (&[192, 4, 768, 128], &[192, 4, 1536, 128]);
        let arguments = |path| {
            [
                row(0, "params['decoder']['query']['kernel']", &[512, 4, 128], true),
                row(1, "cache['decoder_0']['cached_key']", own, true),
                row(2, "cross['decoder_0']['key']", crossed, false),
                row(3, path, crossed, false),
            ]
        };
        let found = |path, tokens: &[i64]| beside_caches(&arguments(path), &[own], &[tokens]);
        assert_eq!(found("cross['decoder_0']['value']", &[192]), [2, 3]);
        assert!(found("cross['decoder_0']['kernel']", &[192]).is_empty(), "an array of another name");
        assert!(found("cross['decoder_0']['value']", &[64]).is_empty(), "as many rows as there are no tokens for");
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
