//! The files of a session and the programs in them: listed, being read, open or failed. Of the programs of a group only
//! a few stay decoded.

mod asking;
mod compared;
mod compared_folders;
mod comparing;
pub(super) mod dialog;
mod drop;
mod entry;
mod follower;
mod following;
pub(super) mod loading;
mod offer;
mod pairs;
mod program_list;
pub(super) mod program_row;
mod read_files;
mod rereading;
mod reveal;
pub(super) mod sample;
pub(super) mod writing;

pub(super) use compared::{PairedFolders, ShownBefore, ToCompare};
pub use entry::{EntryId, FileEntry, FileState, OpenFile};

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::{Profile, Program};
use crate::open::{Collection, Target, join_messages, tells_of_snapshot};
use crate::ui::app::files::follower::Following;
use crate::ui::app::files::loading::{LoadResult, Loading};
use crate::ui::app::files::read_files::ReadFiles;
use crate::ui::session::{Document, Locals};
use crate::ui::work::{Derived, Direction, Work};

/// Maximum number of group members that stay decoded, including the current one.
pub const MAX_DECODED: usize = 4;

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
    /// Set while the folder is followed.
    pub following: Option<Following>,
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
    /// Number of files that are still to be opened together.
    batch: usize,
    /// Entries and groups opened together of which the worst is to be shown, until the user chooses one: their paths.
    wanted_worst: Vec<PathBuf>,
    /// Two entries to compare once both are read.
    comparing: Option<pairs::Pair>,
    /// The program of a followed folder that has just failed, until the user is told.
    newest_failure: Option<EntryId>,
    reread: ReadFiles,
    /// Errors since they were last taken: file name and reason.
    errors: Vec<(String, String)>,
    next_group: u32,
    last_id: u64,
    clock: u64,
}

impl Files {
    /// The next `count` files are opened together: the worst of them is shown once all are read.
    pub fn begin_batch(&mut self, count: usize) {
        self.wanted_worst.clear();
        self.batch = if count > 1 { count } else { 0 };
    }

    /// Starts reading; a file that is already open is shown instead.
    pub fn open(&mut self, target: Target, work: &Work) {
        if self.batch > 0 {
            self.batch -= 1;
            self.wanted_worst.extend(target.path().map(Path::to_owned));
        } else {
            self.wanted_worst.clear();
        }
        if let Some(index) = target.path().and_then(|path| self.position(path)) {
            self.show_entry(index, work);
            return;
        }
        self.entries.retain(|entry| !(target.path().is_some() && entry.target.path() == target.path()));
        // What is written while it is read counts as written again.
        let read = FileEntry::new(EntryId::default(), String::new(), target.clone(), FileState::Cancelled).stamps();
        let loading = Loading::start(target.clone(), Vec::new(), work);
        self.want_nothing();
        let id = self.next_id();
        let name = self.name_for(&target);
        let mut entry = FileEntry::new(id, name, target, FileState::Loading(loading));
        (entry.wanted, entry.read) = (true, read);
        self.entries.push(entry);
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

    /// The row of an entry; `None` once it is closed.
    pub(super) fn row_of(&self, id: EntryId) -> Option<usize> {
        self.entries.iter().position(|entry| entry.id() == id)
    }

    /// An entry; `None` once it is closed.
    pub(super) fn entry(&self, id: EntryId) -> Option<&FileEntry> {
        self.entries.iter().find(|entry| entry.id() == id)
    }

    fn next_id(&mut self) -> EntryId {
        self.last_id += 1;
        EntryId(self.last_id)
    }

    /// Display name of what is opened; several texts that are pasted are numbered.
    fn name_for(&self, target: &Target) -> String {
        let name = target.name();
        if !matches!(target, Target::Bytes(..)) {
            return name;
        }
        let is_taken = |name: &str| self.entries.iter().any(|entry| entry.name == name);
        let numbered = (2..).map(|number| format!("{name} {number}"));
        std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
    }

    fn want_nothing(&mut self) {
        for entry in &mut self.entries {
            entry.wanted = false;
        }
    }

    /// Shows an entry that the user chose; a group member is decoded first.
    pub fn show(&mut self, index: usize, work: &Work) {
        self.wanted_worst.clear();
        self.show_entry(index, work);
    }

    fn show_entry(&mut self, index: usize, work: &Work) {
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
                entry.is_stale = false;
                let read = entry.stamps();
                if read != entry.read {
                    // What was selected in it may not be in what it is now.
                    entry.kept = None;
                    entry.read = read;
                }
                entry.state = FileState::Loading(Loading::start(entry.target.clone(), entry.messages.clone(), work));
            }
            FileState::Loading(_) | FileState::Failed(_) | FileState::Cancelled => {}
        }
    }

    /// Takes the results of finished workers. `program` names the member of a group to show first, by the group's path;
    /// by default it is the worst.
    pub fn poll(&mut self, first_view: &'static str, program: &dyn Fn(&Path) -> Option<String>, work: &Work) {
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
            if let Some((id, followed)) = self.poll_followed() {
                self.take_followed(id, followed, work);
                continue;
            }
            let sorted = |group: &Group| group.sorting.as_ref().and_then(Loading::poll);
            let group = self.groups.iter().enumerate().find_map(|(index, group)| Some((index, sorted(group)?)));
            let Some((index, result)) = group else {
                self.arrange();
                return self.show_worst(work);
            };
            self.groups[index].sorting = None;
            self.is_unordered = true;
            if let LoadResult::Sorted(order) = result {
                let named = self.groups[index].path.as_deref().and_then(program);
                self.sort(self.groups[index].id, &order, named.as_deref(), work);
            }
        }
    }

    fn take(&mut self, index: usize, result: LoadResult, first_view: &'static str, work: &Work) {
        match result {
            LoadResult::Listed(collection) => self.list(index, collection),
            LoadResult::Read(document, derived) => {
                if self.entries[index].group.is_none() && self.join(index, &document, work) {
                    return;
                }
                self.clock += 1;
                let entry = &mut self.entries[index];
                if entry.group.is_none() && !matches!(entry.target, Target::Bytes(..)) {
                    entry.name.clone_from(&document.profile.name);
                }
                let mut open = OpenFile { derived: *derived, ..OpenFile::new(document, first_view) };
                if let FileState::Loading(loading) = &entry.state {
                    open.stages = loading.spent();
                }
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
                self.join_open_text(index, work);
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
        let rows = (0..collection.entries.len()).map(|row| {
            let target = Target::Entry(Arc::clone(&collection), path.clone(), row);
            FileEntry::listed_in(id, self.next_id(), collection.entries[row].name.clone(), target)
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
        self.groups.push(Group { id, name: file.name, path, collection, sorting, following: None });
    }

    /// Moves the worst program of a group to the front and starts decoding it.
    fn sort(&mut self, id: u32, order: &[usize], program: Option<&str>, work: &Work) {
        let shown = self.current.map(|index| self.entries[index].id());
        let Some(first) = self.entries.iter().position(|entry| entry.group == Some(id)) else { return };
        let mut rank = vec![usize::MAX; order.len()];
        for (place, &row) in order.iter().enumerate() {
            if let Some(rank) = rank.get_mut(row) {
                *rank = place;
            }
        }
        let end = first + self.entries[first..].iter().take_while(|entry| entry.group == Some(id)).count();
        let rank_of = |entry: &FileEntry| match &entry.target {
            Target::Entry(_, _, row) => rank.get(*row).copied().unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        self.entries[first..end].sort_by_key(rank_of);
        self.current = shown.and_then(|id| self.row_of(id));
        let rows = &self.entries[first..end];
        if rows.iter().all(|entry| matches!(entry.state, FileState::Listed(_))) {
            let named = program.and_then(|name| rows.iter().position(|entry| entry.is_called(name)));
            self.show_entry(first + named.unwrap_or(0), work);
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

    /// Joins the messages of a text to the program that they name, an open one or a group member, which is then decoded;
    /// those of PyTorch to the snapshot of the failed request. Returns whether there is such an entry.
    fn join(&mut self, index: usize, text: &Document, work: &Work) -> bool {
        if let Some(target) = self.snapshot_of(&text.profile) {
            self.join_to(target, index, &text.profile, work);
            return true;
        }
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
        let Some(target) = open.or_else(|| self.entries.iter().position(waits)) else { return false };
        self.join_to(target, index, &text.profile, work);
        true
    }

    /// The open snapshot of PyTorch's allocator that messages are about.
    fn snapshot_of(&self, text: &Profile) -> Option<usize> {
        self.entries.iter().position(|entry| match &entry.state {
            FileState::Open(open) => {
                let profile = &open.document.profile;
                profile.failures.is_empty() && tells_of_snapshot(profile, text)
            }
            _ => false,
        })
    }

    /// Joins a text that was opened before the snapshot that it is about.
    fn join_open_text(&mut self, index: usize, work: &Work) {
        let FileState::Open(open) = &self.entries[index].state else { return };
        let snapshot = &open.document.profile;
        let text = self.entries.iter().enumerate().find_map(|(row, entry)| match &entry.state {
            FileState::Open(open) if entry.group.is_none() && tells_of_snapshot(snapshot, &open.document.profile) => {
                Some((row, Arc::clone(&open.document.profile)))
            }
            _ => None,
        });
        if let Some((row, text)) = text {
            self.join_to(index, row, &text, work);
        }
    }

    /// Joins the messages of the entry at `index` to another entry, and shows that one instead.
    fn join_to(&mut self, mut target: usize, index: usize, text: &Arc<Profile>, work: &Work) {
        if matches!(self.entries[index].target, Target::Bytes(..)) {
            let pasted = self.entries[index].target.clone();
            self.entries[target].pasted.push(pasted);
        }
        let entry = &mut self.entries[target];
        if entry.group.is_some() {
            // Kept, so that they are joined again when the program is decoded again.
            entry.messages.push(Arc::clone(text));
        }
        if let FileState::Open(open) = &mut entry.state {
            let mut profile = (*open.document.profile).clone();
            join_messages(&mut profile, (**text).clone());
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
        self.show_entry(target, work);
    }

    /// The group whose only member is this entry: a folder or an archive with one program, which is shown by its name.
    #[must_use]
    pub fn own_list(&self, entry: &FileEntry) -> Option<&Group> {
        let group = self.groups.iter().find(|group| Some(group.id) == entry.group)?;
        (group.collection.entries.len() == 1).then_some(group)
    }

    /// The folder that tells an entry from others of the same name; `None` where the name alone does, or the folder does
    /// not either.
    #[must_use]
    pub fn place_of(&self, entry: &FileEntry) -> Option<String> {
        let place = self.folder_of(entry).filter(|place| !place.is_empty())?;
        let is_elsewhere = |other: &FileEntry| self.folder_of(other).as_deref() != Some(&*place);
        self.namesakes(entry).any(is_elsewhere).then(|| place.clone().into_owned())
    }

    /// Which of how many programs of the same name in one folder an entry is, from 1; `None` where it is the only one.
    #[must_use]
    pub fn number_of(&self, entry: &FileEntry) -> Option<(usize, usize)> {
        let place = self.folder_of(entry);
        let twins: Vec<EntryId> =
            (self.namesakes(entry).filter(|other| self.folder_of(other) == place)).map(FileEntry::id).collect();
        let before = twins.iter().filter(|&&other| other < entry.id()).count();
        (!twins.is_empty()).then_some((before + 1, twins.len() + 1))
    }

    /// The other entries of the same name.
    fn namesakes<'a>(&'a self, entry: &'a FileEntry) -> impl Iterator<Item = &'a FileEntry> {
        let name_of = |entry: &'a FileEntry| self.own_list(entry).map_or(&entry.name, |list| &list.name);
        let name = name_of(entry);
        self.entries.iter().filter(move |other| other.id() != entry.id() && name_of(other) == name)
    }

    /// Name of the folder that an entry is in, within what was opened.
    fn folder_of<'a>(&self, entry: &'a FileEntry) -> Option<Cow<'a, str>> {
        match entry.listed().filter(|_| self.own_list(entry).is_none()) {
            Some(listed) => Some(Cow::Borrowed(&listed.group)),
            None => Some(entry.target.origin()?.parent()?.file_name()?.to_string_lossy()),
        }
    }

    /// Sorts entries worst first ([`EntryVerdict`](entry::EntryVerdict)); members of a group stay together. Nothing moves
    /// while something is being read.
    fn arrange(&mut self) {
        if !self.is_unordered || self.is_loading() {
            return;
        }
        self.is_unordered = false;
        let shown = self.current.map(|index| self.entries[index].id());
        let mut units: Vec<Vec<FileEntry>> = Vec::new();
        for entry in std::mem::take(&mut self.entries) {
            match units.last_mut() {
                Some(unit) if entry.group.is_some() && unit[0].group == entry.group => unit.push(entry),
                _ => units.push(vec![entry]),
            }
        }
        units.sort_by_cached_key(|unit| {
            std::cmp::Reverse(unit.iter().filter_map(FileEntry::verdict).max().unwrap_or_default())
        });
        self.entries = units.into_iter().flatten().collect();
        self.current = shown.and_then(|id| self.row_of(id));
    }

    /// Shows the worst of what was opened together, once all of it is read.
    fn show_worst(&mut self, work: &Work) {
        if self.wanted_worst.is_empty() || self.batch > 0 || self.is_loading() {
            return;
        }
        let paths = std::mem::take(&mut self.wanted_worst);
        let is_one = |entry: &FileEntry| entry.target.origin().is_some_and(|path| paths.iter().any(|one| one == path));
        let rows = self.entries.iter().enumerate().filter(|(_, entry)| is_one(entry));
        let worst = rows.max_by_key(|(row, entry)| (entry.verdict(), std::cmp::Reverse(*row)));
        if let Some((row, _)) = worst {
            self.show_entry(row, work);
        }
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
        self.entries.iter().any(|entry| matches!(entry.state, FileState::Loading(_)) || entry.rereading.is_some())
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
        let shown = self.current.map(|index| self.entries[index].id());
        let first = self.entries.iter().position(|entry| entry.group == Some(id)).unwrap_or(0);
        self.entries.retain(|entry| entry.group != Some(id));
        self.groups.retain(|group| group.id != id);
        self.current = shown.and_then(|id| self.row_of(id));
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

    /// Number of entries that do not fit, or tell of an allocation that failed.
    #[must_use]
    pub fn failing(&self) -> usize {
        self.entries.iter().filter(|entry| entry.verdict().is_some_and(|standing| standing.fails)).count()
    }

    /// Indices of the entries that are decoded.
    #[must_use]
    pub fn decoded(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.state, FileState::Open(_))).count()
    }
}
