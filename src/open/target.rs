//! What the user asked to open, resolved to one profile or a collection of them.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::collection::Collection;
use super::file::{join_messages, open_input, open_path};
use super::session::OpenedSession;
use crate::decode::DecodeError;
use crate::model::{Profile, SourceInfo};
use crate::source::{DumpName, Input, Member, Progress, Tree, is_run_file};

/// Something to open.
#[derive(Debug, Clone)]
pub enum Target {
    /// A file, a folder or an archive.
    Path(PathBuf),
    /// Files of one folder, of which some belong to the same program; the one to reopen comes first.
    Files(Arc<[PathBuf]>),
    /// A display name and bytes in memory.
    Bytes(String, Arc<[u8]>),
    /// A collection, the path it was read from, and the index of the entry to open.
    Entry(Arc<Collection>, Option<PathBuf>, usize),
}

/// The result of opening a target.
#[derive(Debug)]
pub enum Opened {
    /// One profile. The programs of a trace are not decoded yet.
    Profile(Box<Profile>),
    /// Several programs, none of them decoded yet.
    Collection(Collection),
}

/// An item reported by [`Target::read_all`].
#[derive(Debug)]
pub enum Found {
    /// A profile.
    Profile(Box<Profile>),
    /// A file that could not be read, with the error.
    Unread(SourceInfo),
    /// A note on a folder or archive as a whole.
    Note(String),
}

impl Target {
    /// Resolves a command-line argument: a path, or `-`, which reads standard input to its end.
    ///
    /// # Errors
    /// If standard input cannot be read.
    pub fn named(path: &Path) -> io::Result<Self> {
        if path.as_os_str() != "-" {
            return Ok(Self::Path(path.to_owned()));
        }
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(Self::Bytes("standard input".to_owned(), bytes.into()))
    }

    /// What to open of paths that were given together: files of one folder are one target where some of them belong to
    /// the same program, such as the files of a dump and the messages of its run; every other path is its own.
    #[must_use]
    pub fn together(paths: Vec<PathBuf>) -> Vec<Self> {
        let stem = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            let is_of_run = is_run_file(name).then(String::new);
            DumpName::parse(name).map(|dump| dump.stem).or(is_of_run)
        };
        let is_dump = |path: &PathBuf| stem(path).is_some_and(|stem| !stem.is_empty());
        let mut targets = Vec::new();
        let mut left = paths;
        while !left.is_empty() {
            let folder = left[0].parent().map(Path::to_owned);
            let (mut here, rest): (Vec<PathBuf>, Vec<PathBuf>) =
                left.into_iter().partition(|path| path.parent().map(Path::to_owned) == folder && path.is_file());
            left = rest;
            if here.is_empty() {
                targets.push(Self::Path(left.remove(0)));
                continue;
            }
            let mut stems: Vec<String> = here.iter().filter_map(|path| stem(path)).collect();
            let named = stems.len();
            let has_messages = stems.iter().any(String::is_empty);
            stems.sort_unstable();
            stems.dedup();
            if here.iter().any(is_dump) && (stems.len() < named || has_messages) {
                here.sort_by_key(|path| !is_dump(path));
                targets.push(Self::Files(here.into()));
            } else {
                targets.extend(here.into_iter().map(Self::Path));
            }
        }
        targets
    }

    /// Whether two targets are the same path or the same bytes; a collection is the path it was read from.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes(_, own), Self::Bytes(_, other)) => Arc::ptr_eq(own, other),
            _ => self.origin().is_some() && self.origin() == other.origin(),
        }
    }

    /// Display name: file name, label of the bytes, or name of the entry.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => {
                path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
            }
            Self::Files(paths) => {
                let folder = paths.first().and_then(|path| path.parent()).and_then(Path::file_name);
                folder.map_or_else(|| "files".to_owned(), |name| name.to_string_lossy().into_owned())
            }
            Self::Bytes(name, _) => name.clone(),
            Self::Entry(collection, _, row) => {
                collection.entries.get(*row).map(|entry| entry.name.clone()).unwrap_or_default()
            }
        }
    }

    /// The path, of several files the first; `None` for bytes and for entries of a collection.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Files(paths) => paths.first().map(PathBuf::as_path),
            Self::Bytes(..) | Self::Entry(..) => None,
        }
    }

    /// The path to reopen: that of the file or of the collection; `None` for bytes.
    #[must_use]
    pub fn origin(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Files(paths) => paths.first().map(PathBuf::as_path),
            Self::Bytes(..) => None,
            Self::Entry(_, path, _) => path.as_deref(),
        }
    }

    /// Lists a folder or archive; decodes anything else.
    ///
    /// # Errors
    /// If nothing could be read, or `progress` was cancelled.
    pub fn open(&self, progress: &Progress) -> Result<Opened, DecodeError> {
        let profile = match self {
            Self::Path(path) if Collection::is_collection(path) => {
                return Collection::open(path, progress).map(Opened::Collection);
            }
            Self::Path(path) => {
                // A session that can be read was replaced by what it names.
                if let Err(error) = OpenedSession::read(path) {
                    return Err(DecodeError::NotAProfile(error.to_string()));
                }
                open_path(path, progress)?
            }
            Self::Files(paths) => {
                let members = paths.iter().cloned().map(Member::from).collect();
                let tree = Tree { members, ..Tree::default() };
                return Collection::of(self.name(), tree, progress).map(Opened::Collection);
            }
            Self::Bytes(name, bytes) => open_input(&Input::from_reader(name.clone(), &**bytes, progress)?, progress)?,
            Self::Entry(collection, _, row) => collection.open_entry(*row, progress)?,
        };
        Ok(Opened::Profile(Box::new(profile)))
    }

    /// Decodes every profile of the target, one at a time and worst first, and passes each to `found`.
    pub fn read_all(&self, progress: &Progress, found: &mut dyn FnMut(Found)) {
        let name = self.path().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
        let mut collection = match self.open(progress) {
            Ok(Opened::Profile(profile)) => return found(Found::Profile(profile)),
            Ok(Opened::Collection(collection)) => collection,
            Err(error) => return found(Found::Unread(unread(name, self.path(), &error))),
        };
        for info in std::mem::take(&mut collection.unread) {
            found(Found::Unread(info));
        }
        for note in std::mem::take(&mut collection.notes) {
            found(Found::Note(note));
        }
        collection.sort_worst_first();
        for (row, entry) in collection.entries.iter().enumerate() {
            found(match collection.open_entry(row, progress) {
                Ok(profile) => Found::Profile(Box::new(profile)),
                Err(error) => Found::Unread(unread(format!("{name}/{}", entry.file), None, &error)),
            });
        }
    }
}

impl Opened {
    /// Prepares the result for the list of open programs. A trace with several programs becomes a collection. The only
    /// program of a trace is decoded, and `messages` are joined to it.
    ///
    /// # Errors
    /// If the program cannot be decoded, or `progress` was cancelled.
    pub fn listed(self, messages: &[Arc<Profile>], progress: &Progress) -> Result<Self, DecodeError> {
        let Self::Profile(profile) = self else { return Ok(self) };
        let mut profile = match Collection::of_trace(*profile) {
            Ok(collection) => return Ok(Self::Collection(collection)),
            Err(profile) => profile,
        };
        load_only_program(&mut profile, progress)?;
        for text in messages {
            join_messages(&mut profile, (**text).clone());
        }
        Ok(Self::Profile(profile))
    }
}

/// Decodes the program of a trace that has just one.
fn load_only_program(profile: &mut Profile, progress: &Progress) -> Result<(), DecodeError> {
    let [module] = &profile.modules[..] else { return Ok(()) };
    if profile.programs.is_empty() {
        progress.check()?;
        let loaded = module.source.load(progress.flag());
        progress.check()?;
        let (program, notes) = loaded.map_err(DecodeError::Empty)?;
        profile.notes.extend(notes);
        profile.programs.push(program);
    }
    Ok(())
}

fn unread(path: String, on_disk: Option<&Path>, error: &DecodeError) -> SourceInfo {
    SourceInfo {
        path,
        format: "unknown".to_owned(),
        bytes: on_disk.and_then(|path| path.metadata().ok()).map_or(0, |data| data.len()),
        notes: Vec::new(),
        error: Some(error.to_string()),
        cut_at: None,
    }
}
