//! What a prediction comes to: the one verdict that every view and the report say in the same words.

use super::prediction::{Prediction, TryVerdict, WIDEST};
use crate::model::{Bytes, UnitSystem};

/// The verdict of a prediction against a capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It fits with so many bytes to spare.
    Fits(Bytes),
    /// It fits with so many bytes to spare, but only if the compiler packs by size, and it may rematerialise.
    Tight {
        /// The bytes.
        spare: Bytes,
        /// Whether these are little of the capacity.
        is_little: bool,
    },
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
            Self::Tight { spare, is_little: true } => format!("just fits, with {} to spare", units.short(spare)),
            Self::Tight { spare, .. } => format!("fits with {} to spare", units.short(spare)),
            Self::MayFit => "may fit".to_owned(),
            Self::Over(over) => format!("{} over", units.short(over)),
        }
    }

    /// The same where the numbers are an upper bound of what is saved.
    #[must_use]
    pub const fn at_most(self) -> Self {
        match self {
            Self::Fits(_) | Self::Tight { .. } => Self::MayFit,
            other => other,
        }
    }
}

/// What is to spare is little below this fraction (1/20) of the capacity.
const LITTLE: u64 = 20;

/// Bytes that the ends of a range may be further apart than [`WIDEST`] by rounding.
const ROUNDED: f64 = 1024.0;

/// What is said in place of the bytes that a program takes after some changes, where [`Prediction::is_told`] is false.
pub const UNTOLD: &str = "how much it takes cannot be told";

impl Prediction {
    /// Whether the bytes say anything: not where the highest that may be needed are more than 1.6 times the lowest. Of
    /// such a prediction only the end of the range is shown that decides whether the program fits.
    #[must_use]
    pub fn is_told(&self) -> bool {
        let (low, high) = (self.allocated_range.0.0 as f64, self.allocated_range.1.0 as f64);
        high <= low * WIDEST + ROUNDED
    }

    /// What is certain where the bytes cannot be told ([`Self::is_told`]): `fits with at least 8.20 GiB to spare`; `None` if
    /// the capacity is unknown.
    #[must_use]
    pub fn certainly(&self, capacity: Option<u64>, units: UnitSystem) -> Option<String> {
        let (low, high) = (self.allocated_range.0.0, self.allocated_range.1.0);
        let apart = |a: u64, b: u64| a.checked_sub(b).filter(|&bytes| bytes > 0).map(|bytes| units.short(Bytes(bytes)));
        Some(match self.verdict {
            TryVerdict::Fits => match capacity.and_then(|capacity| apart(capacity, high)) {
                Some(spare) => format!("fits with at least {spare} to spare"),
                None => "fits".to_owned(),
            },
            TryVerdict::MayFit => "may fit".to_owned(),
            TryVerdict::Over => match capacity.and_then(|capacity| apart(low, capacity)) {
                Some(over) => format!("does not fit: it is at least {over} over"),
                None => "does not fit".to_owned(),
            },
            TryVerdict::Unknown => return None,
        })
    }

    /// The verdict where the bytes cannot be told ([`Self::is_told`]).
    #[must_use]
    pub fn verdict_in_words(&self, capacity: Option<u64>, units: UnitSystem) -> String {
        let Some(certainly) = self.certainly(capacity, units) else { return UNTOLD.to_owned() };
        match self.verdict {
            TryVerdict::Fits => format!("{certainly}, but {UNTOLD}"),
            TryVerdict::MayFit => format!("{certainly}: {UNTOLD}"),
            _ if certainly.contains(':') => certainly,
            _ => format!("{certainly}; {UNTOLD}"),
        }
    }

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
            (true, true) => Outcome::Tight { spare, is_little: spare.0 < capacity / LITTLE },
            (true, false) => Outcome::Fits(spare),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::packing::{Packer, Placement};
    use crate::analysis::what_if::{DependsOn, Sizes};

    fn prediction(range: (u64, u64), verdict: TryVerdict) -> Prediction {
        let gib = |bytes: u64| Bytes(bytes << 30);
        Prediction {
            edits: Vec::new(),
            base: Bytes(0),
            peak: gib(range.0),
            peak_event: 0,
            peak_range: (gib(range.0), gib(range.1)),
            allocated_range: (gib(range.0), gib(range.1)),
            verdict,
            depends_on: DependsOn::default(),
            least: gib(range.0),
            allocated: gib(range.0),
            allocated_online: gib(range.0),
            packed_online: gib(range.0),
            packer: Packer::Online,
            fits: Some(verdict == TryVerdict::Fits),
            is_tight: false,
            band: None,
            undecided: None,
            names_nothing: false,
            left_out: Vec::new(),
            is_bound: false,
            warnings: Vec::new(),
            scan_segments: None,
            besides: Vec::new(),
            pairs: Vec::new(),
            sizes: Sizes::default(),
            placement: Placement::default(),
        }
    }

    #[test]
    fn a_bound_is_said_with_what_it_depends_on() {
        let bound = |verdict| Prediction {
            undecided: Some(format!("{UNTOLD}: that depends")),
            is_bound: true,
            ..prediction((10, 13), verdict)
        };
        let words = |verdict| bound(verdict).sentence(Some(12 << 30), UnitSystem::Binary);
        let fits = words(TryVerdict::Fits);
        assert_eq!(fits, format!("fits with at least 2.00 GiB to spare; {UNTOLD}: that depends"));
        assert_eq!(words(TryVerdict::MayFit), format!("may fit; {UNTOLD}: that depends"));
        let unknown = Prediction { is_bound: false, ..bound(TryVerdict::Fits) };
        assert!(unknown.sentence(Some(12 << 30), UnitSystem::Binary).starts_with("not predicted: "));
    }

    #[test]
    fn what_just_fits_has_little_to_spare() {
        let words = |capacity: u64| {
            let tight = Prediction { is_tight: true, ..prediction((90, 90), TryVerdict::Fits) };
            tight.sentence(Some(capacity << 30), UnitSystem::Binary)
        };
        assert!(words(92).starts_with("just fits, with 2.00 GiB to spare; the compiler will repack"), "{}", words(92));
        assert!(words(101).starts_with("fits with 11.0 GiB to spare; the compiler will repack"), "{}", words(101));
    }

    #[test]
    fn of_a_range_that_says_nothing_only_the_end_that_decides_is_said() {
        let words = |verdict, capacity: u64| {
            let wide = prediction((10, 17), verdict);
            assert!(!wide.is_told());
            wide.sentence(Some(capacity << 30), UnitSystem::Binary)
        };
        for verdict in [TryVerdict::MayFit, TryVerdict::Unknown] {
            let words = words(verdict, 12);
            assert!(words.contains(UNTOLD) && !words.contains(|c: char| c.is_ascii_digit()), "{words}");
        }
        assert_eq!(words(TryVerdict::Fits, 20), format!("fits with at least 3.00 GiB to spare, but {UNTOLD}"));
        assert_eq!(words(TryVerdict::Over, 8), "does not fit: it is at least 2.00 GiB over");
        let narrow = prediction((10, 16), TryVerdict::MayFit);
        assert!(narrow.is_told());
        assert!(narrow.sentence(Some(12 << 30), UnitSystem::Binary).contains("10.0 GiB to 16.0 GiB"));
    }
}
