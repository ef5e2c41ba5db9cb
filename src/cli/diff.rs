//! `highwater diff`: two dumps compared, or several as columns.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use highwater::analysis::ProfileAnalysis;
use highwater::analysis::compare::{ProgramName, pair_programs};
use highwater::export::diff::{self, Builder, Side, Sweep, compare_findings, compare_memory};
use highwater::export::report::{Format, Options};
use highwater::model::{Bytes, parse_size};
use highwater::open::{Found, Target};
use highwater::source::{Progress, Stage};

use super::inputs::{EXIT_UNREADABLE, complain, override_capacity, targets};
use super::listed::{Listed, place};
use super::terminal::{self, Meter};

#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// Before and after: files, folders or archives, whose programs are matched by name. More than two are listed side
    /// by side
    #[arg(required = true, num_args = 2.., value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Only this memory space, by name or colour: HBM, 1
    #[arg(long)]
    space: Option<String>,
    /// Only this program, by its name in the first dump
    #[arg(long)]
    program: Option<String>,
    /// Rows in every list; 0 for all
    #[arg(long, default_value_t = 20)]
    top: usize,
    /// What a program may use, on every side: 15.75GiB
    #[arg(long, value_parser = parse_size)]
    capacity: Option<Bytes>,
    /// Columns to wrap the text to; by default the width of the terminal, or no wrapping without one
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    /// Say on standard error how long each stage took, and how much memory it held at its end; of two dumps only
    #[arg(long)]
    stats: bool,
}

impl DiffArgs {
    /// A comparison as `report --against` asks for it.
    pub fn against(before: PathBuf, report: &super::report::ReportArgs) -> Self {
        Self {
            paths: [before].into_iter().chain(report.paths.iter().cloned()).collect(),
            format: report.format,
            space: report.space.clone(),
            program: report.program.clone(),
            top: report.top,
            capacity: report.capacity,
            width: report.width,
            stats: report.stats,
        }
    }
}

/// Prints a comparison.
pub fn print(args: &DiffArgs) -> ExitCode {
    let named = targets(&args.paths);
    if named.len() < args.paths.len() {
        return ExitCode::from(EXIT_UNREADABLE);
    }
    let (text, whole) = match &named[..] {
        [before, after] => compare(before, after, args),
        many => columns(many, args),
    };
    terminal::print_as(args.format, &text, args.width);
    if whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNREADABLE) }
}

fn compare(before: &Target, after: &Target, args: &DiffArgs) -> (String, bool) {
    let options = Options { top: args.top, space: args.space.clone(), ..Options::default() };
    let progress = Arc::new(Progress::default());
    let _meter = Meter::watch(&progress, &after.name());
    let mut builder = Builder::new(place(before), place(after));
    let mut whole = true;
    let mut unread = |builder: &mut Builder, what: String| {
        terminal::complain(&format!("error: {what}"));
        builder.unread(what);
        whole = false;
    };
    let sides = Listed::both([before, after], args.capacity, &progress, |what| unread(&mut builder, what));
    let Some([first, second]) = sides else {
        return (diff::write(&builder.finish(), args.format), false);
    };
    let mut found = pair_programs(&first.names, &second.names);
    if let Some(wanted) = &args.program {
        found.pairs.retain(|&(row, _)| first.names[row].name == *wanted);
        found.only_before.retain(|&row| first.names[row].name == *wanted);
        found.only_after.retain(|&row| second.names[row].name == *wanted);
    }
    for (from, to) in found.pairs {
        match (first.load(from, &progress), second.load(to, &progress)) {
            (Ok(one), Ok(other)) => {
                for error in one.errors().chain(other.errors()) {
                    unread(&mut builder, error);
                }
                progress.begin(Stage::Comparing, 0);
                let mut pair = compare_memory(one.side(), other.side(), &options);
                progress.begin(Stage::Advising, 0);
                pair.findings = compare_findings(one.side(), other.side());
                builder.pair(pair);
            }
            (one, other) => {
                for error in [one.err(), other.err()].into_iter().flatten() {
                    unread(&mut builder, format!("{}: {error}", first.names[from].name));
                }
            }
        }
    }
    let full = |one: &ProgramName| {
        if one.group.is_empty() { one.name.clone() } else { format!("{}/{}", one.group, one.name) }
    };
    let names = |rows: &[usize], names: &[ProgramName]| rows.iter().map(|&row| full(&names[row])).collect();
    progress.begin(Stage::Reporting, 0);
    builder.unpaired(names(&found.only_before, &first.names), names(&found.only_after, &second.names));
    let text = diff::write(&builder.finish(), args.format);
    if args.stats {
        terminal::complain(&super::report::stats(&progress));
    }
    (text, whole)
}

fn columns(targets: &[Target], args: &DiffArgs) -> (String, bool) {
    let mut sweep = Sweep::default();
    let unread = |sweep: &mut Sweep, path: &str, why: &str| {
        complain(path, why);
        sweep.unread.push(format!("{path}: {why}"));
    };
    for target in targets {
        let progress = Arc::new(Progress::default());
        let _meter = Meter::watch(&progress, &target.name());
        target.read_all(&progress, &mut |found| match found {
            Found::Profile(mut profile) => {
                if let Some(bytes) = args.capacity {
                    override_capacity(&mut profile, bytes);
                }
                progress.begin(Stage::Analysing, 0);
                let analysis = ProfileAnalysis::new(&profile);
                let before = sweep.columns.len();
                sweep.add(&place(target), Side { profile: &profile, analysis: &analysis, program: 0 });
                if sweep.columns.len() == before {
                    let why = "no program to show as a column; what an allocator holds is compared two files at a time";
                    unread(&mut sweep, &place(target), why);
                }
            }
            Found::Unread(info) => {
                unread(&mut sweep, &info.path, info.error.as_deref().unwrap_or_default());
            }
            Found::Note(note) => terminal::complain(&format!("note: {note}")),
        });
    }
    (diff::write_sweep(&sweep, args.format), sweep.unread.is_empty())
}
