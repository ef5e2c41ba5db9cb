//! Why something could not be read: what, why, where in the file, and which file.

use std::io;

use super::progress::Cancelled;

/// Why an input could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The system says no.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// More than this program reads into memory.
    #[error("too large: {size} bytes, the limit for this kind of file is {limit} bytes")]
    TooLarge {
        /// Its size, as far as it is known.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A damaged or lying compressed file.
    #[error("the {format} data is damaged: {why} (at byte {offset})")]
    Packed {
        /// `gzip`.
        format: &'static str,
        /// What the decompressor says.
        why: String,
        /// Offset in the unpacked data up to which it could be read.
        offset: u64,
    },
    /// Nothing there.
    #[error("the file is empty")]
    Empty,
    /// The reader does not want it any more.
    #[error("cancelled")]
    Cancelled,
}

impl From<Cancelled> for SourceError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}
