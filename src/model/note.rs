//! Remarks for the user about what was read.

use std::fmt;

use super::thousands;

/// Severity of a [`Note`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteLevel {
    /// Useful background.
    Info,
    /// Something is missing or inconsistent; the rest is valid.
    Warning,
    /// A file could not be read.
    Error,
}

/// Machine-readable subject of a [`Note`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoteCode {
    /// Only for display.
    #[default]
    Other,
    /// A Poplar file lacks bytes by tile; another file of the same report may have them.
    NoTileBytes,
    /// A text contains no out-of-memory messages.
    NoFailureFound,
    /// The file ends too early: at the note's offset, inside what its text names.
    Truncated,
    /// A part of the file cannot be read, though the file goes on: what is in it is missing.
    Damaged,
}

/// Which bytes an offset counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stream {
    /// Those of a file that is not compressed.
    #[default]
    File,
    /// Those of a compressed file.
    Compressed,
    /// Those that a compressed file unpacks to.
    Unpacked,
}

impl Stream {
    /// Follows `byte 7`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::File => "",
            Self::Compressed => " of the compressed file",
            Self::Unpacked => " of the unpacked data",
        }
    }
}

/// A remark for the user about what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Subject.
    pub code: NoteCode,
    /// Severity.
    pub level: NoteLevel,
    /// One sentence without a full stop.
    pub text: String,
    /// Byte offset, if it applies to one.
    pub offset: Option<u64>,
    /// What the offset counts the bytes of.
    pub stream: Stream,
}

impl Note {
    /// A display-only note on the file as a whole.
    #[must_use]
    pub fn new(level: NoteLevel, text: impl Into<String>) -> Self {
        Self { code: NoteCode::Other, level, text: text.into(), offset: None, stream: Stream::File }
    }

    /// The note that says that something is missing: where the file is cut, or else the first place that is damaged.
    #[must_use]
    pub fn of_missing(notes: &[Self]) -> Option<&Self> {
        let of = |code| notes.iter().find(move |note| note.code == code);
        of(NoteCode::Truncated).or_else(|| of(NoteCode::Damaged))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if let Some(offset) = self.offset {
            write!(f, " (at byte {}{})", thousands(offset), self.stream.words())?;
        }
        Ok(())
    }
}
