//! Compares with other programs on the same file, in one run: `HIGHWATER_PEERS=python cargo bench --bench peers [-- FILE]`,
//! where that Python has the packages `protobuf` and `xprof`, and `tensorflow` for the message as XLA defines it. FILE is
//! an HLO proto that is not compressed; by default, a training step of 96 layers is generated. Times are the least of
//! several runs, each of ours in a process of its own.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

#[path = "synthetic/training.rs"]
mod training;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 7;
const LAYERS: usize = 96;
const PROGRAM: &str = env!("CARGO_BIN_EXE_highwater");
const DESCRIPTORS: &str = concat!(env!("OUT_DIR"), "/hlo.descriptors");

fn main() {
    let Some(python) = std::env::var_os("HIGHWATER_PEERS") else {
        println!("skipped: HIGHWATER_PEERS names no Python");
        return;
    };
    let given = std::env::args().skip(1).find(|word| !word.starts_with("--")).map(PathBuf::from);
    let file = given.unwrap_or_else(|| {
        let path = std::env::temp_dir().join(format!("highwater_peers_{LAYERS}_layers.hlo.pb"));
        std::fs::write(&path, training::program(LAYERS)).expect("a file in the temporary folder");
        path
    });
    let bytes = std::fs::metadata(&file).expect("the file").len();
    println!("{}: {:.1} MB", file.display(), bytes as f64 / 1e6);
    let whole = (0..RUNS).map(|_| report(&file).0).min().expect("a run");
    let open = (0..RUNS).map(|_| report(&file).1).min().expect("a run");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers.py");
    let output = Command::new(python)
        .args(["-W", "ignore", script, DESCRIPTORS])
        .arg(&file)
        .arg(RUNS.to_string())
        .stderr(Stdio::null())
        .output()
        .expect("the Python of HIGHWATER_PEERS runs");
    let times = String::from_utf8_lossy(&output.stdout).into_owned();
    let peer = |name: &str| {
        let line = times.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok().map(Duration::from_secs_f64)
    };
    let upb = [peer("whole "), peer("upb ")];
    let ratio = |time: Duration| {
        let to = |upb: Option<Duration>| upb.map(|upb| format!("{:8.2}", time.as_secs_f64() / upb.as_secs_f64()));
        upb.map(|upb| to(upb).unwrap_or_else(|| format!("{:8}", ""))).concat()
    };
    let line = |name: &str, time: Duration| println!("{name:58}{:9.1} ms {}", time.as_secs_f64() * 1e3, ratio(time));
    println!("{:58}{:>12} {:>8}{:>8}", "", "time", "to upb", "(ours)");
    for (name, time) in [
        ("upb: parse from memory, as XLA defines the message", upb[0]),
        ("upb: parse from memory, our fields only", upb[1]),
        ("XProf: its memory viewer's answer", peer("xprof ")),
    ] {
        match time {
            Some(time) => line(name, time),
            None => println!("{name:58}{:>12}", "absent"),
        }
    }
    line("Highwater: read, decode and analyse all memory spaces", open);
    line("Highwater: whole report with advice, process included", whole);
}

/// (time of the whole command, time until everything is analysed) of one report.
fn report(file: &Path) -> (Duration, Duration) {
    let begin = Instant::now();
    let output = Command::new(PROGRAM)
        .args(["report", "--format", "json", "--stats", "--capacity", "15.75GiB"])
        .arg(file)
        .stdout(Stdio::null())
        .output()
        .expect("the program runs");
    let whole = begin.elapsed();
    let stages = String::from_utf8_lossy(&output.stderr).into_owned();
    let milliseconds = |stage: &str| {
        let line = stages.lines().find_map(|line| line.strip_prefix(stage))?;
        line.trim().split(' ').next()?.parse::<f64>().ok()
    };
    let open = ["reading", "decoding", "analysing"].into_iter().filter_map(milliseconds).sum::<f64>();
    (whole, Duration::from_secs_f64(open / 1e3))
}
