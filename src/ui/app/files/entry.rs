//! An entry of the session: listed, being read, open or failed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::analysis::what_if::Edit;
use crate::model::{Bytes, Profile, Shortage};
use crate::open::{Entry, Stamp, Target};
use crate::source::{Member, Spent, is_run_file};
use crate::ui::app::files::loading::Loading;
use crate::ui::session::{Document, Locals, Shared};
use crate::ui::work::{Derived, Job};

/// Files as they were when they were read.
pub type Read = Vec<(PathBuf, Stamp)>;

/// An open file, or a member of a group.
pub struct FileEntry {
    pub(super) id: EntryId,
    /// Display name.
    pub name: String,
    /// Where it was opened from.
    pub target: Target,
    /// Whether it is listed, loading, open or failed.
    pub state: FileState,
    /// Id of the group it belongs to.
    pub group: Option<u32>,
    /// Why it could not be opened, for a group member.
    pub error: Option<String>,
    /// Whether it is to be shown as soon as it is loaded.
    pub(super) wanted: bool,
    /// Counter of its last use; the least recently used programs are dropped first.
    pub(super) used: u64,
    /// The selection to restore when it is decoded again.
    pub(super) kept: Option<Box<Shared>>,
    /// Messages of other files that name it, joined to it whenever it is decoded.
    pub(super) messages: Vec<Arc<Profile>>,
    /// Pasted texts of these messages.
    pub pasted: Vec<Target>,
    /// Whether a message was joined, so that the failure view is shown first.
    pub(super) shows_failure: bool,
    /// Its files as they were when they were read last.
    pub(super) read: Read,
    /// Whether they were written again since.
    pub(super) is_stale: bool,
    /// It is being read anew, while what was read before is shown.
    pub(super) rereading: Option<Loading>,
}

/// State of a file.
pub enum FileState {
    /// A group member that is not decoded, with the selection it last had.
    Listed(Option<Box<Shared>>),
    /// Loading.
    Loading(Loading),
    /// Open.
    Open(Box<OpenFile>),
    /// Failed, with the reason.
    Failed(String),
    /// Cancelled; the entry is about to be removed.
    Cancelled,
}

/// An open file and its state.
pub struct OpenFile {
    /// The profile with its analysis.
    pub document: Arc<Document>,
    /// State shared by the views: selection, step, filter.
    pub shared: Shared,
    /// State of each view.
    pub locals: Locals,
    /// Results of background work.
    pub derived: Derived,
    /// What reading and analysing it took.
    pub stages: Vec<Spent>,
    /// Whether the settings of the last run were applied.
    pub begun: bool,
    /// The document with its real names while they are hidden.
    pub named: Option<Arc<Document>>,
    /// The job that makes the document with aliases.
    pub hiding: Option<Job<Arc<Document>>>,
    /// While names are hidden, the changes of What if in aliases and with their own names.
    pub hidden_edits: Vec<(Edit, Edit)>,
    /// The entry it is compared with.
    pub against: Option<EntryId>,
    /// Further entries that are columns of the comparison.
    pub beside: Vec<EntryId>,
}

/// What tells an entry from the others, whatever its name: texts that are pasted all have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct EntryId(pub(super) u64);

impl OpenFile {
    /// Opens a document at a view.
    #[must_use]
    pub fn new(document: Arc<Document>, view: &'static str) -> Self {
        let (program, color) = document.main();
        Self {
            document,
            shared: Shared::new(view, program, color),
            locals: Locals::default(),
            derived: Derived::default(),
            stages: Vec::new(),
            begun: false,
            named: None,
            hiding: None,
            hidden_edits: Vec::new(),
            against: None,
            beside: Vec::new(),
        }
    }
}

/// What is known of a file. The greatest is the worst: those that fail, by the bytes they are over, then by those they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct EntryVerdict {
    /// Whether it does not fit, or tells of an allocation that failed.
    pub fails: bool,
    /// Bytes over the limit.
    pub over: Bytes,
    /// Bytes needed.
    pub need: Bytes,
}

impl EntryVerdict {
    fn new(need: Bytes, limit: Option<Bytes>, shortage: Option<Shortage>) -> Self {
        let over = limit.map_or(Bytes::ZERO, |limit| need.saturating_sub(limit));
        let over = over.max(shortage.and_then(|shortage| shortage.over_by).unwrap_or_default());
        Self { fails: shortage.is_some() || over > Bytes::ZERO, over, need }
    }
}

impl OpenFile {
    /// The numbers of the worst out-of-memory message where there is no program beside it; none of them are known of an
    /// allocation that failed in a snapshot.
    #[must_use]
    pub fn shortage(&self) -> Option<Shortage> {
        let told = || self.document.analysis.shortage.map(|worst| worst.1).unwrap_or_default();
        self.document.has_failed().then(told)
    }

    fn verdict(&self) -> Option<EntryVerdict> {
        let (program, color) = self.document.main();
        let shortage = self.shortage();
        if let Some(space) = self.document.space(program, color) {
            let capacity = self.shared.capacity.get(&color).or(space.capacity.as_ref()).map(|capacity| capacity.bytes);
            return Some(EntryVerdict::new(space.xprof.allocated, capacity, shortage));
        }
        if let Some(tiles) = &self.document.analysis.tiles {
            return Some(EntryVerdict::new(Bytes(tiles.max?.1), tiles.limit.map(Bytes), None));
        }
        let need = shortage?.needed.unwrap_or_default();
        Some(EntryVerdict::new(need, shortage.and_then(|shortage| shortage.limit()), shortage))
    }
}

impl FileEntry {
    /// An entry for something to open.
    pub(super) fn new(id: EntryId, name: String, target: Target, state: FileState) -> Self {
        Self {
            id,
            name,
            target,
            state,
            group: None,
            error: None,
            wanted: false,
            used: 0,
            kept: None,
            messages: Vec::new(),
            pasted: Vec::new(),
            shows_failure: false,
            read: Read::new(),
            is_stale: false,
            rereading: None,
        }
    }

    /// A member of a group, not decoded.
    pub(super) fn listed_in(group: u32, id: EntryId, name: String, target: Target) -> Self {
        Self { group: Some(group), ..Self::new(id, name, target, FileState::Listed(None)) }
    }

    /// The files on disk that it is read from, without logs, which grow all the time.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let files: Vec<&Path> = match &self.target {
            Target::Path(path) => vec![path],
            Target::Files(paths) => paths.iter().map(PathBuf::as_path).collect(),
            Target::Bytes(..) => Vec::new(),
            Target::Entry(..) => self.listed().map(Entry::files).unwrap_or_default(),
        };
        let is_log = |path: &Path| {
            let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            is_run_file(&name) && !name.ends_with(".stats.json")
        };
        let first = files.first().copied();
        files.into_iter().filter(|&path| Some(path) == first || !is_log(path)).map(Path::to_owned).collect()
    }

    /// Its files as they are now.
    pub(super) fn stamps(&self) -> Read {
        let files = self.files().into_iter().filter(|path| path.is_file());
        files.filter_map(|path| Stamp::of(&path).map(|stamp| (path, stamp))).collect()
    }

    /// The collection's entry for a group member.
    #[must_use]
    pub fn listed(&self) -> Option<&Entry> {
        match &self.target {
            Target::Entry(collection, _, row) => collection.entries.get(*row),
            Target::Path(_) | Target::Files(_) | Target::Bytes(..) => None,
        }
    }

    /// Whether a name refers to this entry: its name, alone or after its folder in the group.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.listed().is_some_and(|entry| entry.full_name() == name)
    }

    /// How it stands, if known.
    pub(super) fn verdict(&self) -> Option<EntryVerdict> {
        if let FileState::Open(open) = &self.state {
            return open.verdict();
        }
        let shortage = self.listed().and_then(Entry::known_shortage);
        let (need, limit) = self.known().unzip();
        if need.is_none() && shortage.is_none() {
            return None;
        }
        Some(EntryVerdict::new(need.unwrap_or_default(), limit.flatten(), shortage))
    }

    /// Whether it is a group member of this module name.
    pub(super) fn is_listed_as(&self, module: &str) -> bool {
        self.group.is_some() && self.name == module
    }

    /// Whether a message was joined to it, or is among its companion files.
    pub(super) fn has_message(&self) -> bool {
        let is_text = |member: &Member| {
            let name = member.file_name();
            is_run_file(name) && !name.ends_with(".stats.json")
        };
        let beside = || self.listed().is_some_and(|entry| entry.companions().iter().any(is_text));
        !self.messages.is_empty() || beside()
    }

    /// Bytes a group member needs and its capacity, if known.
    #[must_use]
    pub fn known(&self) -> Option<(Bytes, Option<Bytes>)> {
        self.listed()?.known()
    }

    /// What tells it from the other entries.
    #[must_use]
    pub const fn id(&self) -> EntryId {
        self.id
    }

    /// Drops the decoded document but keeps the selection.
    pub(super) fn fold(&mut self) {
        match std::mem::replace(&mut self.state, FileState::Listed(None)) {
            FileState::Open(open) => self.state = FileState::Listed(Some(Box::new(open.shared))),
            FileState::Listed(shared) => self.state = FileState::Listed(shared),
            FileState::Loading(_) | FileState::Failed(_) | FileState::Cancelled => {
                self.state = FileState::Listed(self.kept.take());
            }
        }
    }
}
