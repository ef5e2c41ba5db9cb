//! Finds the files in a dump folder that belong to the same module, by name.
//!
//! XLA names its dumps `module_NNNN.NAME[.SUFFIX].STAGE[-REPORT].EXT`.

use std::fs;
use std::path::{Path, PathBuf};

/// At most this many folder entries are searched for siblings.
const MAX_ENTRIES: usize = 20_000;

/// A parsed XLA dump file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpName {
    /// `module_0007`.
    pub module: String,
    /// Everything up to the stage: `module_0007.jit_step.cl_1003875606`.
    pub stem: String,
    /// The stage and everything after it: `after_optimizations.hlo.pb`, `after_optimizations-live-range.txt`.
    pub stage: String,
}

/// Prefixes of the stage part of a dump file name.
const STAGES: &[&str] = &[
    "after_optimizations",
    "before_optimizations",
    "after_codegen",
    "oom_intermediate_module",
    "cpu_after_optimizations",
    "gpu_after_optimizations",
    "target_arguments",
    "gpu_target_config",
    "config.pbtxt",
    "debug_options",
    "execution_options",
    "flagfile",
    "hlo_module_config",
    "tpu_comp_env",
    "ir-",
    "thunk_sequence",
    "sm_",
];

/// Stages that say which device the module was compiled for; whichever comes first in a folder is believed.
const TARGETS: &[&str] = &["target_arguments", "gpu_target_config", "config.pbtxt"];

/// A file's name without the ending of a packed one.
#[must_use]
pub fn unpacked_name(name: &str) -> &str {
    [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

impl DumpName {
    /// Parses a file name; `None` if it does not follow XLA's naming scheme.
    #[must_use]
    pub fn parse(file_name: &str) -> Option<Self> {
        let file_name = unpacked_name(file_name);
        let rest = file_name.strip_prefix("module_")?;
        let digits = rest.find('.')?;
        if digits < 4 || !rest[..digits].bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let module = &file_name[.."module_".len() + digits];
        let mut at = module.len();
        // The stage is the first part with a known prefix; the module name may contain dots.
        while let Some(dot) = file_name[at + 1..].find('.').map(|i| i + at + 1) {
            if STAGES.iter().any(|stage| file_name[dot + 1..].starts_with(stage)) {
                return Some(Self {
                    module: module.to_owned(),
                    stem: file_name[..dot].to_owned(),
                    stage: file_name[dot + 1..].to_owned(),
                });
            }
            at = dot;
        }
        None
    }

    /// Parses the name of any other file of the module `stem`, recognised by the start of its name or by its folder
    /// (`module_0007.jit_step.cl_1003875606/module.mlir`).
    #[must_use]
    pub fn of_module(stem: &str, folder_name: &str, file_name: &str) -> Option<Self> {
        let stage = if folder_name == stem { file_name } else { file_name.strip_prefix(stem)?.strip_prefix('.')? };
        let module = stem.split('.').next().unwrap_or(stem).to_owned();
        Some(Self { module, stem: stem.to_owned(), stage: stage.to_owned() })
    }

    /// Whether files of this stage say which device the module was compiled for.
    #[must_use]
    pub fn tells_of_device(&self) -> bool {
        TARGETS.iter().any(|target| self.stage.starts_with(target))
    }

    /// Whether files of this stage contain the module with its buffer assignment.
    #[must_use]
    pub fn has_assignment(&self) -> bool {
        let stage = self.stage.strip_suffix(".gz").unwrap_or(&self.stage);
        matches!(stage, "after_optimizations.hlo.pb" | "cpu_after_optimizations.hlo.pb")
            || stage.ends_with("gpu_after_optimizations.hlo.pb")
    }
}

/// Files in the folder of `path` that belong to the same module or to the run as a whole (see [`is_run_file`]).
/// Sorted by path; empty if the folder cannot be read.
#[must_use]
pub fn siblings_of(path: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
        return Vec::new();
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let own = DumpName::parse(name);
    let mut found: Vec<PathBuf> = entries
        .take(MAX_ENTRIES)
        .flatten()
        .filter(|entry| {
            let other = entry.file_name();
            let Some(other) = other.to_str() else { return false };
            if other == name {
                return false;
            }
            match (&own, DumpName::parse(other)) {
                (Some(own), Some(other)) => own.stem == other.stem || own.module == other.module,
                (Some(_), None) => is_run_file(other),
                (None, _) => false,
            }
        })
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found
}

/// Whether a file name is that of an error text, a log or run statistics (`*.stats.json`).
#[must_use]
pub fn is_run_file(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".err.txt", ".err", ".log", ".stderr", ".stats.json"].iter().any(|end| name.ends_with(end))
        || name == "error.txt"
        || name == "stderr.txt"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dump_names_are_parsed() {
        let name = DumpName::parse("module_0000.jit_train_step.cl_1003875606.after_optimizations-live-range.txt");
        let name = name.expect("a dump name");
        assert_eq!(name.module, "module_0000");
        assert_eq!(name.stem, "module_0000.jit_train_step.cl_1003875606");
        assert_eq!(name.stage, "after_optimizations-live-range.txt");
        let cpu = DumpName::parse("module_0030.jit_train_step.cpu_after_optimizations.hlo.pb").expect("a dump name");
        assert!(cpu.has_assignment());
        let packed = DumpName::parse("module_0030.jit_x.after_optimizations.hlo.pb.gz").expect("a dump name");
        assert!(packed.has_assignment());
        let dotted = DumpName::parse("module_12345.a.b.c.before_optimizations.hlo.pb").expect("a dump name");
        assert_eq!(dotted.stem, "module_12345.a.b.c");
        assert!(!dotted.has_assignment());
        assert_eq!(DumpName::parse("module_1.x.after_optimizations.hlo.pb"), None);
        assert_eq!(DumpName::parse("notes.txt"), None);
    }

    #[test]
    fn what_lies_beside_a_module_belongs_to_it() {
        let stem = "module_0000.jit_step.cl_1003875606";
        let stage = |folder, file: &str| DumpName::of_module(stem, folder, file).map(|name| name.stage);
        assert_eq!(stage("dumps", "module_0000.jit_step.cl_1003875606.flagfile").as_deref(), Some("flagfile"));
        assert_eq!(stage(stem, "module.mlir").as_deref(), Some("module.mlir"));
        assert_eq!(stage("dumps", "module_0000.jit_step.cl_10038756060.flagfile"), None);
        assert_eq!(stage("dumps", "module.mlir"), None);
    }
}
