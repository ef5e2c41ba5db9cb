//! Where the rows of a table come from: the file, when it was written, and keys to join the tables by.

use std::path::Path;
use std::time::UNIX_EPOCH;

use super::chunk::Cell;
use crate::model::Program;

/// A profile's file, as it stands in every row made from it.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Its path as it was found.
    pub file: String,
    /// When it was last modified, in milliseconds since 1970 (UTC); `None` if that is not known.
    pub modified_ms: Option<i64>,
}

impl Origin {
    /// A file by the path shown for it; the time is that of `on_disk`, the file itself or the archive that it is in.
    #[must_use]
    pub fn new(file: String, on_disk: Option<&Path>) -> Self {
        let modified = on_disk.and_then(|path| path.metadata().ok()?.modified().ok());
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self { file, modified_ms: since.and_then(|since| i64::try_from(since.as_millis()).ok()) }
    }

    /// The key of a program of the file, or of the file itself: the same in every export of a file with this path.
    pub(super) fn key(&self, program: Option<&Program>) -> String {
        let id = program.and_then(|program| program.id.as_deref()).unwrap_or_default();
        let name = program.map_or("", |program| program.name.as_str());
        // FNV-1a, which is the same on every machine and in every version.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in [&self.file, "\0", name, "\0", id].into_iter().flat_map(str::bytes) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        format!("{hash:016x}")
    }

    /// The first cells of every row: key, file, program.
    pub(super) fn cells<'a>(&'a self, key: &'a str, program: Option<&'a Program>) -> [Cell<'a>; 3] {
        [key.into(), (&self.file).into(), program.map(|program| program.name.as_str()).into()]
    }
}
