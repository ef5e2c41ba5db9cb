//! The list of files of a session: open, being read, not readable.

use std::collections::VecDeque;
use std::sync::Arc;

use super::loading::{Loading, Source};
use crate::ui::session::{Derived, Document, Job, Locals, Shared, Spot, Work};

/// A file of the session.
pub struct FileEntry {
    /// What to call it.
    pub name: String,
    /// Where from.
    pub source: Source,
    /// How it stands.
    pub state: FileState,
}

/// How a file stands.
pub enum FileState {
    /// Being read.
    Loading(Loading),
    /// Open.
    Open(Box<OpenFile>),
    /// Not readable, and why.
    Failed(String),
}

/// An open file and what belongs to it.
pub struct OpenFile {
    /// The profile with its analysis.
    pub document: Arc<Document>,
    /// Selection, step and the like.
    pub shared: Shared,
    /// State of its views.
    pub locals: Locals,
    /// Results of workers.
    pub derived: Derived,
    /// Places to go back to.
    pub back: VecDeque<Spot>,
    /// Places to go forward to.
    pub forward: VecDeque<Spot>,
    /// Whether it was given what was kept of it from last time.
    pub begun: bool,
    /// The document with its real names, while they are hidden.
    pub named: Option<Arc<Document>>,
    /// The document with neutral names, while it is made.
    pub hiding: Option<Job<Arc<Document>>>,
}

/// Places that are remembered.
const MAX_HISTORY: usize = 100;

impl OpenFile {
    /// Shows a document, beginning with a view.
    #[must_use]
    pub fn new(document: Arc<Document>, view: &'static str) -> Self {
        let (program, color) = document.main();
        Self {
            document,
            shared: Shared::new(view, program, color),
            locals: Locals::default(),
            derived: Derived::default(),
            back: VecDeque::new(),
            forward: VecDeque::new(),
            begun: false,
            named: None,
            hiding: None,
        }
    }

    /// Remembers where one was before going on.
    pub fn remember(&mut self, before: Spot) {
        if before != self.shared.spot() {
            self.back.push_back(before);
            if self.back.len() > MAX_HISTORY {
                self.back.pop_front();
            }
            self.forward.clear();
        }
    }

    /// Goes back to where one was.
    pub fn go_back(&mut self) {
        if let Some(spot) = self.back.pop_back() {
            self.forward.push_back(self.shared.spot());
            self.shared.go(&spot);
        }
    }

    /// The other way.
    pub fn go_forward(&mut self) {
        if let Some(spot) = self.forward.pop_back() {
            self.back.push_back(self.shared.spot());
            self.shared.go(&spot);
        }
    }
}

/// All files and the one that is shown.
#[derive(Default)]
pub struct Files {
    /// In the order in which they were asked for.
    pub entries: Vec<FileEntry>,
    /// The one that is shown.
    pub current: Option<usize>,
}

impl Files {
    /// Starts reading; a file that is already open is shown instead.
    pub fn open(&mut self, source: Source, work: &Work) {
        let known = source.path().and_then(|path| {
            self.entries
                .iter()
                .position(|entry| entry.source.path() == Some(path) && !matches!(entry.state, FileState::Failed(_)))
        });
        if let Some(index) = known {
            if matches!(self.entries[index].state, FileState::Open(_)) {
                self.current = Some(index);
            }
            return;
        }
        self.entries.retain(|entry| !(source.path().is_some() && entry.source.path() == source.path()));
        let loading = Loading::start(source.clone(), work);
        self.entries.push(FileEntry { name: source.name(), source, state: FileState::Loading(loading) });
    }

    /// Takes over what the workers have finished. The first file is shown as soon as it is there; a later one is, when
    /// it was the last that was asked for.
    pub fn poll(&mut self, first_view: &'static str) {
        for index in 0..self.entries.len() {
            let FileState::Loading(loading) = &self.entries[index].state else { continue };
            let Some(outcome) = loading.poll() else { continue };
            match outcome {
                Ok(document) if self.join(index, &document) => return self.poll(first_view),
                Ok(document) => {
                    self.entries[index].name.clone_from(&document.profile.name);
                    self.entries[index].state = FileState::Open(Box::new(OpenFile::new(document, first_view)));
                    if self.current.is_none() || index + 1 == self.entries.len() {
                        self.current = Some(index);
                    }
                }
                Err(error) if error == crate::source::Cancelled.to_string() => {
                    self.entries[index].state = FileState::Failed(error);
                }
                Err(error) => self.entries[index].state = FileState::Failed(error),
            }
        }
    }

    /// Joins the messages of a text to the open program that they name; returns whether there is one.
    fn join(&mut self, index: usize, text: &Document) -> bool {
        let named = text.profile.failures.iter().find_map(|failure| failure.text("module"));
        let Some(module) = named.filter(|_| text.profile.programs.iter().all(|program| program.is_listing)) else {
            return false;
        };
        let is_it = |entry: &FileEntry| match &entry.state {
            FileState::Open(open) => {
                let profile = &open.document.profile;
                profile.failures.is_empty() && profile.programs.iter().any(|p| p.name == module && !p.is_listing)
            }
            _ => false,
        };
        let Some(target) = self.entries.iter().position(is_it) else { return false };
        if let FileState::Open(open) = &mut self.entries[target].state {
            let mut profile = open.document.profile.clone();
            crate::decode::join_messages(&mut profile, text.profile.clone());
            open.document = Arc::new(Document::new(open.document.path.clone(), profile));
            open.derived = Derived::default();
            open.locals = Locals::default();
            open.shared.view = "failure";
        }
        self.entries.remove(index);
        self.current = Some(if target > index { target - 1 } else { target });
        true
    }

    /// Whether something is being read.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.state, FileState::Loading(_)))
    }

    /// The file that is shown.
    pub fn current_mut(&mut self) -> Option<&mut OpenFile> {
        match &mut self.entries.get_mut(self.current?)?.state {
            FileState::Open(open) => Some(open),
            _ => None,
        }
    }

    /// The file that is shown.
    #[must_use]
    pub fn current(&self) -> Option<&OpenFile> {
        match &self.entries.get(self.current?)?.state {
            FileState::Open(open) => Some(open),
            _ => None,
        }
    }

    /// Shows the next file that is open, or the one before.
    pub fn show_next(&mut self, back: bool) {
        let Some(current) = self.current else { return };
        let count = self.entries.len();
        let step = if back { count - 1 } else { 1 };
        let next = (1..count).map(|i| (current + i * step) % count);
        let is_open = |&i: &usize| matches!(self.entries[i].state, FileState::Open(_));
        self.current = next.into_iter().find(is_open).or(self.current);
    }

    /// Closes a file, or stops reading it.
    pub fn close(&mut self, index: usize) {
        if index >= self.entries.len() {
            return;
        }
        self.entries.remove(index);
        let is_open = |entry: &FileEntry| matches!(entry.state, FileState::Open(_));
        self.current = match self.current {
            Some(current) if current > index => Some(current - 1),
            Some(current) if current == index => {
                let before = self.entries[..index.min(self.entries.len())].iter().rposition(is_open);
                before.or_else(|| self.entries.iter().position(is_open))
            }
            other => other,
        };
    }
}
