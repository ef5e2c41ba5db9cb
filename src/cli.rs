//! The command line: which words open the window, which print a report, which draw a picture.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use highwater::analysis::ProfileAnalysis;
use highwater::decode::{self, DecodeError};
use highwater::export::report::{self, Format};
use highwater::model::{Bytes, Capacity, Profile, SourceInfo, parse_size};
use highwater::source::{Input, Progress};

/// Something could not be read.
const EXIT_UNREADABLE: u8 = 3;

/// Where the memory of a TPU, GPU or IPU program went, and what brings the peak down.
#[derive(Debug, Parser)]
#[command(name = "highwater", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    window: WindowArgs,
}

#[derive(Debug, clap::Args)]
struct WindowArgs {
    /// Files to open; `-` for standard input
    files: Vec<PathBuf>,
    /// What a program may use, overriding the device's capacity: 15.75GiB
    #[arg(long, value_parser = parse_size)]
    capacity: Option<Bytes>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print what the window would show
    Report(ReportArgs),
}

#[derive(Debug, clap::Args)]
struct ReportArgs {
    /// Files to read; `-` for standard input
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Only this memory space, by name or colour: HBM, 1
    #[arg(long)]
    space: Option<String>,
    /// Only this program
    #[arg(long)]
    program: Option<String>,
    /// Rows in every list; 0 for all
    #[arg(long, default_value_t = 20)]
    top: usize,
    /// What a program may use, overriding the device's capacity: 15.75GiB
    #[arg(long, value_parser = parse_size)]
    capacity: Option<Bytes>,
    /// Add the whole live-memory curve
    #[arg(long)]
    curve: bool,
    /// Add every logical buffer
    #[arg(long)]
    buffers: bool,
}

/// Runs the program.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Report(args)) => print_report(&args),
        None => print_report(&ReportArgs {
            paths: cli.window.files,
            format: Format::Text,
            space: None,
            program: None,
            top: 20,
            capacity: cli.window.capacity,
            curve: false,
            buffers: false,
        }),
    }
}

/// Opens every path; what cannot be read goes to standard error and into the second list.
fn open_all(paths: &[PathBuf], capacity: Option<Bytes>) -> (Vec<(Profile, ProfileAnalysis)>, Vec<SourceInfo>) {
    let mut opened = Vec::new();
    let mut failed = Vec::new();
    let progress = Progress::default();
    for path in paths {
        match open(path, &progress) {
            Ok(mut profile) => {
                if let Some(bytes) = capacity {
                    override_capacity(&mut profile, bytes);
                }
                let analysis = ProfileAnalysis::new(&profile);
                opened.push((profile, analysis));
            }
            Err(error) => {
                eprintln!("error: cannot open: {error}: {}", path.display());
                failed.push(SourceInfo {
                    path: path.display().to_string(),
                    format: "unknown".to_owned(),
                    bytes: path.metadata().map_or(0, |m| m.len()),
                    notes: Vec::new(),
                    error: Some(error.to_string()),
                });
            }
        }
    }
    (opened, failed)
}

fn open(path: &Path, progress: &Progress) -> Result<Profile, DecodeError> {
    if path.as_os_str() == "-" {
        let input = Input::from_reader("standard input", std::io::stdin().lock(), progress)?;
        return decode::open_input(&input, progress);
    }
    decode::open_path(path, progress)
}

fn override_capacity(profile: &mut Profile, bytes: Bytes) {
    profile.device.capacities.retain(|capacity| capacity.color != 0);
    profile.device.capacities.push(Capacity { color: 0, bytes, evidence: "given with --capacity".to_owned() });
}

fn print_report(args: &ReportArgs) -> ExitCode {
    let (opened, failed) = open_all(&args.paths, args.capacity);
    let options = report::Options {
        top: args.top,
        space: args.space.clone(),
        program: args.program.clone(),
        curve: args.curve,
        buffers: args.buffers,
    };
    let borrowed: Vec<_> = opened.iter().map(|(profile, analysis)| (profile, analysis)).collect();
    let text = report::write(&report::build(&borrowed, &failed, &options), args.format);
    // A reader that closes the pipe early (`| head`) is no error.
    let _ = std::io::stdout().write_all(text.as_bytes());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNREADABLE) }
}
