//! `highwater [FILE...]`: the window, or a report where there is no display.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use highwater::export::report::Format;
use highwater::ui::app::{self, Stats};
use highwater::ui::session::Options;

use super::Command;
use super::inputs::{EXIT_UNREADABLE, EXIT_WRONG, named, read_sets, refuse, unfolded};
use super::link::LinkArgs;
use super::report::{self, ReportArgs};

#[derive(Debug, clap::Args)]
pub struct WindowArgs {
    /// Files to open; `-` for standard input
    files: Vec<PathBuf>,
    /// Follow a folder, which may not be there yet: programs appear as they are complete, and one that fails is shown
    #[arg(long, value_name = "FOLDER")]
    follow: Option<PathBuf>,
    /// Say on standard error when the window showed its first frame, and the verdict, curve and advice of each file
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    link: LinkArgs,
}

/// Error for a bare word that names no file: most likely a mistyped command.
fn mistyped(file: &Path) -> Option<String> {
    let word = file.to_str().filter(|word| *word != "-" && !word.contains(['/', '\\', '.']))?;
    if file.exists() {
        return None;
    }
    let error = Commands::try_parse_from(["highwater", word]).err()?;
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(name)) => Some(name.clone()),
        // The best comes last.
        Some(ContextValue::Strings(names)) => names.last().cloned(),
        _ => None,
    };
    let meant = similar.map(|name| format!("; did you mean `highwater {name}`?")).unwrap_or_default();
    Some(format!("{word}: no such file or command{meant}"))
}

/// The commands alone, to find one similar to a word.
#[derive(Debug, Parser)]
struct Commands {
    #[command(subcommand)]
    _command: Command,
}

/// Shows the window; if that is impossible, prints the reason in one line and then the report.
pub fn open(args: WindowArgs) -> ExitCode {
    let sets = match read_sets(&args.link.sets) {
        Ok(sets) => sets,
        Err(error) => return refuse(&error),
    };
    if let Some(words) = args.files.first().and_then(|file| mistyped(file)) {
        eprintln!("error: {words}");
        return ExitCode::from(EXIT_WRONG);
    }
    // Standard input can be read only once; a report in place of the window uses the same bytes.
    let targets = named(&args.files);
    if let Some(path) = args.follow.as_deref().filter(|path| path.exists() && !path.is_dir()) {
        eprintln!(
            "error: --follow {}: not a folder; open the file, and the window offers to reload it",
            path.display()
        );
        return ExitCode::from(EXIT_WRONG);
    }
    let stats = if args.stats { Stats::Said } else { Stats::Quiet };
    let link = args.link.link(sets);
    let Err(error) = app::run_window(targets.clone(), args.follow.clone(), Options::default(), link, stats) else {
        return ExitCode::SUCCESS;
    };
    if targets.is_empty() && args.follow.is_some() {
        eprintln!("error: {error}; --follow needs the window, `highwater run` does without it");
        return ExitCode::from(EXIT_UNREADABLE);
    }
    if targets.is_empty() {
        eprintln!("error: {error}; name a file to get its report instead: highwater FILE");
        return ExitCode::from(EXIT_UNREADABLE);
    }
    eprintln!("{error}; printing the report instead");
    let args = ReportArgs {
        paths: args.files,
        format: Format::Text,
        space: args.link.space,
        program: args.link.program,
        top: 20,
        capacity: args.link.capacity,
        curve: false,
        buffers: false,
        from: None,
        to: None,
        trees: Vec::new(),
        depth: 3,
        step: args.link.step,
        unfolded: false,
        edits: args.link.edits,
        sets: args.link.sets,
        instructions: Vec::new(),
        against: None,
        width: None,
        stats: args.stats,
    };
    report::print(&unfolded(targets), &args)
}
