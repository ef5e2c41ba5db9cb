//! Settings kept between runs, in a small JSON file in the user's configuration folder. A missing or invalid file means
//! defaults. Only the window reads it, not screenshots or tests.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::options::{Options, ThemeChoice};
use super::pins::Pin;
use crate::model::UnitSystem;

/// Maximum size of the settings file in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Maximum number of recent files.
const MAX_RECENT: usize = 12;

/// Settings kept between runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Theme.
    pub theme: ThemeChoice,
    /// Units of sizes.
    pub units: UnitSystem,
    /// Zoom factor; 1 is the design size.
    pub zoom: f32,
    /// Whether presenter mode is on.
    pub presenter: bool,
    /// Settings of views by key, such as the columns of a table.
    pub kept: BTreeMap<String, String>,
    /// Recent files, most recent first.
    pub recent: Vec<Recent>,
}

/// A recent file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Recent {
    /// Its path.
    pub path: PathBuf,
    /// The last view.
    pub view: String,
    /// Its pins.
    pub pins: Vec<Pin>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: ThemeChoice::default(),
            units: UnitSystem::default(),
            zoom: 1.0,
            presenter: false,
            kept: BTreeMap::new(),
            recent: Vec::new(),
        }
    }
}

impl Settings {
    /// Parses settings from JSON; invalid ones get their defaults.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut settings: Self = serde_json::from_str(text).unwrap_or_default();
        settings.zoom = if settings.zoom.is_finite() { settings.zoom.clamp(0.6, 2.5) } else { 1.0 };
        settings.recent.retain(|recent| !recent.path.as_os_str().is_empty());
        settings.recent.truncate(MAX_RECENT);
        settings
    }

    /// Applies the settings to options.
    pub fn apply(&self, options: &mut Options) {
        options.theme = self.theme;
        options.units = self.units;
        options.zoom = self.zoom;
        options.presenter = self.presenter;
    }

    /// Takes the settings from options.
    pub fn take(&mut self, options: &Options) {
        self.theme = options.theme;
        self.units = options.units;
        self.zoom = options.zoom;
        self.presenter = options.presenter;
    }

    /// The entry of a recent file.
    #[must_use]
    pub fn recent_of(&self, path: &Path) -> Option<&Recent> {
        self.recent.iter().find(|recent| recent.path == path)
    }

    /// Adds or updates a recent file; a new one comes first.
    pub fn remember(&mut self, entry: Recent) {
        match self.recent.iter_mut().find(|recent| recent.path == entry.path) {
            Some(known) => *known = entry,
            None => self.recent.insert(0, entry),
        }
        self.recent.truncate(MAX_RECENT);
    }

    /// Moves a recent file to the front.
    pub fn bring_forward(&mut self, path: &Path) {
        if let Some(at) = self.recent.iter().position(|recent| recent.path == path) {
            let entry = self.recent.remove(at);
            self.recent.insert(0, entry);
        }
    }
}

/// The settings file.
#[derive(Debug)]
pub struct SettingsFile {
    path: PathBuf,
    written: Option<Settings>,
}

impl SettingsFile {
    /// The user's settings file; `None` if the system has no place for one.
    #[must_use]
    pub fn of_person() -> Option<Self> {
        let folders = directories::ProjectDirs::from("", "", "highwater")?;
        Some(Self::at(folders.config_dir().join("settings.json")))
    }

    /// A settings file at a path.
    #[must_use]
    pub const fn at(path: PathBuf) -> Self {
        Self { path, written: None }
    }

    /// Reads the settings; defaults if that fails.
    #[must_use]
    pub fn load(&mut self) -> Settings {
        let mut text = String::new();
        let read = std::fs::File::open(&self.path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
        let settings = if read.is_ok() { Settings::parse(&text) } else { Settings::default() };
        self.written = Some(settings.clone());
        settings
    }

    /// Writes the settings if they have changed, to a temporary file that then replaces the old one.
    ///
    /// # Errors
    /// If the folder or the file cannot be written.
    pub fn save(&mut self, settings: &Settings) -> io::Result<()> {
        if self.written.as_ref() == Some(settings) {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let text = serde_json::to_string_pretty(settings).map_err(io::Error::other)?;
        let fresh = self.path.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&fresh, text)?;
        std::fs::rename(&fresh, &self.path)?;
        self.written = Some(settings.clone());
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test says what it expects")]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("below").join("settings.json");
        let mut settings = Settings { theme: ThemeChoice::ContrastDark, zoom: 1.2, ..Settings::default() };
        settings.kept.insert("buffers.columns".to_owned(), "name,size".to_owned());
        settings.remember(Recent { path: "/a.pb".into(), view: "timeline".to_owned(), pins: Vec::new() });
        settings.remember(Recent { path: "/b.pb".into(), ..Recent::default() });
        SettingsFile::at(path.clone()).save(&settings).expect("written");
        assert_eq!(SettingsFile::at(path).load(), settings);
        assert_eq!(settings.recent[0].path, Path::new("/b.pb"), "the last one comes first");
    }

    #[test]
    fn a_missing_or_broken_file_means_defaults() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("settings.json");
        assert_eq!(SettingsFile::at(path.clone()).load(), Settings::default());
        for text in ["", "{", "[]", "{\"zoom\": \"large\"}", "{\"theme\": \"Plaid\"}", "\u{0}\u{1}"] {
            std::fs::write(&path, text).expect("written");
            assert_eq!(SettingsFile::at(path.clone()).load(), Settings::default(), "{text:?}");
        }
        std::fs::write(&path, [0xFF, 0xFE, 0x00]).expect("written");
        assert_eq!(SettingsFile::at(path).load(), Settings::default());
        assert_eq!(Settings::parse("{\"zoom\": 1e9}").zoom, 2.5);
        let unknown = Settings::parse("{\"zoom\": 1.5, \"from_tomorrow\": [1, 2]}");
        assert_eq!(unknown.zoom, 1.5, "a key that is not known does no harm");
    }

    #[test]
    fn only_the_last_files_are_remembered() {
        let mut settings = Settings::default();
        for i in 0..40 {
            settings.remember(Recent { path: format!("/{i}").into(), ..Recent::default() });
        }
        assert_eq!(settings.recent.len(), MAX_RECENT);
        assert_eq!(settings.recent[0].path, Path::new("/39"));
        settings.bring_forward(Path::new("/35"));
        assert_eq!(settings.recent[0].path, Path::new("/35"));
        assert_eq!(settings.recent.len(), MAX_RECENT);
    }
}
