//! What a rule found: what to change, what it saves at the peak, and what that rests on.

use std::fmt;

use super::effect::Effect;
use crate::analysis::what_if::{Edit, TryVerdict};
use crate::model::{BufferId, Bytes, MemorySpace};

/// Something to change, or to know.
#[derive(Debug, Clone, Default)]
pub struct Finding {
    /// Name of the rule, as the report writes it: `donation`.
    pub rule: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// One line: what, and how much.
    pub title: String,
    /// What it rests on, in a few sentences.
    pub why: String,
    /// What to do, most useful first; code in backquotes.
    pub advice: Vec<String>,
    /// Its changes and what they come to; `None` where no change can be named that does just this. Only
    /// [`Effect`] makes it, from the what-if of its changes.
    pub effect: Option<Effect>,
    /// Bytes at the peak that it is about: what findings are ranked by. Where it is not said, what is saved.
    pub at_stake_bytes: Option<Bytes>,
    /// Whether the results of the program may change.
    pub changes_results: ChangesResults,
    /// Program of the profile it is about; `None` for the profile as a whole.
    pub program: Option<usize>,
    /// Out-of-memory message of the profile it is about; its remedies are [`Self::advice`].
    pub failure: Option<usize>,
    /// Memory space it is about (colour).
    pub color: MemorySpace,
    /// The evidence: buffers of that program, largest first.
    pub buffers: Vec<BufferId>,
    /// The evidence on an IPU: tiles.
    pub tiles: Vec<u32>,
    /// The page it rests on: title or address.
    pub reference: &'static str,
    /// Where what it saves, or is about, is the most there is to gain: in which sense. `at most: …`
    pub at_most: Option<String>,
    /// What to know before trusting the prediction.
    pub warnings: Vec<String>,
    /// Whether it rests on names alone.
    pub is_guess: bool,
    /// Whether it is a way to save rather than the cause of anything.
    pub is_remedy: bool,
}

/// How grave a [`Finding`] is. Nothing is critical in a program that uses less than 83 % of what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Severity {
    /// A way to save.
    #[default]
    Hint,
    /// The program is tight, or something is wrong with it.
    Warning,
    /// A cause of its not fitting.
    Critical,
}

impl Severity {
    /// The word in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Whether a change alters what the program computes. The order is the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ChangesResults {
    /// Never.
    #[default]
    No,
    /// It may: rounding, the shape of the model.
    Maybe,
    /// It does.
    Yes,
}

impl ChangesResults {
    /// In words, beside a remedy.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::No => "results stay the same",
            Self::Maybe => "may change results",
            Self::Yes => "changes results",
        }
    }

    /// The word in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Maybe => "maybe",
            Self::Yes => "yes",
        }
    }
}

impl Finding {
    /// An empty finding of a rule.
    #[must_use]
    pub fn new(rule: &'static str) -> Self {
        Self { rule, ..Self::default() }
    }

    /// What findings are ranked by: bytes at the peak that it is about; where these are not said, what it saves.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.at_stake_bytes.or(self.saves_bytes()).map_or(0, |bytes| bytes.0)
    }

    /// The changes to try; none where no change can be named.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        self.effect.as_ref().map_or(&[], Effect::edits)
    }

    /// Bytes by which the peak falls with its changes.
    #[must_use]
    pub fn saves_bytes(&self) -> Option<Bytes> {
        self.effect.as_ref().map(Effect::saves)
    }

    /// The peak after its changes.
    #[must_use]
    pub fn peak_after_bytes(&self) -> Option<Bytes> {
        self.effect.as_ref().map(Effect::peak)
    }

    /// Allocated bytes after its changes, from the compiler's own way of packing.
    #[must_use]
    pub fn allocated_after_bytes(&self) -> Option<Bytes> {
        self.effect.as_ref().map(Effect::allocated)
    }

    /// Whether the program fits after its changes; `None` where the capacity is not known or the compiler decides.
    /// What is gained at most is no promise that it fits.
    #[must_use]
    pub fn fits_after(&self) -> Option<bool> {
        let fits = self.effect.as_ref().and_then(Effect::fits);
        fits.filter(|fits| !fits || self.at_most.is_none())
    }

    /// Whether the program may fit after its changes, and the compiler decides.
    #[must_use]
    pub fn may_fit_after(&self) -> bool {
        self.effect.as_ref().is_some_and(|effect| effect.verdict() == TryVerdict::MayFit)
    }

    /// How far the prediction was off on real pairs of programs: `within 3 % on 15 of 17 pairs`; or that it is the most
    /// there is to gain.
    #[must_use]
    pub fn band(&self) -> Option<&str> {
        self.at_most.as_deref().or_else(|| self.effect.as_ref().and_then(Effect::band))
    }
}

/// The finding as plain text, for the clipboard.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[{}] {}", self.severity.name(), self.title)?;
        writeln!(f, "  {}", self.why)?;
        for advice in &self.advice {
            writeln!(f, "  - {advice}")?;
        }
        if let (Some(saves), Some(after)) = (self.saves_bytes(), self.peak_after_bytes()) {
            let fits = match self.fits_after() {
                Some(true) => ", fits then",
                Some(false) => ", still does not fit",
                None if self.may_fit_after() => ", may fit then: the compiler decides",
                None => "",
            };
            writeln!(f, "  saves {} at the peak, {} after{fits}", saves.short(), after.short())?;
        }
        if let Some(band) = self.band() {
            writeln!(f, "  prediction: {band}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "  caution: {warning}")?;
        }
        if self.changes_results != ChangesResults::No {
            writeln!(f, "  changes results: {}", self.changes_results.name())?;
        }
        if !self.reference.is_empty() {
            writeln!(f, "  see {}", self.reference)?;
        }
        Ok(())
    }
}
