//! The command line: which words open the window, which print a report, which draw a picture. A build without the window
//! prints reports alone.

#[cfg(feature = "window")]
mod link;
mod report;
#[cfg(feature = "window")]
mod screenshot;
mod terminal;
#[cfg(feature = "window")]
mod window;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
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
    /// Print a script that completes this command in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands
    Man {
        /// Folder to write a page of every command to
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
}

impl Command {
    fn run(self) -> ExitCode {
        match self {
            Self::Report(args) => report::print(&targets(&args.paths), &args),
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

/// The manual page of the program on standard output, or those of all its commands in a folder.
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
        // A reader that closes the pipe early (`| head`) is no error.
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

/// What the paths of a command line name; standard input that cannot be read is reported and left out.
fn targets(paths: &[PathBuf]) -> Vec<Target> {
    let named = paths.iter().map(|path| Target::named(path));
    named.filter_map(|target| target.map_err(|error| complain("-", &format!("cannot read: {error}"))).ok()).collect()
}

/// The sets of changes in some files; the second of two with one name counts.
///
/// # Errors
/// A sentence about the first file that holds none.
fn read_sets(paths: &[PathBuf]) -> Result<Vec<EditSet>, String> {
    let mut sets: Vec<EditSet> = Vec::new();
    for path in paths {
        let read = export::sets::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        sets.retain(|known| !read.iter().any(|set| set.name == known.name));
        sets.extend(read);
    }
    Ok(sets)
}

/// Says on standard error what is wrong with a file.
fn complain(path: &str, why: &str) {
    // What the reader of a file says may name it already.
    let why = why.strip_suffix(path).and_then(|why| why.strip_suffix(": ")).unwrap_or(why);
    terminal::complain(&format!("error: {path}: {why}"));
}

/// Prints what is wrong with a file that was named.
fn refuse(error: &str) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(EXIT_UNREADABLE)
}
