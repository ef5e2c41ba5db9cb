//! How the time of each step of the advice grows with the program: `cargo bench --bench growth`.
//!
//! Training steps of 1, 4, 16 and 64 times as many layers are generated, and every step is timed on each: reading,
//! analysis, preparing for changes, each kind of change, the packers, each rule, the largest batch and the plan. The
//! exponent is the slope of time over buffers, both as logarithms, from 4 times on: 1 where twice the program takes
//! twice the time. A number on the command line takes the place of the 6 layers to begin with.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

#[path = "synthetic/training.rs"]
mod training;

use std::hint::black_box;
use std::time::{Duration, Instant};

use highwater::advisor::{Finding, PROGRAM_RULES, ProgramContext, batch_size, plan};
use highwater::analysis::packing::{ALIGNMENT, Families, Order, fallback, online};
use highwater::analysis::what_if::{Depth, Edit, Memory};
use highwater::analysis::{ProfileAnalysis, Stop};
use highwater::model::{Bytes, MemorySpace};
use highwater::open::open_input;
use highwater::source::{Input, Progress};

const LAYERS: usize = 6;
const TIMES: [usize; 4] = [1, 4, 16, 64];

/// Available memory against what is allocated, so that something has to be done.
const SHARE: f64 = 0.7;

/// Every kind of change.
const EDITS: [&str; 14] = [
    "donate *",
    "dtype * bf16",
    "dtype params bf16",
    "compute bf16",
    "dim 512 768",
    "unpad 512",
    "batch 0.5",
    "shard params 4",
    "constrain 4",
    "micro 2",
    "remat layer_*",
    "remat layer_* 2",
    "chunk logits 8",
    "blockwise *",
];

/// The least time of a few runs, at most half a second of them.
fn least<T>(mut run: impl FnMut() -> T) -> Duration {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    for _ in 0..9 {
        let start = Instant::now();
        drop(black_box(run()));
        best = best.min(start.elapsed());
        if begin.elapsed() > Duration::from_millis(500) {
            break;
        }
    }
    best
}

/// Steps with their times.
type Times = Vec<(String, Duration)>;

/// Times every step on a program of so many layers; with its number of buffers.
fn measure(layers: usize) -> (usize, Times) {
    let bytes = training::program(layers);
    let mut times: Times = Vec::new();
    let mut note = |what: &str, time: Duration| times.push((what.to_owned(), time));
    let input = Input::from_bytes("made", bytes.into()).expect("is bytes");
    let read = || open_input(&input, &Progress::default()).expect("reads");
    note("read", least(read));
    let profile = read();
    note("analyse", least(|| ProfileAnalysis::new(&profile)));
    let analysis = ProfileAnalysis::new(&profile);
    let program = &profile.programs[0];
    let scene = analysis.scene(&profile, 0, MemorySpace::HBM).expect("has a heap");
    // What is worked out on demand and kept.
    let start = Instant::now();
    black_box((scene.analysis.classes(program), scene.analysis.labels(program)));
    note("classes and labels", start.elapsed());
    note("prepare for changes", least(|| Memory::new(program, scene.analysis, scene.space, scene.device)));
    let capacity = Bytes((scene.space.xprof.allocated.0 as f64 * SHARE) as u64);
    let case = ProgramContext::new(0, scene, Some(capacity), Stop::NEVER);
    for text in EDITS {
        let edits: Vec<Edit> = vec![text.parse().expect("is a change")];
        let memory = &case.memory;
        note(&format!("change: {text}"), least(|| memory.evaluate(program, &edits, Depth::Estimate)));
    }
    let families = Families::new(program, scene.space.xprof.trace.expect("has a trace")).expect("has families");
    let blocks = families.blocks();
    note("pack in program order", least(|| online(&blocks)));
    note("pack by size", least(|| fallback(&blocks, Order::Size, ALIGNMENT)));
    note("pack by span", least(|| fallback(&blocks, Order::Span, ALIGNMENT)));
    let fresh = || ProgramContext::new(0, scene, Some(capacity), Stop::NEVER);
    let mut findings: Vec<Finding> = Vec::new();
    for rule in PROGRAM_RULES {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            // Anew each time: what a case has worked out it keeps.
            let (case, mut found) = (fresh(), Vec::new());
            let start = Instant::now();
            (rule.run)(&case, &mut found);
            best = best.min(start.elapsed());
        }
        note(&format!("rule: {}", rule.name), best);
        (rule.run)(&case, &mut findings);
    }
    highwater::advisor::rank(&mut findings);
    let once = |run: &dyn Fn(&ProgramContext<'_>)| {
        let case = fresh();
        let start = Instant::now();
        run(&case);
        start.elapsed()
    };
    note("largest batch", once(&|case| _ = black_box(batch_size::largest(case))));
    note("largest batch that may fit", once(&|case| _ = black_box(batch_size::largest_maybe(case))));
    note("plan", once(&|case| drop(black_box(plan::plan(case, &findings)))));
    let all = least(|| highwater::advisor::advise_against(&profile, &analysis, Some(capacity)));
    note("whole advice", all);
    (program.buffers.len(), times)
}

/// Slope of the last values over the sizes, both as logarithms, by least squares.
fn exponent(sizes: &[usize], times: &[Duration]) -> f64 {
    let points: Vec<(f64, f64)> =
        sizes.iter().zip(times).map(|(&n, t)| ((n as f64).ln(), t.as_secs_f64().max(1e-9).ln())).collect();
    let count = points.len() as f64;
    let (x, y) = (points.iter().map(|p| p.0).sum::<f64>() / count, points.iter().map(|p| p.1).sum::<f64>() / count);
    let over: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let under: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    over / under
}

fn main() {
    let layers = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(LAYERS);
    let rows: Vec<(usize, Times)> = TIMES.iter().map(|times| measure(layers * times)).collect();
    let sizes: Vec<usize> = rows.iter().map(|row| row.0).collect();
    let head: Vec<String> = sizes.iter().map(|size| format!("{size:>12}")).collect();
    println!("{:34}{}  exponent", "ms, buffers:", head.concat());
    for (i, (what, _)) in rows[0].1.iter().enumerate() {
        let times: Vec<Duration> = rows.iter().map(|row| row.1[i].1).collect();
        let cells: Vec<String> = times.iter().map(|time| format!("{:12.3}", time.as_secs_f64() * 1e3)).collect();
        println!("{what:34}{}  {:8.2}", cells.concat(), exponent(&sizes[1..], &times[1..]));
    }
}
