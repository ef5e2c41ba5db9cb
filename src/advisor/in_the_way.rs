//! What a model does to its attention scores that kernels for attention block by block do not, and what to do then.

/// What the model does to its scores that JAX's kernels for attention block by block do not.
pub(super) enum InTheWay {
    /// Dropout on the probabilities.
    Dropout,
    /// A trained bias for each pair of positions, with the path of the largest.
    Bias(String),
    /// A term for the distance of each pair of positions, made of the queries: as in Transformer-XL.
    Relative,
    /// No softmax at all: another function of each score, as in HSTU.
    NoSoftmax,
}

impl InTheWay {
    /// `each` is what to do besides with the blocks of queries.
    pub fn words(&self, is_gpu: bool, each: &str) -> String {
        match self {
            Self::Dropout if is_gpu => {
                "; it has no dropout on the probabilities, which this model uses: without it, or with dropout on the attention's result instead".to_owned()
            }
            Self::NoSoftmax if is_gpu => format!(
                "; it computes a softmax, which these scores have not: blocks of queries in `jax.lax.map`{each} do the same for any function of them"
            ),
            Self::Dropout => {
                "; neither has dropout on the probabilities, which this model uses: without it, or with dropout on the attention's result instead".to_owned()
            }
            Self::NoSoftmax => format!(
                "; both compute a softmax, which these scores have not: blocks of queries in `jax.lax.map`{each} do the same for any function of them"
            ),
            Self::Relative if is_gpu => format!(
                "; this model adds a bias to its scores that it computes, such as one by relative position, which it takes as `bias`, an array of all pairs, as large as the scores; blocks of queries in `jax.lax.map`{each} need no such array"
            ),
            Self::Relative => format!(
                "; this model adds a bias to its scores that it computes, such as one by relative position: splash attention takes none, and flash attention only an array of all pairs (`ab`), as large as the scores; blocks of queries in `jax.lax.map`{each} need no such array"
            ),
            Self::Bias(path) if is_gpu => format!(
                "; this model adds a trained bias to its scores (`{path}`), which it takes as `bias`, an array of all pairs, whose gradient is as large as the scores"
            ),
            Self::Bias(path) => format!(
                "; this model adds a trained bias to its scores (`{path}`), which splash attention does not take, and flash attention only as an array of all pairs (`ab`), whose gradient is as large as the scores"
            ),
        }
    }
}
