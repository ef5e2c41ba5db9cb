//! JSON, token by token. Tolerates common deviations: `NaN`, `Infinity`, a byte-order mark, a trailing comma.

use super::pull::{Feed, MAX_DEPTH, MAX_TEXT, Pull, Result, Token};

/// Longest accepted number in bytes.
const MAX_NUMBER: usize = 512;

/// Reads JSON.
pub struct Json<'a> {
    feed: Feed<'a>,
    /// For each open container whether it is an object.
    open: Vec<bool>,
    /// Whether the next text is an object's key.
    wants_key: bool,
    text: Vec<u8>,
    shown: String,
}

impl<'a> Json<'a> {
    /// Over a stream.
    pub const fn new(feed: Feed<'a>) -> Self {
        Self { feed, open: Vec::new(), wants_key: false, text: Vec::new(), shown: String::new() }
    }

    fn begin(&mut self, object: bool) -> Result<Token> {
        if self.open.len() >= MAX_DEPTH {
            return self.feed.damaged(format!("values nested more than {MAX_DEPTH} levels deep"));
        }
        self.open.push(object);
        self.wants_key = object;
        Ok(if object { Token::BeginObject } else { Token::BeginArray })
    }

    fn end(&mut self, object: bool) -> Result<Token> {
        if self.open.pop() != Some(object) {
            return self.feed.damaged(if object { "unmatched '}'" } else { "unmatched ']'" });
        }
        self.wants_key = self.open.last() == Some(&true);
        Ok(if object { Token::EndObject } else { Token::EndArray })
    }

    /// After a value.
    fn value(&mut self, token: Token) -> Token {
        self.wants_key = self.open.last() == Some(&true);
        token
    }

    fn string(&mut self) -> Result<()> {
        self.text.clear();
        loop {
            let Some(byte) = self.feed.take()? else { return self.feed.damaged("a string ends early") };
            let byte = match byte {
                b'"' => break,
                b'\\' => {
                    self.escape()?;
                    continue;
                }
                byte => byte,
            };
            if self.text.len() < MAX_TEXT {
                self.text.push(byte);
            }
        }
        self.shown.clear();
        self.shown.push_str(&String::from_utf8_lossy(&self.text));
        Ok(())
    }

    fn escape(&mut self) -> Result<()> {
        let Some(byte) = self.feed.take()? else { return self.feed.damaged("a string ends early") };
        let c = match byte {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let mut code = self.hex4()?;
                if (0xd800..0xdc00).contains(&code) && self.feed.peek()? == Some(b'\\') {
                    self.feed.take()?;
                    if self.feed.take()? == Some(b'u') {
                        let low = self.hex4()?;
                        code = 0x10000 + ((code - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff);
                    }
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            other => char::from(other),
        };
        if self.text.len() < MAX_TEXT {
            let mut utf8 = [0; 4];
            self.text.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
        }
        Ok(())
    }

    fn hex4(&mut self) -> Result<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.feed.take()?.and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return self.feed.damaged("a \\u without four digits") };
            code = code * 16 + digit;
        }
        Ok(code)
    }

    fn number(&mut self) -> Result<Token> {
        let mut text = [0u8; MAX_NUMBER];
        let mut len = 0;
        while let Some(byte @ (b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) = self.feed.peek()? {
            if len == MAX_NUMBER {
                return self.feed.damaged("a number without an end");
            }
            text[len] = byte;
            len += 1;
            self.feed.at += 1;
        }
        let text = std::str::from_utf8(&text[..len]).unwrap_or_default();
        if let Ok(value) = text.parse() {
            return Ok(Token::Whole(value));
        }
        match text.parse::<f64>() {
            Ok(value) => Ok(Token::Real(value)),
            Err(_) => self.feed.damaged(format!("'{text}' is not a number")),
        }
    }

    fn word(&mut self) -> Result<Token> {
        self.text.clear();
        while let Some(byte) = self.feed.peek()?.filter(u8::is_ascii_alphabetic) {
            if self.text.len() > 16 {
                break;
            }
            self.text.push(byte);
            self.feed.at += 1;
        }
        match &self.text[..] {
            b"true" => Ok(Token::Bool(true)),
            b"false" => Ok(Token::Bool(false)),
            b"null" | b"NaN" | b"Infinity" | b"inf" | b"nan" => Ok(Token::Null),
            word => {
                let word = String::from_utf8_lossy(word).into_owned();
                self.feed.damaged(format!("'{word}' is not a JSON value"))
            }
        }
    }
}

impl Pull for Json<'_> {
    fn next(&mut self) -> Result<Token> {
        loop {
            let Some(byte) = self.feed.peek()? else {
                if let Some(inside) = self.open.last() {
                    let what = if *inside { "object" } else { "array" };
                    return self.feed.damaged(format!("the file ends inside an {what}"));
                }
                return Ok(Token::End);
            };
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' | 0xef | 0xbb | 0xbf => self.feed.at += 1,
                b'{' => {
                    self.feed.at += 1;
                    return self.begin(true);
                }
                b'[' => {
                    self.feed.at += 1;
                    return self.begin(false);
                }
                b'}' => {
                    self.feed.at += 1;
                    return self.end(true);
                }
                b']' => {
                    self.feed.at += 1;
                    return self.end(false);
                }
                b'"' => {
                    self.feed.at += 1;
                    self.string()?;
                    if self.wants_key {
                        self.wants_key = false;
                        return Ok(Token::Key);
                    }
                    return Ok(self.value(Token::Text));
                }
                b'-' => {
                    self.feed.at += 1;
                    if self.feed.peek()? == Some(b'I') {
                        let token = self.word()?;
                        return Ok(self.value(token));
                    }
                    let token = match self.number()? {
                        Token::Whole(value) => Token::Real(-(value as f64)),
                        Token::Real(value) => Token::Real(-value),
                        other => other,
                    };
                    return Ok(self.value(token));
                }
                b'0'..=b'9' | b'.' => {
                    let token = self.number()?;
                    return Ok(self.value(token));
                }
                b'a'..=b'z' | b'A'..=b'Z' => {
                    let token = self.word()?;
                    return Ok(self.value(token));
                }
                other => return self.feed.damaged(format!("the byte {other:#04x} is not JSON")),
            }
        }
    }

    fn text(&self) -> &str {
        &self.shown
    }

    fn offset(&self) -> u64 {
        self.feed.offset()
    }

    /// Parses integers straight from the buffer: nearly all of a large profile is rows of them.
    fn row(&mut self, row: &mut Vec<u64>, cap: usize) -> Result<u64> {
        let mut count = 0u64;
        loop {
            // Fast path: digits, then a comma, all inside the buffer.
            let buffer = &self.feed.buffer;
            let mut at = self.feed.at;
            while let Some(&byte) = buffer.get(at) {
                if byte == b',' || byte == b' ' || byte == b'\n' {
                    at += 1;
                    continue;
                }
                let (mut value, mut end) = (0u64, at);
                while let Some(digit @ 0..=9) = buffer.get(end).map(|byte| byte.wrapping_sub(b'0')) {
                    value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
                    end += 1;
                }
                // Up to 19 digits fit; a number that touches the end of the buffer may go on.
                let whole = end > at && end - at <= 19 && matches!(buffer.get(end), Some(b',' | b']' | b' ' | b'\n'));
                if !whole {
                    break;
                }
                if row.len() < cap {
                    row.push(value);
                }
                count += 1;
                at = end;
            }
            self.feed.at = at;
            // Slow path for whatever stopped it.
            let value = match self.next()? {
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
}
