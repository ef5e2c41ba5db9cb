//! Reads a file of named sets of changes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::analysis::what_if::{EditSet, SetsError};

/// Bytes read at most: more than a file of sets may have, so that a longer one is detected.
const MOST: u64 = (1 << 20) + 1;

/// Why a file of sets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadSetsError {
    /// It cannot be read.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// It contains no valid sets.
    #[error("not a file of changes: {0}")]
    Sets(#[from] SetsError),
}

/// Reads a file of sets.
///
/// # Errors
/// If it cannot be read or is not a file of sets.
pub fn read(path: &Path) -> Result<Vec<EditSet>, ReadSetsError> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(EditSet::read(&String::from_utf8_lossy(&bytes))?)
}
