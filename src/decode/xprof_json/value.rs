//! JSON as protobuf writes it: keys in camelCase or snake_case, numbers as numbers or texts, zeros left out.

use serde_json::Value;

use crate::decode::decoder::DecodeError;
use crate::model::Bytes;

/// JSON texts longer than this are not read; their tree takes many times as much memory.
pub const MAX_JSON: usize = 512 << 20;

/// Parses a text; errors name the byte.
pub fn parse(bytes: &[u8]) -> Result<Value, DecodeError> {
    if bytes.len() > MAX_JSON {
        return Err(DecodeError::Empty(format!(
            "JSON of {}, more than the limit of {}",
            Bytes(bytes.len() as u64),
            Bytes(MAX_JSON as u64)
        )));
    }
    serde_json::from_slice(bytes).map_err(|error| DecodeError::Damaged {
        what: error.to_string(),
        offset: offset_of(bytes, error.line(), error.column()),
    })
}

/// Byte offset of a 1-based line and column.
fn offset_of(bytes: &[u8], line: usize, column: usize) -> u64 {
    let start: usize = bytes.split_inclusive(|&b| b == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (start + column.saturating_sub(1)).min(bytes.len()) as u64
}

static NULL: Value = Value::Null;

/// A member by its camelCase name, in either spelling; null where it is not there.
pub fn get<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).or_else(|| value.get(snake_case(key))).unwrap_or(&NULL)
}

/// `heapSizes` as `heap_sizes`.
pub fn snake_case(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// An array; empty if missing.
pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    get(value, key).as_array().map_or(&[], Vec::as_slice)
}

/// A string; empty if missing.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    get(value, key).as_str().unwrap_or("")
}

/// An integer; 0 if missing.
pub fn int(value: &Value, key: &str) -> i64 {
    as_int(get(value, key))
}

/// A number or a text of digits as a whole number. Unsigned ones beyond 63 bits wrap, as on the wire.
pub fn as_int(value: &Value) -> i64 {
    match value {
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_u64().map(|n| n as i64))
            .or_else(|| number.as_f64().map(|n| n as i64))
            .unwrap_or(0),
        Value::String(text) => text
            .parse::<i64>()
            .ok()
            .or_else(|| text.parse::<u64>().ok().map(|n| n as i64))
            .or_else(|| text.parse::<f64>().ok().map(|n| n as i64))
            .unwrap_or(0),
        _ => 0,
    }
}

/// A fraction; 0 where it is not there, not a number where the text says `NaN`.
pub fn double(value: &Value, key: &str) -> f64 {
    as_double(get(value, key))
}

/// A number or a text as a fraction.
pub fn as_double(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or(0.0),
        Value::String(text) => match text.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            text => text.parse().unwrap_or(0.0),
        },
        _ => 0.0,
    }
}

/// Bytes of a number of MiB. XProf divides by 2^20 without rounding, so this is exact.
pub fn mib(value: &Value, key: &str) -> Bytes {
    mib_to_bytes(double(value, key))
}

/// Bytes of a number of MiB.
pub fn mib_to_bytes(mib: f64) -> Bytes {
    let bytes = (mib * 1_048_576.0).round();
    if bytes.is_finite() && (0.0..1.8e19).contains(&bytes) { Bytes(bytes as u64) } else { Bytes::ZERO }
}

/// Whether a text is a JSON object in which one of the keys stands, in either spelling.
pub fn has_key(head: &[u8], keys: &[&str]) -> bool {
    let head = head.trim_ascii_start();
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.starts_with(b"{")
        && keys.iter().any(|key| {
            [(*key).to_owned(), snake_case(key)]
                .iter()
                .any(|key| memchr::memmem::find(head, format!("\"{key}\"").as_bytes()).is_some())
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_spellings_and_all_kinds_of_numbers() {
        let value = json!({"heap_sizes": [1], "peakHeapMib": "2.5", "big": "18446744073709551615", "bad": "NaN"});
        assert_eq!(list(&value, "heapSizes").len(), 1);
        assert_eq!(mib(&value, "peakHeapMib"), Bytes(2_621_440));
        assert_eq!(int(&value, "big"), -1);
        assert!(double(&value, "bad").is_nan());
        assert_eq!((int(&value, "missing"), text(&value, "missing")), (0, ""));
        assert!(has_key(b" {\"heap_sizes\": [", &["heapSizes"]));
        assert!(!has_key(b"[\"heapSizes\"]", &["heapSizes"]));
    }

    #[test]
    fn errors_name_the_byte() {
        let error = parse(b"{\n\"a\": }").expect_err("damaged").to_string();
        assert!(error.contains("at byte 7"), "{error}");
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }
}
