//! What an export has to read, file by file: folders and archives are listed when their turn comes.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use highwater::open::{Collection, Target};
use highwater::source::Progress;

use crate::cli::terminal;

/// What a compressed file may need in memory, as a multiple of its size.
const UNPACKED: u64 = 8;

/// One thing to read.
pub enum Work {
    /// A file, or bytes in memory.
    Target(Target),
    /// An entry of a folder or an archive.
    Entry {
        collection: Arc<Collection>,
        row: usize,
        /// Path of the folder or archive.
        folder: PathBuf,
    },
    /// What a folder or an archive could not read while it was listed.
    Unread { path: String, error: String },
}

impl Work {
    /// About how many bytes it has once they are unpacked.
    pub fn weight(&self) -> u64 {
        match self {
            Self::Target(target) => {
                let bytes = target.path().and_then(|path| path.metadata().ok()).map_or(0, |data| data.len());
                let is_packed = target.path().is_some_and(|path| is_packed(&path.to_string_lossy()));
                if is_packed { bytes.saturating_mul(UNPACKED) } else { bytes }
            }
            Self::Entry { collection, row, .. } => collection.entries.get(*row).map_or(0, |entry| {
                if is_packed(&entry.file) { entry.bytes.saturating_mul(UNPACKED) } else { entry.bytes }
            }),
            Self::Unread { .. } => 0,
        }
    }
}

fn is_packed(path: &str) -> bool {
    [".gz", ".zst"].iter().any(|end| path.ends_with(end))
}

/// What is left to read.
pub struct Queue {
    targets: VecDeque<Target>,
    /// What the last folder or archive holds.
    listed: VecDeque<Work>,
    number: usize,
}

impl Queue {
    /// Everything that these targets hold.
    pub fn new(targets: Vec<Target>) -> Self {
        Self { targets: targets.into(), listed: VecDeque::new(), number: 0 }
    }

    /// The next thing to read, with its number: 0, 1, 2, …
    pub fn next(&mut self) -> Option<(usize, Work)> {
        while self.listed.is_empty() {
            let target = self.targets.pop_front()?;
            self.list(target);
        }
        let work = self.listed.pop_front()?;
        self.number += 1;
        Some((self.number - 1, work))
    }

    fn list(&mut self, target: Target) {
        let Some(folder) = target.path().filter(|path| Collection::is_collection(path)).map(PathBuf::from) else {
            self.listed.push_back(Work::Target(target));
            return;
        };
        match Collection::open(&folder, &Progress::default()) {
            Ok(mut collection) => {
                for info in std::mem::take(&mut collection.unread) {
                    let path = folder.join(&info.path).display().to_string();
                    self.listed.push_back(Work::Unread { path, error: info.error.unwrap_or_default() });
                }
                for note in std::mem::take(&mut collection.notes) {
                    terminal::complain(&format!("note: {note}"));
                }
                let collection = Arc::new(collection);
                let entries = 0..collection.entries.len();
                self.listed.extend(entries.map(|row| {
                    let collection = Arc::clone(&collection);
                    Work::Entry { collection, row, folder: folder.clone() }
                }));
            }
            Err(error) => {
                let path = folder.display().to_string();
                self.listed.push_back(Work::Unread { path, error: error.to_string() });
            }
        }
    }
}
