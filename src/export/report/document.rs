//! The report as a document, from which Markdown and HTML are written.

use super::schema::{PeakBufferReport, PeakReport, ProfileReport, Report, SpaceReport};
use super::text::{device, headline, runs_on};
use super::what_if::WhatIfReport;
use super::words::{buffers, largest_of};
use super::{caching_text, runtime_text};
use crate::export::document::{Block, Document, Line, Table, Tone};
use crate::model::{Bytes, UnitSystem, capitalised, percent};

/// The report as a document.
pub fn document(report: &Report) -> Document {
    let mut out = Document::default();
    for profile in &report.profiles {
        out.heading(2, format!("{} ({})", profile.name, device(profile)));
        if let Some(cut) = &profile.partly_read {
            out.paragraph(format!("Partly read, so these are the least numbers: {cut}"));
        }
        for failure in &profile.failures {
            failure.document(&mut out);
        }
        for program in &profile.programs {
            out.heading(3, format!("{}{}", program.name, runs_on(program, profile)));
            for instruction in &program.instructions {
                instruction.document(&mut out);
            }
            for space in &program.spaces {
                add_space(&mut out, space, profile);
            }
        }
        for device in &profile.caching_allocators {
            caching_text::document(&mut out, device);
        }
        if let Some(tiles) = &profile.tiles {
            super::tiles::document(&mut out, tiles);
        }
        super::findings::document(&mut out, &profile.findings, &profile.plans, &profile.batches);
        let mut text = String::new();
        for allocator in &profile.runtime {
            runtime_text::write_allocator(&mut text, allocator);
        }
        if let Some(live) = &profile.live {
            runtime_text::write_snapshot(&mut text, live);
        }
        out.code(text);
        for note in &profile.notes {
            out.note(note);
        }
    }
    for source in report.sources.iter().filter(|source| source.error.is_some()) {
        let error = source.error.as_deref().unwrap_or_default();
        out.paragraph(Line::from("Not read completely: ").then_code(&source.path).then(format!(": {error}")));
    }
    out
}

fn add_space(out: &mut Document, space: &SpaceReport, profile: &ProfileReport) {
    let headline = headline(space, profile.device.name.as_deref());
    out.blocks.push(Block::Answer(headline.into(), Tone::of(space.verdict)));
    if let Some(evidence) = &space.capacity_evidence {
        out.paragraph(format!("Capacity: {evidence}"));
    }
    let peak = space.peak.bytes;
    if let Some(picture) = &space.picture {
        out.blocks.extend(super::svg::pictures(space, picture).into_iter().map(Block::Picture));
    }
    add_sizes(out, space, peak);
    super::padding::document(out, &space.padding_by_shape, peak, space.peak.is_listing);
    if let Some(what_if) = &space.what_if {
        add_what_if(out, space, Line::from("What if "), what_if);
    }
    if let Some(sentence) = &space.what_if_unpredicted {
        out.paragraph(format!("What if: {sentence}"));
    }
    for set in &space.what_if_sets {
        let head = || Line::from("What if ").then_strong(&set.name);
        if let Some(what_if) = &set.what_if {
            add_what_if(out, space, head().then(": "), what_if);
        }
        if let Some(sentence) = &set.unpredicted {
            out.paragraph(head().then(format!(": {sentence}")));
        }
    }
    if let Some(range) = &space.range {
        range.document(out);
    }
    for tree in &space.trees {
        tree.document(out);
    }
    add_at_peak(out, &space.peak);
    for note in &space.notes {
        out.note(note);
    }
}

/// The sizes of a space, in all and at its peak.
fn add_sizes(out: &mut Document, space: &SpaceReport, peak: Option<u64>) {
    let mut table = Table::new([space.name.as_str(), ">size", ">bytes"]);
    let mut row = |what: String, bytes: u64| table.row([Line::from(what), Line::size(bytes), Line::exact(bytes)]);
    let is_listing = space.peak.is_listing;
    let place = space.peak.place();
    for (label, bytes) in [
        ("allocated", Some(space.allocated_bytes)),
        (if is_listing { "listed" } else { "peak" }, peak),
        (if is_listing { "padding" } else { "padding at the peak" }, space.peak.padding_bytes),
        ("fragmentation", space.peak.fragmentation_bytes),
        ("arguments", Some(space.parameter_bytes)),
        ("outputs", Some(space.output_bytes)),
    ] {
        if let Some(bytes) = bytes {
            row(label.to_owned(), bytes);
        }
    }
    for category in &space.peak.by_category {
        row(format!("{place}: {}, {}", category.category, buffers(category.buffers)), category.bytes);
    }
    for class in &space.peak.by_class {
        let guess = class.guess_in_words().unwrap_or_default();
        row(format!("{place}, most likely: {}, {}{guess}", class.class, buffers(class.buffers)), class.bytes);
    }
    out.table(table);
}

fn add_at_peak(out: &mut Document, peak: &PeakReport) {
    let share = if peak.is_listing { ">share of the list" } else { ">share of the peak" };
    let mut table = Table::new([">size", share, "category", "op", "shape", "buffer"]);
    let which = largest_of(peak.buffers.len(), peak.buffer_count);
    table.caption =
        format!("{}{}", capitalised(peak.place()), which.map(|which| format!(", {which}")).unwrap_or_default());
    for &PeakBufferReport { bytes_at_peak, ref buffer, .. } in &peak.buffers {
        table.row([
            Line::size(bytes_at_peak),
            Line::from(percent(bytes_at_peak, peak.bytes.unwrap_or(0))).sorted_by(bytes_at_peak.into()),
            Line::from(buffer.category),
            Line::from(buffer.in_words()),
            Line::code(buffer.shape.as_deref().unwrap_or_default()),
            Line::code(&buffer.name),
        ]);
    }
    out.table(table);
}

/// The outcome of changes.
fn add_what_if(out: &mut Document, space: &SpaceReport, head: Line, what_if: &WhatIfReport) {
    out.paragraph(head.then_codes(&what_if.edits).then(format!(": {}", what_if.summary)));
    let mut table = Table::new(["", ">before", ">after"]);
    let rows = [
        ("peak", space.peak_bytes, what_if.peak_bytes, what_if.is_told),
        ("allocated", Some(space.allocated_bytes), what_if.expected_bytes(), what_if.is_told),
        ("always live", Some(space.always_live_bytes), what_if.base_bytes, true),
    ];
    for (label, before, after, _) in rows.into_iter().filter(|row| row.3) {
        let before = before.map_or_else(|| "\u{2013}".to_owned(), |bytes| Bytes(bytes).short());
        table.row([label.into(), before.into(), Line::size(after.0)]);
    }
    out.table(table);
    for warning in &what_if.warnings {
        out.note(format!("caution: {warning}"));
    }
    if !what_if.at_peak.is_empty() {
        add_left(out, what_if);
    }
}

/// What stands at the peak after changes.
fn add_left(out: &mut Document, what_if: &WhatIfReport) {
    let which = largest_of(what_if.at_peak.len(), what_if.at_peak_count);
    out.paragraph(format!("Left at the peak{}:", which.map(|which| format!(", {which}")).unwrap_or_default()));
    let mut table = Table::new([">size", ">without the changes", "op", "shape without the changes", "buffer"]);
    for &PeakBufferReport { bytes_at_peak, ref buffer, added } in &what_if.at_peak {
        if let Some(words) = added {
            table.row([Line::size(bytes_at_peak), Line::size(0), Line::from(words), Line::code(""), Line::code("")]);
            continue;
        }
        table.row([
            Line::size(bytes_at_peak),
            Line::size(buffer.bytes),
            Line::from(buffer.in_words()),
            Line::code(buffer.shape.as_deref().unwrap_or_default()),
            Line::code(&buffer.name),
        ]);
    }
    for &(bytes, why) in &what_if.besides {
        table.row([
            Line::from(UnitSystem::Binary.signed(bytes.into())),
            Line::from(""),
            Line::from(format!("besides: {why}")),
            Line::code(""),
            Line::code(""),
        ]);
    }
    out.table(table);
}
