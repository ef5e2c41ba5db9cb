//! Sharing and re-use, against the numbers that xprof 2.24.2 gave for the same hand-made protos.

use super::*;
use crate::model::{
    Allocation, Assigned, Buffers, HeapEvent, HeapTrace, Instructions, MemorySpace, Opcode, Shape, ShapeId,
};

/// A program of 1 MiB buffers `a`, `b`, … in one allocation, with a trace such as `A a; F a; S b a`.
fn program(trace: &str) -> Program {
    let rows = 4usize;
    let events = trace
        .split(';')
        .map(|event| {
            let mut words = event.split_whitespace();
            let kind = match words.next() {
                Some("A") => EventKind::Alloc,
                Some("F") => EventKind::Free,
                _ => EventKind::ShareWith,
            };
            let mut row = || words.next().map_or(NO_ROW, |name| u32::from(name.as_bytes()[0] - b'a'));
            HeapEvent { kind, buffer: row(), canonical: row() }
        })
        .collect();
    Program {
        shapes: vec![Shape::default()],
        instructions: Instructions {
            opcode: vec![Opcode::FUSION; rows],
            shape: vec![ShapeId(0); rows],
            ..Instructions::default()
        },
        buffers: Buffers {
            number: (0..rows as i64).collect(),
            size: vec![Bytes(1 << 20); rows],
            instruction: (0..rows as u32).collect(),
            node: vec![0; rows],
            color: vec![MemorySpace::HBM; rows],
            allocation: vec![0; rows],
            offset: vec![0; rows],
            odd_index: Vec::new(),
        },
        allocations: vec![Allocation { assigned_end: rows as u32, ..Allocation::default() }],
        assigned: (0..rows as u32).map(|row| Assigned { buffer: BufferId(row), offset: 0 }).collect(),
        traces: vec![HeapTrace { events, whole_module: true }],
        ..Program::default()
    }
}

struct Expect {
    heap: &'static [u64],
    peak: (u64, u32),
    spans: &'static [(u32, u32, u32)],
    at_peak: &'static [u32],
}

fn check(trace: &str, expect: &Expect) {
    let program = program(trace);
    let space = space(&program, &Traces::new(&program), MemorySpace::HBM);
    let heap: Vec<u64> = space.curve.iter().map(|&(bytes, _)| bytes >> 20).collect();
    assert_eq!(heap, expect.heap, "{trace}");
    assert_eq!((space.peak.0 >> 20, space.peak_event), expect.peak, "{trace}");
    let mut spans: Vec<_> = space.spans.iter().map(|&(b, s, e)| (b.0, s, e)).collect();
    spans.sort_unstable();
    assert_eq!(spans, expect.spans, "{trace}");
    let at_peak: Vec<u32> = space.live_at_peak.iter().map(|b| b.0).collect();
    assert_eq!(at_peak, expect.at_peak, "{trace}");
    assert_eq!(space.inconsistencies, Vec::<String>::new(), "{trace}");
}

#[test]
fn sharing_memory_that_is_still_taken() {
    check(
        "A a; S b a; A c; F a; F c; F b",
        &Expect { heap: &[0, 1, 1, 2, 2, 1, 0], peak: (2, 2), spans: &[(0, 0, 5), (2, 2, 4)], at_peak: &[0, 2] },
    );
}

#[test]
fn taking_over_memory_that_was_free() {
    check(
        "A a; F a; S b a; A c; F c; F b",
        &Expect {
            heap: &[0, 1, 0, 1, 2, 1, 0],
            peak: (2, 3),
            spans: &[(0, 0, 1), (1, 2, 5), (2, 3, 4)],
            at_peak: &[1, 2],
        },
    );
    check(
        "A a; F a; S b a; F b; S c b; F c",
        &Expect {
            heap: &[0, 1, 0, 1, 0, 1, 0],
            peak: (1, 0),
            spans: &[(0, 0, 1), (1, 2, 3), (2, 4, 5)],
            at_peak: &[0],
        },
    );
    check(
        "A a; F a; S b a; S c b; F b; A d; F c; F d",
        &Expect {
            heap: &[0, 1, 0, 1, 1, 1, 2, 1, 0],
            peak: (2, 5),
            spans: &[(0, 0, 1), (1, 2, 4), (3, 5, 7)],
            at_peak: &[1, 3],
        },
    );
}

#[test]
fn inconsistent_traces_are_shown_as_far_as_they_go() {
    let broken = program("A a; F a; F a; A b");
    let result = space(&broken, &Traces::new(&broken), MemorySpace::HBM);
    assert_eq!(result.peak, Bytes(1 << 20));
    assert_eq!(result.inconsistencies.len(), 1, "{:?}", result.inconsistencies);
    let circle = program("A a; S b a; S a b; F a; F b");
    let result = space(&circle, &Traces::new(&circle), MemorySpace::HBM);
    assert_eq!(result.inconsistencies.len(), 1, "{:?}", result.inconsistencies);
}
