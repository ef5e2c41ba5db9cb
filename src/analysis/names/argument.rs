//! Words in argument paths, and what they indicate.

use smallvec::SmallVec;

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
const STATE_NAMES: &[&str] = &[
    "cache",
    "kv_cache",
    "kv_caches",
    "kv",
    "k_cache",
    "v_cache",
    "mems",
    "carry",
    "env",
    "envs",
    "env_state",
    "env_states",
    "replay",
    "replay_buffer",
    "replay_memory",
    "replay_state",
    "buffer_state",
    "experience",
    "transitions",
    "trajectories",
];

/// Path words found only in optimizer state.
const OPTIMIZER: &[&str] = &[
    "opt_state",
    "opt_states",
    "optstate",
    "optimizer_state",
    "optimizer_states",
    "optim_state",
    "exp_avg",
    "exp_avg_sq",
    "adam",
    "adamw",
];

/// Path words found in optimizer state and elsewhere: a physics engine has an `opt` too.
const MAYBE_OPTIMIZER: &[&str] =
    &["opt", "optimizer", "optim", "mu", "nu", "mom", "momentum", "moments", "velocity", "trace"];

/// Path words found only in a decoder's cache, besides those ending in `cache`.
const CACHES: &[&str] = &["cached_key", "cached_value", "cache_index", "past_key_values", "kv", "mems", "pages"];

/// Last path words found only in weights.
const WEIGHT_LEAVES: &[&str] =
    &["kernel", "bias", "scale", "embedding", "input_embedding", "gamma", "beta", "lora_a", "lora_b"];

/// Path words found only in weights.
const WEIGHTS: &[&str] = &[
    "params",
    "param",
    "parameters",
    "weights",
    "weight",
    "kernel",
    "embedding",
    "embed",
    "qvalue",
    "qweight",
    "qrhs",
];

/// Words for samples anywhere in a path.
const SAMPLES: &[&str] = &[
    "tokens",
    "targets",
    "labels",
    "images",
    "input_ids",
    "token_ids",
    "attention_mask",
    "padding_mask",
    "loss_mask",
    "segment_ids",
    "pixel_values",
    "positions",
    "predicted_tokens",
    "observation",
    "observations",
];

/// Words for samples where a path begins with them.
const FIRST_SAMPLES: &[&str] = &[
    "feat", "feats", "feature", "pts", "points", "pos", "mask", "masks", "prompt", "prompts", "pixels", "audio",
    "video", "frames", "query", "queries",
];

/// Words for the state of a random generator.
const KEYS: &[&str] = &["rng", "seed", "rngs", "prng_key", "rng_key"];

/// Evidence from an argument's path, such as `opt_state[0].mu['w']`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// A word found only in optimizer state.
    Optimizer,
    /// A word found in optimizer state and elsewhere.
    MaybeOptimizer,
    /// A word found only in caches.
    Cache,
    /// Other state kept for each sample.
    State,
    /// Samples, or the state of a random generator.
    Samples,
    /// A word of weights.
    Weight,
    /// A position in an argument tree, without any known word.
    Place,
    /// A single unknown word, or no name at all.
    Nothing,
}

impl Hint {
    /// Classifies a path.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let lower = path.to_ascii_lowercase();
        let words: SmallVec<[&str; 16]> =
            lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
        let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
        let is_cache = |word: &&str| {
            // Among parameters, `kv` is a projection to keys and values.
            (CACHES.contains(word) && !(*word == "kv" && has(WEIGHTS)))
                || ["cache", "caches"]
                    .iter()
                    .any(|end| word.strip_suffix(end).is_some_and(|head| head.is_empty() || head.ends_with('_')))
        };
        // One of several: `generator_opt`.
        let is_someones_optimizer =
            |word: &&str| ["_opt", "_optim", "_optimizer", "_opt_state"].iter().any(|end| word.ends_with(end));
        // The word `value` is where some libraries keep the array itself.
        let last = words.iter().rev().find(|word| **word != "value").copied().unwrap_or_default();
        if has(OPTIMIZER) {
            Self::Optimizer
        } else if words.iter().any(is_cache) {
            Self::Cache
        } else if (has(MAYBE_OPTIMIZER) || words.iter().any(is_someones_optimizer))
            && !words.first().is_some_and(|word| WEIGHTS.contains(word))
        {
            Self::MaybeOptimizer
        } else if has(KEYS) || (last == "key" && words.len() <= 2) {
            Self::Samples
        } else if WEIGHT_LEAVES.contains(&last) || has(WEIGHTS) {
            Self::Weight
        } else if holds_state(path) {
            Self::State
        } else if holds_samples(path) || has(SAMPLES) || words.first().is_some_and(|word| FIRST_SAMPLES.contains(word))
        {
            Self::Samples
        } else if words.len() > 1 {
            Self::Place
        } else {
            Self::Nothing
        }
    }
}

/// First word of a JAX path: `cache` of `cache['k'][0]`.
#[must_use]
pub fn first_word(path: &str) -> &str {
    path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
}

/// Whether an argument's path says that it is an average of the weights over many steps.
#[must_use]
pub fn is_average(path: &str) -> bool {
    let mut words = path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| matches!(word, "ema" | "ema_params" | "params_ema" | "polyak" | "average" | "averaged"))
}

/// Whether a path has more than one word.
#[must_use]
pub fn is_nested(path: &str) -> bool {
    path.contains(['[', '.'])
}

/// Whether a path's first word alone indicates samples or their state, and no word after it: `target['emb']`, but
/// not `state.tokens`.
#[must_use]
pub fn is_told_by_first_word(path: &str) -> bool {
    let rest = path.get(first_word(path).len()..).unwrap_or_default();
    Hint::of(rest) != Hint::Samples && Hint::of(path) != Hint::of(rest)
}

/// Whether an argument's name indicates per-sample state, such as a cache.
#[must_use]
pub fn holds_state(path: &str) -> bool {
    STATE_NAMES.contains(&first_word(path))
}

/// First words of paths of what was seen before, with a place for each sample.
const MEMORY_NAMES: [&str; 5] = ["replay", "replay_buffer", "buffer", "memory", "buffer_state"];

/// Whether an argument's name indicates a memory of samples that were seen before, such as a replay buffer.
#[must_use]
pub fn holds_memory(path: &str) -> bool {
    MEMORY_NAMES.contains(&first_word(path))
}

/// Whether an argument's name indicates that it holds samples.
#[must_use]
pub fn holds_samples(path: &str) -> bool {
    DATA_NAMES.contains(&first_word(path).to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_memory_is_told_by_its_name() {
        assert!(holds_memory("replay['boards']") && holds_memory("replay_buffer.obs") && holds_memory("buffer[0]"));
        assert!(!holds_memory("params['replay']") && !holds_memory("boards"));
    }

    #[test]
    fn paths_of_many_libraries_are_read() {
        for (path, expected) in [
            (
                "state['optimizer']['opt_state'][0]['mu']['decoder']['layers']['mlp']['wi_0']['kernel'].value",
                Hint::Optimizer,
            ),
            ("state['model']['decoder']['layers']['self_attention']['key']['kernel'].value", Hint::Weight),
            ("state['model']['decoder']['layers']['self_attention']['rngs']['dropout']['key'].value", Hint::Samples),
            ("state.cache['layer_0']['k']", Hint::Cache),
            ("sampling_state.cache['layer_0']['v']", Hint::Cache),
            ("kv_caches[3]", Hint::Cache),
            ("params['layers']['kv']", Hint::Weight),
            ("variables['cache']['attn']['cached_key']", Hint::Cache),
            ("model.opt.tolerance", Hint::MaybeOptimizer),
            ("generator_opt[0].count", Hint::MaybeOptimizer),
            ("params['res_net50/~/initial_conv']['w']", Hint::Weight),
            ("state[2][17]", Hint::Place),
            ("state.predicted_tokens", Hint::Samples),
            ("data[0]['padding_mask']", Hint::Samples),
            ("key", Hint::Samples),
            ("w", Hint::Nothing),
        ] {
            assert_eq!(Hint::of(path), expected, "{path}");
        }
    }

    #[test]
    fn the_first_word_ends_where_the_path_goes_on() {
        assert_eq!(first_word("cache['k'][0]"), "cache");
        assert_eq!(first_word("x"), "x");
        assert_eq!(first_word(""), "");
    }
}
