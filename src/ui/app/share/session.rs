//! Session files: saves what is open and where the user looks, and opens it again.

use std::path::Path;

use crate::analysis::tree::TreeKind;
use crate::analysis::what_if::EditSet;
use crate::model::{Bytes, MemorySpace};
use crate::open::Target;
use crate::open::session::{
    OpenedSession, SCHEMA, SavedProfile, SavedSet, Session, content_hash, parse_zoom, zoom_words,
};
use crate::ui::app::files::dialog::Purpose;
use crate::ui::app::files::{FileEntry, FileState, OpenFile, ToCompare};
use crate::ui::app::{App, DeepLink};
use crate::ui::part::TextFile;
use crate::ui::view::VIEWS;

/// Pasted texts that would take more bytes than this together are not saved: a session file is short.
const MOST_TEXT: usize = 2 << 20;

impl App {
    /// Everything that is open, with texts that were pasted, but without the contents of files; `None` if nothing is.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        let session = self.session_without_lost_texts().0;
        (!session.profiles.is_empty()).then_some(session)
    }

    /// Everything that is open, and how many of the pasted texts are left out: those that are too long or no text.
    fn session_without_lost_texts(&self) -> (Session, usize) {
        let mut session =
            Session { schema: SCHEMA.to_owned(), names_hidden: self.options.names_hidden, ..Session::default() };
        let (mut room, mut lost) = (MOST_TEXT, 0);
        for (index, entry) in self.files.entries.iter().enumerate() {
            for pasted in &entry.pasted {
                match text_of(pasted, &mut room) {
                    None => lost += 1,
                    text => {
                        session.profiles.push(SavedProfile { path: pasted.name(), text, ..SavedProfile::default() });
                    }
                }
            }
            let text = text_of(&entry.target, &mut room);
            if entry.target.origin().is_none() && text.is_none() {
                lost += 1;
                continue;
            }
            let path = path_of(entry);
            let is_shown = self.files.current == Some(index);
            let known = session.profiles.iter().position(|saved| saved.path == path);
            // The programs of a folder or an archive are one path: the one that is shown tells the place.
            let saved = match &entry.state {
                FileState::Open(open) if is_shown || known.is_none() => self.saved(entry, open, path),
                _ => SavedProfile { path, ..SavedProfile::default() },
            };
            let saved = SavedProfile { text, ..saved };
            let place = match known {
                None => {
                    session.profiles.push(saved);
                    session.profiles.len() - 1
                }
                Some(place) => {
                    if is_shown {
                        session.profiles[place] = saved;
                    }
                    place
                }
            };
            if is_shown {
                session.shown = place;
            }
        }
        session.comparisons = self.comparisons(&session.profiles);
        (session, lost)
    }

    /// Pairs of saved profiles that are compared, the one that is shown first.
    fn comparisons(&self, saved: &[SavedProfile]) -> Vec<[usize; 2]> {
        let place = |entry: &FileEntry| {
            let path = path_of(entry);
            saved.iter().position(|saved| saved.path == path)
        };
        let mut found = Vec::new();
        let shown = self.files.current.and_then(|row| self.files.entries.get(row));
        for after in shown.into_iter().chain(&self.files.entries) {
            let FileState::Open(open) = &after.state else { continue };
            // The first pair is what is compared, further ones are its columns.
            for side in open.against.iter().chain(&open.beside) {
                let before = self.files.entry(*side);
                if let Some((before, after)) = before.and_then(|before| place(before).zip(place(after)))
                    && before != after
                    && !found.contains(&[before, after])
                {
                    found.push([before, after]);
                }
            }
        }
        found
    }

    /// A file and the place in it.
    fn saved(&self, entry: &FileEntry, open: &OpenFile, path: String) -> SavedProfile {
        let (shared, document) = (&open.shared, open.original());
        let mut saved = SavedProfile {
            path,
            view: Some(VIEWS.shown_or_first(shared.view, document).id.to_owned()),
            step: shared.step,
            from: shared.measured.map(|range| range.0),
            to: shared.measured.map(|range| range.1),
            zoom: shared.range.map(zoom_words),
            tree: Some(shared.tree.kind).filter(|kind| *kind != TreeKind::default()).map(|kind| kind.word().to_owned()),
            against: self.compared_within(entry),
            filter: Some(shared.filter.trim().to_owned()).filter(|filter| !filter.is_empty()),
            capacity_bytes: shared.capacity.get(&MemorySpace::HBM).map(|capacity| capacity.bytes.0),
            pins: shared.pins.iter().filter(|pin| pin.program == shared.program).map(ToString::to_string).collect(),
            edits: shared.changes.on.iter().map(ToString::to_string).collect(),
            sets: shared.changes.saved.iter().map(saved_set).collect(),
            ..SavedProfile::default()
        };
        if let Some((program, analysis)) = document.program(shared.program) {
            let listed = Some(entry).filter(|entry| self.files.own_list(entry).is_none()).and_then(FileEntry::listed);
            saved.program = match listed {
                Some(listed) => Some(listed.full_name()),
                None => Some(program.name.clone()).filter(|_| document.profile.programs.len() > 1),
            };
            saved.space = analysis.space(shared.color).map(|space| space.name.clone());
            saved.select = shared.selected.map(|buffer| program.buffers.number[buffer.index()].to_string());
        }
        if let Some(tile) = shared.tiles.last() {
            saved.select = Some(tile.to_string());
        }
        saved
    }

    /// The place in the file that is shown, so that it can be found again in what the file has become: buffers by name.
    pub(in crate::ui::app) fn place_shown(&self) -> Option<DeepLink> {
        let (entry, open) = self.files.current.and_then(|row| self.files.entries.get(row)).zip(self.files.current())?;
        let mut saved = self.saved(entry, open, String::new());
        if let (Some(buffer), Some((program, _))) = (open.shared.selected, open.original().program(open.shared.program))
        {
            saved.select = Some(program.buffer_name(buffer));
        }
        Some(place_of(&saved))
    }

    /// Asks where to save the session.
    pub(in crate::ui::app) fn save_session(&mut self) {
        let (session, lost) = self.session_without_lost_texts();
        if session.profiles.is_empty() {
            return self.say("Nothing is open that could be saved");
        }
        if lost > 0 {
            self.say(&format!(
                "{} too long or no text and will not be saved",
                match lost {
                    1 => "1 input is".to_owned(),
                    count => format!("{count} inputs are"),
                }
            ));
        }
        // The hashes take as long as reading the files, so the worker that writes makes them.
        let file = TextFile::new("session.highwater".to_owned(), move || {
            let mut session = session.clone();
            for saved in session.profiles.iter_mut().filter(|saved| saved.text.is_none()) {
                let path = Path::new(&saved.path);
                saved.hash = content_hash(path).unwrap_or_default();
                saved.bytes = path.metadata().ok().filter(std::fs::Metadata::is_file).map_or(0, |data| data.len());
            }
            let json = serde_json::to_string_pretty(&session).unwrap_or_else(|error| error.to_string());
            format!("{json}\n")
        });
        self.ask(Purpose::Text(file));
    }

    /// Opens a session, if a path is one; what is open stays open. Returns whether it was.
    pub(in crate::ui::app) fn open_if_session(&mut self, path: &Path) -> bool {
        let opened = match OpenedSession::read(path) {
            Ok(None) => return false,
            Ok(Some(opened)) => opened,
            Err(error) => {
                self.errors.push((path.display().to_string(), error.to_string()));
                return true;
            }
        };
        if opened.session.names_hidden && !self.options.names_hidden {
            self.toggle_names();
        }
        let saved = opened.targets.iter().zip(&opened.session.profiles).enumerate();
        // The programs in a packed session have one path: that of the one that is shown.
        let saved = saved.filter(|(row, _)| !opened.is_packed || *row == opened.session.shown);
        self.places = saved.map(|(_, (target, saved))| (target.clone(), place_of(saved))).collect();
        let work = self.work();
        let (mut targets, notes) = opened.to_open();
        // What is opened last is shown.
        targets.reverse();
        for target in targets {
            self.files.open(target, &work);
        }
        self.comparing = to_compare(&opened);
        if let Some(note) = notes.first() {
            self.say(note);
        }
        true
    }
}

/// What a session compares: the first of its pairs, with the others of the same file after as columns between.
fn to_compare(opened: &OpenedSession) -> Vec<ToCompare> {
    let side = |row: usize| {
        let (target, saved) = opened.targets.get(row).zip(opened.session.profiles.get(row))?;
        Some(ToCompare { path: target.path()?.to_owned(), folder: opened.is_packed.then(|| saved.path.clone()) })
    };
    let pairs = &opened.session.comparisons;
    let Some(&[_, after]) = pairs.first() else { return Vec::new() };
    let sides = pairs.iter().filter(|pair| pair[1] == after && pair[0] != after).map(|pair| pair[0]);
    let sides: Option<Vec<ToCompare>> = sides.chain([after]).map(side).collect();
    sides.filter(|sides| sides.len() > 1).unwrap_or_default()
}

/// The path of an entry as a session says it; of what was pasted, its name.
fn path_of(entry: &FileEntry) -> String {
    let Some(path) = entry.target.origin() else { return entry.name.clone() };
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// The text that was pasted; `None` for files, and for what is too long or no text.
/// `room` is how many bytes of JSON there may still be.
fn text_of(target: &Target, room: &mut usize) -> Option<String> {
    let Target::Bytes(_, bytes) = target else { return None };
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= *room)?;
    *room = room.checked_sub(serde_json::to_string(text).ok()?.len())?;
    Some(text.to_owned())
}

fn saved_set(set: &EditSet) -> SavedSet {
    SavedSet { name: set.name.clone(), edits: set.edits.iter().map(ToString::to_string).collect() }
}

/// The place that was saved; what no longer reads as a change or a pin is left out.
fn place_of(saved: &SavedProfile) -> DeepLink {
    let edits = |texts: &[String]| texts.iter().filter_map(|text| text.parse().ok()).collect();
    DeepLink {
        view: saved.view.clone(),
        program: saved.program.clone(),
        against: saved.against.clone(),
        measured: saved.from.zip(saved.to),
        zoom: saved.zoom.as_deref().and_then(|words| parse_zoom(words).ok()),
        tree: saved.tree.as_deref().and_then(|word| word.parse().ok()),
        space: saved.space.clone(),
        select: saved.select.clone(),
        step: saved.step,
        capacity: saved.capacity_bytes.map(Bytes),
        sets: saved.sets.iter().map(|set| EditSet { name: set.name.clone(), edits: edits(&set.edits) }).collect(),
        edits: edits(&saved.edits),
        filter: saved.filter.clone(),
        pins: saved.pins.iter().filter_map(|pin| pin.parse().ok()).collect(),
    }
}
