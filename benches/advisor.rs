//! Benchmark of the advisor and the packers.
//!
//! `cargo bench --bench advisor -- FILE.hlo.pb…`. Without a file it runs on the `:`-separated paths in `HIGHWATER_BENCH`,
//! or else on the largest HLO proto in the samples and in `HIGHWATER_PROFILES`.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

use highwater::model::MemorySpace;
#[path = "common/largest.rs"]
mod largest;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use highwater::advisor::advise;
use highwater::analysis::ProfileAnalysis;
use highwater::analysis::packing::{ALIGNMENT, Families, Order, fallback, online};
use highwater::analysis::what_if::{Arguments, Depth, Edit, Memory};
use highwater::open::open_path;
use highwater::source::Progress;

const RUNS: usize = 9;

fn fastest(mut run: impl FnMut()) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[0], times[RUNS / 2])
}

fn print(what: &str, times: (Duration, Duration)) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!("  {what:34} fastest {:8.2} ms  median {:8.2} ms", ms(times.0), ms(times.1));
}

fn bench(path: &Path) {
    let profile = open_path(path, &Progress::default()).expect("opens");
    let analysis = ProfileAnalysis::new(&profile);
    println!("{}", path.display());
    if let (Some(program), Some(own)) = (profile.programs.first(), analysis.programs.first())
        && let Some(space) = own.space(MemorySpace::HBM)
        && let Some(families) = space.xprof.trace.and_then(|trace| Families::new(program, trace))
    {
        let blocks = families.blocks();
        println!("  {} families", blocks.len());
        print("packed in program order", fastest(|| drop(std::hint::black_box(online(&blocks)))));
        print("packed by size", fastest(|| drop(std::hint::black_box(fallback(&blocks, Order::Size, ALIGNMENT)))));
        print("packed by span", fastest(|| drop(std::hint::black_box(fallback(&blocks, Order::Span, ALIGNMENT)))));
        print(
            "what-if setup",
            fastest(|| drop(std::hint::black_box(Memory::new(program, own, space, &profile.device)))),
        );
        let memory = Memory::new(program, own, space, &profile.device);
        let edits = [Edit::Donate(Arguments::all()), Edit::Batch(0.5)];
        let try_out = |depth| std::hint::black_box(memory.evaluate(program, &edits, depth));
        print("two changes, verdict", fastest(|| drop(try_out(Depth::Verdict))));
        print("two changes, packed", fastest(|| drop(try_out(Depth::Packed))));
    }
    print("whole advisor", fastest(|| drop(std::hint::black_box(advise(&profile, &analysis)))));
}

fn main() {
    let mut paths: Vec<PathBuf> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).map(PathBuf::from).collect();
    if paths.is_empty()
        && let Some(named) = std::env::var_os("HIGHWATER_BENCH")
    {
        paths.extend(std::env::split_paths(&named));
    }
    if paths.is_empty() {
        paths.extend(largest::program());
    }
    for path in paths {
        bench(&path);
    }
}
