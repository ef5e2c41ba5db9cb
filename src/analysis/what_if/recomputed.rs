//! What the compiler computes again, as names tell.

/// What the compiler computes again.
#[derive(Debug, Clone, Default)]
pub struct Recomputed {
    /// By family: the value it holds, one number for all that are the same but computed again, and whether it is computed
    /// again for something that is not; `NO_ROW` for what is not computed again at all.
    pub of_family: Vec<(u32, bool)>,
    /// Number of values.
    pub values: usize,
}
