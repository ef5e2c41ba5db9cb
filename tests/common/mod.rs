//! Shared by several tests: finding and opening profiles.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};

use highwater::decode::{Reporter, hlo};
use highwater::model::Program;
use highwater::source::{Input, Progress, SharedBytes};

mod listed;

/// A set of test files: those of the project, or those of the shared collection.
#[derive(Debug)]
pub struct Files(Vec<PathBuf>);

impl Files {
    /// The samples and the dumps in `tests/`.
    pub fn of_project() -> Self {
        Self(vec![samples(), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps")])
    }

    /// A larger collection of real dumps with the numbers of other tools: the folder that `HIGHWATER_PROFILES` names.
    /// Panics if there is none.
    pub fn of_collection() -> Self {
        Self(vec![asked_for("HIGHWATER_PROFILES")])
    }

    /// The files in the folder of this name.
    pub fn below(&self, folder: &str) -> Self {
        Self(self.0.iter().map(|root| root.join(folder)).collect())
    }

    /// All files whose names the filter accepts, sorted.
    pub fn named(&self, accept: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = self.0.clone();
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
            for entry in entries.flatten() {
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

    /// HLO protos with buffer assignment.
    pub fn programs(&self) -> Vec<PathBuf> {
        self.named(|name| ends_with(name, "after_optimizations.hlo.pb"))
    }

    /// The main program of a case: `module_0000` in the folder of that name.
    pub fn case(&self, case: &str) -> PathBuf {
        let wanted = format!("/{case}/module_0000");
        let found = self.programs().into_iter().find(|path| path.to_string_lossy().contains(&wanted));
        found.unwrap_or_else(|| panic!("no program {case} in {self:?}"))
    }

    /// The file whose path has this ending, compressed or not.
    pub fn ending(&self, end: &str) -> PathBuf {
        let found = self.named(|_| true).into_iter().find(|path| ends_with(&path.to_string_lossy(), end));
        found.unwrap_or_else(|| panic!("no file …{end} in {self:?}"))
    }
}

/// The folder that an environment variable names; panics if there is none.
pub fn asked_for(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable).map(PathBuf::from).unwrap_or_default();
    assert!(folder.is_dir(), "{variable} names no folder: {}", folder.display());
    folder
}

/// The file that an environment variable names; panics if there is none.
pub fn asked_for_file(variable: &str) -> PathBuf {
    let file = std::env::var_os(variable).map(PathBuf::from).unwrap_or_default();
    assert!(file.is_file(), "{variable} names no file: {}", file.display());
    file
}

/// The samples of the project.
pub fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_profiles")
}

/// Whether a file name has this ending, compressed or not.
pub fn ends_with(name: &str, end: &str) -> bool {
    name.strip_suffix(".gz").unwrap_or(name).ends_with(end)
}

/// The unpacked bytes of a file; panics with its name on failure.
pub fn bytes(path: &Path) -> SharedBytes {
    let input = Input::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    input.load(&Progress::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The unpacked text of a file; panics with its name on failure.
pub fn text(path: &Path) -> String {
    String::from_utf8_lossy(&bytes(path)).into_owned()
}

/// The file of this name, or its compressed form.
pub fn packed_or_not(path: &str) -> Option<PathBuf> {
    [path.to_owned(), format!("{path}.gz")].into_iter().map(PathBuf::from).find(|path| path.exists())
}

/// Sample HLO protos with buffer assignment, sorted.
pub fn sample_programs() -> Vec<PathBuf> {
    let found = Files(vec![samples()]).programs();
    assert!(found.len() >= 6, "the samples are missing");
    found
}

/// A sample of every kind: the programs, an IPU's profiles, allocators, traces and a message with a listing.
pub fn sample_profiles() -> Vec<PathBuf> {
    let others = [
        "ipu_fits.json",
        "ipu_over.cbor",
        "gpu_training.xplane.pb",
        "gpu_0_bfc.memory_dump",
        "tpu_training.prof",
        "v5e_gpt_m_oom.err.txt",
        "vm.memory_profile.json",
    ];
    let files = Files::of_project();
    sample_programs().into_iter().chain(others.map(|name| files.ending(name))).collect()
}

/// The sample program whose path contains these words.
pub fn sample_program(part: &str) -> PathBuf {
    let found = sample_programs().into_iter().find(|path| path.to_string_lossy().contains(part));
    found.unwrap_or_else(|| panic!("no sample named {part}"))
}

/// Decodes an HLO proto; panics with its name on failure.
pub fn program(path: &Path) -> Program {
    let progress = Progress::default();
    let bytes = bytes(path);
    let reporter = Reporter::default();
    let program = hlo::decode(&bytes, &progress, &reporter).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let notes = reporter.finish();
    assert!(notes.is_empty(), "{}: {notes:?}", path.display());
    program
}

/// Name used in messages: folder and file.
pub fn name(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name).and_then(|n| n.to_str()).unwrap_or_default();
    let file = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    format!("{folder}/{file}")
}

/// The text of a page, without its tags and with the characters that they stand for.
pub fn html_text(page: &str) -> String {
    let mut text: String = page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    for (name, character) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")] {
        text = text.replace(name, character);
    }
    text
}
