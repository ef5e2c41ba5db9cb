//! `*-live-range.txt`: XLA's own live ranges of every value, in program order.

use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{LiveRangeTable, Profile};
use crate::source::Input;

/// XLA's live-range report.
pub struct LiveRangeDecoder;

const HEAD: &[u8] = b"HloLiveRange (max ";

impl Decoder for LiveRangeDecoder {
    fn format(&self) -> &'static str {
        "XLA live-range report"
    }

    fn reads(&self) -> Reads {
        Reads { family: Family::XlaDump, words: "XLA's live ranges, as text", patterns: &["*-live-range.txt"] }
    }

    fn recognises(&self, input: &Input) -> bool {
        input.head().trim_ascii_start().starts_with(HEAD)
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let text = String::from_utf8_lossy(&bytes);
        let table = parse(&text, input.name(), context);
        Ok(Profile { live_ranges: Some(table), ..Profile::default() })
    }
}

fn parse(text: &str, path: &str, context: Context<'_>) -> LiveRangeTable {
    #[derive(PartialEq)]
    enum Section {
        Head,
        Sequence,
        Ranges,
    }
    let mut table = LiveRangeTable { path: path.to_owned(), ..LiveRangeTable::default() };
    let mut section = Section::Head;
    let mut offset = 0u64;
    for line in text.split_inclusive('\n') {
        let at = offset;
        offset += line.len() as u64;
        let line = line.trim_end();
        let body = line.trim_start();
        if let Some(rest) = body.strip_prefix("HloLiveRange (max ") {
            table.max = rest.trim_end_matches("):").parse().unwrap_or(0);
        } else if body == "InstructionSequence:" {
            section = Section::Sequence;
        } else if body == "BufferLiveRange:" {
            section = Section::Ranges;
        } else if body.starts_with("Live ranges at ") || body.starts_with("Peak memory could not") {
            break;
        } else if section == Section::Sequence {
            match body.split_once(':') {
                Some((_, name)) => table.sequence.push(name.to_owned()),
                None if body.is_empty() => {}
                None => context.reporter.warn("a line of the instruction sequence is not 'number:name'", Some(at)),
            }
        } else if section == Section::Ranges && !body.is_empty() {
            match range(body) {
                Some(row) => table.rows.push(row),
                None => context.reporter.warn("a live range is not 'name{index}:start-end'", Some(at)),
            }
        }
    }
    table
}

/// `name{index}:start-end`.
fn range(line: &str) -> Option<(String, u32, u32)> {
    let (name, range) = line.rsplit_once(':')?;
    let (start, end) = range.split_once('-')?;
    Some((name.to_owned(), start.parse().ok()?, end.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Reporter;
    use crate::source::Progress;

    #[test]
    fn rows_are_read_and_damage_is_placed() {
        let text = "HloLiveRange (max 3):\n  InstructionSequence:\n    0:a\n    1:b\n  BufferLiveRange:\n    a{}:0-3\n    b{0,1}:1-2\n    c{}:1\n";
        let (progress, reporter) = (Progress::default(), Reporter::default());
        let table = parse(text, "x", Context { progress: &progress, reporter: &reporter });
        assert_eq!(table.max, 3);
        assert_eq!(table.sequence, ["a", "b"]);
        assert_eq!(table.rows, [("a{}".to_owned(), 0, 3), ("b{0,1}".to_owned(), 1, 2)]);
        let notes = reporter.finish();
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].offset, Some(text.find("    c{}").unwrap_or(0) as u64));
    }
}
