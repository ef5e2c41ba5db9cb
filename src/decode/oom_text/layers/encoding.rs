//! Bytes to UTF-8: what Windows shells write as UTF-16, with or without a byte-order mark, is transcoded as it is read.

use std::io::{self, Read};

/// How a text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, ASCII, or an eight-bit encoding.
    Bytes,
    /// UTF-16, least significant byte first.
    Utf16Le,
    /// UTF-16, most significant byte first.
    Utf16Be,
}

/// Bytes read at a time.
const BLOCK: usize = 64 << 10;
/// Bytes looked at.
const LOOKED_AT: usize = 4 << 10;

/// The encoding of a text that begins with `head`.
pub fn detect(head: &[u8]) -> Encoding {
    if head.starts_with(&[0xff, 0xfe]) {
        return Encoding::Utf16Le;
    }
    if head.starts_with(&[0xfe, 0xff]) {
        return Encoding::Utf16Be;
    }
    let pairs = head[..head.len().min(LOOKED_AT)].as_chunks::<2>().0;
    let zeros = |at: usize| pairs.iter().filter(|pair| pair[at] == 0).count();
    let (first, second) = (zeros(0), zeros(1));
    // Latin letters have one zero byte each; a binary file has them on both sides.
    match pairs.len() {
        0..4 => Encoding::Bytes,
        count if second * 10 > count * 7 && first * 20 < count => Encoding::Utf16Le,
        count if first * 10 > count * 7 && second * 20 < count => Encoding::Utf16Be,
        _ => Encoding::Bytes,
    }
}

/// A stream of UTF-16 read as UTF-8.
pub struct Utf16Reader<R> {
    inner: R,
    is_big_endian: bool,
    block: Vec<u8>,
    /// Bytes read and not decoded: half a unit, half a surrogate pair.
    carry: Vec<u8>,
    decoded: Vec<u8>,
    at: usize,
    is_at_start: bool,
}

impl<R: Read> Utf16Reader<R> {
    /// Reads `inner`, whose units have their most significant byte first or last.
    pub fn new(inner: R, is_big_endian: bool) -> Self {
        let block = vec![0; BLOCK];
        Self { inner, is_big_endian, block, carry: Vec::new(), decoded: Vec::new(), at: 0, is_at_start: true }
    }

    /// Decodes the next block; `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let read = self.inner.read(&mut self.block)?;
        let is_end = read == 0;
        self.carry.extend_from_slice(&self.block[..read]);
        self.decoded.clear();
        self.at = 0;
        let mut units: Vec<u16> = self
            .carry
            .as_chunks::<2>()
            .0
            .iter()
            .map(|&pair| if self.is_big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) })
            .collect();
        if !is_end && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
        }
        self.carry.drain(..units.len() * 2);
        if is_end {
            self.carry.clear();
        }
        for unit in char::decode_utf16(units) {
            let c = unit.unwrap_or(char::REPLACEMENT_CHARACTER);
            if !(self.is_at_start && c == '\u{feff}') {
                self.decoded.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            self.is_at_start = false;
        }
        Ok(!is_end)
    }
}

impl<R: Read> Read for Utf16Reader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.decoded.len() {
            if !self.fill()? && self.decoded.is_empty() {
                return Ok(0);
            }
        }
        let count = out.len().min(self.decoded.len() - self.at);
        out[..count].copy_from_slice(&self.decoded[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// A line as text: UTF-8, or else every byte a character of Latin-1.
pub fn to_text(line: &[u8]) -> String {
    match std::str::from_utf8(line) {
        Ok(text) => text.to_owned(),
        // One bad byte in a line that is UTF-8 otherwise is damage, not another encoding.
        Err(_) if line.utf8_chunks().any(|chunk| !chunk.valid().is_ascii()) => {
            String::from_utf8_lossy(line).into_owned()
        }
        Err(_) => line.iter().map(|&byte| char::from(byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf16_is_told_and_read() {
        let words = "CUDA out of memory \u{1f600}\r\n";
        for (is_big_endian, expected) in [(false, Encoding::Utf16Le), (true, Encoding::Utf16Be)] {
            let bytes: Vec<u8> = words
                .encode_utf16()
                .flat_map(|unit| if is_big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() })
                .collect();
            assert_eq!(detect(&bytes), expected);
            let mut text = String::new();
            Utf16Reader::new(&bytes[..], is_big_endian).read_to_string(&mut text).expect("readable");
            assert_eq!(text, words);
        }
        assert_eq!(detect(b"a log\n"), Encoding::Bytes);
        assert_eq!(detect(&[0; 64]), Encoding::Bytes);
        assert_eq!(to_text(b"Gr\xfc\xdfe"), "Gr\u{fc}\u{df}e");
    }
}
