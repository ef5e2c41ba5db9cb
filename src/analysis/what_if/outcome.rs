//! What a prediction comes to: the one verdict that every view and the report say in the same words.

use super::prediction::{Prediction, TryVerdict};
use crate::model::{Bytes, UnitSystem};

/// The verdict of a prediction against a capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It fits with so many bytes to spare.
    Fits(Bytes),
    /// It fits, but only if the compiler packs by size, and it may rematerialise.
    JustFits(Bytes),
    /// Whether it fits depends on the compiler.
    MayFit,
    /// It is so many bytes over.
    Over(Bytes),
}

impl Outcome {
    /// In words, as they stand in a sentence: `fits with 3.73 GiB to spare`, `10.1 GiB over`.
    #[must_use]
    pub fn words(self, units: UnitSystem) -> String {
        match self {
            Self::Fits(spare) => format!("fits with {} to spare", units.short(spare)),
            Self::JustFits(spare) => format!("just fits, with {} to spare", units.short(spare)),
            Self::MayFit => "may fit".to_owned(),
            Self::Over(over) => format!("{} over", units.short(over)),
        }
    }

    /// The same where the numbers are an upper bound of what is saved.
    #[must_use]
    pub const fn at_most(self) -> Self {
        match self {
            Self::Fits(_) | Self::JustFits(_) => Self::MayFit,
            other => other,
        }
    }
}

impl Prediction {
    /// What it comes to; `None` if there is no prediction, or no capacity.
    #[must_use]
    pub fn outcome(&self, capacity: Option<u64>) -> Option<Outcome> {
        if self.undecided.is_some() && !self.is_bound {
            return None;
        }
        if self.verdict == TryVerdict::MayFit {
            return Some(Outcome::MayFit);
        }
        let (capacity, needs) = (capacity?, self.expected().0);
        let spare = Bytes(capacity.saturating_sub(needs));
        Some(match (self.fits?, self.is_tight) {
            (false, _) => Outcome::Over(Bytes(needs.saturating_sub(capacity))),
            (true, true) => Outcome::JustFits(spare),
            (true, false) => Outcome::Fits(spare),
        })
    }
}
