//! Collects notes on data that could not be read, while decoding continues.

use std::sync::Mutex;

use crate::model::{Note, NoteCode, NoteLevel};

/// Notes beyond this number are only counted.
const MAX_NOTES: usize = 40;

/// Collects the notes of a decoder; shared by its threads.
#[derive(Debug, Default)]
pub struct Reporter {
    notes: Mutex<(Vec<Note>, usize)>,
}

impl Reporter {
    fn push(&self, mut note: Note) {
        // Sentences begin with a capital; a quoted name, or one with signs in it, stays as it is.
        let first = note.text.split(' ').next().unwrap_or_default();
        if !first.is_empty() && first.bytes().all(|b| b.is_ascii_lowercase()) {
            note.text[..1].make_ascii_uppercase();
        }
        let mut notes = self.notes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if notes.0.contains(&note) {
            return;
        }
        if notes.0.len() < MAX_NOTES {
            notes.0.push(note);
        } else {
            notes.1 += 1;
        }
    }

    /// Reports that something is missing or inconsistent; the rest is valid.
    pub fn warn(&self, text: impl Into<String>, offset: Option<u64>) {
        self.push(Note { offset, ..Note::new(NoteLevel::Warning, text) });
    }

    /// Reports that the file ends early, `inside` something.
    pub fn truncated(&self, inside: &str, end: u64) {
        let text = format!("The file ends inside {inside}");
        self.push(Note { code: NoteCode::Truncated, offset: Some(end), ..Note::new(NoteLevel::Warning, text) });
    }

    /// Reports that a part of the file cannot be read, at an offset if it is known: what is in it is missing.
    pub fn damaged(&self, text: impl Into<String>, offset: Option<u64>) {
        self.push(Note { code: NoteCode::Damaged, offset, ..Note::new(NoteLevel::Warning, text) });
    }

    /// Adds information for the user.
    pub fn info(&self, text: impl Into<String>) {
        self.push(Note::new(NoteLevel::Info, text));
    }

    /// Something worth knowing that the program acts on.
    pub fn info_about(&self, code: NoteCode, text: impl Into<String>) {
        self.push(Note { code, ..Note::new(NoteLevel::Info, text) });
    }

    /// Something is missing that the program acts on; the rest holds.
    pub fn warn_about(&self, code: NoteCode, text: impl Into<String>) {
        self.push(Note { code, ..Note::new(NoteLevel::Warning, text) });
    }

    /// All notes, by offset in the file.
    #[must_use]
    pub fn finish(self) -> Vec<Note> {
        let (mut notes, more) = self.notes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        notes.sort_by_key(|note| (note.offset.is_none(), note.offset));
        if more > 0 {
            notes.push(Note::new(NoteLevel::Warning, format!("and {more} more places that could not be read")));
        }
        notes
    }
}
