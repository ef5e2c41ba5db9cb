//! Reads and analyses a file on a worker, with progress and cancellation. A folder, an archive or a trace with several
//! programs first yields their list, then their order, worst first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use crate::analysis::{ProfileAnalysis, Stop};
use crate::decode::{DecodeError, LOOKED_FOR};
use crate::model::{Bytes, NoteCode, Profile, UnitSystem, counted};
use crate::open::{Collection, Opened, Target};
use crate::source::{Cancelled, Progress, Spent, Stage};
use crate::ui::session::Document;
use crate::ui::work::{Derived, Work};

/// A result of the worker that reads a file.
pub enum LoadResult {
    /// Several programs, not sorted yet. [`Self::Sorted`] follows.
    Listed(Arc<Collection>),
    /// Indices of the programs, worst first. Nothing follows.
    Sorted(Vec<usize>),
    /// One profile, with the results that its first picture needs. Nothing follows.
    Read(Arc<Document>, Box<Derived>),
    /// Reading failed, with the reason. Nothing follows.
    Failed(String),
    /// Reading was cancelled. Nothing follows.
    Cancelled,
}

/// A file being read.
pub struct Loading {
    progress: Arc<Progress>,
    receiver: Receiver<LoadResult>,
}

impl Loading {
    /// Starts reading; `messages` are messages in other files that name the program.
    pub fn start(target: Target, messages: Vec<Arc<Profile>>, work: &Work) -> Self {
        let progress = Arc::new(Progress::default());
        let (sender, receiver) = channel();
        if work.synchronous {
            let result = read(&target, &messages, &progress, &sender, work);
            let _ = sender.send(result);
            return Self { progress, receiver };
        }
        let (shared, own) = (Arc::clone(&progress), work.clone());
        let failed = sender.clone();
        let spawned = std::thread::Builder::new().name("read".to_owned()).spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| read(&target, &messages, &shared, &sender, &own)));
            let result = result.unwrap_or_else(|_| {
                LoadResult::Failed("the decoder stopped unexpectedly; please report this file".to_owned())
            });
            // The entry may have been closed meanwhile.
            let _ = sender.send(result);
            own.ctx.request_repaint();
        });
        if let Err(error) = spawned {
            let _ = failed.send(LoadResult::Failed(format!("no thread could be started to read it: {error}")));
        }
        Self { progress, receiver }
    }

    /// The next result of the worker, if there is one.
    pub fn poll(&self) -> Option<LoadResult> {
        match self.receiver.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Disconnected) => Some(LoadResult::Failed("reading stopped".to_owned())),
            Err(TryRecvError::Empty) => None,
        }
    }

    /// What each stage took until now.
    pub fn spent(&self) -> Vec<Spent> {
        self.progress.spent()
    }

    /// Asks the worker to stop.
    pub fn cancel(&self) {
        self.progress.cancel();
    }

    /// What is done in words, with the bytes read where they are counted: `reading, 12.0 of 64.0 MiB, 19 %`.
    #[must_use]
    pub fn words(&self, units: UnitSystem) -> String {
        let (stage, share) = self.state();
        let (done, total) = self.progress.counts();
        if total == 0 {
            return format!("{}\u{2026}", stage.text());
        }
        let percent = format!("{:.0}\u{2009}%", share * 100.0);
        match stage {
            Stage::Reading => {
                let [done, total] = [done.min(total), total].map(|bytes| units.short(Bytes(bytes)));
                format!("{}, {done} of {total}, {percent}", stage.text())
            }
            _ => format!("{}, {percent}", stage.text()),
        }
    }

    /// Current stage and progress from 0 to 1.
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
    target: &Target,
    messages: &[Arc<Profile>],
    progress: &Progress,
    sender: &Sender<LoadResult>,
    work: &Work,
) -> LoadResult {
    match try_read(target, messages, progress, sender, work) {
        Ok(result) => result,
        Err(error) if error.is_cancelled() => LoadResult::Cancelled,
        Err(error) => LoadResult::Failed(error.to_string()),
    }
}

/// Why a text has nothing that can be shown: there is no message in it. It is told like a file of another kind.
fn nothing_in(profile: &Profile) -> Option<String> {
    let has_more = !profile.failures.is_empty() || !profile.programs.is_empty() || !profile.facts.is_empty();
    let note = profile.notes.iter().find(|note| !has_more && note.code == NoteCode::NoFailureFound)?;
    let (what, where_looked) = note.text.split_once(". Looked for ").unwrap_or((&note.text, "messages of any kind"));
    Some(format!("{what}{LOOKED_FOR}{where_looked}"))
}

fn try_read(
    target: &Target,
    messages: &[Arc<Profile>],
    progress: &Progress,
    sender: &Sender<LoadResult>,
    work: &Work,
) -> Result<LoadResult, DecodeError> {
    match target.open(progress)?.listed(messages, progress)? {
        Opened::Collection(collection) => {
            if let Some(count) = collection.silent_texts {
                let texts = counted(count as u64, "text");
                return Ok(LoadResult::Failed(format!("no profile in it: {texts} without an out-of-memory message")));
            }
            let collection = Arc::new(collection);
            let _ = sender.send(LoadResult::Listed(Arc::clone(&collection)));
            work.ctx.request_repaint();
            Ok(LoadResult::Sorted(collection.worst_first(progress)?))
        }
        Opened::Profile(profile) => {
            if let Some(why) = nothing_in(&profile) {
                return Ok(LoadResult::Failed(why));
            }
            progress.begin(Stage::Analysing, ProfileAnalysis::steps(&profile));
            progress.check()?;
            let path = target.origin().map(Path::to_owned);
            let stop = Stop::once(progress.flag()).counting(progress.counter());
            let document = Document::unless(path, *profile, stop).map_err(|_| Cancelled)?;
            let document = Arc::new(document);
            let derived = Derived::begun(work, &document);
            Ok(LoadResult::Read(document, Box::new(derived)))
        }
    }
}
