//! Numbered pins with notes on steps and buffers, set by the user.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::{BufferId, Program};

/// A pin. It refers to its target by the file's own numbers, so that it can be saved and shared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// What the pin marks.
    pub on: PinOn,
    /// Index of its program.
    #[serde(default)]
    pub program: usize,
    /// The user's note.
    #[serde(default)]
    pub note: String,
}

/// What a pin marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PinOn {
    /// A step of the program.
    Step(u32),
    /// A buffer, by the number the file gives it.
    Buffer(i64),
}

/// Cache of pinned buffers, as finding one searches up to a million rows.
#[derive(Debug, Default)]
pub struct PinnedRows {
    rows: HashMap<(usize, i64), Option<BufferId>>,
}

impl PinnedRows {
    /// The buffer a pin marks.
    pub fn buffer(&mut self, pin: &Pin, program: &Program) -> Option<BufferId> {
        let PinOn::Buffer(number) = pin.on else { return None };
        *self.rows.entry((pin.program, number)).or_insert_with(|| pin.buffer(program))
    }
}

/// The pin whose note is to be edited next.
#[derive(Debug, Default)]
pub struct Asked(pub Option<usize>);

/// Longest note, in characters.
pub const MAX_NOTE: usize = 400;

/// Maximum number of pins of a file.
pub const MAX_PINS: usize = 99;

impl Pin {
    /// The buffer it marks, as a row of its program.
    #[must_use]
    pub fn buffer(&self, program: &Program) -> Option<BufferId> {
        let PinOn::Buffer(number) = self.on else { return None };
        program.buffers.number.iter().position(|n| *n == number).map(BufferId::from_index)
    }

    /// What it marks, in words; uses the cache only.
    #[must_use]
    pub fn words_of(&self, program: &Program, buffer: Option<BufferId>) -> String {
        match (self.on, buffer) {
            (PinOn::Step(step), _) => format!("step {step}"),
            (PinOn::Buffer(_), Some(buffer)) => program.buffer_name(buffer),
            (PinOn::Buffer(number), None) => format!("buffer {number}, not in this file"),
        }
    }

    /// The step it marks.
    #[must_use]
    pub const fn step(&self) -> Option<u32> {
        match self.on {
            PinOn::Step(step) => Some(step),
            PinOn::Buffer(_) => None,
        }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.on {
            PinOn::Step(step) => write!(f, "step {step}")?,
            PinOn::Buffer(number) => write!(f, "buffer {number}")?,
        }
        if self.note.is_empty() { Ok(()) } else { write!(f, ": {}", self.note) }
    }
}

impl FromStr for Pin {
    type Err = String;

    /// `step 120` or `buffer 17`, optionally followed by `: a note`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (head, note) = text.split_once(':').unwrap_or((text, ""));
        let wrong = || format!("a pin is written 'step 120: a note' or 'buffer 17: a note', not '{text}'");
        let (kind, number) = head.trim().split_once(' ').ok_or_else(wrong)?;
        let on = match kind {
            "step" => PinOn::Step(number.trim().parse().map_err(|_| wrong())?),
            "buffer" => PinOn::Buffer(number.trim().parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        };
        Ok(Self { on, program: 0, note: note.trim().chars().take(MAX_NOTE).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_written_and_read() {
        for text in ["step 120", "buffer 17", "buffer 17: the logits, twice: why?"] {
            assert_eq!(text.parse::<Pin>().map(|pin| pin.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "step", "step x", "page 7", "step -1", ": note"] {
            assert!(text.parse::<Pin>().is_err(), "{text}");
        }
    }
}
