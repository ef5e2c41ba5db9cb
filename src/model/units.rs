//! Byte counts and their notation: three significant digits in text, and exact bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// A number of bytes. Arithmetic saturates, so that totals from a hostile file cannot wrap around.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// Units for sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub enum UnitSystem {
    /// KiB, MiB, GiB: powers of 1024.
    #[default]
    Binary,
    /// kB, MB, GB: powers of 1000.
    Decimal,
}

impl UnitSystem {
    const BINARY: [(u64, &'static str); 7] = [
        (1, "B"),
        (1 << 10, "KiB"),
        (1 << 20, "MiB"),
        (1 << 30, "GiB"),
        (1 << 40, "TiB"),
        (1 << 50, "PiB"),
        (1 << 60, "EiB"),
    ];
    const DECIMAL: [(u64, &'static str); 7] = [
        (1, "B"),
        (1_000, "kB"),
        (1_000_000, "MB"),
        (1_000_000_000, "GB"),
        (1_000_000_000_000, "TB"),
        (1_000_000_000_000_000, "PB"),
        (1_000_000_000_000_000_000, "EB"),
    ];

    /// (bytes, name) of the system's units, ascending.
    #[must_use]
    pub const fn units(self) -> &'static [(u64, &'static str)] {
        match self {
            Self::Binary => &Self::BINARY,
            Self::Decimal => &Self::DECIMAL,
        }
    }

    /// The unit for a size: the largest that does not exceed it.
    #[must_use]
    pub fn unit_for(self, bytes: Bytes) -> (u64, &'static str) {
        let units = self.units();
        let mut best = units[0];
        for &unit in units {
            // Switch units slightly early: 1023.6 KiB would round to "1,024 KiB".
            if bytes.0 as f64 >= unit.0 as f64 * 0.9995 {
                best = unit;
            }
        }
        best
    }

    /// Number with three significant digits, and unit: (`"25.9"`, `"GiB"`). What would take four digits is in the next
    /// unit (`"0.981"`, `"GiB"`), but for bytes, which are exact.
    #[must_use]
    pub fn split(self, bytes: Bytes) -> (String, &'static str) {
        let (mut size, mut name) = self.unit_for(bytes);
        if size == 1 {
            return (thousands(bytes.0), name);
        }
        if bytes.0 as f64 / size as f64 >= 999.5
            && let Some(&next) = self.units().iter().find(|unit| unit.0 > size)
        {
            (size, name) = next;
        }
        (three_digits(bytes.0 as f64 / size as f64), name)
    }

    /// The size in as many digits as tell it from a limit that is written beside it: at least three, so that what it is
    /// over or below by is seen: `15.7515 GiB` of 15.75 GiB.
    #[must_use]
    pub fn beside(self, bytes: Bytes, limit: Bytes) -> String {
        if bytes == limit {
            return self.capacity(bytes);
        }
        let (size, name) = self.unit_for(limit);
        let distance = bytes.0.abs_diff(limit.0) as f64;
        let value = bytes.0 as f64 / size as f64;
        let (short, unit) = self.split(bytes);
        let shown = short.replace(',', "").parse::<f64>().unwrap_or(value);
        let shown_size = self.units().iter().find(|one| one.1 == unit).map_or(1, |one| one.0);
        let is_told = |shown: f64, size: u64| (shown * size as f64 - bytes.0 as f64).abs() <= distance * MOST_HIDDEN;
        if is_told(shown, shown_size) {
            return format!("{short} {unit}");
        }
        let digits = (2..7).find(|&digits| {
            let scale = 10f64.powi(digits);
            is_told((value * scale).round() / scale, size)
        });
        digits.map_or_else(|| bytes.exact(), |digits| format!("{value:.d$} {name}", d = digits as usize))
    }

    /// Three significant digits with the unit: `25.9 GiB`, `574 KiB`, `410 B`.
    #[must_use]
    pub fn short(self, bytes: Bytes) -> String {
        let (number, unit) = self.split(bytes);
        format!("{number} {unit}")
    }

    /// A capacity with up to two decimals and no trailing zeros: `15.75 GiB`, `16 GiB`.
    #[must_use]
    pub fn capacity(self, bytes: Bytes) -> String {
        let (size, name) = self.unit_for(bytes);
        let text = format!("{:.2}", bytes.0 as f64 / size as f64);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        format!("{text} {name}")
    }

    /// The size in multiples of `unit` bytes, with one decimal and thousands separators: `16,896.0`.
    #[must_use]
    pub fn in_unit(bytes: Bytes, unit: u64) -> String {
        let tenths = (bytes.0 as f64 / unit as f64 * 10.0).round() as u64;
        if unit == 1 {
            return thousands(bytes.0);
        }
        if tenths == 0 && bytes > Bytes::ZERO {
            return "under 0.1".to_owned();
        }
        format!("{}.{}", thousands(tenths / 10), tenths % 10)
    }

    /// A text with the sizes in it in this system's units. Texts are written in binary units; a size that they round to
    /// three digits keeps only as many.
    #[must_use]
    pub fn restated(self, text: &str) -> String {
        if self == Self::Binary {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(begin) = rest.find(|c: char| c.is_ascii_digit()) {
            let (before, from) = rest.split_at(begin);
            out.push_str(before);
            let digits = from.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',')).unwrap_or(from.len());
            let (number, after) = from.split_at(digits);
            let unit = Self::BINARY[1..].iter().find(|unit| {
                let next = after.strip_prefix(' ').and_then(|after| after.strip_prefix(unit.1));
                next.is_some_and(|next| !next.starts_with(|c: char| c.is_alphanumeric()))
            });
            let size = unit.and_then(|unit| Some((unit, number.replace(',', "").parse::<f64>().ok()?)));
            match size {
                Some((&(bytes, name), value)) => {
                    out.push_str(&self.short(Bytes((value * bytes as f64).round() as u64)));
                    rest = &after[1 + name.len()..];
                }
                None => {
                    out.push_str(number);
                    rest = after;
                }
            }
        }
        out + rest
    }

    /// A signed change with a minus sign (U+2212): `−13.9 GiB`, `+2.00 MiB`, `0 B`.
    #[must_use]
    pub fn signed(self, change: i128) -> String {
        let size = Bytes(u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX));
        match change {
            0 => "0 B".to_owned(),
            c if c < 0 => format!("\u{2212}{}", self.short(size)),
            _ => format!("+{}", self.short(size)),
        }
    }
}

/// The share of the distance to a limit that rounding may add or hide.
const MOST_HIDDEN: f64 = 0.1;

/// Three significant digits with trailing zeros: `1.03`, `33.5`, `282`, `0.981`.
fn three_digits(value: f64) -> String {
    if value >= 999.5 {
        thousands(value.round() as u64)
    } else if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else if value >= 0.9995 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// The words with a capital in front.
#[must_use]
pub fn capitalised(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Digits in groups of three: `1,610,612,736`.
#[must_use]
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun: `1 buffer`, `1,472 tiles`. The plural is `noun` with an s.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{} {noun}s", thousands(count)) }
}

/// A percentage with one decimal and a thin space. Nonzero shares never round to 0, nor a part to the whole; an en dash if
/// `whole` is 0.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "\u{2013}".to_owned();
    }
    let share = part as f64 / whole as f64 * 100.0;
    if part == 0 {
        "0\u{2009}%".to_owned()
    } else if share < 0.01 {
        "under 0.01\u{2009}%".to_owned()
    } else if share < 0.1 {
        format!("{share:.2}\u{2009}%")
    } else if part < whole && share >= 99.95 {
        "over 99.9\u{2009}%".to_owned()
    } else if share >= 999.95 {
        format!("{}\u{2009}%", thousands(share.round() as u64))
    } else {
        format!("{share:.1}\u{2009}%")
    }
}

/// A factor with three significant digits: `×42.7`.
#[must_use]
pub fn factor(value: f64) -> String {
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        value if value < 999.5 => 0,
        value => return format!("×{}", thousands(value.round() as u64)),
    };
    format!("×{value:.digits$}")
}

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// Three significant digits in binary units: `25.9 GiB`.
    #[must_use]
    pub fn short(self) -> String {
        UnitSystem::Binary.short(self)
    }

    /// The exact number of bytes with separators: `1,610,612,736 B`.
    #[must_use]
    pub fn exact(self) -> String {
        format!("{} B", thousands(self.0))
    }

    /// `self - other`, or zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// From a signed wire value; negative values become zero.
    #[must_use]
    pub fn from_wire(value: i64) -> Self {
        Self(u64::try_from(value).unwrap_or(0))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

/// Parses a size as typed by a user: `15.75GiB`, `16G`, `900 MiB`, `1024`. All units are binary.
///
/// # Errors
/// A sentence that says what is wrong with `text`.
pub fn parse_size(text: &str) -> Result<Bytes, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.replace('_', "").parse().map_err(|_| format!("'{text}' does not start with a number"))?;
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" | "kb" => 1 << 10,
        "m" | "mib" | "mb" => 1 << 20,
        "g" | "gib" | "gb" => 1 << 30,
        "t" | "tib" | "tb" => 1 << 40,
        other => return Err(format!("'{other}' is not a unit of size; use B, KiB, MiB, GiB or TiB")),
    };
    let bytes = (number * factor as f64).round();
    if bytes.is_finite() && bytes < 18e18 { Ok(Bytes(bytes as u64)) } else { Err(format!("'{text}' is too large")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_a_text_change_units_with_everything_else() {
        let text = "32.0 MiB of 15.75 GiB in layer_3, f32[4,512], 33.3 % of 1,024 KiB, 3 MiBs";
        assert_eq!(
            UnitSystem::Decimal.restated(text),
            "33.6 MB of 16.9 GB in layer_3, f32[4,512], 33.3 % of 1.05 MB, 3 MiBs"
        );
        assert_eq!(UnitSystem::Binary.restated(text), text);
    }

    #[test]
    fn three_significant_digits() {
        let short = |b: f64| Bytes(b as u64).short();
        assert_eq!(short(25.9 * f64::from(1 << 30)), "25.9 GiB");
        assert_eq!(short(1.034 * f64::from(1 << 30)), "1.03 GiB");
        assert_eq!(short(282.2 * f64::from(1 << 20)), "282 MiB");
        assert_eq!(short(410.0), "410 B");
        assert_eq!(short(1024.0 * 1023.9), "1.00 MiB");
        assert_eq!(short(11_643.0 * f64::from(1 << 30) * 1024.0), "11.4 PiB");
        assert_eq!(short(1005.0 * f64::from(1 << 20)), "0.981 GiB");
        assert_eq!(short(999.4 * f64::from(1 << 20)), "999 MiB");
        assert_eq!(short(1010.0), "1,010 B");
        assert_eq!(short(19_140.0 * (1u64 << 40) as f64), "18.7 PiB");
        assert_eq!(UnitSystem::Binary.capacity(Bytes(16_911_433_728)), "15.75 GiB");
        assert_eq!(UnitSystem::Binary.capacity(Bytes(1 << 34)), "16 GiB");
    }

    #[test]
    fn a_size_beside_a_limit_shows_what_it_is_over_by() {
        let beside = |need: u64, limit: u64| UnitSystem::Binary.beside(Bytes(need), Bytes(limit));
        let (gib, limit) = (1u64 << 30, 16_911_433_728);
        assert_eq!(beside(27_806_004_736, limit), "25.9 GiB");
        assert_eq!(beside(limit + (153 << 20) / 100, limit), "15.7515 GiB");
        assert_eq!(beside(limit, limit), "15.75 GiB");
        assert_eq!(beside(limit - (1 << 20), limit), "15.749 GiB");
        assert_eq!(beside(limit + 410, limit), "16,911,434,138 B");
        assert_eq!(beside(12 << 20, 16 * gib), "12.0 MiB");
    }

    #[test]
    fn groups_and_shares() {
        assert_eq!(Bytes(1_610_612_736).exact(), "1,610,612,736 B");
        assert_eq!(percent(1, 1_000_000), "under 0.01\u{2009}%");
        assert_eq!(percent(0, 5), "0\u{2009}%");
        assert_eq!(percent(638, 1000), "63.8\u{2009}%");
        assert_eq!(percent(1_674_360, 10_000), "16,744\u{2009}%");
        assert_eq!(UnitSystem::Binary.signed(-(1 << 30)), "\u{2212}1.00 GiB");
        assert_eq!(UnitSystem::in_unit(Bytes(16896 << 20), 1 << 20), "16,896.0");
    }

    #[test]
    fn typed_sizes_are_parsed() {
        assert_eq!(parse_size("15.75GiB"), Ok(Bytes(16_911_433_728)));
        assert_eq!(parse_size(" 16 g "), Ok(Bytes(1 << 34)));
        assert_eq!(parse_size("12"), Ok(Bytes(12)));
        assert!(parse_size("GiB").is_err());
        assert!(parse_size("1 parsec").is_err());
    }

    #[test]
    fn sums_saturate() {
        assert_eq!(Bytes(u64::MAX) + Bytes(1), Bytes(u64::MAX));
        assert_eq!(Bytes(1) - Bytes(2), Bytes(0));
    }
}
