//! Settings, recent files with their views and pins, and the file they are kept in between runs.

use crate::ui::session::settings::{Settings, SettingsFile};

/// Seconds between two writings.
pub const EVERY: f64 = 2.0;

/// Settings, and where they are kept; nowhere in pictures and tests.
#[derive(Default)]
pub struct SettingsStore {
    /// The settings.
    pub settings: Settings,
    file: Option<SettingsFile>,
    /// When they were written last, in seconds of the window.
    pub saved_at: f64,
}

impl SettingsStore {
    /// Settings out of a file, and kept there.
    #[must_use]
    pub fn new(mut file: SettingsFile) -> Self {
        let settings = file.load();
        Self { settings, file: Some(file), saved_at: 0.0 }
    }

    /// Whether anything is kept.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Writes them, where there is a file for them.
    pub fn save(&mut self) {
        if let Some(file) = &mut self.file
            && file.save(&self.settings).is_err()
        {
            // No place to write to: the program works without, and does not try again.
            self.file = None;
        }
    }
}

impl Drop for SettingsStore {
    fn drop(&mut self) {
        self.save();
    }
}
