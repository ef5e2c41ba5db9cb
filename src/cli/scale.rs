//! `highwater scale`: what a program takes at other batch sizes, lengths, layers or devices, from two dumps.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use highwater::analysis::Scene;
use highwater::analysis::compare::pair_programs;
use highwater::analysis::scaling::{Scaling, Varying};
use highwater::export::report::Format;
use highwater::export::scale::{self, ScaleReport, ScaleSpace};
use highwater::model::{Bytes, MemorySpace, parse_size};
use highwater::source::Progress;

use super::inputs::{EXIT_UNREADABLE, targets};
use super::listed::{Listed, Loaded, place};
use super::terminal::{self, Meter};

#[derive(Debug, clap::Args)]
pub struct ScaleArgs {
    /// Two dumps of a program that differ in one number: files, folders or archives, whose programs are matched by name
    #[arg(required = true, num_args = 2, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What differs, and its values in the two: batch=32,64. By default it is found from the arguments' shapes
    #[arg(long, value_name = "NAME=A,B")]
    varies: Option<Varying>,
    /// Values to predict; may be repeated
    #[arg(long, value_name = "VALUE", value_delimiter = ',', value_parser = clap::value_parser!(i64).range(1..))]
    at: Vec<i64>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Only this program, by its name in the first dump
    #[arg(long)]
    program: Option<String>,
    /// Rows of what grows; 0 for all
    #[arg(long, default_value_t = 12)]
    top: usize,
    /// What a program may use: 15.75GiB
    #[arg(long, value_parser = parse_size)]
    capacity: Option<Bytes>,
    /// Columns to wrap the text to; by default the width of the terminal, or no wrapping without one
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
}

/// Prints what two dumps tell; 3 when something could not be read, or nothing differs.
pub fn print(args: &ScaleArgs) -> ExitCode {
    let [first, second] = &targets(&args.paths)[..] else { return ExitCode::from(EXIT_UNREADABLE) };
    let progress = Arc::new(Progress::default());
    let meter = Meter::watch(&progress, &second.name());
    let mut report = ScaleReport {
        schema: "highwater.scale/1",
        paths: [place(first), place(second)],
        programs: Vec::new(),
        unread: Vec::new(),
    };
    let sides = Listed::both([first, second], args.capacity, &progress, |what| report.unread.push(what));
    if let Some([first, second]) = &sides {
        for (from, to) in pair_programs(&first.names, &second.names).pairs {
            let name = &first.names[from].name;
            if args.program.as_ref().is_some_and(|wanted| wanted != name) {
                continue;
            }
            let told = first.load(from, &progress).and_then(|one| {
                let other = second.load(to, &progress)?;
                report.unread.extend(one.errors().chain(other.errors()));
                space(name, &one, &other, args)
            });
            match told {
                Ok(space) => report.programs.push(space),
                Err(error) => report.unread.push(format!("{name}: {error}")),
            }
        }
        if report.programs.is_empty() && report.unread.is_empty() {
            report.unread.push("the two have no program in common".to_owned());
        }
    }
    drop(meter);
    for what in &report.unread {
        terminal::complain(&format!("error: {what}"));
    }
    let text = scale::write(&report, args.format);
    terminal::print_as(args.format, &text, args.width);
    if report.unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNREADABLE) }
}

fn space(name: &str, one: &Loaded, other: &Loaded, args: &ScaleArgs) -> Result<ScaleSpace, String> {
    let (Some(before), Some(after)) = (main_memory(one), main_memory(other)) else {
        return Err("no memory assignment to scale".to_owned());
    };
    let scaling = Scaling::new([before, after], [before.memory(), after.memory()], args.varies.clone());
    let scaling = scaling.map_err(|error| error.to_string())?;
    Ok(scale::build(name, &scaling, &args.at, args.top))
}

fn main_memory(loaded: &Loaded) -> Option<Scene<'_>> {
    let side = loaded.side();
    side.analysis.scene(side.profile, 0, MemorySpace::HBM)
}
