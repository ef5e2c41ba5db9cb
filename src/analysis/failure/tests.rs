//! Explanations: what they call a shortage, what fragmentation, and that every kind has words.

use super::*;
use crate::model::{FAILURE_KINDS, FailureValue, PrintedSize};

fn failure(kind: &'static str, sizes: &[(&'static str, u64)]) -> Failure {
    let mut failure = Failure { kind, is_error: true, ..Failure::default() };
    for &(key, bytes) in sizes {
        failure.set(key, FailureValue::Size(PrintedSize { text: None, bytes: Bytes(bytes) }));
    }
    failure
}

#[test]
fn fragmentation_is_told_from_shortage() {
    let frag = failure("tpu_runtime_alloc", &[("requested", 8), ("free", 12), ("largest_free", 4)]);
    assert_eq!(cause(&frag), Cause::Fragmentation);
    let short = failure("tpu_runtime_alloc", &[("requested", 8), ("free", 4)]);
    assert_eq!(cause(&short), Cause::Shortage);
    let cached = failure("torch_cuda", &[("requested", 8), ("free", 4), ("unallocated", 16)]);
    assert_eq!(cause(&cached), Cause::CachedInPieces);
    let unknown = failure("xla_runtime_alloc", &[("requested", 8)]);
    assert_eq!(cause(&unknown), Cause::Unknown);
}

#[test]
fn every_kind_has_words_and_a_way_on() {
    for kind in FAILURE_KINDS {
        let failure = failure(kind.name, &[]);
        let explained = explain(&failure, &Profile::default());
        assert!(!explained.title.is_empty(), "{}", kind.name);
        assert!(kind.name == "unknown" || !explained.advice.is_empty() || !explained.next.is_empty(), "{}", kind.name);
    }
}

#[test]
fn a_size_over_its_capacity_says_by_how_much() {
    let explained = explain(&failure("ipu_tile", &[("used", 1000), ("capacity", 600)]), &Profile::default());
    assert_eq!(explained.over_by, Some(Bytes(400)));
    assert_eq!(explained.memory, "tile memory");
    assert_eq!(explained.cause, Cause::Shortage);
}
