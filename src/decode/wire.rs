//! A zero-copy reader of the protobuf wire format, field by field.
//!
//! Rules: a field is matched by number *and* wire type, unknown fields and groups are skipped, repeated scalars
//! may be packed or not, a varint has at most ten bytes. Offsets in errors are those of the file.

use std::fmt;

/// An error with its offset in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireError {
    /// Byte offset in the file.
    pub offset: u64,
    /// What is wrong there.
    pub what: &'static str,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.what, self.offset)
    }
}

impl std::error::Error for WireError {}

/// Result of reading the wire format.
pub type Result<T> = std::result::Result<T, WireError>;

/// Error text: a field ends beyond its message.
pub const PAST_END: &str = "a field extends past the end of its message";

/// Deepest accepted nesting of groups, as in other protobuf readers.
const MAX_GROUP_DEPTH: u32 = 100;

/// Wire type of numbers.
pub const VARINT: u32 = 0;
/// Wire type of eight-byte numbers.
pub const FIXED64: u32 = 1;
/// Wire type of four-byte numbers.
pub const FIXED32: u32 = 5;
/// Wire type of strings, messages and packed numbers.
pub const LEN: u32 = 2;

/// A tag as (field number, wire type), to match on both.
#[inline]
#[must_use]
pub const fn field(tag: u32) -> (u32, u32) {
    (tag >> 3, tag & 7)
}

/// A position in a message.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    data: &'a [u8],
    pos: usize,
    /// Offset of `data[0]` in the file.
    base: u64,
}

impl<'a> Reader<'a> {
    /// Reads `data`, which begins at `base` in the file.
    #[must_use]
    pub const fn new(data: &'a [u8], base: u64) -> Self {
        Self { data, pos: 0, base }
    }

    /// Position in the slice.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.pos
    }

    /// Bytes left in the slice.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.data.len() - self.pos
    }

    /// Position in the file.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.base + self.pos as u64
    }

    #[cold]
    const fn error(&self, what: &'static str) -> WireError {
        WireError { offset: self.base + self.pos as u64, what }
    }

    /// The next tag, or `None` at the end of the message.
    ///
    /// # Errors
    /// A cut or oversized tag, or field number 0.
    #[inline]
    pub fn tag(&mut self) -> Result<Option<u32>> {
        let Some(&first) = self.data.get(self.pos) else { return Ok(None) };
        if first < 0x80 {
            if first < 8 {
                return Err(self.error("field number 0"));
            }
            self.pos += 1;
            return Ok(Some(u32::from(first)));
        }
        if let Some(&second) = self.data.get(self.pos + 1)
            && second < 0x80
        {
            let tag = u32::from(first & 0x7f) | u32::from(second) << 7;
            if tag < 8 {
                return Err(self.error("field number 0"));
            }
            self.pos += 2;
            return Ok(Some(tag));
        }
        let start = *self;
        let tag = self.varint()?;
        match u32::try_from(tag) {
            Ok(tag) if tag >= 8 => Ok(Some(tag)),
            _ => Err(start.error("a field number out of range")),
        }
    }

    /// A varint.
    ///
    /// # Errors
    /// Cut short, or longer than ten bytes.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        let Some(&first) = self.data.get(self.pos) else { return Err(self.error(PAST_END)) };
        if first < 0x80 {
            self.pos += 1;
            return Ok(u64::from(first));
        }
        if let Some(&second) = self.data.get(self.pos + 1)
            && second < 0x80
        {
            self.pos += 2;
            return Ok(u64::from(first & 0x7f) | u64::from(second) << 7);
        }
        self.long_varint()
    }

    /// A varint of more than two bytes.
    fn long_varint(&mut self) -> Result<u64> {
        // All of its bytes at once, where it ends within eight: the next eight, or what is left, zeros behind it.
        let rest = &self.data[self.pos..];
        let word = match rest.first_chunk::<8>() {
            Some(bytes) => Some(u64::from_le_bytes(*bytes)),
            None => self.data.last_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes) >> (8 * (8 - rest.len()))),
        };
        if let Some(word) = word {
            let ends = !word & 0x8080_8080_8080_8080;
            if ends != 0 && (ends.trailing_zeros() / 8) < rest.len() as u32 {
                // Those up to the lowest byte without a mark of more to come.
                let own = word & (ends ^ (ends - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
                let pairs = (own & 0x007f_007f_007f_007f) | (own & 0x7f00_7f00_7f00_7f00) >> 1;
                let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
                self.pos += (ends.trailing_zeros() / 8 + 1) as usize;
                return Ok((fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4);
            }
        }
        let mut value = 0u64;
        for i in 0..10 {
            let Some(&byte) = self.data.get(self.pos + i) else { return Err(self.error(PAST_END)) };
            value |= u64::from(byte & 0x7f).checked_shl(7 * i as u32).unwrap_or(0);
            if byte < 0x80 {
                self.pos += i + 1;
                return Ok(value);
            }
        }
        Err(self.error("a varint of more than ten bytes"))
    }

    /// A varint as a signed number (`int32`, `int64`).
    ///
    /// # Errors
    /// As [`Self::varint`].
    #[inline]
    pub fn int(&mut self) -> Result<i64> {
        self.varint().map(|value| value as i64)
    }

    /// A length-delimited field.
    ///
    /// # Errors
    /// A cut length, or one beyond the message.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let start = *self;
        let len = self.varint()?;
        let rest = &self.data[self.pos..];
        match usize::try_from(len).ok().and_then(|len| rest.get(..len)) {
            Some(bytes) => {
                self.pos += bytes.len();
                Ok(bytes)
            }
            None => Err(start.error(PAST_END)),
        }
    }

    /// Where a length-delimited field ends; its bytes are next.
    #[inline]
    fn pos_behind_bytes(&mut self) -> Result<usize> {
        let start = *self;
        let len = self.varint()?;
        match usize::try_from(len).ok().filter(|&len| len <= self.remaining()) {
            Some(len) => Ok(self.pos + len),
            None => Err(start.error(PAST_END)),
        }
    }

    /// A length-delimited field as a message of its own.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    #[inline]
    pub fn message(&mut self) -> Result<Self> {
        let bytes = self.bytes()?;
        Ok(Self { data: bytes, pos: 0, base: self.base + (self.pos - bytes.len()) as u64 })
    }

    /// As [`Self::bytes`], but truncates a field that runs past the end: (bytes, whether it is complete).
    ///
    /// # Errors
    /// A cut length.
    pub fn bytes_or_rest(&mut self) -> Result<(&'a [u8], bool)> {
        let (bytes, missing) = self.bytes_and_missing()?;
        Ok((bytes, missing == 0))
    }

    /// As [`Self::bytes_or_rest`], with the number of bytes by which the field is longer than the message.
    ///
    /// # Errors
    /// If its length cannot be read.
    pub fn bytes_and_missing(&mut self) -> Result<(&'a [u8], u64)> {
        let len = self.varint()?;
        let rest = &self.data[self.pos..];
        let bytes = usize::try_from(len).ok().and_then(|len| rest.get(..len)).unwrap_or(rest);
        self.pos += bytes.len();
        Ok((bytes, len - bytes.len() as u64))
    }

    /// One byte of a fixed-size number.
    ///
    /// # Errors
    /// Cut short.
    pub fn byte(&mut self) -> Result<u8> {
        let Some(&byte) = self.data.get(self.pos) else { return Err(self.error(PAST_END)) };
        self.pos += 1;
        Ok(byte)
    }

    /// An eight-byte number.
    ///
    /// # Errors
    /// Cut short.
    pub fn fixed64(&mut self) -> Result<u64> {
        let Some(bytes) = self.data.get(self.pos..self.pos + 8) else { return Err(self.error(PAST_END)) };
        self.pos += 8;
        let mut number = [0; 8];
        number.copy_from_slice(bytes);
        Ok(u64::from_le_bytes(number))
    }

    /// Skips the value that follows a tag.
    ///
    /// # Errors
    /// A value that is cut, or a wire type that does not exist.
    #[inline]
    pub fn skip(&mut self, tag: u32) -> Result<()> {
        match tag & 7 {
            0 => self.varint().map(|_| ()),
            2 => self.bytes().map(|_| ()),
            _ => self.skip_rare(tag, 0),
        }
    }

    fn skip_rare(&mut self, tag: u32, depth: u32) -> Result<()> {
        match tag & 7 {
            0 => self.varint().map(|_| ()),
            1 => self.advance(8),
            2 => self.bytes().map(|_| ()),
            3 if depth < MAX_GROUP_DEPTH => loop {
                match self.tag()? {
                    None => return Err(self.error(PAST_END)),
                    Some(end) if end & 7 == 4 => {
                        return if end >> 3 == tag >> 3 {
                            Ok(())
                        } else {
                            Err(self.error("mismatched end of a group"))
                        };
                    }
                    Some(inner) => self.skip_rare(inner, depth + 1)?,
                }
            },
            3 => Err(self.error("groups nested too deeply")),
            5 => self.advance(4),
            _ => Err(self.error("a wire type that does not exist")),
        }
    }

    fn advance(&mut self, count: usize) -> Result<()> {
        if self.data.len() - self.pos < count {
            return Err(self.error(PAST_END));
        }
        self.pos += count;
        Ok(())
    }

    /// Numbers of a repeated scalar field, packed or not; `tag` is the one just read.
    ///
    /// # Errors
    /// A cut number, or a wire type that holds no numbers.
    #[inline]
    pub fn numbers(&mut self, tag: u32, mut each: impl FnMut(i64)) -> Result<()> {
        if tag & 7 == 0 {
            each(self.int()?);
            return Ok(());
        }
        let end = self.pos_behind_bytes()?;
        while self.pos < end {
            let start = *self;
            match self.int() {
                Ok(number) if self.pos <= end => each(number),
                // As far as the field goes, this number is damaged.
                _ => {
                    Self { data: &start.data[..end], ..start }.int()?;
                    return Err(start.error(PAST_END));
                }
            }
        }
        Ok(())
    }
}

/// Text of a string field; invalid UTF-8 is replaced.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    // Nearly every name is valid, and checking that costs far less than looking for what is not.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes).into_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_up_to_ten_bytes() {
        let mut reader = Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], 0);
        assert_eq!(reader.int(), Ok(-1));
        let mut reader = Reader::new(&[0x80; 11], 100);
        assert_eq!(reader.varint(), Err(WireError { offset: 100, what: "a varint of more than ten bytes" }));
        assert_eq!(Reader::new(&[0x80], 7).varint(), Err(WireError { offset: 7, what: PAST_END }));
    }

    #[test]
    fn a_number_ends_with_its_message() {
        // Of every length, in messages that end with it, or go on, or begin with it.
        for bits in 0..64 {
            let number = (1u64 << bits) | 1;
            let mut own = Vec::new();
            let mut left = number;
            while left > 0x7f {
                own.push(left as u8 | 0x80);
                left >>= 7;
            }
            own.push(left as u8);
            for (before, after) in [(0, 0), (0, 12), (12, 0), (3, 2), (12, 12)] {
                let bytes = [vec![0xff; before], own.clone(), vec![0xff; after]].concat();
                let mut reader = Reader { data: &bytes, pos: before, base: 0 };
                assert_eq!(
                    (reader.varint(), reader.pos),
                    (Ok(number), before + own.len()),
                    "{number} {before} {after}"
                );
                let mut cut = Reader { data: &bytes[..before + own.len() - 1], pos: before, base: 0 };
                assert!(own.len() == 1 || cut.varint() == Err(WireError { offset: before as u64, what: PAST_END }));
                // Packed, and longer than the field says, though more follows.
                let length = own.len() as u8 - 1;
                let bytes = [vec![length], own.clone(), vec![1; after]].concat();
                let mut found = Vec::new();
                let result = Reader::new(&bytes, 0).numbers(LEN, |number| found.push(number));
                let expected = if length == 0 { Ok(()) } else { Err(WireError { offset: 1, what: PAST_END }) };
                assert_eq!((result, found), (expected, Vec::new()), "{number}");
            }
        }
    }

    #[test]
    fn packed_and_unpacked_are_the_same() {
        let read = |bytes: &[u8]| {
            let mut out = Vec::new();
            let mut reader = Reader::new(bytes, 0);
            while let Ok(Some(tag)) = reader.tag() {
                assert_eq!(tag >> 3, 1);
                assert_eq!(reader.numbers(tag, |n| out.push(n)), Ok(()));
            }
            out
        };
        assert_eq!(read(&[0x08, 5, 0x08, 0x96, 1]), vec![5, 150]);
        assert_eq!(read(&[0x0a, 3, 5, 0x96, 1]), vec![5, 150]);
    }

    #[test]
    fn groups_are_skipped_and_bounded() {
        // Field 1 as a group that holds field 2 = 7, then field 3 = 9.
        let mut reader = Reader::new(&[0x0b, 0x10, 7, 0x0c, 0x18, 9], 0);
        let tag = reader.tag().ok().flatten().unwrap_or(0);
        assert_eq!(reader.skip(tag), Ok(()));
        assert_eq!(reader.tag(), Ok(Some(3 << 3 | VARINT)));
        let deep = [0x0b; 1000];
        let mut reader = Reader::new(&deep, 0);
        let tag = reader.tag().ok().flatten().unwrap_or(0);
        assert!(reader.skip(tag).is_err());
    }

    #[test]
    fn lengths_beyond_the_message_are_errors() {
        let mut reader = Reader::new(&[0x0a, 200, 1, 2], 40);
        assert_eq!(reader.tag(), Ok(Some(1 << 3 | LEN)));
        assert_eq!(reader.bytes().map_err(|e| e.offset), Err(41));
        assert_eq!(Reader::new(&[0x00], 3).tag(), Err(WireError { offset: 3, what: "field number 0" }));
    }
}
