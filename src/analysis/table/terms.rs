//! Parser of the filter language: `size>64MiB dtype:f32 op:/attn/ category:temp padding>50% live@peak -copy`.

use regex::{Regex, RegexBuilder};

/// A filter syntax error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct FilterError {
    /// Error message.
    pub what: String,
    /// The invalid term.
    pub term: String,
}

/// Comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `>`.
    Above,
    /// `>=`.
    AtLeast,
    /// `<`.
    Below,
    /// `<=`.
    AtMost,
    /// `=`.
    Equal,
}

impl Comparison {
    /// Whether `value` compares to `with` in this way.
    #[must_use]
    pub fn holds(self, value: f64, with: f64) -> bool {
        match self {
            Self::Above => value > with,
            Self::AtLeast => value >= with,
            Self::Below => value < with,
            Self::AtMost => value <= with,
            Self::Equal => value == with,
        }
    }
}

/// A numeric property of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Size in bytes.
    Size,
    /// Bytes of padding.
    Padding,
    /// Padding as a percentage of the size.
    PaddingPercent,
    /// First point.
    From,
    /// Last point.
    To,
    /// Length of the live range in points.
    Steps,
    /// Offset in the allocation in bytes.
    Offset,
    /// Allocation index.
    Allocation,
}

/// A text property of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// Any of name, op name, shape, category and source.
    Any,
    /// Name.
    Name,
    /// Framework op name.
    Op,
    /// Opcode.
    Opcode,
    /// Element type.
    Type,
    /// Shape.
    Shape,
    /// Class.
    Class,
    /// Category.
    Category,
    /// Source line.
    Source,
}

/// A text pattern.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// Contains this lower-case text, ignoring case.
    Contains(String),
    /// Matches this regular expression, ignoring case.
    Regex(Regex),
}

impl Pattern {
    /// Whether a text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Contains(part) => contains_ignoring_case(text.as_bytes(), part.as_bytes()),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Whether bytes contain a lower-case part, ignoring ASCII case.
fn contains_ignoring_case(text: &[u8], part: &[u8]) -> bool {
    let Some((&first, rest)) = part.split_first() else { return true };
    let (low, high) = (first, first.to_ascii_uppercase());
    let mut from = 0;
    while let Some(at) = memchr::memchr2(low, high, text.get(from..).unwrap_or(&[])) {
        let start = from + at + 1;
        let Some(window) = text.get(start..start + rest.len()) else { return false };
        if window.eq_ignore_ascii_case(rest) {
            return true;
        }
        from = start;
    }
    false
}

/// One condition of a filter.
#[derive(Debug, Clone)]
pub struct Term {
    /// Whether the test is negated.
    pub not: bool,
    /// The test.
    pub test: Test,
}

/// A test of a row.
#[derive(Debug, Clone)]
pub enum Test {
    /// Compares a number.
    Number(Number, Comparison, f64),
    /// Matches text.
    Words(Words, Pattern),
    /// Live at a point; `None` means the peak.
    LiveAt(Option<u32>),
}

/// Keys of the filter language for completion: (key, description).
pub const KEYS: &[(&str, &str)] = &[
    ("size>", "bytes: size>64MiB, size<=1.5GiB"),
    ("padding>", "bytes or percent: padding>1MiB, padding>50%"),
    ("class:", "class (a guess): class:activation"),
    ("category:", "category:temp"),
    ("dtype:", "element type: dtype:f32"),
    ("shape:", "shape:1024"),
    ("op:", "framework op name: op:attn, op:/layer_[0-3]/"),
    ("name:", "name:fusion"),
    ("kind:", "opcode: kind:copy"),
    ("source:", "source:model.py"),
    ("live@", "live@peak, live@1200"),
    ("from>", "first step: from>100"),
    ("to<", "last step: to<500"),
    ("steps>", "length of the live range: steps>1000"),
    ("offset>", "offset in the allocation"),
    ("allocation=", "allocation index"),
];

/// Parses a filter.
///
/// # Errors
/// The first invalid term.
pub fn parse(text: &str) -> Result<Vec<Term>, FilterError> {
    split(text).into_iter().map(|term| one(&term)).collect()
}

/// Splits a filter into terms at spaces outside quotes and regular expressions.
pub fn split(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut term = String::new();
    let mut closing: Option<char> = None;
    let mut escaped = false;
    for c in text.chars() {
        match closing {
            Some(end) => {
                term.push(c);
                if escaped {
                    escaped = false;
                } else if c == '\\' && end == '/' {
                    escaped = true;
                } else if c == end {
                    closing = None;
                }
            }
            None if c.is_whitespace() => {
                if !term.is_empty() {
                    terms.push(std::mem::take(&mut term));
                }
            }
            None => {
                let begins = term.is_empty() || term == "-" || term.ends_with(':');
                if c == '"' || (c == '/' && begins) {
                    closing = Some(c);
                }
                term.push(c);
            }
        }
    }
    // An unclosed slash starts a path rather than a regular expression, so spaces end the term.
    if closing == Some('/') {
        let mut parts = term.split_whitespace().map(str::to_owned);
        terms.extend(parts.by_ref());
    } else if !term.is_empty() {
        terms.push(term);
    }
    terms
}

fn one(term: &str) -> Result<Term, FilterError> {
    let error = |what: String| FilterError { what, term: term.to_owned() };
    let (not, body) = match term.strip_prefix('-') {
        Some(rest) if !rest.is_empty() => (true, rest),
        _ => (false, term),
    };
    let test = if let Some(place) = body.strip_prefix("live@") {
        match place {
            "" | "peak" => Test::LiveAt(None),
            number => {
                let step = number.replace([',', '_'], "").parse();
                Test::LiveAt(Some(step.map_err(|_| error(format!("'{number}' is neither a step nor 'peak'")))?))
            }
        }
    } else if let Some((key, comparison, value)) = compared(body) {
        let Some(number) = number_of(key) else {
            return Err(error(match words_of(key) {
                Some(_) => format!("'{key}' is not a number: write {key}:words"),
                None => unknown_field(key),
            }));
        };
        let value = value.trim_matches('"');
        match (number, value.strip_suffix('%')) {
            (Number::Padding, Some(percent)) => {
                let percent = percent.parse().map_err(|_| error(format!("'{percent}' is not a number")))?;
                Test::Number(Number::PaddingPercent, comparison, percent)
            }
            (Number::Size | Number::Padding | Number::Offset, _) => {
                let bytes = bytes_of(value)
                    .ok_or_else(|| error(format!("'{value}' is not a size; write 64MiB, 1.5GiB, 4096")))?;
                Test::Number(number, comparison, bytes)
            }
            _ => {
                let plain = value.replace([',', '_'], "");
                Test::Number(
                    number,
                    comparison,
                    plain.parse().map_err(|_| error(format!("'{value}' is not a number")))?,
                )
            }
        }
    } else {
        match body.split_once(':').and_then(|(key, value)| Some((words_of(key)?, value))) {
            Some((words, value)) => Test::Words(words, pattern(value).map_err(error)?),
            None => match field_of(body) {
                Some(key) => return Err(error(unknown_field(key))),
                None => Test::Words(Words::Any, pattern(body).map_err(error)?),
            },
        }
    };
    Ok(Term { not, test })
}

/// The field a term names without quotes: letters before a single colon.
fn field_of(body: &str) -> Option<&str> {
    let (key, value) = body.split_once(':')?;
    let is_name = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphabetic());
    (is_name && !value.starts_with([':', '/', '\\'])).then_some(key)
}

fn unknown_field(key: &str) -> String {
    let known: Vec<&str> = KEYS.iter().map(|(key, _)| key.trim_end_matches([':', '>', '<', '=', '@'])).collect();
    format!("Unknown field '{key}'. Known: {}", known.join(", "))
}

/// Whether the last term of a filter is still being typed: a field without its value.
#[must_use]
pub fn is_unfinished(text: &str) -> bool {
    text.ends_with([':', '>', '<', '=', '@'])
}

/// Parses `key>value`, where the key consists of letters.
fn compared(body: &str) -> Option<(&str, Comparison, &str)> {
    let at = body.find(|c: char| !c.is_ascii_alphabetic())?;
    let (key, rest) = body.split_at(at);
    if key.is_empty() {
        return None;
    }
    let pairs = [
        (">=", Comparison::AtLeast),
        ("<=", Comparison::AtMost),
        (">", Comparison::Above),
        ("<", Comparison::Below),
        ("=", Comparison::Equal),
    ];
    pairs.into_iter().find_map(|(sign, comparison)| Some((key, comparison, rest.strip_prefix(sign)?)))
}

fn number_of(key: &str) -> Option<Number> {
    Some(match key.to_ascii_lowercase().as_str() {
        "size" | "bytes" => Number::Size,
        "padding" | "waste" => Number::Padding,
        "from" | "start" => Number::From,
        "to" | "end" => Number::To,
        "steps" | "length" | "life" => Number::Steps,
        "offset" | "address" => Number::Offset,
        "allocation" => Number::Allocation,
        _ => return None,
    })
}

fn words_of(key: &str) -> Option<Words> {
    Some(match key.to_ascii_lowercase().as_str() {
        "name" => Words::Name,
        "op" | "scope" => Words::Op,
        "kind" | "opcode" => Words::Opcode,
        "dtype" | "type" => Words::Type,
        "shape" => Words::Shape,
        "class" => Words::Class,
        "category" | "cat" => Words::Category,
        "source" | "file" => Words::Source,
        _ => return None,
    })
}

fn pattern(value: &str) -> Result<Pattern, String> {
    let regex = value.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|inner| !inner.is_empty());
    if let Some(inner) = regex {
        let built = RegexBuilder::new(inner).case_insensitive(true).size_limit(1 << 20).build();
        return built.map(Pattern::Regex).map_err(|e| {
            let words = e.to_string();
            let last = words.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("'{inner}' is not a valid regular expression: {last}")
        });
    }
    Ok(Pattern::Contains(value.trim_matches('"').to_lowercase()))
}

/// Parses a size with or without a unit, in bytes: `64MiB`, `1.5g`, `4096`.
fn bytes_of(value: &str) -> Option<f64> {
    let digits = value.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',' || c == '_')).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let number: f64 = number.replace([',', '_'], "").parse().ok()?;
    let (binary, decimal) = (1024f64, 1000f64);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kib" | "k" => binary,
        "mib" | "m" => binary.powi(2),
        "gib" | "g" => binary.powi(3),
        "tib" | "t" => binary.powi(4),
        "kb" => decimal,
        "mb" => decimal.powi(2),
        "gb" => decimal.powi(3),
        "tb" => decimal.powi(4),
        _ => return None,
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terms_are_divided_at_spaces_outside_of_quotes_and_expressions() {
        assert_eq!(
            split(r#"size>1 op:/a b\/c/ "two words" -copy /x y/"#),
            ["size>1", r"op:/a b\/c/", r#""two words""#, "-copy", "/x y/"]
        );
        assert_eq!(split("op:/attn layer"), ["op:/attn", "layer"]);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes_of("64MiB"), Some(f64::from(64 << 20)));
        assert_eq!(bytes_of("1.5g"), Some(1.5 * f64::from(1 << 30)));
        assert_eq!(bytes_of("2GB"), Some(2e9));
        assert_eq!(bytes_of("4,096"), Some(4096.0));
        assert_eq!(bytes_of("12 apples"), None);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("size>big", "'big' is not a size"),
            ("live@noon", "'noon' is neither a step nor 'peak'"),
            ("op:/(/", "not a valid regular expression"),
            ("colour>3", "Unknown field 'colour'"),
            ("siz:64MiB", "Unknown field 'siz'"),
            ("dtype>3", "'dtype' is not a number"),
            ("padding>x%", "'x' is not a number"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.what.contains(part), "{text}: {}", error.what);
            assert_eq!(error.term, text);
        }
    }

    #[test]
    fn case_does_not_matter() {
        assert!(Pattern::Contains("fusion".to_owned()).matches("Some_FUSION.3"));
        assert!(!Pattern::Contains("fusion".to_owned()).matches("fusio"));
    }

    proptest! {
        #[test]
        fn no_input_panics(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn a_part_is_found_wherever_it_is(before in "[a-c]{0,6}", part in "[a-c]{1,3}", after in "[A-C]{0,6}") {
            let text = format!("{before}{}{after}", part.to_uppercase());
            prop_assert!(contains_ignoring_case(text.as_bytes(), part.as_bytes()));
        }
    }
}
