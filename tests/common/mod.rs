//! What several tests share: where profiles lie, and opening one.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};

use highwater::decode::{Reporter, hlo};
use highwater::model::{BufferId, Bytes, Program};
use highwater::source::{Input, Progress, SharedBytes};

/// A larger collection of real dumps with other tools' numbers beside them, where there is one: the folder named by
/// `HIGHWATER_PROFILES`, or `shared/profiles` beside the checkout.
pub fn collection() -> Option<PathBuf> {
    let root = std::env::var_os("HIGHWATER_PROFILES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/profiles"), PathBuf::from);
    root.is_dir().then_some(root)
}

/// The samples of the project.
pub fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_profiles")
}

/// Every file below the samples and the collection whose name the filter accepts, sorted.
pub fn files(accept: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![samples()];
    folders.extend(collection());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().and_then(|n| n.to_str()).is_some_and(&accept) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Whether a file name ends so, packed or not.
pub fn ends_with(name: &str, end: &str) -> bool {
    name.strip_suffix(".gz").unwrap_or(name).ends_with(end)
}

/// All bytes of a file, unpacked; panics with its name where that fails.
pub fn bytes(path: &Path) -> SharedBytes {
    let input = Input::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    input.load(&Progress::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A text file, unpacked; panics with its name where that fails.
pub fn text(path: &Path) -> String {
    String::from_utf8_lossy(&bytes(path)).into_owned()
}

/// The file of this name, or else the same packed.
pub fn packed_or_not(path: &str) -> Option<PathBuf> {
    [path.to_owned(), format!("{path}.gz")].into_iter().map(PathBuf::from).find(|path| path.exists())
}

/// Programs with their buffer assignment among the samples of the project, sorted.
pub fn sample_programs() -> Vec<PathBuf> {
    let mut found = files(|name| ends_with(name, "after_optimizations.hlo.pb"));
    let samples = samples();
    found.retain(|path| path.starts_with(&samples));
    assert!(found.len() >= 6, "the samples are missing");
    found
}

/// Decodes an HLO proto; panics with its name where that fails.
pub fn program(path: &Path) -> Program {
    let progress = Progress::default();
    let bytes = bytes(path);
    let reporter = Reporter::default();
    let program = hlo::decode(&bytes, &progress, &reporter).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let notes = reporter.finish();
    assert!(notes.is_empty(), "{}: {notes:?}", path.display());
    program
}

/// Name for messages: folder and file.
pub fn name(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name).and_then(|n| n.to_str()).unwrap_or_default();
    let file = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    format!("{folder}/{file}")
}

/// Buffers with their sizes.
pub fn sized(program: &Program, buffers: &[BufferId]) -> Vec<(BufferId, Bytes)> {
    buffers.iter().map(|&buffer| (buffer, program.buffers.size_of(buffer))).collect()
}
