//! Open files that were written again after they were read: offers to read them anew, and keeps the place in them.

use egui::{Rect, Ui};

use super::{EntryId, FileEntry, FileState, Files, OpenFile, offer};
use crate::ui::app::App;
use crate::ui::app::files::loading::{LoadResult, Loading};
use crate::ui::view::FIRST;
use crate::ui::widget::theme::Theme;
use crate::ui::work::Work;

impl Files {
    /// Notes which open files were written again, and takes those that were read anew; returns the id of one that is
    /// open anew.
    pub(super) fn poll_reread(&mut self, work: &Work) -> Option<EntryId> {
        let open =
            self.entries.iter().filter(|entry| matches!(entry.state, FileState::Open(_)) && !entry.read.is_empty());
        let read = open.map(|entry| (entry.id(), entry.read.clone())).collect();
        for id in self.reread.look(read, work) {
            if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id() == id) {
                entry.is_stale = true;
            }
        }
        for row in 0..self.entries.len() {
            let entry = &mut self.entries[row];
            let Some(result) = entry.rereading.as_ref().and_then(Loading::poll) else { continue };
            let stages = entry.rereading.take().map(|loading| loading.spent());
            match result {
                LoadResult::Read(document, derived) => {
                    let mut open = OpenFile { derived: *derived, ..OpenFile::new(document, FIRST) };
                    open.begun = true;
                    open.stages = stages.unwrap_or_default();
                    if let FileState::Open(before) = &entry.state {
                        open.against = before.against;
                    }
                    entry.state = FileState::Open(Box::new(open));
                    self.is_unordered = true;
                    return Some(entry.id());
                }
                LoadResult::Failed(error) => self.errors.push((entry.name.clone(), error)),
                // It has become a list of programs.
                LoadResult::Listed(_) | LoadResult::Sorted(_) => {
                    self.reload(row, work);
                    return None;
                }
                LoadResult::Cancelled => {}
            }
        }
        None
    }
}

impl App {
    /// Reads the file that is shown anew; what is shown stays until that has succeeded.
    pub(in crate::ui::app) fn read_again(&mut self) {
        let Some(index) = self.files.current else { return };
        let work = self.work();
        let Some(entry) = self.files.entries.get_mut(index) else { return };
        entry.is_stale = false;
        entry.read = entry.stamps();
        entry.rereading = Some(Loading::start(entry.target.clone(), entry.messages.clone(), &work));
        self.poll();
    }

    /// Goes back to the place in a file that was read anew.
    pub(in crate::ui::app) fn take_reread(&mut self, work: &Work) {
        let shown = self.files.current.and_then(|index| self.files.entries.get(index)).map(FileEntry::id);
        let is_rereading = self.files.entries.iter().any(|entry| entry.rereading.is_some());
        let before = self.files.current().filter(|_| is_rereading).and_then(|_| self.place_shown());
        let Some(id) = self.files.poll_reread(work) else { return };
        if Some(id) == shown {
            let panel = self.panel;
            self.link = before;
            self.begin();
            self.panel = panel;
            self.say("Read again");
        }
    }

    /// Offers to read the file that is shown anew; returns whether it does.
    pub(in crate::ui::app) fn reading_offer(&mut self, ui: &Ui, theme: &Theme, body: Rect) -> bool {
        let Some(entry) = self.files.current.and_then(|row| self.files.entries.get(row)) else { return false };
        if !entry.is_stale {
            return false;
        }
        let words = format!("{} was written again. Reload it?", self.name_of(entry));
        match offer::show(ui, theme, body, [&words, "Reload", "No"]) {
            Some(true) => self.read_again(),
            Some(false) => {
                if let Some(entry) = self.files.current.and_then(|row| self.files.entries.get_mut(row)) {
                    entry.is_stale = false;
                }
            }
            None => {}
        }
        true
    }
}
