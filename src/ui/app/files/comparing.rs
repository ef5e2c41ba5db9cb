//! Comparing open files: which one is before, which are further columns, once all are read; and the offer to compare
//! what was just opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use egui::{Rect, Ui};

use super::{EntryId, FileEntry, FileState, ShownBefore, ToCompare, offer};
use crate::open::Target;
use crate::ui::app::App;
use crate::ui::session::{Before, Beside, Document, PairedProgram};
use crate::ui::view::COMPARE;
use crate::ui::widget::theme::Theme;

/// How long a comparison is offered, in seconds.
const OFFERED: f64 = 12.0;

/// Which documents are compared, under which names.
type Compared = (Vec<(u64, String)>, String);

fn key_of(before: Option<&Before>) -> Option<(Compared, *const Vec<PairedProgram>)> {
    let before = before?;
    let sides = before.beside.iter().map(|one| (&one.document, &one.name));
    let sides = std::iter::once((&before.document, &before.name)).chain(sides);
    let sides = (sides.map(|(document, name)| (document.id(), name.clone())).collect(), before.after.clone());
    // Without programs there is a list of its own in every comparison.
    let programs = if before.programs.is_empty() { std::ptr::null() } else { Arc::as_ptr(&before.programs) };
    Some((sides, programs))
}

fn alone(document: Arc<Document>) -> Arc<Document> {
    if document.before.is_some() { Arc::new(document.compared_with(None)) } else { document }
}

impl App {
    /// Compares an open or listed file with the one that is shown: what was shown is before.
    pub(in crate::ui::app) fn compare_with(&mut self, after: usize) {
        let Some(before) = self.files.current else { return };
        let work = self.work();
        self.files.compare(before, after, &work);
        self.poll();
    }

    /// Adds an open or listed file as a column to the comparison that is shown.
    pub(in crate::ui::app) fn add_column(&mut self, row: usize) {
        let Some(after) = self.files.current else { return };
        let work = self.work();
        self.files.add_column(row, after, &work);
        self.poll();
    }

    /// Opens files that were dropped or chosen; a single one can be compared with what is shown.
    pub fn open_beside(&mut self, paths: Vec<PathBuf>) {
        let shown = self.shown_entry().filter(|_| paths.len() == 1);
        self.opened_beside = shown.map(|entry| ShownBefore { entry, is_wanted: false });
        self.offered = None;
        self.open_together(paths);
    }

    /// Opens a file and compares it with what is shown; of several, the first with the last where nothing is shown.
    pub fn open_compared(&mut self, paths: Vec<PathBuf>) {
        if self.files.current().is_none() && paths.len() > 1 {
            return self.open_columns(paths.into_iter().map(Target::Path).collect());
        }
        self.opened_beside = self.shown_entry().map(|entry| ShownBefore { entry, is_wanted: true });
        self.offered = None;
        self.open_together(paths);
    }

    /// The entry that is shown.
    fn shown_entry(&self) -> Option<EntryId> {
        self.files.current.and_then(|row| self.files.entries.get(row)).map(FileEntry::id)
    }

    /// Whether an entry is on the other side of the comparison that is shown, or a column of it.
    pub(in crate::ui::app) fn is_compared(&self, entry: &FileEntry) -> bool {
        let id = entry.id();
        self.files.current().is_some_and(|open| open.against == Some(id) || open.beside.contains(&id))
    }

    /// Whether the file that is shown is compared, so that a column can be added.
    pub(in crate::ui::app) fn is_comparing(&self) -> bool {
        self.files.current().is_some_and(|open| open.against.is_some())
    }

    /// Opens what was named on the command line; two or more are compared if the link asks for that view.
    pub fn open_named(&mut self, targets: Vec<Target>) {
        let compares = self.link.as_ref().is_some_and(|link| link.view.as_deref() == Some(COMPARE));
        if compares && targets.len() > 1 {
            return self.open_columns(targets);
        }
        for target in targets {
            self.open_one(target);
        }
    }

    /// Opens two files and compares them: the first is before.
    pub fn open_to_compare(&mut self, before: Target, after: Target) {
        self.open_columns(vec![before, after]);
    }

    /// Opens files and compares the first with the last; those between are further columns.
    pub fn open_columns(&mut self, targets: Vec<Target>) {
        let paths: Option<Vec<_>> = targets.iter().map(|target| target.path().map(Path::to_owned)).collect();
        for target in targets {
            self.open(target);
        }
        self.comparing = paths.unwrap_or_default().into_iter().map(|path| ToCompare { path, folder: None }).collect();
        self.poll();
    }

    /// Starts what was asked for, and keeps every comparison at the state of its files: names that are hidden are
    /// hidden on both sides.
    pub(in crate::ui::app) fn poll_comparisons(&mut self) {
        if !self.comparing.is_empty() && !self.files.is_loading() {
            let wanted = std::mem::take(&mut self.comparing);
            let rows: Option<Vec<usize>> = wanted.iter().map(|one| self.position_to_compare(one)).collect();
            if let Some([before, between @ .., after]) = rows.as_deref() {
                self.columns = between.iter().rev().map(|&row| self.files.entries[row].id()).collect();
                // Of two folders, the programs that differ the most.
                let (before, after) = self.worst_pair(*before, *after);
                let work = self.work();
                self.files.compare(before, after, &work);
                self.files.poll(crate::ui::view::FIRST, &|_| None, &work);
            }
        }
        while let Some(after) = self.files.compare_read() {
            self.files.current = Some(after);
            self.keep_comparisons();
            if let Some(open) = self.files.current_mut() {
                open.shared.begin_turn();
                open.shared.show_view(COMPARE);
            }
            let column = self.columns.pop();
            let column = column.and_then(|id| self.files.row_of(id));
            if let Some(column) = column {
                let work = self.work();
                self.files.add_column(column, after, &work);
                self.files.poll(crate::ui::view::FIRST, &|_| None, &work);
            }
        }
        self.keep_comparisons();
    }

    fn position_to_compare(&self, wanted: &ToCompare) -> Option<usize> {
        self.files.entries.iter().position(|entry| {
            let is_in = |folder: &str| {
                let group = entry.listed().map_or("", |listed| &listed.group);
                group.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            entry.target.origin() == Some(&wanted.path) && wanted.folder.as_deref().is_none_or(is_in)
        })
    }

    /// An entry that is compared as it is now; what was closed meanwhile stays compared.
    fn beside(&self, id: EntryId, known: Option<Beside>) -> Option<Beside> {
        let other = self.files.entry(id);
        match other.map(|entry| (entry, &entry.state)) {
            Some((entry, FileState::Open(other))) if !self.is_veiled(other) => {
                Some(Beside { id: id.0, name: self.distinct_name_of(entry), document: Arc::clone(&other.document) })
            }
            _ if self.options.names_hidden => None,
            _ => known,
        }
    }

    pub(super) fn keep_comparisons(&mut self) {
        for row in 0..self.files.entries.len() {
            let after = self.files.entries[row].id();
            let FileState::Open(open) = &self.files.entries[row].state else { continue };
            let Some(id) = open.against else { continue };
            let (known, columns) = (open.document.before.clone(), open.beside.clone());
            let of = |id: u64| {
                let known = known.as_ref()?;
                let side = Beside { id, name: known.name.clone(), document: Arc::clone(&known.document) };
                known.beside.iter().find(|column| column.id == id).cloned().or(Some(side))
            };
            let other = self.files.entry(id);
            let names = other.map(|before| self.names_compared(before, &self.files.entries[row]));
            let before = self.beside(id, of(id.0)).map(|before| Before {
                name: names.as_ref().map_or(before.name, |names| names[0].clone()),
                after: names.as_ref().map_or_else(|| self.name_of(&self.files.entries[row]), |names| names[1].clone()),
                document: before.document,
                beside: columns.iter().filter_map(|&column| self.beside(column, of(column.0))).collect(),
                programs: Arc::default(),
            });
            let before = before.map(|before| Before { programs: self.paired_programs(id, after), ..before });
            if key_of(before.as_ref()) == key_of(known.as_ref()) {
                continue;
            }
            // The documents before are not compared with anything, so that no chain of them stays in memory.
            let plain = before.map(|before| Before {
                document: alone(before.document),
                beside: before.beside.into_iter().map(|one| Beside { document: alone(one.document), ..one }).collect(),
                ..before
            });
            if let FileState::Open(open) = &mut self.files.entries[row].state {
                open.document = Arc::new(open.document.compared_with(plain));
            }
        }
    }

    /// Ends the comparison of the file that is shown.
    pub(in crate::ui::app) fn end_comparison(&mut self) {
        self.columns.clear();
        if let Some(open) = self.files.current_mut() {
            open.against = None;
            open.beside.clear();
            open.document = Arc::new(open.document.compared_with(None));
            open.shared.show_view(crate::ui::view::FIRST);
        }
    }

    /// Exchanges before and after.
    pub(in crate::ui::app) fn swap_comparison(&mut self) {
        let Some(after) = self.files.current else { return };
        let id = self.files.current().and_then(|open| open.against);
        let before = id.and_then(|id| self.files.row_of(id));
        if let Some(before) = before {
            let work = self.work();
            self.files.compare(after, before, &work);
            self.poll();
        }
    }

    /// Offers to compare the file that was just dropped with the one that was shown before.
    pub(in crate::ui::app) fn comparison_offer(&mut self, ui: &Ui, theme: &Theme, body: Rect) {
        let Some((before, after, until)) = &self.offered else { return };
        let left = until - self.ctx.input(|input| input.time);
        if left <= 0.0 {
            self.offered = None;
            return;
        }
        self.ctx.request_repaint_after(std::time::Duration::from_secs_f64(left));
        let current = self.files.current.and_then(|row| self.files.entries.get(row)).map(FileEntry::id);
        let (true, Some(row)) = (current.as_ref() == Some(after), self.files.row_of(*before)) else { return };
        let (other, shown) = (&self.files.entries[row], self.files.current.map(|row| &self.files.entries[row]));
        // Two folders are compared program by program.
        let folders = [Some(other), shown].map(|entry| entry.and_then(|entry| self.folder_of(entry)));
        let words = match folders {
            [Some(was), Some(is)] if other.group != shown.and_then(|entry| entry.group) => {
                format!("Compare the programs of {was} with those of {is}?")
            }
            _ => format!("Compare with {}?", self.distinct_name_of(other)),
        };
        if let Some(compares) = offer::show(ui, theme, body, [&words, "Compare", "No"]) {
            self.offered = None;
            if let (true, Some(current)) = (compares, self.files.current) {
                self.compare_worst(row, current);
            }
        }
    }

    /// Compares two files; of two folders, the programs that differ the most.
    fn compare_worst(&mut self, before: usize, after: usize) {
        let (before, after) = self.worst_pair(before, after);
        let work = self.work();
        self.files.compare(before, after, &work);
        self.poll();
    }

    /// Remembers what to offer: a single file was opened while another one of the same kind was shown.
    pub(in crate::ui::app) fn offer_comparison(&mut self, shown_before: ShownBefore) {
        let current = self.files.current.and_then(|row| self.files.entries.get(row));
        let Some(entry) = current else { return };
        let ShownBefore { entry: before, is_wanted } = shown_before;
        let after = entry.id();
        let document = |id: EntryId| {
            let entry = self.files.entry(id);
            entry.and_then(|entry| match &entry.state {
                FileState::Open(open) => Some(&open.document),
                _ => None,
            })
        };
        if after != before
            && let Some((was, is)) = document(before).zip(document(after))
        {
            match (was.is_comparable_with(is), self.files.row_of(before).zip(self.files.current)) {
                (true, Some((before, after))) if is_wanted => self.compare_worst(before, after),
                (true, _) => self.offered = Some((before, after, self.ctx.input(|input| input.time) + OFFERED)),
                (false, _) if is_wanted => self.say("Not compared: the two files are of different kinds"),
                (false, _) => {}
            }
        }
    }
}
