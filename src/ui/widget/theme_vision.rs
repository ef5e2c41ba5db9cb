//! Tests that colours are distinguishable with colour blindness: CIEDE2000 differences (Sharma, Wu, Dalal 2005) under
//! dichromacy simulated in linear light at full severity (Machado, Oliveira, Fernandes 2009).

use egui::Color32;

use super::theme::{Slot, Theme};

/// Simulated colour vision.
#[derive(Debug, Clone, Copy)]
enum Vision {
    Normal,
    Protan,
    Deutan,
    Tritan,
}

const ALL: [Vision; 4] = [Vision::Normal, Vision::Protan, Vision::Deutan, Vision::Tritan];

impl Vision {
    /// The paper's matrix for severity 1.0.
    const fn matrix(self) -> [[f64; 3]; 3] {
        match self {
            Self::Normal => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            Self::Protan => {
                [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
            }
            Self::Deutan => {
                [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
            }
            Self::Tritan => {
                [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
            }
        }
    }
}

/// CIE L*a*b* (D65) of a colour as seen with the given vision.
fn lab(color: Color32, vision: Vision) -> [f64; 3] {
    let linear = [color.r(), color.g(), color.b()].map(|c| {
        let c = f64::from(c) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    });
    let dot = |row: [f64; 3], v: [f64; 3]| row[0] * v[0] + row[1] * v[1] + row[2] * v[2];
    let seen = vision.matrix().map(|row| dot(row, linear).clamp(0.0, 1.0));
    let xyz = [
        dot([0.4124564, 0.3575761, 0.1804375], seen) / 0.95047,
        dot([0.2126729, 0.7151522, 0.0721750], seen),
        dot([0.0193339, 0.1191920, 0.9503041], seen) / 1.08883,
    ];
    let [x, y, z] = xyz.map(|t| if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// CIEDE2000 colour difference.
fn difference([l1, a1, b1]: [f64; 3], [l2, a2, b2]: [f64; 3]) -> f64 {
    let chroma = f64::midpoint(a1.hypot(b1), a2.hypot(b2));
    let g = 0.5 * (1.0 - (chroma.powi(7) / (chroma.powi(7) + 25f64.powi(7))).sqrt());
    let (a1, a2) = (a1 * (1.0 + g), a2 * (1.0 + g));
    let (c1, c2) = (a1.hypot(b1), a2.hypot(b2));
    let hue = |a: f64, b: f64| if a == 0.0 && b == 0.0 { 0.0 } else { b.atan2(a).to_degrees().rem_euclid(360.0) };
    let (h1, h2) = (hue(a1, b1), hue(a2, b2));
    let (dl, dc) = (l2 - l1, c2 - c1);
    let dh = match h2 - h1 {
        _ if c1 * c2 == 0.0 => 0.0,
        d if d > 180.0 => d - 360.0,
        d if d < -180.0 => d + 360.0,
        d => d,
    };
    let dh_big = 2.0 * (c1 * c2).sqrt() * (dh / 2.0).to_radians().sin();
    let (l, c) = (f64::midpoint(l1, l2), f64::midpoint(c1, c2));
    let h = match (h1 - h2).abs() {
        _ if c1 * c2 == 0.0 => h1 + h2,
        d if d <= 180.0 => f64::midpoint(h1, h2),
        _ if h1 + h2 < 360.0 => (h1 + h2 + 360.0) / 2.0,
        _ => (h1 + h2 - 360.0) / 2.0,
    };
    let cos = |degrees: f64| degrees.to_radians().cos();
    let t = 1.0 - 0.17 * cos(h - 30.0) + 0.24 * cos(2.0 * h) + 0.32 * cos(3.0 * h + 6.0) - 0.20 * cos(4.0 * h - 63.0);
    let sl = 1.0 + 0.015 * (l - 50.0).powi(2) / (20.0 + (l - 50.0).powi(2)).sqrt();
    let (sc, sh) = (1.0 + 0.045 * c, 1.0 + 0.015 * c * t);
    let turn = 30.0 * (-((h - 275.0) / 25.0).powi(2)).exp();
    let rt = -2.0 * (c.powi(7) / (c.powi(7) + 25f64.powi(7))).sqrt() * (2.0 * turn).to_radians().sin();
    let (l, c, h) = (dl / sl, dc / sc, dh_big / sh);
    (l * l + c * c + h * h + rt * c * h).max(0.0).sqrt()
}

fn seen_difference(a: Color32, b: Color32, vision: Vision) -> f64 {
    difference(lab(a, vision), lab(b, vision))
}

/// Smallest difference over all pairs.
fn closest(colors: &[Color32], vision: Vision) -> f64 {
    let pairs = colors.iter().enumerate().flat_map(|(i, a)| colors[i + 1..].iter().map(move |b| (*a, *b)));
    pairs.map(|(a, b)| seen_difference(a, b, vision)).fold(f64::INFINITY, f64::min)
}

#[test]
fn differences_match_published_test_data() {
    // Sharma, Wu, Dalal: pairs 1, 7, 9, 17 and 24 of table 1.
    for (a, b, wanted) in [
        ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
        ([50.0, 0.0, 0.0], [50.0, -1.0, 2.0], 2.3669),
        ([50.0, 2.49, -0.001], [50.0, -2.49, 0.0009], 7.1792),
        ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
        ([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644),
    ] {
        assert!((difference(a, b) - wanted).abs() < 1e-4, "{a:?} {b:?}: {}", difference(a, b));
    }
}

#[test]
fn category_colours_are_distinguishable() {
    let xla = [Slot::Weight, Slot::Output, Slot::Temporary, Slot::Constant, Slot::Thread];
    for theme in Theme::ALL {
        for vision in ALL {
            let of = |slots: &[Slot]| {
                let mut colors: Vec<Color32> = slots.iter().map(|slot| slot.color()).collect();
                colors.push(theme.over);
                closest(&colors, vision)
            };
            assert!(of(&Slot::ALL) >= 11.0, "all nine, {vision:?}, dark {}: {}", theme.dark, of(&Slot::ALL));
            assert!(of(&xla) >= 12.0, "five of XLA, {vision:?}, dark {}: {}", theme.dark, of(&xla));
        }
    }
}

#[test]
fn palette_differences_match_the_design() {
    // Specified minimum differences among all nine slots and `over`: 14.3, 11.6, 11.5, 12.2.
    let mut colors: Vec<Color32> = Slot::ALL.iter().map(|slot| slot.color()).collect();
    colors.push(Theme::LIGHT.over);
    for (vision, wanted) in ALL.into_iter().zip([14.3, 11.6, 11.5, 12.2]) {
        let found = closest(&colors, vision);
        assert!((found - wanted).abs() < 0.06, "{vision:?}: {found}");
    }
}

#[test]
fn the_heat_scale_is_even_and_distinct_from_over() {
    for (theme, far) in [(Theme::LIGHT, 40.0), (Theme::DARK, 21.0)] {
        let samples: Vec<Color32> = (0..33).map(|i| super::theme::heat(&theme, i as f32 / 32.0)).collect();
        for pair in samples.windows(2) {
            let step = seen_difference(pair[0], pair[1], Vision::Normal);
            assert!((1.8..=3.1).contains(&step), "dark {}: a step of {step}", theme.dark);
            let rises = lab(pair[1], Vision::Normal)[0] > lab(pair[0], Vision::Normal)[0];
            assert_eq!(rises, theme.dark, "lightness is monotonic");
        }
        for vision in ALL {
            let least = samples.iter().map(|&c| seen_difference(c, theme.over, vision)).fold(f64::INFINITY, f64::min);
            assert!(least >= far, "dark {}, {vision:?}: {least}", theme.dark);
        }
    }
}
