//! Benchmark of scanning a 500 MB log with one message in the middle: time, MB/s and peak memory, each run in a new
//! process.
//!
//! `cargo bench --bench scan [-- MEGABYTES]`. The log is written to the temporary folder and read once beforehand to warm
//! the page cache.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

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

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn write_log(path: &Path, size: usize) {
    let mut out = BufWriter::new(File::create(path).expect("a temporary file"));
    let (mut written, mut i, mut has_message) = (0, 0usize, false);
    while written < size {
        let line = if !has_message && written >= size / 2 {
            has_message = true;
            MESSAGE
        } else {
            LINES[i.wrapping_mul(7) % LINES.len()]
        };
        out.write_all(line.as_bytes()).expect("room");
        written += line.len();
        i += 1;
    }
    out.flush().expect("room");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, path] = &arguments[..]
        && flag == "--once"
    {
        let start = Instant::now();
        let profile = open::open_path(path.as_ref(), &Progress::default()).expect("a log");
        let (wall, cpu) = (start.elapsed(), processor_time());
        assert_eq!(profile.failures.len(), 1, "the message in the middle");
        println!("{} {} {}", wall.as_micros(), cpu.as_micros(), peak_memory());
        return;
    }
    let megabytes: usize = arguments.first().and_then(|a| a.parse().ok()).unwrap_or(500);
    let path = std::env::temp_dir().join(format!("highwater-scan-{}.log", std::process::id()));
    write_log(&path, megabytes * 1_000_000);
    let size = std::fs::metadata(&path).map_or(0, |m| m.len());
    let mut runs: Vec<Vec<u64>> = (0..=RUNS)
        .map(|_| {
            let own = std::env::current_exe().expect("own path");
            let output = Command::new(own).arg("--once").arg(&path).output().expect("runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split_whitespace().filter_map(|n| n.parse().ok()).collect()
        })
        .collect();
    let _ = std::fs::remove_file(&path);
    // The first run warms the page cache.
    runs.remove(0);
    runs.sort();
    for (i, what) in ["time", "processor time"].iter().enumerate() {
        let mut values: Vec<u64> = runs.iter().filter_map(|run| run.get(i).copied()).collect();
        values.sort_unstable();
        let speed = |micros: u64| size as f64 / micros as f64;
        println!(
            "{what:15} best {:.3} s ({:.0} MB/s)  median {:.3} s ({:.0} MB/s)",
            values[0] as f64 / 1e6,
            speed(values[0]),
            values[values.len() / 2] as f64 / 1e6,
            speed(values[values.len() / 2])
        );
    }
    let memory = runs.iter().filter_map(|run| run.get(2)).max().copied().unwrap_or(0);
    println!("peak memory     {:.1} MiB for a log of {} MB", memory as f64 / 1024.0, size / 1_000_000);
}
