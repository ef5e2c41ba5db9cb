//! Allocators before and after, for a terminal.

use std::fmt::Write as _;

use super::allocators::AllocatorDiff;
use super::text::{largest, named_last, parts, signed, size, wide};
use crate::model::{UnitSystem, thousands};

/// Writes what an allocator held before and after.
pub(super) fn write(out: &mut String, allocator: &AllocatorDiff) {
    let _ = writeln!(out, "  {}", allocator.headline(UnitSystem::Binary));
    let row = |out: &mut String, label: &str, before: &str, after: &str, rest: &str| {
        let text = format!("    {label:<24} {before:>11} {after:>11} {rest}");
        let _ = writeln!(out, "{}", text.trim_end());
    };
    let what = allocator.total_is;
    row(out, "", "before", "after", &format!("{:>12}", "difference"));
    for (label, value) in [(what, allocator.total), ("in use", allocator.in_use)] {
        if label != "in use" || what != "in use" {
            row(out, label, &size(value.before), &size(value.after), &format!("{:>12}", signed(value.difference)));
        }
    }
    let _ = writeln!(out, "    {what}, by kind");
    for step in &allocator.waterfall {
        let rest = format!("{:>12}  {}", signed(Some(step.difference)), parts(step, UnitSystem::Binary));
        row(out, &format!("  {}", step.name.text()), &wide(step.before), &wide(step.after), &rest);
    }
    if allocator.waterfall_by_holder.iter().any(|step| step.difference != 0) {
        let _ = writeln!(out, "    {what}, by {}", allocator.held_by);
        for step in largest(&allocator.waterfall_by_holder) {
            row(out, "", &wide(step.before), &wide(step.after), &named_last(&step));
        }
    }
    if !allocator.holders.is_empty() {
        let shown = if allocator.holders.len() < allocator.holder_count {
            format!(", the largest {} of {}", allocator.holders.len(), thousands(allocator.holder_count as u64))
        } else {
            String::new()
        };
        let _ = writeln!(out, "    what differs, by {}{shown}", allocator.held_by);
    }
    for holder in &allocator.holders {
        let detail = if holder.detail.is_empty() { String::new() } else { format!("  ({})", holder.detail) };
        let blocks = if holder.count_before.max(holder.count_after) == 1 { "block" } else { "blocks" };
        let text = format!(
            "      {:>11}  {:<8}  {:<15}  {}  {} {blocks}{detail}",
            signed(Some(holder.difference)),
            holder.change,
            holder.kind,
            holder.name,
            holder.counts()
        );
        let _ = writeln!(out, "{}", text.trim_end());
    }
    if allocator.holders_equal > 0 {
        let _ = writeln!(out, "      {:>11}  {} more rows", "=", thousands(allocator.holders_equal as u64));
    }
}
