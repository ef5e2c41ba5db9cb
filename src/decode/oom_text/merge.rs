//! Several messages about one failure become one: an allocator's dump and the error that follows it, a failure said in
//! several sentences, by several layers, or again and again.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use super::bfc::agrees;
use super::found::Found;
use crate::model::{Bytes, Failure, FailureKind, FailureValue, PrintedSize, Speaker};

/// How far the error may follow the dump's last line.
const NEAR: usize = 64 << 10;

/// Bytes within which sentences about one failure stand.
const BESIDE: usize = 6 << 10;
/// Messages before the next one that it may belong to.
const LOOKED_BACK: usize = 6;

/// Joins what belongs together in one stream; in the order of the text.
pub fn merge(found: Vec<Found>) -> Vec<Found> {
    let mut merged: Vec<Found> = Vec::new();
    for next in found {
        if let Some(rest) = into_earlier(&mut merged, next) {
            merged.push(rest);
        }
    }
    drop_own_warnings(&mut merged);
    merged
}

/// The allocator's warning that the caller may go on, about the very request that failed then, is no message of its own.
fn drop_own_warnings(merged: &mut Vec<Found>) {
    let request = |found: &Found| found.failure.bytes("exact_request").or_else(|| found.failure.bytes("requested"));
    let is_failure = |found: &&Found| {
        found.failure.is_error && matches!(found.failure.kind, FailureKind::XlaRuntimeAlloc | FailureKind::BfcDump)
    };
    let failed: Vec<_> = merged.iter().filter(is_failure).filter_map(request).collect();
    merged.retain(|found| {
        let same = |bytes| failed.iter().any(|failed: &Bytes| failed.0.abs_diff(bytes) <= bytes / 1000);
        found.failure.kind != FailureKind::BfcSoftWarning || !request(found).is_some_and(|bytes| same(bytes.0))
    });
}

/// Joins a message with one before it; gives it back where it is a failure of its own.
fn into_earlier(merged: &mut [Found], next: Found) -> Option<Found> {
    for last in merged.iter_mut().rev().take(LOOKED_BACK) {
        let distance = next.start.saturating_sub(last.end);
        let near = distance < NEAR.max(dump_len(&last.failure));
        match join(&last.failure, &next.failure) {
            Joined::IntoLast if near => {
                last.end = last.end.max(next.end);
                into_last(&mut last.failure, next.failure);
                return None;
            }
            Joined::IntoNext if near => {
                let mut failure = next.failure;
                into_next(&last.failure, &mut failure);
                *last = Found { start: last.start, end: next.end, failure };
                return None;
            }
            _ => {}
        }
        if distance < BESIDE
            && (is_sentence_of(&last.failure, &next.failure) || is_cut_repeat(&last.failure, &next.failure))
        {
            last.end = last.end.max(next.end);
            complete(&mut last.failure, next.failure);
            return None;
        }
        let is_about_next = is_driver_of(&last.failure, &next.failure)
            || is_vague(&last.failure) && explains(&next.failure, &last.failure);
        if distance < BESIDE && is_about_next {
            let mut failure = next.failure;
            failure.offset = last.failure.offset;
            failure.line = last.failure.line;
            failure.process = last.failure.process.take().or(failure.process);
            failure.repeats += last.failure.repeats;
            *last = Found { start: last.start, end: next.end, failure };
            return None;
        }
        let is_about_last = is_driver_of(&next.failure, &last.failure)
            || is_vague(&next.failure) && explains(&last.failure, &next.failure);
        if distance < BESIDE && is_about_last {
            last.end = last.end.max(next.end);
            return None;
        }
    }
    Some(next)
}

/// Whether a message says only that memory ran out, as what stands around another message does.
fn is_vague(failure: &Failure) -> bool {
    matches!(
        failure.kind,
        FailureKind::CudaErrorOom | FailureKind::HipErrorOom | FailureKind::Unknown | FailureKind::HostBadAlloc
    ) || (!is_measured(failure) && failure.kind.speaker() == Speaker::Graphics)
}

fn is_measured(failure: &Failure) -> bool {
    failure.fields.iter().any(|(_, value)| matches!(value, FailureValue::Size(_)))
}

/// Joins what several programs of a host say of one kill: the kernel, the daemon, the manager of services. Failures in
/// the order of the text, of all its streams.
pub fn across(failures: Vec<Failure>) -> Vec<Failure> {
    let is_kill = |failure: &Failure| {
        matches!(
            failure.kind,
            FailureKind::LinuxOomKill
                | FailureKind::SlurmOomKill
                | FailureKind::KubernetesOomKill
                | FailureKind::JobMemoryKill
        )
    };
    let mut out: Vec<Failure> = Vec::with_capacity(failures.len());
    for next in failures {
        let known = out.iter_mut().rev().take(LOOKED_BACK).find(|last| {
            next.offset.saturating_sub(last.offset) < BESIDE as u64
                && last.process != next.process
                && is_kill(last)
                && is_sentence_of(last, &next)
        });
        match known {
            Some(last) => complete(last, next),
            None => out.push(next),
        }
    }
    out
}

/// Whether a driver reports the request that a framework made.
fn is_driver_of(driver: &Failure, framework: &Failure) -> bool {
    let is_driver =
        |failure: &Failure| matches!(failure.kind.speaker(), Speaker::Graphics | Speaker::Cuda | Speaker::Rocm);
    is_driver(driver)
        && !is_driver(framework)
        && driver.bytes("requested").is_some_and(|bytes| Some(bytes) == framework.bytes("requested"))
}

/// Whether `full` is what the vague message is about: the same memory, and more to say.
fn explains(full: &Failure, vague: &Failure) -> bool {
    if !full.is_error && vague.is_error {
        return false;
    }
    // Nothing but that memory ran out, beside a message that says whose.
    if vague.kind == FailureKind::Unknown && full.kind != FailureKind::Unknown && !is_measured(vague) {
        return true;
    }
    if is_vague(full) {
        return false;
    }
    let on_host = |kind: FailureKind| matches!(kind.speaker(), Speaker::Host) || kind == FailureKind::TorchCpu;
    match vague.kind {
        FailureKind::HostBadAlloc => on_host(full.kind) || full.kind == FailureKind::RmmAlloc,
        FailureKind::Unknown => true,
        _ => !on_host(full.kind) && full.kind.speaker() != Speaker::Poplar,
    }
}

/// Whether two messages of one kind are about one failure: no number of theirs contradicts another. A driver that is
/// asked for less and less is one search for a size that fits.
fn is_sentence_of(last: &Failure, next: &Failure) -> bool {
    if last.kind != next.kind || last.is_error != next.is_error {
        return false;
    }
    let is_search = matches!(last.kind, FailureKind::CudaDriverAlloc | FailureKind::CudaHostAlloc);
    let both = last.fields.iter().filter_map(|(key, value)| Some((*key, value, next.get(key)?)));
    both.into_iter().all(|(key, a, b)| match (a, b) {
        (FailureValue::Size(a), FailureValue::Size(b)) => {
            (is_search && key == "requested" && b.bytes <= a.bytes) || same_size(a, b)
        }
        (a, b) => a == b,
    })
}

/// Whether a message is the beginning of an earlier one, as the summary of a test run has it: cut off with dots, and
/// every number of it is known.
fn is_cut_repeat(last: &Failure, next: &Failure) -> bool {
    let is_cut = next.message.trim_end().ends_with("...") || next.message.trim_end().ends_with('…');
    let is_known = |(key, value): &(&str, FailureValue)| match (last.get(key), value) {
        (Some(FailureValue::Size(a)), FailureValue::Size(b)) => same_size(a, b),
        (known, _) => known == Some(value),
    };
    is_cut
        && last.kind.speaker() == next.kind.speaker()
        && last.is_error == next.is_error
        && !next.fields.is_empty()
        && next.fields.iter().all(is_known)
}

/// Whether two sizes can be the same, one of them rounded for print.
fn same_size(a: &PrintedSize, b: &PrintedSize) -> bool {
    let fits = |printed: &PrintedSize, exact: &PrintedSize| {
        printed.text.as_deref().is_some_and(|text| agrees(text, exact.bytes))
    };
    a.bytes == b.bytes || fits(a, b) || fits(b, a)
}

/// Adds what another sentence about the same failure says.
fn complete(last: &mut Failure, next: Failure) {
    let says_it_again = next.fields.iter().all(|(key, _)| last.get(key).is_some());
    let is_part = next.message != last.message && !says_it_again;
    for (key, value) in next.fields {
        match (last.fields.iter_mut().find(|(own, _)| *own == key).map(|(_, value)| value), &value) {
            (None, _) => last.fields.push((key, value)),
            // The exact number beside the printed one.
            (Some(FailureValue::Size(own)), FailureValue::Size(other))
                if own.text.is_some() && other.text.is_none() && same_size(own, other) =>
            {
                own.bytes = other.bytes;
            }
            (Some(FailureValue::Size(own)), FailureValue::Size(other))
                if own.text.is_none() && other.text.is_some() && same_size(own, other) =>
            {
                own.text.clone_from(&other.text);
            }
            _ => {}
        }
    }
    last.paths.extend(next.paths);
    last.repeats += next.repeats + u64::from(!is_part);
    last.last_place = Some(next.last_place.unwrap_or((next.offset, next.line)));
}

/// The failures of a whole text: what is said again, anywhere and by any process, is counted.
#[derive(Debug, Default)]
pub struct Sameness {
    rows: HashMap<u64, usize>,
}

impl Sameness {
    /// Adds a failure to those of the text so far; returns whether it is a new one.
    pub fn add(&mut self, failures: &mut Vec<Failure>, failure: Failure, most: usize) -> bool {
        let key = signature(&failure);
        if let Some(&row) = self.rows.get(&key) {
            let known = &mut failures[row];
            known.repeats += failure.repeats + 1;
            known.last_place = Some(failure.last_place.unwrap_or((failure.offset, failure.line)));
            for process in failure.process.into_iter().chain(failure.processes) {
                if !known.processes.contains(&process) && known.processes.len() < MAX_PROCESSES {
                    known.processes.push(process);
                }
            }
            known.truncated &= failure.truncated;
            return false;
        }
        if failures.len() >= most {
            return true;
        }
        self.rows.insert(key, failures.len());
        let mut failure = failure;
        if let Some(process) = &failure.process
            && !failure.processes.contains(process)
        {
            failure.processes.insert(0, process.clone());
        }
        failures.push(failure);
        true
    }
}

/// Processes that are named.
const MAX_PROCESSES: usize = 1024;

/// Keys that say who reports a failure, not what failed.
const OF_THE_PROCESS: [&str; 3] = ["rank", "framework", "own_process"];

/// What makes a failure the same as another one: its kind and its numbers, not who says it; without numbers its words.
fn signature(failure: &Failure) -> u64 {
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    failure.kind.hash(&mut hasher);
    failure.is_error.hash(&mut hasher);
    let mut has_numbers = false;
    for (key, value) in failure.fields.iter().filter(|field| !OF_THE_PROCESS.contains(&field.0)) {
        match value {
            FailureValue::Size(size) => {
                has_numbers = true;
                (key, size.bytes.0).hash(&mut hasher);
            }
            FailureValue::Count(count) => (key, count).hash(&mut hasher),
            FailureValue::Text(text) => (key, text).hash(&mut hasher),
            FailureValue::Flag(flag) => (key, flag).hash(&mut hasher),
        }
    }
    (failure.allocations.len(), failure.peak_buffers.len(), failure.chunks.len()).hash(&mut hasher);
    for entry in &failure.allocations {
        (entry.number, entry.size.as_ref().map(|size| size.bytes.0), &entry.label).hash(&mut hasher);
    }
    if !has_numbers {
        // Addresses and numbers of processes differ from time to time.
        let words: String = failure.message.chars().filter(|c| c.is_alphabetic()).collect();
        words.hash(&mut hasher);
    }
    hasher.finish()
}

/// How long the dump behind a message may be.
fn dump_len(failure: &Failure) -> usize {
    (failure.chunks.len() + failure.bins.len() + failure.chunk_sizes.len()).saturating_mul(400)
}

enum Joined {
    No,
    IntoLast,
    IntoNext,
}

fn join(last: &Failure, next: &Failure) -> Joined {
    let bfc = matches!(last.kind, FailureKind::BfcDump | FailureKind::BfcOom | FailureKind::BfcStats) && last.is_error;
    match next.kind {
        FailureKind::XlaGpuPeakBuffers if bfc && same_request(last, next) => Joined::IntoNext,
        FailureKind::XlaRuntimeAlloc if bfc && same_request(last, next) => Joined::IntoLast,
        FailureKind::TfOom if bfc => Joined::IntoLast,
        FailureKind::XlaRuntimeAlloc
            if matches!(last.kind, FailureKind::RocmAlloc | FailureKind::CudaDriverAlloc)
                && last.bytes("requested") == next.bytes("requested") =>
        {
            Joined::IntoLast
        }
        FailureKind::TfUsageReport if last.kind == FailureKind::TfOom => Joined::IntoNext,
        FailureKind::TfUsageReport
            if matches!(last.kind, FailureKind::BfcDump | FailureKind::BfcOom) && last.usage_rows.is_empty() =>
        {
            Joined::IntoLast
        }
        _ => Joined::No,
    }
}

/// Whether the allocator's request can be that of the error: it rounds up, and prints two decimals.
fn same_request(allocator: &Failure, error: &Failure) -> bool {
    let Some(bytes) = error.bytes("requested") else { return false };
    if let Some(rounded) = allocator.bytes("rounded") {
        return rounded.0 >= bytes.0 && rounded.0 - bytes.0 <= 4 << 20;
    }
    match allocator.get("requested") {
        Some(FailureValue::Text(text)) => agrees(text, bytes),
        Some(FailureValue::Size(size)) => size.text.as_deref().is_some_and(|text| agrees(text, bytes)),
        _ => allocator.kind == FailureKind::BfcStats,
    }
}

fn into_last(last: &mut Failure, next: Failure) {
    if let (Some(bytes), true) = (next.bytes("requested"), last.kind.speaker() == Speaker::Bfc) {
        match last.fields.iter_mut().find(|(key, _)| *key == "requested").map(|(_, value)| value) {
            // The text alone stood there, because the exact number was not known.
            Some(value @ FailureValue::Text(_)) => {
                if let FailureValue::Text(text) = std::mem::replace(value, FailureValue::Flag(false)) {
                    *value = FailureValue::Size(PrintedSize { text: Some(text), bytes });
                }
            }
            _ => last.set("exact_request", FailureValue::Size(PrintedSize { text: None, bytes })),
        }
    }
    if next.kind == FailureKind::TfOom {
        for (from, to) in [("shape", "tensor_shape"), ("type", "tensor_type"), ("device", "device"), ("op", "op")] {
            if let Some(value) = next.get(from) {
                last.set(to, value.clone());
            }
        }
    }
    if next.kind == FailureKind::XlaRuntimeAlloc {
        for key in ["device", "executable", "tried_kernels"] {
            if let Some(value) = next.get(key) {
                last.set(key, value.clone());
            }
        }
    }
    if next.kind == FailureKind::TfUsageReport {
        for key in ["remaining", "remaining_nodes"] {
            if let Some(value) = next.get(key) {
                last.set(key, value.clone());
            }
        }
        last.usage_rows = next.usage_rows;
    }
    last.paths.extend(next.paths);
    last.message.push_str(" … ");
    last.message.push_str(&next.message);
}

fn into_next(last: &Failure, next: &mut Failure) {
    // One request, printed by the allocator and, exactly, by the error.
    let printed = match last.get("requested") {
        Some(FailureValue::Text(text)) => Some(text.clone()),
        Some(FailureValue::Size(size)) => size.text.clone(),
        _ => None,
    };
    for (key, value) in &mut next.fields {
        if let ("requested", FailureValue::Size(size)) = (*key, value)
            && size.text.is_none()
        {
            size.text.clone_from(&printed);
        }
    }
    for (key, value) in &last.fields {
        let key = match *key {
            // The program's and the allocator's own sums are different things.
            "total" | "fragmentation" => continue,
            key => key,
        };
        next.set(key, value.clone());
    }
    next.bins.clone_from(&last.bins);
    next.chunks.clone_from(&last.chunks);
    next.chunk_sizes.clone_from(&last.chunk_sizes);
    next.statistics.clone_from(&last.statistics);
    next.offset = last.offset;
    next.line = last.line;
    if last.process.is_some() {
        next.process.clone_from(&last.process);
    }
    next.message = format!("{} … {}", last.message, next.message);
}
