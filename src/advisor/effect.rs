//! Predicted effect of a finding's changes. Only the what-if evaluation makes one, so a finding and the what-if of its
//! changes cannot disagree.

use std::sync::Arc;

use super::program_context::ProgramContext;
use crate::analysis::what_if::{Edit, Outcome, Prediction, TryVerdict};
use crate::model::{Bytes, UnitSystem};

/// Changes and their predicted effect.
#[derive(Debug, Clone)]
pub struct Effect {
    edits: Vec<Edit>,
    saves: Bytes,
    peak: Bytes,
    allocated: Bytes,
    range: (Bytes, Bytes),
    before: Bytes,
    verdict: TryVerdict,
    fits: Option<bool>,
    fits_already: bool,
    outcome: Option<Outcome>,
    band: Option<String>,
    is_bound: bool,
    is_told: bool,
    certainly: Option<String>,
}

impl Effect {
    /// Evaluates changes.
    pub(super) fn of(case: &ProgramContext<'_>, edits: Vec<Edit>) -> (Self, Arc<Prediction>) {
        let prediction = case.try_out(&edits);
        let effect = Self {
            saves: Bytes(case.saved(&prediction)),
            peak: prediction.peak,
            allocated: prediction.expected(),
            range: prediction.allocated_range,
            before: Bytes(case.allocated()),
            verdict: prediction.verdict,
            fits: prediction.fits,
            fits_already: case.fits_already() == Some(true),
            outcome: prediction.outcome(case.memory.capacity),
            band: prediction.band.clone(),
            is_bound: prediction.undecided.is_some(),
            is_told: prediction.is_told(),
            certainly: prediction.certainly(case.memory.capacity, UnitSystem::Binary),
            edits,
        };
        (effect, prediction)
    }

    /// Whether the bytes needed are only known not to be more: how much it saves cannot be told.
    #[must_use]
    pub const fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// Whether its bytes say anything ([`Prediction::is_told`]).
    #[must_use]
    pub const fn is_told(&self) -> bool {
        self.is_told
    }

    /// What is certain though its bytes say nothing ([`Prediction::certainly`]).
    #[must_use]
    pub fn certainly(&self) -> Option<&str> {
        self.certainly.as_deref()
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

    /// Lower and upper end of the predicted allocated bytes.
    #[must_use]
    pub const fn range(&self) -> (Bytes, Bytes) {
        self.range
    }

    /// Allocated bytes without the changes.
    #[must_use]
    pub const fn before(&self) -> Bytes {
        self.before
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

    /// Whether the program fits as it is.
    #[must_use]
    pub const fn fits_already(&self) -> bool {
        self.fits_already
    }

    /// What it comes to; `None` if the capacity is unknown.
    #[must_use]
    pub const fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Error of such predictions on real pairs of programs.
    #[must_use]
    pub fn band(&self) -> Option<&str> {
        self.band.as_deref()
    }
}
