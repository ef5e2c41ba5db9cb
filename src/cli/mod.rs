//! The command line: which words open the window, which print a report, which draw a picture. A build without the window
//! prints reports alone.

#[cfg(feature = "window")]
mod link;
mod report;
#[cfg(feature = "window")]
mod screenshot;
#[cfg(feature = "window")]
mod window;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use highwater::analysis::what_if::EditSet;
use highwater::export;
use highwater::open::Target;

/// Something could not be read.
const EXIT_UNREADABLE: u8 = 3;

/// Where the memory of a TPU, GPU or IPU program went, and what brings the peak down.
#[derive(Debug, Parser)]
#[command(name = "highwater", version, max_term_width = 100)]
#[cfg_attr(feature = "window", command(args_conflicts_with_subcommands = true))]
struct Cli {
    #[cfg(feature = "window")]
    #[command(subcommand)]
    command: Option<Command>,
    #[cfg(feature = "window")]
    #[command(flatten)]
    window: window::WindowArgs,
    #[cfg(not(feature = "window"))]
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the numbers as text, JSON or Markdown
    Report(report::ReportArgs),
    /// Draw a view to a picture, without a display
    #[cfg(feature = "window")]
    Screenshot(screenshot::ScreenshotArgs),
}

/// Runs the program.
#[cfg(feature = "window")]
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Report(args)) => report::print(&targets(&args.paths), &args),
        Some(Command::Screenshot(args)) => screenshot::draw(&args),
        None => window::open(cli.window),
    }
}

/// Runs the program.
#[cfg(not(feature = "window"))]
pub fn run() -> ExitCode {
    let Command::Report(args) = Cli::parse().command;
    report::print(&targets(&args.paths), &args)
}

/// What the paths of a command line name; standard input that cannot be read is reported and left out.
fn targets(paths: &[PathBuf]) -> Vec<Target> {
    let named = paths.iter().map(|path| Target::named(path));
    named.filter_map(|target| target.map_err(|error| eprintln!("error: cannot read: {error}: -")).ok()).collect()
}

/// The sets of changes in some files; the second of two with one name counts.
///
/// # Errors
/// A sentence about the first file that holds none.
fn read_sets(paths: &[PathBuf]) -> Result<Vec<EditSet>, String> {
    let mut sets: Vec<EditSet> = Vec::new();
    for path in paths {
        let read = export::sets::read(path).map_err(|error| format!("{error}: {}", path.display()))?;
        sets.retain(|known| !read.iter().any(|set| set.name == known.name));
        sets.extend(read);
    }
    Ok(sets)
}

/// Prints what is wrong with a file that was named.
fn refuse(error: &str) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(EXIT_UNREADABLE)
}
