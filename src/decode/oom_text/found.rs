//! A message while it is being read: where it begins and ends in the text, and its failure so far.

use regex::{Captures, Regex};

use super::head::head_of;
use super::pattern::{bytes_value, count_value, size_value, text_value};
use crate::model::{Failure, FailureKind, FailureValue};

/// A message that was found.
#[derive(Debug)]
pub struct Found {
    /// Where it begins.
    pub start: usize,
    /// Where its sentence ends.
    pub end: usize,
    /// What it says.
    pub failure: Failure,
}

impl Found {
    /// A failure of a kind, at the place of a match.
    pub fn new(kind: FailureKind, captures: &Captures<'_>) -> Self {
        let (start, end) = captures.get(0).map_or((0, 0), |all| (all.start(), all.end()));
        let message = captures.get(0).map_or("", |all| all.as_str());
        Self::at(kind, message, start, end)
    }

    /// A failure of a kind at a place, with its first line.
    pub fn at(kind: FailureKind, line: &str, start: usize, end: usize) -> Self {
        let message = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let message = head_of(&message, 2000).to_owned();
        Self { start, end, failure: Failure { kind, is_error: true, message, ..Failure::default() } }
    }

    /// Sets a key to a printed size.
    pub fn size(&mut self, key: &'static str, captures: &Captures<'_>, group: usize) -> &mut Self {
        self.put(key, captures.get(group).and_then(|text| size_value(text.as_str())))
    }

    /// Sets a key to plain bytes.
    pub fn bytes(&mut self, key: &'static str, captures: &Captures<'_>, group: usize) -> &mut Self {
        self.put(key, captures.get(group).and_then(|text| bytes_value(text.as_str())))
    }

    /// Sets a key to a number.
    pub fn count(&mut self, key: &'static str, captures: &Captures<'_>, group: usize) -> &mut Self {
        self.put(key, captures.get(group).and_then(|text| count_value(text.as_str())))
    }

    /// Sets a key to a text.
    pub fn text(&mut self, key: &'static str, captures: &Captures<'_>, group: usize) -> &mut Self {
        self.put(key, captures.get(group).map(|text| text_value(text.as_str().trim())))
    }

    /// Sets a key.
    pub fn put(&mut self, key: &'static str, value: Option<FailureValue>) -> &mut Self {
        if let Some(value) = value {
            self.failure.set(key, value);
        }
        self
    }

    /// Sets a size from the first match of a pattern in a text.
    pub fn size_in(&mut self, key: &'static str, pattern: &Regex, text: &str) -> &mut Self {
        if let Some(captures) = pattern.captures(text) {
            self.size(key, &captures, 1);
        }
        self
    }

    /// Sets a number from the first match of a pattern in a text.
    pub fn count_in(&mut self, key: &'static str, pattern: &Regex, text: &str) -> &mut Self {
        if let Some(captures) = pattern.captures(text) {
            self.count(key, &captures, 1);
        }
        self
    }
}
