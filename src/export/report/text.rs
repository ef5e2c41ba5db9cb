//! The report for a terminal: the answer first, then what it rests on.

use std::fmt::Write as _;

use super::schema::{ProfileReport, ProgramReport, Report, SpaceReport};
use crate::model::{Bytes, UnitSystem, percent, thousands};

/// Writes the report as text.
pub fn write(report: &Report) -> String {
    let mut out = String::new();
    for profile in &report.profiles {
        write_profile(&mut out, profile);
    }
    for source in report.sources.iter().filter(|source| source.error.is_some()) {
        let _ = writeln!(out, "not read: {}: {}", source.path, source.error.as_deref().unwrap_or_default());
    }
    out
}

fn write_profile(out: &mut String, profile: &ProfileReport) {
    let device = profile.device.name.as_deref().unwrap_or("device unknown");
    let _ = writeln!(out, "{}  ({device})", profile.name);
    for program in &profile.programs {
        write_program(out, program, profile);
    }
    for note in &profile.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out.push('\n');
}

fn write_program(out: &mut String, program: &ProgramReport, profile: &ProfileReport) {
    let _ = writeln!(out, "program {}", program.name);
    if program.spaces.is_empty() && program.has_buffer_assignment {
        let _ = writeln!(out, "  no memory space of that name");
    }
    // HBM and whatever is over its capacity in full, the small spaces in a line each.
    let (full, brief): (Vec<&SpaceReport>, Vec<&SpaceReport>) = program
        .spaces
        .iter()
        .partition(|space| space.color == 0 || space.verdict == "over" || program.spaces.len() == 1);
    for space in full {
        write_space(out, space, profile);
    }
    for space in brief {
        let of = space.capacity_bytes.map(|c| format!(" of {}", capacity(c))).unwrap_or_default();
        let _ = writeln!(
            out,
            "  {:<10} {} allocated{of}, peak {}",
            space.name,
            short(space.allocated_bytes),
            short(space.reserved_peak_bytes.unwrap_or(space.peak_bytes))
        );
    }
}

fn short(bytes: u64) -> String {
    Bytes(bytes).short()
}

fn capacity(bytes: u64) -> String {
    UnitSystem::Binary.capacity(Bytes(bytes))
}

/// The answer in one line.
pub fn headline(space: &SpaceReport, device: Option<&str>) -> String {
    let where_ = device.map(|device| format!(" on each {device}")).unwrap_or_default();
    let needs = short(space.allocated_bytes);
    match (space.verdict, space.capacity_bytes) {
        ("over", Some(limit)) => format!(
            "Does not fit: {} over. Needs {needs} of {} {}{where_}",
            short(space.over_by_bytes.unwrap_or_default()),
            capacity(limit),
            space.name
        ),
        ("fits", Some(limit)) => format!(
            "Fits: {} to spare. Needs {needs} of {} {}{where_}",
            short(limit.saturating_sub(space.allocated_bytes)),
            capacity(limit),
            space.name
        ),
        _ => format!("Needs {needs} {}; capacity unknown (say it with --capacity)", space.name),
    }
}

fn write_space(out: &mut String, space: &SpaceReport, profile: &ProfileReport) {
    let _ = writeln!(out, "  {}", headline(space, profile.device.name.as_deref()));
    if let Some(evidence) = &space.capacity_evidence {
        let _ = writeln!(out, "    capacity        {evidence}");
    }
    let peak = space.reserved_peak_bytes.unwrap_or(space.peak_bytes);
    let place = match (space.reserved_peak_time, space.time_count, &space.reserved_peak_instruction) {
        (Some(time), Some(count), Some(name)) => format!("step {time} of {count}, {name}"),
        _ => format!("heap event {} of {}", space.peak_event, space.event_count),
    };
    let line = |out: &mut String, label: &str, bytes: u64, rest: &str| {
        let _ = writeln!(out, "    {label:<15} {:>10}  {:>22}  {rest}", short(bytes), Bytes(bytes).exact());
    };
    line(out, "allocated", space.allocated_bytes, "");
    line(out, "peak", peak, &place);
    line(
        out,
        "padding",
        space.padding_at_peak_bytes,
        &format!("{} of the peak", percent(space.padding_at_peak_bytes, peak)),
    );
    line(
        out,
        "fragmentation",
        space.fragmentation_bytes,
        &format!("{} of allocated", percent(space.fragmentation_bytes, space.allocated_bytes)),
    );
    line(out, "arguments", space.parameter_bytes, "");
    line(out, "outputs", space.output_bytes, "");
    for row in &space.by_category {
        line(out, row.category, row.bytes, &format!("{} buffers at the peak", thousands(row.buffers as u64)));
    }
    if !space.at_peak.is_empty() {
        let _ = writeln!(out, "    largest at the peak, {} of {}:", space.at_peak.len(), space.at_peak_count);
        for buffer in &space.at_peak {
            let op = buffer.op_name.as_deref().unwrap_or("");
            let _ = writeln!(
                out,
                "      {:>10}  {:<12} {}  {}  {op}",
                short(buffer.bytes),
                buffer.category,
                buffer.name,
                buffer.shape.as_deref().unwrap_or("")
            );
        }
    }
    for note in &space.notes {
        let _ = writeln!(out, "    note: {note}");
    }
}
