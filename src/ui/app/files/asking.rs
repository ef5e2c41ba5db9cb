//! File dialogs of the window: asking for files, then opening, saving or importing them.

use std::path::{Path, PathBuf};

use super::dialog::{Answer, Dialog, Purpose};
use super::writing::Writing;
use crate::export::sets;
use crate::ui::app::App;
use crate::ui::app::chrome::cards::NOT_WRITTEN;

impl App {
    /// Opens a dialog unless one is already open.
    pub(in crate::ui::app) fn ask(&mut self, purpose: Purpose) {
        if self.dialog.is_none() {
            self.dialog = Some((Dialog::open(&self.ctx, &purpose), purpose));
        }
    }

    /// Handles the answer of the dialog, once there is one.
    pub(in crate::ui::app) fn poll_dialog(&mut self) {
        let Some((dialog, _)) = &self.dialog else { return };
        let answer = dialog.poll();
        if let Answer::Waiting = answer {
            return self.ctx.request_repaint_after(std::time::Duration::from_millis(100));
        }
        let Some((_, purpose)) = self.dialog.take() else { return };
        match answer {
            Answer::Files(files) => self.answered(purpose, files),
            // Without a dialog, the path can be typed.
            Answer::Missing => self.path_field = Some((purpose.name().to_owned(), purpose)),
            Answer::Waiting | Answer::Cancelled => {}
        }
    }

    /// Opens, writes or imports the chosen files.
    pub(in crate::ui::app) fn answered(&mut self, purpose: Purpose, files: Vec<PathBuf>) {
        match purpose {
            Purpose::Profiles | Purpose::Folder => self.open_beside(files),
            Purpose::Compare => self.open_compared(files),
            Purpose::Follow => files.into_iter().for_each(|path| self.follow(path)),
            Purpose::Text(text) => {
                if let Some(path) = files.into_iter().next().filter(|path| !self.is_open(path)) {
                    self.writing = Some(Writing::start(&self.ctx, path, text));
                }
            }
            Purpose::Picture(_, picture) => {
                let Some(path) = files.into_iter().next().filter(|path| !self.is_open(path)) else { return };
                let is_svg = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("svg"));
                let written = if is_svg {
                    std::fs::write(&path, picture.svg).map_err(|error| error.to_string())
                } else {
                    crate::export::image::write_png(&path, picture.image.size, picture.image.as_raw())
                };
                match written {
                    Ok(()) => self.say(&format!("Saved {}", path.display())),
                    Err(error) => {
                        self.errors.push((path.display().to_string(), format!("{NOT_WRITTEN}: {error}")));
                    }
                }
            }
            Purpose::ReadSets => {
                for path in files {
                    self.read_sets(&path);
                }
            }
        }
    }

    /// Whether a path is an open profile, which is never overwritten; says so if it is.
    fn is_open(&mut self, path: &Path) -> bool {
        let is = self.files.entries.iter().any(|entry| entry.target.path().is_some_and(|open| open == path));
        if is {
            self.say(&format!("Not saved: {} is an open profile", path.display()));
        }
        is
    }

    /// Imports the sets of changes in a file; sets of the same name are replaced.
    fn read_sets(&mut self, path: &Path) {
        match (sets::read(path), self.files.current_mut()) {
            (Ok(sets), Some(open)) => {
                open.shared.changes_mut().save_all(sets);
                self.say("Sets of changes imported");
            }
            (Err(error), _) => self.say(&format!("Not imported: {error}")),
            (Ok(_), None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::Target;
    use crate::ui::session::Options;

    #[test]
    fn a_picture_is_svg_or_png_by_the_name_that_was_chosen() {
        let ctx = egui::Context::default();
        let mut app = App::new(&ctx, Options { synchronous: true, ..Options::default() });
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_profiles/ipu_fits.json");
        app.open(Target::Path(sample.clone()));
        let folder = tempfile::tempdir().expect("a folder");
        for (name, start) in [("a.svg", &b"<svg "[..]), ("a.SVG", b"<svg "), ("a.png", b"\x89PNG"), ("a", b"\x89PNG")] {
            let picture = app.picture_of_view().expect("a view");
            let path = folder.path().join(name);
            app.answered(Purpose::Picture("view.png".to_owned(), picture), vec![path.clone()]);
            let written = std::fs::read(&path).expect("written");
            assert!(written.starts_with(start), "{name}");
        }
        let picture = app.picture_of_view().expect("a view");
        let before = std::fs::read(&sample).expect("the sample");
        app.answered(Purpose::Picture("view.png".to_owned(), picture), vec![sample.clone()]);
        assert_eq!(std::fs::read(&sample).expect("the sample"), before, "an open profile is never overwritten");
    }
}
