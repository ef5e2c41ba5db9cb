//! Inputs named on the command line: files to open and files of changes, and errors about those that cannot be read.

use std::path::PathBuf;
use std::process::ExitCode;

use highwater::analysis::what_if::EditSet;
use highwater::export;
use highwater::model::{Bytes, Capacity, MemorySpace, Profile};
use highwater::open::Target;
use highwater::open::session::OpenedSession;
use highwater::source::without_code;

use super::terminal;

/// Exit code if something could not be read.
pub const EXIT_UNREADABLE: u8 = 3;

/// Exit code for wrong arguments, the same as clap's.
pub const EXIT_WRONG: u8 = 2;

/// Resolves the paths of a command line; unreadable standard input is reported and left out.
pub fn named(paths: &[PathBuf]) -> Vec<Target> {
    let named = paths.iter().map(|path| Target::named(path));
    named.filter_map(|target| target.map_err(|error| complain("-", &format!("cannot read: {error}"))).ok()).collect()
}

/// As [`named`], where a session becomes the profiles that it names.
pub fn targets(paths: &[PathBuf]) -> Vec<Target> {
    unfolded(named(paths))
}

/// Replaces sessions by the profiles that they name.
pub fn unfolded(targets: Vec<Target>) -> Vec<Target> {
    let mut found = Vec::new();
    for target in targets {
        let Some(path) = target.path() else {
            found.push(target);
            continue;
        };
        match OpenedSession::read(path) {
            Ok(None) => found.push(target),
            Ok(Some(session)) => {
                let (targets, notes) = session.to_open();
                for note in notes {
                    terminal::complain(&format!("note: {note}"));
                }
                found.extend(targets);
            }
            // Opening it will say why it cannot be read.
            Err(_) => found.push(target),
        }
    }
    found
}

/// The sets of changes in some files; of two with the same name the last one wins.
///
/// # Errors
/// If a file contains no sets; the error is a sentence about the first such file.
pub fn read_sets(paths: &[PathBuf]) -> Result<Vec<EditSet>, String> {
    let mut sets: Vec<EditSet> = Vec::new();
    for path in paths {
        let read = export::sets::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        sets.retain(|known| !read.iter().any(|set| set.name == known.name));
        sets.extend(read);
    }
    Ok(sets)
}

/// Reports an error about a file on standard error.
pub fn complain(path: &str, why: &str) {
    // The error may name the file already.
    let why = why.strip_suffix(path).and_then(|why| why.strip_suffix(": ")).unwrap_or(why);
    terminal::complain(&format!("error: {path}: {}", without_code(why)));
}

/// Reports an error and returns the exit code.
pub fn refuse(error: &str) -> ExitCode {
    eprintln!("error: {}", without_code(error));
    ExitCode::from(EXIT_UNREADABLE)
}

/// Sets what a program may use, as `--capacity` says.
pub fn override_capacity(profile: &mut Profile, bytes: Bytes) {
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
