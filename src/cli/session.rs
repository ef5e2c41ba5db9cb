//! `highwater session`: saves what to open, and where to look, in a session file.

use std::path::PathBuf;
use std::process::ExitCode;

use super::inputs::{EXIT_UNREADABLE, complain, read_sets, refuse};
use highwater::analysis::tree::TreeKind;
use highwater::analysis::what_if::Edit;
use highwater::model::{Bytes, parse_size};
use highwater::open::session::{PackOptions, SavedProfile, SavedSet, Session, content_hash, pack, parse_zoom, write};

#[derive(Debug, clap::Args)]
pub struct SessionArgs {
    /// Files, folders or archives to open; the first one is shown, at the place that the options below say
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// File to save the session in
    #[arg(long, value_name = "FILE.highwater")]
    out: PathBuf,
    /// Put the files into it, too, to hand it on
    #[arg(long)]
    pack: bool,
    /// Open it with names hidden, and leave file names and notes out of a packed one
    #[arg(long)]
    hide_names: bool,
    /// Compare the first two paths
    #[arg(long)]
    compare: bool,
    /// View
    #[arg(long)]
    view: Option<String>,
    /// Program
    #[arg(long)]
    program: Option<String>,
    /// Program of the same folder to compare with: what is before
    #[arg(long, value_name = "PROGRAM")]
    against: Option<String>,
    /// Memory space, by name or colour: HBM, 1
    #[arg(long)]
    space: Option<String>,
    /// Buffer to select, by number or name
    #[arg(long)]
    select: Option<String>,
    /// Step
    #[arg(long)]
    step: Option<u32>,
    /// First step of a range to measure
    #[arg(long, value_name = "STEP", requires = "to")]
    from: Option<u32>,
    /// Last step of the range to measure
    #[arg(long, value_name = "STEP", requires = "from")]
    to: Option<u32>,
    /// Steps that the time axis shows: `1398-2458`
    #[arg(long, value_name = "FROM-TO", value_parser = parse_zoom)]
    zoom: Option<(u32, u32)>,
    /// What the treemap groups by: scope, class, category, source, op, dtype, shape or sharding
    #[arg(long = "tree", value_name = "KIND")]
    tree: Option<TreeKind>,
    /// Text to find
    #[arg(long)]
    filter: Option<String>,
    /// Memory available to a program: 15.75GiB
    #[arg(long, value_parser = parse_size)]
    capacity: Option<Bytes>,
    /// A numbered pin; may be repeated: `step 120: a note`, `buffer 17`
    #[arg(long = "pin", value_name = "PIN")]
    pins: Vec<String>,
    /// A change to try out; may be repeated
    #[arg(long = "edit", value_name = "EDIT")]
    edits: Vec<Edit>,
    /// A file of named sets of changes
    #[arg(long, value_name = "FILE")]
    sets: Vec<PathBuf>,
}

/// Saves a session; 3 when something could not be read or written.
pub fn save(args: &SessionArgs) -> ExitCode {
    let sets = match read_sets(&args.sets) {
        Ok(sets) => sets,
        Err(error) => return refuse(&error),
    };
    let mut whole = true;
    let mut profiles: Vec<SavedProfile> = Vec::new();
    for path in &args.paths {
        let name = path.display().to_string();
        match content_hash(path) {
            Ok(hash) => {
                let bytes = path.metadata().ok().filter(std::fs::Metadata::is_file).map_or(0, |data| data.len());
                profiles.push(SavedProfile { path: name, bytes, hash, ..SavedProfile::default() });
            }
            Err(error) => {
                complain(&name, &format!("cannot read: {error}"));
                whole = false;
            }
        }
    }
    if let Some(first) = profiles.first_mut() {
        *first = SavedProfile {
            program: args.program.clone(),
            view: args.view.clone(),
            space: args.space.clone(),
            select: args.select.clone(),
            step: args.step,
            from: args.from.zip(args.to).map(|(from, to)| from.min(to)),
            to: args.from.zip(args.to).map(|(from, to)| from.max(to)),
            zoom: args.zoom.map(|(from, to)| format!("{from}-{to}")),
            tree: args.tree.map(|kind| kind.word().to_owned()),
            against: args.against.clone(),
            filter: args.filter.clone(),
            capacity_bytes: args.capacity.map(|bytes| bytes.0),
            pins: args.pins.clone(),
            edits: args.edits.iter().map(ToString::to_string).collect(),
            sets: sets
                .iter()
                .map(|set| SavedSet {
                    name: set.name.clone(),
                    edits: set.edits.iter().map(ToString::to_string).collect(),
                })
                .collect(),
            ..first.clone()
        };
    }
    let comparisons = if args.compare && profiles.len() > 1 { vec![[0, 1]] } else { Vec::new() };
    let session = Session { profiles, comparisons, names_hidden: args.hide_names, ..Session::default() };
    let written = if args.pack {
        pack(&session, &args.out, PackOptions { hides_names: args.hide_names })
    } else {
        write(&session, &args.out)
    };
    match written {
        Err(error) => refuse(&format!("cannot write {}: {error}", args.out.display())),
        Ok(()) if whole => ExitCode::SUCCESS,
        Ok(()) => ExitCode::from(EXIT_UNREADABLE),
    }
}
