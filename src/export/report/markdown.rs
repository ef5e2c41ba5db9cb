//! The report for an issue or a chat.

use std::fmt::Write as _;

use super::schema::{ProfileReport, Report, SpaceReport};
use super::text::headline;
use crate::model::{Bytes, percent};

/// Writes the report as Markdown.
pub fn write(report: &Report) -> String {
    let mut out = String::new();
    for profile in &report.profiles {
        let device = profile.device.name.as_deref().unwrap_or("device unknown");
        let _ = writeln!(out, "## {} ({device})\n", escape(&profile.name));
        for program in &profile.programs {
            let _ = writeln!(out, "### {}\n", escape(&program.name));
            for space in &program.spaces {
                write_space(&mut out, space, profile);
            }
        }
        for note in &profile.notes {
            let _ = writeln!(out, "> {}\n", escape(note));
        }
    }
    for source in report.sources.iter().filter(|source| source.error.is_some()) {
        let error = source.error.as_deref().unwrap_or_default();
        let _ = writeln!(out, "Not read: `{}`: {}\n", source.path, escape(error));
    }
    out
}

/// Keeps text from being taken for Markdown.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace('*', "\\*").replace('_', "\\_").replace('`', "\\`")
}

fn write_space(out: &mut String, space: &SpaceReport, profile: &ProfileReport) {
    let _ = writeln!(out, "**{}**\n", escape(&headline(space, profile.device.name.as_deref())));
    if let Some(evidence) = &space.capacity_evidence {
        let _ = writeln!(out, "Capacity: {}\n", escape(evidence));
    }
    let peak = space.reserved_peak_bytes.unwrap_or(space.peak_bytes);
    let _ = writeln!(out, "| | | bytes |\n|---|---:|---:|");
    for (label, bytes) in [
        ("allocated", space.allocated_bytes),
        ("peak", peak),
        ("padding at the peak", space.padding_at_peak_bytes),
        ("fragmentation", space.fragmentation_bytes),
        ("arguments", space.parameter_bytes),
        ("outputs", space.output_bytes),
    ] {
        let _ = writeln!(out, "| {label} | {} | {} |", Bytes(bytes).short(), Bytes(bytes).exact());
    }
    out.push('\n');
    if !space.at_peak.is_empty() {
        let _ =
            writeln!(out, "| size | share of the peak | category | buffer | shape | op |\n|---:|---:|---|---|---|---|");
        for buffer in &space.at_peak {
            let _ = writeln!(
                out,
                "| {} | {} | {} | `{}` | `{}` | {} |",
                Bytes(buffer.bytes).short(),
                percent(buffer.bytes, peak),
                buffer.category,
                buffer.name,
                buffer.shape.as_deref().unwrap_or(""),
                escape(buffer.op_name.as_deref().unwrap_or(""))
            );
        }
        out.push('\n');
    }
    for note in &space.notes {
        let _ = writeln!(out, "> {}\n", escape(note));
    }
}
