//! `highwater report`: its arguments and implementation.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use highwater::analysis::ProfileAnalysis;
use highwater::analysis::tree::TreeKind;
use highwater::analysis::what_if::Edit;
use highwater::export::report::{self, Format};
use highwater::model::{Bytes, parse_size};
use highwater::open::{Found, Target};
use highwater::source::{Progress, Stage};

use super::inputs::{EXIT_UNREADABLE, EXIT_WRONG, complain, override_capacity, read_sets, refuse};
use super::terminal::{self, Meter};

#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Files, folders or archives to read; `-` for standard input
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Only this memory space, by name or colour: HBM, 1
    #[arg(long)]
    pub space: Option<String>,
    /// Only this program
    #[arg(long)]
    pub program: Option<String>,
    /// Maximum rows in each list; 0 for all
    #[arg(long, default_value_t = 20)]
    pub top: usize,
    /// Memory available to a program, overriding the device's capacity: 15.75GiB
    #[arg(long, value_parser = parse_size)]
    pub capacity: Option<Bytes>,
    /// Add the whole live-memory curve
    #[arg(long)]
    pub curve: bool,
    /// Add every logical buffer
    #[arg(long)]
    pub buffers: bool,
    /// First step of a range to measure: bytes allocated and freed in it, its peak, and what grew
    #[arg(long, value_name = "STEP")]
    pub from: Option<u32>,
    /// Last step of a range to measure; by default the program's last step
    #[arg(long, value_name = "STEP")]
    pub to: Option<u32>,
    /// Add live memory as a tree; may be repeated: by scope, class, category, source, op, dtype, shape or sharding
    #[arg(long = "tree", value_name = "KIND")]
    pub trees: Vec<TreeKind>,
    /// Levels of a tree; 0 for all
    #[arg(long, default_value_t = 3)]
    pub depth: usize,
    /// Take the trees at this step instead of at the peak
    #[arg(long, requires = "trees")]
    pub step: Option<u32>,
    /// Keep numbered scopes separate in trees: `layer_3` instead of `layer_*`
    #[arg(long, requires = "trees")]
    pub unfolded: bool,
    /// A change to try out; may be repeated: `donate params`, `dtype * bf16`, `compute bf16`, `dim 2050 2048`,
    /// `unpad 23`, `batch 0.5`, `micro 4` (`micro loop` for those that a loop in Python has written out), `shard table 4`,
    /// `constrain 8`, `remat layer_*` (`remat layer_* 6` for the first 6, `remat scan` for the body of a scan,
    /// `remat scan/mlp/*` for a part of it),
    /// `chunk logits 8`, `blockwise *`, `drop 17`, `free 17 200`
    #[arg(long = "edit", value_name = "EDIT")]
    pub edits: Vec<Edit>,
    /// A file of named sets of changes to try out separately: `[name]` on a line, then one change per line
    #[arg(long, value_name = "FILE")]
    pub sets: Vec<PathBuf>,
    /// Name of an instruction to print as HLO text with its operands; may be repeated
    #[arg(long = "instruction", value_name = "NAME")]
    pub instructions: Vec<String>,
    /// Print what differs from this dump instead, as `highwater diff` does
    #[arg(long, value_name = "BEFORE")]
    pub against: Option<PathBuf>,
    /// Columns to wrap the text to; by default the width of the terminal, or no wrapping without one
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<usize>,
    /// Say on standard error how long each stage took, and how much memory it held at its end
    #[arg(long)]
    pub stats: bool,
}

/// Prints a report about all programs of some targets.
pub fn print(targets: &[Target], args: &ReportArgs) -> ExitCode {
    if let Some(before) = &args.against {
        return super::diff::print(&super::diff::DiffArgs::against(before.clone(), args));
    }
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        terminal::complain(&format!("error: --from {from} is after --to {to}"));
        return ExitCode::from(EXIT_WRONG);
    }
    let sets = match read_sets(&args.sets) {
        Ok(sets) => sets,
        Err(error) => return refuse(&error),
    };
    let options = report::Options {
        top: args.top,
        space: args.space.clone(),
        program: args.program.clone(),
        curve: args.curve,
        buffers: args.buffers,
        pictures: args.format == Format::Html,
        range: (args.from.is_some() || args.to.is_some())
            .then(|| (args.from.unwrap_or(0), args.to.unwrap_or(u32::MAX))),
        trees: args.trees.clone(),
        depth: args.depth,
        step: args.step,
        unfolded: args.unfolded,
        edits: args.edits.clone(),
        sets,
        instructions: args.instructions.clone(),
    };
    let mut builder = report::Builder::new(&options);
    let progress = Arc::new(Progress::default());
    for target in targets {
        add(&mut builder, target, &progress, args.capacity);
    }
    progress.begin(Stage::Reporting, 0);
    let unmet = builder.unmet();
    if !unmet.is_empty() {
        for what in &unmet {
            terminal::complain(&format!("error: {what}"));
        }
        return ExitCode::from(EXIT_WRONG);
    }
    let (report, whole) = builder.finish();
    let text = report::write(&report, args.format);
    terminal::print_as(args.format, &text, args.width);
    if args.stats {
        terminal::complain(&stats(&progress));
    }
    if whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNREADABLE) }
}

/// Adds all profiles of a target to the report. Files that cannot be read are reported on standard error and in the
/// report.
pub fn add(builder: &mut report::Builder<'_>, target: &Target, progress: &Arc<Progress>, capacity: Option<Bytes>) {
    let _meter = Meter::watch(progress, &target.name());
    target.read_all(progress, &mut |found| match found {
        Found::Profile(mut profile) => {
            if let Some(bytes) = capacity {
                override_capacity(&mut profile, bytes);
            }
            for source in &profile.sources {
                if let Some(error) = &source.error {
                    complain(&source.path, error);
                }
            }
            progress.begin(Stage::Analysing, 0);
            let analysis = ProfileAnalysis::new(&profile);
            progress.begin(Stage::Advising, 0);
            builder.profile(&profile, &analysis);
        }
        Found::Unread(info) => {
            complain(&info.path, info.error.as_deref().unwrap_or_default());
            builder.failed(&info);
        }
        Found::Note(note) => terminal::complain(&format!("note: {note}")),
    });
}

/// What each stage took, a line each, and all of them together.
pub fn stats(progress: &Progress) -> String {
    let spent = progress.spent();
    let line = |name: &str, time: Duration, memory: Option<u64>| {
        let memory = memory.map_or_else(|| "\u{2013}".to_owned(), |bytes| Bytes(bytes).short());
        format!("{name:20}{:>9.1} ms  {memory:>10}", time.as_secs_f64() * 1e3)
    };
    let all = spent.iter().map(|spent| spent.time).sum();
    let most = spent.iter().filter_map(|spent| spent.memory).max();
    let lines = spent.iter().map(|spent| line(spent.stage.text(), spent.time, spent.memory));
    lines.chain([line("together", all, most)]).collect::<Vec<_>>().join("\n")
}
