//! Background jobs whose results views poll for. A job that fails is reported, and the window shows it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::times::JobTimes;
use crate::analysis::{Stop, Stopped};

/// How to run jobs.
#[derive(Clone)]
pub struct Work {
    /// Repainted when a job ends.
    pub ctx: egui::Context,
    /// Run jobs immediately on the calling thread.
    pub synchronous: bool,
    /// Number of running jobs.
    pub running: Arc<AtomicUsize>,
    /// Where work that failed is reported.
    pub failed: FailedJobs,
    /// How long the last jobs took.
    pub times: JobTimes,
}

/// Jobs that failed and have not been dismissed, oldest first.
#[derive(Clone, Default)]
pub struct FailedJobs(Arc<Mutex<Vec<FailedJob>>>);

/// A job that ended without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedJob {
    /// What was to be computed, such as "memory map".
    pub job: String,
    /// The reason, without anything that may name a part of the profile.
    pub message: String,
}

impl FailedJob {
    fn new(job: &str, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Self { job: job.to_owned(), message: without_quotes(text.unwrap_or("no message")) }
    }

    /// A short report for the developers: job, message, version and system.
    #[must_use]
    pub fn report(&self) -> String {
        format!(
            "Highwater {} on {} {}\njob: {}\nmessage: {}\n",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::OS,
            std::env::consts::ARCH,
            self.job,
            self.message
        )
    }
}

/// A message without quoted parts, in which the standard library puts text from the data.
fn without_quotes(message: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for c in message.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => {}
            None if matches!(c, '`' | '"') => {
                quote = Some(c);
                out.push('\u{2026}');
            }
            None => out.push(c),
        }
    }
    out
}

impl FailedJobs {
    fn push(&self, failed: FailedJob) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A job that fails in every frame is one failure.
        if !list.contains(&failed) {
            list.push(failed);
        }
    }

    /// Those that have not been dismissed.
    #[must_use]
    pub fn list(&self) -> Vec<FailedJob> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Dismisses one, counted from 0.
    pub fn dismiss(&self, index: usize) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if index < list.len() {
            list.remove(index);
        }
    }
}

/// A job and its result.
pub struct Job<T> {
    state: State<T>,
    /// Stops it when nobody waits for it any more.
    _stopper: Option<Stopper>,
}

/// Sets a flag when it goes.
struct Stopper(Arc<AtomicBool>);

impl Drop for Stopper {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

enum State<T> {
    Running(Receiver<Option<T>>),
    Done(T),
    Failed,
}

impl<T: Send + 'static> Job<T> {
    /// Starts `run` on a thread called `name`, which says what is computed. A panic is reported in [`Work::failed`].
    pub fn start(work: &Work, name: &str, run: impl FnOnce() -> T + Send + 'static) -> Self {
        Self { state: State::start(work, name, move || Some(run())), _stopper: None }
    }

    /// As [`Self::start`], for work that is told to stop once the job is dropped: its file was closed, or something else
    /// is asked for.
    pub fn start_stoppable(
        work: &Work,
        name: &str,
        run: impl FnOnce(Stop<'_>) -> Result<T, Stopped> + Send + 'static,
    ) -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let stopper = Stopper(Arc::clone(&flag));
        let state = State::start(work, name, move || run(Stop::once(&flag)).ok());
        Self { state, _stopper: Some(stopper) }
    }

    /// Waits for the result, but not longer than that.
    pub fn wait(&mut self, most: Duration) {
        if let State::Running(receiver) = &self.state
            && let Ok(result) = receiver.recv_timeout(most)
        {
            self.state = result.map_or(State::Failed, State::Done);
        }
    }

    /// The result; `None` while the job runs and if it failed.
    pub fn poll(&mut self) -> Option<&T> {
        if let State::Running(receiver) = &self.state {
            match receiver.try_recv() {
                Ok(Some(value)) => self.state = State::Done(value),
                Ok(None) | Err(TryRecvError::Disconnected) => self.state = State::Failed,
                Err(TryRecvError::Empty) => {}
            }
        }
        match &self.state {
            State::Done(value) => Some(value),
            _ => None,
        }
    }

    /// Consumes the job and returns its result; `None` while it runs and if it failed.
    pub fn take(mut self) -> Option<T> {
        self.poll();
        match self.state {
            State::Done(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the job was still running at the last [`Self::poll`].
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Whether the job panicked or could not be started, as of the last [`Self::poll`].
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed)
    }
}

impl<T: Send + 'static> State<T> {
    /// Starts the work, which has no result if it was stopped.
    fn start(work: &Work, name: &str, run: impl FnOnce() -> Option<T> + Send + 'static) -> Self {
        if work.synchronous {
            return finished(run, name, work).map_or(Self::Failed, Self::Done);
        }
        let (sender, receiver) = channel();
        let (job, own) = (name.to_owned(), work.clone());
        own.running.fetch_add(1, Ordering::Relaxed);
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let result = finished(run, &job, &own);
            // The receiver is gone if the document was closed.
            let _ = sender.send(result);
            own.running.fetch_sub(1, Ordering::Relaxed);
            own.ctx.request_repaint();
        });
        if let Err(error) = spawned {
            work.running.fetch_sub(1, Ordering::Relaxed);
            work.failed.push(FailedJob { job: name.to_owned(), message: error.to_string() });
            return Self::Failed;
        }
        Self::Running(receiver)
    }
}

/// Runs the work; a panic is reported.
fn finished<T>(run: impl FnOnce() -> Option<T>, name: &str, work: &Work) -> Option<T> {
    let began = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(run));
    work.times.add(name, began.elapsed());
    result.map_err(|panic| work.failed.push(FailedJob::new(name, panic.as_ref()))).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(synchronous: bool) -> Work {
        let ctx = egui::Context::default();
        Work { ctx, synchronous, running: Arc::default(), failed: FailedJobs::default(), times: JobTimes::default() }
    }

    #[test]
    fn work_that_panics_is_reported_without_names_of_the_profile() {
        for synchronous in [true, false] {
            let work = work(synchronous);
            let start = || Job::<u8>::start(&work, "memory map", || panic!("it is inside of `secret_layer` at {}", 3));
            let (mut job, mut again) = (start(), start());
            while job.is_running() || again.is_running() {
                job.poll();
                again.poll();
            }
            assert!(job.has_failed() && job.take().is_none());
            let message = "it is inside of \u{2026} at 3".to_owned();
            let failed = FailedJob { job: "memory map".to_owned(), message };
            assert_eq!(work.failed.list(), std::slice::from_ref(&failed), "the same failure is shown once");
            assert!(failed.report().contains(env!("CARGO_PKG_VERSION")) && failed.report().contains("memory map"));
            work.failed.dismiss(0);
            assert!(work.failed.list().is_empty());
        }
    }

    #[test]
    fn work_is_stopped_once_its_job_is_dropped() {
        let work = work(false);
        let (sender, stopped) = channel();
        let job = Job::start_stoppable(&work, "advisor", move |stop| {
            // Without a stop this never ends.
            while stop.check().is_ok() {
                std::thread::yield_now();
            }
            let _ = sender.send(());
            stop.check()
        });
        assert!(job.is_running() && stopped.try_recv().is_err(), "somebody waits for it");
        drop(job);
        assert!(stopped.recv().is_ok());
        assert_eq!(work.failed.list(), [], "that is no failure");
        let mut job = Job::start_stoppable(&work, "sum", |stop| stop.check().map(|()| 2 + 2));
        job.wait(Duration::MAX);
        assert_eq!(job.take(), Some(4));
    }

    #[test]
    fn work_that_ends_well_reports_nothing() {
        let work = work(true);
        assert_eq!(Job::start(&work, "sum", || 2 + 2).take(), Some(4));
        assert!(work.failed.list().is_empty());
        assert_eq!(work.times.list().iter().map(|time| time.job.as_str()).collect::<Vec<_>>(), ["sum"]);
    }
}
