//! Work off the window's thread whose result a view waits for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// How work is to be done.
#[derive(Clone)]
pub struct Work {
    /// To wake the window when it is done.
    pub ctx: egui::Context,
    /// At once, on this thread.
    pub synchronous: bool,
    /// How many pieces of work are under way.
    pub running: Arc<AtomicUsize>,
}

/// One piece of work and its result.
pub struct Job<T> {
    state: State<T>,
}

enum State<T> {
    Running(Receiver<Option<T>>),
    Done(T),
    Failed,
}

impl<T: Send + 'static> Job<T> {
    /// Starts the work.
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
            // Nobody waits any more when the document was closed.
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

    /// The result, once it is there.
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

    /// The result, given away.
    pub fn take(mut self) -> Option<T> {
        self.poll();
        match self.state {
            State::Done(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is still being worked on, as far as the last [`Self::poll`] knows.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Whether the work ended without a result.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed)
    }
}
