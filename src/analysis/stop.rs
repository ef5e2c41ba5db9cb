//! Ends an analysis that nobody waits for any more, and counts how far one has come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The analysis was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// Whether to stop: work that may take long asks this again and again.
#[derive(Debug, Clone, Copy)]
pub struct Stop<'a> {
    flag: Option<&'a AtomicBool>,
    /// Steps that are done.
    done: Option<&'a AtomicU64>,
}

impl<'a> Stop<'a> {
    /// Work that is always wanted.
    pub const NEVER: Self = Self { flag: None, done: None };

    /// Stops once a flag is set.
    #[must_use]
    pub const fn once(flag: &'a AtomicBool) -> Self {
        Self { flag: Some(flag), done: None }
    }

    /// The same, where steps that are done are counted.
    #[must_use]
    pub const fn counting(self, done: &'a AtomicU64) -> Self {
        Self { done: Some(done), ..self }
    }

    /// A step is done. Asks.
    ///
    /// # Errors
    /// [`Stopped`] once the flag is set.
    pub fn step(self) -> Result<(), Stopped> {
        if let Some(done) = self.done {
            done.fetch_add(1, Ordering::Relaxed);
        }
        self.check()
    }

    /// Asks.
    ///
    /// # Errors
    /// [`Stopped`] once the flag is set.
    #[inline]
    pub fn check(self) -> Result<(), Stopped> {
        match self.flag {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(Stopped),
            _ => Ok(()),
        }
    }
}
