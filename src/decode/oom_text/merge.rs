//! Several messages about one failure become one: an allocator's dump and the error that follows it.

use super::bfc::agrees;
use super::found::Found;
use crate::model::{Failure, FailureKind, FailureValue, PrintedSize, Speaker};

/// How far the error may follow the dump's last line.
const NEAR: usize = 64 << 10;

/// Joins what belongs together; in the order of the text.
pub fn merge(found: Vec<Found>) -> Vec<Failure> {
    let mut merged: Vec<Found> = Vec::new();
    for next in found {
        let Some(last) = merged.last_mut() else {
            merged.push(next);
            continue;
        };
        let near = next.start.saturating_sub(last.end) < NEAR.max(dump_len(&last.failure));
        match join(&last.failure, &next.failure) {
            Joined::IntoLast if near => {
                let end = next.end;
                into_last(&mut last.failure, next.failure);
                last.end = end;
            }
            Joined::IntoNext if near => {
                let (start, mut failure) = (last.start, next.failure);
                into_next(&last.failure, &mut failure);
                *last = Found { start, end: next.end, failure };
            }
            _ => merged.push(next),
        }
    }
    merged.into_iter().map(|found| found.failure).collect()
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
            if last.kind == FailureKind::RocmAlloc && last.bytes("requested") == next.bytes("requested") =>
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
    if next.kind == FailureKind::XlaRuntimeAlloc
        && let Some(device) = next.get("device")
    {
        last.set("device", device.clone());
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
