//! Finds the places of a log that may hold a message: one pass over blocks of the stream, in bounded memory.
//!
//! Lines around a needle are kept as an [`Excerpt`].

use std::io::{self, Read};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::layers::strip_colors;
use super::needles::find;
use crate::decode::decoder::DecodeError;
use crate::source::{Progress, SourceError};

/// Bytes read at a time.
const BLOCK: usize = 2 << 20;
/// Bytes that a thread searches at least, about.
const PIECE: usize = 256 << 10;
/// Lines longer than this are taken apart.
const MAX_LINE: usize = 512 << 10;
/// Bytes before a find that belong to the excerpt.
const BEFORE: usize = 4 << 10;
/// Bytes after the last find that still belong to it.
const AFTER: usize = 16 << 10;
/// The longest excerpt; a longer message is taken apart.
pub const MAX_EXCERPT: usize = 24 << 20;

/// An excerpt of this length ends where a listing begins.
const LONG_EXCERPT: usize = 1 << 20;
/// What a listing begins with.
const LISTING: &[u8] = b"Ran out of memory in memory space ";

/// A piece of the text that may hold messages, whole lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where it begins in the text.
    pub offset: u64,
    /// Number of its first line, from 1.
    pub line: u64,
    /// Whether the text ends with it.
    pub is_last: bool,
}

/// What was scanned.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scanned {
    /// Bytes.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
}

/// Reads a stream to its end and gives every excerpt to `each`.
///
/// # Errors
/// When it cannot be read, or was cancelled; what was read before has been given to `each`.
pub fn scan(mut reader: impl Read, progress: &Progress, mut each: impl FnMut(Excerpt)) -> Result<Scanned, DecodeError> {
    let mut state = Scan::default();
    let mut block = vec![0u8; BLOCK];
    // Bytes of `block` that are a line begun, not yet looked at.
    let mut kept = 0;
    loop {
        let mut filled = kept;
        let mut failure = None;
        while filled < block.len() {
            match reader.read(&mut block[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let ended = filled < block.len() || failure.is_some();
        progress.advance((filled - kept) as u64)?;
        let end = if ended {
            filled
        } else {
            match memchr::memrchr(b'\n', &block[..filled]) {
                Some(newline) => newline + 1,
                None if filled >= MAX_LINE => filled,
                None => 0,
            }
        };
        state.lines(&block[..end], &mut each);
        let is_unfinished = block[..end].last().is_some_and(|&last| last != b'\n');
        block.copy_within(end..filled, 0);
        kept = filled - end;
        if ended {
            state.finish(&mut each);
            let scanned = Scanned { bytes: state.offset, lines: state.line + u64::from(is_unfinished) };
            return failure.map_or(Ok(scanned), |error| Err(SourceError::from(error).into()));
        }
    }
}

#[derive(Default)]
struct Scan {
    /// Bytes and lines before the current block.
    offset: u64,
    line: u64,
    excerpt: Option<Excerpt>,
    /// Bytes that still belong to the excerpt though nothing was found in them.
    left: usize,
    /// The last lines of what was looked at, for the excerpt that may begin with the next find.
    before: Vec<u8>,
}

/// The first find of each line of a block of whole lines, ascending, and the number of lines; on all cores.
fn search(block: &[u8]) -> (Vec<usize>, u64) {
    let size = PIECE.max(block.len() / rayon::current_num_threads().max(1));
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < block.len() {
        let end = whole_lines(block, (start + size).min(block.len()), block.len());
        pieces.push((start, &block[start..end]));
        start = end;
    }
    let found: Vec<_> = pieces.into_par_iter().map(|(start, piece)| search_piece(piece, start)).collect();
    let lines = found.iter().map(|(_, lines)| lines).sum();
    (found.into_iter().flat_map(|(finds, _)| finds).collect(), lines)
}

/// The same of a piece that begins at `offset`, on this thread.
fn search_piece(piece: &[u8], offset: usize) -> (Vec<usize>, u64) {
    let mut found = Vec::new();
    let mut colored = colored(piece).into_iter().peekable();
    let mut place = 0;
    let mut plain = find(piece, 0);
    loop {
        while colored.peek().is_some_and(|&at| at < place) {
            colored.next();
        }
        if plain.is_some_and(|at| at < place) {
            plain = find(piece, place);
        }
        let Some(find) = plain.into_iter().chain(colored.peek().copied()).min() else { break };
        found.push(offset + find);
        place = memchr::memchr(b'\n', &piece[find..]).map_or(piece.len(), |i| find + i + 1);
    }
    (found, memchr::memchr_iter(b'\n', piece).count() as u64)
}

/// Lines whose words are broken by terminal escapes, and that hold a find without them.
fn colored(piece: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut colorless = Vec::new();
    let mut place = 0;
    while let Some(escape) = memchr::memchr(0x1b, &piece[place..]).map(|i| place + i) {
        let start = memchr::memrchr(b'\n', &piece[..escape]).map_or(0, |i| i + 1);
        let end = memchr::memchr(b'\n', &piece[escape..]).map_or(piece.len(), |i| escape + i + 1);
        colorless.clear();
        strip_colors(&piece[start..end], &mut colorless);
        if find(&colorless, 0).is_some() {
            found.push(start);
        }
        place = end;
    }
    found
}

impl Scan {
    /// Looks at whole lines.
    fn lines(&mut self, block: &[u8], each: &mut impl FnMut(Excerpt)) {
        let (finds, lines) = search(block);
        let mut place = 0;
        for find in finds {
            let line_end = memchr::memchr(b'\n', &block[find..]).map_or(block.len(), |i| find + i + 1);
            self.found(block, place, find, line_end, each);
            place = line_end;
        }
        self.quiet(&block[place..], each);
        self.remember(block);
        self.offset += block.len() as u64;
        self.line += lines;
    }

    /// A line with a find ends at `line_end`; nothing was found from `place` to `find`.
    fn found(&mut self, block: &[u8], place: usize, find: usize, line_end: usize, each: &mut impl FnMut(Excerpt)) {
        let line_start = memchr::memrchr(b'\n', &block[place..find]).map_or(place, |i| place + i + 1);
        self.quiet(&block[place..line_start], each);
        if self.excerpt.is_none() {
            // The lines before, from this block and from the one before it.
            let wanted = line_start.saturating_sub(BEFORE);
            let start = if wanted == 0 { 0 } else { whole_lines(block, wanted, line_start) };
            let from_before = if start == 0 { BEFORE.saturating_sub(line_start).min(self.before.len()) } else { 0 };
            let before = &self.before[self.before.len() - from_before..];
            let before = if from_before < self.before.len() {
                &before[whole_lines(before, 0, before.len()).min(before.len())..]
            } else {
                before
            };
            let mut bytes = before.to_vec();
            bytes.extend_from_slice(&block[start..line_start]);
            let lines_before = memchr::memchr_iter(b'\n', before).count() as u64;
            let lines = memchr::memchr_iter(b'\n', &block[..start]).count() as u64;
            self.excerpt = Some(Excerpt {
                bytes,
                offset: (self.offset + start as u64).saturating_sub(before.len() as u64),
                line: (self.line + lines + 1).saturating_sub(lines_before),
                is_last: false,
            });
        }
        self.append(&block[line_start..line_end], each);
        self.left = AFTER;
    }

    /// Lines in which nothing was found.
    fn quiet(&mut self, lines: &[u8], each: &mut impl FnMut(Excerpt)) {
        if self.excerpt.is_none() || lines.is_empty() {
            return;
        }
        if lines.len() <= self.left {
            self.left -= lines.len();
            self.append(lines, each);
            return;
        }
        // Only whole lines: half a number would be a wrong one.
        let end = memchr::memrchr(b'\n', &lines[..self.left]).map_or(0, |i| i + 1);
        self.append(&lines[..end], each);
        self.left = 0;
        if let Some(excerpt) = self.excerpt.take() {
            each(excerpt);
        }
    }

    fn append(&mut self, lines: &[u8], each: &mut impl FnMut(Excerpt)) {
        let Some(excerpt) = &mut self.excerpt else { return };
        // A listing begins with a sentence and needs nothing before it.
        let begins = excerpt.bytes.len() > LONG_EXCERPT && memchr::memmem::find(lines, LISTING).is_some();
        if begins || excerpt.bytes.len() + lines.len() > MAX_EXCERPT {
            let offset = excerpt.offset + excerpt.bytes.len() as u64;
            let line = excerpt.line + memchr::memchr_iter(b'\n', &excerpt.bytes).count() as u64;
            each(std::mem::replace(excerpt, Excerpt { bytes: Vec::new(), offset, line, is_last: false }));
        }
        excerpt.bytes.extend_from_slice(lines);
    }

    fn remember(&mut self, block: &[u8]) {
        if block.len() >= BEFORE {
            self.before.clear();
        }
        self.before.extend_from_slice(&block[block.len().saturating_sub(BEFORE)..]);
        let over = self.before.len().saturating_sub(BEFORE);
        self.before.drain(..over);
    }

    fn finish(&mut self, each: &mut impl FnMut(Excerpt)) {
        if let Some(mut excerpt) = self.excerpt.take() {
            excerpt.is_last = true;
            each(excerpt);
        }
    }
}

/// The beginning of the first whole line in `from..end`.
fn whole_lines(bytes: &[u8], from: usize, end: usize) -> usize {
    memchr::memchr(b'\n', &bytes[from..end]).map_or(end, |i| from + i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpts(text: &[u8]) -> Vec<Excerpt> {
        let mut found = Vec::new();
        scan(text, &Progress::default(), |excerpt| found.push(excerpt)).expect("readable");
        found
    }

    #[test]
    fn a_find_is_placed_wherever_it_lies() {
        for lines_before in [0usize, 3, 100, 20_000, 40_000] {
            let mut text = "step 1 loss 2.0 and so on and so on\n".repeat(lines_before);
            let message = "Ran out of memory in memory space hbm.\nmore\n";
            let at = text.len();
            text.push_str(message);
            text.push_str(&"quiet line after the message\n".repeat(50_000));
            let found = excerpts(text.as_bytes());
            assert_eq!(found.len(), 1, "{lines_before}");
            let excerpt = &found[0];
            let start = excerpt.offset as usize;
            assert!(start <= at && at - start <= BEFORE, "{lines_before}: {start} {at}");
            assert!(text.as_bytes()[start..].starts_with(&excerpt.bytes), "{lines_before}");
            assert!(excerpt.bytes.len() <= BEFORE + message.len() + AFTER);
            let line = text[..start].matches('\n').count() as u64 + 1;
            assert_eq!(excerpt.line, line, "{lines_before}");
            assert!(!excerpt.is_last);
        }
    }

    #[test]
    fn colours_and_long_lines_hide_nothing() {
        assert_eq!(excerpts(b"\x1b[31mRan out\x1b[0m of memory\n").len(), 1);
        assert!(excerpts(b"nothing here\n").is_empty());
        let mut long = vec![b'x'; 3 << 20];
        long.extend_from_slice(b" CUDA out of memory. Tried to allocate");
        assert!(!excerpts(&long).is_empty());
    }

    #[test]
    fn a_dump_longer_than_an_excerpt_is_taken_apart() {
        let line = "InUse at 7fa140000000 of size 104091648 next 1\n";
        let text = line.repeat((MAX_EXCERPT + (MAX_EXCERPT >> 1)) / line.len());
        let found = excerpts(text.as_bytes());
        assert_eq!(found.len(), 2);
        assert_eq!(found.iter().map(|e| e.bytes.len()).sum::<usize>(), text.len());
        assert!(found[1].is_last);
    }
}
