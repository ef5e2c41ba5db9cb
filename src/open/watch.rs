//! A folder that a program is still writing to: which of its files are complete, and which are new.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::decode::{DecodeError, hlo};
use crate::source::{Progress, Tree};

/// A folder looked at again and again.
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    files: BTreeMap<PathBuf, Seen>,
}

/// A file as it was when last looked at.
#[derive(Debug)]
struct Seen {
    bytes: u64,
    modified: Option<SystemTime>,
    is_complete: bool,
}

impl Watch {
    /// Watches a folder, which need not exist yet. Nothing in it has been seen.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), files: BTreeMap::new() }
    }

    /// Files that have become complete since the last look, or were and have changed; sorted by path. A file is complete
    /// if it has not changed from one look to the next, and a protobuf only if it ends where its last field ends.
    /// `has_ended` takes files for complete that have just come: nobody writes any more.
    ///
    /// # Errors
    /// If the folder cannot be listed. One that is not there yet is empty.
    pub fn look(&mut self, has_ended: bool) -> Result<Vec<PathBuf>, DecodeError> {
        if !self.root.is_dir() {
            return Ok(Vec::new());
        }
        let tree = Tree::folder(&self.root, &Progress::default())?;
        let mut before = std::mem::take(&mut self.files);
        let mut complete = Vec::new();
        for member in tree.members {
            let Some(path) = member.on_disk().map(Path::to_owned) else { continue };
            // One that is gone again is no loss.
            let Ok(data) = path.metadata() else { continue };
            let (bytes, modified) = (data.len(), data.modified().ok());
            let old = before.remove(&path);
            let is_same = old.as_ref().is_some_and(|old| old.bytes == bytes && old.modified == modified);
            let was_complete = is_same && old.is_some_and(|old| old.is_complete);
            let is_complete = was_complete || ((is_same || has_ended) && ends_well(&path));
            if is_complete && !was_complete {
                complete.push(path.clone());
            }
            self.files.insert(path, Seen { bytes, modified, is_complete });
        }
        Ok(complete)
    }

    /// Forgets a file, so that it counts as new if it comes again.
    pub fn forget(&mut self, path: &Path) {
        self.files.remove(path);
    }
}

/// Whether nothing is missing at the end, as far as the format says where that is.
fn ends_well(path: &Path) -> bool {
    let is_proto = path.extension().is_some_and(|end| end == "pb");
    !is_proto || hlo::is_whole_file(path).unwrap_or(false)
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
