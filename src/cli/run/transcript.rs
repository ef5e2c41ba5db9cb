//! What a command has printed, as far as it may matter: its end, and before that what may belong to an out-of-memory
//! message. Bounded, however long the command runs.

use std::collections::VecDeque;

use highwater::decode::oom_text;

/// Bytes of the end that are kept whatever they say.
const END: usize = 4 << 20;

/// Bytes before the end that are kept because they may belong to a message.
const EARLIER: usize = 8 << 20;

/// Bytes that are kept or dropped together.
const PIECE: usize = 64 << 10;

/// The kept parts of a command's output.
#[derive(Debug, Default)]
pub struct Transcript {
    earlier: Vec<u8>,
    /// The piece before belonged to a message, which may go on in the next.
    goes_on: bool,
    end: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Transcript {
    /// Adds what was printed next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        match self.end.back_mut().filter(|piece| piece.len() < PIECE) {
            Some(piece) => piece.extend_from_slice(bytes),
            None => self.end.push_back(bytes.to_vec()),
        }
        while self.bytes > END {
            let Some(piece) = self.end.pop_front() else { break };
            self.bytes -= piece.len();
            let speaks = oom_text::may_hold_message(&piece);
            if (speaks || self.goes_on) && self.earlier.len() + piece.len() <= EARLIER {
                self.earlier.extend_from_slice(&piece);
            }
            self.goes_on = speaks;
        }
    }

    /// The kept bytes, in the order in which they were printed.
    pub fn into_bytes(self) -> Vec<u8> {
        let mut all = self.earlier;
        for piece in self.end {
            all.extend_from_slice(&piece);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_and_an_early_message_are_kept_of_any_length() {
        let mut transcript = Transcript::default();
        let message = b"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 123 bytes.\n";
        transcript.push(message);
        for step in 0..200_000 {
            transcript
                .push(format!("step {step}: loss 1.2345 and some more words to make it long enough\n").as_bytes());
        }
        transcript.push(b"the last line\n");
        let kept = transcript.into_bytes();
        assert!(kept.starts_with(message) && kept.ends_with(b"the last line\n"));
        assert!(kept.len() < END + 3 * PIECE, "{}", kept.len());
    }
}
