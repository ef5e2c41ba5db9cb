//! Errors of opening and reading an input.

use std::io;

use super::progress::Cancelled;

/// Why an input could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The operating system reported an error.
    #[error("cannot read: {}", without_code(&.0.to_string()))]
    Io(#[source] io::Error),
    /// Larger than is read into memory.
    #[error("too large: {size} bytes; the limit for this kind of file is {limit} bytes")]
    TooLarge {
        /// Bytes read or declared so far.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Compressed data ends before anything could be unpacked, or where the rest is needed.
    #[error("the {format} data is cut: the file ends inside it (at byte {offset})")]
    Cut {
        /// Compression format.
        format: &'static str,
        /// Number of compressed bytes there are.
        offset: u64,
    },
    /// Compressed data is damaged.
    #[error("the {format} data is damaged: {why} (at byte {offset} of the {stream} data)")]
    Packed {
        /// Compression or archive format, such as `gzip`.
        format: &'static str,
        /// The decompressor's message.
        why: String,
        /// Number of bytes up to the damage.
        offset: u64,
        /// Where they are counted: `compressed` or `unpacked`.
        stream: &'static str,
    },
    /// The input has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The user cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// A message of the operating system without the number of its error: `No such file or directory`.
#[must_use]
pub fn without_code(message: &str) -> &str {
    match message.rsplit_once(" (os error ") {
        Some((words, code)) if is_code(code) => words,
        _ => message,
    }
}

/// Whether a text is what stands in the brackets, with the closing one.
fn is_code(text: &str) -> bool {
    text.strip_suffix(')').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

impl From<io::Error> for SourceError {
    /// An error that a stream of unpacked bytes passes on keeps its own words.
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(error) => Self::Io(error),
        }
    }
}

impl From<Cancelled> for SourceError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_told_the_words_and_not_the_number() {
        let error = SourceError::from(io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "cannot read: No such file or directory");
        assert_eq!(without_code("ran into (os error x)"), "ran into (os error x)");
    }
}
