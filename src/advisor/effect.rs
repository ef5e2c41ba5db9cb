//! Predicted effect of a finding's changes. Only the what-if evaluation makes one, so a finding and the what-if of its
//! changes cannot disagree.

use std::sync::Arc;

use super::case::Case;
use crate::analysis::what_if::{Edit, Outcome, TryVerdict};
use crate::model::Bytes;

/// Changes and their predicted effect.
#[derive(Debug, Clone)]
pub struct Effect {
    edits: Vec<Edit>,
    saves: Bytes,
    peak: Bytes,
    allocated: Bytes,
    verdict: TryVerdict,
    fits: Option<bool>,
    band: Option<String>,
}

impl Effect {
    /// Evaluates changes.
    pub(super) fn of(case: &Case<'_>, edits: Vec<Edit>) -> (Self, Arc<Outcome>) {
        let outcome = case.try_out(&edits);
        let effect = Self {
            saves: Bytes(case.saved(&outcome)),
            peak: outcome.peak,
            allocated: outcome.expected(),
            verdict: outcome.verdict,
            fits: outcome.fits,
            band: outcome.band.clone(),
            edits,
        };
        (effect, outcome)
    }

    /// The changes.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// Bytes by which the peak falls.
    #[must_use]
    pub const fn saves(&self) -> Bytes {
        self.saves
    }

    /// The peak after the changes.
    #[must_use]
    pub const fn peak(&self) -> Bytes {
        self.peak
    }

    /// Allocated bytes after the changes.
    #[must_use]
    pub const fn allocated(&self) -> Bytes {
        self.allocated
    }

    /// Whether the program fits after the changes; may be undecided where it depends on the compiler.
    #[must_use]
    pub const fn verdict(&self) -> TryVerdict {
        self.verdict
    }

    /// Whether the program fits after the changes; `None` if the capacity is unknown or it depends on the compiler.
    #[must_use]
    pub const fn fits(&self) -> Option<bool> {
        self.fits
    }

    /// Error of such predictions on real pairs of programs.
    #[must_use]
    pub fn band(&self) -> Option<&str> {
        self.band.as_deref()
    }
}
