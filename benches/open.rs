//! Benchmark of reading, decoding and analysing a file: wall time, CPU time and peak memory, each run in a new process.
//!
//! `cargo bench --bench open -- FILE.hlo.pb…` (default: the largest HLO proto in the samples and in `HIGHWATER_PROFILES`).
//! For comparison, `PYTHON_PROTOBUF` may name a Python with `tensorflow`, which parses the file with Google's protobuf,
//! and `PYTHON_XPROF` a Python with `xprof`, which converts it.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

mod common;
#[path = "common/largest.rs"]
mod largest;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use common::{peak_memory, processor_time};
use highwater::analysis::ProgramAnalysis;
use highwater::decode::{Reporter, hlo};
use highwater::model::Device;
use highwater::source::{Input, Progress};

const RUNS: usize = 9;

/// One run. Prints microseconds of reading, decoding, analysis and CPU time, and peak memory in KiB.
fn once(path: &Path) {
    let start = Instant::now();
    let progress = Progress::default();
    let input = Input::open(path).expect("readable");
    let bytes = input.load(&progress).expect("readable");
    let read = start.elapsed();
    let program = hlo::decode(&bytes, &progress, &Reporter::default()).expect("an HLO proto");
    let decoded = start.elapsed();
    let analysis = ProgramAnalysis::new(&program, &Device::default());
    let analysed = start.elapsed();
    assert!(!analysis.spaces.is_empty());
    println!(
        "{} {} {} {} {}",
        read.as_micros(),
        decoded.as_micros(),
        analysed.as_micros(),
        processor_time().as_micros(),
        peak_memory()
    );
    // Exclude freeing memory, which the window never does while it shows a profile.
    std::process::exit(0);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, path] = &arguments[..]
        && flag == "--once"
    {
        once(path.as_ref());
    }
    let mut paths: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    if paths.is_empty() {
        paths.extend(largest::program());
    }
    for path in paths {
        bench(&path);
    }
}

fn bench(path: &Path) {
    let size = std::fs::metadata(path).map_or(0, |m| m.len());
    println!("{} ({size} bytes), {RUNS} fresh processes", path.display());
    let mut runs: Vec<Vec<u64>> = (0..RUNS)
        .map(|_| {
            let own = std::env::current_exe().expect("own path");
            let output = Command::new(own).arg("--once").arg(path).output().expect("runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split_whitespace().filter_map(|n| n.parse().ok()).collect()
        })
        .collect();
    runs.sort_by_key(|run| run.get(2).copied());
    let column = |i: usize| {
        let mut values: Vec<u64> = runs.iter().filter_map(|run| run.get(i).copied()).collect();
        values.sort_unstable();
        (values[0], values[values.len() / 2], values[values.len() - 1])
    };
    for (i, what) in ["read", "decoded", "analysed", "processor time"].iter().enumerate() {
        let (min, median, max) = column(i);
        println!(
            "  {what:15} min {:8.2} ms  median {:8.2}  max {:8.2}",
            min as f64 / 1e3,
            median as f64 / 1e3,
            max as f64 / 1e3
        );
    }
    let (_, memory, _) = column(4);
    println!(
        "  peak memory     {:.1} MiB: the file plus {:.1} MiB",
        memory as f64 / 1024.0,
        memory as f64 / 1024.0 - size as f64 / 1048576.0
    );
    let wall = column(2).0 as f64 / 1e3;
    let processor = column(3).0 as f64 / 1e3;
    if let Some(parse) = yardstick("PYTHON_PROTOBUF", PROTOBUF, path) {
        println!(
            "  protobuf parses {parse:.1} ms: ours takes {:.3} of that in wall time, {:.3} in CPU time",
            wall / parse,
            processor / parse
        );
    }
    if let Some(convert) = yardstick("PYTHON_XPROF", XPROF, path) {
        println!("  XProf converts  {convert:.1} ms: {:.0} times our wall time", convert / wall);
    }
}

/// Parses the file seven times and prints the fastest time in milliseconds.
const PROTOBUF: &str = "
import sys, time
from tensorflow.compiler.xla.service import hlo_pb2
data = open(sys.argv[1], 'rb').read()
best = []
for _ in range(7):
    start = time.perf_counter(); m = hlo_pb2.HloProto(); m.ParseFromString(data); best.append(time.perf_counter() - start); del m
print(min(best) * 1e3)
";

/// Wraps the file in an `XSpace`, converts it to Memory Viewer JSON with XProf once, and prints milliseconds.
const XPROF: &str = "
import sys, time, os, tempfile
def varint(n):
    out = b''
    while n > 127: out += bytes([n & 127 | 128]); n >>= 7
    return out + bytes([n])
def field(number, data): return varint(number << 3 | 2) + varint(len(data)) + data
def number(n, value): return varint(n << 3) + varint(value)
data = open(sys.argv[1], 'rb').read()
stats = field(5, number(1, 1) + field(6, data)) + field(5, number(1, 2) + number(3, 1))
meta = number(1, 1) + field(2, b'jit_f(1)') + stats
plane = field(2, b'/host:metadata') + field(4, number(1, 1) + field(2, meta))
for i, name in ((1, b'Hlo Proto'), (2, b'program_id')):
    plane += field(5, number(1, i) + field(2, number(1, i) + field(2, name)))
from xprof.convert import raw_to_tool_data as r
with tempfile.TemporaryDirectory() as folder:
    d = folder + '/plugins/profile/s1'; os.makedirs(d); x = d + '/vm.xplane.pb'
    open(x, 'wb').write(field(1, plane))
    start = time.perf_counter(); r.xspace_to_tool_names([x])
    key = [f[:-len('.hlo_proto.pb')] for f in os.listdir(d) if f.endswith('.hlo_proto.pb')][0]
    reply, _ = r.xspace_to_tool_data([x], 'memory_viewer', {'module_name': key, 'program_id': '', 'memory_space': '0'})
    assert reply
    print((time.perf_counter() - start) * 1e3)
";

fn yardstick(variable: &str, script: &str, path: &Path) -> Option<f64> {
    let python = std::env::var_os(variable)?;
    let output = Command::new(python).args(["-c", script]).arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.lines().last().and_then(|line| line.trim().parse().ok());
    if number.is_none() {
        println!("  {variable}: {}", String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no output"));
    }
    number
}
