//! PyTorch's caching allocator as text, Markdown and HTML.

use std::fmt::Write as _;

use super::caching::{CachingReport, FailureDetail, PinReport, StackReport};
use crate::export::document::{Block, Document, Line, Table, Tone};
use crate::model::{Bytes, counted, percent, thousands};

fn short(bytes: u64) -> String {
    Bytes(bytes).short()
}

/// The event of a moment in words.
fn event(event: i64) -> String {
    match u64::try_from(event) {
        Ok(event) => format!("at event {}", thousands(event)),
        Err(_) => "before the first event".to_owned(),
    }
}

impl CachingReport {
    /// The answer in one line.
    fn headline(&self) -> String {
        let device = format!("cuda:{}", self.device);
        match self.failure_details.last() {
            Some(failure) => format!("{device}: {}", failure.headline),
            None if self.events == 0 => {
                format!(
                    "{device}: {} allocated of {} reserved; the file has no history",
                    short(self.at_end.allocated_bytes),
                    short(self.at_end.reserved_bytes)
                )
            }
            None => format!(
                "{device}: at most {} allocated and {} reserved in {}",
                short(self.peak.allocated.bytes),
                short(self.peak.reserved.bytes),
                counted(self.events as u64, "event")
            ),
        }
    }

    /// (label, bytes, remark) of the sizes, the most important first.
    fn sizes(&self) -> Vec<(String, u64, String)> {
        let mut rows = Vec::new();
        let mut row = |label: &str, bytes: u64, remark: String| rows.push((label.to_owned(), bytes, remark));
        if let Some(failed) = self.failures.last() {
            let detail = self.failure_details.last();
            row("requested", failed.requested_bytes, event(failed.event));
            row("needed of driver", failed.segment_bytes, String::new());
            row("free in driver", failed.device_free_bytes, String::new());
            row(
                "free, same pool",
                failed.free_same_pool_bytes,
                format!("largest {}", short(failed.largest_free_same_pool)),
            );
            row("free, other pools", failed.free_other_stream_or_pool_bytes, String::new());
            row("free, other sizes", failed.free_other_size_class_bytes, String::new());
            let missing = detail.map(|detail| detail.why.clone()).unwrap_or_default();
            row("missing in all", failed.short_by_bytes, missing);
        }
        if let Some(limit) = self.limit_at_least_bytes {
            row("limit, at least", limit, "reserved and free in the driver when a request failed".to_owned());
        }
        let peak = &self.peak;
        row("peak allocated", peak.allocated.bytes, event(peak.allocated.event));
        row("peak requested", peak.requested.bytes, event(peak.requested.event));
        row("peak active", peak.active.bytes, event(peak.active.event));
        row("peak reserved", peak.reserved.bytes, event(peak.reserved.event));
        let end = &self.at_end;
        let whole = short(end.whole_free_segments_bytes);
        row(
            "allocated at end",
            end.allocated_bytes,
            format!("{} blocks in {} segments", thousands(end.blocks), thousands(end.segments)),
        );
        row("reserved at end", end.reserved_bytes, format!("{whole} of it in segments without any block"));
        row("free at end", end.inactive_bytes, format!("the largest block {}", short(end.largest_free_block)));
        row("lost to rounding", end.rounding_bytes, percent(end.rounding_bytes, end.active_bytes));
        if end.pending_free_bytes > 0 {
            row("waiting for streams", end.pending_free_bytes, "freed, but a stream still uses it".to_owned());
        }
        if end.private_pool_bytes > 0 {
            row("private pools", end.private_pool_bytes, counted(end.pools, "pool"));
        }
        if self.before.blocks > 0 {
            let remark = format!("{} of unknown origin; start recording earlier", counted(self.before.blocks, "block"));
            row("older than history", self.before.requested_bytes, remark);
        }
        rows
    }

    /// Sentences on the steps; none without steps.
    fn steps_in_words(&self) -> Vec<String> {
        let Some(steps) = &self.steps else { return Vec::new() };
        let count = steps.live_at_end.len() as u64;
        let last = steps.live_at_end.last().copied().unwrap_or(0);
        let mut text = format!("{}, {} live after the last", counted(count, "optimizer step"), short(last));
        if steps.leak_bytes_per_step > 0 {
            let leak = Bytes(steps.leak_bytes_per_step);
            let _ = write!(text, "; each leaves {} ({}) behind that is never freed", leak.short(), leak.exact());
        }
        let mut lines = vec![text];
        for row in &self.leak_by_stack {
            let at = row.at.as_deref().unwrap_or("no Python frames");
            let bytes = short(row.bytes_per_step);
            lines.push(format!("left behind by each step: {bytes} in {}, {at}", counted(row.count, "allocation")));
        }
        lines
    }

    /// What must be known about the numbers.
    fn remarks(&self) -> Vec<String> {
        let mut lines = self.problems.clone();
        if !self.block_sizes_exact {
            lines.push(
                "blocks that were freed but are older than the history count with their least size, so allocated and \
                 active bytes are lower bounds"
                    .to_owned(),
            );
        }
        if self.events > 0 && !self.replay_equals_end {
            lines.push(
                "the history does not lead to the state at the end of the file; the curves are approximate".to_owned(),
            );
        }
        lines
    }

    /// Blocks that hold back free memory, those alike together with their number.
    fn folded_pins(&self) -> Vec<(&PinReport, usize)> {
        let kind = |pin: &PinReport| (pin.bytes, pin.free_bytes, pin.segment_bytes, pin.is_alone, pin.at.clone());
        let mut folded: Vec<(&PinReport, usize)> = Vec::new();
        for pin in &self.pins {
            match folded.iter_mut().find(|(first, _)| kind(first) == kind(pin)) {
                Some((_, count)) => *count += 1,
                None => folded.push((pin, 1)),
            }
        }
        folded
    }

    /// Free memory in segments in a sentence.
    fn segments_in_words(&self) -> String {
        let segments = &self.segments;
        format!(
            "{} {}: {} reserved, {} free in {}, the largest {}; {} in segments without any block",
            counted(segments.count, "segment"),
            event(segments.event),
            short(segments.bytes),
            short(segments.free_bytes),
            counted(segments.holes, "hole"),
            short(segments.largest_hole_bytes),
            short(segments.whole_free_bytes)
        )
    }
}

impl FailureDetail {
    fn in_words(&self) -> String {
        format!("{}: {}", event(self.event), self.why)
    }
}

impl StackReport {
    /// Where it was allocated, told apart from rows of the same place.
    fn place(&self) -> String {
        match (self.at.as_deref(), &self.apart) {
            (Some(at), Some(apart)) => format!("{at}, {apart}"),
            (place, _) => at(place).to_owned(),
        }
    }
}

fn category(row: &StackReport) -> String {
    format!("{}{}", row.category.replace('_', " "), if row.is_guess { " (a guess)" } else { "" })
}

fn at(at: Option<&str>) -> &str {
    at.unwrap_or("no Python frames")
}

/// Writes a device as text.
pub fn write(out: &mut String, report: &CachingReport) {
    let _ = writeln!(out, "{}", report.headline());
    let line = |out: &mut String, label: &str, bytes: u64, rest: &str| {
        let text = format!("    {label:<19} {:>10}  {:>22}  {rest}", short(bytes), Bytes(bytes).exact());
        let _ = writeln!(out, "{}", text.trim_end());
    };
    for (label, bytes, remark) in report.sizes() {
        line(out, &label, bytes, &remark);
    }
    for failure in report.failure_details.iter().rev().skip(1).rev() {
        let _ = writeln!(out, "    failed before: {}", failure.in_words());
    }
    for sentence in report.steps_in_words() {
        let _ = writeln!(out, "    {sentence}");
    }
    let standing = &report.standing;
    if !standing.by_category.is_empty() {
        let _ = writeln!(out, "    live {}, by category (most likely)", standing.moment);
        for row in &standing.by_category {
            let remark =
                format!("{}, {}", counted(row.count, "allocation"), percent(row.bytes, standing.requested_bytes));
            line(out, &format!("  {}", row.category.replace('_', " ")), row.bytes, &remark);
        }
        let shown = standing.by_stack.len();
        let _ = writeln!(
            out,
            "    live {}, {shown} of {}",
            standing.moment,
            counted(standing.by_stack_count as u64, "stack")
        );
        for row in &standing.by_stack {
            let times = format!("\u{d7}{}", thousands(row.count));
            let (bytes, what) = (short(row.bytes), category(row));
            let _ = writeln!(out, "      {bytes:>10} {times:>6}  {what:<20}  {}", row.place());
        }
    }
    let _ = writeln!(out, "    {}", report.segments_in_words());
    for (pin, count) in report.folded_pins().iter().take(5) {
        let alone = if pin.is_alone { ", alone in it" } else { "" };
        let (bytes, free, segment) = (short(pin.bytes), short(pin.free_bytes), short(pin.segment_bytes));
        let times = if *count > 1 { format!(" (\u{d7}{count})") } else { String::new() };
        let _ = writeln!(
            out,
            "      {bytes:>10} keeps {free} free of a segment of {segment}{alone}{times}  {}",
            at(pin.at.as_deref())
        );
    }
    for remark in report.remarks() {
        let _ = writeln!(out, "    note: {remark}");
    }
}

/// Adds a device to the document.
pub fn document(out: &mut Document, report: &CachingReport) {
    let tone = if report.failures.is_empty() { Tone::Neutral } else { Tone::Over };
    out.blocks.push(Block::Answer(report.headline().into(), tone));
    let mut table = Table::new([format!("cuda:{}", report.device).as_str(), ">size", ">bytes", ""]);
    for (label, bytes, remark) in report.sizes() {
        table.row([Line::from(label), Line::size(bytes), Line::exact(bytes), Line::from(remark)]);
    }
    let standing = &report.standing;
    for row in &standing.by_category {
        let label = format!("live {}, most likely: {}", standing.moment, row.category.replace('_', " "));
        let remark = format!("{}, {}", counted(row.count, "allocation"), percent(row.bytes, standing.requested_bytes));
        table.row([Line::from(label), Line::size(row.bytes), Line::exact(row.bytes), Line::from(remark)]);
    }
    out.table(table);
    for failure in report.failure_details.iter().rev().skip(1).rev() {
        out.paragraph(format!("Failed before, {}", failure.in_words()));
    }
    for sentence in report.steps_in_words() {
        out.paragraph(sentence);
    }
    let mut table = Table::new([">size", ">count", "category", "allocated at"]);
    table.caption = format!(
        "Live {}, {} of {}",
        standing.moment,
        standing.by_stack.len(),
        counted(standing.by_stack_count as u64, "stack")
    );
    for row in &standing.by_stack {
        let count = Line::count(usize::try_from(row.count).unwrap_or(usize::MAX));
        table.row([Line::size(row.bytes), count, Line::from(category(row)), Line::code(row.place())]);
    }
    out.table(table);
    out.paragraph(report.segments_in_words());
    for remark in report.remarks() {
        out.note(remark);
    }
}
