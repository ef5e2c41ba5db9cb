//! The decoder of a format: recognises an input cheaply and decodes it into a profile.

use super::reporter::Reporter;
use crate::model::{Profile, thousands};
use crate::source::{Cancelled, Input, Progress, SourceError};

/// Context of a decoding, passed with the input.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Progress and cancellation.
    pub progress: &'a Progress,
    /// Receives notes on data that could not be read.
    pub reporter: &'a Reporter,
}

/// Description of the files that a decoder reads, for the first screen, the drop overlay and the open dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// The line on the first screen that lists them.
    pub family: Family,
    /// What such a file is, in a few words.
    pub words: &'static str,
    /// File name patterns, where `*` matches anything; compressed files (`.gz`, `.zst`) match without that extension.
    pub patterns: &'static [&'static str],
}

/// Origin of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// `--xla_dump_to`.
    XlaDump,
    /// Traces and profiles of a run.
    Run,
    /// Poplar's reports.
    Poplar,
    /// Texts.
    Text,
}

impl Family {
    /// Every family, in the order of the first screen.
    pub const ALL: [Self; 4] = [Self::XlaDump, Self::Run, Self::Poplar, Self::Text];

    /// Description shown before the patterns.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::XlaDump => "An XLA dump (--xla_dump_to): one of its files, the folder or an archive",
            Self::Run => "What a run leaves behind: traces, device memory profiles, allocator dumps",
            Self::Poplar => "A Poplar report of an IPU, or the folder it lies in",
            Self::Text => "Any text with an out-of-memory message; Ctrl V opens the clipboard",
        }
    }
}

/// One format.
pub trait Decoder: Sync {
    /// Display name of the format.
    fn format(&self) -> &'static str;

    /// What files it reads.
    fn reads(&self) -> Reads;

    /// Whether the input is of this format, by its first bytes and perhaps its name. Cheap; the bytes decide, a name
    /// alone never does.
    fn recognises(&self, input: &Input) -> bool;

    /// Whether it is the fallback for inputs that no other decoder recognises.
    fn is_fallback(&self) -> bool {
        false
    }

    /// Decodes the input.
    ///
    /// # Errors
    /// If nothing could be read. Damage further inside goes to the reporter instead.
    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError>;
}

/// Why an input could not be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The input is damaged.
    #[error("{what} (at byte {offset})")]
    Damaged {
        /// What is wrong, in words.
        what: String,
        /// Byte offset in the unpacked input.
        offset: u64,
    },
    /// A compressed input is cut, and what it unpacks to could not be decoded.
    #[error("the compressed file is cut (at byte {}): {why}", thousands(*.offset))]
    Cut {
        /// Why the part before the cut could not be decoded.
        why: String,
        /// Number of compressed bytes there are.
        offset: u64,
    },
    /// What a compressed input unpacks to is damaged.
    #[error("{what} (at byte {offset} of the unpacked data)")]
    DamagedInside {
        /// What is wrong, in words.
        what: String,
        /// Byte offset in the unpacked data.
        offset: u64,
    },
    /// The input contains nothing useful; the text says what was expected.
    #[error("{0}")]
    Empty(String),
    /// No decoder recognises the input.
    #[error("{0}")]
    NotAProfile(String),
}

impl DecodeError {
    /// Whether it was cancelled.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        matches!(self, Self::Source(SourceError::Cancelled))
    }
}

impl From<Cancelled> for DecodeError {
    fn from(_: Cancelled) -> Self {
        Self::Source(SourceError::Cancelled)
    }
}
