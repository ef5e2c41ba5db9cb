//! What changes add to the program's buffers, in words.

/// What a prediction adds to the program's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// A buffer that is computed a second time, or has memory of its own that was another's.
    Buffer,
    /// The sums of the gradients of all weights, over the parts of a batch.
    Sums,
    /// What checkpointed layers hold while they compute again, and keep for it.
    Recomputation,
    /// What kernels keep for each row of attention scores, with their operands.
    Rows,
    /// Random bits that layers draw again.
    RandomBits,
}

impl Added {
    /// In words; `None` where it is the buffer that it is named for.
    #[must_use]
    pub const fn words(self) -> Option<&'static str> {
        match self {
            Self::Buffer => None,
            Self::Sums => Some("sums of all gradients"),
            Self::Recomputation => Some("what checkpointed layers compute again, and keep for that"),
            Self::Rows => Some("what attention kernels keep for each row"),
            Self::RandomBits => Some("random bits, drawn again"),
        }
    }
}
