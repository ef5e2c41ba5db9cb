//! A remedy: something to change, what it gains, and whether it affects results.

use crate::advisor::finding::ChangesResults;

/// Something to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// What to do, one sentence; code in backquotes.
    pub text: String,
    /// Whether the results of the program change.
    pub changes_results: ChangesResults,
    /// What it can gain, if the page says so; else empty.
    pub gain: &'static str,
    /// Sign that this is the problem; may be empty.
    pub sign: &'static str,
    /// URL of the page; may be empty.
    pub reference: &'static str,
}

/// Makes a remedy; arguments in the order of its fields.
pub fn remedy(
    text: impl Into<String>,
    changes_results: ChangesResults,
    gain: &'static str,
    sign: &'static str,
    reference: &'static str,
) -> Remedy {
    Remedy { text: text.into(), changes_results, gain, sign, reference }
}
