//! A stream of bytes seen through a window that moves forward, with the offset of each byte in the unpacked file.

use std::io::{ErrorKind, Read};

use crate::source::{Progress, SourceError};

/// Bytes read at a time.
const STEP: usize = 1 << 20;

/// Why no more bytes could be taken.
#[derive(Debug)]
pub enum Stop {
    /// The file ends, or its compressed data is damaged, at this byte.
    End(u64),
    /// It could not be read, or was cancelled.
    Source(SourceError),
}

/// The window. It holds one [`STEP`] of bytes, more only for a text that really is that long.
pub struct Window<'a> {
    source: Box<dyn Read + Send + 'a>,
    progress: &'a Progress,
    buffer: Vec<u8>,
    /// Next byte in the buffer.
    at: usize,
    /// End of the bytes read into the buffer.
    filled: usize,
    /// Offset of the buffer's first byte in the file.
    base: u64,
    ended: bool,
    /// Why the stream could not be read to its end.
    pub failure: Option<SourceError>,
}

impl<'a> Window<'a> {
    /// A window at the start of a stream.
    pub fn new(source: Box<dyn Read + Send + 'a>, progress: &'a Progress) -> Self {
        Self { source, progress, buffer: vec![0; STEP], at: 0, filled: 0, base: 0, ended: false, failure: None }
    }

    /// Offset of the next byte.
    pub const fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// The next `count` bytes. Memory grows only with bytes that are there.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&[u8], Stop> {
        if self.filled - self.at < count {
            self.fill(count)?;
        }
        let from = self.at;
        self.at += count;
        Ok(&self.buffer[from..from + count])
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Stop> {
        if self.at == self.filled {
            self.fill(1)?;
        }
        let byte = self.buffer[self.at];
        self.at += 1;
        Ok(byte)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let end = Stop::End(self.offset());
        self.take(N)?.first_chunk::<N>().copied().ok_or(end)
    }

    /// The next line, without its end, at most `limit` bytes long.
    pub fn line(&mut self, limit: usize) -> Result<Vec<u8>, Stop> {
        let mut line = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => return Ok(line),
                _ if line.len() == limit => return Err(Stop::End(self.offset())),
                byte => line.push(byte),
            }
        }
    }

    /// What follows, to the end of the file: whether it is anything but zeros.
    pub fn rest_matters(&mut self) -> bool {
        loop {
            match self.byte() {
                Ok(0) => {}
                Ok(_) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Makes `count` bytes available.
    #[cold]
    fn fill(&mut self, count: usize) -> Result<(), Stop> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.base += self.at as u64;
        self.filled -= self.at;
        self.at = 0;
        while self.filled < count && !self.ended {
            // The buffer grows only after it was filled, so a length that the file does not have costs nothing.
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.filled + self.filled.max(STEP), 0);
            }
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.ended = true,
                Ok(read) => {
                    self.filled += read;
                    self.progress.advance(read as u64).map_err(|error| Stop::Source(error.into()))?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Damaged compressed data ends the file as far as it can be read.
                Err(error) if self.base > 0 || self.filled > 0 => {
                    self.ended = true;
                    self.failure = Some(error.into());
                }
                Err(error) => return Err(Stop::Source(error.into())),
            }
        }
        if self.filled < count { Err(Stop::End(self.base + self.filled as u64)) } else { Ok(()) }
    }
}
