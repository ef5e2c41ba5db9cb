//! Benchmark of scanning logs: time, MB/s and peak memory, each run in a new process.
//!
//! * an ordinary log of 500 MB with one message in the middle,
//! * 51 MB with a word of messages (`Attempting to save`) in every 150th line,
//! * 110 MB with a word of listings (` of size `) in every line,
//! * 10,000 listings of a program that does not fit.
//!
//! `cargo bench --bench scan [-- MEGABYTES]`, the size of the ordinary log. The logs are written to the temporary folder
//! and read once beforehand to warm the page cache.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

mod common;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use common::{peak_memory, processor_time};
use highwater::open;
use highwater::source::Progress;

const RUNS: usize = 7;

const LINES: [&str; 5] = [
    "2026-08-01 10:00:00,123 - trainer - INFO - step 120345 loss 2.3145 grad_norm 0.41 lr 0.0003 tokens/s 120345.6 memory 12.3GiB/15.7GiB\n",
    "I0801 10:00:00.712345     123 data_loader.py:88] prefetched 64 batches of shape (512, 4096) in 0.031 s from shard 17 of 256\n",
    "2026-08-01 10:00:01.000001: I external/xla/xla/service/service.cc:163] StreamExecutor device (0): Host, Default Version\n",
    "WARNING: checkpoint manager: saving of step 120300 took 12.3 s, longer than the interval between steps; out of patience\n",
    "{\"level\": \"info\", \"ts\": 1754042400.123, \"msg\": \"allocating buffers\", \"bytes\": 123456789, \"host\": \"node-7\"}\n",
];

const MESSAGE: &str = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 17.09G of 15.75G hbm. Exceeded hbm capacity by 1.34G.\n";

const LISTING: &str = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 17.09G of 15.75G hbm. Exceeded hbm capacity by 1.34G.\n\nTotal hbm usage >= 17.34G:\n    reserved        258.00M \n    program          17.09G \n    arguments            0B \n\nOutput size 64.00M; shares 0B with arguments.\n\nProgram hbm requirement 17.09G:\n    global            64.0K\n    HLO temp         17.09G (99.9% utilization: Unpadded (17.07G) Padded (17.09G), 0.0% fragmentation (0B))\n\n  Largest program allocations in hbm:\n\n";

/// An entry of a listing.
fn entry(number: usize, megabytes: usize) -> String {
    format!(
        "  {number}. Size: {megabytes}.00M\n     Operator: op_name=\"jit(step)/layer_{number}/mul\" source_file=\"model.py\" source_line={number}\n     Shape: f32[{megabytes},262144]{{1,0:T(8,128)}}\n     Unpadded size: {megabytes}.00M\n     XLA label: fusion.{number} = fusion(p), kind=kLoop\n     Allocation type: HLO temp\n     ==========================\n\n"
    )
}

/// A log to scan.
struct Log {
    name: &'static str,
    /// Messages in it.
    failures: usize,
    /// The lines of its n-th piece; `None` at its end.
    piece: Box<dyn Fn(usize, usize) -> Option<String>>,
}

/// Every log; the first is of `size` bytes.
fn logs(size: usize) -> [Log; 4] {
    let ordinary = move |i: usize, written: usize| {
        let is_middle = written >= size / 2 && written < size / 2 + LINES[i.wrapping_mul(7) % LINES.len()].len();
        let line = if is_middle { MESSAGE } else { LINES[i.wrapping_mul(7) % LINES.len()] };
        (written < size).then(|| line.to_owned())
    };
    let common_word = |i: usize, written: usize| {
        let line = if i % 150 == 149 {
            format!("INFO checkpoint: Attempting to save step {i} to /data/run/{i}\n")
        } else {
            format!("INFO step {i} loss 2.{:04} grad_norm 0.{:03} tokens/s {}\n", i % 9973, i % 977, 100_000 + i % 4999)
        };
        (written < 51_000_000).then_some(line)
    };
    let listing_word = |i: usize, written: usize| {
        let line = format!("DEBUG loader: record {i} of size {} read from shard {}\n", 4096 + i % 65_536, i % 256);
        (written < 110_000_000).then_some(line)
    };
    let listings = |i: usize, _: usize| {
        // Each with numbers of its own: what is said again is only counted.
        let entries: String = (1..=4).map(|number| entry(number, 64 + i % 4096 + number)).collect();
        (i < 10_000).then(|| format!("{LISTING}{entries}"))
    };
    [
        Log { name: "ordinary log", failures: 1, piece: Box::new(ordinary) },
        Log { name: "a word of messages every 150 lines", failures: 0, piece: Box::new(common_word) },
        Log { name: "a word of listings in every line", failures: 0, piece: Box::new(listing_word) },
        Log { name: "10,000 listings", failures: 500, piece: Box::new(listings) },
    ]
}

fn write_log(path: &Path, log: &Log) {
    let mut out = BufWriter::new(File::create(path).expect("a temporary file"));
    let (mut written, mut i) = (0, 0);
    while let Some(piece) = (log.piece)(i, written) {
        out.write_all(piece.as_bytes()).expect("room");
        written += piece.len();
        i += 1;
    }
    out.flush().expect("room");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, path, failures] = &arguments[..]
        && flag == "--once"
    {
        let start = Instant::now();
        let profile = open::open_path(path.as_ref(), &Progress::default()).expect("a log");
        let (wall, cpu) = (start.elapsed(), processor_time());
        assert_eq!(profile.failures.len().to_string(), *failures, "every message, and no other");
        println!("{} {} {}", wall.as_micros(), cpu.as_micros(), peak_memory());
        return;
    }
    let megabytes: usize = arguments.first().and_then(|a| a.parse().ok()).unwrap_or(500);
    for log in logs(megabytes * 1_000_000) {
        let path = std::env::temp_dir().join(format!("highwater-scan-{}.log", std::process::id()));
        write_log(&path, &log);
        measure(&path, &log);
        let _ = std::fs::remove_file(&path);
    }
}

/// Reads a log several times, each in a new process, and prints the best and the median.
fn measure(path: &Path, log: &Log) {
    let size = std::fs::metadata(path).map_or(0, |m| m.len());
    println!("{}, {} MB", log.name, size / 1_000_000);
    let mut runs: Vec<Vec<u64>> = (0..=RUNS)
        .map(|_| {
            let own = std::env::current_exe().expect("own path");
            let arguments = [std::ffi::OsStr::new("--once"), path.as_os_str()];
            let output = Command::new(own).args(arguments).arg(log.failures.to_string()).output().expect("runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            text.split_whitespace().filter_map(|n| n.parse().ok()).collect()
        })
        .collect();
    // The first run warms the page cache.
    runs.remove(0);
    runs.sort();
    for (i, what) in ["time", "processor time"].iter().enumerate() {
        let mut values: Vec<u64> = runs.iter().filter_map(|run| run.get(i).copied()).collect();
        values.sort_unstable();
        let speed = |micros: u64| size as f64 / micros as f64;
        println!(
            "  {what:15} best {:.3} s ({:.0} MB/s)  median {:.3} s ({:.0} MB/s)",
            values[0] as f64 / 1e6,
            speed(values[0]),
            values[values.len() / 2] as f64 / 1e6,
            speed(values[values.len() / 2])
        );
    }
    let memory = runs.iter().filter_map(|run| run.get(2)).max().copied().unwrap_or(0);
    println!("  peak memory     {:.1} MiB", memory as f64 / 1024.0);
}
