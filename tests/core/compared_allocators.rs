//! Promise: two allocators are compared by who holds their memory, and every comparison adds up to the byte.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use highwater::analysis::ProfileAnalysis;
use highwater::export::diff::{self, AllocatorDiff, Builder, Side, StepDiff, StepName, compare_memory};
use highwater::export::report::{Format, Options};
use highwater::model::Profile;
use highwater::open;
use highwater::source::Progress;

use crate::common;

struct Read {
    name: String,
    profile: Profile,
    analysis: ProfileAnalysis,
}

fn read(path: &Path) -> Read {
    let name = common::name(path);
    let profile = open::open_path(path, &Progress::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let analysis = ProfileAnalysis::new(&profile);
    Read { name, profile, analysis }
}

impl Read {
    fn side(&self) -> Side<'_> {
        Side { profile: &self.profile, analysis: &self.analysis, program: 0 }
    }
}

fn compared(before: &Read, after: &Read) -> Vec<AllocatorDiff> {
    compare_memory(before.side(), after.side(), &Options { top: 0, ..Options::default() }).allocators
}

/// Every sum of a comparison, whatever is compared.
fn adds_up(what: &str, found: &AllocatorDiff) {
    let total = |side: Option<u64>| i128::from(side.unwrap_or(0));
    for steps in [&found.waterfall, &found.waterfall_by_holder] {
        let sum = |of: fn(&StepDiff) -> i128| steps.iter().map(of).sum::<i128>();
        assert_eq!(sum(|step| step.before), total(found.total.before), "{what}: before");
        assert_eq!(sum(|step| step.after), total(found.total.after), "{what}: after");
        for step in steps {
            assert_eq!(step.difference, step.after - step.before, "{what}: {step:?}");
            let parts = i128::from(step.appeared) - i128::from(step.gone) + step.resized + i128::from(step.came)
                - i128::from(step.left);
            assert_eq!(parts, step.difference, "{what}: {step:?}");
        }
    }
    let of_rows: i128 = found.holders.iter().map(|row| row.difference).sum();
    assert_eq!(of_rows, total(found.in_use.after) - total(found.in_use.before), "{what}: rows");
    for row in &found.holders {
        let parts = i128::from(row.appeared) - i128::from(row.gone) + row.resized;
        assert_eq!((parts, row.difference), (row.difference, i128::from(row.after) - i128::from(row.before)), "{what}");
        assert_eq!((row.before == 0, row.after == 0), (row.count_before == 0, row.count_after == 0), "{what}: {row:?}");
    }
}

fn snapshots() -> Vec<PathBuf> {
    let torch = fs::read_dir(common::samples().join("torch")).expect("the samples").flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = torch.filter(|path| path.to_string_lossy().ends_with(".pickle.gz")).collect();
    found.sort();
    found
}

#[test]
fn snapshots_add_up_and_a_snapshot_does_not_differ_from_itself() {
    let all: Vec<Read> = snapshots().iter().map(|path| read(path)).collect();
    assert!(all.len() > 5);
    for before in &all {
        for after in &all {
            for found in compared(before, after) {
                let what = format!("{} to {}: {}", before.name, after.name, found.name);
                adds_up(&what, &found);
                if before.name == after.name {
                    assert_eq!((found.holders.len(), found.total.difference), (0, Some(0)), "{what}");
                    assert!(found.holders_equal > 0, "{what}");
                }
            }
        }
    }
}

#[test]
fn traces_dumps_and_live_arrays_add_up() {
    let made = common::samples().join("made");
    for name in ["gpu_0_bfc.memory_dump", "gpu_training.xplane.pb", "tpu_training.prof"] {
        let (one, nothing) = (
            read(&made.join(name)),
            Read {
                name: "nothing".to_owned(),
                profile: Profile::default(),
                analysis: ProfileAnalysis::new(&Profile::default()),
            },
        );
        let same = compared(&one, &one);
        assert!(!same.is_empty(), "{name}");
        for found in same {
            adds_up(name, &found);
            assert_eq!((found.holders.len(), found.total.difference), (0, Some(0)), "{name}");
        }
        for found in compared(&nothing, &one) {
            adds_up(name, &found);
            assert!(found.holders.iter().all(|row| row.change == "appeared"), "{name}");
            assert_eq!(found.moment_before, None, "{name}");
        }
    }
}

/// A message of TensorFlow's allocator with some chunks.
fn message(chunks: &[(u64, &str)]) -> String {
    let mut text = String::from(
        "2024-01-01 00:00:00.000000: W external/local_tsl/tsl/framework/bfc_allocator.cc:482] Allocator (GPU_0_bfc) ran \
         out of memory trying to allocate 1.00GiB (rounded to 1073741824)requested by op model/dense/MatMul\n\
         If the cause is memory fragmentation maybe the environment variable \
         'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. \nCurrent allocation summary follows.\n",
    );
    let line = "2024-01-01 00:00:00.000000: I external/local_tsl/tsl/framework/bfc_allocator.cc:1090] ";
    let mut address = 0x7f00_0000_0000u64;
    for (size, use_of) in chunks {
        let _ = writeln!(text, "{line}{use_of} at {address:x} of size {size} next 18446744073709551615");
        address += size;
    }
    text
}

#[test]
fn chunks_of_two_messages_are_compared_by_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, chunks: &[(u64, &str)]| {
        let path = folder.path().join(name);
        fs::write(&path, message(chunks)).expect("written");
        read(&path)
    };
    let before = write("before.log", &[(1 << 20, "InUse"), (1 << 20, "InUse"), (4 << 20, "Free ")]);
    let after = write("after.log", &[(1 << 20, "InUse"), (1 << 20, "InUse"), (1 << 20, "InUse"), (2 << 20, "InUse")]);
    let found = compared(&before, &after);
    let [found] = &found[..] else { panic!("{found:?}") };
    adds_up("messages", found);
    let rows: Vec<(&str, &str, i128)> =
        found.holders.iter().map(|row| (row.change, row.name.as_str(), row.difference)).collect();
    assert_eq!(
        rows,
        [("appeared", "chunks of 2.00 MiB", 2 << 20), ("grew", "chunks of 1.00 MiB", 1 << 20)],
        "{found:?}"
    );
    let free = found.waterfall.iter().find(|step| matches!(step.name, StepName::Rest(_))).expect("what is free");
    assert_eq!((free.before, free.after), (4 << 20, 0));
}

#[test]
fn every_format_names_what_differs_the_most() {
    let [before, after] = ["train_2_0.pickle.gz", "oom_shortage_2_15.pickle.gz"]
        .map(|name| read(&common::samples().join("torch").join(name)));
    let found = compared(&before, &after);
    let largest = &found[0].holders[0];
    assert!(largest.stack.len() > 1 && largest.name.contains(".py:"), "{largest:?}");
    let written = |format: Format| {
        let mut builder = Builder::new("before".to_owned(), "after".to_owned());
        builder.pair(compare_memory(before.side(), after.side(), &Options::default()));
        diff::write(&builder.finish(), format)
    };
    for format in [Format::Text, Format::Json, Format::Markdown, Format::Html] {
        let text = written(format);
        assert!(text.contains(&largest.name) && text.contains("cuda:0"), "{format:?}: {text}");
    }
    let text = written(Format::Text);
    assert!(text.contains("reserved, by kind") && text.contains("reserved, by stack"), "{text}");
    assert!(text.contains("free, kept for reuse") && text.contains("when the request failed"), "{text}");
}

#[test]
fn genuine_dumps_of_an_allocator_are_compared_by_size() {
    let folder = common::samples().join("tf_bfc");
    let [before, after] =
        [2048, 4096].map(|batch| read(&folder.join(format!("bfc_cpu_allocator.batch_{batch}.memdump"))));
    let found = compared(&before, &after);
    let [found] = &found[..] else { panic!("{found:?}") };
    adds_up("tf_bfc", found);
    assert_eq!((found.total.before, found.total.difference), (Some(200 << 20), Some(0)));
    let rows: Vec<(&str, &str)> = found.holders.iter().map(|row| (row.change, row.name.as_str())).collect();
    assert!(rows.contains(&("gone", "chunks of 8.00 MiB")), "{rows:?}");
    assert!(rows.contains(&("appeared", "chunks of 16.0 MiB")), "{rows:?}");
}
