//! The report as Markdown, for an issue or a chat.

use std::fmt::Write as _;

use super::runtime_text;
use super::schema::{ProfileReport, Report, SpaceReport, StandingReport};
use super::text::{device, headline};
use super::what_if::WhatIfReport;
use super::words::{buffers, code, escape};
use crate::model::{Bytes, percent};

/// Writes the report as Markdown.
pub fn write(report: &Report) -> String {
    let mut out = String::new();
    for profile in &report.profiles {
        let _ = writeln!(out, "## {} ({})\n", escape(&profile.name), device(profile));
        for failure in &profile.failures {
            failure.write_markdown(&mut out, escape);
        }
        for program in &profile.programs {
            let _ = writeln!(out, "### {}\n", escape(&program.name));
            for instruction in &program.instructions {
                instruction.write_markdown(&mut out);
            }
            for space in &program.spaces {
                write_space(&mut out, space, profile);
            }
        }
        if let Some(tiles) = &profile.tiles {
            super::tiles::write_markdown(&mut out, tiles);
        }
        super::findings::write_markdown(&mut out, &profile.findings, &profile.plans, &profile.batches, &escape);
        let mut text = String::new();
        for allocator in &profile.runtime {
            runtime_text::write_allocator(&mut text, allocator);
        }
        if let Some(live) = &profile.live {
            runtime_text::write_snapshot(&mut text, live);
        }
        if !text.is_empty() {
            let _ = writeln!(out, "```text\n{text}```\n");
        }
        for note in &profile.notes {
            let _ = writeln!(out, "> {}\n", escape(note));
        }
    }
    for source in report.sources.iter().filter(|source| source.error.is_some()) {
        let error = source.error.as_deref().unwrap_or_default();
        let _ = writeln!(out, "Not read completely: {}: {}\n", code(&source.path), escape(error));
    }
    out
}

fn write_space(out: &mut String, space: &SpaceReport, profile: &ProfileReport) {
    let _ = writeln!(out, "**{}**\n", escape(&headline(space, profile.device.name.as_deref())));
    if let Some(evidence) = &space.capacity_evidence {
        let _ = writeln!(out, "Capacity: {}\n", escape(evidence));
    }
    let peak = space.peak.bytes;
    let _ = writeln!(out, "| {} | size | bytes |\n|---|---:|---:|", escape(&space.name));
    for (label, bytes) in [
        ("allocated", Some(space.allocated_bytes)),
        ("peak", peak),
        ("padding at the peak", space.peak.padding_bytes),
        ("fragmentation", space.peak.fragmentation_bytes),
        ("arguments", Some(space.parameter_bytes)),
        ("outputs", Some(space.output_bytes)),
    ] {
        let Some(bytes) = bytes else { continue };
        let _ = writeln!(out, "| {label} | {} | {} |", Bytes(bytes).short(), Bytes(bytes).exact());
    }
    for row in &space.peak.by_category {
        let what = format!("at the peak: {}, {}", row.category, buffers(row.buffers));
        let _ = writeln!(out, "| {what} | {} | {} |", Bytes(row.bytes).short(), Bytes(row.bytes).exact());
    }
    for row in &space.peak.by_class {
        let guess = row.guess_in_words().unwrap_or_default();
        let what = format!("at the peak, most likely: {}, {}{guess}", row.class, buffers(row.buffers));
        let _ = writeln!(out, "| {what} | {} | {} |", Bytes(row.bytes).short(), Bytes(row.bytes).exact());
    }
    out.push('\n');
    super::padding::write_markdown(out, &space.padding_by_shape);
    if let Some(what_if) = &space.what_if {
        write_what_if(out, space, "", what_if);
    }
    if let Some(why) = &space.what_if_undecided {
        let _ = writeln!(out, "What if: not predicted: {}\n", escape(why));
    }
    for set in &space.what_if_sets {
        if let Some(what_if) = &set.what_if {
            write_what_if(out, space, &format!("**{}**: ", escape(&set.name)), what_if);
        }
        if let Some(why) = &set.undecided {
            let _ = writeln!(out, "What if **{}**: not predicted: {}\n", escape(&set.name), escape(why));
        }
    }
    if let Some(range) = &space.range {
        range.write_markdown(out);
    }
    for tree in &space.trees {
        tree.write_markdown(out);
    }
    if !space.peak.buffers.is_empty() {
        let _ =
            writeln!(out, "| size | share of the peak | category | buffer | shape | op |\n|---:|---:|---|---|---|---|");
        for StandingReport { bytes_at_peak, buffer } in &space.peak.buffers {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} |",
                Bytes(*bytes_at_peak).short(),
                percent(*bytes_at_peak, peak.unwrap_or(0)),
                buffer.category,
                code(&buffer.name),
                code(buffer.shape.as_deref().unwrap_or("")),
                escape(buffer.in_words())
            );
        }
        out.push('\n');
    }
    for note in &space.notes {
        let _ = writeln!(out, "> {}\n", escape(note));
    }
}

/// Writes the outcome of changes.
fn write_what_if(out: &mut String, space: &SpaceReport, name: &str, what_if: &WhatIfReport) {
    let edits: Vec<String> = what_if.edits.iter().map(|edit| code(edit)).collect();
    let _ = writeln!(out, "What if {name}{}: {}\n", edits.join(", "), what_if.summary);
    let _ = writeln!(out, "| | before | after |\n|---|---:|---:|");
    for (label, before, after) in [
        ("peak", space.peak_bytes, what_if.peak_bytes),
        ("allocated", Some(space.allocated_bytes), what_if.expected_bytes()),
        ("always live", Some(space.always_live_bytes), what_if.base_bytes),
    ] {
        let before = before.map_or_else(|| "\u{2013}".to_owned(), |b| Bytes(b).short());
        let _ = writeln!(out, "| {label} | {before} | {} |", after.short());
    }
    out.push('\n');
    for warning in &what_if.warnings {
        let _ = writeln!(out, "> caution: {}\n", escape(warning));
    }
}
