//! Errors of opening and reading an input.

use std::io;

use super::progress::Cancelled;

/// Why an input could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The operating system reported an error.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// Larger than is read into memory.
    #[error("too large: {size} bytes; the limit for this kind of file is {limit} bytes")]
    TooLarge {
        /// Bytes read or declared so far.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Compressed data is damaged.
    #[error("the {format} data is damaged: {why} (at byte {offset})")]
    Packed {
        /// Compression or archive format, such as `gzip`.
        format: &'static str,
        /// The decompressor's message.
        why: String,
        /// Number of unpacked bytes before the damage.
        offset: u64,
    },
    /// The input has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The user cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl From<Cancelled> for SourceError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}
