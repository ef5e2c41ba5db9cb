//! Archives (zip, tar, tar.gz, tar.zst): their members by name, unpacked one at a time, within limits.
//!
//! Nothing is ever written to disk, so a hostile path can lead nowhere; entries with such paths, links and everything
//! that is no plain file are left out with a note all the same.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::bytes::SharedBytes;
use super::error::SourceError;
use super::input::{Input, MAX_IN_MEMORY, Packing, unpacked_limit};
use super::progress::Progress;

/// Entries of an archive beyond this number make it one that is refused.
pub const MAX_MEMBERS: usize = 100_000;

/// What all members of a compressed tar together may take unpacked; they are kept in memory.
pub const MAX_UNPACKED: u64 = 2 << 30;

/// What all members of a zip together may claim to take.
pub const MAX_CLAIMED: u64 = 1 << 40;

/// What a compressed tar may unpack to with its headers and everything that is left out.
const MAX_STREAM: u64 = MAX_UNPACKED + (256 << 20);

/// Bytes of a path; longer ones are left out.
const MAX_PATH: usize = 4096;

/// Bytes of an entry that only describes the next one.
const MAX_DESCRIPTION: u64 = 64 << 10;

/// Kinds of archives, by their first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveKind {
    /// zip.
    Zip,
    /// tar, perhaps compressed as a whole.
    Tar,
}

impl ArchiveKind {
    /// The kind of an input, `None` for what is no archive. Looks at the first bytes, unpacked.
    #[must_use]
    pub fn of(input: &Input) -> Option<Self> {
        let head = input.head();
        if input.packing() == Packing::None && (head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")) {
            return Some(Self::Zip);
        }
        (head.get(257..262) == Some(b"ustar")).then_some(Self::Tar)
    }
}

trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

enum Store {
    Zip(Mutex<zip::ZipArchive<Box<dyn ReadSeek>>>),
    /// A tar on disk: members are read where they lie.
    TarFile(Mutex<File>),
    /// Members of a compressed tar, unpacked.
    Memory(SharedBytes),
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zip(_) => "zip",
            Self::TarFile(_) => "tar",
            Self::Memory(_) => "unpacked",
        })
    }
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveMember {
    /// Path in the archive, parts divided by `/`.
    pub path: String,
    /// Bytes unpacked, as the archive says.
    pub bytes: u64,
    /// Row in a zip, or the place in a tar.
    at: u64,
}

/// An open archive.
#[derive(Debug)]
pub struct Archive {
    name: String,
    store: Store,
    /// Plain files, sorted by path.
    pub members: Vec<ArchiveMember>,
    /// What was left out.
    pub notes: Vec<String>,
}

impl Archive {
    /// Lists an archive.
    ///
    /// # Errors
    /// When it is damaged, breaks a limit, or was cancelled.
    pub fn open(input: &Input, kind: ArchiveKind, progress: &Progress) -> Result<Self, SourceError> {
        let mut archive = match kind {
            ArchiveKind::Zip => Self::zip(input, progress)?,
            ArchiveKind::Tar => Self::tar(input, progress)?,
        };
        archive.members.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(archive)
    }

    fn zip(input: &Input, progress: &Progress) -> Result<Self, SourceError> {
        let (reader, size): (Box<dyn ReadSeek>, u64) = match input.path() {
            Some(path) => {
                let file = File::open(path)?;
                let size = file.metadata()?.len();
                (Box::new(file), size)
            }
            None => {
                let bytes = input.load(progress)?;
                let size = bytes.len() as u64;
                (Box::new(Cursor::new(bytes)), size)
            }
        };
        let mut zip = zip::ZipArchive::new(reader).map_err(|error| refused("zip", error.to_string()))?;
        if zip.len() > MAX_MEMBERS {
            return Err(refused("zip", format!("{} entries, the limit is {MAX_MEMBERS}", zip.len())));
        }
        let (mut members, mut left_out) = (Vec::new(), LeftOut::default());
        let (mut packed, mut unpacked) = (0u64, 0u64);
        for row in 0..zip.len() {
            progress.check()?;
            let Ok(entry) = zip.by_index_raw(row) else {
                left_out.damaged += 1;
                continue;
            };
            packed = packed.saturating_add(entry.compressed_size());
            unpacked = unpacked.saturating_add(entry.size());
            if entry.is_dir() {
                continue;
            }
            if entry.is_symlink() {
                left_out.links += 1;
            } else if entry.encrypted() {
                left_out.encrypted += 1;
            } else {
                match entry.name().ok().and_then(|name| clean_path(&name)) {
                    Some(path) => members.push(ArchiveMember { path, bytes: entry.size(), at: row as u64 }),
                    None => left_out.paths += 1,
                }
            }
        }
        // Entries that share their bytes are the way to a small file that unpacks without end.
        if packed > size {
            return Err(refused("zip", "its entries overlap".to_owned()));
        }
        if unpacked > MAX_CLAIMED {
            return Err(refused("zip", format!("it claims to unpack to {unpacked} bytes, the limit is {MAX_CLAIMED}")));
        }
        let name = input.name().to_owned();
        Ok(Self { name, store: Store::Zip(Mutex::new(zip)), members, notes: left_out.notes() })
    }

    fn tar(input: &Input, progress: &Progress) -> Result<Self, SourceError> {
        let plain_file = input.path().filter(|_| input.packing() == Packing::None);
        let (mut members, mut left_out) = (Vec::new(), LeftOut::default());
        let mut kept = Vec::new();
        let store = if let Some(path) = plain_file {
            let mut tar = tar::Archive::new(File::open(path)?);
            let entries = tar.entries_with_seek().map_err(|error| refused("tar", error.to_string()))?;
            walk(entries, progress, &mut left_out, |entry, path| {
                members.push(ArchiveMember { path, bytes: entry.size(), at: entry.raw_file_position() });
                Ok(true)
            })?;
            Store::TarFile(Mutex::new(File::open(path)?))
        } else {
            let is_over = Cell::new(false);
            let reader = Limited { inner: input.reader()?, left: MAX_STREAM, is_over: &is_over, progress };
            let mut tar = tar::Archive::new(reader);
            let entries = tar.entries().map_err(|error| refused("tar", error.to_string()))?;
            walk(entries, progress, &mut left_out, |entry, path| {
                let at = kept.len() as u64;
                let left = MAX_UNPACKED.saturating_sub(at);
                if entry.size() > left {
                    return Err(refused(
                        "tar",
                        format!("it unpacks to more than {MAX_UNPACKED} bytes; unpack it and open the folder"),
                    ));
                }
                // What is there decides, not what the header says.
                let expected = entry.size();
                let read = entry.take(left).read_to_end(&mut kept);
                if !read.is_ok_and(|count| count as u64 == expected) {
                    kept.truncate(usize::try_from(at).unwrap_or(0));
                    return Ok(false);
                }
                members.push(ArchiveMember { path, bytes: expected, at });
                Ok(true)
            })?;
            if is_over.get() {
                left_out.damaged = left_out.damaged.saturating_sub(1);
                left_out.rest = true;
            }
            Store::Memory(kept.into())
        };
        Ok(Self { name: input.name().to_owned(), store, members, notes: left_out.notes() })
    }

    /// A member as an input of its own.
    ///
    /// # Errors
    /// When it cannot be unpacked within the limits.
    pub fn member(&self, row: usize) -> Result<Input, SourceError> {
        let Some(member) = self.members.get(row) else { return Err(SourceError::Empty) };
        let bytes = match &self.store {
            Store::Zip(zip) => {
                let mut zip = zip.lock().unwrap_or_else(PoisonError::into_inner);
                let at = usize::try_from(member.at).unwrap_or(usize::MAX);
                let entry = zip.by_index(at).map_err(|error| refused("zip", error.to_string()))?;
                let limit = unpacked_limit(entry.compressed_size());
                read_limited(entry, limit, "zip")?
            }
            Store::TarFile(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                if member.bytes > MAX_IN_MEMORY {
                    return Err(SourceError::TooLarge { size: member.bytes, limit: MAX_IN_MEMORY });
                }
                file.seek(SeekFrom::Start(member.at))?;
                read_limited((&mut *file).take(member.bytes), member.bytes, "tar")?
            }
            Store::Memory(bytes) => {
                let start = member.at as usize;
                bytes.slice(start..start.saturating_add(member.bytes as usize))
            }
        };
        Input::from_bytes(format!("{}/{}", self.name, member.path), bytes)
    }
}

/// A stream that ends with an error where it gives more than it may, or somebody cancels.
struct Limited<'a, R> {
    inner: R,
    left: u64,
    is_over: &'a Cell<bool>,
    progress: &'a Progress,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 || self.progress.check().is_err() {
            self.is_over.set(self.left == 0);
            return Err(io::Error::other("it gives more than it may"));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(space.len());
        let count = self.inner.read(&mut space[..most])?;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Each plain file of a tar, until `each` says that it ends there. A tar that is cut keeps what came before.
///
/// Entries that describe the next one are read here, not by the library, which takes them as long as they say they are.
fn walk<'a, R: Read>(
    entries: tar::Entries<'a, R>,
    progress: &Progress,
    left_out: &mut LeftOut,
    mut each: impl FnMut(&mut tar::Entry<'a, R>, String) -> Result<bool, SourceError>,
) -> Result<(), SourceError> {
    let mut count = 0usize;
    // Paths of the next entry as a description before it says: GNU's long name, and pax's, which counts more.
    let (mut long, mut pax): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
    for entry in entries.raw(true) {
        progress.check()?;
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) if count == 0 => return Err(refused("tar", error.to_string())),
            Err(_) => {
                left_out.damaged += 1;
                return Ok(());
            }
        };
        count += 1;
        if count > MAX_MEMBERS {
            return Err(refused("tar", format!("more than {MAX_MEMBERS} entries")));
        }
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() {
            let text = description(&mut entry);
            left_out.names += usize::from(text.is_none());
            long = Some(text.map(until_zero).unwrap_or_default());
            continue;
        }
        if kind.is_pax_local_extensions() {
            pax = match description(&mut entry) {
                Some(text) => pax_path(&text),
                // Nobody knows what it says; an empty path is left out.
                None => {
                    left_out.names += 1;
                    Some(Vec::new())
                }
            };
            continue;
        }
        if kind.is_gnu_longlink() || kind.is_pax_global_extensions() {
            continue;
        }
        let (long, pax) = (long.take(), pax.take());
        if kind.is_dir() {
            continue;
        }
        if kind.is_symlink() || kind.is_hard_link() {
            left_out.links += 1;
            continue;
        }
        if !kind.is_file() {
            left_out.special += 1;
            continue;
        }
        let path = pax.or(long).unwrap_or_else(|| entry.path_bytes().into_owned());
        match std::str::from_utf8(&path).ok().and_then(clean_path) {
            Some(path) => {
                if !each(&mut entry, path)? {
                    progress.check()?;
                    left_out.damaged += 1;
                    return Ok(());
                }
            }
            // Counted with its name.
            None if path.is_empty() => {}
            None => left_out.paths += 1,
        }
    }
    Ok(())
}

/// What an entry says that describes the next one; `None` where it is damaged or longer than any honest one.
fn description<R: Read>(entry: &mut tar::Entry<'_, R>) -> Option<Vec<u8>> {
    if entry.size() > MAX_DESCRIPTION {
        return None;
    }
    let mut text = Vec::new();
    entry.take(MAX_DESCRIPTION).read_to_end(&mut text).ok()?;
    Some(text)
}

fn until_zero(mut text: Vec<u8>) -> Vec<u8> {
    text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(text.len()));
    text
}

/// The path in pax's records, `LENGTH key=value` on lines; the last one counts.
fn pax_path(text: &[u8]) -> Option<Vec<u8>> {
    let records = tar::PaxExtensions::new(text).filter_map(Result::ok);
    records.filter(|record| record.key_bytes() == b"path").last().map(|record| record.value_bytes().to_vec())
}

#[derive(Debug, Default)]
struct LeftOut {
    /// Whether the stream was longer than is read.
    rest: bool,
    names: usize,
    links: usize,
    special: usize,
    paths: usize,
    encrypted: usize,
    damaged: usize,
}

impl LeftOut {
    fn notes(&self) -> Vec<String> {
        let rest = format!("what lies beyond the first {MAX_STREAM} bytes unpacked was left out of the archive");
        [
            (self.links, "links"),
            (self.special, "entries that are no plain files"),
            (self.paths, "entries whose path leads outside of the archive"),
            (self.names, "entries whose name is damaged or endless"),
            (self.encrypted, "encrypted entries"),
            (self.damaged, "damaged entries"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what} were left out of the archive"))
        .chain(self.rest.then_some(rest))
        .collect()
    }
}

/// A path that stays inside, its parts divided by `/`; `None` for one that does not.
fn clean_path(path: &str) -> Option<String> {
    if path.is_empty() || path.len() > MAX_PATH || path.contains('\0') || path.starts_with(['/', '\\']) {
        return None;
    }
    let mut parts = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => return None,
            part if part.ends_with(':') => return None,
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn read_limited(mut reader: impl Read, limit: u64, format: &'static str) -> Result<SharedBytes, SourceError> {
    let mut bytes = Vec::new();
    (&mut reader).take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| SourceError::Packed {
        format,
        why: error.to_string(),
        offset: bytes.len() as u64,
    })?;
    if bytes.len() as u64 > limit {
        return Err(SourceError::TooLarge { size: bytes.len() as u64, limit });
    }
    Ok(bytes.into())
}

fn refused(format: &'static str, why: impl std::fmt::Display) -> SourceError {
    SourceError::Io(io::Error::new(io::ErrorKind::InvalidData, format!("the {format} archive is refused: {why}")))
}

/// Whether a file may be an archive, by its name alone: for lists, before anything is opened.
#[must_use]
pub fn is_archive_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_ascii_lowercase();
    [".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        assert_eq!(clean_path("a/./b//c.pb").as_deref(), Some("a/b/c.pb"));
        assert_eq!(clean_path("a\\b.pb").as_deref(), Some("a/b.pb"));
        for path in ["", "/etc/passwd", "../x", "a/../../x", "C:/x", "\\\\server\\x", "a\0b", "."] {
            assert_eq!(clean_path(path), None, "{path}");
        }
    }
}
