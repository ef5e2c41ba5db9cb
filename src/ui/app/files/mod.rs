//! The files of a session and the programs in them: listed, being read, open or failed. Of the programs of a group only
//! a few stay decoded.

mod asking;
pub(super) mod dialog;
mod drop;
pub(super) mod loading;
mod program_list;
pub(super) mod program_row;
mod reveal;
pub(super) mod sample;
pub(super) mod writing;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::{Bytes, Profile, Program};
use crate::open::{Collection, Entry, Target, join_messages};
use crate::source::{Member, is_run_file};
use crate::ui::app::files::loading::{LoadResult, Loading};
use crate::ui::session::{Document, Locals, Shared};
use crate::ui::work::{Derived, Direction, Job, Work};

/// Maximum number of group members that stay decoded, including the current one.
pub const MAX_DECODED: usize = 4;

/// An open file, or a member of a group.
pub struct FileEntry {
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
    wanted: bool,
    /// Counter of its last use; the least recently used programs are dropped first.
    used: u64,
    /// The selection to restore when it is decoded again.
    kept: Option<Box<Shared>>,
    /// Messages of other files that name it, joined to it whenever it is decoded.
    messages: Vec<Arc<Profile>>,
    /// Whether a message was joined, so that the failure view is shown first.
    shows_failure: bool,
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

/// A folder, an archive or a trace with several programs.
pub struct Group {
    /// Number of the group, unique in the session.
    pub id: u32,
    /// Display name.
    pub name: String,
    /// Path it was read from.
    pub path: Option<PathBuf>,
    /// The programs.
    pub collection: Arc<Collection>,
    /// The running search for the program that needs the most memory.
    pub sorting: Option<Loading>,
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
    /// Whether the settings of the last run were applied.
    pub begun: bool,
    /// The document with its real names while they are hidden.
    pub named: Option<Arc<Document>>,
    /// The job that makes the document with aliases.
    pub hiding: Option<Job<Arc<Document>>>,
}

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
            begun: false,
            named: None,
            hiding: None,
        }
    }
}

/// All open files.
#[derive(Default)]
pub struct Files {
    /// Entries, worst first once nothing is being read; members of a group are adjacent.
    pub entries: Vec<FileEntry>,
    /// Whether something was read since the entries were put in order.
    is_unordered: bool,
    /// Groups.
    pub groups: Vec<Group>,
    /// Index of the current entry.
    pub current: Option<usize>,
    /// Errors since they were last taken: file name and reason.
    errors: Vec<(String, String)>,
    next_group: u32,
    clock: u64,
}

impl Files {
    /// Starts reading; a file that is already open is shown instead.
    pub fn open(&mut self, target: Target, work: &Work) {
        if let Some(index) = target.path().and_then(|path| self.position(path)) {
            self.show(index, work);
            return;
        }
        self.entries.retain(|entry| !(target.path().is_some() && entry.target.path() == target.path()));
        let loading = Loading::start(target.clone(), Vec::new(), work);
        self.want_nothing();
        self.entries.push(FileEntry {
            name: target.name(),
            target,
            state: FileState::Loading(loading),
            group: None,
            error: None,
            wanted: true,
            used: 0,
            kept: None,
            messages: Vec::new(),
            shows_failure: false,
        });
    }

    /// The entry of a path; in a group, the member that was shown last.
    fn position(&self, path: &Path) -> Option<usize> {
        let group = self.groups.iter().find(|group| group.path.as_deref() == Some(path)).map(|group| group.id);
        if group.is_some() {
            let rows = self.entries.iter().enumerate().filter(|(_, entry)| entry.group == group);
            return rows.max_by_key(|(row, entry)| (entry.used, std::cmp::Reverse(*row))).map(|(row, _)| row);
        }
        let is_it = |entry: &FileEntry| {
            entry.target.path() == Some(path) && !matches!(entry.state, FileState::Failed(_) | FileState::Cancelled)
        };
        self.entries.iter().position(is_it)
    }

    fn want_nothing(&mut self) {
        for entry in &mut self.entries {
            entry.wanted = false;
        }
    }

    /// Shows an entry; a group member is decoded first.
    pub fn show(&mut self, index: usize, work: &Work) {
        self.want_nothing();
        self.clock += 1;
        let clock = self.clock;
        let Some(entry) = self.entries.get_mut(index) else { return };
        entry.wanted = true;
        match &mut entry.state {
            FileState::Open(_) => {
                entry.used = clock;
                self.current = Some(index);
            }
            FileState::Listed(shared) => {
                entry.kept = shared.take();
                entry.error = None;
                entry.state = FileState::Loading(Loading::start(entry.target.clone(), entry.messages.clone(), work));
            }
            FileState::Loading(_) | FileState::Failed(_) | FileState::Cancelled => {}
        }
    }

    /// Takes the results of finished workers. `program` names the group member to show first; by default it is the
    /// worst.
    pub fn poll(&mut self, first_view: &'static str, program: Option<&str>, work: &Work) {
        loop {
            let entry = self.entries.iter().enumerate().find_map(|(index, entry)| match &entry.state {
                FileState::Loading(loading) => Some((index, loading.poll()?)),
                _ => None,
            });
            if let Some((index, result)) = entry {
                self.is_unordered = true;
                self.take(index, result, first_view, work);
                continue;
            }
            let sorted = |group: &Group| group.sorting.as_ref().and_then(Loading::poll);
            let group = self.groups.iter().enumerate().find_map(|(index, group)| Some((index, sorted(group)?)));
            let Some((index, result)) = group else { return self.arrange() };
            self.groups[index].sorting = None;
            self.is_unordered = true;
            if let LoadResult::Sorted(order) = result {
                self.sort(self.groups[index].id, &order, program, work);
            }
        }
    }

    fn take(&mut self, index: usize, result: LoadResult, first_view: &'static str, work: &Work) {
        match result {
            LoadResult::Listed(collection) => self.list(index, collection),
            LoadResult::Read(document) => {
                if self.entries[index].group.is_none() && self.join(index, &document, work) {
                    return;
                }
                self.clock += 1;
                let entry = &mut self.entries[index];
                if entry.group.is_none() {
                    entry.name.clone_from(&document.profile.name);
                }
                let mut open = OpenFile::new(document, first_view);
                if let Some(shared) = entry.kept.take() {
                    open.shared = *shared;
                }
                if std::mem::take(&mut entry.shows_failure) {
                    open.shared.show_view("failure");
                    open.shared.begin_history();
                }
                entry.state = FileState::Open(Box::new(open));
                entry.used = self.clock;
                if self.current.is_none() || entry.wanted {
                    self.current = Some(index);
                }
                self.forget();
            }
            LoadResult::Failed(error) => {
                let entry = &mut self.entries[index];
                if entry.group.is_none() {
                    entry.state = FileState::Failed(error);
                    return;
                }
                entry.state = FileState::Listed(entry.kept.take());
                entry.error = Some(error.clone());
                let name = entry.name.clone();
                self.errors.push((name, error));
            }
            LoadResult::Cancelled => {
                let entry = &mut self.entries[index];
                entry.state = match entry.group {
                    Some(_) => FileState::Listed(entry.kept.take()),
                    None => FileState::Cancelled,
                };
            }
            LoadResult::Sorted(_) => {}
        }
    }

    /// Replaces a file's entry with the programs in it.
    fn list(&mut self, index: usize, collection: Arc<Collection>) {
        let file = self.entries.remove(index);
        let id = self.next_group;
        self.next_group += 1;
        let path = file.target.path().map(Path::to_owned);
        let rows = (0..collection.entries.len()).map(|row| FileEntry {
            name: collection.entries[row].name.clone(),
            target: Target::Entry(Arc::clone(&collection), path.clone(), row),
            state: FileState::Listed(None),
            group: Some(id),
            error: None,
            wanted: false,
            used: 0,
            kept: None,
            messages: Vec::new(),
            shows_failure: false,
        });
        let rows: Vec<FileEntry> = rows.collect();
        if let Some(current) = &mut self.current
            && *current > index
        {
            *current = (*current + rows.len()).saturating_sub(1);
        }
        self.entries.splice(index..index, rows);
        for source in &collection.unread {
            self.errors.push((source.path.clone(), source.error.clone().unwrap_or_default()));
        }
        let sorting = if let FileState::Loading(loading) = file.state { Some(loading) } else { None };
        self.groups.push(Group { id, name: file.name, path, collection, sorting });
    }

    /// Moves the worst program of a group to the front and starts decoding it.
    fn sort(&mut self, id: u32, order: &[usize], program: Option<&str>, work: &Work) {
        let shown = self.current.map(|index| self.entries[index].place());
        let Some(first) = self.entries.iter().position(|entry| entry.group == Some(id)) else { return };
        let mut rank = vec![usize::MAX; order.len()];
        for (place, &row) in order.iter().enumerate() {
            if let Some(rank) = rank.get_mut(row) {
                *rank = place;
            }
        }
        let end = first + self.entries[first..].iter().take_while(|entry| entry.group == Some(id)).count();
        let rank_of = |entry: &FileEntry| rank.get(entry.place().1).copied().unwrap_or(usize::MAX);
        self.entries[first..end].sort_by_key(rank_of);
        self.current = shown.and_then(|place| self.entries.iter().position(|entry| entry.place() == place));
        let rows = &self.entries[first..end];
        if rows.iter().all(|entry| matches!(entry.state, FileState::Listed(_))) {
            let named = program.and_then(|name| rows.iter().position(|entry| entry.is_called(name)));
            self.show(first + named.unwrap_or(0), work);
        }
    }

    /// Drops the least recently shown group members beyond [`MAX_DECODED`].
    fn forget(&mut self) {
        loop {
            let is_open = |entry: &&FileEntry| entry.group.is_some() && matches!(entry.state, FileState::Open(_));
            if self.entries.iter().filter(is_open).count() <= MAX_DECODED {
                return;
            }
            let open = self.entries.iter().enumerate().filter(|(_, entry)| is_open(entry));
            let others = open.filter(|(index, _)| Some(*index) != self.current);
            let Some((index, _)) = others.min_by_key(|(_, entry)| entry.used) else { return };
            self.entries[index].fold();
        }
    }

    /// Joins the messages of a text to the program that they name: an open one, or a group member, which is then
    /// decoded. Returns whether there is such a program.
    fn join(&mut self, index: usize, text: &Document, work: &Work) -> bool {
        let named = text.profile.failures.iter().find_map(|failure| failure.text("module"));
        let Some(module) = named.filter(|_| text.profile.programs.iter().all(|program| program.is_listing)) else {
            return false;
        };
        let is_open = |entry: &FileEntry| match &entry.state {
            FileState::Open(open) => {
                let profile = &open.document.profile;
                let is_named = |p: &Program| !p.is_listing && (p.name == module || entry.is_listed_as(module));
                profile.failures.is_empty() && profile.programs.iter().any(is_named)
            }
            _ => false,
        };
        // Several programs may have the same name; the first is the worst.
        let waits = |entry: &FileEntry| {
            !matches!(entry.state, FileState::Open(_)) && entry.is_listed_as(module) && !entry.has_message()
        };
        let open = self.entries.iter().position(is_open);
        let Some(mut target) = open.or_else(|| self.entries.iter().position(waits)) else { return false };
        let entry = &mut self.entries[target];
        if entry.group.is_some() {
            // Kept, so that they are joined again when the program is decoded again.
            entry.messages.push(Arc::new(text.profile.clone()));
        }
        if let FileState::Open(open) = &mut entry.state {
            let mut profile = open.document.profile.clone();
            join_messages(&mut profile, text.profile.clone());
            open.document = Arc::new(Document::new(open.document.path.clone(), profile));
            open.derived = Derived::default();
            open.locals = Locals::default();
            open.shared.show_view("failure");
        } else {
            // A program that is being decoded is decoded anew, with the messages.
            entry.fold();
            entry.shows_failure = true;
        }
        self.entries.remove(index);
        if let Some(current) = &mut self.current
            && *current > index
        {
            *current -= 1;
        }
        if target > index {
            target -= 1;
        }
        self.show(target, work);
        true
    }

    /// The group whose only member is this entry: a folder or an archive with one program, which is shown by its name.
    #[must_use]
    pub fn own_list(&self, entry: &FileEntry) -> Option<&Group> {
        let group = self.groups.iter().find(|group| Some(group.id) == entry.group)?;
        (group.collection.entries.len() == 1).then_some(group)
    }

    /// Sorts entries by bytes over the limit, then by bytes needed; members of a group stay together. Nothing moves
    /// while something is being read.
    fn arrange(&mut self) {
        if !self.is_unordered || self.is_loading() {
            return;
        }
        self.is_unordered = false;
        let shown = self.current.map(|index| self.entries[index].place());
        let mut units: Vec<Vec<FileEntry>> = Vec::new();
        for entry in std::mem::take(&mut self.entries) {
            match units.last_mut() {
                Some(unit) if entry.group.is_some() && unit[0].group == entry.group => unit.push(entry),
                _ => units.push(vec![entry]),
            }
        }
        units.sort_by_cached_key(|unit| {
            std::cmp::Reverse(unit.iter().filter_map(FileEntry::excess_and_need).max().unwrap_or_default())
        });
        self.entries = units.into_iter().flatten().collect();
        self.current = shown.and_then(|place| self.entries.iter().position(|entry| entry.place() == place));
    }

    /// Reads a file or a group again, replacing what was read.
    pub fn reload(&mut self, index: usize, work: &Work) {
        let Some(entry) = self.entries.get(index) else { return };
        let Some(path) = entry.target.origin().map(Path::to_owned) else { return };
        match entry.group {
            Some(id) => self.close_group(id),
            None => self.close(index),
        }
        self.open(Target::Path(path), work);
    }

    /// Closes the current file, or the whole group that the current program belongs to.
    pub fn close_current(&mut self) {
        let Some(index) = self.current else { return };
        match self.entries.get(index).and_then(|entry| entry.group) {
            Some(id) => self.close_group(id),
            None => self.close(index),
        }
    }

    /// Whether something is being read.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.state, FileState::Loading(_)))
            || self.groups.iter().any(|group| group.sorting.is_some())
    }

    /// Takes the errors since the last call: file name and reason.
    pub fn take_errors(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.errors)
    }

    /// The current file.
    pub fn current_mut(&mut self) -> Option<&mut OpenFile> {
        match &mut self.entries.get_mut(self.current?)?.state {
            FileState::Open(open) => Some(open),
            _ => None,
        }
    }

    /// The current file.
    #[must_use]
    pub fn current(&self) -> Option<&OpenFile> {
        match &self.entries.get(self.current?)?.state {
            FileState::Open(open) => Some(open),
            _ => None,
        }
    }

    /// Shows the next or previous file that is open.
    pub fn show_next(&mut self, direction: Direction) {
        let Some(current) = self.current else { return };
        let count = self.entries.len();
        let step = if direction == Direction::Back { count - 1 } else { 1 };
        let next = (1..count).map(|i| (current + i * step) % count);
        let is_open = |&i: &usize| matches!(self.entries[i].state, FileState::Open(_));
        self.current = next.into_iter().find(is_open).or(self.current);
    }

    /// Closes a file or cancels loading it. A group member stays listed.
    pub fn close(&mut self, index: usize) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        if entry.group.is_some() {
            entry.fold();
        } else {
            self.entries.remove(index);
            self.current = match self.current {
                Some(current) if current > index => Some(current - 1),
                Some(current) if current == index => None,
                other => other,
            };
        }
        self.show_something(index);
    }

    /// Closes a group with all its members.
    pub fn close_group(&mut self, id: u32) {
        let shown = self.current.map(|index| self.entries[index].place());
        let first = self.entries.iter().position(|entry| entry.group == Some(id)).unwrap_or(0);
        self.entries.retain(|entry| entry.group != Some(id));
        self.groups.retain(|group| group.id != id);
        self.current = shown.and_then(|place| self.entries.iter().position(|entry| entry.place() == place));
        self.show_something(first);
    }

    /// Makes the nearest open entry current if the current one was closed.
    fn show_something(&mut self, near: usize) {
        if self.current().is_some() {
            return;
        }
        let is_open = |entry: &FileEntry| matches!(entry.state, FileState::Open(_));
        let before = self.entries[..near.min(self.entries.len())].iter().rposition(is_open);
        self.current = before.or_else(|| self.entries.iter().position(is_open));
    }

    /// Indices of the entries that are decoded.
    #[must_use]
    pub fn decoded(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.state, FileState::Open(_))).count()
    }
}

impl FileEntry {
    /// The collection's entry for a group member.
    #[must_use]
    pub fn listed(&self) -> Option<&Entry> {
        match &self.target {
            Target::Entry(collection, _, row) => collection.entries.get(*row),
            Target::Path(_) | Target::Bytes(..) => None,
        }
    }

    /// Whether a name refers to this entry: its name, alone or after its folder in the group.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.listed().is_some_and(|entry| entry.full_name() == name)
    }

    /// (bytes over the limit, bytes needed), if known.
    fn excess_and_need(&self) -> Option<(Bytes, Bytes)> {
        let over = |need: Bytes, limit: Option<Bytes>| limit.map_or(Bytes::ZERO, |limit| need.saturating_sub(limit));
        if let FileState::Open(open) = &self.state {
            let (program, color) = open.document.main();
            if let Some(space) = open.document.space(program, color) {
                let need = space.xprof.allocated;
                return Some((over(need, space.capacity.as_ref().map(|capacity| capacity.bytes)), need));
            }
            if let Some(tiles) = &open.document.analysis.tiles {
                let need = Bytes(tiles.max?.1);
                return Some((over(need, tiles.limit.map(Bytes)), need));
            }
        }
        let (need, limit) = self.known()?;
        Some((over(need, limit), need))
    }

    /// Whether it is a group member of this module name.
    fn is_listed_as(&self, module: &str) -> bool {
        self.group.is_some() && self.name == module
    }

    /// Whether a message was joined to it, or is among its companion files.
    fn has_message(&self) -> bool {
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

    /// Key that is unique among the entries.
    fn place(&self) -> (Option<u32>, usize, String) {
        match &self.target {
            Target::Entry(_, _, row) => (self.group, *row, String::new()),
            target => (None, 0, format!("{}{:?}", self.name, target.path())),
        }
    }

    /// Drops the decoded document but keeps the selection.
    fn fold(&mut self) {
        match std::mem::replace(&mut self.state, FileState::Listed(None)) {
            FileState::Open(open) => self.state = FileState::Listed(Some(Box::new(open.shared))),
            FileState::Listed(shared) => self.state = FileState::Listed(shared),
            FileState::Loading(_) | FileState::Failed(_) | FileState::Cancelled => {
                self.state = FileState::Listed(self.kept.take());
            }
        }
    }
}
