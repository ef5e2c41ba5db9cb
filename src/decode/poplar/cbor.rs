//! CBOR (RFC 8949), token by token: what Poplar writes when asked for its compact form.

use super::pull::{Feed, MAX_DEPTH, MAX_TEXT, Pull, Result, Token};

struct Open {
    object: bool,
    /// Values still to come (for an object, keys and values); `None` if a break ends it.
    left: Option<u64>,
    wants_key: bool,
}

/// Reads CBOR.
pub struct Cbor<'a> {
    feed: Feed<'a>,
    open: Vec<Open>,
    begun: bool,
    text: Vec<u8>,
    shown: String,
}

impl<'a> Cbor<'a> {
    /// Over a stream.
    pub const fn new(feed: Feed<'a>) -> Self {
        Self { feed, open: Vec::new(), begun: false, text: Vec::new(), shown: String::new() }
    }

    fn bytes(&mut self, count: u32) -> Result<u64> {
        let mut value = 0u64;
        for _ in 0..count {
            let Some(byte) = self.feed.take()? else { return self.feed.damaged("the file ends inside a number") };
            value = value << 8 | u64::from(byte);
        }
        Ok(value)
    }

    /// The argument of an item; `None` for indefinite length.
    fn argument(&mut self, info: u8) -> Result<Option<u64>> {
        Ok(Some(match info {
            0..=23 => u64::from(info),
            24 => self.bytes(1)?,
            25 => self.bytes(2)?,
            26 => self.bytes(4)?,
            27 => self.bytes(8)?,
            31 => return Ok(None),
            _ => return self.feed.damaged("an item with a reserved length"),
        }))
    }

    fn take_text(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            if self.feed.peek()?.is_none() {
                return self.feed.damaged("a string ends early");
            }
            let at = self.feed.at;
            let here = ((self.feed.buffer.len() - at) as u64).min(count) as usize;
            let keep = here.min(MAX_TEXT.saturating_sub(self.text.len()));
            self.text.extend_from_slice(&self.feed.buffer[at..at + keep]);
            self.feed.at += here;
            count -= here as u64;
        }
        Ok(())
    }

    fn string(&mut self, length: Option<u64>) -> Result<()> {
        self.text.clear();
        match length {
            Some(length) => self.take_text(length)?,
            None => loop {
                let Some(head) = self.feed.take()? else { return self.feed.damaged("a string ends early") };
                if head == 0xff {
                    break;
                }
                let Some(length) = self.argument(head & 31)? else {
                    return self.feed.damaged("a string within a string");
                };
                self.take_text(length)?;
            },
        }
        self.shown.clear();
        self.shown.push_str(&String::from_utf8_lossy(&self.text));
        Ok(())
    }

    fn begin(&mut self, object: bool, count: Option<u64>) -> Result<Token> {
        if self.open.len() >= MAX_DEPTH {
            return self.feed.damaged(format!("values nested more than {MAX_DEPTH} levels deep"));
        }
        let left = count.map(|count| if object { count.saturating_mul(2) } else { count });
        self.open.push(Open { object, left, wants_key: object });
        Ok(if object { Token::BeginObject } else { Token::BeginArray })
    }

    fn end(&mut self) -> Token {
        let object = self.open.pop().is_some_and(|open| open.object);
        if object { Token::EndObject } else { Token::EndArray }
    }

    fn float(bits: u64, size: u32) -> f64 {
        match size {
            2 => {
                let (sign, exponent, mantissa) = (bits >> 15 & 1, (bits >> 10 & 31) as i32, (bits & 1023) as f64);
                let value = match exponent {
                    0 => mantissa * 2f64.powi(-24),
                    31 => f64::NAN,
                    exponent => (mantissa + 1024.0) * 2f64.powi(exponent - 25),
                };
                if sign == 1 { -value } else { value }
            }
            4 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        }
    }

    /// A float, as a whole number where it is one.
    fn number(value: f64) -> Token {
        if value.is_nan() {
            Token::Null
        } else if value >= 0.0 && value.fract() == 0.0 && value < 9e15 {
            Token::Whole(value as u64)
        } else {
            Token::Real(value)
        }
    }
}

impl Pull for Cbor<'_> {
    fn next(&mut self) -> Result<Token> {
        if self.open.is_empty() && self.begun {
            return Ok(Token::End);
        }
        if self.open.last().is_some_and(|open| open.left == Some(0)) {
            return Ok(self.end());
        }
        let mut is_key = false;
        let mut head;
        loop {
            head = match self.feed.take()? {
                Some(head) => head,
                None if self.open.is_empty() => return Ok(Token::End),
                None => return self.feed.damaged("the file ends inside a value"),
            };
            // Tags say what a value means; the values here need none.
            if head >> 5 != 6 {
                break;
            }
            self.argument(head & 31)?;
        }
        self.begun = true;
        if head == 0xff {
            return match self.open.last() {
                Some(Open { left: None, .. }) => Ok(self.end()),
                _ => self.feed.damaged("an end without a beginning"),
            };
        }
        if let Some(open) = self.open.last_mut() {
            open.left = open.left.map(|left| left - 1);
            is_key = open.object && open.wants_key;
            open.wants_key = open.object && !open.wants_key;
        }
        let info = head & 31;
        let token = match head >> 5 {
            0 => {
                let Some(value) = self.argument(info)? else { return self.feed.damaged("a number without a length") };
                Token::Whole(value)
            }
            1 => Token::Real(-1.0 - self.argument(info)?.unwrap_or(0) as f64),
            2 | 3 => {
                let length = self.argument(info)?;
                self.string(length)?;
                return Ok(if is_key { Token::Key } else { Token::Text });
            }
            4 | 5 if is_key => return self.feed.damaged("a key that is a container"),
            4 => {
                let count = self.argument(info)?;
                return self.begin(false, count);
            }
            5 => {
                let count = self.argument(info)?;
                return self.begin(true, count);
            }
            _ => match info {
                20 => Token::Bool(false),
                21 => Token::Bool(true),
                25 => Self::number(Self::float(self.bytes(2)?, 2)),
                26 => Self::number(Self::float(self.bytes(4)?, 4)),
                27 => Self::number(Self::float(self.bytes(8)?, 8)),
                24 => {
                    self.bytes(1)?;
                    Token::Null
                }
                _ => Token::Null,
            },
        };
        if is_key {
            self.shown = match token {
                Token::Whole(value) => value.to_string(),
                Token::Real(value) => value.to_string(),
                Token::Bool(value) => value.to_string(),
                _ => "null".to_owned(),
            };
            return Ok(Token::Key);
        }
        Ok(token)
    }

    fn text(&self) -> &str {
        &self.shown
    }

    fn offset(&self) -> u64 {
        self.feed.offset()
    }
}
