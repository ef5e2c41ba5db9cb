//! Sizes in a message: every unit and spelling that occurs, as tokens with their place.
//!
//! All units are binary, as in every one of these messages, whatever they are called.

use std::sync::LazyLock;

use regex::Regex;

use super::pattern::bytes_of;
use crate::model::{Bytes, PrintedSize};

/// From here on a number is no size but the largest one that fits: "no limit".
pub const NO_LIMIT: u64 = 1 << 62;
/// Bytes of a page of the host.
const PAGE: u64 = 4096;

/// How a size is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// With a unit: `3.10G`, `120 MB`.
    Scaled,
    /// In bytes, and so called.
    Bytes,
    /// A number alone; the words beside it must say that it is a size.
    Bare,
}

/// A size in a text.
#[derive(Debug, Clone)]
pub struct Size {
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Its bytes, with the text as printed.
    pub printed: PrintedSize,
    /// How it is printed.
    pub unit: Unit,
    /// Whether the next size is what this one is part of: `41.07/79.15 GiB`.
    pub is_part_of_next: bool,
}

#[expect(clippy::expect_used, reason = "a constant; a test compiles it")]
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(0x[0-9a-fA-F]{1,16})\b",
        r"|(\d{1,3}(?:[,_']\d{3})+(?:\.\d+)?|\d+,\d{1,2}|\d+(?:\.\d+)?(?:[eE]\+?\d{1,2})?)",
        r"(\.?[\s-]{0,12}(?:[KMGTPEk]i?B|[kmgt]i?b|[Bb]ytes?|BYTES|[KMG]i|[KMGT]b|[KkMmGg](?:i|ega|iga|ilo)?[Bb]ytes?|pages)\b|[KMGTPB]\b)?"
    ))
    .expect("a valid pattern")
});

/// A unit in brackets before its number.
#[expect(clippy::expect_used, reason = "a constant; a test compiles it")]
static UNIT_BEFORE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\[(](?:in )?([KMGT]i?B|kB|[Bb]ytes)[\])]\s*[:=]\s*$").expect("a valid pattern"));

/// Every number of a text that can be a size, in order.
pub fn sizes(text: &str) -> Vec<Size> {
    let mut out: Vec<Size> = Vec::new();
    for token in TOKEN.captures_iter(text) {
        let Some(all) = token.get(0) else { continue };
        let before = text[..all.start()].chars().next_back();
        // Digits of a name or a version are no size; neither is what follows a decimal point.
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.') {
            continue;
        }
        // The number of a device: `cuda:1`, `GPU:0`.
        let is_of_device =
            text[..all.start()].strip_suffix(':').is_some_and(|name| name.ends_with(char::is_alphabetic));
        if is_of_device && all.len() <= 2 {
            continue;
        }
        // A share is no size.
        if text[all.end()..].starts_with('%') {
            continue;
        }
        // NumPy prints `116. GiB`.
        let unit = token.get(3).map(|unit| unit.as_str().trim_start_matches('.').trim_matches([' ', '-', '\t']).trim());
        // `Free (MiB): 512`
        let named =
            || UNIT_BEFORE.captures(&text[text.floor_char_boundary(all.start().saturating_sub(20))..all.start()]);
        let named = if unit.is_none() { named() } else { None };
        let unit = unit.or_else(|| named.as_ref().and_then(|found| found.get(1)).map(|unit| unit.as_str()));
        let number = match (token.get(1), token.get(2)) {
            (Some(hex), _) => u64::from_str_radix(&hex.as_str()[2..], 16).ok().map(|bytes| (bytes, Unit::Bare)),
            (_, Some(number)) => read(number.as_str(), unit),
            _ => None,
        };
        let Some((bytes, unit)) = number else { continue };
        let named = named.as_ref().and_then(|found| found.get(1)).map(|unit| unit.as_str());
        let spelling = || all.as_str().split_whitespace().chain(named).collect::<Vec<_>>().join(" ");
        let printed = PrintedSize { text: (unit != Unit::Bare).then(spelling), bytes: Bytes(bytes) };
        out.push(Size { start: all.start(), end: all.end(), printed, unit, is_part_of_next: false });
    }
    // `41.07/79.15 GiB`: both have the unit of the second.
    for i in 1..out.len() {
        let (first, second) = (&out[i - 1], &out[i]);
        if text[first.end..second.start].trim() != "/" {
            continue;
        }
        let shared =
            second.printed.text.as_deref().and_then(|text| text.find(|c: char| !c.is_ascii_digit() && c != '.'));
        let number = text[first.start..first.end].trim().to_owned();
        let unit = shared.and_then(|at| out[i].printed.text.as_deref().map(|text| text[at..].to_owned()));
        if let (Unit::Bare, Unit::Scaled, Some(unit)) = (first.unit, second.unit, unit) {
            // `unit` begins with the space before it, where there is one.
            let printed = format!("{number}{unit}");
            if let Some(bytes) = bytes_of(&printed) {
                out[i - 1].printed = PrintedSize { text: Some(printed), bytes: Bytes(bytes) };
                out[i - 1].unit = Unit::Scaled;
            }
        }
        out[i - 1].is_part_of_next = true;
    }
    out.retain(|size| size.printed.bytes.0 < NO_LIMIT);
    out
}

/// (bytes, how it is printed) of a number with its unit.
fn read(number: &str, unit: Option<&str>) -> Option<(u64, Unit)> {
    // A comma stands for a decimal point where no three digits follow it.
    let is_decimal = number.find(',').is_some_and(|comma| number.len() - comma < 4);
    let plain = if is_decimal { number.replace(',', ".") } else { number.replace([',', '_', '\''], "") };
    let plain = if plain.contains(['e', 'E']) { (plain.parse::<f64>().ok()? as u64).to_string() } else { plain };
    match unit {
        None => Some((plain.split('.').next()?.parse().ok()?, Unit::Bare)),
        Some("pages") => Some((plain.parse::<u64>().ok()?.checked_mul(PAGE)?, Unit::Scaled)),
        Some(unit) if unit.to_ascii_lowercase().starts_with("byte") => Some((plain.parse().ok()?, Unit::Bytes)),
        // `kb`, `Mbytes`, `gigabytes`: the first letter says it.
        Some(unit) if unit.len() > 3 || unit.starts_with(|c: char| c.is_ascii_lowercase()) => {
            let prefix = unit.chars().next()?.to_ascii_uppercase();
            Some((bytes_of(&format!("{plain}{prefix}B"))?, Unit::Scaled))
        }
        Some(unit) => Some((bytes_of(&format!("{plain}{unit}"))?, Unit::Scaled)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read() {
        for (text, bytes) in [
            ("3.10G", 3_328_599_654),
            ("3.10 GiB", 3_328_599_654),
            ("120 MB", 120 << 20),
            ("1900,00 MiB", 1900 << 20),
            ("25,600,000 bytes", 25_600_000),
            ("29360128kB", 29_360_128 << 10),
            ("0x1e000", 0x1e000),
            ("512 bytes", 512),
            ("16Gi", 16 << 30),
            ("3 pages", 3 * 4096),
            ("116. GiB", 116 << 30),
            ("38427376kb", 38_427_376 << 10),
            ("2048 megabytes", 2048 << 20),
            ("12 Gbytes", 12 << 30),
            ("4194304-byte", 4 << 20),
            ("1.2e+10 bytes", 12_000_000_000),
            ("2'764'800'000 bytes", 2_764_800_000),
            ("free (MiB): 512", 512 << 20),
        ] {
            let found = sizes(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].printed.bytes, Bytes(bytes), "{text}");
        }
        assert!(sizes("17179869184.00 GiB CUDA0 alloc_cpu").is_empty());
    }

    #[test]
    fn a_shared_unit_is_of_both() {
        let text = "device (41.07/79.15 GiB)";
        let found = sizes(text);
        assert_eq!(found[0].printed.text.as_deref(), Some("41.07 GiB"));
        assert!(found[0].is_part_of_next);
        assert_eq!(found[1].printed.text.as_deref(), Some("79.15 GiB"));
    }
}
