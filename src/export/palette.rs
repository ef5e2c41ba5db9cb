//! Colours, as 0xRRGGBB: the themes of the window and of pages that are written, and the fills of kinds of data.

use std::fmt::Write as _;

use crate::analysis::class::Class;

/// Colours of a theme.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    /// Background of plots and tables.
    pub canvas: u32,
    /// Background of the side panel and cards.
    pub panel: u32,
    /// Background of bars and the program list.
    pub chrome: u32,
    /// Background of tracks and segmented controls.
    pub inset: u32,
    /// Background of a hovered row.
    pub hover: u32,
    /// Hairlines.
    pub line: u32,
    /// Outline of controls.
    pub line2: u32,
    /// Primary text.
    pub text: u32,
    /// Secondary text.
    pub text2: u32,
    /// Tertiary text.
    pub text3: u32,
    /// Accent: links, active tab, primary button.
    pub accent: u32,
    /// Text on the accent.
    pub on_accent: u32,
    /// Background of selected rows and chips.
    pub accent_bg: u32,
    /// Text on exceeded limits.
    pub danger: u32,
    /// Background of such text.
    pub danger_bg: u32,
    /// Limit line and the area over it.
    pub over: u32,
    /// Text of warnings.
    pub warn: u32,
    /// Background of warnings.
    pub warn_bg: u32,
    /// Text on what fits or saves memory.
    pub ok: u32,
    /// Background of such text.
    pub ok_bg: u32,
    /// More than before, in a comparison: neither good nor bad.
    pub grew: u32,
    /// Less than before.
    pub shrank: u32,
    /// Cursor, selection, peak.
    pub ink: u32,
    /// Halo around ink.
    pub halo: u32,
}

/// Dark text on white.
pub const LIGHT: Palette = Palette {
    canvas: 0xFFFFFF,
    panel: 0xFAFBFC,
    chrome: 0xF1F3F6,
    inset: 0xE9EDF1,
    hover: 0xE3E8EE,
    line: 0xDCE1E7,
    line2: 0xB7C0CB,
    text: 0x12171E,
    text2: 0x45505D,
    text3: 0x5D6977,
    accent: 0x0B5FD0,
    on_accent: 0xFFFFFF,
    accent_bg: 0xE2EDFC,
    danger: 0xC3201A,
    danger_bg: 0xFCEAE8,
    over: 0xD1241B,
    warn: 0x8A5300,
    warn_bg: 0xFFF2D9,
    ok: 0x106B38,
    ok_bg: 0xE2F4E9,
    grew: 0x8C510A,
    shrank: 0x01665E,
    ink: 0x12171E,
    halo: 0xFFFFFF,
};

/// Light text on near-black.
pub const DARK: Palette = Palette {
    canvas: 0x101318,
    panel: 0x14181E,
    chrome: 0x191D24,
    inset: 0x222932,
    hover: 0x2A323C,
    line: 0x2A313B,
    line2: 0x47525F,
    text: 0xE9EDF2,
    text2: 0xB0BAC6,
    text3: 0x8F9BA9,
    accent: 0x74B3FF,
    on_accent: 0x0B1420,
    accent_bg: 0x17314F,
    danger: 0xFF7467,
    danger_bg: 0x3B1917,
    over: 0xFF4D4A,
    warn: 0xF1B650,
    warn_bg: 0x33270F,
    ok: 0x66CF93,
    ok_bg: 0x133220,
    grew: 0xD8A155,
    shrank: 0x5AB4AC,
    ink: 0xF4F7FA,
    halo: 0x0B0E12,
};

/// Fills of kinds of data, the same in both themes: weight, optimizer, output, activation, gradient, temporary,
/// constant, thread-local, input.
pub const FILLS: [u32; 9] = [0x4A5ACC, 0x9478D8, 0xF5B335, 0x2FBEDF, 0x4F9E7F, 0x868FA0, 0x8C5480, 0xBCE49C, 0x643A2E];

/// Place in [`FILLS`] of a class.
#[must_use]
pub const fn fill_of_class(class: Class) -> usize {
    match class {
        Class::Weight => 0,
        Class::Optimizer => 1,
        Class::Output => 2,
        Class::Activation => 3,
        Class::Gradient => 4,
        Class::Temporary => 5,
        Class::Constant => 6,
        // No program has both: caches are guessed on devices, thread-local memory is that of the CPU compiler.
        Class::ThreadLocal | Class::Cache => 7,
        Class::Input => 8,
    }
}

/// The colours as CSS: variables of both themes, and the classes `f0` to `f8` of the fills.
#[must_use]
pub fn css() -> String {
    let variables = |palette: &Palette| {
        [
            ("canvas", palette.canvas),
            ("panel", palette.panel),
            ("line", palette.line),
            ("line2", palette.line2),
            ("text", palette.text),
            ("text2", palette.text2),
            ("accent", palette.accent),
            ("danger", palette.danger),
            ("over", palette.over),
            ("ok", palette.ok),
            ("ink", palette.ink),
        ]
        .map(|(name, color)| format!("--{name}: #{color:06x};"))
        .join(" ")
    };
    let mut css = format!(
        ":root {{ color-scheme: light dark; {} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {} }} }}\n\
         @media print {{ :root {{ {} }} }}\n",
        variables(&LIGHT),
        variables(&DARK),
        variables(&LIGHT)
    );
    for (place, color) in FILLS.iter().enumerate() {
        let _ = writeln!(css, ".f{place} {{ fill: #{color:06x}; }}");
    }
    css
}
