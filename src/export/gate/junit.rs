//! JUnit XML: a suite for each program, a case for each limit. An outcome that cannot be told is an error, which fails
//! a build like a failure does.

use std::fmt::Write as _;

use super::limits::{Check, Gate, LimitOutcome};

/// Writes the outcome as JUnit XML.
pub fn write(gate: &Gate) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let count = |checks: &[&Check], outcome| checks.iter().filter(|check| check.outcome == outcome).count();
    let all: Vec<&Check> = gate.checks.iter().collect();
    let counts = |checks: &[&Check]| {
        let (failed, unknown) = (count(checks, LimitOutcome::Failed), count(checks, LimitOutcome::Unknown));
        format!("tests=\"{}\" failures=\"{failed}\" errors=\"{unknown}\"", checks.len())
    };
    let _ = writeln!(out, "<testsuites name=\"highwater\" {}>", counts(&all));
    let mut suites: Vec<(&str, &str)> = Vec::new();
    for check in &gate.checks {
        if !suites.contains(&(&check.file, &check.program)) {
            suites.push((&check.file, &check.program));
        }
    }
    for (file, program) in suites {
        let checks: Vec<&Check> =
            gate.checks.iter().filter(|check| check.file == file && check.program == program).collect();
        let name = escape(if program.is_empty() { file } else { program });
        let _ = writeln!(out, "  <testsuite name=\"{name}\" file=\"{}\" {}>", escape(file), counts(&checks));
        for check in checks {
            let words = escape(&check.words);
            let _ = write!(out, "    <testcase classname=\"{name}\" name=\"{}\"", check.limit);
            let _ = match check.outcome {
                LimitOutcome::Passed => writeln!(out, "><system-out>{words}</system-out></testcase>"),
                LimitOutcome::Failed => writeln!(out, "><failure message=\"{words}\"/></testcase>"),
                LimitOutcome::Unknown => writeln!(out, "><error message=\"{words}\"/></testcase>"),
            };
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// Text for an attribute or element; characters that XML cannot hold become spaces.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_cannot_break_the_document() {
        assert_eq!(escape("a<b & \"c\"\u{1}\n"), "a&lt;b &amp; &quot;c&quot; &#10;");
    }
}
