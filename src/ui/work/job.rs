//! Background jobs whose results views poll for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// How to run jobs.
#[derive(Clone)]
pub struct Work {
    /// Repainted when a job ends.
    pub ctx: egui::Context,
    /// Run jobs immediately on the calling thread.
    pub synchronous: bool,
    /// Number of running jobs.
    pub running: Arc<AtomicUsize>,
}

/// A job and its result.
pub struct Job<T> {
    state: State<T>,
}

enum State<T> {
    Running(Receiver<Option<T>>),
    Done(T),
    Failed,
}

impl<T: Send + 'static> Job<T> {
    /// Starts `run` on a thread called `name`. A panic in `run` makes the job fail.
    pub fn start(work: &Work, name: &str, run: impl FnOnce() -> T + Send + 'static) -> Self {
        if work.synchronous {
            return Self { state: State::Done(run()) };
        }
        let (sender, receiver) = channel();
        let ctx = work.ctx.clone();
        let running = Arc::clone(&work.running);
        running.fetch_add(1, Ordering::Relaxed);
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(run)).ok();
            // The receiver is gone if the document was closed.
            let _ = sender.send(result);
            running.fetch_sub(1, Ordering::Relaxed);
            ctx.request_repaint();
        });
        if spawned.is_err() {
            work.running.fetch_sub(1, Ordering::Relaxed);
            return Self { state: State::Failed };
        }
        Self { state: State::Running(receiver) }
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
