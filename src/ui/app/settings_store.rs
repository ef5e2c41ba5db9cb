//! Stores settings between runs, including recent files with their views and pins.

use crate::ui::session::settings::{Settings, SettingsFile};

/// Minimum number of seconds between two writes.
pub const EVERY: f64 = 2.0;

/// Settings and the file they are saved to; screenshots and tests have no file.
#[derive(Default)]
pub struct SettingsStore {
    /// The settings.
    pub settings: Settings,
    file: Option<SettingsFile>,
    /// Time of the last write, in seconds since the start.
    pub saved_at: f64,
}

impl SettingsStore {
    /// Loads settings from a file and keeps them there.
    #[must_use]
    pub fn new(mut file: SettingsFile) -> Self {
        let settings = file.load();
        Self { settings, file: Some(file), saved_at: 0.0 }
    }

    /// Whether settings are written to a file.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Writes the settings, if there is a file.
    pub fn save(&mut self) {
        if let Some(file) = &mut self.file
            && file.save(&self.settings).is_err()
        {
            // The file could not be written: continue without it.
            self.file = None;
        }
    }
}

impl Drop for SettingsStore {
    fn drop(&mut self) {
        self.save();
    }
}
