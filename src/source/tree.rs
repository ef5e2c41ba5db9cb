//! Lists the files of a folder or an archive without reading them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archive::{Archive, ArchiveKind, MAX_MEMBERS};
use super::error::SourceError;
use super::input::Input;
use super::progress::Progress;

/// Folders nested deeper than this are skipped.
const MAX_DEPTH: usize = 16;

/// Where a member is stored.
#[derive(Debug, Clone)]
enum Location {
    File(PathBuf),
    /// An archive and the index of the member in it.
    Archive(Arc<Archive>, usize),
}

/// A file of a folder or an archive.
#[derive(Debug, Clone)]
pub struct Member {
    /// Path relative to the root, with `/` as the separator.
    pub path: String,
    /// Size in bytes; unpacked if in an archive.
    pub bytes: u64,
    location: Location,
}

impl Member {
    /// The last component of the path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The folder relative to the root; empty for the root itself.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Path on disk; `None` for a member of an archive.
    #[must_use]
    pub fn on_disk(&self) -> Option<&Path> {
        match &self.location {
            Location::File(path) => Some(path),
            Location::Archive(..) => None,
        }
    }

    /// Opens the file, unpacking it if it is in an archive: the bytes of that are steps of `progress`.
    ///
    /// # Errors
    /// If it is empty, cannot be read or unpacked, or `progress` was cancelled.
    pub fn open(&self, progress: &Progress) -> Result<Input, SourceError> {
        match &self.location {
            Location::File(path) => Input::open(path),
            Location::Archive(archive, row) => archive.member(*row, progress),
        }
    }
}

impl From<PathBuf> for Member {
    /// A single file given by path.
    fn from(path: PathBuf) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        Self { path: name, bytes, location: Location::File(path) }
    }
}

/// All files of a folder or an archive.
#[derive(Debug, Default)]
pub struct Tree {
    /// Files, sorted by path.
    pub members: Vec<Member>,
    /// What was skipped and why, one sentence each.
    pub notes: Vec<String>,
}

impl Tree {
    /// Lists a folder recursively. Subfolders that cannot be read are noted.
    ///
    /// # Errors
    /// If the folder itself cannot be read, or `progress` was cancelled.
    pub fn folder(root: &Path, progress: &Progress) -> Result<Self, SourceError> {
        let mut tree = Self::default();
        let mut folders = vec![(root.to_owned(), String::new(), 0)];
        let (mut links, mut deep) = (0usize, 0usize);
        while let Some((folder, prefix, depth)) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if depth == 0 => return Err(error.into()),
                Err(error) => {
                    tree.notes.push(format!("{} cannot be read: {error}", folder.display()));
                    continue;
                }
            };
            for entry in entries.flatten() {
                progress.check()?;
                let Ok(kind) = entry.file_type() else { continue };
                let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if kind.is_dir() {
                    if depth < MAX_DEPTH {
                        folders.push((entry.path(), format!("{path}/"), depth + 1));
                    } else {
                        deep += 1;
                    }
                    continue;
                }
                // Links to files are followed; links to folders could form a cycle.
                let Ok(metadata) = fs::metadata(entry.path()) else { continue };
                if metadata.is_dir() {
                    links += 1;
                } else if metadata.is_file() {
                    tree.members.push(Member { path, bytes: metadata.len(), location: Location::File(entry.path()) });
                }
                if tree.members.len() > MAX_MEMBERS {
                    tree.notes.push(format!("only the first {MAX_MEMBERS} files were listed"));
                    folders.clear();
                    break;
                }
            }
        }
        if links > 0 {
            tree.notes.push(format!("{links} links to folders were not followed"));
        }
        if deep > 0 {
            tree.notes.push(format!("{deep} folders nested more than {MAX_DEPTH} levels deep were skipped"));
        }
        tree.members.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// Lists an archive.
    ///
    /// # Errors
    /// If the archive is damaged, exceeds a limit, or `progress` was cancelled.
    pub fn archive(input: &Input, kind: ArchiveKind, progress: &Progress) -> Result<Self, SourceError> {
        let archive = Arc::new(Archive::open(input, kind, progress)?);
        let members = archive
            .members
            .iter()
            .enumerate()
            .map(|(row, member)| Member {
                path: member.path.clone(),
                bytes: member.bytes,
                location: Location::Archive(Arc::clone(&archive), row),
            })
            .collect();
        Ok(Self { members, notes: archive.notes.clone() })
    }
}
