//! What the window remembers of comparisons: what to compare once it is read, and the programs of two folders.

use std::path::PathBuf;
use std::sync::Arc;

use super::entry::EntryId;
use crate::ui::session::PairedProgram;

/// A file to compare once it is read.
pub struct ToCompare {
    /// Its path.
    pub path: PathBuf,
    /// Its folder, in a packed session.
    pub folder: Option<String>,
}

/// The folders, the number of programs whose needs are known, and whether names are hidden.
pub type Known = ([u32; 2], usize, bool);

/// Programs of two folders, kept until more is known about them.
#[derive(Default)]
pub struct PairedFolders(Option<(Known, Arc<Vec<PairedProgram>>)>);

impl PairedFolders {
    /// The programs that were paired for the same folders with the same knowledge.
    pub fn get(&self, known: Known) -> Option<Arc<Vec<PairedProgram>>> {
        self.0.as_ref().filter(|(of, _)| *of == known).map(|(_, found)| Arc::clone(found))
    }

    /// Keeps them.
    pub fn keep(&mut self, known: Known, found: &Arc<Vec<PairedProgram>>) {
        self.0 = Some((known, Arc::clone(found)));
    }
}

/// What was shown when a file was opened beside it.
#[derive(Debug, Clone, Copy)]
pub struct ShownBefore {
    /// It.
    pub entry: EntryId,
    /// Whether the two are compared without a question.
    pub is_wanted: bool,
}
