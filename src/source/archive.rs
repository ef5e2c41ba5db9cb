//! Lists zip and tar archives (also tar.gz and tar.zst) and unpacks one member at a time, within size limits.
//!
//! Nothing is written to disk, so a hostile path does no harm. Entries with unsafe paths, links and anything that is not
//! a regular file are skipped, with a note.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::bytes::SharedBytes;
use super::error::SourceError;
use super::input::{Input, MAX_IN_MEMORY, Packing, read_all, unpacked_limit};
use super::progress::Progress;

/// Archives with more entries than this are rejected.
pub const MAX_MEMBERS: usize = 100_000;

/// Limit on the total unpacked size of a compressed tar's members in bytes; they are held in memory.
pub const MAX_UNPACKED: u64 = 2 << 30;

/// Limit on the total unpacked size in bytes that a zip's directory may declare.
pub const MAX_CLAIMED: u64 = 1 << 40;

/// Limit on the unpacked length of a compressed tar in bytes, including headers and skipped entries.
const MAX_STREAM: u64 = MAX_UNPACKED + (256 << 20);

/// Longest accepted path in bytes.
const MAX_PATH: usize = 4096;

/// Longest accepted GNU long-name or pax header in bytes.
const MAX_EXTENDED_HEADER: u64 = 64 << 10;

/// Archive formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveKind {
    /// Zip.
    Zip,
    /// Tar, plain or compressed with gzip or Zstandard.
    Tar,
}

impl ArchiveKind {
    /// Detects the format from the input's first bytes, decompressed; `None` if it is not an archive.
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
    /// An uncompressed tar on disk; members are read by seeking.
    TarFile(Mutex<File>),
    /// The unpacked members of a compressed tar, concatenated.
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

/// A regular file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveMember {
    /// Path in the archive, with `/` as the separator.
    pub path: String,
    /// Unpacked size in bytes, as declared by the archive.
    pub bytes: u64,
    /// Entry index in a zip; byte offset of the data in a tar.
    position: u64,
}

/// An open archive.
#[derive(Debug)]
pub struct Archive {
    name: String,
    store: Store,
    /// Regular files, sorted by path.
    pub members: Vec<ArchiveMember>,
    /// What was skipped and why, one sentence each.
    pub notes: Vec<String>,
}

impl Archive {
    /// Lists an archive.
    ///
    /// # Errors
    /// If the archive is damaged, exceeds a limit, or `progress` was cancelled.
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
        let mut zip = zip::ZipArchive::new(reader).map_err(|error| rejected("zip", error.to_string()))?;
        if zip.len() > MAX_MEMBERS {
            return Err(rejected("zip", format!("{} entries exceed the limit of {MAX_MEMBERS}", zip.len())));
        }
        let (mut members, mut skipped) = (Vec::new(), Skipped::default());
        let (mut packed, mut unpacked) = (0u64, 0u64);
        for row in 0..zip.len() {
            progress.check()?;
            let Ok(entry) = zip.by_index_raw(row) else {
                skipped.damaged += 1;
                continue;
            };
            packed = packed.saturating_add(entry.compressed_size());
            unpacked = unpacked.saturating_add(entry.size());
            if entry.is_dir() {
                continue;
            }
            if entry.is_symlink() {
                skipped.links += 1;
            } else if entry.encrypted() {
                skipped.encrypted += 1;
            } else {
                match entry.name().ok().and_then(|name| clean_path(&name)) {
                    Some(path) => members.push(ArchiveMember { path, bytes: entry.size(), position: row as u64 }),
                    None => skipped.paths += 1,
                }
            }
        }
        // Zip bombs let many entries share the same compressed bytes.
        if packed > size {
            return Err(rejected("zip", "entries overlap".to_owned()));
        }
        if unpacked > MAX_CLAIMED {
            return Err(rejected("zip", format!("it declares {unpacked} unpacked bytes; the limit is {MAX_CLAIMED}")));
        }
        let name = input.name().to_owned();
        Ok(Self { name, store: Store::Zip(Mutex::new(zip)), members, notes: skipped.notes() })
    }

    fn tar(input: &Input, progress: &Progress) -> Result<Self, SourceError> {
        let plain_file = input.path().filter(|_| input.packing() == Packing::None);
        let (mut members, mut skipped) = (Vec::new(), Skipped::default());
        let mut kept = Vec::new();
        let store = if let Some(path) = plain_file {
            let mut tar = tar::Archive::new(File::open(path)?);
            let entries = tar.entries_with_seek().map_err(|error| rejected("tar", error.to_string()))?;
            walk(entries, progress, &mut skipped, |entry, path| {
                members.push(ArchiveMember { path, bytes: entry.size(), position: entry.raw_file_position() });
                Ok(true)
            })?;
            Store::TarFile(Mutex::new(File::open(path)?))
        } else {
            let exhausted = Cell::new(false);
            let reader = Limited { inner: input.reader()?, left: MAX_STREAM, exhausted: &exhausted, progress };
            let mut tar = tar::Archive::new(reader);
            let entries = tar.entries().map_err(|error| rejected("tar", error.to_string()))?;
            walk(entries, progress, &mut skipped, |entry, path| {
                let position = kept.len() as u64;
                let left = MAX_UNPACKED.saturating_sub(position);
                if entry.size() > left {
                    return Err(rejected(
                        "tar",
                        format!("it unpacks to more than {MAX_UNPACKED} bytes; unpack it and open the folder"),
                    ));
                }
                // The header may declare more bytes than the stream holds.
                let expected = entry.size();
                let read = entry.take(left).read_to_end(&mut kept);
                if !read.is_ok_and(|count| count as u64 == expected) {
                    kept.truncate(usize::try_from(position).unwrap_or(0));
                    return Ok(false);
                }
                members.push(ArchiveMember { path, bytes: expected, position });
                Ok(true)
            })?;
            if exhausted.get() {
                skipped.damaged = skipped.damaged.saturating_sub(1);
                skipped.is_truncated = true;
            }
            Store::Memory(kept.into())
        };
        Ok(Self { name: input.name().to_owned(), store, members, notes: skipped.notes() })
    }

    /// Unpacks a member by its index in [`Self::members`]; its bytes are steps of `progress`.
    ///
    /// # Errors
    /// [`SourceError::Empty`] if there is no such member or it is empty; otherwise if it is damaged, exceeds a limit, or
    /// `progress` was cancelled.
    pub fn member(&self, row: usize, progress: &Progress) -> Result<Input, SourceError> {
        let Some(member) = self.members.get(row) else { return Err(SourceError::Empty) };
        let bytes = match &self.store {
            Store::Zip(zip) => {
                let mut zip = zip.lock().unwrap_or_else(PoisonError::into_inner);
                let index = usize::try_from(member.position).unwrap_or(usize::MAX);
                let entry = zip.by_index(index).map_err(|error| rejected("zip", error.to_string()))?;
                let limit = unpacked_limit(entry.compressed_size());
                read_limited(entry, (member.bytes, limit), "zip", progress)?
            }
            Store::TarFile(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                if member.bytes > MAX_IN_MEMORY {
                    return Err(SourceError::TooLarge { size: member.bytes, limit: MAX_IN_MEMORY });
                }
                file.seek(SeekFrom::Start(member.position))?;
                read_limited((&mut *file).take(member.bytes), (member.bytes, member.bytes), "tar", progress)?
            }
            Store::Memory(bytes) => {
                let start = member.position as usize;
                bytes.slice(start..start.saturating_add(member.bytes as usize))
            }
        };
        Input::from_bytes(format!("{}/{}", self.name, member.path), bytes)
    }
}

/// A reader that fails after `left` bytes, or once `progress` is cancelled.
struct Limited<'a, R> {
    inner: R,
    left: u64,
    /// Set once `left` bytes have been read.
    exhausted: &'a Cell<bool>,
    progress: &'a Progress,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 || self.progress.check().is_err() {
            self.exhausted.set(self.left == 0);
            return Err(io::Error::other("size limit exceeded or cancelled"));
        }
        let limit = usize::try_from(self.left).unwrap_or(usize::MAX).min(space.len());
        let count = self.inner.read(&mut space[..limit])?;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Calls `each` with every regular file of a tar until it returns `false`. A truncated tar keeps the files before the cut.
///
/// GNU long-name and pax headers are read here because the `tar` crate does not limit their size.
fn walk<'a, R: Read>(
    entries: tar::Entries<'a, R>,
    progress: &Progress,
    skipped: &mut Skipped,
    mut each: impl FnMut(&mut tar::Entry<'a, R>, String) -> Result<bool, SourceError>,
) -> Result<(), SourceError> {
    let mut count = 0usize;
    // Path override from a preceding GNU long-name or pax header; pax wins.
    let (mut long, mut pax): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
    for entry in entries.raw(true) {
        progress.check()?;
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) if count == 0 => return Err(rejected("tar", error.to_string())),
            Err(_) => {
                skipped.damaged += 1;
                return Ok(());
            }
        };
        count += 1;
        if count > MAX_MEMBERS {
            return Err(rejected("tar", format!("more than {MAX_MEMBERS} entries")));
        }
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() {
            let text = extended_header(&mut entry);
            skipped.names += usize::from(text.is_none());
            long = Some(text.map(until_nul).unwrap_or_default());
            continue;
        }
        if kind.is_pax_local_extensions() {
            pax = match extended_header(&mut entry) {
                Some(text) => pax_path(&text),
                // The path is unknown; an empty one skips the entry.
                None => {
                    skipped.names += 1;
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
            skipped.links += 1;
            continue;
        }
        if !kind.is_file() {
            skipped.special += 1;
            continue;
        }
        let path = pax.or(long).unwrap_or_else(|| entry.path_bytes().into_owned());
        match std::str::from_utf8(&path).ok().and_then(clean_path) {
            Some(path) => {
                if !each(&mut entry, path)? {
                    progress.check()?;
                    skipped.damaged += 1;
                    return Ok(());
                }
            }
            // Already counted as an unreadable name.
            None if path.is_empty() => {}
            None => skipped.paths += 1,
        }
    }
    Ok(())
}

/// The contents of a GNU long-name or pax header; `None` if damaged or longer than [`MAX_EXTENDED_HEADER`].
fn extended_header<R: Read>(entry: &mut tar::Entry<'_, R>) -> Option<Vec<u8>> {
    if entry.size() > MAX_EXTENDED_HEADER {
        return None;
    }
    let mut text = Vec::new();
    entry.take(MAX_EXTENDED_HEADER).read_to_end(&mut text).ok()?;
    Some(text)
}

fn until_nul(mut text: Vec<u8>) -> Vec<u8> {
    text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(text.len()));
    text
}

/// The path from a pax header (lines of `LENGTH key=value`); the last one wins.
fn pax_path(text: &[u8]) -> Option<Vec<u8>> {
    let records = tar::PaxExtensions::new(text).filter_map(Result::ok);
    records.filter(|record| record.key_bytes() == b"path").last().map(|record| record.value_bytes().to_vec())
}

#[derive(Debug, Default)]
struct Skipped {
    /// Whether the stream exceeds [`MAX_STREAM`].
    is_truncated: bool,
    names: usize,
    links: usize,
    special: usize,
    paths: usize,
    encrypted: usize,
    damaged: usize,
}

impl Skipped {
    fn notes(&self) -> Vec<String> {
        let truncated = format!("only the first {MAX_STREAM} unpacked bytes of the archive were read");
        [
            (self.links, "link", "links"),
            (self.special, "entry that is not a regular file", "entries that are not regular files"),
            (self.paths, "entry with an unsafe or invalid path", "entries with unsafe or invalid paths"),
            (self.names, "entry with a damaged or overlong name", "entries with damaged or overlong names"),
            (self.encrypted, "encrypted entry", "encrypted entries"),
            (self.damaged, "damaged entry", "damaged entries"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| format!("skipped in the archive: {count} {}", if count == 1 { one } else { many }))
        .chain(self.is_truncated.then_some(truncated))
        .collect()
    }
}

/// Normalises a relative path to `/` separators; `None` if it is absolute, overlong or leaves the archive.
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

/// Reads what is expected to have so many bytes and may have so many at most.
fn read_limited(
    reader: impl Read,
    (expected, limit): (u64, u64),
    format: &'static str,
    progress: &Progress,
) -> Result<SharedBytes, SourceError> {
    let mut counted = Counted { inner: reader.take(limit.saturating_add(1)), bytes: 0 };
    read_all(&mut counted, expected.min(limit), limit, progress).map_err(|error| match error {
        SourceError::Io(error) => {
            SourceError::Packed { format, why: error.to_string(), offset: counted.bytes, stream: "unpacked" }
        }
        other => other,
    })
}

/// Counts the bytes read.
struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(space)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

fn rejected(format: &'static str, why: impl std::fmt::Display) -> SourceError {
    SourceError::Io(io::Error::new(io::ErrorKind::InvalidData, format!("{format} archive rejected: {why}")))
}

/// Whether a file has the extension of an archive. The file is not opened.
#[must_use]
pub fn is_archive_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_ascii_lowercase();
    [".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_paths_are_rejected() {
        assert_eq!(clean_path("a/./b//c.pb").as_deref(), Some("a/b/c.pb"));
        assert_eq!(clean_path("a\\b.pb").as_deref(), Some("a/b.pb"));
        for path in ["", "/etc/passwd", "../x", "a/../../x", "C:/x", "\\\\server\\x", "a\0b", "."] {
            assert_eq!(clean_path(path), None, "{path}");
        }
    }
}
