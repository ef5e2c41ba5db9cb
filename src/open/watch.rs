//! Files that a program is still writing to: which of them are complete, and which are new. A folder is looked at from
//! time to time; what that costs is bounded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use crate::decode::{DecodeError, hlo};
use crate::source::{Progress, Tree};

/// Time between two looks, if a look is quick.
const EVERY: Duration = Duration::from_millis(500);

/// Looks take at most one part in this of a processor.
const SHARE: u32 = 250;

/// A file that was last written before this has been closed by whoever wrote it.
const SETTLED: Duration = Duration::from_secs(10);

/// Size and time of a file: one of them is another once it has been written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// The stamp of a file; `None` if it is not there.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let data = path.metadata().ok()?;
        Some(Self { bytes: data.len(), modified: data.modified().ok() })
    }

    /// When the file was last written, if the file system says so.
    #[must_use]
    pub const fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    fn is_settled(&self) -> bool {
        let age = self.modified.and_then(|time| SystemTime::now().duration_since(time).ok());
        age.is_some_and(|age| age > SETTLED)
    }
}

/// A folder looked at again and again.
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    files: BTreeMap<PathBuf, Seen>,
    has_lost: bool,
}

/// A file as it was when last looked at.
#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    is_complete: bool,
}

impl Watch {
    /// Watches a folder, which need not exist yet. Nothing in it has been seen.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), files: BTreeMap::new(), has_lost: false }
    }

    /// Files that have become complete since the last look, or were and have changed; sorted by path. A file is complete
    /// if it has not changed from one look to the next, or for a while, and a protobuf only if it ends where its last
    /// field ends. `has_ended` takes files for complete that have just come: nobody writes any more.
    ///
    /// # Errors
    /// If the folder cannot be listed. One that is not there yet is empty.
    pub fn look(&mut self, has_ended: bool) -> Result<Vec<PathBuf>, DecodeError> {
        let tree = self.list()?;
        let mut before = std::mem::take(&mut self.files);
        let mut complete = Vec::new();
        for member in tree.members {
            let Some(path) = member.on_disk().map(Path::to_owned) else { continue };
            // One that is gone again is no loss.
            let Some(stamp) = Stamp::of(&path) else { continue };
            let old = before.remove(&path);
            let is_same = old.as_ref().is_some_and(|old| old.stamp == stamp);
            let was_complete = is_same && old.is_some_and(|old| old.is_complete);
            let is_complete = was_complete || ((is_same || has_ended || stamp.is_settled()) && ends_well(&path));
            if is_complete && !was_complete {
                complete.push(path.clone());
            }
            self.files.insert(path, Seen { stamp, is_complete });
        }
        self.has_lost = before.values().any(|old| old.is_complete);
        Ok(complete)
    }

    /// Whether a file that was complete was no longer there at the last look.
    #[must_use]
    pub const fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// The files of the folder that were complete at the last look.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn complete(&self) -> Result<Tree, DecodeError> {
        let mut tree = self.list()?;
        let is_complete = |path: &Path| self.files.get(path).is_some_and(|seen| seen.is_complete);
        tree.members.retain(|member| member.on_disk().is_some_and(is_complete));
        Ok(tree)
    }

    /// Forgets a file, so that it counts as new if it comes again.
    pub fn forget(&mut self, path: &Path) {
        self.files.remove(path);
    }

    fn list(&self) -> Result<Tree, DecodeError> {
        if !self.root.is_dir() {
            return Ok(Tree::default());
        }
        Ok(Tree::folder(&self.root, &Progress::default())?)
    }
}

/// Whether nothing is missing at the end, as far as the format says where that is.
#[must_use]
pub fn ends_well(path: &Path) -> bool {
    let is_proto = path.extension().is_some_and(|end| end == "pb");
    !is_proto || hlo::is_whole_file(path).unwrap_or(false)
}

/// A thread that looks at something from time to time, until it is finished or dropped.
#[derive(Debug)]
pub struct Looking<T> {
    stop: Sender<()>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Looking<T> {
    /// Calls `look` with `state` about every half second, less often if it takes long.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(mut state: T, mut look: impl FnMut(&mut T) + Send + 'static) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("follow".to_owned()).spawn(move || {
            let mut wait = Duration::ZERO;
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let begun = Instant::now();
                look(&mut state);
                wait = EVERY.max(begun.elapsed() * SHARE);
            }
            state
        })?;
        Ok(Self { stop, thread })
    }

    /// Stops looking; returns the state, or `None` if looking has panicked.
    #[must_use]
    pub fn finish(self) -> Option<T> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_once_it_is_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("module_0000.jit_f.after_optimizations.hlo.pb");
        let whole = [0x0a, 3, b'a', b'b', b'c', 0x1a, 2, 8, 1];
        let mut watch = Watch::new(folder.path());
        let mut look = |has_ended| watch.look(has_ended).expect("a folder");
        std::fs::write(&path, &whole[..4]).expect("written");
        assert!(look(false).is_empty() && look(false).is_empty(), "half of it, however long it stays so");
        std::fs::write(&path, whole).expect("written");
        assert!(look(false).is_empty(), "it has just changed");
        assert_eq!(look(false), std::slice::from_ref(&path));
        assert!(look(false).is_empty(), "told once");
        std::fs::write(&path, &whole[..5]).expect("written");
        look(false);
        assert_eq!(look(false), std::slice::from_ref(&path), "written again");
        let last = folder.path().join("notes.txt");
        std::fs::write(&last, "x").expect("written");
        assert_eq!(look(true), [last], "nobody writes any more");
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_empty() {
        assert!(Watch::new(Path::new("/nonexistent/dump")).look(false).expect("nothing").is_empty());
    }
}
