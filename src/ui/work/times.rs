//! How long the last jobs took.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a job took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTime {
    /// What was computed, such as "memory map".
    pub job: String,
    /// From its start on a worker to its end.
    pub time: Duration,
}

/// The jobs that ended last.
#[derive(Clone, Default)]
pub struct JobTimes(Arc<Mutex<VecDeque<JobTime>>>);

impl JobTimes {
    /// Jobs that are kept.
    const MOST: usize = 8;

    /// Adds a job that has ended.
    pub fn add(&self, job: &str, time: Duration) {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.truncate(Self::MOST - 1);
        jobs.push_front(JobTime { job: job.to_owned(), time });
    }

    /// The jobs, the last one first.
    #[must_use]
    pub fn list(&self) -> Vec<JobTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
