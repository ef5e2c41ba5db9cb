//! Tables that PyTorch prints: that of a limited process, and `memory_summary()`.

use super::found::Found;
use super::pattern::{patterns, size, size_value};
use super::size::NO_LIMIT;
use crate::model::{Bytes, FailureKind, FailureValue};

patterns! {
    LIMITED = r"Allocation on device (\d+) would exceed allowed memory\. \(out of memory\)";
    CURRENTLY = r"Currently allocated\s*: <T>";
    REQUESTED = r"Requested\s*: <T>";
    DEVICE_LIMIT = r"Device limit\s*: <T>";
    DEVICE_FREE = r"Free \(according to \w+\)\s*: <T>";
    LIMIT = r"PyTorch limit \(set by user-supplied memory fraction\)\s*: <T>";
    SUMMARY = r"PyTorch CUDA memory summary, device ID (\d+)[ \t|\n]";
    OOMS = r"CUDA OOMs:[ \t]*(\d+)[ \t]*\|";
    RETRIES = r"cudaMalloc retries:[ \t]*(\d+)[ \t]*\|";
    METRIC = r"(?m)\|[ \t]*(Allocated memory|Active memory|GPU reserved memory|Non-releasable memory)[ \t]*\|[ \t]*(\d+ [KMGT]?i?B)[ \t]*\|[ \t]*(\d+ [KMGT]?i?B)[ \t]*\|";
}

/// How far behind the sentence its numbers stand.
const WITHIN: usize = 1800;
/// How long a summary is.
const SUMMARY_WITHIN: usize = 8 << 10;

/// Every message in a text.
pub fn find(text: &str, found: &mut Vec<Found>) {
    for captures in LIMITED.captures_iter(text) {
        let mut new = Found::new(FailureKind::TorchCuda, &captures);
        new.count("gpu", &captures, 1);
        found.push(new);
    }
    for captures in SUMMARY.captures_iter(text) {
        let mut new = Found::new(FailureKind::TorchMemorySummary, &captures);
        new.count("gpu", &captures, 1);
        found.push(new);
    }
}

/// Reads the numbers behind the sentence.
pub fn details(found: &mut Found, section: &str) {
    let near = super::head::head_of(section, WITHIN);
    match found.failure.kind {
        FailureKind::TorchCuda => {
            found.size_in("allocated", &CURRENTLY, near).size_in("requested", &REQUESTED, near);
            found.size_in("capacity", &DEVICE_LIMIT, near).size_in("free", &DEVICE_FREE, near);
            // No limit is printed as the largest number there is.
            let limit = LIMIT.captures(near).and_then(|captures| size(captures.get(1)?.as_str()));
            if let Some(limit) = limit.filter(|limit| limit.bytes < Bytes(NO_LIMIT)) {
                found.put("limit", Some(FailureValue::Size(limit)));
                found.failure.kind = FailureKind::TorchCudaLimit;
            }
        }
        FailureKind::TorchMemorySummary => {
            let table = super::head::head_of(section, SUMMARY_WITHIN);
            found.count_in("ooms", &OOMS, table).count_in("retries", &RETRIES, table);
            for row in METRIC.captures_iter(table).take(20) {
                let now = row.get(2).and_then(|m| size_value(m.as_str()));
                let peak = row.get(3).and_then(|m| size_value(m.as_str()));
                let name = row.get(1).map_or("", |m| m.as_str());
                if name.starts_with("Allocated") {
                    found.put("allocated", now).put("peak", peak);
                } else if name.starts_with("GPU") {
                    found.put("reserved", now).put("peak_reserved", peak);
                } else if name.starts_with("Active") {
                    found.put("active", now);
                } else {
                    found.put("non_releasable", now);
                }
            }
            // The summary counts failures; without one it only reports.
            found.failure.is_error = found.failure.count("ooms").is_none_or(|ooms| ooms > 0);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bytes;

    fn read(text: &str) -> Found {
        let mut found = Vec::new();
        find(text, &mut found);
        let mut first = found.remove(0);
        let end = first.end;
        details(&mut first, &text[end..]);
        first
    }

    #[test]
    fn the_table_of_a_limited_process_is_read() {
        let limited = read(
            "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 11.93 GiB\nRequested               : 512.00 MiB\nDevice limit            : 15.90 GiB\nFree (according to CUDA): 22.81 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17.00 GiB\n",
        );
        assert_eq!(limited.failure.bytes("requested"), Some(Bytes(512 << 20)));
        assert_eq!(limited.failure.bytes("limit"), Some(Bytes(17 << 30)));
    }
}
