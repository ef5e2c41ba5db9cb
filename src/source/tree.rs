//! The files of a folder or an archive, listed without being read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archive::{Archive, ArchiveKind, MAX_MEMBERS};
use super::error::SourceError;
use super::input::Input;
use super::progress::Progress;

/// Folders nested deeper than this are not looked into.
const MAX_DEPTH: usize = 16;

/// Where a member lies.
#[derive(Debug, Clone)]
enum Place {
    File(PathBuf),
    Archive(Arc<Archive>, usize),
}

/// A file of a folder or an archive.
#[derive(Debug, Clone)]
pub struct Member {
    /// Path below the folder, parts divided by `/`.
    pub path: String,
    /// Its size; unpacked in an archive.
    pub bytes: u64,
    place: Place,
}

impl Member {
    /// Name without folders.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Folder below the root; empty for the root itself.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Path on disk, for a file that is not in an archive.
    #[must_use]
    pub fn on_disk(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path),
            Place::Archive(..) => None,
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// When it cannot be read or unpacked.
    pub fn open(&self) -> Result<Input, SourceError> {
        match &self.place {
            Place::File(path) => Input::open(path),
            Place::Archive(archive, row) => archive.member(*row),
        }
    }
}

impl From<PathBuf> for Member {
    /// A file that somebody named.
    fn from(path: PathBuf) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        Self { path: name, bytes, place: Place::File(path) }
    }
}

/// All files of a folder or an archive.
#[derive(Debug, Default)]
pub struct Tree {
    /// Files, sorted by path.
    pub members: Vec<Member>,
    /// What was left out.
    pub notes: Vec<String>,
}

impl Tree {
    /// Lists a folder and the folders in it.
    ///
    /// # Errors
    /// When the folder cannot be read, or it was cancelled. Folders inside that cannot be read are noted.
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
                // A link to a file is that file; one to a folder could lead in a circle.
                let Ok(metadata) = fs::metadata(entry.path()) else { continue };
                if metadata.is_dir() {
                    links += 1;
                } else if metadata.is_file() {
                    tree.members.push(Member { path, bytes: metadata.len(), place: Place::File(entry.path()) });
                }
                if tree.members.len() > MAX_MEMBERS {
                    tree.notes.push(format!("only the first {MAX_MEMBERS} files were looked at"));
                    folders.clear();
                    break;
                }
            }
        }
        if links > 0 {
            tree.notes.push(format!("{links} links to folders were not followed"));
        }
        if deep > 0 {
            tree.notes.push(format!("{deep} folders nested more than {MAX_DEPTH} deep were not looked into"));
        }
        tree.members.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// Lists an archive.
    ///
    /// # Errors
    /// When it is damaged, breaks a limit, or was cancelled.
    pub fn archive(input: &Input, kind: ArchiveKind, progress: &Progress) -> Result<Self, SourceError> {
        let archive = Arc::new(Archive::open(input, kind, progress)?);
        let members = archive
            .members
            .iter()
            .enumerate()
            .map(|(row, member)| Member {
                path: member.path.clone(),
                bytes: member.bytes,
                place: Place::Archive(Arc::clone(&archive), row),
            })
            .collect();
        Ok(Self { members, notes: archive.notes.clone() })
    }
}
