//! A remedy: something to change, and what that costs.

use crate::advisor::finding::ChangesResults;

/// Something to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// What to do, one sentence; code in backquotes.
    pub text: String,
    /// Whether the results of the program change.
    pub changes_results: ChangesResults,
    /// What it can bring, where the page says; else empty.
    pub gain: &'static str,
    /// How to see that this is the trouble; may be empty.
    pub sign: &'static str,
    /// Address of the page; may be empty.
    pub reference: &'static str,
}

/// A remedy of its parts, in the order of its fields.
pub fn remedy(
    text: impl Into<String>,
    changes_results: ChangesResults,
    gain: &'static str,
    sign: &'static str,
    reference: &'static str,
) -> Remedy {
    Remedy { text: text.into(), changes_results, gain, sign, reference }
}
