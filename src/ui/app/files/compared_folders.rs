//! Two folders compared: their programs matched by name, the largest change first.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{EntryId, FileEntry, Files};
use crate::analysis::compare::{ProgramName, pair_programs};
use crate::model::Bytes;
use crate::ui::app::App;
use crate::ui::session::{ListedProgram, PairedProgram};

impl Files {
    fn of_group(&self, group: u32) -> Vec<&FileEntry> {
        self.entries.iter().filter(|entry| entry.group == Some(group)).collect()
    }
}

impl App {
    /// The programs of the folders that two entries are in; none if they are not in two folders.
    pub(super) fn paired_programs(&mut self, before: EntryId, after: EntryId) -> Arc<Vec<PairedProgram>> {
        let group = |id: EntryId| self.files.entry(id)?.group;
        let (Some(was), Some(is)) = (group(before), group(after)) else { return Arc::default() };
        if was == is {
            return Arc::default();
        }
        let members = [was, is].map(|group| self.files.of_group(group));
        let known = members.iter().flatten().filter(|entry| entry.known().is_some()).count();
        let key = ([was, is], known, self.options.names_hidden);
        if let Some(found) = self.paired.get(key) {
            return found;
        }
        let [was, is] = &members;
        let name = |entry: &&FileEntry| ProgramName {
            group: entry.listed().map(|listed| listed.group.clone()).unwrap_or_default(),
            name: entry.name.clone(),
        };
        let names = [was, is].map(|side| side.iter().map(name).collect::<Vec<_>>());
        let pairs = pair_programs(&names[0], &names[1]);
        let listed = |entry: &FileEntry| ListedProgram { id: entry.id().0, needs: entry.known().map(|known| known.0) };
        let mut rows: Vec<PairedProgram> = Vec::new();
        for (from, to) in pairs.pairs {
            let (before, after) = (was[from], is[to]);
            let name = self.listed_name(&after.name);
            rows.push(PairedProgram { name, before: Some(listed(before)), after: Some(listed(after)) });
        }
        for row in pairs.only_before {
            let name = self.listed_name(&was[row].name);
            rows.push(PairedProgram { name, before: Some(listed(was[row])), after: None });
        }
        for row in pairs.only_after {
            let name = self.listed_name(&is[row].name);
            rows.push(PairedProgram { name, before: None, after: Some(listed(is[row])) });
        }
        let change = |row: &PairedProgram| {
            let bytes = |side: Option<ListedProgram>| side.and_then(|side| side.needs).unwrap_or(Bytes::ZERO).0;
            let is_pair = row.before.is_some() && row.after.is_some();
            (Reverse(is_pair), Reverse(bytes(row.before).abs_diff(bytes(row.after))))
        };
        rows.sort_by_key(change);
        let found = Arc::new(rows);
        self.paired.keep(key, &found);
        found
    }

    /// Of two entries in two folders, those of the pair with the largest change; else the entries themselves.
    pub(super) fn worst_pair(&mut self, before: usize, after: usize) -> (usize, usize) {
        let id = |row: usize| self.files.entries[row].id();
        let programs = self.paired_programs(id(before), id(after));
        let worst = programs.iter().find_map(|row| row.before.zip(row.after));
        let both = worst.and_then(|(before, after)| self.position_of(before.id).zip(self.position_of(after.id)));
        both.unwrap_or((before, after))
    }

    fn position_of(&self, id: u64) -> Option<usize> {
        self.files.entries.iter().position(|entry| entry.id().0 == id)
    }

    /// Compares two programs of the folders.
    pub(in crate::ui::app) fn compare_programs(&mut self, before: u64, after: u64) {
        if let Some((before, after)) = self.position_of(before).zip(self.position_of(after)) {
            let work = self.work();
            self.files.compare(before, after, &work);
            self.poll();
        }
    }

    /// Compares with another of the columns; what was compared until now becomes a column.
    pub(in crate::ui::app) fn compare_column(&mut self, id: u64) {
        if let Some(open) = self.files.current_mut()
            && let Some(row) = open.beside.iter().position(|beside| beside.0 == id)
            && let Some(before) = open.against.replace(open.beside[row])
        {
            open.beside[row] = before;
            self.keep_comparisons();
        }
    }
}
