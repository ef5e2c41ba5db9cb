//! Two entries that are compared as soon as both are read.

use super::{FileState, Files, Place};
use crate::ui::work::Work;

/// Two entries that are to be compared once both are read.
pub(super) struct Pair {
    before: Place,
    after: Place,
}

impl Files {
    /// Compares two entries; those that are only listed are decoded first.
    pub fn compare(&mut self, before: usize, after: usize, work: &Work) {
        let both = self.entries.get(before).zip(self.entries.get(after));
        let Some((was, is)) = both.filter(|_| before != after) else { return };
        self.comparing = Some(Pair { before: was.place(), after: is.place() });
        self.show(before, work);
        self.show(after, work);
    }

    /// Starts the comparison that is waiting, if both of its files are read; returns the entry after.
    pub(super) fn compare_read(&mut self) -> Option<usize> {
        let pair = self.comparing.as_ref()?;
        let position = |place: &Place| self.entries.iter().position(|entry| entry.place() == *place);
        let (Some(before), Some(after)) = (position(&pair.before), position(&pair.after)) else {
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
        let place = self.comparing.take().map(|pair| pair.before);
        if let FileState::Open(open) = &mut self.entries[after].state {
            open.against = place;
        }
        Some(after)
    }
}
