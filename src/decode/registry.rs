//! Selects the decoder of an input by its contents, and describes formats by file name.

use super::DECODERS;
use super::decoder::{Context, DecodeError, Family, Reads};
use crate::model::{Profile, SourceInfo};
use crate::source::{Input, unpacked_name};

/// Description of a file by its name, from the patterns of all decoders; `None` if only the contents can tell.
#[must_use]
pub fn reads_by_name(name: &str) -> Option<Reads> {
    let name = name.to_lowercase();
    let name = unpacked_name(&name);
    let fits = |reads: &Reads| reads.patterns.iter().filter(|pattern| fits(pattern, name)).map(|p| p.len()).max();
    // The longest pattern is the most specific.
    let found = DECODERS.iter().filter_map(|decoder| Some((fits(&decoder.reads())?, decoder.reads())));
    found.max_by_key(|(length, _)| *length).map(|(_, reads)| reads)
}

/// Whether a name matches a pattern, where `*` matches anything.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty()
}

/// All formats that can be opened: one line per family, with the patterns of its decoders.
#[must_use]
pub fn inputs() -> Vec<String> {
    let line = |family: &Family| {
        let reads = DECODERS.iter().map(|decoder| decoder.reads()).filter(|reads| reads.family == *family);
        let patterns: Vec<&str> = reads.flat_map(|reads| reads.patterns).copied().collect();
        format!("{}: {}", family.words(), patterns.join(", "))
    };
    Family::ALL.iter().map(line).collect()
}

/// What can be opened, in a sentence per family without its patterns.
pub fn families() -> impl Iterator<Item = &'static str> {
    Family::ALL.iter().map(|family| family.words())
}

/// Decodes an input with the first decoder that recognises it.
///
/// # Errors
/// If no decoder recognises it, or it could not be read.
pub fn decode(input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
    let Some(decoder) = DECODERS.iter().find(|decoder| decoder.recognises(input)) else {
        return Err(DecodeError::NotAProfile(describe_unknown(input)));
    };
    let mut profile = decoder.decode(input, context)?;
    profile.sources.push(SourceInfo {
        path: input.name().to_owned(),
        format: decoder.format().to_owned(),
        bytes: input.size(),
        ..SourceInfo::default()
    });
    Ok(profile)
}

/// What stands in that error before the formats that are known.
pub const LOOKED_FOR: &str = "; looked for ";

/// Error text for an unrecognised input: what it looks like, and what was expected.
fn describe_unknown(input: &Input) -> String {
    let head = input.head();
    let kind = if head.starts_with(b"\x7fELF") {
        "a program, not a profile"
    } else if head.starts_with(b"\x89PNG") || head.starts_with(b"\xff\xd8\xff") {
        "a picture, not a profile"
    } else if std::str::from_utf8(&head[..head.len().min(4096) - head.len().min(4096) % 4]).is_ok() {
        "unrecognised text"
    } else {
        "unrecognised binary data"
    };
    let known: Vec<&str> = DECODERS.iter().map(|decoder| decoder.format()).collect();
    format!("{kind} (at byte 0){LOOKED_FOR}{}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_by_the_most_specific_pattern() {
        let words = |name: &str| reads_by_name(name).map(|reads| reads.words);
        assert_eq!(
            words("module_0001.jit_f.after_optimizations.hlo.pb.gz"),
            Some("XLA dump: a program with its memory")
        );
        assert_eq!(words("x-memory-usage-report.pb"), Some("XLA's memory usage report"));
        assert_eq!(words("host.XPLANE.pb"), Some("trace: allocator history and its programs"));
        assert_eq!(words("memory_viewer_hbm.json"), Some("XProf's memory viewer"));
        assert_eq!(words("train.log"), Some("text: out-of-memory messages in it"));
        assert_eq!(words("core"), None);
    }

    #[test]
    fn the_readme_names_every_pattern() {
        let readme = include_str!("../../README.md");
        let limit = format!("up to {} GiB and is read into memory", crate::source::MAX_IN_MEMORY >> 30);
        assert!(readme.contains(&limit));
        for decoder in DECODERS {
            for pattern in decoder.reads().patterns {
                assert!(readme.contains(&format!("`{pattern}`")), "{}: {pattern}", decoder.format());
            }
        }
    }
}
