//! What a person waits for, in a real window: `cargo bench --bench window -- FILE`, with Xvfb and xdotool.
//!
//! The window is drawn in software. A path is typed into the field that stands in for a file dialog, and everything is
//! counted from Return: from before xdotool begins (by this program), and from the frame that takes the key (by the
//! window). Each time ends once the frame that shows something has been drawn. Then the window is left alone, and the
//! processor time of all its threads is counted. Least and median of several runs, each of a process of its own.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_highwater");
const RUNS: usize = 7;
/// What the window says, in the order of the table.
const MILESTONES: [&str; 5] = ["first frame", "verdict", "picture", "advice", "all"];
/// Time in which the window is left alone.
const ALONE: Duration = Duration::from_secs(3);

/// Kills the process at the end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let Some(file) = words.first().map(PathBuf::from) else {
        println!("skipped: no file given");
        return;
    };
    let file = file.canonicalize().expect("the file");
    let size = words.get(1).map_or("1600x1000", String::as_str);
    let (_server, display) = display(size);
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(run(&display, &file));
    }
    println!("{:12}{:>24}{:>28}", "ms", "seen from outside", "by the window");
    println!("{:12}{:>12}{:>12}{:>16}{:>12}", "", "least", "median", "least", "median");
    for name in MILESTONES {
        let of = |pick: &dyn Fn(&Line) -> f64| {
            let mut times: Vec<f64> =
                runs.iter().filter_map(|run| run.lines.iter().find(|line| line.name == name)).map(pick).collect();
            times.sort_by(f64::total_cmp);
            (times[0], times[times.len() / 2])
        };
        let (outside, inside) = (of(&|line| line.outside), of(&|line| line.inside));
        println!("{name:12}{:>12.1}{:>12.1}{:>16.1}{:>12.1}", outside.0, outside.1, inside.0, inside.1);
    }
    let most = |pick: &dyn Fn(&Run) -> Duration| runs.iter().map(pick).max().expect("a run");
    let (all, drawing) = (most(&|run| run.alone), most(&|run| run.drawing));
    println!(
        "left alone for {ALONE:.0?}: at most {all:.1?} of processor time, {drawing:.1?} of it by the thread that draws"
    );
}

/// A milestone, in milliseconds.
struct Line {
    name: String,
    outside: f64,
    inside: f64,
}

struct Run {
    lines: Vec<Line>,
    /// Processor time of all threads while it was left alone, and of the thread that draws.
    alone: Duration,
    drawing: Duration,
}

/// Opens a window, a file in it, and then leaves it alone.
fn run(display: &str, file: &Path) -> Run {
    let settings = tempfile::tempdir().expect("a folder");
    let mut begin = Instant::now();
    let window = Command::new(PROGRAM)
        .arg("--stats")
        .env("DISPLAY", display)
        .env("XDG_CONFIG_HOME", settings.path())
        .env("LIBGL_ALWAYS_SOFTWARE", "1")
        // Neither a portal nor zenity: a field takes the path.
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
        .env("PATH", settings.path())
        .env_remove("WAYLAND_DISPLAY")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut window = Killed(window.expect("the program starts"));
    let said = said(&mut window.0);
    let mut lines = Vec::new();
    lines.push(next(&said, begin));
    let press = |words: &[&str]| {
        let done = Command::new("xdotool").env("DISPLAY", display).args(words).output().expect("xdotool");
        assert!(done.status.success(), "xdotool {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    sleep(Duration::from_millis(500));
    press(&["search", "--onlyvisible", "--name", "Highwater$", "windowfocus"]);
    press(&["key", "ctrl+o"]);
    sleep(Duration::from_millis(500));
    press(&["type", "--delay", "4", &file.to_string_lossy()]);
    sleep(Duration::from_millis(500));
    begin = Instant::now();
    press(&["key", "Return"]);
    while lines.last().is_some_and(|line: &Line| line.name != "all") {
        lines.push(next(&said, begin));
    }
    sleep(Duration::from_millis(1500));
    let before = processor_time(window.0.id());
    sleep(ALONE);
    let after = processor_time(window.0.id());
    Run { lines, alone: after.0.saturating_sub(before.0), drawing: after.1.saturating_sub(before.1) }
}

/// Lines of the window, with when they came.
fn said(window: &mut Child) -> Receiver<(Instant, String)> {
    let stderr = window.stderr.take().expect("a pipe");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if sender.send((Instant::now(), line)).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The next milestone; whatever else is said is passed on.
fn next(said: &Receiver<(Instant, String)>, begin: Instant) -> Line {
    loop {
        let (at, line) = said.recv_timeout(Duration::from_mins(1)).expect("the window says something");
        match MILESTONES.iter().find_map(|name| Some((name, line.strip_prefix(name)?.split(" ms").next()?))) {
            Some((name, time)) => {
                let inside = time.trim().parse().expect("a time");
                let outside = at.saturating_duration_since(begin).as_secs_f64() * 1e3;
                return Line { name: (*name).to_owned(), outside, inside };
            }
            None => eprintln!("{line}"),
        }
    }
}

/// Processor time of all threads of a process, and of its first thread, to the nanosecond.
fn processor_time(process: u32) -> (Duration, Duration) {
    let time = |task: &Path| {
        let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    let folder = PathBuf::from(format!("/proc/{process}/task"));
    let tasks = std::fs::read_dir(&folder).expect("it runs").filter_map(Result::ok);
    let all = tasks.filter_map(|task| time(&task.path())).sum();
    let first = time(&folder.join(process.to_string())).unwrap_or_default();
    (Duration::from_nanos(all), Duration::from_nanos(first))
}

/// An X server on a free display, and the name of that display.
fn display(size: &str) -> (Killed, String) {
    let screen = format!("{size}x24");
    let mut server = Command::new("Xvfb");
    server.args(["-displayfd", "1", "-screen", "0", &screen, "-nolisten", "tcp", "-noreset"]);
    let server = server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut server = Killed(server.expect("Xvfb starts"));
    let mut number = String::new();
    let output = server.0.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut number).expect("the number of a display");
    assert!(!number.trim().is_empty(), "Xvfb ended without a display");
    (server, format!(":{}", number.trim()))
}
