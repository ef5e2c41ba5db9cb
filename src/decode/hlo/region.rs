//! A message of the file that is kept in memory as long as the profile is open.

use std::ops::Deref;

use crate::decode::wire::Reader;
use crate::source::SharedBytes;

/// A slice of shared bytes with its offset in the file.
#[derive(Debug, Clone, Default)]
pub struct Region {
    bytes: SharedBytes,
    start: usize,
    end: usize,
    base: u64,
}

impl Deref for Region {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

impl Region {
    /// All occurrences of one message field, concatenated, as protobuf merges repeated messages. Copies only in the
    /// rare case of more than one.
    pub fn join(bytes: &SharedBytes, parts: &[(usize, usize)]) -> Self {
        match parts {
            [] => Self::default(),
            &[(start, end)] => Self { bytes: bytes.clone(), start, end, base: start as u64 },
            many => {
                let joined: Vec<u8> = many.iter().flat_map(|&(start, end)| &bytes[start..end]).copied().collect();
                let end = joined.len();
                Self { bytes: joined.into(), start: 0, end, base: many[0].0 as u64 }
            }
        }
    }

    /// A reader from `offset` on.
    pub fn reader_at(&self, offset: usize) -> Reader<'_> {
        let offset = offset.min(self.len());
        Reader::new(&self[offset..], self.base + offset as u64)
    }

    /// A reader of the whole message.
    pub fn reader(&self) -> Reader<'_> {
        self.reader_at(0)
    }
}
