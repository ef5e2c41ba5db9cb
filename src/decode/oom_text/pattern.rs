//! Patterns of messages, and the sizes in them.

use regex::{Regex, RegexBuilder};

use crate::model::{Bytes, FailureValue, PrintedSize};

/// A size in any spelling: `17.09G`, `3.00MiB`, `14.00 GiB`, `25,600 bytes`.
const SIZE: &str = r"\d+(?:,\d{3})*(?:\.\d+)?(?:[BKMGTPE]\b|[KMGTPEk]i?B\b|\s+(?:[KMGTPEk]i?B|[Bb]ytes?)\b)";
/// A number that is surely complete: something follows it.
const COMPLETE: &str = r"\d+";

/// A pattern over the cleaned text. A space stands for any white space (a sentence may be wrapped), an optional one for
/// none as well; `<S>`, `<H>` and `<T>` for a size, `<N>` for a number.
pub fn pattern(text: &str) -> Regex {
    built(text, 2 << 20)
}

/// As [`pattern`], for one of many alternatives that is tried on every line: with room for all of its states, without
/// which most searches take another way, forty times as long.
pub fn large_pattern(text: &str) -> Regex {
    built(text, 16 << 20)
}

#[expect(clippy::expect_used, reason = "patterns are constants; a test compiles each")]
fn built(text: &str, states: usize) -> Regex {
    let text = spaces(text)
        .replace("<S>", &format!("({SIZE})"))
        .replace("<H>", &format!("({SIZE})"))
        .replace("<T>", &format!("({SIZE})"))
        .replace("<N>", &format!("({COMPLETE})"));
    RegexBuilder::new(&text).dfa_size_limit(states).build().expect("a valid pattern")
}

/// A pattern over the bytes of a text whose letters and digits are those of ASCII: smaller by far than one that knows
/// every alphabet. Spaces stand for white space as in [`pattern`].
#[expect(clippy::expect_used, reason = "patterns are constants; a test compiles each")]
pub fn ascii_pattern(text: &str) -> regex::bytes::Regex {
    regex::bytes::RegexBuilder::new(&spaces(text)).unicode(false).build().expect("a valid pattern")
}

/// Lets every space outside a character class stand for any white space.
fn spaces(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let (mut in_class, mut escaped) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            ' ' if !in_class => {
                let is_optional = chars.next_if(|next| matches!(next, '?' | '*')).is_some();
                out.push_str(if is_optional { r"\s*" } else { r"\s+" });
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// A pattern in a static.
macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$doc])* static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| $crate::decode::oom_text::pattern::pattern($text));)*
    };
}
pub(super) use patterns;

/// A pattern over bytes in a static.
macro_rules! ascii_patterns {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$doc])* static $name: std::sync::LazyLock<regex::bytes::Regex> =
            std::sync::LazyLock::new(|| $crate::decode::oom_text::pattern::ascii_pattern($text));)*
    };
}
pub(super) use ascii_patterns;

/// Bytes of a printed size. All units are binary, as in every one of these messages.
pub fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim().replace(',', "");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim() {
        "B" | "byte" | "bytes" | "Byte" | "Bytes" => 1,
        "K" | "Ki" | "KiB" | "KB" | "Kb" | "kB" => 1 << 10,
        "M" | "Mi" | "MiB" | "MB" | "Mb" => 1 << 20,
        "G" | "Gi" | "GiB" | "GB" | "Gb" => 1 << 30,
        "T" | "TiB" | "TB" | "Tb" => 1 << 40,
        "P" | "PiB" | "PB" => 1 << 50,
        "E" | "EiB" | "EB" => 1 << 60,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u128 = whole.parse().ok()?;
    if fraction.len() > 12 {
        return None;
    }
    // Exactly, and half a byte up: a float would be off by some bytes from terabytes on.
    let scale = 10u128.pow(fraction.len() as u32);
    let parts: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let bytes = whole.checked_mul(scale)?.checked_add(parts)?.checked_mul(u128::from(factor))?;
    u64::try_from((bytes + scale / 2) / scale).ok()
}

/// A size with its text; white space in it becomes one space.
pub fn size(text: &str) -> Option<PrintedSize> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let bytes = Bytes(bytes_of(&text)?);
    Some(PrintedSize { text: Some(text), bytes })
}

/// A size as the value of a key.
pub fn size_value(text: &str) -> Option<FailureValue> {
    size(text).map(FailureValue::Size)
}

/// Plain bytes as the value of a key.
pub fn bytes_value(digits: &str) -> Option<FailureValue> {
    digits.parse().ok().map(|bytes| FailureValue::Size(PrintedSize { text: None, bytes: Bytes(bytes) }))
}

/// A number that is no size as the value of a key.
pub fn count_value(digits: &str) -> Option<FailureValue> {
    digits.parse().ok().map(FailureValue::Count)
}

/// A text as the value of a key.
pub fn text_value(text: &str) -> FailureValue {
    FailureValue::Text(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_rounded_to_the_byte() {
        assert_eq!(bytes_of("17.09G"), Some(18_350_247_772));
        assert_eq!(bytes_of("15.75G"), Some(16_911_433_728));
        assert_eq!(bytes_of("4.0K"), Some(4096));
        assert_eq!(bytes_of("0B"), Some(0));
        assert_eq!(bytes_of("14.00 GiB"), Some(14 << 30));
        assert_eq!(bytes_of("0 bytes"), Some(0));
        assert_eq!(bytes_of("650000 KB"), Some(650_000 << 10));
        assert_eq!(bytes_of("3.00"), None);
        assert_eq!(bytes_of("99999999999999999999999E"), None);
        assert_eq!(size("14.00\n GiB").and_then(|s| s.text).as_deref(), Some("14.00 GiB"));
    }
}
