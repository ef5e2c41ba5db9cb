//! The desktop's file dialog, on a thread of its own. [`Answer::Missing`] if the desktop has none.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use crate::decode;
use crate::ui::part::TextFile;
use crate::ui::widget::vector_painter::ViewPicture;

/// An open file dialog.
pub struct Dialog {
    result: Receiver<Option<Vec<PathBuf>>>,
    opened: Instant,
}

/// What a dialog is for.
pub enum Purpose {
    /// Profiles to open.
    Profiles,
    /// A folder to open with everything in it.
    Folder,
    /// A file to open and compare with what is shown; two that are compared where nothing is.
    Compare,
    /// A folder to follow while a program writes to it.
    Follow,
    /// A text file to write.
    Text(TextFile),
    /// A picture to write, with the suggested file name; as SVG where the chosen name ends so, else as PNG.
    Picture(String, ViewPicture),
    /// Files with sets of changes to import.
    ReadSets,
}

impl Purpose {
    /// Title of the dialog and label of its button.
    pub const fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::Profiles => ("Open memory profiles", "Open"),
            Self::Folder => ("Open a folder", "Open"),
            Self::Compare => ("Compare with a file", "Compare"),
            Self::Follow => ("Follow a folder", "Follow"),
            Self::Text(_) => ("Save", "Save"),
            Self::Picture(..) => ("Save the picture", "Save"),
            Self::ReadSets => ("Import sets of changes", "Import"),
        }
    }

    /// Whether a file is written.
    pub const fn saves(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Picture(..))
    }

    /// Suggested file name.
    pub fn name(&self) -> &str {
        match self {
            Self::Text(file) => &file.name,
            Self::Picture(name, _) => name,
            Self::Profiles | Self::Folder | Self::Compare | Self::Follow | Self::ReadSets => "",
        }
    }
}

/// State of a dialog.
pub enum Answer {
    /// Still open.
    Waiting,
    /// The user chose these files.
    Files(Vec<PathBuf>),
    /// The user closed it.
    Cancelled,
    /// There is no dialog on this desktop.
    Missing,
}

/// Adds filters for the extensions of all formats and for all files, as the type is detected from the contents.
fn with_filters(dialog: rfd::FileDialog) -> rfd::FileDialog {
    let mut endings: Vec<&str> = decode::DECODERS
        .iter()
        .flat_map(|decoder| decoder.reads().patterns)
        .filter_map(|pattern| pattern.rsplit('.').next())
        .chain(["gz", "zst", "zip", "tar", "tgz", "tzst"])
        .collect();
    endings.sort_unstable();
    endings.dedup();
    dialog.add_filter("Memory profiles, archives and logs", &endings).add_filter("All files", &["*"])
}

/// A dialog that reports being closed sooner than this never opened.
const TOO_SOON: Duration = Duration::from_millis(250);

impl Dialog {
    /// Opens the dialog.
    #[must_use]
    pub fn open(ctx: &egui::Context, purpose: &Purpose) -> Self {
        let dialog = rfd::FileDialog::new().set_title(purpose.words().0);
        let named = dialog.clone().set_file_name(purpose.name());
        let ask: Box<dyn FnOnce() -> Option<Vec<PathBuf>> + Send> = match purpose {
            Purpose::Profiles | Purpose::Compare => Box::new(|| with_filters(dialog).pick_files()),
            Purpose::Folder => Box::new(|| dialog.pick_folders()),
            Purpose::Follow => Box::new(|| dialog.pick_folder().map(|path| vec![path])),
            Purpose::ReadSets => Box::new(|| dialog.pick_files()),
            Purpose::Text(_) => Box::new(|| named.save_file().map(|path| vec![path])),
            Purpose::Picture(..) => Box::new(|| {
                named.add_filter("PNG", &["png"]).add_filter("SVG", &["svg"]).save_file().map(|path| vec![path])
            }),
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

    /// Its current state.
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
