//! Words in the paths of a program's arguments, and what they tell.

/// Names of arguments that hold one sample after another.
const DATA_NAMES: &[&str] = &[
    "tokens",
    "token",
    "tok",
    "targets",
    "target",
    "labels",
    "label",
    "x",
    "y",
    "xs",
    "ys",
    "ids",
    "input",
    "inputs",
    "batch",
    "images",
    "image",
    "input_ids",
    "attention_mask",
    "data",
    "features",
];

/// Names of arguments that hold state for each sample.
const STATE_NAMES: &[&str] = &["cache", "kv_cache", "kv", "k_cache", "v_cache", "mems", "carry"];

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

/// What the path of an argument tells about it: `opt_state[0].mu['w']`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// A word that only an optimizer's state has.
    Optimizer,
    /// State kept for each sample, as a cache is.
    State,
    /// Samples, or the state of a random generator.
    Samples,
    /// A word of weights, or a place in a tree of arguments.
    Weight,
    /// Nothing: one word that is in no list, or no name at all.
    Nothing,
}

impl Hint {
    /// Reads a path.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let words: Vec<String> = path
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        if has(OPTIMIZER) {
            Self::Optimizer
        } else if holds_state(path) {
            Self::State
        } else if holds_samples(path) || has(KEYS) || words.first().is_some_and(|word| SAMPLES.contains(&word.as_str()))
        {
            Self::Samples
        } else if has(WEIGHTS) || words.len() > 1 {
            Self::Weight
        } else {
            Self::Nothing
        }
    }
}

/// First word of a JAX path: `cache` of `cache['k'][0]`.
fn first_word(path: &str) -> &str {
    path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
}

/// Whether an argument's name says that it is state kept for each sample, as a cache is.
#[must_use]
pub fn holds_state(path: &str) -> bool {
    STATE_NAMES.contains(&first_word(path))
}

/// Whether an argument's name says that it holds samples.
#[must_use]
pub fn holds_samples(path: &str) -> bool {
    DATA_NAMES.contains(&first_word(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_ends_where_the_path_goes_on() {
        assert_eq!(first_word("cache['k'][0]"), "cache");
        assert_eq!(first_word("x"), "x");
        assert_eq!(first_word(""), "");
    }
}
