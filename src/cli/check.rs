//! `highwater check`: dumps held to limits. Its exit status is what a build goes by.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use highwater::advisor::Severity;
use highwater::analysis::compare::pair_programs;
use highwater::export::gate::{self, Gate, GateFormat, LimitOutcome, Limits, parse_share};
use highwater::model::{Bytes, parse_size};
use highwater::open::Target;
use highwater::source::Progress;

use super::inputs::{EXIT_UNREADABLE, refuse, targets};
use super::listed::{Listed, place};
use super::terminal::{self, Meter};

/// A limit is not kept.
const EXIT_BROKEN: u8 = 1;

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Files, folders or archives to check; without a limit, every program must fit its device
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Most bytes that may be live at one time: 15GiB
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    max_peak: Option<Bytes>,
    /// Share of the capacity that may be allocated: 92%
    #[arg(long, value_parser = parse_share, value_name = "SHARE")]
    max_of_capacity: Option<f64>,
    /// Growth of the allocated bytes over the same program in --against: 2%
    #[arg(long, value_parser = parse_share, value_name = "SHARE", requires = "against")]
    max_growth: Option<f64>,
    /// No new finding of this severity or a worse one: critical, warning or hint
    #[arg(long, value_parser = severity, value_name = "SEVERITY", requires = "against")]
    no_new: Option<Severity>,
    /// The dump before, whose programs are matched by name
    #[arg(long, value_name = "PATH")]
    against: Option<PathBuf>,
    /// What a program may use, overriding the device's capacity: 15.75GiB
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    capacity: Option<Bytes>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: GateFormat,
}

fn severity(text: &str) -> Result<Severity, String> {
    let all = [Severity::Critical, Severity::Warning, Severity::Hint];
    let found = all.into_iter().find(|severity| severity.name() == text);
    found.ok_or_else(|| format!("'{text}' is none of critical, warning, hint"))
}

/// Checks and prints; 0 when every limit is kept, 1 when one is not, 3 when one cannot be told.
pub fn run(args: &CheckArgs) -> ExitCode {
    let limits = Limits {
        max_peak: args.max_peak,
        max_of_capacity: args.max_of_capacity,
        max_growth: args.max_growth,
        no_new: args.no_new,
    };
    let progress = Arc::new(Progress::default());
    let before = match args.against.as_ref().map(|path| list(path, args, &progress)).transpose() {
        Ok(before) => before,
        Err(error) => return refuse(&error),
    };
    let mut gate = Gate::default();
    for target in targets(&args.paths) {
        let _meter = Meter::watch(&progress, &target.name());
        check(&mut gate, &target, before.as_ref(), &limits, (args.capacity, &progress));
    }
    terminal::print_plain(&gate::write(&gate, args.format));
    match gate.outcome() {
        LimitOutcome::Passed => ExitCode::SUCCESS,
        LimitOutcome::Failed => ExitCode::from(EXIT_BROKEN),
        LimitOutcome::Unknown => ExitCode::from(EXIT_UNREADABLE),
    }
}

fn list(path: &std::path::Path, args: &CheckArgs, progress: &Progress) -> Result<Listed, String> {
    let target = Target::named(path).map_err(|error| format!("-: cannot read: {error}"))?;
    Listed::open(&target, args.capacity, progress).map_err(|error| format!("{}: {error}", place(&target)))
}

fn check(
    gate: &mut Gate,
    target: &Target,
    before: Option<&Listed>,
    limits: &Limits,
    (capacity, progress): (Option<Bytes>, &Progress),
) {
    let file = place(target);
    let listed = match Listed::open(target, capacity, progress) {
        Ok(listed) => listed,
        Err(error) => return gate.unread(&file, &error),
    };
    let pairs = before.map(|before| pair_programs(&before.names, &listed.names).pairs).unwrap_or_default();
    let mut any = false;
    for row in 0..listed.names.len() {
        let loaded = match listed.load(row, progress) {
            Ok(loaded) => loaded,
            Err(error) => {
                gate.unread(&format!("{file}: {}", listed.names[row].name), &error);
                continue;
            }
        };
        for error in loaded.errors() {
            gate.unread(&file, &error);
        }
        let earlier = pairs.iter().find(|pair| pair.1 == row).zip(before);
        let earlier = earlier.and_then(|(pair, before)| before.load(pair.0, progress).ok());
        let one = if listed.names.len() > 1 { loaded.file(&file) } else { file.clone() };
        any |= gate.profile(&one, loaded.side(), earlier.as_deref().map(|earlier| earlier.side()), limits);
    }
    if !any {
        gate.unread(&file, "no program with a memory assignment");
    }
}
