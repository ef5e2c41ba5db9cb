//! Takes away what lies around a message, layer by layer until nothing changes: terminal escapes, HTML, JSON and quoted
//! strings, prefixes. Then lines of several processes become streams of their own.

mod encoding;
mod escapes;
mod prefix;

pub use encoding::{Encoding, Utf16Reader, detect, to_text};

use super::pattern::patterns;
use super::scan::Excerpt;
use crate::source::Progress;

/// How lines are put together again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    /// As they are.
    Lines,
    /// Lines that a terminal or an editor wrapped between words.
    Words,
    /// Lines that a terminal wrapped at its width, anywhere.
    Width,
    /// Without the beginning that all lines share.
    SharedPrefix,
    /// All of them, wrapped in the middle of words.
    Wrapped,
}

/// A line without its layers.
#[derive(Debug, Clone, Default)]
struct Line {
    text: String,
    /// Position of its line in the file, and the line's number.
    offset: u64,
    number: u64,
    /// What was taken away before it.
    prefix: String,
    process: Option<String>,
}

impl Line {
    /// Its characters, with those that were taken away before it.
    fn width(&self) -> usize {
        (self.prefix.len() + self.text.len()).min(self.prefix.chars().count() + self.text.trim_end().chars().count())
    }
}

/// A stream of one process as plain text, with the way back to the file.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the text of a text")]
pub struct Text {
    /// The text.
    pub text: String,
    /// Places of the lines in the text, ascending.
    lines: Vec<(usize, LinePosition)>,
    /// Whether the file ends with it, without a line end.
    pub is_cut: bool,
    /// Lines that were put together with the one before.
    pub joined: usize,
}

/// Where a line stands.
#[derive(Debug, Clone, Default)]
pub struct LinePosition {
    /// Byte offset of the line in the file; in a UTF-16 file that of its UTF-8 form.
    pub offset: u64,
    /// Its number, from 1.
    pub line: u64,
    /// What was taken away before it.
    pub prefix: String,
    /// Which process wrote it.
    pub process: Option<String>,
}

impl Text {
    /// Where a place of the text stands in the file. Exact to the line.
    pub fn place(&self, at: usize) -> Option<&LinePosition> {
        let i = self.lines.partition_point(|line| line.0 <= at).saturating_sub(1);
        self.lines.get(i).map(|line| &line.1)
    }
}

patterns! {
    /// An escape of a terminal as it is printed.
    CARET = r"\^\[\[[\d;]*[A-Za-z]";
}

/// Rounds of taking layers away; each level of nesting needs one.
const ROUNDS: usize = 6;
/// Streams that are told apart; lines of further processes stay with the last one.
const MAX_STREAMS: usize = 512;

/// Copies bytes without terminal escapes: `ESC [ … letter`, `ESC ] … BEL`, `ESC` and a letter.
pub fn strip_colors(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(0x1b, rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let skip = match rest.first() {
            Some(b'[') => rest.iter().skip(1).position(|b| (0x40..=0x7e).contains(b)).map_or(rest.len(), |i| i + 2),
            Some(b']') => {
                let end = rest.iter().position(|&b| b == 7 || b == 0x1b || b == b'\n').unwrap_or(rest.len());
                if rest.get(end) == Some(&7) { end + 1 } else { end }
            }
            Some(b'\n') | None => 0,
            Some(_) => 1,
        };
        rest = &rest[skip.min(rest.len())..];
    }
    out.extend_from_slice(rest);
}

/// The streams of an excerpt; none once it was cancelled.
pub fn streams(excerpt: &Excerpt, joining: Joining, progress: &Progress) -> Vec<Text> {
    let is_cut = excerpt.is_last && excerpt.bytes.last().is_some_and(|&b| b != b'\n');
    let mut lines = Vec::new();
    let mut offset = excerpt.offset;
    for (i, raw) in excerpt.bytes.split_inclusive(|&b| b == b'\n').enumerate() {
        if progress.check().is_err() {
            return Vec::new();
        }
        let end = raw.len() - usize::from(raw.ends_with(b"\n"));
        let line = Line { text: to_text(&raw[..end]), offset, number: excerpt.line + i as u64, ..Line::default() };
        peel(line, joining, 0, &mut lines);
        offset += raw.len() as u64;
    }
    if joining == Joining::SharedPrefix {
        cut_shared_prefix(&mut lines);
    }
    let last_number = lines.last().map(|line| line.number);
    split(lines)
        .into_iter()
        .map(|stream| {
            let ends_there = is_cut && stream.last().map(|line| line.number) == last_number;
            join(stream, joining, ends_there)
        })
        .collect()
}

/// Takes one layer after the other away; what was one line may become several.
fn peel(mut line: Line, joining: Joining, round: usize, out: &mut Vec<Line>) {
    while line.text.ends_with(['\r', '\n']) {
        line.text.pop();
    }
    if memchr::memchr(0x1b, line.text.as_bytes()).is_some() {
        let mut plain = Vec::with_capacity(line.text.len());
        strip_colors(line.text.as_bytes(), &mut plain);
        line.text = to_text(&plain);
    }
    if line.text.contains('\u{a0}') {
        line.text = line.text.replace('\u{a0}', " ");
    }
    if line.text.contains("^[[") {
        line.text = CARET.replace_all(&line.text, "").into_owned();
    }
    if let Some(bare) = line.text.strip_prefix('\u{feff}') {
        line.text = bare.to_owned();
    }
    // The bar of a progress display goes back to the line's beginning.
    if round < ROUNDS && memchr::memchr2(b'\r', b'\n', line.text.as_bytes()).is_some() {
        for part in line.text.split(['\r', '\n']) {
            peel(Line { text: part.to_owned(), ..line.clone() }, joining, round + 1, out);
        }
        return;
    }
    if joining != Joining::SharedPrefix {
        let cut = prefix::len(&line.text);
        if cut > 0 {
            line.prefix.push_str(&line.text[..cut]);
            line.text.drain(..cut);
            if line.process.is_none() {
                line.process = prefix::process(&line.prefix);
            }
        }
    }
    if round < ROUNDS {
        if memchr::memchr3(b'<', b'&', b'{', line.text.as_bytes()).is_some()
            && let Some(text) = escapes::without_html(&line.text)
        {
            return peel(Line { text, ..line }, joining, round + 1, out);
        }
        let bytes = line.text.as_bytes();
        if memchr::memchr(b'"', bytes).is_some()
            && let Some(record) = escapes::json_record(&line.text).or_else(|| escapes::json_member(&line.text))
        {
            let process = line.process.clone().or(record.process);
            return peel(Line { text: record.text, process, ..line }, joining, round + 1, out);
        }
        if memchr::memchr(b'\\', bytes).is_some()
            && let Some(text) = escapes::unescaped(&line.text)
        {
            return peel(Line { text, ..line }, joining, round + 1, out);
        }
    }
    out.push(line);
}

/// Lines of each process by themselves, where several write at the same time.
fn split(lines: Vec<Line>) -> Vec<Vec<Line>> {
    // One process that names itself on some of its lines is not interleaved with anything.
    let mut named = lines.iter().filter_map(|line| line.process.as_deref());
    if let Some(first) = named.next()
        && named.all(|name| name == first)
        && lines.iter().any(|line| line.process.is_none())
    {
        return vec![lines];
    }
    let mut names: Vec<Option<String>> = Vec::new();
    let mut streams: Vec<Vec<Line>> = Vec::new();
    let mut current = 0;
    for line in lines {
        // A line that names nobody goes on with what the line before said.
        if line.process.is_some() || streams.is_empty() {
            current = match names.iter().position(|name| *name == line.process) {
                Some(known) => known,
                None if streams.len() < MAX_STREAMS => {
                    names.push(line.process.clone());
                    streams.push(Vec::new());
                    streams.len() - 1
                }
                None => current,
            };
        }
        streams[current].push(line);
    }
    streams
}

fn join(lines: Vec<Line>, joining: Joining, is_cut: bool) -> Text {
    let mut text = Text { is_cut, ..Text::default() };
    let wrap = Wrap::of(&lines, joining);
    let mut previous: Option<(usize, String)> = None;
    let mut ends_sentence = false;
    for line in lines {
        let width = line.width();
        let glue = match &previous {
            None => "",
            Some(_) if joining == Joining::Wrapped => "",
            // Cut inside of a line, the space behind a full stop would begin the next one.
            Some(_) if ends_sentence && line.text.starts_with(|c: char| c.is_ascii_uppercase()) => "\n",
            Some((before, prefix)) => wrap.as_ref().and_then(|wrap| wrap.glue(*before, prefix, &line)).unwrap_or("\n"),
        };
        ends_sentence = wrap.as_ref().is_some_and(|wrap| !wrap.is_between_words) && line.text.ends_with('.');
        text.joined += usize::from(previous.is_some() && glue != "\n");
        text.text.push_str(glue);
        let cut = if glue == " " { line.text.len() - line.text.trim_start().len() } else { 0 };
        previous = Some((width, line.prefix.clone()));
        let place = LinePosition { offset: line.offset, line: line.number, prefix: line.prefix, process: line.process };
        text.lines.push((text.text.len(), place));
        text.text.push_str(&line.text[cut..]);
    }
    if !text.is_cut {
        text.text.push('\n');
    }
    text
}

/// The width at which lines were wrapped.
struct Wrap {
    width: usize,
    /// The widest line of each depth of quoting: who quotes does not wrap again.
    widths: Vec<usize>,
    is_between_words: bool,
}

/// No terminal is narrower.
const MIN_WIDTH: usize = 40;
/// Widths that terminals mostly have; another one is believed where several lines have it.
const WIDTHS: [usize; 10] = [72, 78, 79, 80, 100, 120, 132, 140, 160, 200];

/// Hardly anything is wrapped at a greater width than this.
const LONG: usize = 120;
/// Lines wider than the width that others were wrapped at.
const OUTLIERS: usize = 2;

impl Wrap {
    /// The wrapping of lines; `None` where there is none.
    fn of(lines: &[Line], joining: Joining) -> Option<Self> {
        let is_between_words = joining == Joining::Words;
        let width = lines.iter().map(Line::width).max().filter(|&width| width >= MIN_WIDTH)?;
        let widths = (0..=MAX_DEPTH).map(|deep| {
            let mut widths: Vec<usize> =
                lines.iter().filter(|line| depth(&line.prefix) == deep).map(Line::width).collect();
            widths.sort_unstable_by(|a, b| b.cmp(a));
            // Lines that stand far out are not wrapped.
            let outliers =
                widths.windows(2).take(OUTLIERS).position(|pair| pair[0] > LONG && pair[0] * 10 > pair[1] * 13);
            widths.get(outliers.map_or(0, |at| at + 1)).copied().unwrap_or_default()
        });
        let widths: Vec<usize> = widths.collect();
        // A longer line or two may have been printed around a window that is narrower.
        let full = |width: usize| lines.iter().filter(|line| line.width() == width).count();
        let narrower = |width: usize| lines.iter().map(Line::width).filter(|&other| other < width).max();
        let widths_down = std::iter::successors(Some(width), |&width| narrower(width)).take(OUTLIERS + 1);
        let is_usual = |width: usize| full(width) > 1 || WIDTHS.contains(&width);
        let likely =
            widths_down.enumerate().find(|&(at, width)| if at == 0 { is_usual(width) } else { full(width) > 2 });
        let likely = likely.map(|(_, width)| width);
        let width = if is_between_words { width } else { likely.filter(|&width| width >= MIN_WIDTH).unwrap_or(width) };
        let is_likely = is_between_words || likely.is_some();
        (matches!(joining, Joining::Words | Joining::Width) && is_likely).then_some(Self {
            width,
            widths,
            is_between_words,
        })
    }

    /// What stood between a line of some width and the next one, where they were one line.
    fn glue(&self, before: usize, prefix: &str, line: &Line) -> Option<&'static str> {
        let own = line.prefix.trim_matches([' ', '>', '#', '|', '\u{2502}']);
        if line.text.trim().is_empty() || !(own.is_empty() || line.prefix == prefix) {
            return None;
        }
        if !self.is_between_words {
            return (before == self.width).then_some("");
        }
        let word = line.text.split_whitespace().next().map_or(0, |word| word.chars().count());
        let width = self.widths[depth(&line.prefix)];
        (before >= MIN_WIDTH && before <= width && before + 1 + word > width).then_some(" ")
    }
}

/// Deeper quoting is taken for this one.
const MAX_DEPTH: usize = 8;

/// How often a line is quoted.
fn depth(prefix: &str) -> usize {
    prefix.bytes().take_while(|byte| matches!(byte, b'>' | b' ')).filter(|&byte| byte == b'>').count().min(MAX_DEPTH)
}

/// Takes away the beginning that all lines share, digits standing for each other; up to the last space or bracket.
fn cut_shared_prefix(lines: &mut [Line]) {
    let mut filled = lines.iter().map(|line| line.text.as_str()).filter(|line| !line.trim().is_empty());
    let Some(first) = filled.next() else { return };
    let mut shared = first.len().min(400);
    let mut count = 1;
    for line in filled {
        count += 1;
        let same = first
            .bytes()
            .zip(line.bytes())
            .take(shared)
            .take_while(|(a, b)| a == b || (a.is_ascii_digit() && b.is_ascii_digit()))
            .count();
        shared = shared.min(same);
    }
    let boundary = first.as_bytes()[..shared].iter().rposition(|b| b" ]:|>)\t".contains(b));
    let Some(cut) = boundary.map(|at| at + 1).filter(|_| count > 1) else { return };
    for line in lines {
        if line.text.is_char_boundary(cut) && line.text.len() >= cut {
            line.prefix = line.text[..cut].to_owned();
            line.text.drain(..cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &str) -> Vec<String> {
        let excerpt = Excerpt { bytes: bytes.as_bytes().to_vec(), offset: 0, line: 1, is_last: true };
        streams(&excerpt, Joining::Lines, &Progress::default()).into_iter().map(|text| text.text).collect()
    }

    #[test]
    fn colours_are_taken_away() {
        let mut out = Vec::new();
        strip_colors(b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07text\x1b", &mut out);
        assert_eq!(out, b"red text");
    }

    #[test]
    fn layers_are_taken_away_however_they_nest() {
        let nested = r#"2024-01-02T03:04:05Z stderr F {"log":"{\"msg\":\"\\u001b[31mRan out of memory\\u001b[0m\\n  1. Size: 2.00G\"}\n"}"#;
        assert_eq!(texts(&format!("{nested}\n")), ["Ran out of memory\n  1. Size: 2.00G\n"]);
    }

    #[test]
    fn a_sentence_that_ends_at_the_width_of_a_terminal_is_not_joined_with_the_next() {
        let first = format!("{}.", "x".repeat(79));
        let excerpt = |second: &str| Excerpt {
            bytes: format!("{first}\n{second}\n").into_bytes(),
            offset: 0,
            line: 1,
            is_last: true,
        };
        let joined = |second: &str| streams(&excerpt(second), Joining::Width, &Progress::default()).remove(0).text;
        assert_eq!(joined("See there"), format!("{first}\nSee there\n"));
        assert_eq!(joined("5 GiB"), format!("{first}5 GiB\n"));
    }

    #[test]
    fn interleaved_processes_are_streams() {
        assert_eq!(texts("[rank0]: a\n[rank1]: b\n[rank0]: c\nd\n"), ["a\nc\nd\n", "b\n"]);
    }
}
