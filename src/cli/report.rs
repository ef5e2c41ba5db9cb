//! `highwater report`: its arguments, and what it does.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use highwater::analysis::ProfileAnalysis;
use highwater::analysis::tree::TreeKind;
use highwater::analysis::what_if::Edit;
use highwater::export::report::{self, Format};
use highwater::model::{Bytes, Capacity, MemorySpace, Profile, parse_size};
use highwater::open::{Found, Target};
use highwater::source::{Progress, Stage};

use super::inputs::{EXIT_UNREADABLE, complain, read_sets, refuse};
use super::terminal::{self, Meter};

#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Files to read; `-` for standard input
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Only this memory space, by name or colour: HBM, 1
    #[arg(long)]
    pub space: Option<String>,
    /// Only this program
    #[arg(long)]
    pub program: Option<String>,
    /// Rows in every list; 0 for all
    #[arg(long, default_value_t = 20)]
    pub top: usize,
    /// What a program may use, overriding the device's capacity: 15.75GiB
    #[arg(long, value_parser = parse_size)]
    pub capacity: Option<Bytes>,
    /// Add the whole live-memory curve
    #[arg(long)]
    pub curve: bool,
    /// Add every logical buffer
    #[arg(long)]
    pub buffers: bool,
    /// First step of a range to measure, with --to: what is allocated and freed in it, its peak, who grew
    #[arg(long, value_name = "STEP")]
    pub from: Option<u32>,
    /// Last step of a range to measure; the program's last one where only --from is given
    #[arg(long, value_name = "STEP")]
    pub to: Option<u32>,
    /// What is live as a tree, any number of times: by scope, class, category, source, op, dtype, shape or sharding
    #[arg(long = "tree", value_name = "KIND")]
    pub trees: Vec<TreeKind>,
    /// Levels of a tree; 0 for all
    #[arg(long, default_value_t = 3)]
    pub depth: usize,
    /// The tree of what is live at this step instead of the peak
    #[arg(long)]
    pub step: Option<u32>,
    /// A tree with numbered scopes apart: `layer_3` instead of `layer_*`
    #[arg(long)]
    pub unfolded: bool,
    /// A change to try out, any number of times: `donate params`, `dtype * bf16`, `dim 2050 2048`, `batch 0.5`,
    /// `shard table 4`, `remat layer_*`, `drop 17`, `free 17 200`
    #[arg(long = "edit", value_name = "EDIT")]
    pub edits: Vec<Edit>,
    /// A file of named sets of changes to try out, each by itself: `[name]` on a line, then a change on each line
    #[arg(long, value_name = "FILE")]
    pub sets: Vec<PathBuf>,
    /// Instructions to print as HLO text with their operands, by name, any number of times
    #[arg(long = "instruction", value_name = "NAME")]
    pub instructions: Vec<String>,
    /// Columns of the text; the terminal's where it is printed on one, else as wide as it comes
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<usize>,
    /// Say on standard error how long each stage took, and how much memory there was at its end
    #[arg(long)]
    pub stats: bool,
}

/// Prints a report about everything behind some targets.
pub fn print(targets: &[Target], args: &ReportArgs) -> ExitCode {
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
    let (report, whole) = builder.finish();
    let text = report::write(&report, args.format);
    if args.format == Format::Text {
        terminal::print(&text, args.width);
    } else {
        // A reader that closes the pipe early (`| head`) is no error.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    if args.stats {
        terminal::complain(&stats(&progress));
    }
    if whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNREADABLE) }
}

/// Adds everything behind a target to the report. What cannot be read goes to standard error and into the report.
fn add(builder: &mut report::Builder<'_>, target: &Target, progress: &Arc<Progress>, capacity: Option<Bytes>) {
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
fn stats(progress: &Progress) -> String {
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

fn override_capacity(profile: &mut Profile, bytes: Bytes) {
    profile.device.capacities.retain(|capacity| capacity.color != MemorySpace::HBM);
    if let Some(tiles) = &mut profile.tiles {
        tiles.target.bytes_per_tile = Some(bytes.0);
        tiles.target.evidence = Some("given with --capacity".to_owned());
    }
    profile.device.capacities.push(Capacity {
        color: MemorySpace::HBM,
        bytes,
        evidence: "given with --capacity".to_owned(),
    });
}
