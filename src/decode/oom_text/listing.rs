//! The TPU compiler's listing: `Total hbm usage`, `Program hbm requirement`, `Largest program allocations`.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::{Captures, Regex};

use super::found::Found;
use super::pattern::{patterns, size};
use super::shape;
use crate::model::{ListedAllocation, PrintedSize};

patterns! {
    // Each begins where its first word was found, see [`at_word`].
    TOTAL = r"^Total (\w+) usage >= <S>:";
    RESERVED = r"(?m)^reserved(?:\([^)\n]*\))?[ \t]+<S>[ \t]*$";
    PROGRAM = r"(?m)^program[ \t]+<S>[ \t]*(?:\([^)\n]*\)[ \t]*)?$";
    ARGUMENTS = r"(?m)^arguments[ \t]+<S>[ \t]*(?:\([^)\n]*\)[ \t]*)?$";
    HEAP = r"(?m)^heap allocations \([^)\n]*\)[ \t]+<S>[ \t]*$";
    PERSISTENT_OUTPUT = r"^output[ \t]+<S>";
    MAX_FREE = r"^Max free chunk <S>";
    OUTPUT = r"^Output size <S>(?: \([^)\n]*\))?; shares <S> with arguments";
    REQUIREMENT = r"^Program (\w+) requirement <S>:";
    PART = r"(?m)^(reserved|global|scoped|overlays|HLO temp|stack|program code|constants)[ \t]+<S>[ \t]*(\(.*)?$";
    UTILIZATION = r"(\d+(?:\.\d+)?)% utilization";
    UNPADDED = r"Unpadded \(<S>\)";
    PADDED = r"Padded \(<S>\)";
    FRAGMENTATION = r"(\d+(?:\.\d+)?)% fragmentation(?: \(<S>\))?";
    LARGEST = r"Largest program allocations in (\w+):";
    CAPACITY_TABLE = r"HBM capacity <S>:";
    EXTRA = r"^<S> \((\d+(?:\.\d+)?)x expansion\)";
    EXACT = r"(Top-of-Memory reserved|Currently allocated|Program requirement|Available after request): -?<S> \( (-?[\d,]+) bytes\)";
}

/// What names the field of a line of an entry. One search for all of them tells which pattern is worth trying.
const FIELDS: [&str; 9] = [
    ". Size:",
    "==========",
    "Operator: ",
    "Unpadded size:",
    "Extra memory due to padding:",
    "XLA label:",
    "Allocation type:",
    "Tag:",
    "Shape:",
];

#[expect(clippy::expect_used, reason = "constants; a test reads each")]
static FIELD: LazyLock<AhoCorasick> =
    LazyLock::new(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(FIELDS).expect("valid strings"));

/// The longest part of a section that is searched for the totals; they stand close to the sentence.
const TOTALS: usize = 16 << 10;
/// More entries than this are not kept.
const MAX_ENTRIES: usize = 100_000;

/// Reads the listing in a section into the failure.
pub fn read(found: &mut Found, section: &str, is_cut: bool) {
    let largest = LARGEST.find(section);
    let head = &section[..largest.as_ref().map_or_else(|| section.floor_char_boundary(TOTALS), |m| m.start())];
    totals(found, head);
    if let Some(largest) = largest {
        let entries = entries(&section[largest.end()..], is_cut);
        let last_is_open = entries.last().is_some_and(|entry| entry.allocation_type.is_none());
        found.failure.truncated |= last_is_open || (is_cut && entries.is_empty());
        found.failure.allocations = entries;
    } else if is_cut && found.failure.get("total").is_some() {
        found.failure.truncated = true;
    }
}

/// The words that [`PART`] may begin with.
const PARTS: [&str; 8] = ["reserved", "global", "scoped", "overlays", "HLO temp", "stack", "program code", "constants"];

/// Bytes behind a word in which its sentence ends.
const SENTENCE: usize = 400;

/// The groups of a pattern that begins with a word, at the first place of the word where it fits. A short text with a
/// known beginning is many times faster than a search.
fn at_word<'t>(pattern: &Regex, word: &str, text: &'t str) -> Option<(usize, Captures<'t>)> {
    text.match_indices(word).filter(|found| is_word_start(text, found.0)).find_map(|(at, _)| {
        let rest = super::head::head_of(&text[at..], SENTENCE);
        pattern.captures(rest).map(|captures| (at, captures))
    })
}

/// Whether no longer word ends at a place.
fn is_word_start(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn put_at_word(found: &mut Found, key: &'static str, pattern: &Regex, word: &str, text: &str) {
    if let Some((_, captures)) = at_word(pattern, word, text) {
        found.size(key, &captures, 1);
    }
}

fn totals(found: &mut Found, head: &str) {
    let total = at_word(&TOTAL, "Total", head);
    let requirement = at_word(&REQUIREMENT, "Program", head);
    let requirement_at = requirement.as_ref().map_or(head.len(), |found| found.0);
    if let Some((at, total)) = &total {
        found.size("total", total, 2);
        let start = at + total.get(0).map_or(0, |m| m.end());
        let part = head.get(start..requirement_at.max(start)).unwrap_or("");
        // Before the results: their line names the arguments too.
        let before_output = &part[..part.find("Output size").unwrap_or(part.len())];
        let before_output =
            &before_output[..before_output.find("Persistent allocations").unwrap_or(before_output.len())];
        put_at_word(found, "reserved", &RESERVED, "reserved", before_output);
        put_at_word(found, "program", &PROGRAM, "program", before_output);
        put_at_word(found, "arguments", &ARGUMENTS, "arguments", before_output);
        put_at_word(found, "heap_allocations", &HEAP, "heap", before_output);
        put_at_word(found, "largest_free", &MAX_FREE, "Max", part);
        if let Some(persistent) = part.find("Persistent allocations") {
            put_at_word(found, "arguments", &ARGUMENTS, "arguments", &part[persistent..]);
            put_at_word(found, "output", &PERSISTENT_OUTPUT, "output", &part[persistent..]);
        }
        if let Some((_, output)) = at_word(&OUTPUT, "Output", part) {
            found.size("output", &output, 1).size("output_shared", &output, 2);
        }
    }
    if let Some(table) = CAPACITY_TABLE.captures(head) {
        found.size("capacity", &table, 1);
        for row in EXACT.captures_iter(head) {
            let exact = row.get(3).and_then(|n| n.as_str().replace(',', "").parse::<u64>().ok());
            let text = row.get(2).map(|s| s.as_str().to_owned());
            let key = match row.get(1).map_or("", |m| m.as_str()).split_whitespace().next() {
                Some("Top-of-Memory") => "top_reserved",
                Some("Currently") => "allocated",
                Some("Program") => "requirement",
                // Negative: how much is missing.
                _ => "missing",
            };
            let negative = row.get(3).is_some_and(|n| n.as_str().starts_with('-'));
            if key == "missing" {
                let missing = row.get(3).and_then(|n| n.as_str().replace([',', '-'], "").parse::<u64>().ok());
                if let (true, Some(bytes), Some(text)) = (negative, missing, text) {
                    let size = PrintedSize { text: Some(text), bytes: crate::model::Bytes(bytes) };
                    found.put("missing", Some(crate::model::FailureValue::Size(size)));
                }
            } else if let (Some(bytes), Some(text)) = (exact, text) {
                let size = PrintedSize { text: Some(text), bytes: crate::model::Bytes(bytes) };
                found.put(key, Some(crate::model::FailureValue::Size(size)));
            }
        }
    }
    if let Some((at, requirement)) = &requirement {
        found.size("program_requirement", requirement, 2);
        let part = head.get(at + requirement.get(0).map_or(0, |m| m.end())..).unwrap_or("");
        let rows = part.lines().filter_map(|line| PARTS.iter().find_map(|word| at_word(&PART, word, line)));
        for (_, row) in rows.take(50) {
            let name = row.get(1).map_or("", |m| m.as_str());
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            let Some(printed) = row.get(2).and_then(|m| size(m.as_str())) else { continue };
            let rest = row.get(3).map_or("", |m| m.as_str());
            if name == "HLO temp" {
                found.put("temporaries", Some(crate::model::FailureValue::Size(printed.clone())));
                found.size_in("unpadded", &UNPADDED, rest);
                found.size_in("padded", &PADDED, rest);
                if let Some(captures) = FRAGMENTATION.captures(rest) {
                    found.size("fragmentation", &captures, 2);
                    found.put("fragmentation_percent", captures.get(1).map(|m| super::pattern::text_value(m.as_str())));
                }
                if let Some(captures) = UTILIZATION.captures(rest) {
                    found.put("utilization_percent", captures.get(1).map(|m| super::pattern::text_value(m.as_str())));
                }
            }
            found.failure.program_parts.push((name, printed));
        }
    }
}

/// A group of a pattern in a line. Asking whether a pattern fits allocates nothing, and most lines have another field.
pub fn capture<'t>(pattern: &Regex, line: &'t str, group: usize) -> Option<&'t str> {
    let captures: Captures<'t> = if pattern.is_match(line) { pattern.captures(line)? } else { return None };
    captures.get(group).map(|found| found.as_str())
}

/// The numbered entries. A field that the end of the text cuts is left out.
fn entries(text: &str, is_cut: bool) -> Vec<ListedAllocation> {
    let mut entries: Vec<ListedAllocation> = Vec::new();
    let mut open = false;
    let end = text.len();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        // Only a line whose end is there can be trusted to be whole.
        let whole = !(is_cut && at == end && !line.ends_with('\n'));
        let line = line.trim_end();
        let Some((field, before, text)) = field(line) else { continue };
        if field == ". Size:" {
            let Some(number) = number_at_end(before) else { continue };
            if entries.len() >= MAX_ENTRIES {
                break;
            }
            // Entries count up; one that starts again belongs to another listing.
            if entries.last().is_some_and(|last| number <= last.number) {
                break;
            }
            entries.push(ListedAllocation { number, size: whole_size(text), ..ListedAllocation::default() });
            open = true;
            continue;
        }
        let Some(entry) = entries.last_mut().filter(|_| open) else { continue };
        match field {
            "==========" if text.chars().all(|c| c == '=') => {
                finish_padding(entry);
                open = false;
            }
            "Operator: " if entry.operator.is_none() => read_operator(entry, text, whole),
            "Unpadded size:" => entry.unpadded = whole_size(text).or_else(|| entry.unpadded.take()),
            "Extra memory due to padding:" => {
                if let Some(captures) = EXTRA.captures(text) {
                    entry.padding = captures.get(1).and_then(|m| size(m.as_str()));
                    entry.expansion = captures.get(2).and_then(|m| m.as_str().parse().ok());
                }
            }
            "XLA label:" => {
                finish_padding(entry);
                read_label(entry, text, whole);
            }
            "Allocation type:" => {
                finish_padding(entry);
                entry.allocation_type = (whole && !text.is_empty()).then(|| text.to_owned());
            }
            "Tag:" => {
                finish_padding(entry);
                entry.tag = whole.then(|| text.to_owned());
            }
            "Shape:" if entry.shape_text.is_none() => read_shape(entry, text, whole),
            _ => {}
        }
    }
    entries
}

/// (name of the field, what stands before it, what it says) of a line of an entry.
fn field(line: &str) -> Option<(&'static str, &str, &str)> {
    let found = FIELD.find(line)?;
    let before = &line[..found.start()];
    let field = FIELDS[found.pattern().as_usize()];
    // The end of a longer word is no name of a field.
    let is_word = field.starts_with(|c: char| c.is_alphabetic());
    if is_word && before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    Some((field, before, line[found.end()..].trim()))
}

/// The number of an entry: `  12` before `. Size:`.
fn number_at_end(text: &str) -> Option<u32> {
    let start = text.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
    let is_alone = text[..start].is_empty() || text[..start].ends_with(char::is_whitespace);
    text[start..].parse().ok().filter(|_| is_alone && text.len() - start <= 6)
}

/// A size that is all of a text.
fn whole_size(text: &str) -> Option<PrintedSize> {
    size(text).filter(|_| text.starts_with(|c: char| c.is_ascii_digit()))
}

/// Where the line about padding could have stood and did not, there is none.
fn finish_padding(entry: &mut ListedAllocation) {
    if entry.expansion.is_none() && entry.unpadded.is_some() {
        entry.expansion = Some(1.0);
    }
}

fn read_shape(entry: &mut ListedAllocation, text: &str, whole: bool) {
    if let Some((shape, rest)) = shape::parse(text) {
        // A shape without layout at the very end of a cut text may have lost it.
        if whole || !rest.is_empty() || shape.root().layout.is_some() || shape.root().is_tuple() {
            entry.shape_text = Some(text[..text.len() - rest.len()].to_owned());
        }
        entry.shape = Some(shape);
    } else if let Some((node, _)) = shape::parse_array(text) {
        entry.shape = Some(crate::model::Shape::from_array(node));
    }
}

fn read_operator(entry: &mut ListedAllocation, text: &str, whole: bool) {
    entry.op_type = quoted(text, "op_type=\"").map(ToOwned::to_owned);
    entry.op_name = quoted(text, "op_name=\"").map(ToOwned::to_owned);
    if let Some(file) = quoted(text, "source_file=\"") {
        let line = text.find("source_line=").map(|at| &text[at + "source_line=".len()..]);
        let line = line.map(|rest| rest.split_whitespace().next().unwrap_or(""));
        let line = line.filter(|_| whole || !text.ends_with(|c: char| c.is_ascii_digit()));
        entry.source = Some((file.to_owned(), line.and_then(|line| line.parse().ok()).unwrap_or(0)));
    }
    if whole {
        entry.operator = Some(text.trim().to_owned());
    }
}

/// What stands in quotation marks behind the name of an attribute, which ends with the first mark.
fn quoted<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let at = text.find(name).filter(|&at| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))?;
    let rest = &text[at + name.len()..];
    let mut is_escaped = false;
    let end = rest.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })?;
    Some(&rest[..end])
}

fn read_label(entry: &mut ListedAllocation, text: &str, whole: bool) {
    let head = text.split_once(" = ").map(|(head, _)| head).or_else(|| whole.then_some(text.trim()));
    entry.label_head = head.map(|head| head.trim().trim_start_matches('%').to_owned());
    if whole {
        entry.label = Some(text.trim().to_owned());
    }
}

/// `name="value"` of the attributes of an operator, for other listings: (name of the operation, source).
pub fn operator(text: &str) -> (Option<String>, Option<(String, i32)>) {
    let mut entry = ListedAllocation::default();
    read_operator(&mut entry, text, true);
    (entry.op_name, entry.source)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "\n  1. Size: 1.00G\n     Operator: op_type=\"Mul\" op_name=\"a/b\" source_file=\"/x/y.py\" source_line=41\n     Shape: bf16[4096,1024,1]{2,1,0:T(8,128)(2,1)}\n     Unpadded size: 8.00M\n     Extra memory due to padding: 1016.00M (128.0x expansion)\n     XLA label: %copy.5 = bf16[4096,1024,1]{2,1,0:T(8,128)(2,1)} copy(p.1)\n     Allocation type: HLO temp\n     ==========================\n\n  2. Size: 512B\n     Shape: s32[16]{0:T(128)}\n     Unpadded size: 64B\n     XLA label: deduplicated constant\n     Allocation type: global\n     ==========================\n";

    #[test]
    fn entries_are_read() {
        let entries = entries(LISTING, false);
        assert_eq!(entries.len(), 2);
        let first = &entries[0];
        assert_eq!(first.op_type.as_deref(), Some("Mul"));
        assert_eq!(first.op_name.as_deref(), Some("a/b"));
        assert_eq!(first.source, Some(("/x/y.py".to_owned(), 41)));
        assert_eq!(first.label_head.as_deref(), Some("copy.5"));
        assert_eq!(first.expansion, Some(128.0));
        assert_eq!(first.shape.as_ref().and_then(|s| s.root().padded_size()).map(|b| b.0), Some(1 << 30));
        assert_eq!(entries[1].label_head.as_deref(), Some("deduplicated constant"));
        assert_eq!(entries[1].expansion, Some(1.0));
        assert_eq!(entries[1].allocation_type.as_deref(), Some("global"));
    }

    /// What the report has of a message is what the message has: quotes that another log escaped stay escaped, so that
    /// one can search for them.
    #[test]
    fn names_are_as_printed() {
        let listing = LISTING.replace("a/b", r"params[\'w\']");
        assert_eq!(entries(&listing, false)[0].op_name.as_deref(), Some(r"params[\'w\']"));
    }

    #[test]
    fn a_cut_entry_has_no_wrong_number() {
        let whole = entries(LISTING, false);
        for end in 0..LISTING.len() {
            for (cut, whole) in entries(&LISTING[..end], true).iter().zip(&whole) {
                assert_eq!(cut.number, whole.number);
                assert!(cut.size.is_none() || cut.size == whole.size, "{end}");
                assert!(cut.unpadded.is_none() || cut.unpadded == whole.unpadded, "{end}");
                assert!(cut.padding.is_none() || cut.padding == whole.padding, "{end}");
                assert!(cut.expansion.is_none() || cut.expansion == whole.expansion, "{end}");
                assert!(cut.label_head.is_none() || cut.label_head == whole.label_head, "{end}");
                assert!(cut.shape_text.is_none() || cut.shape_text == whole.shape_text, "{end}");
                let line = cut.source.as_ref().map_or(0, |s| s.1);
                assert!(line == 0 || Some(line) == whole.source.as_ref().map(|s| s.1), "{end}");
            }
        }
    }
}
