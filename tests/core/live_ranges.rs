//! Live ranges equal XLA's own `*-live-range.txt`, row for row and in order.

use std::path::Path;

use highwater::analysis::live_range::LiveRanges;
use highwater::model::{BufferId, Program};

use crate::common::{self, Files};

struct Dump {
    max: u32,
    sequence: Vec<String>,
    rows: Vec<String>,
}

fn parse(text: &str) -> Dump {
    let mut dump = Dump { max: 0, sequence: Vec::new(), rows: Vec::new() };
    let mut section = 0;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("HloLiveRange (max ") {
            dump.max = rest.trim_end_matches("):").parse().expect("a number");
        } else if line.starts_with("  InstructionSequence") {
            section = 1;
        } else if line.starts_with("  BufferLiveRange") {
            section = 2;
        } else if line.starts_with("  Live ranges at") || line.starts_with("  Peak memory") {
            break;
        } else if section == 1 {
            let (_, name) = line.trim_start().split_once(':').expect("index:name");
            dump.sequence.push(name.to_owned());
        } else if section == 2 {
            dump.rows.push(line.trim_start().to_owned());
        }
    }
    dump
}

fn rows(program: &Program, ranges: &LiveRanges) -> Vec<String> {
    let mut order: Vec<u32> = (0..program.buffers.len() as u32).collect();
    order.sort_by_key(|&row| program.buffers.number[row as usize]);
    order
        .into_iter()
        .filter_map(|row| {
            let (start, end) = ranges.of(BufferId(row))?;
            let name = program.buffer_name(BufferId(row));
            let name = if name.ends_with('}') { name } else { format!("{name}{{}}") };
            Some(format!("{name}:{start}-{end}"))
        })
        .collect()
}

fn check(text: &Path, proto: &Path) -> Result<(), String> {
    let dump = parse(&common::text(text));
    let program = common::program(proto);
    let ranges = LiveRanges::new(&program).ok_or("no schedule")?;
    if ranges.points() != dump.max {
        return Err(format!("max {} instead of {}", ranges.points(), dump.max));
    }
    let names: Vec<String> = ranges
        .sequence()
        .iter()
        .map(|&row| program.text.instruction_name(highwater::model::InstructionId(row)))
        .collect();
    if names != dump.sequence {
        let at = names.iter().zip(&dump.sequence).position(|(a, b)| a != b);
        return Err(format!("the sequence differs at {at:?}"));
    }
    let ours = rows(&program, &ranges);
    if ours != dump.rows {
        let only = |one: &[String], other: &[String]| -> Vec<String> {
            one.iter().filter(|row| !other.contains(row)).take(8).cloned().collect()
        };
        let (wrong, missing) = (only(&ours, &dump.rows), only(&dump.rows, &ours));
        return Err(format!("{wrong:?} instead of {missing:?} ({} and {} rows)", ours.len(), dump.rows.len()));
    }
    Ok(())
}

/// Compares the live ranges of every dump with XLA's own text; returns the number of dumps.
pub fn compare_live_ranges(files: &Files) -> usize {
    let texts = files.named(|name| common::ends_with(name, "-live-range.txt"));
    let mut failures = Vec::new();
    let mut compared = 0;
    for text in &texts {
        let stem = text.to_string_lossy();
        let stem = stem.strip_suffix(".gz").unwrap_or(&stem).replace("-live-range.txt", ".hlo.pb");
        let Some(proto) = common::packed_or_not(&stem) else { continue };
        compared += 1;
        if let Err(error) = check(text, &proto) {
            failures.push(format!("{}: {error}", common::name(text)));
        }
    }
    assert!(failures.is_empty(), "{} of {compared} differ:\n{}", failures.len(), failures.join("\n"));
    compared
}

#[test]
fn live_ranges_equal_xlas_own_dump() {
    // `v5e_pipeline` has loops that pass on through inner loops what another loop made: XLA has copies of it on record.
    assert!(compare_live_ranges(&Files::of_project()) >= 6);
}
