//! Reads and analyses a file on a worker, with progress and a way to cancel. Of a folder, an archive or a trace with
//! many programs first the list comes, then which of them is the worst.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use crate::decode::{self, DecodeError, Session};
use crate::model::Profile;
use crate::source::{Input, Progress, Stage};
use crate::ui::session::Document;
use crate::ui::work::Work;

/// What to open.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file.
    Path(PathBuf),
    /// Bytes that stand alone, with a name for them.
    Bytes(String, Arc<[u8]>),
    /// An entry of a list: the list, where it was read from, and the entry's row.
    Entry(Arc<Session>, Option<PathBuf>, usize),
}

impl Source {
    /// What to call it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => {
                path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
            }
            Self::Bytes(name, _) => name.clone(),
            Self::Entry(session, _, row) => session.entries.get(*row).map(|e| e.name.clone()).unwrap_or_default(),
        }
    }

    /// The path, where it is a file of its own.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Bytes(..) | Self::Entry(..) => None,
        }
    }

    /// What to name to open it again.
    fn origin(&self) -> Option<PathBuf> {
        match self {
            Self::Path(path) => Some(path.clone()),
            Self::Bytes(..) => None,
            Self::Entry(_, path, _) => path.clone(),
        }
    }

    /// Reads and decodes it.
    ///
    /// # Errors
    /// When nothing could be read.
    pub fn read(&self, progress: &Progress) -> Result<Profile, DecodeError> {
        match self {
            Self::Path(path) => decode::open_path(path, progress),
            Self::Bytes(name, bytes) => {
                let input = Input::from_reader(name.clone(), &**bytes, progress)?;
                decode::open_input(&input, progress)
            }
            Self::Entry(session, _, row) => match session.entries.get(*row) {
                Some(entry) => entry.open(progress),
                None => Err(DecodeError::NotAProfile("no such entry".to_owned())),
            },
        }
    }
}

/// What a worker has to say.
pub enum Outcome {
    /// Several programs: the list, in no order yet.
    Listed(Arc<Session>),
    /// The rows of the list, the worst first. Nothing follows.
    Sorted(Vec<usize>),
    /// One profile. Nothing follows.
    Read(Arc<Document>),
    /// Nothing could be read, and why. Nothing follows.
    Failed(String),
    /// It was cancelled. Nothing follows.
    Cancelled,
}

/// A file being read.
pub struct Loading {
    progress: Arc<Progress>,
    result: Receiver<Outcome>,
}

impl Loading {
    /// Starts reading; `messages` are those of other files that name the program.
    pub fn start(source: Source, messages: Vec<Arc<Profile>>, work: &Work) -> Self {
        let progress = Arc::new(Progress::default());
        let (sender, result) = channel();
        if work.synchronous {
            let outcome = read(&source, &messages, &progress, &sender, &|| {});
            let _ = sender.send(outcome);
            return Self { progress, result };
        }
        let (shared, ctx) = (Arc::clone(&progress), work.ctx.clone());
        let failed = sender.clone();
        let spawned = std::thread::Builder::new().name("read".to_owned()).spawn(move || {
            let wake = || ctx.request_repaint();
            let outcome = catch_unwind(AssertUnwindSafe(|| read(&source, &messages, &shared, &sender, &wake)));
            let outcome = outcome.unwrap_or_else(|_| {
                Outcome::Failed("the decoder stopped unexpectedly; please report this file".to_owned())
            });
            // The entry may have been closed meanwhile.
            let _ = sender.send(outcome);
            ctx.request_repaint();
        });
        if let Err(error) = spawned {
            let _ = failed.send(Outcome::Failed(format!("no thread to read it: {error}")));
        }
        Self { progress, result }
    }

    /// The next thing the worker has to say.
    pub fn poll(&self) -> Option<Outcome> {
        match self.result.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Disconnected) => Some(Outcome::Failed("reading stopped".to_owned())),
            Err(TryRecvError::Empty) => None,
        }
    }

    /// Asks the worker to stop.
    pub fn cancel(&self) {
        self.progress.cancel();
    }

    /// What is being done, and how far it is.
    #[must_use]
    pub fn state(&self) -> (Stage, f32) {
        (self.progress.stage(), self.progress.fraction())
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.progress.cancel();
    }
}

fn read(
    source: &Source,
    messages: &[Arc<Profile>],
    progress: &Progress,
    sender: &Sender<Outcome>,
    wake: &dyn Fn(),
) -> Outcome {
    match try_read(source, messages, progress, sender, wake) {
        Ok(outcome) => outcome,
        Err(error) if error.is_cancelled() => Outcome::Cancelled,
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

fn try_read(
    source: &Source,
    messages: &[Arc<Profile>],
    progress: &Progress,
    sender: &Sender<Outcome>,
    wake: &dyn Fn(),
) -> Result<Outcome, DecodeError> {
    let list = |session: Session| -> Result<Outcome, DecodeError> {
        let session = Arc::new(session);
        let _ = sender.send(Outcome::Listed(Arc::clone(&session)));
        wake();
        Ok(Outcome::Sorted(session.worst_first(progress)?))
    };
    if let Source::Path(path) = source
        && Session::is_session(path)
    {
        return list(Session::open(path, progress)?);
    }
    let mut profile = match Session::of_trace(source.read(progress)?) {
        Ok(session) => return list(session),
        Err(profile) => *profile,
    };
    decode::load_worst(&mut profile, progress)?;
    for text in messages {
        decode::join_messages(&mut profile, (**text).clone());
    }
    progress.begin(Stage::Analysing, 0);
    progress.check()?;
    Ok(Outcome::Read(Arc::new(Document::new(source.origin(), profile))))
}
