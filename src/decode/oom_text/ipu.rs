//! What Poplar says (docs.graphcore.ai, memory and performance optimisation, section 6.1).

use super::found::Found;
use super::pattern::{patterns, text_value};
use crate::model::FailureKind;

patterns! {
    TILE = r"Out of memory on tile <N>: <N> bytes used but tiles only have <N> bytes of memory";
    ALLOWED = r"Out of memory: Cannot fit all variable data onto one or more tiles";
    EXCHANGE = r"[Tt]ile <N> receives more data than it has total memory in exchange '([^'\n]*)'";
    CODE = r"[Tt]ile <N> _poplar_start must be <N> not <N> bytes from the start of memory";
    STREAM = r"Single stream of length <N>[^\d\n][^\n]*?bufferIndex <N>(?:[^\d\n][^\n]*)?\n";
    HOST = r"Buffer <N> needs to be at least <N> Bytes, but remaining host buffer memory is only <N>[\s.,]";
    REPORT = r"(?:write|wrote|written) (?:a|the) report to (\S+?)[.,]?\s";
}

/// Every message in a text.
pub fn find(text: &str, found: &mut Vec<Found>) {
    for captures in TILE.captures_iter(text) {
        let mut new = Found::new(FailureKind::IpuTile, &captures);
        new.count("tile", &captures, 1).bytes("used", &captures, 2).bytes("capacity", &captures, 3);
        found.push(new);
    }
    for captures in ALLOWED.captures_iter(text) {
        found.push(Found::new(FailureKind::IpuAllowOom, &captures));
    }
    for captures in EXCHANGE.captures_iter(text) {
        let mut new = Found::new(FailureKind::IpuExchange, &captures);
        new.count("tile", &captures, 1).text("exchange", &captures, 2);
        found.push(new);
    }
    for captures in CODE.captures_iter(text) {
        let mut new = Found::new(FailureKind::IpuCode, &captures);
        new.count("tile", &captures, 1).put("cause", Some(text_value("code"))).bytes("start", &captures, 3);
        found.push(new);
    }
    for captures in STREAM.captures_iter(text) {
        let mut new = Found::new(FailureKind::IpuStream, &captures);
        new.bytes("requested", &captures, 1).count("buffer", &captures, 2);
        found.push(new);
    }
    for captures in HOST.captures_iter(text) {
        let mut new = Found::new(FailureKind::IpuHostBuffer, &captures);
        new.count("buffer", &captures, 1).bytes("requested", &captures, 2).bytes("free", &captures, 3);
        found.push(new);
    }
}

/// The report that the message says was written.
pub fn details(found: &mut Found, section: &str) {
    if found.failure.kind == FailureKind::IpuAllowOom
        && let Some(captures) = REPORT.captures(super::head::head_of(section, 600))
        && let Some(path) = captures.get(1)
    {
        found.put("report", Some(text_value(path.as_str())));
        found.failure.paths.push(path.as_str().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bytes;

    #[test]
    fn messages_are_told_apart() {
        let text = "Memory allocation error : Out of memory on tile 7: 700000 bytes used but tiles only have 638976 bytes of memory\nBuffer 1 needs to be at least 2616922112 Bytes, but remaining host buffer memory is only 268435456\nOut of memory: Cannot fit all variable data onto one or more tiles. It will write a report to ./r/profile.pop\n";
        let mut found = Vec::new();
        find(text, &mut found);
        let kinds: Vec<FailureKind> = found.iter().map(|f| f.failure.kind).collect();
        assert_eq!(kinds, [FailureKind::IpuTile, FailureKind::IpuAllowOom, FailureKind::IpuHostBuffer]);
        assert_eq!(found[0].failure.bytes("used"), Some(Bytes(700_000)));
        assert_eq!(found[2].failure.bytes("free"), Some(Bytes(268_435_456)));
        let end = found[1].end;
        details(&mut found[1], &text[end..]);
        assert_eq!(found[1].failure.paths, ["./r/profile.pop"]);
    }
}
