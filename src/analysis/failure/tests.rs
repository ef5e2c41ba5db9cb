//! Tests of explanations: shortage, fragmentation, and a title for every kind.

use super::*;
use crate::model::{FailureValue, PrintedSize};

fn failure(kind: FailureKind, sizes: &[(&'static str, u64)]) -> Failure {
    let mut failure = Failure { kind, is_error: true, ..Failure::default() };
    for &(key, bytes) in sizes {
        failure.set(key, FailureValue::Size(PrintedSize { text: None, bytes: Bytes(bytes) }));
    }
    failure
}

#[test]
fn fragmentation_is_told_from_shortage() {
    let frag = failure(FailureKind::TpuRuntimeAlloc, &[("requested", 8), ("free", 12), ("largest_free", 4)]);
    assert_eq!(cause(&frag), Cause::Fragmentation);
    let short = failure(FailureKind::TpuRuntimeAlloc, &[("requested", 8), ("free", 4)]);
    assert_eq!(cause(&short), Cause::Shortage);
    let cached = failure(FailureKind::TorchCuda, &[("requested", 8), ("free", 4), ("unallocated", 16)]);
    assert_eq!(cause(&cached), Cause::CachedInPieces);
    let unknown = failure(FailureKind::XlaRuntimeAlloc, &[("requested", 8)]);
    assert_eq!(cause(&unknown), Cause::Unknown);
}

#[test]
fn every_kind_has_a_title() {
    for &kind in FailureKind::ALL {
        assert!(!explain(&failure(kind, &[])).title.is_empty(), "{}", kind.name());
    }
}

#[test]
fn a_size_over_its_capacity_says_by_how_much() {
    let explained = explain(&failure(FailureKind::IpuTile, &[("used", 1000), ("capacity", 600)]));
    assert_eq!(explained.over_by, Some(Bytes(400)));
    assert_eq!(explained.memory, "tile memory");
    assert_eq!(explained.cause, Cause::Shortage);
}

#[test]
fn a_request_is_no_part_of_what_is_in_use() {
    let asked = failure(FailureKind::VllmStartup, &[("free", 41), ("capacity", 79), ("requested", 71)]);
    let explained = explain(&asked);
    let parts: Vec<(&str, u64)> = explained.parts.iter().map(|part| (part.name, part.bytes.0)).collect();
    assert_eq!(parts, [("other processes", 38), ("free", 41)]);
    assert_eq!((explained.needed, explained.over_by), (Some(Bytes(71)), Some(Bytes(30))));
    assert!(explained.sentences.iter().any(|said| said.starts_with("Other processes hold 38 B")), "{explained:?}");
}
