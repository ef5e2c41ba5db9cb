//! Fonts: Inter with tabular digits and JetBrains Mono, with one font family per weight.

use std::sync::Arc;

use egui::{Color32, FontData, FontDefinitions, FontFamily, FontId, RichText};

/// Typeface and weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Inter 400.
    Regular,
    /// Inter 500.
    Medium,
    /// Inter 600.
    SemiBold,
    /// JetBrains Mono 400.
    Mono,
    /// JetBrains Mono 500.
    MonoMedium,
}

impl Weight {
    fn family(self) -> FontFamily {
        match self {
            Self::Regular => FontFamily::Proportional,
            Self::Mono => FontFamily::Monospace,
            Self::Medium => FontFamily::Name("medium".into()),
            Self::SemiBold => FontFamily::Name("semibold".into()),
            Self::MonoMedium => FontFamily::Name("mono-medium".into()),
        }
    }

    /// The font at a size in points.
    #[must_use]
    pub fn at(self, size: f32) -> FontId {
        FontId::new(size, self.family())
    }
}

/// Text with a size in points, a weight and a colour.
#[must_use]
pub fn text(words: impl Into<String>, size: f32, weight: Weight, color: Color32) -> RichText {
    RichText::new(words).font(weight.at(size)).color(color)
}

/// Registers the fonts with a context.
pub fn install(ctx: &egui::Context) {
    let mut fonts = FontDefinitions::empty();
    let files: [(&str, &'static [u8]); 5] = [
        ("inter", include_bytes!("../../../assets/fonts/HighwaterInter-Regular.otf")),
        ("inter-medium", include_bytes!("../../../assets/fonts/HighwaterInter-Medium.otf")),
        ("inter-semibold", include_bytes!("../../../assets/fonts/HighwaterInter-SemiBold.otf")),
        ("mono", include_bytes!("../../../assets/fonts/JetBrainsMono-Regular.ttf")),
        ("mono-medium", include_bytes!("../../../assets/fonts/JetBrainsMono-Medium.ttf")),
    ];
    for (name, bytes) in files {
        fonts.font_data.insert(name.to_owned(), Arc::new(FontData::from_static(bytes)));
    }
    let families = [
        (Weight::Regular, ["inter", "mono"]),
        (Weight::Medium, ["inter-medium", "mono"]),
        (Weight::SemiBold, ["inter-semibold", "mono"]),
        (Weight::Mono, ["mono", "inter"]),
        (Weight::MonoMedium, ["mono-medium", "inter"]),
    ];
    for (weight, names) in families {
        fonts.families.insert(weight.family(), names.iter().map(|name| (*name).to_owned()).collect());
    }
    ctx.set_fonts(fonts);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_tabular() {
        let ctx = egui::Context::default();
        install(&ctx);
        let mut widths = Vec::new();
        let output = ctx.run_ui(egui::RawInput::default(), |ui| {
            for weight in [Weight::Regular, Weight::Medium, Weight::SemiBold, Weight::Mono] {
                let font = weight.at(13.0);
                let of =
                    |text: &str| ui.fonts_mut(|f| f.layout_no_wrap(text.into(), font.clone(), Color32::BLACK)).size().x;
                let ones = of("1111111111");
                widths.push((0..=9).all(|d| (of(&d.to_string().repeat(10)) - ones).abs() < 0.01));
            }
        });
        output.drop_without_applying_deltas();
        assert_eq!(widths, [true; 4]);
    }
}
