//! `highwater run [OPTIONS] -- COMMAND...`: runs a command so that what it compiles leaves its memory picture behind, and
//! says at the end what did not fit.

mod child;
mod environment;
mod flags;
mod folder;
mod streams;
mod summary;
mod tidy;
mod transcript;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use highwater::export::gate::parse_share;
use highwater::export::report::{self, Format, Options};
use highwater::model::{Bytes, parse_size};
use highwater::open::{Looking, Target, open_input};
use highwater::source::{Input, Progress, SharedBytes};

use super::inputs::{EXIT_UNREADABLE, complain};
use super::report::add;
use super::terminal;
use child::Waiting;
use streams::Streams;
use summary::Found;
use tidy::Tidy;

/// A program needs more than `--fail-over` allows.
const EXIT_OVER: u8 = 110;

/// The folder of the run could not be made; 125 to 127 mean what they mean for `env`, `nice` and `timeout`.
const EXIT_OURS: u8 = 125;

/// The command cannot be run.
const EXIT_NO_PROGRAM: u8 = 126;

/// There is no such command.
const EXIT_NOT_FOUND: u8 = 127;

/// The file in the folder of a run that holds what the command printed around an out-of-memory message.
const MESSAGE_FILE: &str = "output.err.txt";

/// Clocks of file systems are coarser than ours.
const CLOCK: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
#[command(after_help = "XLA_FLAGS and POPLAR_ENGINE_OPTIONS are added to, never replaced: a dump folder that is set \
                        already is used, and nothing in it is removed. The exit status is the command's; 110 if \
                        --fail-over is exceeded, 125 if the folder cannot be made, 126 and 127 if the command cannot \
                        be run.")]
pub struct RunArgs {
    /// When to open the window on the worst program, or to print its report where there is no display
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    open: Open,
    /// Folder to make for this run; with a number behind its name if it is there already [default: one among the
    /// temporary files]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write the report on all programs to a file: JSON or Markdown if its name ends in .json or .md, else text
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// End with status 110 if the command succeeds and a program needs more than this share of its capacity: 95%
    #[arg(long, value_parser = parse_share, value_name = "SHARE")]
    fail_over: Option<f64>,
    /// What a program may use, overriding the device's capacity: 15.75GiB
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    capacity: Option<Bytes>,
    /// Most that the folder of the run may hold; programs that need least are removed first
    #[arg(long, value_parser = parse_size, value_name = "SIZE", default_value = "2GB")]
    keep: Bytes,
    /// Load nothing into Python: no memory profile of JAX and no snapshots of PyTorch, one dump folder for all processes
    #[arg(long)]
    no_hook: bool,
    /// Whether PyTorch records its allocations on CUDA or HIP, for a snapshot when memory runs out and at the end. Each
    /// allocation then takes some microseconds more, and the last 200,000 events are kept in memory
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    torch: Torch,
    /// Print nothing but what the command prints
    #[arg(long)]
    quiet: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// When to show what was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Open {
    /// Never
    Never,
    /// If memory ran out, or a program does not fit
    #[default]
    OnFailure,
    /// Whenever there is something to show
    Always,
}

/// Whether PyTorch's allocations are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Torch {
    /// If the command imports torch and uses a GPU
    #[default]
    Auto,
    /// Never
    Never,
}

/// Runs the command, and says what it left behind.
pub fn run(args: &RunArgs) -> ExitCode {
    let Some((program, rest)) = args.command.split_first() else { return ExitCode::from(EXIT_OURS) };
    let named = script(program, rest);
    let folder = match folder::make(args.out.as_deref(), &named) {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(EXIT_OURS);
        }
    };
    let mut command = Command::new(program);
    command.args(rest);
    let places = environment::prepare(&mut command, &folder, !args.no_hook);
    if args.torch == Torch::Never {
        command.env("HIGHWATER_TORCH", "never");
    }
    let say = |line: &str| {
        if !args.quiet {
            eprintln!("highwater: {line}");
        }
    };
    for note in &places.notes {
        say(note);
    }
    let started = SystemTime::now().checked_sub(CLOCK).unwrap_or(SystemTime::UNIX_EPOCH);
    let prepared = Streams::connect(&mut command).and_then(|streams| Ok((Waiting::prepare(&streams)?, streams)));
    let (waiting, streams) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            let _ = std::fs::remove_dir_all(&folder);
            eprintln!("error: the command's output cannot be read: {error}");
            return ExitCode::from(EXIT_OURS);
        }
    };
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let _ = std::fs::remove_dir_all(&folder);
            complain(&program.to_string_lossy(), &format!("cannot be run: {error}"));
            let is_missing = error.kind() == ErrorKind::NotFound;
            return ExitCode::from(if is_missing { EXIT_NOT_FOUND } else { EXIT_NO_PROGRAM });
        }
    };
    // It holds the other ends of what we read.
    drop(command);
    let passing = streams.pass_on();
    let tidying = places.users_dump.is_none().then(|| Tidy::new(&folder, args.keep));
    // Without a thread everything stays.
    let tidying = tidying.and_then(|tidy| Looking::start(tidy, |tidy| tidy.look(false)).ok());
    let status = waiting.wait(child);
    let printed = passing.finish().into_bytes();
    let dropped = tidying.and_then(Looking::finish).map_or(0, Tidy::finish);
    environment::clean_up(&folder);
    // A progress bar leaves its line open.
    if !args.quiet && printed.last().is_some_and(|&byte| byte != b'\n') {
        eprintln!();
    }
    let message = write_message(&folder, printed);
    let users: Vec<PathBuf> = places.users_dump.into_iter().chain(places.users_reports).collect();
    let found = Found::look(&folder, &users, started, message.as_deref(), args.capacity);
    if dropped > 0 {
        say(&format!("{dropped} programs that need less were not kept (--keep {})", args.keep.short()));
    }
    if found.is_empty() {
        say(nothing_found());
    }
    for line in found.lines().into_iter().chain(found.what_to_change()) {
        say(&line);
    }
    if let Some(path) = &args.report {
        write_report(path, &found, args.capacity);
    }
    show(&found, args);
    // Gone if nothing is in it.
    let _ = std::fs::remove_dir(&folder);
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: the command's end was not seen: {error}");
            return ExitCode::from(EXIT_OURS);
        }
    };
    if let Some(share) = args.fail_over.filter(|_| status.success()) {
        return match found.over_share(share) {
            Some(lines) if lines.is_empty() => ExitCode::SUCCESS,
            Some(lines) => {
                for line in lines {
                    eprintln!("error: {line}, more than --fail-over allows");
                }
                ExitCode::from(EXIT_OVER)
            }
            None => {
                eprintln!("error: --fail-over: no program with a known capacity; give it with --capacity");
                ExitCode::from(EXIT_UNREADABLE)
            }
        };
    }
    child::end_like(status)
}

/// What a run is named after: the script, if the command is an interpreter with one, else the command.
fn script(program: &OsString, rest: &[OsString]) -> OsString {
    let is_script = |word: &&OsString| {
        let path = Path::new(word);
        path.extension().is_some_and(|end| end == "py" || end == "sh") && path.is_file()
    };
    rest.iter().find(is_script).unwrap_or(program).clone()
}

/// Writes what the command printed next to its dumps, if it holds an out-of-memory message.
fn write_message(folder: &Path, printed: Vec<u8>) -> Option<PathBuf> {
    let input = Input::from_bytes(MESSAGE_FILE, SharedBytes::from(printed)).ok()?;
    let profile = open_input(&input, &Progress::default()).ok()?;
    if !profile.failures.iter().any(|failure| failure.is_error) {
        return None;
    }
    let path = folder.join(MESSAGE_FILE);
    let bytes = input.load(&Progress::default()).ok()?;
    std::fs::write(&path, &bytes[..]).ok()?;
    Some(path)
}

/// Why there may be nothing to show.
fn nothing_found() -> &'static str {
    if std::env::var_os("JAX_COMPILATION_CACHE_DIR").is_some_and(|folder| !folder.is_empty()) {
        "nothing was compiled; programs in JAX's compilation cache are not, and leave no dump: \
         JAX_ENABLE_COMPILATION_CACHE=false"
    } else {
        "no memory picture: the command compiled nothing with XLA or Poplar"
    }
}

fn write_report(path: &Path, found: &Found, capacity: Option<Bytes>) {
    let format = match path.extension().and_then(|end| end.to_str()) {
        Some("json") => Format::Json,
        Some("md") => Format::Markdown,
        Some("html" | "htm") => Format::Html,
        _ => Format::Text,
    };
    let options = Options { pictures: format == Format::Html, ..Options::default() };
    let mut builder = report::Builder::new(&options);
    for path in &found.paths {
        add(&mut builder, &Target::Path(path.clone()), &Arc::new(Progress::default()), capacity);
    }
    let text = report::write(&builder.finish().0, format);
    if let Err(error) = std::fs::write(path, text) {
        complain(&path.display().to_string(), &format!("cannot write: {error}"));
    }
}

/// Opens the window where there is a display; else prints the report.
fn show(found: &Found, args: &RunArgs) {
    let wanted = match args.open {
        Open::Never => false,
        Open::OnFailure => found.has_failed(),
        Open::Always => true,
    };
    if !wanted || found.is_empty() || open_window(&found.paths) || args.quiet {
        return;
    }
    terminal::print_beside(&format!("\n{}", found.report()));
}

/// Starts the window in a process of its own; `false` if there is no display.
#[cfg(feature = "window")]
fn open_window(paths: &[PathBuf]) -> bool {
    use std::process::Stdio;

    let has = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "linux") && !has("DISPLAY") && !has("WAYLAND_DISPLAY") {
        return false;
    }
    let Ok(own) = std::env::current_exe() else { return false };
    let mut window = Command::new(own);
    window.args(paths).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // What interrupts the terminal does not close it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut window, 0);
    window.spawn().is_ok()
}

/// This build has no window.
#[cfg(not(feature = "window"))]
const fn open_window(_paths: &[PathBuf]) -> bool {
    false
}
