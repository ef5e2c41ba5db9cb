//! Classes and passes that names tell.

use super::{Class, Reason};
use crate::analysis::what_if::batch::{is_data_name, is_state_name};
use crate::analysis::what_if::names::pass_of;

/// Words of a path that only an optimizer's state has.
const OPTIMIZER: &[&str] = &[
    "opt",
    "opt_state",
    "optstate",
    "optimizer",
    "optimizer_state",
    "optim",
    "optim_state",
    "adam",
    "adamw",
    "mu",
    "nu",
    "momentum",
    "moments",
    "exp_avg",
    "exp_avg_sq",
    "velocity",
];

/// Words of a path that only weights have.
const WEIGHTS: &[&str] =
    &["params", "param", "parameters", "weights", "weight", "kernel", "embedding", "embed", "model"];

/// Words for samples, beside those that hold a batch.
const SAMPLES: &[&str] = &[
    "feat",
    "feats",
    "feature",
    "pts",
    "points",
    "positions",
    "pos",
    "mask",
    "masks",
    "segment_ids",
    "prompt",
    "prompts",
    "pixels",
    "pixel_values",
    "audio",
    "video",
    "frames",
    "query",
    "queries",
];

/// Words for the state of a random generator.
const KEYS: &[&str] = &["rng", "key", "seed", "rngs"];

/// The class of an argument by its path in the program that made it: `opt_state[0].mu['w']`. `is_whole`: its elements
/// are whole numbers of 32 or 64 bits.
pub fn argument(path: &str, is_whole: bool) -> (Class, Reason) {
    let words: Vec<String> = path
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(OPTIMIZER) {
        return (Class::Optimizer, Reason::OptimizerName);
    }
    if is_state_name(path) {
        return (Class::Input, Reason::StateName);
    }
    if is_data_name(path) || has(KEYS) || words.first().is_some_and(|word| SAMPLES.contains(&word.as_str())) {
        return (Class::Input, Reason::DataName);
    }
    // Weights in eight or four bits are whole numbers as well, and are named.
    if is_whole && !has(WEIGHTS) && words.len() <= 1 {
        return (Class::Input, Reason::Integers);
    }
    (Class::Weight, Reason::Argument)
}

/// The part of a training step that an operation belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing says.
    None,
    /// The forward pass of something that is differentiated.
    Forward,
    /// The backward pass.
    Backward,
    /// Forward operations done again in the backward pass.
    Recomputed,
}

/// The phase that the framework's name of an operation tells. JAX: `jvp(…)` forward, `transpose(jvp(…))` backward,
/// `rematted_computation` under `jax.checkpoint`. TensorFlow: `gradient_tape/` and `gradients/` are backward.
pub fn phase(name: &str) -> Phase {
    if name.contains("rematted_computation") {
        return Phase::Recomputed;
    }
    if name.contains("gradient_tape/") || name.starts_with("gradients/") || name.contains("/gradients/") {
        return Phase::Backward;
    }
    match pass_of(name) {
        Some(pass) if pass.is_backward => Phase::Backward,
        Some(_) => Phase::Forward,
        None => Phase::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_arguments_tell_their_class() {
        for (path, is_whole, expected) in [
            ("params['layers'][0]['w1']", false, Class::Weight),
            ("opt_state[0]['embed']", false, Class::Optimizer),
            ("state.opt_state[0].mu['w']", false, Class::Optimizer),
            ("state.params['opt_in']", false, Class::Weight),
            ("batch['tokens']", true, Class::Input),
            ("x", false, Class::Input),
            ("cache['k']", false, Class::Input),
            ("rng", true, Class::Input),
            ("", true, Class::Input),
            ("", false, Class::Weight),
            ("params['table']", true, Class::Weight),
        ] {
            assert_eq!(argument(path, is_whole).0, expected, "{path}");
        }
    }

    #[test]
    fn names_of_operations_tell_their_pass() {
        for (name, expected) in [
            ("jit(step)/jvp(layer_3)/attn/dot_general", Phase::Forward),
            ("jit(step)/transpose(jvp(layer_3))/attn/dot_general", Phase::Backward),
            ("jit(s)/transpose(jvp(l))/jvp(l)/checkpoint/rematted_computation/attn/exp", Phase::Recomputed),
            ("jit(s)/transpose(jvp(l))/jvp(l)/checkpoint/mlp/dot_general", Phase::Backward),
            ("gradient_tape/model/dense/MatMul", Phase::Backward),
            ("jit(step)/adam/sub", Phase::None),
            ("", Phase::None),
        ] {
            assert_eq!(phase(name), expected, "{name}");
        }
    }
}
