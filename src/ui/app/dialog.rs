//! The desktop's dialog to open files, in a thread of its own; where there is none, a field for the path.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// A dialog that is open.
pub struct Dialog {
    result: Receiver<Option<Vec<PathBuf>>>,
    opened: Instant,
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
    pub fn open(ctx: &egui::Context) -> Self {
        Self::ask(ctx, || rfd::FileDialog::new().set_title("Open memory profiles").pick_files())
    }

    /// Opens the dialog that asks where to save a picture.
    #[must_use]
    pub fn save_picture(ctx: &egui::Context, name: String) -> Self {
        Self::ask(ctx, move || {
            let dialog = rfd::FileDialog::new().set_title("Save picture").set_file_name(name);
            dialog.add_filter("PNG", &["png"]).save_file().map(|path| vec![path])
        })
    }

    fn ask(ctx: &egui::Context, ask: impl FnOnce() -> Option<Vec<PathBuf>> + Send + 'static) -> Self {
        let (sender, result) = channel();
        let ctx = ctx.clone();
        let failed = sender.clone();
        let spawned = std::thread::Builder::new().name("open dialog".to_owned()).spawn(move || {
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
