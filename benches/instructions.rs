//! Instructions that each stage executes, which unlike times do not depend on what else the machine does:
//! `cargo bench --bench instructions`, with valgrind installed. Fails if a stage takes over 10 % more than
//! `benches/instructions.txt` says; `-- --write` writes that file anew.
//!
//! A stage is one function of this program, run on one thread; callgrind counts only inside it. Those of a sample are
//! counted, and those of a larger program (`large_…`), in which what grows faster than the program would be seen.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

#[path = "synthetic/training.rs"]
mod training;

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use egui::{Event, Pos2, RawInput, Rect, Vec2};
use highwater::advisor::{Advice, advise_against};
use highwater::analysis::ProfileAnalysis;
use highwater::model::Profile;
use highwater::open::{Target, open_path};
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::{Options, ThemeChoice};

/// The sample that is measured: one that does not fit, so that there is advice.
const FILE: &str =
    "sample_profiles/v5e_gpt_m_oom/module_0000.jit_train_step.cl_1003875606.after_optimizations.hlo.pb.gz";
/// What is expected, by stage.
const EXPECTED: &str = "benches/instructions.txt";
/// More than this against what is expected is a failure.
const TOLERANCE: f64 = 0.10;
/// Times that a stage is counted; the least counts.
const COUNTS: usize = 3;
/// Frames drawn of each view.
const FRAMES: usize = 20;
/// Frames one after the other in which no job runs, before the frames of a view are counted.
const QUIET: usize = 10;
const VIEWS: [&str; 4] = ["overview", "timeline", "buffers", "treemap"];

/// Layers of the larger program: as many buffers as the program of a large model has.
const LAYERS: usize = 480;

/// Stages, by the name of their function, in their order.
const STAGES: [&str; 4] = ["stage_decode", "stage_analysis", "stage_advice", "stage_frames"];

/// How many of them are counted of the larger program, once each: what a frame costs does not depend on it.
const OF_LARGE: usize = 3;

#[inline(never)]
fn stage_decode(path: &Path) -> Profile {
    open_path(path, &Progress::default()).expect("a sample")
}

#[inline(never)]
fn stage_analysis(profile: &Profile) -> ProfileAnalysis {
    ProfileAnalysis::new(profile)
}

#[inline(never)]
fn stage_advice(profile: &Profile, analysis: &ProfileAnalysis) -> Advice {
    advise_against(profile, analysis, None)
}

#[inline(never)]
fn stage_frames(ctx: &egui::Context, app: &mut App) {
    for i in 0..FRAMES {
        frame(ctx, app, 2.0 + i as f64 / 60.0, Pos2::new(600.0 + i as f32 * 8.0, 500.0));
    }
}

fn frame(ctx: &egui::Context, app: &mut App, time: f64, pointer: Pos2) {
    let input = RawInput {
        screen_rect: Some(Rect::from_min_size(Pos2::ZERO, Vec2::new(1600.0, 1000.0))),
        time: Some(time),
        events: vec![Event::PointerMoved(pointer)],
        ..RawInput::default()
    };
    let output = ctx.run_ui(input, |ui| app.show(ui));
    black_box(ctx.tessellate(output.shapes.clone(), output.pixels_per_point));
    output.drop_without_applying_deltas();
}

/// Draws frames until nothing is being worked out any more. A frame that takes what a job has found may begin the next
/// job, so that one frame without a job is not enough.
fn settle(ctx: &egui::Context, app: &mut App) {
    let mut quiet = 0;
    while quiet < QUIET {
        quiet = if app.is_busy() { 0 } else { quiet + 1 };
        std::thread::sleep(std::time::Duration::from_millis(5));
        frame(ctx, app, 1.0, Pos2::ZERO);
    }
}

/// Runs one stage, with what it needs before it.
fn run(stage: &str, path: &Path) {
    if stage == "stage_frames" {
        let ctx = egui::Context::default();
        let mut app = App::new(&ctx, Options { theme: ThemeChoice::Light, ..Options::default() });
        app.open(Target::Path(path.to_owned()));
        for view in VIEWS {
            app.link = Some(DeepLink { view: Some(view.to_owned()), ..DeepLink::default() });
            app.follow_link();
            frame(&ctx, &mut app, 0.0, Pos2::ZERO);
            settle(&ctx, &mut app);
            stage_frames(&ctx, &mut app);
        }
        return;
    }
    // On this thread alone, so that everything a stage does is counted.
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().expect("the first pool");
    let profile = stage_decode(path);
    if stage == "stage_decode" {
        return;
    }
    let analysis = stage_analysis(&profile);
    if stage == "stage_analysis" {
        return;
    }
    black_box(stage_advice(&profile, &analysis));
}

/// Instructions of one stage of a program, counted by callgrind; `None` if there is no valgrind.
fn count(stage: &str, file: &Path) -> Option<u64> {
    let program = std::env::current_exe().expect("this program");
    // On one processor a decoder starts no other thread, whose work would not be counted.
    let mut command = match first_processor().filter(|_| stage != "stage_frames") {
        Some(processor) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &processor, "valgrind"]);
            command
        }
        None => Command::new("valgrind"),
    };
    let output = command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=*{stage}*"))
        .arg(program)
        .args(["--stage", stage])
        .arg(file)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stage} failed:\n{text}");
    let collected = text.lines().find_map(|line| line.split_once("Collected :"))?;
    collected.1.trim().parse().ok()
}

/// The first processor that this program may use, where there is a command to stay on it.
fn first_processor() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let first = allowed.trim().split(['-', ',']).next()?.to_owned();
    Command::new("taskset").args(["-c", &first, "true"]).status().is_ok_and(|status| status.success()).then_some(first)
}

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = words.iter().position(|word| word == "--stage") {
        run(words.get(at + 1).expect("a stage"), words.get(at + 2).expect("a file").as_ref());
        return;
    }
    let expected = std::fs::read_to_string(root.join(EXPECTED)).unwrap_or_default();
    let known = |stage: &str| -> Option<u64> {
        let line = expected.lines().find_map(|line| line.strip_prefix(stage)?.strip_prefix(' '))?;
        line.replace(',', "").trim().parse().ok()
    };
    let large = std::env::temp_dir().join(format!("highwater-instructions-{}.hlo.pb", std::process::id()));
    std::fs::write(&large, training::program(LAYERS)).expect("room in the temporary folder");
    let of_sample = STAGES.map(|stage| (stage.to_owned(), stage, root.join(FILE), COUNTS));
    let of_large =
        STAGES.iter().take(OF_LARGE).map(|&stage| (stage.replace("stage", "large"), stage, large.clone(), 1));
    let (mut written, mut over) = (String::new(), Vec::new());
    for (name, stage, file, times) in of_sample.into_iter().chain(of_large) {
        let Some(now) = (0..times).filter_map(|_| count(stage, &file)).min() else {
            println!("skipped: no valgrind");
            break;
        };
        let change = known(&name).map(|before| now as f64 / before as f64 - 1.0);
        let words = change.map_or_else(|| "not known yet".to_owned(), |change| format!("{:+.1} %", change * 100.0));
        println!("{name:16} {:10.1} million instructions, {words}", now as f64 / 1e6);
        _ = writeln!(written, "{name} {now}");
        if change.is_some_and(|change| change > TOLERANCE) {
            over.push(name);
        }
    }
    let _ = std::fs::remove_file(&large);
    if words.iter().any(|word| word == "--write") && !written.is_empty() {
        std::fs::write(root.join(EXPECTED), written).expect("a writable folder");
    } else {
        assert!(over.is_empty(), "over {:.0} % more instructions than before: {}", TOLERANCE * 100.0, over.join(", "));
    }
}
