//! The list of formats, in the order in which they are tried.

use super::decoder::{Context, DecodeError, Decoder};
use super::{bfc, hlo, ifrt_trace, oom_text, poplar, pprof, xla_dump, xla_report, xprof_json, xspace};
use crate::model::{Profile, SourceInfo};
use crate::source::Input;

/// Every format. Those with a certain sign come before those that are guessed from text.
pub const DECODERS: &[&dyn Decoder] = &[
    &hlo::HloDecoder,
    &xspace::XSpaceDecoder,
    &xla_dump::TargetArgumentsDecoder,
    &pprof::PprofDecoder,
    &xla_report::UsageProtoDecoder,
    &ifrt_trace::ProgramMemoryTraceDecoder,
    &bfc::BfcDecoder,
    &xprof_json::MemoryProfileDecoder,
    &xprof_json::MemoryViewerDecoder,
    &xla_report::BufferAssignmentDecoder,
    &xla_report::ValuesDecoder,
    &xla_report::UsageTextDecoder,
    &xla_report::BufferInfoDecoder,
    &xla_dump::LiveRangeDecoder,
    &xla_dump::CompileStatsDecoder,
    &poplar::SqlDecoder,
    &poplar::TreeDecoder,
    // Any text at all, so it stays the last.
    &oom_text::OomTextDecoder,
];

/// Decodes an input with the first decoder that recognises it.
///
/// # Errors
/// When no decoder recognises it, or it could not be read.
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

/// What an input is that no decoder knows, and what was looked for.
fn describe_unknown(input: &Input) -> String {
    let head = input.head();
    let kind = if head.starts_with(b"\x7fELF") {
        "a program, not a profile"
    } else if head.starts_with(b"\x89PNG") || head.starts_with(b"\xff\xd8\xff") {
        "a picture, not a profile"
    } else if std::str::from_utf8(&head[..head.len().min(4096) - head.len().min(4096) % 4]).is_ok() {
        "text of no known kind"
    } else {
        "bytes of no known kind"
    };
    let known: Vec<&str> = DECODERS.iter().map(|decoder| decoder.format()).collect();
    format!("{kind} (at byte 0); looked for {}", known.join(", "))
}
