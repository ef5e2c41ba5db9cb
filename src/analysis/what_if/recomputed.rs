//! What the compiler computes again, as names tell.

/// What the compiler computes again.
#[derive(Debug, Clone, Default)]
pub struct Recomputed {
    /// By family: the value it holds, one number for all that are the same but computed again, and whether it is computed
    /// again for something that is not; `NO_ROW` for what is not computed again at all.
    pub of_family: Vec<(u32, bool)>,
    /// Families that hold values in a layout with less padding, where there is no room to keep them as they are, ascending.
    pub compressed: Vec<u32>,
    /// Number of values.
    pub values: usize,
    /// What is one of several results first, but computed again alone, by family, ascending: the time at which another
    /// value is written in its place. Results of several are hardly ever written over (of 1,248 that are read a last time
    /// by what makes an array of their size, in real programs, 276 were).
    pub handed_on: Vec<(u32, u32)>,
}
