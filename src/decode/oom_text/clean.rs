//! Takes away what lies around a message: colours, carriage returns, log prefixes, quoting, escapes.

use regex::Regex;

use super::pattern::patterns;
use super::scan::Excerpt;

/// How lines are put together again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    /// As they are.
    Lines,
    /// Without the beginning that all lines share.
    SharedPrefix,
    /// Wrapped in the middle of words.
    Wrapped,
}

/// An excerpt as plain text, with the way back to the file.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the text of a text")]
pub struct Text {
    /// The text.
    pub text: String,
    /// (place in the text, place in the file, line in the file, prefix that was taken away), ascending.
    lines: Vec<(usize, u64, u64, String)>,
    /// Whether the file ends with it, without a line end.
    pub is_cut: bool,
}

impl Text {
    /// (byte offset in the file, line from 1, prefix) of a place in the text. Exact to the line.
    pub fn place(&self, at: usize) -> (u64, u64, &str) {
        let i = self.lines.partition_point(|line| line.0 <= at).saturating_sub(1);
        self.lines.get(i).map_or((0, 1, ""), |line| (line.1, line.2, line.3.as_str()))
    }
}

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

patterns! {
    PREFIX = concat!(
        "^(?:",
        // Quoting, comments and boxes; never what tables and maps are made of.
        r"(?:>|[#│┃]\s)\s?",
        // Date and time, with what log libraries put around them.
        r"|[\[(]?\d{4}[-/]\d\d[-/]\d\d[T\s]\s?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])]?:?\s",
        r"|[\[(]?\d\d:\d\d:\d\d(?:[.,]\d+)?[\])]?:?\s",
        // syslog: `Nov 21 16:01:47 host name[123]: `.
        r"|[A-Z][a-z]{2}\s{1,2}\d{1,2}\s\d\d:\d\d:\d\d\s\S+\s[^\s:]+:\s",
        // glog and absl: `E0118 22:42:45.7 123 file.cc:1] `, `I0000 00:00:1773083052.386475   70889 file.cc:1] `.
        r"|[IWEFD]\d{4}\s[\d:.]+\s+\d+\s[^\s\]]+:\d+\]\s?",
        // TensorFlow: `W tensorflow/core/file.cc:1] `.
        r"|[IWEFD]\s[^\s\]]+:\d+\]\s?",
        // Kubernetes: `stderr F `.
        r"|std(?:err|out)\s[FP]\s",
        // Levels and brackets: `ERROR 06-03 01:02:03 [core.py:1] `, `[rank0]:`, `[INFO] `, `(EngineCore pid=1) `.
        r"|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)[:\s]\s*(?:\d\d-\d\d\s[\d:.,]+\s)?",
        r"|\[[^\[\]\n=]{1,60}\]:?\s?",
        r"|\((?:[^()\n=]{1,60}\s)?(?:pid|ip|rank)=[^()\n]{1,60}\)\s?",
        // docker compose and kubectl: `pod/name-1 | `, `worker-0: `.
        r"|[\w./-]{1,60}\s+\|\s",
        r"|\w[\w./-]*[-_/]\d+:\s",
        ")"
    );
    BRACKET_OF_MESSAGE = r"^\[(?:shape|Op:)";
    PROCESS = r"\brank\s?(\d+)\b|\(([^()]*\bpid=\d+)\)|([\w./-]+)\s\|\s";
}

/// The length of everything in front of the line that is not its own.
fn prefix_len(line: &str) -> usize {
    let mut at = 0;
    for _ in 0..12 {
        let rest = &line[at..];
        let blank = rest.len() - rest.trim_start().len();
        let trimmed = &rest[blank..];
        if BRACKET_OF_MESSAGE.is_match(trimmed) {
            break;
        }
        match find_prefix(&PREFIX, trimmed) {
            Some(len) if len > 0 => at += blank + len,
            _ => break,
        }
    }
    at
}

fn find_prefix(pattern: &Regex, line: &str) -> Option<usize> {
    // A prefix ends early; a line may be long.
    let mut end = line.len().min(400);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    pattern.find(&line[..end]).map(|found| found.end())
}

/// Who wrote a line, by its prefix.
pub fn process(prefix: &str) -> Option<String> {
    let found = PROCESS.captures(prefix)?;
    if let Some(rank) = found.get(1) {
        return Some(format!("rank {}", rank.as_str()));
    }
    found.get(2).or_else(|| found.get(3)).map(|name| name.as_str().trim().to_owned())
}

/// Cleans an excerpt.
pub fn clean(excerpt: &Excerpt, joining: Joining) -> Text {
    let mut text =
        Text { is_cut: excerpt.is_last && excerpt.bytes.last().is_some_and(|&b| b != b'\n'), ..Text::default() };
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut offset = excerpt.offset;
    let mut raw = Vec::new();
    for line in excerpt.bytes.split_inclusive(|&b| b == b'\n') {
        raw.clear();
        strip_colors(line, &mut raw);
        let cleaned = String::from_utf8_lossy(&raw);
        // The bar of a progress display goes back to the line's beginning.
        let cleaned = cleaned.trim_end_matches(['\n', '\r']).replace('\r', "\n").replace('\u{a0}', " ");
        lines.push((offset, cleaned));
        offset += line.len() as u64;
    }
    let shared = if joining == Joining::SharedPrefix { shared_prefix(&lines) } else { 0 };
    for (i, (offset, line)) in lines.iter().enumerate() {
        let cut = if shared > 0 { shared.min(line.len()) } else { prefix_len(line) };
        let cut = if line.is_char_boundary(cut) { cut } else { 0 };
        if !text.text.is_empty() && joining != Joining::Wrapped {
            text.text.push('\n');
        }
        text.lines.push((text.text.len(), *offset, excerpt.line + i as u64, line[..cut].to_owned()));
        let body = &line[cut..];
        match unescape(body) {
            Some(unescaped) => text.text.push_str(&unescaped),
            None => text.text.push_str(body),
        }
    }
    if !text.is_cut {
        text.text.push('\n');
    }
    text
}

/// A message that was printed as one string: `\n` for line ends, quotes with a backslash.
fn unescape(line: &str) -> Option<String> {
    let first = line.find("\\n")?;
    let head = &line[..first];
    let is_message =
        ["Ran out of memory", "ut of memory while", "Attempting to ", "RESOURCE_EXHAUSTED", "ut of memory. Tried"]
            .iter()
            .any(|start| head.contains(start));
    if !is_message {
        return None;
    }
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => {}
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    Some(out)
}

/// Length of the beginning that all lines share, digits standing for each other; up to the last space or bracket.
fn shared_prefix(lines: &[(u64, String)]) -> usize {
    let mut filled = lines.iter().map(|(_, line)| line.as_str()).filter(|line| !line.trim().is_empty());
    let Some(first) = filled.next() else { return 0 };
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
    if count < 2 {
        return 0;
    }
    let boundary = first.as_bytes()[..shared].iter().rposition(|b| b" ]:|>)\t".contains(b));
    boundary.map_or(0, |i| i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_taken_away_and_messages_are_not() {
        for prefix in [
            "> ",
            "> > ",
            "E0118 22:42:45.712345     123 file.cc:1] ",
            "I0000 00:00:1773083052.386475   70889 bfc_allocator.cc:1119] ",
            "2024-05-28 07:02:44.349554: W external/tsl/tsl/framework/bfc_allocator.cc:482] ",
            "2024-05-28T07:02:44.349554Z stderr F ",
            "(EngineCore_DP0 pid=4242) ",
            "(EngineCore pid=1) ERROR 06-03 01:02:03 [core.py:1] ",
            "[rank0]: ",
            "[2022-12-07 10:11:12.131] [poptorch:cpp] [error] ",
            "trainer-0  | ",
            "Nov 21 16:01:47 host python[123]: ",
            "        ",
        ] {
            for message in
                ["1. Size: 16.00G", "Ran out of memory in", "reserved   528.00M", "Bin (256): \tTotal Chunks: 7"]
            {
                let line = format!("{prefix}{message}");
                assert_eq!(line[prefix_len(&line)..].trim_start(), message, "{line}");
            }
        }
        assert_eq!(prefix_len("[shape = 'u8[1]{0}', space=vmem"), 0);
        assert_eq!(process("[rank3]: ").as_deref(), Some("rank 3"));
        assert_eq!(process("(EngineCore_DP0 pid=4242) ").as_deref(), Some("EngineCore_DP0 pid=4242"));
    }

    #[test]
    fn colours_and_escapes_are_taken_away() {
        let mut out = Vec::new();
        strip_colors(b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07text\x1b", &mut out);
        assert_eq!(out, b"red text");
        let escaped = r#"RESOURCE_EXHAUSTED: x\n  op_name=\"jit(f)\\n\" \'a\'"#;
        assert_eq!(unescape(escaped).as_deref(), Some("RESOURCE_EXHAUSTED: x\n  op_name=\"jit(f)\\n\" 'a'"));
        assert_eq!(unescape(r#"Operator: op_name="a\n b""#), None);
    }

    #[test]
    fn a_shared_beginning_is_found() {
        let lines = vec![(0, "x9y 12:33 ## Ran out of memory in".to_owned()), (9, "x9y 12:34 ## memory".to_owned())];
        assert_eq!(shared_prefix(&lines), "x9y 12:33 ## ".len());
    }
}
