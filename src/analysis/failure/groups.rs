//! The buffers that a message lists, equal ones grouped.

use std::cmp::Reverse;

use super::ListingGroup;
use crate::analysis::names::scope;
use crate::model::{Bytes, Failure, FailureKind, without_escaped_quotes};

/// A name with `*` for each number in it.
fn folded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('*') {
            out.push('*');
        }
    }
    out
}

/// The listing with equal rows grouped, and the bytes counted but not listed.
pub fn groups(failure: &Failure) -> (Vec<ListingGroup>, Option<Bytes>) {
    let mut groups: Vec<ListingGroup> = Vec::new();
    let mut listed = Bytes::ZERO;
    let mut add = |number: u32, bytes: Bytes, shape: Option<&str>, name: &str, op: Option<&str>| {
        listed += bytes;
        let op = op.map(without_escaped_quotes);
        let op = op.as_deref().map(scope::without_attributes);
        let op = op.as_deref();
        // Same size, shape and operation: one line. Numbers differ from layer to layer and from instruction to
        // instruction.
        let same = groups.iter_mut().find(|g| {
            g.bytes == bytes
                && g.shape.as_deref() == shape
                && g.op_name.as_deref().map(folded) == op.map(folded)
                && (op.is_some() || folded(&g.name) == folded(name))
        });
        match same {
            Some(group) => {
                group.count += 1;
                if group.op_name.as_deref() != op {
                    group.op_name = op.map(folded);
                }
            }
            None => groups.push(ListingGroup {
                count: 1,
                bytes,
                shape: shape.map(ToOwned::to_owned),
                name: name.to_owned(),
                op_name: op.map(ToOwned::to_owned),
                first: number,
            }),
        }
    };
    for entry in failure.allocations.iter().take(5000) {
        let Some(size) = &entry.size else { continue };
        let name = entry.label_head.as_deref().unwrap_or("");
        add(entry.number, size.bytes, entry.shape_text.as_deref(), name, entry.op_name.as_deref());
    }
    for buffer in failure.peak_buffers.iter().take(5000) {
        let Some(size) = &buffer.size else { continue };
        let name = if buffer.entry_parameter { "argument" } else { buffer.label.as_deref().unwrap_or("") };
        add(buffer.number, size.bytes, buffer.shape_text.as_deref(), name, buffer.op_name.as_deref());
    }
    for (i, (size, op)) in failure.usage_rows.iter().enumerate() {
        add(i as u32 + 1, size.bytes, None, op, Some(op));
    }
    if groups.is_empty() {
        return (groups, None);
    }
    groups.sort_by_key(|group| (Reverse(u128::from(group.bytes.0) * group.count as u128), group.first));
    let counted = match failure.kind {
        FailureKind::XlaGpuPeakBuffers | FailureKind::TfUsageReport => failure.bytes("total"),
        FailureKind::TpuRuntimeReserve => failure.bytes("program_requirement"),
        _ => failure.bytes("used"),
    };
    let not_listed = counted.filter(|&counted| counted > listed).map(|counted| counted - listed);
    (groups, not_listed)
}
