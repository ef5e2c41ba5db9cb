//! A tree read token by token: the same for JSON and CBOR, in memory that does not depend on the size of the file.

use std::io::{self, Read};

use crate::decode::DecodeError;
use crate::source::{Input, Progress};

/// Error of a read.
pub type Result<T> = std::result::Result<T, DecodeError>;

/// Deepest accepted nesting of containers; the parser's own stack is on the heap.
pub const MAX_DEPTH: usize = 4096;

/// Keys and values are truncated to this many bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// How much is read at once.
const CHUNK: usize = 256 << 10;

/// A token of a tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token {
    /// `null` or undefined.
    Null,
    /// A boolean.
    Bool(bool),
    /// A non-negative integer.
    Whole(u64),
    /// Any other number.
    Real(f64),
    /// A text value; [`Pull::text`] has it.
    Text,
    /// A key of an object; [`Pull::text`] has it.
    Key,
    /// An array begins.
    BeginArray,
    /// An array ends.
    EndArray,
    /// An object begins.
    BeginObject,
    /// An object ends.
    EndObject,
    /// End of the input.
    End,
}

impl Token {
    /// A number as a byte count or count; negative values and NaN become 0.
    pub fn whole(self) -> Option<u64> {
        match self {
            Self::Whole(value) => Some(value),
            Self::Real(value) if value >= 0.0 => Some(value as u64),
            Self::Real(_) => Some(0),
            _ => None,
        }
    }
}

/// A source of tokens.
pub trait Pull {
    /// The next token.
    ///
    /// # Errors
    /// When the input is damaged, ends early, or was cancelled.
    fn next(&mut self) -> Result<Token>;

    /// Text of the last key or text token.
    fn text(&self) -> &str;

    /// Where in the file the reader is.
    fn offset(&self) -> u64;

    /// After the beginning of an array: its numbers up to its end, at most `cap` of them; what is no number is 0.
    /// Returns how many the array has.
    ///
    /// # Errors
    /// As [`Pull::next`]; what was read until then is in `row`.
    fn row(&mut self, row: &mut Vec<u64>, cap: usize) -> Result<u64> {
        let mut count = 0;
        loop {
            let token = self.next()?;
            let value = match token {
                Token::EndArray | Token::End => return Ok(count),
                Token::BeginArray | Token::BeginObject => {
                    self.skip_open()?;
                    0
                }
                other => other.whole().unwrap_or(0),
            };
            if row.len() < cap {
                row.push(value);
            }
            count += 1;
        }
    }

    /// Skips to the end of the container that has just begun.
    ///
    /// # Errors
    /// As [`Pull::next`].
    fn skip_open(&mut self) -> Result<()> {
        let mut depth = 1usize;
        while depth > 0 {
            match self.next()? {
                Token::BeginArray | Token::BeginObject => depth += 1,
                Token::EndArray | Token::EndObject => depth -= 1,
                Token::End => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Skips a value whose first token is given.
    ///
    /// # Errors
    /// As [`Pull::next`].
    fn skip_rest(&mut self, first: Token) -> Result<()> {
        if matches!(first, Token::BeginArray | Token::BeginObject) { self.skip_open() } else { Ok(()) }
    }
}

/// Bytes of an input through a buffer, with place, progress and cancelling.
pub struct Feed<'a> {
    reader: Box<dyn Read + Send + 'a>,
    progress: Option<&'a Progress>,
    /// The bytes at hand.
    pub buffer: Vec<u8>,
    /// The next of them.
    pub at: usize,
    base: u64,
    ended: bool,
}

impl<'a> Feed<'a> {
    /// All of an input.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn new(input: &'a Input, progress: &'a Progress) -> Result<Self> {
        Ok(Self {
            reader: input.reader_to_cut()?,
            progress: Some(progress),
            buffer: Vec::new(),
            at: 0,
            base: 0,
            ended: false,
        })
    }

    /// A few bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { reader: Box::new(bytes), progress: None, buffer: Vec::new(), at: 0, base: 0, ended: false }
    }

    /// Place of the next byte.
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Reads more; the bytes not used yet move to the front. Returns whether there were more.
    ///
    /// # Errors
    /// When the input cannot be read or was cancelled.
    pub fn refill(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let kept = self.buffer.len() - self.at;
        self.buffer.copy_within(self.at.., 0);
        self.base += self.at as u64;
        self.at = 0;
        self.buffer.resize(kept + CHUNK, 0);
        let count = loop {
            match self.reader.read(&mut self.buffer[kept..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let count = match count {
            Ok(count) => count,
            Err(error) => {
                self.buffer.truncate(kept);
                self.ended = true;
                return Err(DecodeError::Damaged {
                    what: format!("the rest cannot be read: {error}"),
                    offset: self.base + kept as u64,
                });
            }
        };
        self.buffer.truncate(kept + count);
        self.ended = count == 0;
        if let Some(progress) = self.progress {
            progress.advance(count as u64)?;
        }
        Ok(count > 0)
    }

    /// The next byte, without taking it.
    ///
    /// # Errors
    /// As [`Feed::refill`].
    pub fn peek(&mut self) -> Result<Option<u8>> {
        if self.at >= self.buffer.len() && !self.refill()? {
            return Ok(None);
        }
        Ok(self.buffer.get(self.at).copied())
    }

    /// Takes the next byte.
    ///
    /// # Errors
    /// As [`Feed::refill`].
    pub fn take(&mut self) -> Result<Option<u8>> {
        let byte = self.peek()?;
        self.at += usize::from(byte.is_some());
        Ok(byte)
    }

    /// Damage at the current place.
    pub fn damaged<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(DecodeError::Damaged { what: what.into(), offset: self.offset() })
    }
}

/// Goes through the members of the object that has just begun; `member` takes one value each.
///
/// # Errors
/// As [`Pull::next`], and what `member` says.
pub fn members(pull: &mut dyn Pull, member: &mut dyn FnMut(&mut dyn Pull, &str, Token) -> Result<()>) -> Result<()> {
    loop {
        match pull.next()? {
            Token::Key => {
                let key = pull.text().to_owned();
                let first = pull.next()?;
                member(pull, &key, first)?;
            }
            Token::EndObject | Token::End => return Ok(()),
            // A value without key: only a damaged tree has one.
            other => pull.skip_rest(other)?,
        }
    }
}

/// Goes through the elements of the array that has just begun; `element` takes one value each.
///
/// # Errors
/// As [`Pull::next`], and what `element` says.
pub fn elements(pull: &mut dyn Pull, element: &mut dyn FnMut(&mut dyn Pull, usize, Token) -> Result<()>) -> Result<()> {
    let mut index = 0;
    loop {
        match pull.next()? {
            Token::EndArray | Token::End => return Ok(()),
            first => element(pull, index, first)?,
        }
        index += 1;
    }
}
