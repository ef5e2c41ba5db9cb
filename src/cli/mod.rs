//! The command line: opens the window, prints a report, draws a picture or runs a command. A build without the window
//! has all but window and pictures.

mod check;
mod diff;
mod export;
mod inputs;
#[cfg(feature = "window")]
mod link;
mod listed;
mod report;
mod run;
mod scale;
#[cfg(feature = "window")]
mod screenshot;
mod session;
mod terminal;
#[cfg(feature = "window")]
mod window;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use inputs::{EXIT_UNREADABLE, complain, targets};

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
    /// Run a command, and show why its memory did not fit
    Run(run::RunArgs),
    /// Print the numbers as text, JSON, Markdown or an HTML page
    Report(report::ReportArgs),
    /// Compare two dumps, or list several side by side
    Diff(diff::DiffArgs),
    /// Tell from two dumps what other batch sizes, lengths, layers or devices take, and the largest that fits
    Scale(scale::ScaleArgs),
    /// Check dumps against limits in a build; the exit status is 1 if one is exceeded
    Check(check::CheckArgs),
    /// Write programs, buffers, tiles, events and findings as tables for other programs
    Export(export::ExportArgs),
    /// Save what to open, and where to look, in a file; `--pack` puts the profiles into it
    Session(session::SessionArgs),
    /// Draw a view to an image file, without a display
    #[cfg(feature = "window")]
    Screenshot(screenshot::ScreenshotArgs),
    /// Print a shell completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands
    Man {
        /// Folder to write the pages of all commands to
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
}

impl Command {
    fn run(self) -> ExitCode {
        match self {
            Self::Run(args) => run::run(&args),
            Self::Report(args) => report::print(&targets(&args.paths), &args),
            Self::Diff(args) => diff::print(&args),
            Self::Scale(args) => scale::print(&args),
            Self::Check(args) => check::run(&args),
            Self::Export(args) => export::run(&args),
            Self::Session(args) => session::save(&args),
            #[cfg(feature = "window")]
            Self::Screenshot(args) => screenshot::draw(&args),
            Self::Completions { shell } => {
                clap_complete::generate(shell, &mut Cli::command(), "highwater", &mut std::io::stdout());
                ExitCode::SUCCESS
            }
            Self::Man { out } => manual(out.as_deref()),
        }
    }
}

/// Prints the manual page, or writes the pages of all commands to a folder.
fn manual(out: Option<&Path>) -> ExitCode {
    let written = match out {
        Some(folder) => std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder)),
        None => clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout()),
    };
    match (written, out) {
        (Err(error), Some(folder)) => {
            complain(&folder.display().to_string(), &format!("cannot write: {error}"));
            ExitCode::from(EXIT_UNREADABLE)
        }
        // A reader that closes the pipe early (`| head`) is not an error.
        (Ok(()) | Err(_), _) => ExitCode::SUCCESS,
    }
}

/// Runs the program.
#[cfg(feature = "window")]
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(command) => command.run(),
        None => window::open(cli.window),
    }
}

/// Runs the program.
#[cfg(not(feature = "window"))]
pub fn run() -> ExitCode {
    Cli::parse().command.run()
}
