//! What a person chose for the whole program.

use crate::model::UnitSystem;

/// Light or dark, and how strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum ThemeChoice {
    /// Same as the desktop says.
    #[default]
    System,
    /// Dark text on white.
    Light,
    /// Light text on near-black.
    Dark,
    /// Dark on white, one rank of text, strong outlines.
    ContrastLight,
    /// Light on black, one rank of text, strong outlines.
    ContrastDark,
}

impl ThemeChoice {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::System, Self::Light, Self::Dark, Self::ContrastLight, Self::ContrastDark];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "Same as the desktop",
            Self::Light => "Light",
            Self::Dark => "Dark",
            Self::ContrastLight => "High contrast, light",
            Self::ContrastDark => "High contrast, dark",
        }
    }

    /// In egui's words.
    #[must_use]
    pub const fn preference(self) -> egui::ThemePreference {
        match self {
            Self::System => egui::ThemePreference::System,
            Self::Light | Self::ContrastLight => egui::ThemePreference::Light,
            Self::Dark | Self::ContrastDark => egui::ThemePreference::Dark,
        }
    }

    /// Whether it is one of high contrast.
    #[must_use]
    pub const fn is_contrast(self) -> bool {
        matches!(self, Self::ContrastLight | Self::ContrastDark)
    }
}

/// Options of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Theme.
    pub theme: ThemeChoice,
    /// Units of sizes.
    pub units: UnitSystem,
    /// Larger or smaller than designed.
    pub zoom: f32,
    /// For a screen that is shared: larger type, thicker lines, the pointer and the keys shown.
    pub presenter: bool,
    /// For a screen that strangers see: aliases in place of the names in the code.
    pub names_hidden: bool,
    /// Whether work is done at once instead of on a worker: pictures and tests.
    pub synchronous: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            theme: ThemeChoice::default(),
            units: UnitSystem::default(),
            zoom: 1.0,
            presenter: false,
            names_hidden: false,
            synchronous: false,
        }
    }
}

impl Options {
    /// How much larger everything is in presenter mode.
    pub const PRESENTER: f32 = 1.35;

    /// The zoom that is drawn with.
    #[must_use]
    pub fn scale(&self) -> f32 {
        self.zoom * if self.presenter { Self::PRESENTER } else { 1.0 }
    }
}
