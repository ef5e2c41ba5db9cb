//! Writes text files on a thread of their own: a million rows take a while.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use crate::ui::part::TextFile;

/// A file that is being written.
pub struct Writing {
    result: Receiver<String>,
}

impl Writing {
    /// Starts writing.
    #[must_use]
    pub fn start(ctx: &egui::Context, path: PathBuf, file: TextFile) -> Self {
        let (sender, result) = channel();
        let ctx = ctx.clone();
        // Without a thread the channel is closed, which `poll` reports.
        let _ = std::thread::Builder::new().name("write".to_owned()).spawn(move || {
            let words = match std::fs::write(&path, file.text()) {
                Ok(()) => format!("Saved {}", path.display()),
                Err(error) => format!("Not saved: {}: {error}", path.display()),
            };
            let _ = sender.send(words);
            ctx.request_repaint();
        });
        Self { result }
    }

    /// The result in words, once writing has finished.
    #[must_use]
    pub fn poll(&self) -> Option<String> {
        match self.result.try_recv() {
            Ok(words) => Some(words),
            Err(TryRecvError::Disconnected) => Some("The file could not be saved".to_owned()),
            Err(TryRecvError::Empty) => None,
        }
    }
}
