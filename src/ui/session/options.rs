//! Application options: theme, units, zoom, presenter mode, hidden names.

use crate::model::UnitSystem;

/// Theme: light or dark, normal or high contrast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum ThemeChoice {
    /// The theme of the desktop.
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
    /// All themes.
    pub const ALL: [Self; 5] = [Self::System, Self::Light, Self::Dark, Self::ContrastLight, Self::ContrastDark];

    /// Display name.
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

    /// The theme as egui's preference.
    #[must_use]
    pub const fn preference(self) -> egui::ThemePreference {
        match self {
            Self::System => egui::ThemePreference::System,
            Self::Light | Self::ContrastLight => egui::ThemePreference::Light,
            Self::Dark | Self::ContrastDark => egui::ThemePreference::Dark,
        }
    }

    /// Whether it is a high-contrast theme.
    #[must_use]
    pub const fn is_contrast(self) -> bool {
        matches!(self, Self::ContrastLight | Self::ContrastDark)
    }
}

/// Application options.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Theme.
    pub theme: ThemeChoice,
    /// Units of sizes.
    pub units: UnitSystem,
    /// Zoom factor; 1 is the design size.
    pub zoom: f32,
    /// Presenter mode for shared screens: larger type, thicker lines, pointer and keys shown.
    pub presenter: bool,
    /// Whether names are replaced by aliases.
    pub names_hidden: bool,
    /// Whether jobs run at once instead of on a worker, for pictures and tests.
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
    /// Zoom factor of presenter mode.
    pub const PRESENTER: f32 = 1.35;

    /// The effective zoom factor.
    #[must_use]
    pub fn scale(&self) -> f32 {
        self.zoom * if self.presenter { Self::PRESENTER } else { 1.0 }
    }
}
