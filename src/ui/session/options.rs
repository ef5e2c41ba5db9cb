//! What a person chose for the whole program.

use crate::model::UnitSystem;

/// Light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum ThemeChoice {
    /// As the desktop says.
    #[default]
    System,
    /// Dark text on white.
    Light,
    /// Light text on near-black.
    Dark,
}

impl ThemeChoice {
    /// In egui's words.
    #[must_use]
    pub const fn preference(self) -> egui::ThemePreference {
        match self {
            Self::System => egui::ThemePreference::System,
            Self::Light => egui::ThemePreference::Light,
            Self::Dark => egui::ThemePreference::Dark,
        }
    }
}

/// Options of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Theme.
    pub theme: ThemeChoice,
    /// Units of sizes.
    pub units: UnitSystem,
    /// Whether work is done at once instead of on a worker: pictures and tests.
    pub synchronous: bool,
}
