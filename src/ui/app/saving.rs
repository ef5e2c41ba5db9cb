//! Writing a file that a view asked for: the desktop's dialog and the writing, in a thread of their own.

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use crate::ui::session::TextFile;

/// A file that is being saved.
pub struct Saving {
    result: Receiver<String>,
}

impl Saving {
    /// Asks where, then writes.
    #[must_use]
    pub fn start(ctx: &egui::Context, file: TextFile) -> Self {
        let (sender, result) = channel();
        let ctx = ctx.clone();
        // Without a thread nobody answers, which `poll` says.
        let _ = std::thread::Builder::new().name("save dialog".to_owned()).spawn(move || {
            let _ = sender.send(save(&file));
            ctx.request_repaint();
        });
        Self { result }
    }

    /// What came of it, in words, once it is known.
    #[must_use]
    pub fn poll(&self) -> Option<String> {
        match self.result.try_recv() {
            Ok(words) => Some(words),
            Err(TryRecvError::Disconnected) => Some("The file could not be saved".to_owned()),
            Err(TryRecvError::Empty) => None,
        }
    }
}

fn save(file: &TextFile) -> String {
    let dialog = rfd::FileDialog::new().set_title("Save").set_file_name(&file.name);
    let Some(path) = dialog.save_file() else { return "Not saved".to_owned() };
    match std::fs::write(&path, file.text()) {
        Ok(()) => format!("Saved {}", path.display()),
        Err(error) => format!("Not saved: {}: {error}", path.display()),
    }
}
