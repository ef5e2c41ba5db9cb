//! The desktop's dialog for files, in a thread of its own; where there is none, the caller has another way.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use super::{App, Source};
use crate::export::sets;

/// A dialog that is open.
pub struct Dialog {
    result: Receiver<Option<Vec<PathBuf>>>,
    opened: Instant,
}

/// What a dialog is for.
pub enum Purpose {
    /// Profiles to open.
    Profiles,
    /// A file to write a text into.
    SaveText {
        /// Name to suggest.
        name: String,
        /// What goes into it.
        text: String,
    },
    /// A file with sets of changes.
    ReadSets,
}

/// How a dialog ended.
pub enum Answer {
    /// Still open.
    Waiting,
    /// These files.
    Files(Vec<PathBuf>),
    /// The person closed it.
    Cancelled,
    /// There is no dialog on this desktop.
    Missing,
}

/// A dialog that "was closed" sooner than this never opened.
const TOO_SOON: Duration = Duration::from_millis(250);

impl Dialog {
    /// Opens the dialog.
    #[must_use]
    pub fn open(ctx: &egui::Context, purpose: &Purpose) -> Self {
        let dialog = rfd::FileDialog::new();
        let ask: Box<dyn FnOnce() -> Option<Vec<PathBuf>> + Send> = match purpose {
            Purpose::Profiles => Box::new(|| dialog.set_title("Open memory profiles").pick_files()),
            Purpose::SaveText { name, .. } => {
                let dialog = dialog.set_title("Write to").set_file_name(name);
                Box::new(|| dialog.save_file().map(|path| vec![path]))
            }
            Purpose::ReadSets => Box::new(|| dialog.set_title("Read sets of changes").pick_files()),
        };
        let (sender, result) = channel();
        let ctx = ctx.clone();
        let failed = sender.clone();
        let spawned = std::thread::Builder::new().name("file dialog".to_owned()).spawn(move || {
            let _ = sender.send(ask());
            ctx.request_repaint();
        });
        if spawned.is_err() {
            let _ = failed.send(None);
        }
        Self { result, opened: Instant::now() }
    }

    /// How it stands.
    #[must_use]
    pub fn poll(&self) -> Answer {
        match self.result.try_recv() {
            Ok(Some(files)) => Answer::Files(files),
            Ok(None) if self.opened.elapsed() < TOO_SOON => Answer::Missing,
            Ok(None) => Answer::Cancelled,
            Err(TryRecvError::Disconnected) => Answer::Missing,
            Err(TryRecvError::Empty) => Answer::Waiting,
        }
    }
}

impl App {
    /// Opens a dialog, unless there is one.
    pub(super) fn ask(&mut self, purpose: Purpose) {
        if self.dialog.is_none() {
            self.dialog = Some((Dialog::open(&self.ctx, &purpose), purpose));
        }
    }

    /// Does what a dialog was for, once it is answered.
    pub(super) fn poll_dialog(&mut self) {
        let Some((dialog, _)) = &self.dialog else { return };
        let answer = dialog.poll();
        if let Answer::Waiting = answer {
            return self.ctx.request_repaint_after(std::time::Duration::from_millis(100));
        }
        let Some((_, purpose)) = self.dialog.take() else { return };
        let files = match answer {
            Answer::Files(files) => files,
            Answer::Missing => return self.without_dialog(purpose),
            Answer::Waiting | Answer::Cancelled => return,
        };
        match purpose {
            Purpose::Profiles => files.into_iter().for_each(|path| self.open(Source::Path(path))),
            Purpose::SaveText { text, .. } => files.iter().for_each(|path| self.write_text(path, &text)),
            Purpose::ReadSets => {
                for path in files {
                    self.read_sets(&path);
                }
            }
        }
    }

    /// What is done on a desktop without dialogs.
    fn without_dialog(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Profiles => self.path_field = Some(String::new()),
            Purpose::SaveText { text, .. } => {
                self.ctx.copy_text(text);
                self.say("This desktop has no dialog for files: copied instead");
            }
            Purpose::ReadSets => self.say("This desktop has no dialog for files: start with --sets FILE"),
        }
    }

    /// Writes a text into a file; never into one that is open.
    fn write_text(&mut self, path: &Path, text: &str) {
        let is_input = self.files.entries.iter().any(|entry| entry.source.path().is_some_and(|open| open == path));
        let words = if is_input {
            format!("Not written: {} is a profile that is open", path.display())
        } else {
            match std::fs::write(path, text) {
                Ok(()) => format!("Written to {}", path.display()),
                Err(error) => format!("Not written: {error}: {}", path.display()),
            }
        };
        self.say(&words);
    }

    /// Takes over the sets of changes in a file; those of the same name are replaced.
    fn read_sets(&mut self, path: &Path) {
        match (sets::read(path), self.files.current_mut()) {
            (Ok(sets), Some(open)) => {
                open.shared.changes.save_all(sets);
                self.say("Sets of changes read");
            }
            (Err(error), _) => self.say(&format!("Not taken over, {error}")),
            (Ok(_), None) => {}
        }
    }
}
