//! A folder that is followed while a program writes to it: its list of programs anew whenever files become complete, and
//! the newest of them that failed.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::collection::{Collection, Entry};
use super::file::open_input;
use super::watch::{Stamp, Watch};
use crate::decode::DecodeError;
use crate::model::{Bytes, MemorySpace};
use crate::source::{DumpName, Member, Progress};

/// Logs with more bytes than this are not searched for messages.
const MAX_TEXT: u64 = 16 << 20;

/// A folder that is followed.
#[derive(Debug)]
pub struct Follow {
    watch: Watch,
    name: String,
    known: Arc<Collection>,
    /// Whether nothing has been listed yet: what is there at the beginning is not news.
    is_first: bool,
}

/// What is in the folder now.
#[derive(Debug)]
pub struct Followed {
    /// Its programs whose memory is known; may be empty.
    pub collection: Arc<Collection>,
    /// Indices of the programs, worst first.
    pub order: Vec<usize>,
    /// Files that have come or changed since the last time.
    pub written: HashSet<PathBuf>,
    /// Of the programs that have come or changed, the newest that does not fit or whose message says that memory ran out.
    pub newest_failure: Option<usize>,
    /// Modules that XLA has begun to compile and not finished.
    pub unfinished: usize,
}

impl Follow {
    /// Follows a folder, which need not exist yet. `known` is what was listed of it before, if anything.
    #[must_use]
    pub fn new(root: &Path, known: Option<Arc<Collection>>) -> Self {
        let name = root.file_name().map_or_else(|| root.display().to_string(), |n| n.to_string_lossy().into_owned());
        let known = known.unwrap_or_else(|| Arc::new(Collection { name: name.clone(), ..Collection::default() }));
        Self { watch: Watch::new(root), name, known, is_first: true }
    }

    /// The programs that were listed last.
    #[must_use]
    pub const fn known(&self) -> &Arc<Collection> {
        &self.known
    }

    /// Looks at the folder; `None` if nothing has become complete and nothing is gone.
    ///
    /// # Errors
    /// If the folder cannot be listed; the next look may succeed.
    pub fn look(&mut self) -> Result<Option<Followed>, DecodeError> {
        let written: HashSet<PathBuf> = self.watch.look(false)?.into_iter().collect();
        if written.is_empty() && !self.watch.has_lost() {
            return Ok(None);
        }
        let progress = Progress::default();
        let mut collection = match Collection::of(self.name.clone(), self.watch.complete()?, &progress) {
            Ok(collection) => collection,
            // There is no profile yet.
            Err(DecodeError::NotAProfile(_)) => Collection { name: self.name.clone(), ..Collection::default() },
            Err(error) => return Err(error),
        };
        let listed = collection.entries.len();
        collection.entries.retain(|entry| !entry.is_unfinished());
        let unfinished = listed - collection.entries.len();
        let old: HashMap<&str, &Entry> = self.known.entries.iter().map(|entry| (entry.file.as_str(), entry)).collect();
        let is_news = |entry: &Entry| entry.files().iter().any(|path| written.contains(*path));
        for entry in &mut collection.entries {
            let is_written = entry.files().first().is_some_and(|path| written.contains(*path));
            if let Some(old) = old.get(entry.file.as_str()).filter(|old| !is_written && old.bytes == entry.bytes) {
                entry.learn_from(old);
            }
        }
        let order = collection.worst_first(&progress)?;
        let news = order.iter().copied().filter(|&row| !self.is_first && is_news(&collection.entries[row]));
        // Of those written at the same time the worst.
        let failed = news.filter(|&row| has_failed(&collection.entries[row], &written)).rev();
        let newest_failure = failed.max_by_key(|&row| written_at(&collection.entries[row]));
        let collection = Arc::new(collection);
        self.known = Arc::clone(&collection);
        self.is_first = false;
        Ok(Some(Followed { collection, order, written, newest_failure, unfinished }))
    }
}

/// When the newest file of a program was written.
fn written_at(entry: &Entry) -> Option<SystemTime> {
    entry.files().into_iter().filter_map(Stamp::of).filter_map(|stamp| stamp.modified()).max()
}

/// Whether a program needs more than there is, or a text that was written about it says that memory ran out.
fn has_failed(entry: &Entry, written: &HashSet<PathBuf>) -> bool {
    let needs = entry.glance().allocated_in(MemorySpace::HBM).unwrap_or(Bytes::ZERO);
    if entry.capacity().is_some_and(|capacity| needs > capacity) {
        return true;
    }
    let texts =
        entry.files().into_iter().filter(|path| written.contains(*path)).map(|path| Member::from(path.to_owned()));
    texts.filter(|text| text.bytes <= MAX_TEXT && DumpName::parse(text.file_name()).is_none()).any(|text| {
        let profile = text
            .open(&Progress::default())
            .map_err(DecodeError::from)
            .and_then(|input| open_input(&input, &Progress::default()));
        profile.is_ok_and(|profile| profile.failures.iter().any(|failure| failure.is_error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that needs `needs` bytes.
    fn program(needs: u8) -> [u8; 13] {
        [0x0a, 3, 0x0a, 1, b'f', 0x1a, 6, 0x1a, 4, 8, 0, 0x10, needs]
    }

    struct Dump {
        folder: tempfile::TempDir,
        follow: Follow,
    }

    impl Dump {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let follow = Follow::new(folder.path(), None);
            Self { folder, follow }
        }

        fn write(&self, name: &str, bytes: &[u8]) {
            std::fs::write(self.folder.path().join(name), bytes).expect("written");
        }

        /// Looks until the files that are there have not changed from one look to the next.
        fn look(&mut self) -> Option<Followed> {
            let first = self.follow.look().expect("a folder");
            self.follow.look().expect("a folder").or(first)
        }
    }

    fn names(followed: &Followed) -> Vec<&str> {
        followed.order.iter().map(|&row| followed.collection.entries[row].name.as_str()).collect()
    }

    #[test]
    fn programs_appear_once_their_memory_is_assigned() {
        let mut dump = Dump::new();
        assert!(dump.look().is_none());
        dump.write("module_0001.jit_f.before_optimizations.hlo.pb", &program(1));
        let followed = dump.look().expect("a file has come");
        assert_eq!((followed.collection.entries.len(), followed.unfinished), (0, 1));
        dump.write("module_0001.jit_f.after_optimizations.hlo.pb", &program(10));
        dump.write("module_0002.jit_g.after_optimizations.hlo.pb", &program(90)[..9]);
        let followed = dump.look().expect("a program has come");
        assert_eq!(names(&followed), ["jit_f"], "half of a file is none");
        assert_eq!(followed.unfinished, 0);
        dump.write("module_0002.jit_g.after_optimizations.hlo.pb", &program(90));
        assert_eq!(names(&dump.look().expect("the rest has come")), ["jit_g", "jit_f"]);
        assert!(dump.look().is_none(), "nothing new");
        std::fs::remove_file(dump.folder.path().join("module_0002.jit_g.after_optimizations.hlo.pb")).expect("removed");
        assert_eq!(names(&dump.look().expect("a program is gone")), ["jit_f"]);
    }

    #[test]
    fn the_newest_failure_is_named_but_not_one_of_the_past() {
        let mut dump = Dump::new();
        let message = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.";
        dump.write("old.err.txt", message.as_bytes());
        dump.write("module_0001.jit_f.after_optimizations.hlo.pb", &program(10));
        assert_eq!(dump.look().expect("a program has come").newest_failure, None, "it was there before");
        dump.write("module_0002.jit_g.after_optimizations.hlo.pb", &program(90));
        assert_eq!(dump.look().expect("a program has come").newest_failure, None, "no capacity is known");
        dump.write("run.log", format!("jit_g: {message}").as_bytes());
        let followed = dump.look().expect("a message has come");
        let failed = followed.newest_failure.map(|row| followed.collection.entries[row].name.as_str());
        assert_eq!(failed, Some("jit_g"), "{:?}", names(&followed));
    }
}
