//! What a command line names: files to open and files of changes, and how one that cannot be read is refused.

use std::path::PathBuf;
use std::process::ExitCode;

use highwater::analysis::what_if::EditSet;
use highwater::export;
use highwater::open::Target;

use super::terminal;

/// Something could not be read.
pub const EXIT_UNREADABLE: u8 = 3;

/// Wrong arguments, as clap ends for them.
#[cfg(feature = "window")]
pub const EXIT_WRONG: u8 = 2;

/// What the paths of a command line name; standard input that cannot be read is reported and left out.
pub fn targets(paths: &[PathBuf]) -> Vec<Target> {
    let named = paths.iter().map(|path| Target::named(path));
    named.filter_map(|target| target.map_err(|error| complain("-", &format!("cannot read: {error}"))).ok()).collect()
}

/// The sets of changes in some files; the second of two with one name counts.
///
/// # Errors
/// A sentence about the first file that holds none.
pub fn read_sets(paths: &[PathBuf]) -> Result<Vec<EditSet>, String> {
    let mut sets: Vec<EditSet> = Vec::new();
    for path in paths {
        let read = export::sets::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        sets.retain(|known| !read.iter().any(|set| set.name == known.name));
        sets.extend(read);
    }
    Ok(sets)
}

/// Says on standard error what is wrong with a file.
pub fn complain(path: &str, why: &str) {
    // What the reader of a file says may name it already.
    let why = why.strip_suffix(path).and_then(|why| why.strip_suffix(": ")).unwrap_or(why);
    terminal::complain(&format!("error: {path}: {why}"));
}

/// Prints what is wrong with a file that was named.
pub fn refuse(error: &str) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(EXIT_UNREADABLE)
}
