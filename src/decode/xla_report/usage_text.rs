//! `*-memory-usage-report.txt` in both forms: by memory space (libtpu 0.0.51), and all allocations in one list (JAX
//! 0.4.38 to 0.9.0).

use super::assemble::{Assembler, lines, module_name};
use super::buffer_assignment::allocation as allocation_line;
use super::usage_table::{TableRow, add_rows, row};
use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{Allocation, Bytes, MemorySpace, Profile, Program, ReportedSpace};
use crate::source::Input;

/// The memory-usage report as text.
pub struct UsageTextDecoder;

impl Decoder for UsageTextDecoder {
    fn format(&self) -> &'static str {
        "XLA memory-usage report (text)"
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::XlaDump,
            words: "XLA's memory usage report, as text",
            patterns: &["*-memory-usage-report.txt"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        let head = input.head().trim_ascii_start();
        head.starts_with(b"Memory Space: ")
            || (head.starts_with(b"Total bytes used:")
                && memchr::memmem::find(&head[..head.len().min(512)], b"Allocations sorted by size:").is_some())
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let text = String::from_utf8_lossy(&bytes);
        let name = module_name(input.file_name());
        let program = if text.trim_start().starts_with("Memory Space: ") {
            by_space(&text, &name, context)
        } else {
            one_list(&text, &name, context)
        };
        if program.reported.is_empty() {
            return Err(DecodeError::Empty("a memory-usage report without a memory space".to_owned()));
        }
        context.reporter.info("This report has no heap events and no names of buffers; its sizes are rounded");
        Ok(Profile { name, programs: vec![program], ..Profile::default() })
    }
}

/// The form by memory space: exact totals, a table for each allocation.
fn by_space(text: &str, name: &str, context: Context<'_>) -> Program {
    let mut assembler = Assembler::new(name);
    let mut spaces: Vec<ReportedSpace> = Vec::new();
    let mut rows: Vec<TableRow> = Vec::new();
    let mut tables = 0usize;
    let mut flush = |assembler: &mut Assembler, rows: &mut Vec<TableRow>, color: MemorySpace| {
        if rows.is_empty() {
            return;
        }
        tables += 1;
        // The report does not print an allocation's size; it reaches at least to the end of its last value.
        let size = rows.iter().map(|row| row.offset.saturating_add(row.size.0)).max().unwrap_or(0);
        let allocation = assembler.allocation(Allocation {
            index: -(tables as i64),
            size: Bytes(size),
            color,
            ..Allocation::default()
        });
        add_rows(assembler, allocation, &format!("table {tables}"), color, rows);
        rows.clear();
    };
    for (at, line) in lines(text) {
        let color = spaces.last().map_or(MemorySpace::HBM, |space| space.color);
        if let Some(head) = line.strip_prefix("Memory Space: ") {
            flush(&mut assembler, &mut rows, color);
            match head.rsplit_once("(color=").and_then(|(_, n)| n.trim_end_matches(')').parse().ok().map(MemorySpace)) {
                Some(color) => spaces.push(ReportedSpace { color, ..ReportedSpace::default() }),
                None => context.reporter.warn("a memory space without a colour", Some(at)),
            }
        } else if let Some(total) = line.strip_prefix("Total bytes: ") {
            let total = total.split(' ').next().and_then(|number| number.parse().ok()).map(Bytes);
            match (spaces.last_mut(), total) {
                (Some(space), Some(total)) => space.allocated = Some(total),
                _ => context.reporter.warn("a total that is not a number", Some(at)),
            }
        } else if line.trim_start().starts_with("cumulative_size;") {
            flush(&mut assembler, &mut rows, color);
        } else if let Some(found) = row(line) {
            rows.push(found);
        }
    }
    let color = spaces.last().map_or(MemorySpace::HBM, |space| space.color);
    flush(&mut assembler, &mut rows, color);
    if !spaces.is_empty() {
        context.reporter.info("Totals of this report include thread-local allocations, which it does not tell apart");
    }
    assembler.program().reported = spaces;
    assembler.finish()
}

/// The older form: the second list names each allocation, with its properties and its table.
fn one_list(text: &str, name: &str, context: Context<'_>) -> Program {
    let mut assembler = Assembler::new(name);
    let mut rows: Vec<TableRow> = Vec::new();
    let mut current: Option<(u32, i64, MemorySpace)> = None;
    let mut detailed = false;
    let mut total = None;
    let flush = |assembler: &mut Assembler, rows: &mut Vec<TableRow>, current: Option<(u32, i64, MemorySpace)>| {
        if let Some((allocation, index, color)) = current {
            add_rows(assembler, allocation, &format!("allocation {index}"), color, rows);
        }
        rows.clear();
    };
    for (at, line) in lines(text) {
        if let Some(number) = line.strip_prefix("Total bytes used: ") {
            total = number.split(' ').next().and_then(|number| number.parse::<u64>().ok());
        } else if line == "Allocations sorted by size with their values:" {
            detailed = true;
        } else if let (true, Some(head)) = (detailed, line.strip_prefix("allocation ")) {
            flush(&mut assembler, &mut rows, current.take());
            match allocation_line(head) {
                Some(allocation) => {
                    let (index, color) = (allocation.index, allocation.color);
                    current = Some((assembler.allocation(allocation), index, color));
                }
                None => context.reporter.warn("an allocation's line is not of the known form", Some(at)),
            }
        } else if detailed && let Some(found) = row(line.trim_start_matches('\t')) {
            rows.push(found);
        }
    }
    flush(&mut assembler, &mut rows, current);
    let mut colors: Vec<MemorySpace> = assembler.program().allocations.iter().map(|a| a.color).collect();
    colors.sort_unstable();
    colors.dedup();
    assembler.program().reported =
        colors.into_iter().map(|color| ReportedSpace { color, ..ReportedSpace::default() }).collect();
    if let Some(total) = total {
        context
            .reporter
            .info(format!("All memory spaces and thread-local allocations together take {}", Bytes(total).exact()));
    }
    assembler.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Reporter;
    use crate::source::Progress;

    #[test]
    fn both_forms() {
        let (progress, reporter) = (Progress::default(), Reporter::default());
        let context = Context { progress: &progress, reporter: &reporter };
        let text = "Memory Space: default (color=0)\nTotal bytes: 311150080 (296.74MiB)\n  cumulative_size; size; \
                    offset; used_by_n_values; shapes_list\n  ----\n   64.00MiB( 67%);   64.00MiB;     17235968;      \
                    2; 2×f32[4096,4096]\n\nMemory Space: vmem (color=1)\nTotal bytes: 512 (512B)\n";
        let program = by_space(text, "f", context);
        assert_eq!(program.reported.len(), 2);
        assert_eq!(program.reported[0].allocated, Some(Bytes(311_150_080)));
        assert_eq!(program.buffers.size, [Bytes(64 << 20)]);
        let text = "Total bytes used: 700 (700B)\n\nAllocations sorted by size:\n\nAllocations sorted by size with \
                    their values:\nallocation 25: size 512B, color 3, preallocated-temp:\n\n\tcumulative_size; \
                    size\n\t----\n\t 512B(100%);   512B;  0;  3; s32[128]\n\nallocation 1: size 188B, thread-local:\n";
        let program = one_list(text, "f", context);
        assert_eq!(program.allocations.len(), 2);
        assert!(program.allocations[1].is_thread_local);
        assert_eq!((program.allocations[0].index, program.allocations[0].color), (25, MemorySpace::CMEM));
    }
}
