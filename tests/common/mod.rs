//! What several tests share: where profiles lie, and opening one.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};

use highwater::decode::{Reporter, hlo};
use highwater::model::Program;
use highwater::source::{Input, Progress};

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

/// Decodes an HLO proto; panics with its name where that fails.
pub fn program(path: &Path) -> Program {
    let progress = Progress::default();
    let input = Input::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let bytes = input.load(&progress).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
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
