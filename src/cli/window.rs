//! `highwater [FILE...]`: the window, or a report where there is no display.

use std::path::PathBuf;
use std::process::ExitCode;

use highwater::export::report::Format;
use highwater::ui::app;
use highwater::ui::session::Options;

use super::inputs::{EXIT_UNREADABLE, read_sets, refuse, targets};
use super::link::LinkArgs;
use super::report::{self, ReportArgs};

#[derive(Debug, clap::Args)]
pub struct WindowArgs {
    /// Files to open; `-` for standard input
    files: Vec<PathBuf>,
    #[command(flatten)]
    link: LinkArgs,
}

/// Shows the window; where there is none, says why in one line and prints the report.
pub fn open(args: WindowArgs) -> ExitCode {
    let sets = match read_sets(&args.link.sets) {
        Ok(sets) => sets,
        Err(error) => return refuse(&error),
    };
    // Standard input can be read only once; a report in place of the window takes the same bytes.
    let targets = targets(&args.files);
    let Err(error) = app::run_window(targets.clone(), Options::default(), args.link.link(sets)) else {
        return ExitCode::SUCCESS;
    };
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
    };
    report::print(&targets, &args)
}
