//! The BFC allocator of TensorFlow and XLA: the failed request, its bins, chunks, statistics and map.

use super::found::Found;
use super::pattern::{bytes_of, patterns, size, size_value, text_value};
use crate::model::{BfcBin, BfcChunk, Bytes, Failure, FailureKind, FailureValue, PrintedSize};
use crate::source::Progress;

patterns! {
    HEAD = r"Allocator(?: \(([^()\n]{1,100})\))? ran out of memory trying to allocate <H>(?: \(rounded to <N>(?: Bytes)?\))?";
    BY_OP = r"^\s*requested by op[ \t]*([^\n]*)\n";
    /// The count stands only in the warning, whose end says that it is none.
    NOT_A_FAILURE = r"The caller indicates that this is not a failure|with freed_by_count=";
    DUMP = r"BFCAllocator dump for (\S+)\n";
    BIN = r"Bin \((\d+)\):\s*Total Chunks: (\d+), Chunks in use: (\d+)[. ]";
    CHUNK = r"\b(Chunk|InUse|Free) at (?:0x)?([0-9a-fA-F]{1,16}) of size (\d+)(?:[ \t]+(?:tag|next|by|allocation_annotation|lower|upper)([^\n]*))?[ \t]*\n";
    ANNOTATION = r"allocation_annotation \[([^\]\n]*)\]";
    SUMMARY = r"Summary of in-use Chunks by size";
    BY_SIZE = r"<N> Chunks of size <N> totalling";
    SUM = r"Sum Total of in-use chunks: <H>";
    REGION = r"Next region of size (\d+)\n";
    POOL = r"Total (?:size in pool|bytes in pool): <H> memory_limit_: <H> available (?:size|bytes): <H> curr_region_allocation_bytes_: <H>";
    MEMORY_SUMMARY = r"Allocator memory summary: rounded request <H>, total free in pool <H>, largest free chunk usable by \w+ end <H>, unallocated bytes <H>, pool size <H>, pool limit <H>";
    SPATIAL = r"Spatial partitioning summary for (\w+) end: central gap <H>, largest same-end binned free chunk <H>, largest binned free chunk from any end <H>";
    STATS = r"Stats:[ \t]*\n";
    STAT = r"^.*?\b(Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize|Reserved|PeakReserved|LargestFreeBlock):[ \t]+(\d+(?:\.\d+)?(?:(?:[KMGTPE]i)?B)?)[ \t]*$";
    MAP = r"(?m)(?:^|\s)([*x_]{100})[ \t]*\n";
}

/// Lines of `Stats:` that are looked at.
const STAT_LINES: usize = 14;
/// Chunks that are kept; a pool of more is described by its bins.
const MAX_CHUNKS: usize = 2_000_000;

/// The allocator's messages in a text, with everything up to its next message; once it was cancelled, not with all of it.
pub fn find(text: &str, progress: &Progress, found: &mut Vec<Found>) {
    let mut heads: Vec<Found> = HEAD
        .captures_iter(text)
        .map(|captures| {
            let mut new = Found::new(FailureKind::BfcOom, &captures);
            new.text("allocator", &captures, 1);
            // A unit at the very end of a text may have lost its end.
            if captures.get(2).is_some_and(|size| size.end() < text.len()) {
                new.size("requested", &captures, 2);
            }
            new.bytes("rounded", &captures, 3);
            if let Some(op) = BY_OP.captures(text.get(new.end..).unwrap_or("")).and_then(|c| c.get(1))
                && !op.as_str().trim().is_empty()
            {
                new.put("op", Some(text_value(op.as_str().trim())));
            }
            new
        })
        .collect();
    // A dump whose first line is lost is still a dump.
    let first = heads.first().map_or(text.len(), |head| head.start);
    for pattern in [&*DUMP, &*BIN, &*CHUNK, &*POOL, &*STATS, &*SUM] {
        if let Some(captures) = pattern.captures(&text[..first]) {
            let mut new = Found::new(FailureKind::BfcOom, &captures);
            new.end = new.start;
            let mut whole = new.failure;
            details(&mut whole, &text[new.start..first], progress);
            // `Stats:` is a word of many programs; only its numbers make it this one.
            if !whole.bins.is_empty() || !whole.chunks.is_empty() || whole.get("max_in_use").is_some() {
                heads.insert(
                    0,
                    Found {
                        start: new.start,
                        end: new.start,
                        failure: Failure {
                            is_error: true,
                            kind: FailureKind::BfcOom,
                            message: whole.message,
                            ..Failure::default()
                        },
                    },
                );
                break;
            }
        }
    }
    let starts: Vec<usize> = heads.iter().map(|head| head.start).chain([text.len()]).collect();
    for (head, window) in heads.iter_mut().zip(starts.windows(2)) {
        details(&mut head.failure, &text[window[0]..window[1]], progress);
        kind(&mut head.failure, &text[window[0]..window[1]]);
    }
    found.append(&mut heads);
}

fn kind(failure: &mut Failure, section: &str) {
    failure.kind = if NOT_A_FAILURE.is_match(super::head::head_of(section, 2000)) {
        failure.is_error = false;
        FailureKind::BfcSoftWarning
    } else if !failure.bins.is_empty() || !failure.chunks.is_empty() {
        FailureKind::BfcDump
    } else if failure.get("max_in_use").is_some() && failure.get("allocator").is_none() {
        FailureKind::BfcStats
    } else {
        FailureKind::BfcOom
    };
    // The rounded number is the better one, and the printed one only near it.
    if failure.kind != FailureKind::BfcDump
        && failure.get("rounded").is_some()
        && let Some(text) = failure.size("requested").and_then(|size| size.text.clone())
    {
        failure.fields.retain(|(key, _)| *key != "requested");
        failure.set("requested", FailureValue::Text(text));
    }
}

fn captured(captures: &regex::Captures<'_>, group: usize) -> Option<u64> {
    captures.get(group).and_then(|m| m.as_str().parse().ok())
}

fn details(failure: &mut Failure, section: &str, progress: &Progress) {
    if let Some(captures) = DUMP.captures(section)
        && let Some(name) = captures.get(1)
    {
        failure.set("allocator", text_value(name.as_str()));
    }
    for captures in BIN.captures_iter(section) {
        if let (Some(bin), Some(chunks), Some(in_use)) =
            (captured(&captures, 1), captured(&captures, 2), captured(&captures, 3))
        {
            // The dump of another allocator begins with its smallest bin again.
            if failure.bins.last().is_some_and(|last| last.bin >= bin) {
                break;
            }
            failure.bins.push(BfcBin { bin, chunks, in_use });
        }
    }
    let summary = SUMMARY.find(section).map(|m| m.start());
    for captures in CHUNK.captures_iter(&section[..summary.unwrap_or(section.len())]).take(MAX_CHUNKS) {
        if progress.check().is_err() {
            return;
        }
        let address = captures.get(2).and_then(|m| u64::from_str_radix(m.as_str(), 16).ok());
        let (Some(address), Some(size)) = (address, captured(&captures, 3)) else { continue };
        let annotation = captures.get(4).and_then(|rest| ANNOTATION.captures(rest.as_str()));
        failure.chunks.push(BfcChunk {
            address,
            size: Bytes(size),
            in_use: captures.get(1).is_none_or(|m| m.as_str() != "Free"),
            annotation: annotation.and_then(|c| c.get(1)).map(|m| m.as_str().to_owned()),
        });
    }
    if let Some(captures) = POOL.captures(section) {
        for (key, group) in [("pool", 1), ("limit", 2), ("available", 3), ("region", 4)] {
            if let Some(value) = captures.get(group).and_then(|m| size_value(m.as_str())) {
                failure.statistics.push((key, value));
            }
        }
    }
    if let Some(captures) = MEMORY_SUMMARY.captures(section) {
        for (key, group) in [("total_free", 2), ("largest_free", 3), ("unallocated", 4), ("pool", 5), ("pool_limit", 6)]
        {
            if let Some(value) = captures.get(group).and_then(|m| size_value(m.as_str())) {
                failure.set(key, value);
            }
        }
    }
    if let Some(captures) = SPATIAL.captures(section) {
        for (key, group) in [("central_gap", 2), ("largest_same_end", 3), ("largest_any_end", 4)] {
            if let Some(value) = captures.get(group).and_then(|m| size_value(m.as_str())) {
                failure.set(key, value);
            }
        }
    }
    if let Some(start) = summary {
        summarize(failure, &section[start..]);
    }
    if let Some(captures) = REGION.captures(section)
        && let Some(bytes) = captured(&captures, 1)
    {
        failure.set("region", FailureValue::Size(PrintedSize { text: None, bytes: Bytes(bytes) }));
    }
    statistics(failure, section);
    if let Some(captures) = MAP.captures(section)
        && let Some(map) = captures.get(1)
    {
        failure.set("map", text_value(map.as_str()));
    }
}

/// The sums, once all chunks are there: exact from the chunks, with the text as printed.
fn summarize(failure: &mut Failure, rest: &str) {
    for captures in BY_SIZE.captures_iter(rest) {
        if let (Some(count), Some(bytes)) = (captured(&captures, 1), captured(&captures, 2)) {
            failure.chunk_sizes.push((count, Bytes(bytes)));
        }
    }
    let printed = SUM.captures(rest).and_then(|c| c.get(1)).and_then(|m| size(m.as_str()));
    let sum = |in_use: bool| failure.chunks.iter().filter(|c| c.in_use == in_use).map(|c| c.size).sum::<Bytes>();
    // Chunks that were lost from the text (log rotation) would make a sum that is too small.
    let exact = Some(sum(true)).filter(|sum| {
        !failure.chunks.is_empty()
            && printed.as_ref().is_none_or(|printed| printed.text.as_deref().is_some_and(|text| agrees(text, *sum)))
    });
    let text = printed.as_ref().and_then(|printed| printed.text.clone());
    let bytes = exact.or(printed.map(|printed| printed.bytes));
    if let (Some(_), free) = (exact, sum(false)) {
        failure.set("free", FailureValue::Size(PrintedSize { text: None, bytes: free }));
    }
    if let Some(bytes) = bytes {
        failure.set("in_use", FailureValue::Size(PrintedSize { text, bytes }));
    }
}

/// Whether a printed size can be that of so many bytes: within one step of its last digit.
pub fn agrees(text: &str, bytes: Bytes) -> bool {
    let Some(printed) = bytes_of(text) else { return false };
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some(unit) = bytes_of(&format!("1{unit}")) else { return false };
    let digits = text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    let step = unit.checked_div(10u64.saturating_pow(digits as u32)).unwrap_or(0).max(1);
    printed.abs_diff(bytes.0) <= step
}

fn statistics(failure: &mut Failure, section: &str) {
    let Some(stats) = STATS.find(section) else { return };
    for line in section[stats.end()..].split_inclusive('\n').take(STAT_LINES) {
        // A number that the end of the text may have cut is none.
        if !line.ends_with('\n') {
            break;
        }
        let Some(captures) = STAT.captures(line.trim_end()) else { continue };
        let (Some(name), Some(text)) = (captures.get(1), captures.get(2)) else { continue };
        let text = text.as_str();
        let value = |text: &str| match text.parse::<u64>() {
            Ok(bytes) => Some(FailureValue::Size(PrintedSize { text: None, bytes: Bytes(bytes) })),
            Err(_) => size_value(text),
        };
        let entry = match name.as_str() {
            "Limit" => ("limit", value(text)),
            "InUse" => ("in_use", value(text)),
            "MaxInUse" => ("max_in_use", value(text)),
            "NumAllocs" => ("num_allocs", text.parse().ok().map(FailureValue::Count)),
            "MaxAllocSize" => ("max_alloc_size", value(text)),
            "Reserved" => ("reserved", value(text)),
            "PeakReserved" => ("peak_reserved", value(text)),
            _ => ("largest_free_block", value(text)),
        };
        let (key, Some(value)) = entry else { continue };
        // `in_use` of a dump is the sum of its chunks.
        if key == "in_use" && !failure.chunks.is_empty() {
            failure.statistics.push((key, value));
        } else {
            failure.set(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_sums_agree_with_exact_ones() {
        assert!(agrees("786.15MiB", Bytes(824_337_152)));
        assert!(!agrees("786.15MiB", Bytes(824_337_152 - 30_000)));
        assert!(!agrees("x", Bytes(1)));
    }

    #[test]
    fn a_dump_is_read_without_its_first_line() {
        let text = "Bin (256): \tTotal Chunks: 2, Chunks in use: 1. 512B allocated\nInUse at 7f00 of size 256 next 1\nFree  at 8000 of size 512 next 2\nSummary of in-use Chunks by size:\n1 Chunks of size 256 totalling 256B\nSum Total of in-use chunks: 256B\n";
        let mut found = Vec::new();
        find(text, &Progress::default(), &mut found);
        assert_eq!(found.len(), 1);
        let failure = &found[0].failure;
        assert_eq!(failure.kind, FailureKind::BfcDump);
        assert_eq!(failure.bins, [BfcBin { bin: 256, chunks: 2, in_use: 1 }]);
        assert_eq!(failure.chunks.len(), 2);
        assert_eq!((failure.bytes("in_use"), failure.bytes("free")), (Some(Bytes(256)), Some(Bytes(512))));
        let mut none = Vec::new();
        find("Stats: \nhits: 12\n", &Progress::default(), &mut none);
        assert!(none.is_empty());
    }
}
