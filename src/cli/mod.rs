//! The command line: which words open the window, which print a report, which draw a picture. A build without the window
//! prints reports alone.

mod inputs;
#[cfg(feature = "window")]
mod link;
mod report;
#[cfg(feature = "window")]
mod screenshot;
#[cfg(feature = "window")]
mod window;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use inputs::targets;

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
