//! Immutable, reference-counted byte buffers shared by the parts of a profile.
//!
//! Files are read, not memory-mapped: a dump that is rewritten while open would change under us, and one that is
//! truncated would raise SIGBUS. Large files go into huge pages, which cuts page faults by two thirds.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use memmap2::MmapMut;

/// Buffers of at least this many bytes request huge pages.
const HUGE_FROM: usize = 4 << 20;

enum Buffer {
    Heap(Vec<u8>),
    Huge { map: MmapMut, len: usize },
}

/// A reference-counted, immutable slice of a buffer; cloning is cheap.
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

    /// A sub-slice that shares the buffer; the range is clamped to the bytes available.
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

/// A buffer under construction: memory reserved for the expected size, replaced by a growing vector if the input is
/// longer.
pub struct Filling(Buffer);

impl Filling {
    /// Reserves address space for `expected` bytes; pages are committed as they are filled.
    pub fn new(expected: usize) -> Self {
        if expected >= HUGE_FROM
            && let Ok(map) = MmapMut::map_anon(expected)
        {
            // Failure only costs speed.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Self(Buffer::Huge { map, len: 0 });
        }
        Self(Buffer::Heap(Vec::with_capacity(expected.min(HUGE_FROM))))
    }

    /// Bytes filled so far.
    pub fn len(&self) -> usize {
        match &self.0 {
            Buffer::Heap(bytes) => bytes.len(),
            Buffer::Huge { len, .. } => *len,
        }
    }

    /// Whether the reserved memory is full. Growing it copies everything, so callers first probe the input for its end.
    pub fn is_full(&self) -> bool {
        matches!(&self.0, Buffer::Huge { map, len } if *len == map.len())
    }

    /// Unfilled space to read into: 1 to `want` bytes.
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

    /// Records that `count` of the `offered` bytes returned by the last [`Self::space`] were filled.
    pub fn filled(&mut self, offered: usize, count: usize) {
        match &mut self.0 {
            Buffer::Heap(bytes) => bytes.truncate(bytes.len() - offered + count),
            Buffer::Huge { len, .. } => *len += count,
        }
    }

    /// All reserved memory, to be filled by several threads; empty for small inputs.
    pub fn whole(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Buffer::Huge { map, .. } => &mut map[..],
            Buffer::Heap(_) => &mut [],
        }
    }

    /// Records that the first `count` bytes of [`Self::whole`] were filled.
    pub fn whole_filled(&mut self, count: usize) {
        if let Buffer::Huge { map, len } = &mut self.0 {
            *len = count.min(map.len());
        }
    }

    /// Freezes the buffer.
    pub fn finish(self) -> SharedBytes {
        SharedBytes::whole(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_clamped() {
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
