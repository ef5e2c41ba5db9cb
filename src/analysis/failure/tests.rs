//! Tests of explanations: shortage, fragmentation, and a title for every kind.

use super::*;
use crate::model::{FailureValue, ListedAllocation, PrintedSize};

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
fn rows_have_the_names_of_the_program_not_of_the_log() {
    let mut listed = failure(FailureKind::TpuHbmListing, &[]);
    listed.allocations = vec![ListedAllocation {
        number: 1,
        size: Some(PrintedSize { text: None, bytes: Bytes(64) }),
        op_name: Some(r"params[\'w\']".to_owned()),
        ..ListedAllocation::default()
    }];
    let explained = explain(&listed, false);
    assert_eq!(explained.groups[0].op_name.as_deref(), Some("params['w']"));
}

#[test]
fn every_kind_has_a_title() {
    for &kind in FailureKind::ALL {
        assert!(!explain(&failure(kind, &[]), false).title.is_empty(), "{}", kind.name());
    }
}

#[test]
fn a_size_over_its_capacity_says_by_how_much() {
    let explained = explain(&failure(FailureKind::IpuTile, &[("used", 1000), ("capacity", 600)]), false);
    assert_eq!(explained.over_by, Some(Bytes(400)));
    assert_eq!(explained.memory, "tile memory");
    assert_eq!(explained.cause, Cause::Shortage);
}

#[test]
fn a_request_is_no_part_of_what_is_in_use() {
    let asked = failure(FailureKind::VllmStartup, &[("free", 41), ("capacity", 79), ("requested", 71)]);
    let explained = explain(&asked, false);
    let parts: Vec<(&str, u64)> = explained.parts.iter().map(|part| (part.name, part.bytes.0)).collect();
    assert_eq!(parts, [("other processes", 38), ("free", 41)]);
    assert_eq!((explained.needed, explained.over_by), (Some(Bytes(71)), Some(Bytes(30))));
    assert!(explained.sentences.iter().any(|said| said.starts_with("Other processes hold 38 B")), "{explained:?}");
}

#[test]
fn equal_sizes_stand_once_and_as_printed() {
    let mut failure = failure(FailureKind::TpuRuntimeReserve, &[]);
    let printed = [
        ("requested", "3.80G", 3.80),
        ("free", "1.92G", 1.92),
        ("requirement", "3.80G", 3.80),
        ("missing", "2.40G", 2.40),
        ("top_reserved", "529.00M", 529.0 / 1024.0),
        ("arguments", "0B", 0.0),
        ("temporaries", "48.25G", 48.25),
    ];
    for (key, text, gib) in printed {
        let size = PrintedSize { text: Some(text.to_owned()), bytes: Bytes((gib * f64::from(1 << 30)) as u64) };
        failure.set(key, FailureValue::Size(size));
    }
    let explained = explain(&failure, false);
    let words: Vec<String> = explained
        .readouts
        .iter()
        .flat_map(|(role, group)| group.iter().map(|r| format!("{}: {} {}", role.title(), r.name, r.in_words())))
        .collect();
    assert_eq!(
        words,
        [
            "Asked for: requested 3.80 GiB",
            "Asked for: missing as printed 2.40 GiB",
            "What there was: free 1.92 GiB",
            "What held it: reserved at the top 529 MiB",
            "What held it: temporaries 48.25 GiB",
        ]
    );
    assert_eq!(explained.readouts[0].1[0].also, ["requirement"]);
    assert_eq!(explained.readouts[0].1[0].size.evidence(), "printed as 3.80G", "no bytes that nobody printed");
    let why = "By the message's own count 2.40 GiB are missing: it subtracts the 529 MiB reserved at the top of \
               memory, too";
    assert!(explained.sentences.iter().any(|sentence| sentence == why), "{:?}", explained.sentences);
}

#[test]
fn a_dump_that_is_read_is_not_asked_for() {
    let early = failure(FailureKind::TpuHbmEarly, &[]);
    let last = |is_dump_read| explain(&early, is_dump_read).sentences.pop().unwrap_or_default();
    assert_eq!(last(true), "This compiler prints no list of buffers");
    assert!(last(false).contains("; a dump of the program has them"), "{}", last(false));
}
