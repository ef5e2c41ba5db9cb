//! SARIF 2.1.0 (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>): a result for each limit that is not
//! kept, at the file of the dump.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::limits::{Gate, LimitOutcome};

/// What each limit asks for, by its name.
const RULES: [(&str, &str); 6] = [
    ("fits", "The program fits the device"),
    ("max-peak", "The peak stays below a number of bytes"),
    ("max-of-capacity", "The allocated bytes stay below a share of the capacity"),
    ("max-growth", "The allocated bytes grow by no more than a share"),
    ("no-new", "The advisor has no new finding"),
    ("read", "The dump can be read"),
];

/// The log.
pub fn log(gate: &Gate) -> Value {
    let rules: Vec<Value> =
        RULES.iter().map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } })).collect();
    let broken = gate.checks.iter().filter(|check| check.outcome != LimitOutcome::Passed);
    let results: Vec<Value> = broken
        .map(|check| {
            let name = if check.program.is_empty() { &check.file } else { &check.program };
            json!({
                "ruleId": check.limit,
                "level": if check.outcome == LimitOutcome::Failed { "error" } else { "warning" },
                "message": { "text": format!("{name}: {}", check.words) },
                "locations": [{ "physicalLocation": { "artifactLocation": { "uri": uri(&check.file) } } }],
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "Highwater", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "results": results,
        }],
    })
}

/// A path as a relative or absolute reference: bytes that a URI cannot hold are escaped.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.replace('\\', "/").bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_become_references() {
        assert_eq!(uri("a b/ü#1.pb"), "a%20b/%C3%BC%231.pb");
    }
}
