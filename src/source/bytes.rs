//! Bytes that many parts of a profile share and that nobody else can change.
//!
//! Files are read, not mapped: a dump that is rewritten or cut while it is open would otherwise change under us or
//! kill the process. Large ones go to a buffer of huge pages, which costs a third of the page faults.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use memmap2::MmapMut;

/// Buffers from this size on ask for huge pages.
const HUGE_FROM: usize = 4 << 20;

enum Buffer {
    Heap(Vec<u8>),
    Huge { map: MmapMut, len: usize },
}

/// Shared, unchangeable bytes: a buffer, or a part of one.
#[derive(Clone)]
pub struct SharedBytes {
    buffer: Arc<Buffer>,
    start: usize,
    end: usize,
}

impl Buffer {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Huge { map, len } => &map[..*len],
        }
    }
}

impl SharedBytes {
    fn whole(buffer: Buffer) -> Self {
        let end = buffer.bytes().len();
        Self { buffer: Arc::new(buffer), start: 0, end }
    }

    /// A part of the bytes, sharing the buffer. What lies outside is left out.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        let end = self.start.saturating_add(range.end).min(self.end);
        let start = self.start.saturating_add(range.start).min(end);
        Self { buffer: Arc::clone(&self.buffer), start, end }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.buffer.bytes()[self.start..self.end]
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::whole(Buffer::Heap(bytes))
    }
}

impl Default for SharedBytes {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.len())
    }
}

/// A buffer being filled: first the memory reserved for the expected size, then, if the input turns out longer, a
/// growing vector.
pub struct Filling(Buffer);

impl Filling {
    /// Room for `expected` bytes; takes memory only as it is filled.
    pub fn new(expected: usize) -> Self {
        if expected >= HUGE_FROM
            && let Ok(map) = MmapMut::map_anon(expected)
        {
            // Without huge pages everything still works, only slower.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Self(Buffer::Huge { map, len: 0 });
        }
        Self(Buffer::Heap(Vec::with_capacity(expected.min(HUGE_FROM))))
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        match &self.0 {
            Buffer::Heap(bytes) => bytes.len(),
            Buffer::Huge { len, .. } => *len,
        }
    }

    /// Whether the reserved room is full. More bytes still fit, at the price of moving those that are there, so who
    /// expects none asks the input first.
    pub fn is_full(&self) -> bool {
        matches!(&self.0, Buffer::Huge { map, len } if *len == map.len())
    }

    /// Free room to read into, at most `want` bytes and at least one.
    pub fn space(&mut self, want: usize) -> &mut [u8] {
        if let Buffer::Huge { map, len } = &self.0
            && *len == map.len()
        {
            let bytes = map[..].to_vec();
            self.0 = Buffer::Heap(bytes);
        }
        match &mut self.0 {
            Buffer::Huge { map, len } => {
                let end = map.len().min(*len + want.max(1));
                &mut map[*len..end]
            }
            Buffer::Heap(bytes) => {
                let len = bytes.len();
                bytes.resize(len + want.clamp(1, 1 << 16), 0);
                &mut bytes[len..]
            }
        }
    }

    /// Says how much of the last [`Self::space`] (of length `offered`) was filled.
    pub fn filled(&mut self, offered: usize, count: usize) {
        match &mut self.0 {
            Buffer::Heap(bytes) => bytes.truncate(bytes.len() - offered + count),
            Buffer::Huge { len, .. } => *len += count,
        }
    }

    /// All of the reserved room, to be filled from several places at once; empty for small inputs.
    pub fn whole(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Buffer::Huge { map, .. } => &mut map[..],
            Buffer::Heap(_) => &mut [],
        }
    }

    /// Says that the first `count` bytes of [`Self::whole`] were filled.
    pub fn whole_filled(&mut self, count: usize) {
        if let Buffer::Huge { map, len } = &mut self.0 {
            *len = count.min(map.len());
        }
    }

    /// The bytes, for sharing.
    pub fn finish(self) -> SharedBytes {
        SharedBytes::whole(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_never_reaches_outside() {
        let bytes = SharedBytes::from(vec![0, 1, 2, 3, 4, 5]);
        let part = bytes.slice(2..5);
        assert_eq!(part[..], [2, 3, 4]);
        assert_eq!(part.slice(1..9)[..], [3, 4]);
        assert!(part.slice(7..9).is_empty());
    }

    #[test]
    fn grows_past_the_expected_size() {
        for expected in [0, 10, HUGE_FROM] {
            let mut filling = Filling::new(expected);
            let mut next = 0u8;
            while filling.len() < expected + 3000 {
                let space = filling.space(1000);
                let offered = space.len();
                let count = offered.min(700);
                for byte in &mut space[..count] {
                    *byte = next;
                    next = next.wrapping_add(1);
                }
                filling.filled(offered, count);
            }
            let bytes = filling.finish();
            assert!(bytes.iter().enumerate().all(|(i, &b)| b == i as u8), "expected {expected}");
        }
    }
}
