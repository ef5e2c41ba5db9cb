//! Damaged inputs of every format give a message, not a panic.

use highwater::analysis::ProfileAnalysis;
use highwater::export::report::{self, Format, Options};
use highwater::open;
use highwater::source::{Input, Progress};
use proptest::prelude::*;

use crate::common::{self, Files};

/// A small file of each format.
fn seeds() -> Vec<Vec<u8>> {
    let ends = [
        ".xplane.pb",
        ".prof",
        "pools_2_15.pickle.gz",
        "-memory-usage-report.pb",
        "-memory-usage-report.txt",
        "-buffer-assignment.txt",
        "-buffer-assignment-values.txt",
        "-live-range.txt",
        ".memory_viewer.json",
        ".memory_profile.json",
    ];
    ends.map(|end| {
        let mut files = Files::of_project().named(|name| name.ends_with(end));
        files.retain(|path| path.metadata().is_ok_and(|m| m.len() < 300_000));
        files.sort_by_key(|path| path.metadata().map_or(0, |m| m.len()));
        // The largest of the small files covers most of a format. Compressed ones are damaged inside the compression.
        let largest = files.last().unwrap_or_else(|| panic!("no small file …{end}"));
        common::bytes(largest).to_vec()
    })
    .to_vec()
}

/// Opens, analyses and reports any input.
fn through(bytes: Vec<u8>) {
    let Ok(input) = Input::from_bytes("unknown.bin", bytes.into()) else { return };
    let Ok(profile) = open::open_input(&input, &Progress::default()) else { return };
    let analysis = ProfileAnalysis::new(&profile);
    let options = Options { top: 3, curve: true, buffers: true, ..Options::default() };
    let report = report::build(&[(&profile, &analysis)], &[], &options);
    let _ = report::write(&report, Format::Text);
    let _ = report::write(&report, Format::Json);
}

#[test]
fn cut_files_never_panic() {
    for seed in seeds() {
        for part in 1..24 {
            through(seed[..seed.len() * part / 24].to_vec());
        }
        for len in 0..64.min(seed.len()) {
            through(seed[..len].to_vec());
        }
    }
}

#[test]
fn changed_bytes_never_panic() {
    let seeds = seeds();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: 300, ..ProptestConfig::default() });
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12);
    runner
        .run(&(any::<prop::sample::Index>(), changes), |(seed, changes)| {
            let mut bytes = seeds[seed.index(seeds.len())].clone();
            let len = bytes.len();
            for (at, byte) in changes {
                bytes[at.index(len)] = byte;
            }
            through(bytes);
            Ok(())
        })
        .expect("no change panics");
}

#[test]
fn changed_heads_never_panic() {
    let seeds = seeds();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: 300, ..ProptestConfig::default() });
    let changes = proptest::collection::vec((0usize..400, any::<u8>()), 1..8);
    runner
        .run(&(any::<prop::sample::Index>(), changes), |(seed, changes)| {
            let mut bytes = seeds[seed.index(seeds.len())].clone();
            for (at, byte) in changes {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            through(bytes);
            Ok(())
        })
        .expect("no change panics");
}

proptest! {
    #[test]
    fn made_up_protobufs_never_panic(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
        through(bytes.clone());
        // As a trace, a profile, an allocator dump and a usage report, which have short headers.
        for head in [
            &b"\x0a\x7f\x12\x09/host:CPU"[..],
            &b"\x0a\x7f\x12\x0e/host:metadata"[..],
            &b"\x0a\x04\x08\x01\x10\x02\x12\x02\x08\x01"[..],
            &b"\x0a\x03bfc\x12\x02\x08\x01"[..],
            &b"\x0a\x7f\x08\x08\x1a\x04\x08\x01\x10\x01"[..],
            &b"\x80\x04}\x94(\x8c\x08segments\x94]\x94}\x94(\x8c\x07address\x94"[..],
            &b"\x80\x02}(X\x0d\x00\x00\x00device_traces](](}(X\x06\x00\x00\x00action"[..],
        ] {
            let mut made = head.to_vec();
            made.extend_from_slice(&bytes);
            through(made);
        }
    }

    #[test]
    fn made_up_texts_never_panic(text in "[a-z0-9 :;,.<>@(){}%|=\\n\\t-]{0,200}") {
        for head in [
            "BufferAssignment:\nallocation 0: size ",
            "Memory Space: default (color=",
            "Total bytes used: 1\n\nAllocations sorted by size:\n",
            "Total bytes used: 1\n\nUsed values:\n<",
            "buffer_id,buffer_name,offset,size,definition_time,end_time\n",
            "{\"heapSizes\": ",
            "{\"memoryProfilePerAllocator\": ",
            "(dp0\nS'segments'\np1\n(lp2\n(dp3\nS'address'\n",
        ] {
            through(format!("{head}{text}").into_bytes());
        }
    }
}
