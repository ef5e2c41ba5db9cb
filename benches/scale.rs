//! Inputs as large as they come, at 1/16, 1/4 and the whole of their size: `cargo bench --bench scale [-- KIND…]`.
//!
//! An HLO proto of 1 GB, a trace of 4 GB with 1,000 programs, a Poplar graph profile of 16 IPUs, a log of 500 MB with one
//! message, and a folder and an archive of 1,000 programs are generated and opened as the window opens them, each in a
//! new process. Printed are wall and processor time, peak memory, the longest time in which progress did not move, and
//! the longest that work went on after cancelling at each twentieth of the time, in wall and in processor time, with the
//! stage in which that was; with the exponents of time and memory over the size. They need 5 GB of disk and 6 GB of memory; `--part 1/16` runs the smallest size alone.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

mod common;
#[path = "../tests/common/poplar_files.rs"]
mod poplar_files;
#[path = "synthetic/training.rs"]
mod training;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{peak_memory, processor_time};
use highwater::analysis::{ProfileAnalysis, Stop};
use highwater::open::{Opened, Target};
use highwater::source::{Progress, Stage};
use poplar_files::{Spec, Tree};

/// Shares of the whole size.
const PARTS: [usize; 3] = [16, 4, 1];

/// A kind of input and what writes it, at a part of its size.
type Kind = (&'static str, fn(&Path, usize));

const KINDS: [Kind; 6] =
    [("hlo", hlo), ("trace", trace), ("poplar", poplar), ("log", log), ("folder", folder), ("archive", archive)];

/// A program of about so many bytes.
fn program(bytes: usize) -> Vec<u8> {
    let (few, many) = (training::program(16).len(), training::program(32).len());
    training::program(16 + bytes.saturating_sub(few) * 16 / (many - few))
}

fn hlo(path: &Path, part: usize) {
    std::fs::write(path, program(1_000_000_000 / part)).expect("room");
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n > 0x7f {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

/// Tag and length of a field with bytes.
fn field(number: u64, length: usize) -> Vec<u8> {
    [varint(number << 3 | 2), varint(length as u64)].concat()
}

fn number(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

fn text(number: u64, bytes: &[u8]) -> Vec<u8> {
    [field(number, bytes.len()), bytes.to_vec()].concat()
}

/// A trace whose plane `/host:metadata` holds the programs: `XSpace.planes`, `XPlane.event_metadata`,
/// `XEventMetadata.stats`, as in xplane.proto.
fn trace(path: &Path, part: usize) {
    let module = program(4_000_000);
    // All that comes before a program's bytes, as the lengths need it.
    let before = |id: u64| {
        let name = format!("jit_step_{id}({id})").into_bytes();
        let proto = [number(1, 1), field(6, module.len())].concat();
        let stat = field(5, proto.len() + module.len());
        let metadata = [number(1, id), text(2, &name), text(4, &name), stat, proto].concat();
        let entry = [number(1, id), field(2, metadata.len() + module.len()), metadata].concat();
        [field(4, entry.len() + module.len()), entry].concat()
    };
    let count = 1000 / part as u64;
    let name = text(2, b"/host:metadata");
    let stats = text(5, &[number(1, 1), text(2, &[number(1, 1), text(2, b"Hlo Proto")].concat())].concat());
    let programs: usize = (1..=count).map(|id| before(id).len() + module.len()).sum();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).expect("a temporary file"));
    let mut put = |bytes: &[u8]| out.write_all(bytes).expect("room");
    put(&field(1, name.len() + programs + stats.len()));
    put(&name);
    for id in 1..=count {
        put(&before(id));
        put(&module);
    }
    put(&stats);
    out.flush().expect("room");
}

fn poplar(path: &Path, part: usize) {
    let spec = Spec {
        ipus: 16,
        exchanges: 2000 / part as u64,
        compute_sets: 5000 / part as u64,
        estimates: true,
        layers: 24,
        hot_tiles: vec![0, 5000, 23_000],
        ..Spec::mk2()
    };
    let mut tree = Tree::new(BufWriter::with_capacity(1 << 20, File::create(path).expect("a temporary file")), false);
    poplar_files::write_graph(&mut tree, &spec).expect("room");
    tree.finish().expect("room").flush().expect("room");
}

fn log(path: &Path, part: usize) {
    let mut out = BufWriter::new(File::create(path).expect("a temporary file"));
    let lines = 500_000_000 / part / 88;
    for i in 0..lines {
        writeln!(
            out,
            "I1121 10:{:02}:{:02}.123456 4021 trainer.py:311] step {i:8} loss 2.{:05} tokens/s 48231.5",
            i / 60 % 60,
            i % 60,
            i % 99_991
        )
        .expect("room");
        if i == lines / 2 {
            let message = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. \
                Ran out of memory in memory space hbm. Used 17.09G of 15.75G hbm. Exceeded hbm capacity by 1.34G.";
            writeln!(out, "{message}").expect("room");
        }
    }
    out.flush().expect("room");
}

fn name(i: usize) -> String {
    format!("module_{i:04}.jit_step_{i}.after_optimizations.hlo.pb")
}

fn folder(path: &Path, part: usize) {
    let module = program(1_000_000);
    std::fs::create_dir(path).expect("a temporary folder");
    for i in 0..1000 / part {
        std::fs::write(path.join(name(i)), &module).expect("room");
    }
}

fn archive(path: &Path, part: usize) {
    let module = program(1_000_000);
    let mut writer = zip::ZipWriter::new(File::create(path).expect("a temporary file"));
    let options = zip::write::SimpleFileOptions::default().compression_level(Some(1));
    for i in 0..1000 / part {
        writer.start_file(name(i), options).expect("room");
        writer.write_all(&module).expect("room");
    }
    writer.finish().expect("room");
}

/// Opens a file as the window does, up to the worst program's analysis; `false` once it was cancelled.
fn opened(path: &Path, progress: &Progress) -> bool {
    let open = || {
        let opened = Target::Path(path.to_owned()).open(progress)?.listed(&[], progress)?;
        Ok(match opened {
            Opened::Profile(profile) => *profile,
            Opened::Collection(collection) => {
                let order = collection.worst_first(progress)?;
                collection.open_entry(order[0], progress)?
            }
        })
    };
    let profile: Result<_, highwater::decode::DecodeError> = open();
    let Ok(profile) = profile else {
        assert!(progress.check().is_err(), "{}", profile.err().map(|error| error.to_string()).unwrap_or_default());
        return false;
    };
    progress.begin(Stage::Analysing, ProfileAnalysis::steps(&profile));
    let is_whole = ProfileAnalysis::unless(&profile, Stop::once(progress.flag()).counting(progress.counter()))
        .map(std::hint::black_box)
        .is_ok();
    // Without the time of freeing it, which the window spends where nobody waits.
    if is_whole {
        std::mem::forget(profile);
    }
    is_whole
}

/// One run, cancelled after some microseconds (0: never). Prints microseconds of wall and processor time, KiB of peak
/// memory, microseconds of the longest rest of the progress, those of wall and processor time after cancelling, and the
/// stage in which that was.
fn once(path: &Path, cancel_after: u64) {
    let progress = Arc::new(Progress::default());
    let (has_ended, longest) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let start = Instant::now();
    let watcher = {
        let (progress, has_ended, longest) = (Arc::clone(&progress), Arc::clone(&has_ended), Arc::clone(&longest));
        std::thread::spawn(move || {
            let (mut last, mut since) = (None, Instant::now());
            let mut cancelled = None;
            while !has_ended.load(Ordering::Relaxed) {
                let now = Some((progress.stage(), progress.counts()));
                if now != last {
                    (last, since) = (now, Instant::now());
                }
                longest.fetch_max(since.elapsed().as_micros() as u64, Ordering::Relaxed);
                if cancel_after > 0 && cancelled.is_none() && start.elapsed() >= Duration::from_micros(cancel_after) {
                    cancelled = Some((Instant::now(), processor_time(), progress.stage()));
                    progress.cancel();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            cancelled
        })
    };
    let is_whole = opened(path, &progress);
    let (end, wall) = (Instant::now(), start.elapsed());
    has_ended.store(true, Ordering::Relaxed);
    let cancelled = watcher.join().expect("does not panic").filter(|_| !is_whole);
    let (cpu, rest) = (processor_time(), longest.load(Ordering::Relaxed));
    let waited = cancelled.map_or(0, |(at, ..)| end.saturating_duration_since(at).as_micros());
    let worked = cancelled.map_or(0, |(_, before, _)| cpu.saturating_sub(before).as_micros());
    let stage = cancelled.map_or("", |(_, _, stage)| stage.text());
    println!("{} {} {} {rest} {waited} {worked} {stage}", wall.as_micros(), cpu.as_micros(), peak_memory());
    std::process::exit(0);
}

/// Runs [`once`] in a process of its own: its numbers, and the stage in which it was cancelled.
fn run(path: &Path, cancel_after: u64) -> (Vec<f64>, String) {
    let own = std::env::current_exe().expect("own path");
    let output = Command::new(own).arg("--once").arg(path).arg(cancel_after.to_string()).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let words: Vec<String> =
        String::from_utf8_lossy(&output.stdout).split_whitespace().map(ToOwned::to_owned).collect();
    let (numbers, stage) = words.split_at(6);
    (numbers.iter().filter_map(|n| n.parse().ok()).collect(), stage.join(" "))
}

fn size_of(path: &Path) -> u64 {
    if path.is_dir() {
        std::fs::read_dir(path).expect("a folder").flatten().filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum()
    } else {
        path.metadata().map_or(0, |data| data.len())
    }
}

/// Slope of the last value over the first size, both as logarithms.
fn exponent(sizes: &[f64], values: &[f64]) -> f64 {
    let slope = |from: usize, to: usize| (values[to] / values[from]).ln() / (sizes[to] / sizes[from]).ln();
    if sizes.len() < 2 { f64::NAN } else { slope(0, sizes.len() - 1) }
}

fn measure((kind, write): Kind, parts: &[usize]) {
    let (mut sizes, mut walls, mut memories) = (Vec::new(), Vec::new(), Vec::new());
    for &part in parts {
        let folder: PathBuf = std::env::temp_dir().join(format!("highwater-scale-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let path = folder.join(match kind {
            "hlo" => "module_0000.jit_step.after_optimizations.hlo.pb",
            "trace" => "host.xplane.pb",
            "poplar" => "graph.json",
            "log" => "train.log",
            "archive" => "dumps.zip",
            _ => "dumps",
        });
        write(&path, part);
        let size = size_of(&path) as f64;
        // The least of three, the first of which fills the page cache.
        let whole = (0..3).map(|_| run(&path, 0).0).min_by(|a, b| a[0].total_cmp(&b[0])).expect("three runs");
        let cancelled = (1..20).map(|twentieth| run(&path, ((whole[0] * f64::from(twentieth) / 20.0) as u64).max(1)));
        let (slowest, stage) = cancelled.max_by(|a, b| a.0[4].total_cmp(&b.0[4])).expect("some runs");
        println!(
            "{kind:8} {:9.1} MB  {:8.3} s  {:8.3} s processor  {:7.0} MiB peak, {:+7.0} to the file  {:6.0} ms without progress  {:6.0} ms to cancel ({:.0} ms of work) while {stage}",
            size / 1e6,
            whole[0] / 1e6,
            whole[1] / 1e6,
            whole[2] / 1024.0,
            whole[2] / 1024.0 - size / 1048576.0,
            whole[3] / 1e3,
            slowest[4] / 1e3,
            slowest[5] / 1e3,
        );
        sizes.push(size);
        walls.push(whole[0]);
        memories.push(whole[2]);
        std::fs::remove_dir_all(&folder).expect("own folder");
    }
    println!("{kind:8} exponents: time {:.2}, memory {:.2}", exponent(&sizes, &walls), exponent(&sizes, &memories));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, path, cancel_after] = &arguments[..]
        && flag == "--once"
    {
        once(path.as_ref(), cancel_after.parse().unwrap_or(0));
        return;
    }
    let is_small = arguments.iter().any(|word| word == "1/16");
    let parts = if is_small { &PARTS[..1] } else { &PARTS[..] };
    let named: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--") && *word != "1/16").collect();
    for kind in KINDS {
        if named.is_empty() || named.iter().any(|word| *word == kind.0) {
            measure(kind, parts);
        }
    }
}
