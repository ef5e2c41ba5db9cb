//! What TensorFlow says: the tensor that found no room, and its report of what was in memory.

use super::found::Found;
use super::pattern::{patterns, size};
use crate::model::{FailureKind, FailureValue};

patterns! {
    OOM = r"OOM when allocating tensor (?:with|of) shape ?\[([\d,\s]*)\](?: and type (\w+)[\s.,;](?:\s*on (\S+) by allocator (\w+(?: allocator)?)[\s.,:;\]](?:\s*\[Op:(\w+)\])?)?)?";
    /// The node of the graph, in the spellings of TensorFlow 1 and 2.
    NODE = r"\[\[ ?(?:Node: |\{\{node )([\w./-]+)(?:\}\}| = (\w+))";
    REPORT = r"Current usage from device: (\S+), allocator: (\w+)[ \t]*\n";
    ROW = r"^.*?(?:^|\s)(\d+(?:\.\d+)?(?:[KMGTPE]i)?B) from (\S.*?)[ \t]*$";
    REMAINING = r"\bRemaining (\d+) nodes with <H>";
}

/// How far behind the sentence its node may stand.
const NODE_WITHIN: usize = 600;
/// Rows that are kept.
const MAX_ROWS: usize = 10_000;

/// Every message in a text.
pub fn find(text: &str, found: &mut Vec<Found>) {
    for captures in OOM.captures_iter(text) {
        let mut new = Found::new(FailureKind::TfOom, &captures);
        new.text("shape", &captures, 1).text("type", &captures, 2).text("device", &captures, 3);
        new.text("allocator", &captures, 4).text("op", &captures, 5);
        found.push(new);
    }
    for captures in REPORT.captures_iter(text) {
        let mut new = Found::new(FailureKind::TfUsageReport, &captures);
        new.text("device", &captures, 1).text("allocator", &captures, 2);
        found.push(new);
    }
}

/// Reads the rows of the usage report.
pub fn details(found: &mut Found, section: &str) {
    if found.failure.kind == FailureKind::TfOom
        && let Some(captures) = NODE.captures(super::head::head_of(section, NODE_WITHIN))
    {
        found.text("node", &captures, 1).text("op", &captures, 2);
    }
    if found.failure.kind != FailureKind::TfUsageReport {
        return;
    }
    let mut ended = false;
    for line in section.split_inclusive('\n') {
        let whole = line.ends_with('\n');
        let line = line.trim_end();
        if let Some(captures) = REMAINING.captures(line) {
            if whole {
                found.count("remaining_nodes", &captures, 1).size("remaining", &captures, 2);
                ended = true;
            }
            break;
        }
        let Some(captures) = ROW.captures(line) else {
            // A blank line, or the log going on, ends a report without a remainder.
            ended = whole;
            break;
        };
        if !whole || found.failure.usage_rows.len() >= MAX_ROWS {
            break;
        }
        if let (Some(bytes), Some(op)) = (captures.get(1).and_then(|m| size(m.as_str())), captures.get(2)) {
            found.failure.usage_rows.push((bytes, op.as_str().to_owned()));
        }
    }
    if let Some((_, top)) = found.failure.usage_rows.first() {
        found.put("top", Some(FailureValue::Text(top.clone())));
    }
    // Sums and counts of a report that was cut would be too small.
    if ended {
        let rest = found.failure.bytes("remaining").unwrap_or_default();
        let total = found.failure.usage_rows.iter().map(|row| row.0.bytes).sum::<crate::model::Bytes>() + rest;
        let text = human(total.0);
        found.put("total", Some(FailureValue::Size(crate::model::PrintedSize { text: Some(text), bytes: total })));
        found.put("rows", Some(FailureValue::Count(found.failure.usage_rows.len() as i64)));
    } else {
        found.failure.truncated = true;
    }
}

/// As TensorFlow prints a size: `KiB` with one decimal, larger units with two.
fn human(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.1}{}", units[0]) } else { format!("{value:.2}{}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_summed_only_when_it_is_whole() {
        let text = "Current usage from device: /device:GPU:0, allocator: GPU_0_bfc\n  2.00MiB from a/Conv\n  1.00MiB from b\n  Remaining 7 nodes with 512.0KiB\n";
        let mut found = Vec::new();
        find(text, &mut found);
        let end = found[0].end;
        details(&mut found[0], &text[end..]);
        let failure = &found[0].failure;
        assert_eq!(failure.size("total").and_then(|s| s.text.as_deref()), Some("3.50MiB"));
        assert_eq!((failure.count("rows"), failure.count("remaining_nodes")), (Some(2), Some(7)));
        let cut = &text[..text.len() - 20];
        let mut found = Vec::new();
        find(cut, &mut found);
        let end = found[0].end;
        details(&mut found[0], &cut[end..]);
        assert!(found[0].failure.get("total").is_none());
    }
}
