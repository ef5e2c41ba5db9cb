//! Two entries that are compared as soon as both are read, alone or with further ones as columns.

use super::{EntryId, FileState, Files};
use crate::ui::work::Work;

/// Two entries that are to be compared once both are read.
pub(super) struct Pair {
    before: EntryId,
    after: EntryId,
    /// Whether the one before becomes a further column of a comparison that is there.
    is_column: bool,
}

impl Files {
    /// Compares two entries; those that are only listed are decoded first.
    pub fn compare(&mut self, before: usize, after: usize, work: &Work) {
        self.begin_comparing(before, after, false, work);
    }

    /// Adds an entry as a column to the comparison of another one.
    pub fn add_column(&mut self, row: usize, after: usize, work: &Work) {
        self.begin_comparing(row, after, true, work);
    }

    fn begin_comparing(&mut self, before: usize, after: usize, is_column: bool, work: &Work) {
        let both = self.entries.get(before).zip(self.entries.get(after));
        let Some((was, is)) = both.filter(|_| before != after) else { return };
        self.comparing = Some(Pair { before: was.id(), after: is.id(), is_column });
        self.show(before, work);
        self.show(after, work);
    }

    /// Starts the comparison that is waiting, if both of its files are read; returns the entry after.
    pub(super) fn compare_read(&mut self) -> Option<usize> {
        let pair = self.comparing.as_ref()?;
        let (Some(before), Some(after)) = (self.row_of(pair.before), self.row_of(pair.after)) else {
            self.comparing = None;
            return None;
        };
        let is_open = |row: usize| matches!(self.entries[row].state, FileState::Open(_));
        if !is_open(before) || !is_open(after) {
            let is_read = |row: usize| matches!(self.entries[row].state, FileState::Loading(_));
            if !is_read(before) && !is_read(after) {
                self.comparing = None;
            }
            return None;
        }
        let pair = self.comparing.take()?;
        if let FileState::Open(open) = &mut self.entries[after].state {
            if !pair.is_column {
                open.beside.retain(|id| *id != pair.before);
                open.against = Some(pair.before);
            } else if open.against != Some(pair.before) && !open.beside.contains(&pair.before) {
                open.beside.push(pair.before);
            }
        }
        Some(after)
    }
}
