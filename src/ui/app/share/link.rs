//! Deep links: follows the one given on the command line, and writes the command line for what is shown.

use crate::analysis::tree::TreeKind;
use crate::model::{BufferId, Capacity, MemorySpace};
use crate::open::session::zoom_words;
use crate::open::{Entry, Target};
use crate::ui::app::files::{FileEntry, FileState, OpenFile};
use crate::ui::app::{App, DeepLink};
use crate::ui::session::Pin;
use crate::ui::view::{COMPARE, VIEWS};

impl App {
    /// Whether a file is shown.
    #[must_use]
    pub fn has_file(&self) -> bool {
        self.files.current().is_some()
    }

    /// Checks that the current file has everything the link names.
    ///
    /// # Errors
    /// A sentence with what is missing and what is available instead.
    pub fn check_link(&self, link: &DeepLink) -> Result<(), String> {
        let Some(open) = self.files.current() else { return Err("nothing to show".to_owned()) };
        let document = open.original();
        if let Some(id) = &link.view
            && !VIEWS.shown_for(document).any(|view| view.id == id)
        {
            let have: Vec<&str> = VIEWS.shown_for(document).map(|view| view.id).collect();
            return Err(format!("{} has no view '{id}'; it has: {}", document.profile.name, have.join(", ")));
        }
        if let Some(name) = &link.program
            && !document.profile.programs.iter().any(|program| program.name == *name)
            && !self.files.current.is_some_and(|index| self.files.entries[index].is_called(name))
        {
            return Err(format!("{} has no program '{name}'", document.profile.name));
        }
        if let (Some(name), Some(row)) = (&link.against, self.files.current)
            && self.other_in_folder(name, row).is_none()
        {
            return Err(format!("no other program '{name}' is in the folder of {}", document.profile.name));
        }
        if let (Some(name), Some((_, analysis))) = (&link.space, document.program(open.shared.program)) {
            let kind = document.profile.device.kind;
            if !analysis.spaces.iter().any(|space| space.color.is_named(name, kind)) {
                let have: Vec<&str> = analysis.spaces.iter().map(|space| space.name.as_str()).collect();
                return Err(format!(
                    "{} has no memory space '{name}'; it has: {}",
                    document.profile.name,
                    have.join(", ")
                ));
            }
        }
        if let (Some(text), None, true) = (&link.select, open.shared.selected, open.shared.tiles.is_empty()) {
            return Err(format!("{} has no buffer '{text}'", document.profile.name));
        }
        Ok(())
    }

    /// Follows the link given on the command line.
    pub(in crate::ui::app) fn begin(&mut self) {
        let Some(mut link) = self.link.take() else { return };
        let against = link.against.take();
        if let Some(open) = self.files.current_mut() {
            go_to(open, link);
        }
        if let Some((name, row)) = against.zip(self.files.current) {
            self.compare_within(&name, row);
        }
    }

    /// Compares a program with another one of its folder, which is before.
    fn compare_within(&mut self, name: &str, after: usize) {
        if let Some(before) = self.other_in_folder(name, after) {
            let work = self.work();
            self.files.compare(before, after, &work);
        }
    }

    /// The entry of another program in the folder or archive of an entry.
    fn other_in_folder(&self, name: &str, of: usize) -> Option<usize> {
        let group = self.files.entries.get(of)?.group.filter(|_| !name.is_empty())?;
        let is_it = |(row, entry): (usize, &FileEntry)| {
            (row != of && entry.group == Some(group) && entry.is_called(name)).then_some(row)
        };
        self.files.entries.iter().enumerate().find_map(is_it)
    }

    /// Name of the program of the same folder or archive that an entry is compared with.
    pub(super) fn compared_within(&self, after: &FileEntry) -> Option<String> {
        let FileState::Open(open) = &after.state else { return None };
        let before = self.files.entries.iter().find(|entry| Some(entry.id()) == open.against)?;
        (before.group.is_some() && before.group == after.group).then(|| before.listed().map(Entry::full_name))?
    }

    /// Goes to the places of a session in the files that are read.
    pub(in crate::ui::app) fn go_to_places(&mut self) {
        let mut against = Vec::new();
        for (at, entry) in self.files.entries.iter_mut().enumerate() {
            let is_it = |(target, link): &(Target, DeepLink)| {
                let named = link.program.as_deref().filter(|_| entry.group.is_some());
                entry.target.is_same_as(target) && named.is_none_or(|name| entry.is_called(name))
            };
            let row = self.places.iter().position(is_it);
            if let (FileState::Open(open), Some(row)) = (&mut entry.state, row) {
                let mut place = self.places.remove(row).1;
                against.extend(place.against.take().map(|name| (name, at)));
                go_to(open, place);
            }
        }
        for (name, after) in against {
            self.compare_within(&name, after);
        }
        if !self.files.is_loading() {
            self.places.clear();
        }
    }

    /// The file that the one that is shown is compared with, where each is one of its own.
    fn compared_path(&self) -> Option<String> {
        let after = self.files.entries.get(self.files.current?)?;
        let id = self.files.current()?.against?;
        let before = self.files.entry(id)?;
        let is_whole = |entry: &FileEntry| entry.group.is_none() || self.files.own_list(entry).is_some();
        let path = before.target.origin().filter(|_| is_whole(after) && is_whole(before))?;
        Some(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string())
    }

    /// The command line that opens the current view. While names are hidden, it has aliases for the file and the
    /// program, like the screen.
    pub(in crate::ui::app) fn link(&self) -> Option<String> {
        let open = self.files.current()?;
        let shared = &open.shared;
        if self.is_veiled(open) {
            return None;
        }
        let document = &open.document;
        let path = document.path.as_ref()?;
        let path = if self.options.names_hidden {
            path.display().to_string()
        } else {
            std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string()
        };
        let view = VIEWS.shown_or_first(shared.view, document).id;
        let before = self.compared_path().filter(|_| view == COMPARE && !self.options.names_hidden);
        let mut words = vec!["highwater".to_owned()];
        words.extend(before.map(|path| quoted(&path)));
        words.extend([quoted(&path), "--view".to_owned(), view.to_owned()]);
        let mut add = |flag: &str, value: &str| words.extend([flag.to_owned(), quoted(value)]);
        if let Some((program, analysis)) = document.program(shared.program) {
            let entry = self.files.current.and_then(|index| self.files.entries.get(index));
            let listed = entry.filter(|entry| self.files.own_list(entry).is_none()).and_then(FileEntry::listed);
            match listed {
                Some(listed) if !self.options.names_hidden => add("--program", &listed.full_name()),
                Some(_) => add("--program", &program.name),
                None if document.profile.programs.len() > 1 => add("--program", &program.name),
                None => {}
            }
            let against = entry.filter(|_| view == COMPARE && !self.options.names_hidden);
            if let Some(against) = against.and_then(|entry| self.compared_within(entry)) {
                add("--against", &against);
            }
            if let Some(space) = analysis.space(shared.color).filter(|space| space.color != MemorySpace::HBM) {
                add("--space", &space.name);
            }
            if let Some(buffer) = shared.selected {
                add("--select", &program.buffers.number[buffer.index()].to_string());
            }
        }
        if let Some(tile) = shared.tiles.last() {
            add("--select", &tile.to_string());
        }
        if let Some(step) = shared.step {
            add("--step", &step.to_string());
        }
        if let Some((from, to)) = shared.measured {
            add("--from", &from.to_string());
            add("--to", &to.to_string());
        }
        if let Some(range) = shared.range {
            add("--zoom", &zoom_words(range));
        }
        if shared.tree.kind != TreeKind::default() {
            add("--tree", shared.tree.kind.word());
        }
        if let Some(capacity) = shared.capacity.get(&MemorySpace::HBM) {
            add("--capacity", &capacity.bytes.0.to_string());
        }
        for edit in &shared.changes.on {
            add("--edit", &edit.to_string());
        }
        if !shared.filter.trim().is_empty() && !self.options.names_hidden {
            add("--filter", shared.filter.trim());
        }
        for pin in shared.pins.iter().filter(|pin| pin.program == shared.program) {
            // A note written by the user may contain hidden names.
            let note = if self.options.names_hidden { String::new() } else { pin.note.clone() };
            add("--pin", &Pin { note, ..pin.clone() }.to_string());
        }
        Some(words.join(" "))
    }
}

/// Goes to the place in a file that a link names.
fn go_to(open: &mut OpenFile, link: DeepLink) {
    let document = open.original().clone();
    if let Some(name) = &link.program
        && let Some(index) = document.profile.programs.iter().position(|program| program.name == *name)
    {
        let color = document.program(index).and_then(|(_, analysis)| analysis.main_space()).map(|s| s.color);
        open.shared.choose(index, color.unwrap_or_default());
    }
    let kind = document.profile.device.kind;
    if let (Some(name), Some((_, analysis))) = (&link.space, document.program(open.shared.program))
        && let Some(space) = analysis.spaces.iter().find(|space| space.color.is_named(name, kind))
    {
        open.shared.choose(open.shared.program, space.color);
    }
    if let Some(bytes) = link.capacity {
        let evidence = "given with --capacity".to_owned();
        open.shared.set_capacity(Some(Capacity { color: MemorySpace::HBM, bytes, evidence }));
    }
    open.shared.changes_mut().own.clone_from(&link.edits);
    open.shared.changes_mut().on.clone_from(&link.edits);
    open.shared.changes_mut().save_all(link.sets);
    if let (Some(text), Some((program, _))) = (&link.select, document.program(open.shared.program)) {
        let rows = (0..program.buffers.len()).map(BufferId::from_index);
        let number: Option<i64> = text.parse().ok();
        let found = rows.into_iter().find(|b| {
            number == Some(program.buffers.number[b.index()]) || (number.is_none() && program.buffer_name(*b) == *text)
        });
        open.shared.select(found);
    }
    if let (Some(tile), Some(tiles)) =
        (link.select.as_ref().and_then(|text| text.parse::<u32>().ok()), &document.profile.tiles)
        && (tile as usize) < tiles.tile_count()
    {
        open.shared.choose_tiles(vec![tile]);
    }
    open.shared.choose_step(link.step.or(open.shared.step));
    let last =
        document.scene(open.shared.program, open.shared.color).and_then(|scene| scene.map().points.checked_sub(1));
    if let (Some((from, to)), Some(last)) = (link.measured, last) {
        open.shared.measure((from.min(last), to.min(last)));
    }
    if let Some((from, to)) = link.zoom {
        open.shared.zoom_to((f64::from(from), f64::from(to)));
    }
    if let Some(kind) = link.tree {
        open.shared.divide_tree(kind);
    }
    if let Some(entry) = link.view.as_deref().and_then(|id| VIEWS.shown(id, &document)) {
        open.shared.show_view(entry.id);
    }
    if let Some(filter) = link.filter {
        open.shared.find(filter);
    }
    for pin in link.pins {
        if let Some(set) = open.shared.pin(pin.on) {
            open.shared.note_pin(set, pin.note);
        }
    }
    open.shared.begin_history();
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+:@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
