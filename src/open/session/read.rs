//! Reads a session file, plain or packed, and finds the profiles that it names.

use std::io::Read as _;
use std::path::Path;

use super::format::{SCHEMA, SavedProfile, Session};
use super::hash::content_hash;
use crate::open::Target;
use crate::source::{Archive, ArchiveKind, Input, Progress, SourceError};

/// Longest session in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// Most profiles of a session.
const MOST_PROFILES: usize = 10_000;

/// Name of the session in a packed one.
pub(super) const MEMBER: &str = "session.highwater";

/// Why a file is no session, or not one that can be opened.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// It is not what a session should be.
    #[error("not a session: {0}")]
    Json(#[from] serde_json::Error),
    /// It is larger than any session.
    #[error("it has more than {0} bytes, which no session has")]
    TooLong(u64),
    /// It names more profiles than can be opened.
    #[error("it names more than {0} profiles")]
    TooMany(usize),
}

/// A session that was read.
#[derive(Debug)]
pub struct OpenedSession {
    /// Its contents.
    pub session: Session,
    /// What each of its profiles is opened from; of a packed session, the session file itself.
    pub targets: Vec<Target>,
    /// Whether the profiles are in the file.
    pub is_packed: bool,
}

impl OpenedSession {
    /// Reads a session; `None` where a file is something else.
    ///
    /// # Errors
    /// If it is a session that cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>, SessionError> {
        if path.is_dir() {
            return Ok(None);
        }
        // What cannot be opened is for the decoders to complain about.
        let Ok(input) = Input::open(path) else { return Ok(None) };
        let is_packed = ArchiveKind::of(&input) == Some(ArchiveKind::Zip);
        let text = if is_packed {
            // Only a file of this name is looked into: listing a large archive takes a while.
            if path.extension().is_none_or(|end| end != "highwater") {
                return Ok(None);
            }
            let archive = Archive::open(&input, ArchiveKind::Zip, &Progress::default())?;
            let Some(row) = archive.members.iter().position(|member| member.path == MEMBER) else { return Ok(None) };
            read_short(&archive.member(row, &Progress::default())?)?
        } else {
            if !is_session(input.head()) {
                return Ok(None);
            }
            read_short(&input)?
        };
        let session: Session = serde_json::from_slice(&text)?;
        if session.schema != SCHEMA {
            return Err(SessionError::Json(serde::de::Error::custom(format!("its schema is {}", session.schema))));
        }
        if session.profiles.len() > MOST_PROFILES {
            return Err(SessionError::TooMany(MOST_PROFILES));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let target = |profile: &SavedProfile| match &profile.text {
            Some(text) => Target::Bytes(profile.path.clone(), text.as_bytes().into()),
            None if is_packed => Target::Path(path.to_owned()),
            None => Target::Path(folder.join(&profile.path)),
        };
        let targets = session.profiles.iter().map(target).collect();
        Ok(Some(Self { session, targets, is_packed }))
    }

    /// What to open, each path once, the one that is shown first; and a sentence about each profile that is missing or
    /// has changed.
    #[must_use]
    pub fn to_open(&self) -> (Vec<Target>, Vec<String>) {
        let mut notes = Vec::new();
        let mut order: Vec<usize> = (0..self.targets.len()).collect();
        order.sort_by_key(|&row| row != self.session.shown);
        let mut targets: Vec<Target> = Vec::new();
        for row in order {
            let (target, saved) = (&self.targets[row], &self.session.profiles[row]);
            let Some(path) = target.path() else {
                targets.push(target.clone());
                continue;
            };
            if !targets.iter().any(|known| known.path() == Some(path)) {
                targets.push(target.clone());
            }
            if self.is_packed || saved.hash.is_empty() {
                continue;
            }
            match content_hash(path) {
                Ok(hash) if hash == saved.hash => {}
                Ok(_) => notes.push(format!("{} has changed since the session was saved", path.display())),
                // The decoders say what is wrong with it.
                Err(_) => {}
            }
        }
        (targets, notes)
    }
}

/// Whether the first bytes are those of a session: a JSON object that names the schema early.
fn is_session(head: &[u8]) -> bool {
    let start = head.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let head = &head[start..head.len().min(start + 4096)];
    head.first() == Some(&b'{') && memchr::memmem::find(head, b"\"highwater.session/").is_some()
}

fn read_short(input: &Input) -> Result<Vec<u8>, SessionError> {
    let mut text = Vec::new();
    let read = input.reader()?.take(MOST_BYTES + 1).read_to_end(&mut text).map_err(SourceError::from)?;
    if read as u64 > MOST_BYTES { Err(SessionError::TooLong(MOST_BYTES)) } else { Ok(text) }
}
