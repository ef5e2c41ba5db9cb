//! The report as text for a terminal: the answer first, then the evidence.

use std::fmt::Write as _;

use super::schema::{BufferReport, PeakBufferReport, PeakReport, ProfileReport, ProgramReport, Report, SpaceReport};
use super::what_if::WhatIfReport;
use super::words::{buffers, largest_of};
use super::{caching_text, runtime_text};
use crate::analysis::live_at::Residency;
use crate::model::{Bytes, TpuGeneration, UnitSystem, percent, thousands};

/// Writes the report as text.
pub fn write(report: &Report) -> String {
    let mut out = whole(report);
    // Backquotes mark code for Markdown only; a terminal has no other typeface for it.
    out.retain(|c| c != '`');
    out
}

fn whole(report: &Report) -> String {
    let mut out = String::new();
    for profile in &report.profiles {
        write_profile(&mut out, profile);
    }
    out
}

fn write_profile(out: &mut String, profile: &ProfileReport) {
    let _ = writeln!(out, "{}  ({})", profile.name, device(profile));
    if let Some(cut) = &profile.partly_read {
        let _ = writeln!(out, "partly read, so these are the least numbers: {cut}");
    }
    for program in &profile.programs {
        write_program(out, program, profile);
    }
    for failure in &profile.failures {
        failure.write_text(out);
    }
    for device in &profile.caching_allocators {
        caching_text::write(out, device);
    }
    for allocator in &profile.runtime {
        runtime_text::write_allocator(out, allocator);
    }
    if let Some(live) = &profile.live {
        runtime_text::write_snapshot(out, live);
    }
    if let Some(tiles) = &profile.tiles {
        super::tiles::write_text(out, tiles);
    }
    super::findings::write_text(out, &profile.findings, &profile.plans, &profile.batches);
    for note in &profile.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out.push('\n');
}

/// The device in words: its name, else its kind; with the chips of the topology that was compiled for, which is that of
/// the hosts and may be larger than what the programs run on.
pub fn device(profile: &ProfileReport) -> String {
    let device = &profile.device;
    let kind = || device.kind.map(str::to_ascii_uppercase);
    let name = device.name.clone().or_else(kind).unwrap_or_else(|| "device unknown".to_owned());
    let (Some(per_host), Some(hosts)) = (device.chips_per_host, device.hosts) else { return name };
    let chips = per_host.saturating_mul(hosts);
    if chips <= 1 {
        return name;
    }
    let devices = chips.saturating_mul(devices_per_chip(profile));
    let is_all = profile.programs.iter().any(|program| program.devices.map(u64::from) == Some(devices))
        && profile.programs.iter().all(|program| program.devices.is_none_or(|own| u64::from(own) == devices));
    let chips = if is_all { format!("{chips} chips") } else { format!("a topology of {chips} chips") };
    if hosts > 1 {
        format!("{name}, {chips}, {per_host} per host on {hosts} hosts")
    } else {
        format!("{name}, {chips}")
    }
}

/// Devices of a chip, each with a memory of its own.
fn devices_per_chip(profile: &ProfileReport) -> u64 {
    let generation = profile.device.name.as_deref().and_then(TpuGeneration::by_name);
    generation.map_or(1, |generation| u64::from(generation.devices_per_chip).max(1))
}

/// How many devices a program runs on, in words; empty where the chips named with the device say it, or nothing does.
pub fn runs_on(program: &ProgramReport, profile: &ProfileReport) -> String {
    let chips =
        profile.device.chips_per_host.zip(profile.device.hosts).map(|(chips, hosts)| chips.saturating_mul(hosts));
    match (program.devices, chips) {
        (Some(devices), Some(chips)) if u64::from(devices) == chips && devices_per_chip(profile) == 1 => String::new(),
        (Some(1), None) | (None, _) => String::new(),
        (Some(1), Some(_)) => " on 1 device".to_owned(),
        (Some(devices), _) => format!(" on {} devices", thousands(u64::from(devices))),
    }
}

fn write_program(out: &mut String, program: &ProgramReport, profile: &ProfileReport) {
    let _ = writeln!(out, "program {}{}", program.name, runs_on(program, profile));
    for instruction in &program.instructions {
        instruction.write_text(out);
    }
    if program.spaces.is_empty() && program.has_buffer_assignment {
        let _ = writeln!(out, "  no memory space to show");
    }
    // HBM and any space over capacity in full, the other spaces one line each.
    let (full, brief): (Vec<&SpaceReport>, Vec<&SpaceReport>) = program
        .spaces
        .iter()
        .partition(|space| space.color == 0 || space.verdict == "over" || program.spaces.len() == 1);
    for space in full {
        write_space(out, space, profile);
    }
    // A space that nothing is in says nothing.
    let brief: Vec<&SpaceReport> = brief.into_iter().filter(|space| space.allocated_bytes > 0).collect();
    if !brief.is_empty() {
        let _ = writeln!(out, "    {:<17} {:>10} {:>11} {:>11}", "other spaces", "allocated", "peak", "capacity");
    }
    for space in brief {
        let _ = writeln!(
            out,
            "      {:<15} {:>10} {:>11} {:>11}",
            space.name,
            short(space.allocated_bytes),
            space.peak.bytes.map_or_else(|| "unknown".to_owned(), short),
            space.capacity_bytes.map_or_else(|| "\u{2013}".to_owned(), capacity)
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
    let where_ = device.map(|device| format!(" on each {}", TpuGeneration::unit_of(device))).unwrap_or_default();
    let allocated = Bytes(space.allocated_bytes);
    let needs = space
        .capacity_bytes
        .map_or_else(|| allocated.short(), |limit| UnitSystem::Binary.beside(allocated, Bytes(limit)));
    match (space.verdict, space.capacity_bytes) {
        ("over", Some(limit)) => {
            let (over, of, name) = (short(space.over_by_bytes.unwrap_or_default()), capacity(limit), &space.name);
            match device.map(TpuGeneration::unit_of) {
                Some(unit) => format!("Does not fit: {over} over. Needs {needs}; each {unit} has {of} {name}"),
                None => format!("Does not fit: {over} over. Needs {needs} of {of} {name}"),
            }
        }
        ("fits", Some(limit)) => format!(
            "Fits: {} to spare. Needs {needs} of {} {}{where_}",
            short(limit.saturating_sub(space.allocated_bytes)),
            capacity(limit),
            space.name
        ),
        (_, Some(limit)) => format!(
            "Did not fit: takes {needs} of {} {}{where_}, beside what else was in memory",
            capacity(limit),
            space.name
        ),
        _ if space.peak.is_listing => {
            format!("Needs {needs} {}, more than was left for it (see the message below)", space.name)
        }
        _ => format!("Needs {needs} {}. Capacity unknown (give it with --capacity)", space.name),
    }
}

fn write_space(out: &mut String, space: &SpaceReport, profile: &ProfileReport) {
    let _ = writeln!(out, "  {}", headline(space, profile.device.name.as_deref()));
    let line = |out: &mut String, label: &str, bytes: u64, rest: &str| {
        let text = format!("    {label:<17} {:>10}  {:>22}  {rest}", short(bytes), Bytes(bytes).exact());
        let _ = writeln!(out, "{}", text.trim_end());
    };
    if let Some(bytes) = space.capacity_bytes {
        let evidence = space.capacity_evidence.as_deref().unwrap_or_default();
        let _ =
            writeln!(out, "    {:<17} {:>10}  {:>22}  {evidence}", "capacity", capacity(bytes), Bytes(bytes).exact());
    }
    let (peak, is_listing) = (space.peak.bytes, space.peak.is_listing);
    let of_what = space.peak.place();
    let place = match (space.peak.step, space.time_count, &space.reserved_peak_instruction) {
        (Some(time), Some(count), Some(name)) => {
            format!("at step {time} of {count}, {name}")
        }
        _ if space.event_count == 0 => String::new(),
        _ => format!("at heap event {} of {}", space.peak_event.unwrap_or_default(), space.event_count),
    };
    line(out, "allocated", space.allocated_bytes, "");
    if let Some(peak) = peak {
        line(out, if is_listing { "listed" } else { "peak" }, peak, &place);
    } else {
        let _ = writeln!(out, "    {:<17} unknown: this report has none", "peak");
    }
    if let (Some(padding), Some(peak)) = (space.peak.padding_bytes, peak) {
        line(
            out,
            "padding",
            padding,
            &format!("{} of {}", percent(padding, peak), if is_listing { "what is listed" } else { "the peak" }),
        );
    }
    if let Some(fragmentation) = space.peak.fragmentation_bytes {
        let share = percent(fragmentation, space.allocated_bytes);
        line(out, "fragmentation", fragmentation, &format!("{share} of allocated"));
    }
    for (label, bytes) in [("arguments", space.parameter_bytes), ("outputs", space.output_bytes)] {
        // The list of a message says nothing of what is not in it.
        if bytes > 0 || space.peak.fragmentation_bytes.is_some() {
            line(out, label, bytes, "");
        }
    }
    let PeakReport { by_category, by_class, .. } = &space.peak;
    if !by_category.is_empty() {
        let _ = writeln!(out, "    {of_what}, by category");
    }
    for row in by_category {
        line(out, &format!("  {}", row.category), row.bytes, &buffers(row.buffers));
    }
    if by_class.iter().any(|row| by_category.iter().all(|other| other.category != row.class)) {
        let _ = writeln!(out, "    {of_what}, by class (most likely)");
        for row in by_class {
            let guess = row.guess_in_words().unwrap_or_default();
            line(out, &format!("  {}", row.class), row.bytes, &format!("{}{guess}", buffers(row.buffers)));
        }
    }
    super::padding::write(out, &space.padding_by_shape, peak, is_listing);
    write_what_if(out, space);
    if let Some(range) = &space.range {
        range.write_text(out);
    }
    for tree in &space.trees {
        tree.write_text(out);
    }
    let is_changed = space.what_if.is_some() || !space.what_if_sets.is_empty();
    write_at_peak(out, &space.peak, if is_changed { " without the changes" } else { "" });
    for note in &space.notes {
        let _ = writeln!(out, "    note: {note}");
    }
}

/// Writes the outcome of changes.
fn write_what_if(out: &mut String, space: &SpaceReport) {
    if let Some(what_if) = &space.what_if {
        write_one_what_if(out, space, "", what_if);
    }
    if let Some(sentence) = &space.what_if_unpredicted {
        let _ = writeln!(out, "    what if: {sentence}");
    }
    for set in &space.what_if_sets {
        if let Some(what_if) = &set.what_if {
            write_one_what_if(out, space, &format!("{}: ", set.name), what_if);
        }
        if let Some(sentence) = &set.unpredicted {
            let _ = writeln!(out, "    what if {}: {sentence}", set.name);
        }
    }
}

fn write_one_what_if(out: &mut String, space: &SpaceReport, name: &str, what_if: &WhatIfReport) {
    let _ = writeln!(out, "    what if {name}{}: {}", what_if.edits.join("; "), what_if.summary);
    let expected = what_if.expected_bytes();
    // Bytes outside their own range are those for no more recomputation than now.
    let is_within = expected <= what_if.allocated_range_bytes.1;
    if what_if.is_told && !is_within {
        let (peak, allocated) = (what_if.peak_bytes.short(), expected.short());
        let _ = writeln!(
            out,
            "      {:<15} {allocated}, {peak} of it at the peak, if the compiler recomputed no more than it does now",
            "allocated"
        );
    }
    let mut line = |label: &str, bytes: Bytes, before: Option<u64>| {
        let change = before.map(|before| UnitSystem::Binary.signed(i128::from(bytes.0) - i128::from(before)));
        let change = change.unwrap_or_default();
        let _ = writeln!(out, "      {label:<15} {:>10}  {:>22}  {change}", bytes.short(), bytes.exact());
    };
    if what_if.is_told && is_within {
        line("peak", what_if.peak_bytes, space.peak_bytes);
        line("allocated", expected, Some(space.allocated_bytes));
    }
    line("always live", what_if.base_bytes, Some(space.always_live_bytes));
    let (low, high) = what_if.allocated_range_bytes;
    if what_if.is_told && low != high {
        let _ = writeln!(out, "      {:<15} {} to {} allocated", "range", low.short(), high.short());
    }
    if let Some(band) = what_if.band.as_ref().filter(|_| what_if.is_told) {
        let _ = writeln!(out, "      prediction      {band}");
    }
    for warning in &what_if.warnings {
        let _ = writeln!(out, "      caution: {warning}");
    }
    write_left(out, what_if);
}

/// Writes what stands at the peak after changes.
fn write_left(out: &mut String, what_if: &WhatIfReport) {
    if what_if.at_peak.is_empty() {
        return;
    }
    let (shown, all) = (what_if.at_peak.len(), what_if.at_peak_count);
    let which = largest_of(shown, all).unwrap_or_else(|| format!("all {all}"));
    let _ = writeln!(out, "      left at the peak, {which} (names and shapes are those without the changes)");
    for PeakBufferReport { bytes_at_peak, added, buffer } in &what_if.at_peak {
        if let Some(words) = added {
            let _ = writeln!(out, "        {:>10}  {words}, 0 B before", short(*bytes_at_peak));
            continue;
        }
        let before =
            if *bytes_at_peak == buffer.bytes { String::new() } else { format!(", {} before", short(buffer.bytes)) };
        let shape = buffer.shape.as_deref().unwrap_or_default();
        let (name, own_name) = buffer.names();
        let text = format!("        {:>10}  {name}  {shape}  {own_name}{before}", short(*bytes_at_peak));
        let _ = writeln!(out, "{}", text.trim_end());
    }
    for &(bytes, why) in &what_if.besides {
        let _ = writeln!(out, "        {:>10}  besides: {why}", UnitSystem::Binary.signed(bytes.into()));
    }
}

/// Columns are aligned up to this width; a longer name shifts only its own row.
const WIDEST: usize = 60;

fn write_at_peak(out: &mut String, peak: &PeakReport, of_what: &str) {
    if peak.buffers.is_empty() {
        return;
    }
    let (shown, all) = (peak.buffers.len(), peak.buffer_count);
    let which = largest_of(shown, all).unwrap_or_else(|| format!("all {all}"));
    let _ = writeln!(out, "    {}{of_what}, {which}", peak.place());
    let width = |text: &dyn Fn(&BufferReport) -> usize| {
        peak.buffers.iter().map(|row| text(&row.buffer)).filter(|&width| width <= WIDEST).max().unwrap_or(0)
    };
    let names = width(&|buffer| buffer.names().0.chars().count());
    let shapes = width(&|buffer| buffer.shape.as_deref().unwrap_or_default().chars().count());
    for PeakBufferReport { bytes_at_peak, buffer, .. } in &peak.buffers {
        let (name, own_name) = buffer.names();
        let text = format!(
            "      {:>10}  {:<12}  {name:<names$}  {:<shapes$}  {own_name}",
            short(*bytes_at_peak),
            buffer.category,
            buffer.shape.as_deref().unwrap_or("")
        );
        let _ = writeln!(out, "{}", text.trim_end());
        // Of arguments only where they are read no more.
        let is_told = |spans: &Residency| !spans.is_throughout() || peak.step.is_some_and(|step| spans.is_past(step));
        let spans = buffer.spans().filter(is_told);
        if let Some(spans) = spans
            && let Some(words) = spans.note("step", || buffer.in_memory_of.as_deref())
        {
            // The name is that of what the argument's memory holds then.
            let is_later = spans.in_argument && peak.step.is_some_and(|step| spans.written.0 > step);
            let _ = writeln!(out, "      {:>10}  {words}{}", "", if is_later { ", which is later" } else { "" });
        }
        if *bytes_at_peak < buffer.bytes {
            let _ = writeln!(out, "      {:>10}  of {}; others share the rest", "", short(buffer.bytes));
        }
    }
}
