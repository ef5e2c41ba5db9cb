//! Ends an analysis that nobody waits for any more.

use std::sync::atomic::{AtomicBool, Ordering};

/// The analysis was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// Whether to stop: work that may take long asks this again and again.
#[derive(Debug, Clone, Copy)]
pub struct Stop<'a>(Option<&'a AtomicBool>);

impl<'a> Stop<'a> {
    /// Work that is always wanted.
    pub const NEVER: Self = Self(None);

    /// Stops once a flag is set.
    #[must_use]
    pub const fn once(flag: &'a AtomicBool) -> Self {
        Self(Some(flag))
    }

    /// Asks.
    ///
    /// # Errors
    /// [`Stopped`] once the flag is set.
    #[inline]
    pub fn check(self) -> Result<(), Stopped> {
        match self.0 {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(Stopped),
            _ => Ok(()),
        }
    }
}
