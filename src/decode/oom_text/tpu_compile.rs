//! What the TPU compiler says when a program does not fit.
//!
//! Forms: the sentence of libtpu up to 2025 with its listing, `E1000`/`E1001` of today's, the early abort, the single
//! array that is too large, TensorCore and SparseCore together.

use super::found::Found;
use super::listing;
use super::pattern::{bytes_value, patterns, text_value};
use crate::model::FailureKind;

patterns! {
    RAN_OUT = r"Ran out of memory in memory space (\w+)\.(?: Used <S> of <S> (\w+)\.?(?: Exceeded \w+ capacity by <S>)?)?(?:\. HLO module: ([\w.-]+?)\.?\s)?";
    EARLY = r"Ran out of memory on (\w+), the total memory required for [\w ]+? \(<S>\) exceeds available \w+ \(<S>\)(?:\. HLO module: ([\w.$-]+?)\.?\s)?";
    ABORT = r"Aborting compilation early because it's unlikely to have enough (?:device )?memory\. Requires <S>, has <S> available";
    TENSORCORE = r"TPU TensorCore Hbm usage: <S>, SparseCore Hbm usage:? <S>, exceeding available bytes: <S>";
    EXCEEDS = r"Allocation \(size=<N>\) would exceed memory \(size=<N>\)(?: :: (#\w+) \[shape = '([^']*)', space=(\w+), size = (0x[0-9a-fA-F]+), (?:(scoped), )?tag = '([^']*)'\](?: :: (\S+)\s)?)?";
    SCOPED = r"Ran out of memory in memory space (\w+) while allocating on stack for (%?[\w.-]+)";
    SCOPED_TAIL = r"Scoped allocation with size <S> and limit <S> exceeded scoped (\w+) limit by <S>";
    NO_SIZE = r"^\s*(?:It should not be possible to run out of \w+|Please file a bug)";
    SPARSECORE = r"current allocation offset upper bound \(<N> words\) exceeds the legitimate user allocatable offset upper bound \(<N> words\) in memory space <N> when allocating <N> words";
    SCOPED_SHAPE = r"while allocating on stack for %?[\w.-]+ = ([a-z]\w*\[[\d,]*\](?:\{[^}]*\})?)";
}

/// Memory spaces of the SparseCore by their numbers, as OpenXLA's page on E3000 lists them.
const SPARSECORE_SPACES: [(&str, &str); 5] =
    [("0", "smem"), ("201", "tile_spmem"), ("202", "spmem"), ("203", "hbm"), ("204", "sync_flags")];

/// How far behind the instruction its numbers may stand.
const SCOPED_WITHIN: usize = 20_000;

/// Every message of the compiler in a text.
pub fn find(text: &str, found: &mut Vec<Found>) {
    let mut scoped = Vec::new();
    for captures in SCOPED.captures_iter(text) {
        let mut new = Found::new(FailureKind::TpuScopedVmem, &captures);
        new.put("space", captures.get(1).map(|space| text_value(&space.as_str().to_lowercase())));
        new.put("instruction", captures.get(2).map(|name| text_value(name.as_str().trim_start_matches('%'))));
        // The instruction stands between, and may be long.
        let behind = super::head::head_of(&text[new.end..], SCOPED_WITHIN);
        let Some(tail) = SCOPED_TAIL.captures(behind) else { continue };
        new.size("used", &tail, 1).size("capacity", &tail, 2).size("exceeded", &tail, 4);
        new.end += tail.get(0).map_or(0, |m| m.end());
        if let Some(shape) = SCOPED_SHAPE.captures(&text[new.start..new.end]) {
            new.text("shape", &shape, 1);
        }
        scoped.push(new.start..new.end);
        found.push(new);
    }
    let inside = |at: usize| scoped.iter().any(|range: &std::ops::Range<usize>| range.contains(&at));
    for captures in SCOPED_TAIL.captures_iter(text) {
        let mut new = Found::new(FailureKind::TpuScopedVmem, &captures);
        if inside(new.start) {
            continue;
        }
        new.text("space", &captures, 3).size("used", &captures, 1).size("capacity", &captures, 2);
        new.size("exceeded", &captures, 4);
        found.push(new);
    }
    for captures in RAN_OUT.captures_iter(text) {
        if captures.get(0).is_some_and(|all| inside(all.start())) {
            continue;
        }
        // Without a number it is prose about the error, but for one sentence that never has any.
        if captures.get(2).is_none() {
            let end = captures.get(0).map_or(0, |all| all.end());
            if NO_SIZE.is_match(super::head::head_of(&text[end..], 200)) {
                let mut new = Found::new(FailureKind::TpuVmemNosize, &captures);
                new.put("space", captures.get(1).map(|space| text_value(&space.as_str().to_lowercase())));
                found.push(new);
            }
            continue;
        }
        let space = captures.get(1).map_or("", |space| space.as_str()).to_lowercase();
        let kind = match space.as_str() {
            "hbm" => FailureKind::TpuHbmOneline,
            "vmem" => FailureKind::TpuVmemOneline,
            "smem" => FailureKind::TpuSmemOneline,
            _ => FailureKind::TpuSpaceOneline,
        };
        let mut new = Found::new(kind, &captures);
        new.put("space", Some(text_value(&space))).size("used", &captures, 2).size("capacity", &captures, 3);
        new.size("exceeded", &captures, 5).text("module", &captures, 6);
        found.push(new);
    }
    for captures in SPARSECORE.captures_iter(text) {
        let mut new = Found::new(FailureKind::TpuSparsecore, &captures);
        let space = captures.get(3).map_or("", |space| space.as_str());
        let name = SPARSECORE_SPACES.iter().find(|row| row.0 == space).map_or(space, |row| row.1);
        new.put("code", Some(text_value("E3000"))).put("space", Some(text_value(name)));
        new.count("used_words", &captures, 1).count("capacity_words", &captures, 2);
        new.count("requested_words", &captures, 4);
        found.push(new);
    }
    for captures in EARLY.captures_iter(text) {
        let mut new = Found::new(FailureKind::TpuHbmEarly, &captures);
        new.put("space", captures.get(1).map(|space| text_value(&space.as_str().to_lowercase())));
        new.size("used", &captures, 2).size("capacity", &captures, 3).text("module", &captures, 4);
        found.push(new);
    }
    for captures in ABORT.captures_iter(text) {
        let mut new = Found::new(FailureKind::TpuCompileAbort, &captures);
        new.size("used", &captures, 1).size("capacity", &captures, 2);
        found.push(new);
    }
    for captures in TENSORCORE.captures_iter(text) {
        let mut new = Found::new(FailureKind::TpuTcScHbm, &captures);
        new.size("tensorcore", &captures, 1).size("sparsecore", &captures, 2).size("capacity", &captures, 3);
        new.put("space", Some(text_value("hbm")));
        found.push(new);
    }
    for captures in EXCEEDS.captures_iter(text) {
        let is_scoped = captures.get(8).is_some_and(|tag| tag.as_str().starts_with("scoped memory"));
        let mut new =
            Found::new(if is_scoped { FailureKind::TpuScopedVmem } else { FailureKind::TpuAllocExceeds }, &captures);
        new.bytes("used", &captures, 1).bytes("capacity", &captures, 2).text("allocation", &captures, 3);
        new.text("shape", &captures, 4).text("space", &captures, 5).text("tag", &captures, 8);
        // All ones: the compiler did not know the size either.
        let size = captures.get(6).and_then(|hex| u64::from_str_radix(hex.as_str().get(2..)?, 16).ok());
        new.put("size", size.filter(|&size| size != u64::MAX).and_then(|size| bytes_value(&size.to_string())));
        new.text("instruction", &captures, 9);
        found.push(new);
    }
}

/// Reads the listing that follows the sentence, up to the next message.
pub fn details(found: &mut Found, section: &str, is_cut: bool) {
    let (with_list, with_totals) = match found.failure.kind {
        FailureKind::TpuHbmOneline => (FailureKind::TpuHbmListing, FailureKind::TpuHbmUsage),
        kind @ FailureKind::TpuVmemOneline => (FailureKind::TpuVmemListing, kind),
        kind @ (FailureKind::TpuSmemOneline | FailureKind::TpuSpaceOneline) => (kind, kind),
        _ => return,
    };
    listing::read(found, section, is_cut);
    if !found.failure.allocations.is_empty() {
        found.failure.kind = with_list;
    } else if found.failure.get("total").is_some() || !found.failure.program_parts.is_empty() {
        found.failure.kind = with_totals;
    }
}
