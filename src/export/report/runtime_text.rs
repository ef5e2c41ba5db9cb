//! Allocator histories and live sets as text.

use std::fmt::Write as _;

use super::runtime::{AllocatorReport, SnapshotReport};
use crate::model::{Bytes, percent, thousands};

fn short(bytes: u64) -> String {
    Bytes(bytes).short()
}

/// Picoseconds as milliseconds, in words.
fn milliseconds(ps: i64) -> String {
    format!("{:.3} ms", ps as f64 / 1e9)
}

/// Writes an allocator's history.
pub fn write_allocator(out: &mut String, report: &AllocatorReport) {
    let of = report.capacity_bytes.map(|bytes| format!(" of {}", short(bytes))).unwrap_or_default();
    let _ = writeln!(
        out,
        "allocator {}: peak {}{of} at {}, {} events",
        if report.name.is_empty() { "(unnamed)" } else { &report.name },
        short(report.peak_bytes),
        match (report.peak_time_ps, report.peak_event) {
            (Some(time), _) => milliseconds(time),
            (None, event) => format!("event {}", thousands(event.unwrap_or(0).unsigned_abs())),
        },
        thousands(report.events as u64)
    );
    let line = |out: &mut String, label: &str, bytes: u64| {
        let _ = writeln!(out, "    {label:<22} {:>10}  {:>22}", short(bytes), Bytes(bytes).exact());
    };
    line(out, "peak", report.peak_bytes);
    if let Some(bytes) = report.capacity_bytes {
        line(out, "capacity", bytes);
    }
    if let Some(bytes) = report.lifetime_peak_bytes {
        line(out, "lifetime peak", bytes);
    }
    if report.before_trace_bytes > 0 {
        line(out, "allocated before trace", report.before_trace_bytes);
    }
    match report.fragmentation_at_peak {
        Some(fragmentation) => {
            let _ = writeln!(out, "    fragmentation          {:.1}\u{2009}% of free memory", fragmentation * 100.0);
        }
        None if report.events > 0 && report.capacity_bytes.is_some() => {
            let _ = writeln!(out, "    fragmentation          unknown: nothing was free");
        }
        None => {}
    }
    if let Some(bytes) = report.floor_rises_by_bytes {
        let _ = writeln!(
            out,
            "    the lowest use rises from step to step, by {} in total: something is never freed",
            short(bytes)
        );
    }
    if report.in_use_at_peak.is_empty() {
        return;
    }
    let _ =
        writeln!(out, "    in use at the peak, {} of {}:", report.in_use_at_peak.len(), report.in_use_at_peak_count);
    for row in &report.in_use_at_peak {
        let times = if row.count > 1 { format!(" ×{}", row.count) } else { String::new() };
        let details = [row.shape.as_str(), row.region.as_str(), row.origin];
        let details: Vec<&str> = details.into_iter().filter(|words| !words.is_empty()).collect();
        let _ = writeln!(out, "      {:>10}{times}  {}  {}", short(row.total_bytes), row.name, details.join("  "));
    }
}

/// Writes a snapshot of live objects.
pub fn write_snapshot(out: &mut String, report: &SnapshotReport) {
    let _ = writeln!(out, "alive: {}  {}", short(report.total_bytes), Bytes(report.total_bytes).exact());
    let line = |out: &mut String, label: &str, bytes: u64, count: u64| {
        let _ = writeln!(
            out,
            "    {label:<24} {:>10}  {:>8}  \u{d7}{}",
            short(bytes),
            percent(bytes, report.total_bytes),
            thousands(count)
        );
    };
    for row in report.kinds.iter().take(20) {
        line(out, &row.kind, row.bytes, row.count);
    }
    for row in &report.devices {
        line(out, &row.device, row.bytes, row.count);
    }
    if let Some(heap) = &report.heap {
        let _ = writeln!(
            out,
            "    {}: {} in {} chunks and {} regions; free {}, largest free chunk {}{}",
            heap.allocator,
            short(heap.total_bytes),
            thousands(heap.chunks as u64),
            thousands(heap.regions as u64),
            short(heap.free_bytes),
            short(heap.largest_free_bytes),
            heap.fragmentation
                .map(|f| format!(", {:.1}\u{2009}% of free memory outside it", f * 100.0))
                .unwrap_or_default()
        );
        if let Some(bytes) = heap.short_by_bytes.filter(|&bytes| bytes > 0) {
            let _ = writeln!(out, "    the failed request is {} larger than the largest free chunk", short(bytes));
        }
    }
    if !report.top.is_empty() {
        let _ = writeln!(out, "    largest, {} of {}:", report.top.len(), report.top_count);
        for row in &report.top {
            let _ = writeln!(
                out,
                "      {:>10}  ×{}  {}  {}",
                short(row.bytes),
                row.count,
                row.device.as_deref().unwrap_or(&row.kind),
                row.at.as_ref().or(row.stack.first()).map_or("", String::as_str)
            );
        }
    }
}
