//! What PyTorch says, in every generation: 2018 (`cached`), 2020 and 2022 (`reserved in total by PyTorch`), from 2023 on
//! (`has a total capacity of`), the table of a limited process, and `memory_summary()`.

use super::found::Found;
use super::pattern::{patterns, size_value};
use crate::model::FailureKind;

patterns! {
    TRIED = r"\b(CUDA|HIP|XPU|NPU|MUSA|MPS) out of memory\. Tried to allocate <T>";
    OLD = r"^[\s.]*\(GPU (\d+); <T> total capacity; <T> already allocated; <T> free(?:; <T> (cached|reserved in total by PyTorch))?";
    CAPACITY = r"GPU (\d+) has a total capaci?ty of <T>(?: of which <T> is free)?";
    IN_USE = r"this process has <T> memory in use";
    OTHER = r"Process (\d+) has <T> memory in use";
    ALLOCATED = r"Of the allocated memory <T> is allocated by PyTorch";
    POOLS = r"with <T> allocated in private pools";
    UNALLOCATED = r"and <T> is reserved by PyTorch but unallocated";
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
    for captures in TRIED.captures_iter(text) {
        let kind = match captures.get(1).map_or("", |m| m.as_str()) {
            "HIP" => FailureKind::TorchHip,
            "XPU" => FailureKind::TorchXpu,
            _ => FailureKind::TorchCuda,
        };
        let mut new = Found::new(kind, &captures);
        new.size("requested", &captures, 2);
        found.push(new);
    }
    for captures in LIMITED.captures_iter(text) {
        let mut new = Found::new(FailureKind::TorchAllowedMemory, &captures);
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
    let near = super::head_of(section, WITHIN);
    match found.failure.kind {
        FailureKind::TorchCuda | FailureKind::TorchHip | FailureKind::TorchXpu => {
            if let Some(captures) = OLD.captures(near) {
                found.count("gpu", &captures, 1).size("capacity", &captures, 2).size("allocated", &captures, 3);
                found.size("free", &captures, 4);
                let is_cache = captures.get(6).is_some_and(|word| word.as_str() == "cached");
                found.size(if is_cache { "cached" } else { "reserved" }, &captures, 5);
            }
            if let Some(captures) = CAPACITY.captures(near) {
                found.count("gpu", &captures, 1).size("capacity", &captures, 2).size("free", &captures, 3);
            }
            found.size_in("in_use", &IN_USE, near).size_in("allocated", &ALLOCATED, near);
            found.size_in("private_pools", &POOLS, near).size_in("unallocated", &UNALLOCATED, near);
            if let Some(captures) = OTHER.captures(near) {
                found.count("other_process", &captures, 1).size("other_in_use", &captures, 2);
            }
        }
        FailureKind::TorchAllowedMemory => {
            found.size_in("allocated", &CURRENTLY, near).size_in("requested", &REQUESTED, near);
            found.size_in("capacity", &DEVICE_LIMIT, near).size_in("free", &DEVICE_FREE, near);
            found.size_in("limit", &LIMIT, near);
        }
        FailureKind::TorchMemorySummary => {
            let table = super::head_of(section, SUMMARY_WITHIN);
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
    fn generations_are_read() {
        let old = read(
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 4.00 GiB total capacity; 1.00 GiB already allocated; 3.00 MiB free; 5.00 KiB cached)\n",
        );
        assert_eq!(old.failure.bytes("cached"), Some(Bytes(5 << 10)));
        assert_eq!(old.failure.count("gpu"), Some(1));
        let new = read(
            "HIP out of memory. Tried to allocate 80.00 MiB. GPU 0 has a total capacty of 24.00 GiB of which 0 bytes is free. Of the allocated memory 44.00 MiB is allocated by PyTorch, and 12.00 MiB is reserved by PyTorch but unallocated.\n",
        );
        assert_eq!(new.failure.kind, FailureKind::TorchHip);
        assert_eq!(new.failure.bytes("free"), Some(Bytes(0)));
        assert_eq!(new.failure.bytes("unallocated"), Some(Bytes(12 << 20)));
        let limited = read(
            "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 11.93 GiB\nRequested               : 512.00 MiB\nDevice limit            : 15.90 GiB\nFree (according to CUDA): 22.81 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17.00 GiB\n",
        );
        assert_eq!(limited.failure.bytes("requested"), Some(Bytes(512 << 20)));
        assert_eq!(limited.failure.bytes("limit"), Some(Bytes(17 << 30)));
    }
}
