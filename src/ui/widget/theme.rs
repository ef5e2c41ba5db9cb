//! Colours, type sizes and spacing. Nothing else declares any.

use egui::Color32;

use crate::export::palette::{self, FILLS, Palette};

/// Colour tokens of one theme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Theme {
    /// Whether this is a dark theme.
    pub dark: bool,
    /// Background of plots and tables.
    pub canvas: Color32,
    /// Background of the side panel and cards.
    pub panel: Color32,
    /// Background of bars and the program list.
    pub chrome: Color32,
    /// Background of tracks and segmented controls.
    pub inset: Color32,
    /// Background of a hovered row.
    pub hover: Color32,
    /// Hairlines.
    pub line: Color32,
    /// Outline of controls.
    pub line2: Color32,
    /// Primary text.
    pub text: Color32,
    /// Secondary text.
    pub text2: Color32,
    /// Tertiary text.
    pub text3: Color32,
    /// Accent: links, active tab, primary button.
    pub accent: Color32,
    /// Text on the accent.
    pub on_accent: Color32,
    /// Background of selected rows and chips.
    pub accent_bg: Color32,
    /// Text on exceeded limits.
    pub danger: Color32,
    /// Background of such text.
    pub danger_bg: Color32,
    /// Limit line and the area over it.
    pub over: Color32,
    /// Text of warnings.
    pub warn: Color32,
    /// Background of warnings.
    pub warn_bg: Color32,
    /// Text on what fits or saves memory.
    pub ok: Color32,
    /// Background of such text.
    pub ok_bg: Color32,
    /// More than before, in a comparison: neither good nor bad.
    pub grew: Color32,
    /// Less than before.
    pub shrank: Color32,
    /// Cursor, selection, peak.
    pub ink: Color32,
    /// Halo around ink.
    pub halo: Color32,
    /// Hatching over a fill.
    pub hatch: Color32,
    /// Width in points of outlines of controls, selections and the focus.
    pub outline: f32,
}

/// Modifiers of a theme for accessibility and presentations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// High contrast: pure backgrounds, a single text colour, strong outlines.
    pub contrast: bool,
    /// Presenter mode: hairlines of two pixels for shared screens.
    pub presenter: bool,
}

impl Look {
    /// The look of a context.
    #[must_use]
    pub fn of(ctx: &egui::Context) -> Self {
        ctx.data(|data| data.get_temp(Self::id())).unwrap_or_default()
    }

    /// Stores the look in a context.
    pub fn set(self, ctx: &egui::Context) {
        ctx.data_mut(|data| data.insert_temp(Self::id(), self));
    }

    /// Width of a hairline in physical pixels.
    #[must_use]
    pub const fn hairline(self) -> f32 {
        if self.presenter || self.contrast { 2.0 } else { 1.0 }
    }

    fn id() -> egui::Id {
        egui::Id::unique("highwater look")
    }
}

const fn rgb(hex: u32) -> Color32 {
    Color32::from_rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

impl Theme {
    /// Dark text on white.
    pub const LIGHT: Self =
        Self { dark: false, ..Self::of_palette(&palette::LIGHT, Color32::from_rgba_premultiplied(11, 14, 18, 153)) };

    /// Light text on near-black.
    pub const DARK: Self =
        Self { dark: true, ..Self::of_palette(&palette::DARK, Color32::from_rgba_premultiplied(7, 8, 11, 153)) };

    const fn of_palette(palette: &Palette, hatch: Color32) -> Self {
        Self {
            dark: false,
            canvas: rgb(palette.canvas),
            panel: rgb(palette.panel),
            chrome: rgb(palette.chrome),
            inset: rgb(palette.inset),
            hover: rgb(palette.hover),
            line: rgb(palette.line),
            line2: rgb(palette.line2),
            text: rgb(palette.text),
            text2: rgb(palette.text2),
            text3: rgb(palette.text3),
            accent: rgb(palette.accent),
            on_accent: rgb(palette.on_accent),
            accent_bg: rgb(palette.accent_bg),
            danger: rgb(palette.danger),
            danger_bg: rgb(palette.danger_bg),
            over: rgb(palette.over),
            warn: rgb(palette.warn),
            warn_bg: rgb(palette.warn_bg),
            ok: rgb(palette.ok),
            ok_bg: rgb(palette.ok_bg),
            grew: rgb(palette.grew),
            shrank: rgb(palette.shrank),
            ink: rgb(palette.ink),
            halo: rgb(palette.halo),
            hatch,
            outline: 1.0,
        }
    }

    /// High contrast, dark text on white.
    pub const CONTRAST_LIGHT: Self = Self {
        canvas: Color32::WHITE,
        text2: Self::LIGHT.text,
        text3: Self::LIGHT.text,
        line: Self::LIGHT.text,
        line2: Self::LIGHT.text,
        outline: 2.0,
        ..Self::LIGHT
    };

    /// High contrast, light text on black.
    pub const CONTRAST_DARK: Self = Self {
        canvas: Color32::BLACK,
        text2: Self::DARK.text,
        text3: Self::DARK.text,
        line: Self::DARK.text,
        line2: Self::DARK.text,
        outline: 2.0,
        ..Self::DARK
    };

    /// All themes.
    pub const ALL: [Self; 4] = [Self::LIGHT, Self::DARK, Self::CONTRAST_LIGHT, Self::CONTRAST_DARK];

    /// The theme of a context.
    #[must_use]
    pub fn of(ctx: &egui::Context) -> Self {
        match (ctx.theme() == egui::Theme::Dark, Look::of(ctx).contrast) {
            (false, false) => Self::LIGHT,
            (true, false) => Self::DARK,
            (false, true) => Self::CONTRAST_LIGHT,
            (true, true) => Self::CONTRAST_DARK,
        }
    }
}

/// Fill colour for a kind of data; the same in all themes and charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// Parameters, weights, vertex code.
    Weight,
    /// Optimizer state, vertex state.
    Optimizer,
    /// Results, exchange code.
    Output,
    /// Activations, variables.
    Activation,
    /// Gradients, control.
    Gradient,
    /// Temporaries, messages, anything else.
    Temporary,
    /// Constants.
    Constant,
    /// Thread-local memory, stack.
    Thread,
    /// Inputs, headers.
    Input,
}

impl Slot {
    /// All slots, in the order in which they are assigned to groups.
    pub const ALL: [Self; 9] = [
        Self::Weight,
        Self::Optimizer,
        Self::Output,
        Self::Activation,
        Self::Gradient,
        Self::Temporary,
        Self::Constant,
        Self::Thread,
        Self::Input,
    ];

    /// The colour.
    #[must_use]
    pub const fn color(self) -> Color32 {
        rgb(FILLS[self as usize])
    }

    /// Text colour on the fill: black or white, whichever has more contrast.
    #[must_use]
    pub fn text(self) -> Color32 {
        let color = self.color();
        if contrast(color, Color32::BLACK) >= contrast(color, Color32::WHITE) { Color32::BLACK } else { Color32::WHITE }
    }

    /// Whether the fill has so little contrast with the canvas that swatches need an outline.
    #[must_use]
    pub fn is_faint(self, theme: &Theme) -> bool {
        contrast(self.color(), theme.canvas) < 3.0
    }
}

/// Colour scale of heat maps from 0 to the limit (`share` 0 to 1); higher values differ more from the canvas.
#[must_use]
pub fn heat(theme: &Theme, share: f32) -> Color32 {
    const LIGHT: [u32; 9] = [0xEEF3F7, 0xC5DDE8, 0x96C5D6, 0x65ABC3, 0x4091B2, 0x2C79A1, 0x24618D, 0x214874, 0x1B2F57];
    const DARK: [u32; 9] = [0x1A222B, 0x1B394A, 0x19566A, 0x1F7283, 0x318B95, 0x4FA5A3, 0x7CBFAF, 0xACD6B8, 0xDCE9C3];
    let stops = if theme.dark { &DARK } else { &LIGHT };
    let at = share.clamp(0.0, 1.0) * 8.0;
    let i = (at.floor() as usize).min(7);
    mix(rgb(stops[i]), rgb(stops[i + 1]), at - i as f32)
}

/// Share of the canvas colour in the fill of boxes that do not match a search.
pub const NO_MATCH: f32 = 0.62;

/// Fill of a box that does not match a search.
#[must_use]
pub fn dimmed(color: Color32, theme: &Theme) -> Color32 {
    mix(color, theme.canvas, NO_MATCH)
}

/// Linear mix in sRGB: 0 is `a`, 1 is `b`.
#[must_use]
pub fn mix(a: Color32, b: Color32, share: f32) -> Color32 {
    let channel = |a: u8, b: u8| (f32::from(b) - f32::from(a)).mul_add(share, f32::from(a)).round() as u8;
    Color32::from_rgb(channel(a.r(), b.r()), channel(a.g(), b.g()), channel(a.b(), b.b()))
}

/// Blends a premultiplied colour over another.
#[must_use]
pub fn blend(below: Color32, above: Color32) -> Color32 {
    let keep = 255 - u32::from(above.a());
    let mix = |a: u8, b: u8| (u32::from(a) + (u32::from(b) * keep + 127) / 255).min(255) as u8;
    let [r, g, b, a] = [0, 1, 2, 3].map(|i| mix(above[i], below[i]));
    Color32::from_rgba_premultiplied(r, g, b, a)
}

/// WCAG contrast ratio of two opaque colours, 1 to 21.
#[must_use]
pub fn contrast(a: Color32, b: Color32) -> f32 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(color: Color32) -> f32 {
    let linear = |c: u8| {
        let c = f32::from(c) / 255.0;
        if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(color.r()) + 0.7152 * linear(color.g()) + 0.0722 * linear(color.b())
}

/// Type sizes in points.
pub mod size {
    /// Verdict.
    pub const VERDICT: f32 = 30.0;
    /// Verdict in side panels.
    pub const VERDICT_SMALL: f32 = 26.0;
    /// Readouts.
    pub const READOUT: f32 = 22.0;
    /// Headline of a view.
    pub const HEADLINE: f32 = 20.0;
    /// Lead sentences, panel titles.
    pub const LEAD: f32 = 15.0;
    /// Body text, names.
    pub const BODY: f32 = 13.0;
    /// Tables, axes, notes.
    pub const SMALL: f32 = 12.0;
}

/// Lengths in points.
pub mod space {
    /// Height of the top bar.
    pub const TOP_BAR: f32 = 44.0;
    /// Width of the program list.
    pub const PROGRAM_LIST: f32 = 236.0;
    /// Width when collapsed.
    pub const PROGRAM_RAIL: f32 = 44.0;
    /// Height of the tab bar.
    pub const TABS: f32 = 36.0;
    /// Width of the side panel.
    pub const SIDE_PANEL: f32 = 336.0;
    /// Width when collapsed.
    pub const SIDE_RAIL: f32 = 40.0;
    /// Height of the status bar.
    pub const STATUS: f32 = 28.0;
    /// Height of a table row.
    pub const ROW: f32 = 24.0;
    /// Height of a control.
    pub const CONTROL: f32 = 26.0;
    /// Margin around a view.
    pub const MARGIN: f32 = 24.0;
    /// Corner radius.
    pub const RADIUS: u8 = 4;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_legible_on_every_background() {
        for theme in Theme::ALL {
            for ground in [theme.canvas, theme.panel, theme.chrome, theme.inset, theme.hover, theme.accent_bg] {
                for text in [theme.text, theme.text2, theme.text3, theme.accent] {
                    assert!(contrast(text, ground) >= 4.5, "{text:?} on {ground:?}: {}", contrast(text, ground));
                }
            }
            for (text, ground) in
                [(theme.danger, theme.danger_bg), (theme.warn, theme.warn_bg), (theme.ok, theme.ok_bg)]
            {
                assert!(contrast(text, ground) >= 4.5, "{text:?} on {ground:?}");
            }
            assert!(contrast(theme.on_accent, theme.accent) >= 4.5);
        }
        for slot in Slot::ALL {
            assert!(contrast(slot.text(), slot.color()) >= 5.0, "{slot:?}");
        }
    }
}
