//! Reads and analyses a file on a worker, with progress and a way to cancel.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use crate::decode::{self, DecodeError};
use crate::model::Profile;
use crate::source::{Input, Progress, Stage};
use crate::ui::session::{Document, Work};

/// What to open.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file.
    Path(PathBuf),
    /// Bytes that stand alone, with a name for them.
    Bytes(String, Arc<[u8]>),
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
        }
    }

    /// The path, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Bytes(..) => None,
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
        }
    }
}

/// How a reading ended.
pub type Outcome = Result<Arc<Document>, String>;

/// A file being read.
pub struct Loading {
    progress: Arc<Progress>,
    result: Receiver<Outcome>,
}

impl Loading {
    /// Starts reading.
    pub fn start(source: Source, work: &Work) -> Self {
        let progress = Arc::new(Progress::default());
        let (sender, result) = channel();
        if work.synchronous {
            let _ = sender.send(read(&source, &progress));
            return Self { progress, result };
        }
        let (shared, ctx) = (Arc::clone(&progress), work.ctx.clone());
        let failed = sender.clone();
        let spawned = std::thread::Builder::new().name("read".to_owned()).spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| read(&source, &shared)));
            let outcome =
                outcome.unwrap_or_else(|_| Err("the decoder stopped unexpectedly; please report this file".to_owned()));
            // The entry may have been closed meanwhile.
            let _ = sender.send(outcome);
            ctx.request_repaint();
        });
        if let Err(error) = spawned {
            let _ = failed.send(Err(format!("no thread to read it: {error}")));
        }
        Self { progress, result }
    }

    /// The result, once it is there.
    pub fn poll(&self) -> Option<Outcome> {
        match self.result.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Disconnected) => Some(Err("reading stopped".to_owned())),
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

fn read(source: &Source, progress: &Progress) -> Outcome {
    let profile = match source {
        Source::Path(path) => decode::open_worst(path, progress),
        Source::Bytes(..) => source.read(progress),
    };
    let profile = profile.map_err(|error| error.to_string())?;
    progress.begin(Stage::Analysing, 0);
    progress.check().map_err(|error| error.to_string())?;
    Ok(Arc::new(Document::new(source.path().map(Path::to_owned), profile)))
}
