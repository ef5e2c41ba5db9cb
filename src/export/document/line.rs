//! A line of text with code and emphasis in it.

use crate::model::{Bytes, thousands};

/// Emphasis of a part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// None.
    #[default]
    Plain,
    /// The words that matter.
    Strong,
    /// A remark.
    Emphasis,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text, unescaped.
    pub text: String,
    /// Whether it is a name or code.
    pub is_code: bool,
    /// Its emphasis.
    pub weight: Weight,
}

/// A line: the text of a paragraph, a cell, an item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
    key: Option<i128>,
}

impl Line {
    /// A name or code.
    pub fn code(text: impl Into<String>) -> Self {
        Self::default().then_code(text)
    }

    /// Words that matter, in which backquotes mark code.
    #[must_use]
    pub fn strong(text: &str) -> Self {
        Self::default().then_marked(text, Weight::Strong)
    }

    /// A text in which backquotes mark code.
    #[must_use]
    pub fn marked(text: &str) -> Self {
        Self::default().then_marked(text, Weight::Plain)
    }

    /// A remark.
    #[must_use]
    pub fn emphasis(text: &str) -> Self {
        Self::default().then_marked(text, Weight::Emphasis)
    }

    /// A size in three digits, sorted by its bytes.
    #[must_use]
    pub fn size(bytes: u64) -> Self {
        Self::from(Bytes(bytes).short()).sorted_by(bytes.into())
    }

    /// A size to the byte.
    #[must_use]
    pub fn exact(bytes: u64) -> Self {
        Self::from(Bytes(bytes).exact()).sorted_by(bytes.into())
    }

    /// A count.
    #[must_use]
    pub fn count(count: usize) -> Self {
        Self::from(thousands(count as u64)).sorted_by(count as i128)
    }

    /// The same with a number that a table's rows are sorted by.
    #[must_use]
    pub const fn sorted_by(mut self, key: i128) -> Self {
        self.key = Some(key);
        self
    }

    /// The number to sort by; `None` to sort by the text.
    #[must_use]
    pub const fn key(&self) -> Option<i128> {
        self.key
    }

    /// Adds plain text.
    #[must_use]
    pub fn then(mut self, text: impl Into<String>) -> Self {
        self.push(text.into(), false, Weight::Plain);
        self
    }

    /// Adds a name or code.
    #[must_use]
    pub fn then_code(mut self, text: impl Into<String>) -> Self {
        self.push(text.into(), true, Weight::Plain);
        self
    }

    /// Adds words that matter.
    #[must_use]
    pub fn then_strong(self, text: &str) -> Self {
        self.then_marked(text, Weight::Strong)
    }

    /// Adds a text in which backquotes mark code.
    #[must_use]
    pub fn then_marked(mut self, text: &str, weight: Weight) -> Self {
        let mut rest = text;
        while let Some((before, (code, after))) =
            rest.split_once('`').and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
        {
            self.push(before.to_owned(), false, weight);
            self.push(code.to_owned(), true, weight);
            rest = after;
        }
        self.push(rest.to_owned(), false, weight);
        self
    }

    /// Adds names, separated by commas.
    #[must_use]
    pub fn then_codes<T: AsRef<str>>(self, names: impl IntoIterator<Item = T>) -> Self {
        names.into_iter().enumerate().fold(self, |line, (i, name)| {
            let line = if i == 0 { line } else { line.then(", ") };
            line.then_code(name.as_ref())
        })
    }

    fn push(&mut self, text: String, is_code: bool, weight: Weight) {
        if !text.is_empty() {
            self.spans.push(Span { text, is_code, weight });
        }
    }

    /// Its parts.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }
}

impl<T: AsRef<str>> From<T> for Line {
    fn from(text: T) -> Self {
        Self::default().then(text.as_ref())
    }
}
