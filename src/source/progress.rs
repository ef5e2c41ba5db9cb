//! Progress and cancellation of a long operation, shared between the worker and its caller.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::stages::{Spent, Stages};

/// The operation was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

/// Stage of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading bytes.
    Reading,
    /// Decoding a format.
    Decoding,
    /// Computing live ranges, curves and peaks.
    Analysing,
    /// Listing a folder's files.
    Listing,
    /// Scanning listed programs for their memory requirements.
    Scanning,
    /// Working out what to change, and what else is shown of a program.
    Advising,
    /// Writing a report.
    Reporting,
    /// Finding what is the same in two programs.
    Comparing,
}

impl Stage {
    /// All of them, in the order of an operation.
    pub const ALL: [Self; 8] = [
        Self::Listing,
        Self::Scanning,
        Self::Reading,
        Self::Decoding,
        Self::Analysing,
        Self::Comparing,
        Self::Advising,
        Self::Reporting,
    ];

    /// Lower-case label for a progress bar.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Decoding => "decoding",
            Self::Analysing => "analysing",
            Self::Listing => "listing",
            Self::Scanning => "scanning programs",
            Self::Advising => "advising",
            Self::Reporting => "writing",
            Self::Comparing => "comparing",
        }
    }
}

/// Counters shared between threads.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    stage: AtomicU8,
    cancelled: Arc<AtomicBool>,
    stages: Mutex<Stages>,
}

impl Progress {
    /// A progress with counters of its own that is cancelled once a flag is set, such as [`Self::flag`] of another.
    #[must_use]
    pub fn cancelled_by(flag: Arc<AtomicBool>) -> Self {
        Self { cancelled: flag, ..Self::default() }
    }

    /// A progress with counters of its own that is cancelled together with this one: for work inside one step.
    #[must_use]
    pub fn aside(&self) -> Self {
        Self::cancelled_by(Arc::clone(&self.cancelled))
    }

    /// The flag that is set once it was cancelled, for code that only needs to know this.
    #[must_use]
    pub const fn flag(&self) -> &Arc<AtomicBool> {
        &self.cancelled
    }

    /// The completed steps of the current stage, for code that only counts.
    #[must_use]
    pub const fn counter(&self) -> &AtomicU64 {
        &self.done
    }

    /// Begins a stage of `total` steps (bytes when reading); 0 if the total is unknown.
    pub fn begin(&self, stage: Stage, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.stage.store(stage as u8, Ordering::Relaxed);
        self.stages.lock().unwrap_or_else(PoisonError::into_inner).begin(stage);
    }

    /// What each stage took until now.
    #[must_use]
    pub fn spent(&self) -> Vec<Spent> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner).spent()
    }

    /// Adds completed steps.
    ///
    /// # Errors
    /// [`Cancelled`] once [`Self::cancel`] was called.
    pub fn advance(&self, steps: u64) -> Result<(), Cancelled> {
        self.done.fetch_add(steps, Ordering::Relaxed);
        self.check()
    }

    /// Checks for cancellation.
    ///
    /// # Errors
    /// [`Cancelled`] once [`Self::cancel`] was called.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.cancelled.load(Ordering::Relaxed) { Err(Cancelled) } else { Ok(()) }
    }

    /// Asks the worker to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// (completed, total) steps of the current stage.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// The current stage.
    #[must_use]
    pub fn stage(&self) -> Stage {
        let stage = self.stage.load(Ordering::Relaxed);
        Stage::ALL.into_iter().find(|&known| known as u8 == stage).unwrap_or(Stage::Reading)
    }

    /// Completed fraction of the current stage, 0..=1; 0 if the total is unknown.
    #[must_use]
    pub fn fraction(&self) -> f32 {
        let (done, total) = self.counts();
        if total == 0 { 0.0 } else { (done as f64 / total as f64).min(1.0) as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_progress_stops_the_worker() {
        let progress = Progress::default();
        progress.begin(Stage::Decoding, 10);
        assert_eq!(progress.advance(5), Ok(()));
        assert_eq!(progress.fraction(), 0.5);
        assert_eq!(progress.stage(), Stage::Decoding);
        let aside = progress.aside();
        aside.begin(Stage::Reading, 7);
        assert_eq!((progress.stage(), progress.counts(), aside.check()), (Stage::Decoding, (5, 10), Ok(())));
        progress.cancel();
        assert_eq!(progress.advance(1), Err(Cancelled));
        assert_eq!(aside.check(), Err(Cancelled), "they end together");
    }
}
