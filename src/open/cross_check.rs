//! Joins a report to the HLO proto of the same module and compares the two.

use std::collections::HashMap;

use crate::model::{BufferId, Program};

/// At most this many disagreements are named; the rest are counted.
const MAX_NAMED: usize = 3;

/// Adds the uses listed in a report of the same module to `program`; returns their disagreements, one sentence each.
pub fn join_report(program: &mut Program, report: &Program, path: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if report.has_buffer_assignment && program.has_buffer_assignment {
        notes.extend(allocations(program, report, path));
        notes.extend(buffers(program, report, path));
        notes.extend(totals(program, report, path));
    }
    if program.reported_uses.is_empty() && !report.reported_uses.is_empty() {
        let rows: HashMap<i64, u32> =
            program.buffers.number.iter().enumerate().map(|(row, &number)| (number, row as u32)).collect();
        program.reported_uses = report
            .reported_uses
            .iter()
            .filter_map(|reader| {
                let number = report.buffers.number.get(reader.buffer.index())?;
                Some(crate::model::ReportedUse { buffer: BufferId(*rows.get(number)?), text: reader.text.clone() })
            })
            .collect();
        program.reported_uses.sort_by_key(|reader| reader.buffer);
    }
    notes
}

fn disagreement(path: &str, what: &str, different: &[String], of: usize) -> Option<String> {
    if different.is_empty() {
        return None;
    }
    let named = different.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join("; ");
    Some(format!("{path} disagrees with the HLO proto in {} of {of} {what}: {named}", different.len()))
}

/// Compares sizes and memory spaces of allocations by index. Rounded sizes are not compared.
fn allocations(program: &Program, report: &Program, path: &str) -> Option<String> {
    let exact = !has_rounded_sizes(report);
    let ours: HashMap<i64, usize> =
        program.allocations.iter().enumerate().map(|(row, allocation)| (allocation.index, row)).collect();
    let mut different = Vec::new();
    let mut compared = 0;
    for theirs in report.allocations.iter().filter(|allocation| allocation.index >= 0) {
        compared += 1;
        let Some(ours) = ours.get(&theirs.index).map(|&row| &program.allocations[row]) else {
            different.push(format!("allocation {} is not in the proto", theirs.index));
            continue;
        };
        if exact && ours.size != theirs.size {
            different.push(format!(
                "allocation {} is {}, not {}",
                theirs.index,
                theirs.size.exact(),
                ours.size.exact()
            ));
        } else if ours.color != theirs.color {
            different.push(format!("allocation {} is in memory space {}", theirs.index, theirs.color));
        }
    }
    disagreement(path, "allocations", &different, compared)
}

/// Whether the report prints rounded allocation sizes.
fn has_rounded_sizes(report: &Program) -> bool {
    report.reported.iter().all(|space| space.allocated.is_none())
        && report.buffers.number.iter().enumerate().all(|(row, &number)| row as i64 == number)
}

/// Compares sizes and offsets of logical buffers by id, if the report uses the proto's ids.
fn buffers(program: &Program, report: &Program, path: &str) -> Option<String> {
    if has_rounded_sizes(report) || report.reported.iter().any(|space| space.allocated.is_some()) {
        return None;
    }
    let ours: HashMap<i64, u32> =
        program.buffers.number.iter().enumerate().map(|(row, &number)| (number, row as u32)).collect();
    let mut different = Vec::new();
    for (row, number) in report.buffers.number.iter().enumerate() {
        let Some(&own) = ours.get(number) else {
            different.push(format!("buffer {number} is not in the proto"));
            continue;
        };
        let own = BufferId(own);
        if program.buffers.size_of(own) != report.buffers.size[row]
            || program.buffers.offset[own.index()] != report.buffers.offset[row]
        {
            different.push(format!("buffer {number} ({})", program.buffer_name(own)));
        }
    }
    disagreement(path, "buffers", &different, report.buffers.len())
}

/// Compares totals of memory spaces. XLA's usage reports include thread-local allocations; XProf's totals do not.
fn totals(program: &Program, report: &Program, path: &str) -> Option<String> {
    let mut different = Vec::new();
    let mut compared = 0;
    for space in &report.reported {
        let Some(theirs) = space.allocated else { continue };
        compared += 1;
        let of_color = || program.allocations.iter().filter(|allocation| allocation.color == space.color);
        let with_thread_local = of_color().map(|allocation| allocation.size).sum::<crate::model::Bytes>();
        let without = of_color().filter(|a| !a.is_thread_local).map(|a| a.size).sum::<crate::model::Bytes>();
        if theirs != with_thread_local && theirs != without {
            different.push(format!(
                "memory space {} has {}, not {}",
                space.color,
                theirs.exact(),
                with_thread_local.exact()
            ));
        }
    }
    disagreement(path, "totals", &different, compared)
}
