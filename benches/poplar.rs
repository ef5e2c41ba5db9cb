//! Benchmark of opening a very large Poplar profile: time and peak memory. `cargo bench --bench poplar -- FILE`; create
//! the file with `cargo run --release --example generate_poplar json FILE huge`.

use std::path::Path;
use std::time::Instant;

use highwater::analysis::ProfileAnalysis;
use highwater::source::Progress;

/// Peak resident set size in KiB, from `/proc`; 0 if unavailable.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn main() {
    let Some(path) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) else {
        println!("skipped: no file given");
        return;
    };
    let begin = Instant::now();
    let profile = match highwater::open::open_path(Path::new(&path), &Progress::default()) {
        Ok(profile) => profile,
        Err(error) => {
            println!("{path}: {error}");
            return;
        }
    };
    let opened = begin.elapsed();
    let analysis = ProfileAnalysis::new(&profile);
    let bytes = Path::new(&path).metadata().map_or(0, |data| data.len());
    println!(
        "{} bytes: opened in {:.2} s ({:.0} MB/s), analysed in {:.1} ms, peak memory {} MiB, {} tiles over",
        bytes,
        opened.as_secs_f64(),
        bytes as f64 / 1e6 / opened.as_secs_f64(),
        begin.elapsed().saturating_sub(opened).as_secs_f64() * 1e3,
        peak_kib() / 1024,
        analysis.tiles.map_or(0, |tiles| tiles.over.len())
    );
}
