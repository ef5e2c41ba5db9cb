//! Reads a file of named sets of changes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::analysis::what_if::{EditSet, SetsError};

/// Bytes that are read: more than a file of sets may have, so that a longer one is noticed.
const MOST: u64 = (1 << 20) + 1;

/// Why a file of sets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadSetsError {
    /// It cannot be read.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// It holds something else.
    #[error("no sets of changes: {0}")]
    Sets(#[from] SetsError),
}

/// Reads a file of sets.
///
/// # Errors
/// What the system says of the file, or what is wrong in it.
pub fn read(path: &Path) -> Result<Vec<EditSet>, ReadSetsError> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(EditSet::read(&String::from_utf8_lossy(&bytes))?)
}
