//! A large real program for benches without one of their own.

use std::path::{Path, PathBuf};

/// The largest HLO proto in the samples and in the collection named by `HIGHWATER_PROFILES`.
#[must_use]
pub fn program() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("sample_profiles")];
    folders.extend(std::env::var_os("HIGHWATER_PROFILES").map(PathBuf::from));
    let mut best = (0, None);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with("after_optimizations.hlo.pb") {
                let size = entry.metadata().map_or(0, |m| m.len());
                if size > best.0 {
                    best = (size, Some(path));
                }
            }
        }
    }
    best.1
}
