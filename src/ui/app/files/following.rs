//! Folders that are followed: programs appear in the list as they are complete, and the newest failure is shown.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::follower::Following;
use super::{FileEntry, FileState, Files, Group};
use crate::open::{Followed, Target};
use crate::source::DumpName;
use crate::ui::app::App;
use crate::ui::work::Work;

/// What tells a program of a folder from the others, whichever of its files it is read from.
fn key(entry: &FileEntry) -> Option<(String, String, String)> {
    let listed = entry.listed()?;
    let file = listed.file.rsplit('/').next().unwrap_or(&listed.file);
    let stem = DumpName::parse(file).map_or_else(|| listed.file.clone(), |name| name.stem);
    Some((listed.group.clone(), stem, listed.name.clone()))
}

impl Files {
    /// Follows a folder, which need not exist yet; one that is open is followed from now on.
    pub fn follow(&mut self, path: &Path, work: &Work) {
        if let Some(group) = self.groups.iter_mut().find(|group| group.path.as_deref() == Some(path)) {
            group.sorting = None;
            group.following = Some(Following::start(path, Some(&group.collection), work));
            return;
        }
        let following = Following::start(path, None, work);
        let id = self.next_group;
        self.next_group += 1;
        self.groups.push(Group {
            id,
            name: Target::Path(path.to_owned()).name(),
            path: Some(path.to_owned()),
            collection: Arc::default(),
            sorting: None,
            following: Some(following),
        });
    }

    /// Starts or stops following a group that is a folder.
    pub fn toggle_following(&mut self, id: u32, work: &Work) {
        let Some(group) = self.groups.iter_mut().find(|group| group.id == id) else { return };
        if group.following.take().is_some() {
            // A folder in which nothing was found is not listed any more.
            if group.collection.entries.is_empty() {
                self.groups.retain(|group| group.id != id);
            }
            return;
        }
        if let Some(path) = group.path.clone().filter(|path| path.is_dir()) {
            self.follow(&path, work);
        }
    }

    /// The next news of any folder that is followed.
    pub(super) fn poll_followed(&mut self) -> Option<(u32, Followed)> {
        self.groups.iter_mut().find_map(|group| Some((group.id, group.following.as_mut()?.poll()?)))
    }

    /// Replaces the programs of a group by those that are in its folder now. What is open stays open.
    pub(super) fn take_followed(&mut self, id: u32, followed: Followed, work: &Work) {
        let Followed { collection, order, written, newest_failure, unfinished } = followed;
        let Some(group) = self.groups.iter_mut().find(|group| group.id == id) else { return };
        let unread_before: Vec<String> = group.collection.unread.iter().map(|source| source.path.clone()).collect();
        group.collection = Arc::clone(&collection);
        let path = group.path.clone();
        if let Some(following) = &mut group.following {
            following.unfinished = unfinished;
        }
        for source in collection.unread.iter().filter(|source| !unread_before.contains(&source.path)) {
            self.errors.push((source.path.clone(), source.error.clone().unwrap_or_default()));
        }
        let shown = self.current.and_then(|index| self.entries.get(index)).map(FileEntry::id);
        let at = self.entries.iter().position(|entry| entry.group == Some(id)).unwrap_or(self.entries.len());
        let mut old: HashMap<_, VecDeque<FileEntry>> = HashMap::new();
        let mut left = Vec::new();
        for entry in std::mem::take(&mut self.entries) {
            match key(&entry).filter(|_| entry.group == Some(id)) {
                Some(key) => old.entry(key).or_default().push_back(entry),
                None => left.push(entry),
            }
        }
        self.entries = left;
        let mut members = Vec::with_capacity(order.len());
        let mut failed = None;
        for row in order {
            let target = Target::Entry(Arc::clone(&collection), path.clone(), row);
            let program_id = self.next_id();
            let mut entry = FileEntry::listed_in(id, program_id, collection.entries[row].name.clone(), target);
            let is_written = entry.files().iter().any(|file| written.contains(file));
            let before = key(&entry).and_then(|key| old.get_mut(&key)?.pop_front());
            if let Some(mut before) = before {
                // What is read or being read now stays as it is until the user asks for it anew.
                if is_written && matches!(before.state, FileState::Listed(_)) {
                    before.error = None;
                }
                before.target = entry.target;
                entry = before;
            }
            if newest_failure == Some(row) {
                // Its message has come after it was read.
                entry.is_stale = matches!(entry.state, FileState::Open(_));
                failed = Some(entry.id());
            }
            members.push(entry);
        }
        // What is gone from the folder can still be looked at if it is open.
        let is_in_use = |entry: &FileEntry| !matches!(entry.state, FileState::Listed(_));
        members.extend(old.into_values().flatten().filter(is_in_use));
        let first = members.first().map(FileEntry::id);
        self.entries.splice(at..at, members);
        self.current = shown.and_then(|id| self.row_of(id));
        self.is_unordered = true;
        let is_idle = self.current.is_none() && !self.is_loading();
        let wanted = failed.or(first.filter(|_| is_idle)).and_then(|id| self.row_of(id));
        if let Some(row) = wanted {
            self.show(row, work);
        }
        if failed.is_some() {
            self.newest_failure = failed;
        }
    }
}

impl App {
    /// Follows a folder, which need not exist yet.
    pub fn follow(&mut self, path: PathBuf) {
        let path = std::path::absolute(&path).unwrap_or(path);
        if path.exists() && !path.is_dir() {
            let why = "only a folder can be followed; an open file is watched anyway".to_owned();
            return self.errors.push((path.display().to_string(), why));
        }
        let work = self.work();
        self.files.follow(&path, &work);
        self.poll();
    }

    /// Starts or stops following the folder of what is shown.
    pub(in crate::ui::app) fn toggle_following(&mut self) {
        let entry = self.files.current.and_then(|index| self.files.entries.get(index));
        let shown = entry.and_then(|entry| entry.group);
        let followed = self.files.groups.iter().find(|group| group.following.is_some()).map(|group| group.id);
        let Some(id) = shown.or(followed) else {
            return self.say("No folder is open; Follow a folder\u{2026} in the Open menu asks for one");
        };
        let work = self.work();
        self.files.toggle_following(id, &work);
        let group = self.files.groups.iter().find(|group| group.id == id);
        let words = match group {
            Some(group) if group.following.is_some() => "Following: programs appear as they are complete",
            Some(group) if group.path.as_ref().is_some_and(|path| !path.is_dir()) => "Only a folder can be followed",
            _ => "Not followed any more",
        };
        self.say(words);
    }

    /// Says which program is shown because it has just failed.
    pub(in crate::ui::app) fn tell_newest_failure(&mut self) {
        let Some(id) = self.files.newest_failure.take() else { return };
        let Some(entry) = self.files.entry(id) else { return };
        let words = format!("{} has just failed", self.name_of(entry));
        self.say(&words);
    }
}
