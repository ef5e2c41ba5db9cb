//! The memory-viewer numbers equal XProf's own JSON, for every memory space of every available dump.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use highwater::analysis::category;
use highwater::analysis::xprof::{self, Traces, XprofSpace};
use highwater::model::{BufferId, InstructionId, MemorySpace, Program};
use serde_json::Value;

use crate::common::{self, Files};

const MIB: f64 = 1048576.0;
/// XProf merges smaller buffers into one row.
const SMALL: u64 = 16384;

fn number(value: &Value, key: &str) -> f64 {
    value.get(key).and_then(Value::as_f64).unwrap_or(0.0)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The row XProf prints for a buffer at the peak.
type Row = (i64, String, u64, u64, String, String, String);

fn our_rows(program: &Program, traces: &Traces, space: &XprofSpace) -> (Vec<Row>, u64) {
    let always_live: &[BufferId] = if space.color == MemorySpace::HBM { &space.always_live_buffers } else { &[] };
    let mut small = 0;
    let mut rows = Vec::new();
    for &buffer in always_live.iter().chain(&space.live_at_peak) {
        let size = program.buffers.size_of(buffer).0;
        if size < SMALL {
            small += size;
            continue;
        }
        let instruction = program.buffers.instruction_of(buffer).unwrap_or_default();
        let shape =
            program.shape_of(instruction).map(|shape| shape.text_of(shape.xprof_node(&program.buffer_index(buffer))));
        rows.push((
            program.buffers.number[buffer.index()],
            program.buffer_name(buffer),
            size,
            traces.unpadded_size(program, buffer).0,
            category(program, buffer).name().to_owned(),
            shape.unwrap_or_default(),
            program.text.op_name(instruction),
        ));
    }
    (rows, small)
}

fn their_rows(json: &Value) -> (Vec<Row>, u64) {
    let mut small = 0;
    let mut rows = Vec::new();
    for object in list(json, "maxHeap") {
        let size = (number(object, "logicalBufferSizeMib") * MIB) as u64;
        if text(object, "label").starts_with("small (<") {
            small = size;
            continue;
        }
        rows.push((
            number(object, "logicalBufferId") as i64,
            text(object, "instructionName").to_owned(),
            size,
            (number(object, "unpaddedShapeMib") * MIB) as u64,
            text(object, "groupName").to_owned(),
            text(object, "shapeString").to_owned(),
            text(object, "tfOpName").to_owned(),
        ));
    }
    (rows, small)
}

fn check(program: &Program, traces: &Traces, color: MemorySpace, json: &Value) -> Result<(), String> {
    let space = xprof::space(program, traces, color);
    let same = |what: &str, ours: f64, key: &str| {
        let theirs = number(json, key);
        if ours == theirs { Ok(()) } else { Err(format!("{what}: {ours} instead of {theirs}")) }
    };
    same("allocated", space.allocated.0 as f64 / MIB, "totalBufferAllocationMib")?;
    same("always live", space.always_live.0 as f64 / MIB, "indefiniteBufferAllocationMib")?;
    same("peak", space.peak.0 as f64 / MIB, "peakHeapMib")?;
    same("peak event", f64::from(space.peak_event), "peakHeapSizePosition")?;
    same("unpadded peak", space.peak_unpadded.0 as f64 / MIB, "peakUnpaddedHeapMib")?;
    same("parameters", space.parameters.0 as f64 / MIB, "entryComputationParametersMib")?;
    same("live out", space.live_out.0 as f64 / MIB, "maybeLiveOutMib")?;
    same("not reusable", space.non_reusable.0 as f64 / MIB, "nonReusableMib")?;
    for (key, unpadded) in [("heapSizes", false), ("unpaddedHeapSizes", true)] {
        let theirs: Vec<f64> = list(json, key).iter().filter_map(Value::as_f64).collect();
        let ours: Vec<f64> = space.curve.iter().map(|&(b, u)| (if unpadded { u } else { b }) as f64 / MIB).collect();
        if ours != theirs {
            let at = ours.iter().zip(&theirs).position(|(a, b)| a != b);
            return Err(format!("{key}: {} and {} points, first difference at {at:?}", ours.len(), theirs.len()));
        }
    }
    let names: Vec<&str> = list(json, "hloInstructionNames").iter().filter_map(Value::as_str).collect();
    for (event, name) in space.trace.map_or(&[][..], |t| &program.traces[t].events).iter().zip(&names) {
        let ours = program.buffers.instruction_of(BufferId(event.buffer)).unwrap_or_default();
        if program.text.instruction_name(ours) != *name {
            return Err(format!("an event of {name}"));
        }
    }
    let spans: BTreeMap<i64, (u32, u32)> =
        space.spans.iter().map(|&(b, start, end)| (program.buffers.number[b.index()], (start, end))).collect();
    let theirs: BTreeMap<i64, (u32, u32)> = json
        .get("logicalBufferSpans")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(id, span)| (id.parse().unwrap_or(-1), (number(span, "start") as u32, number(span, "limit") as u32)))
        .collect();
    if spans != theirs {
        return Err(format!("spans: {} and {}", spans.len(), theirs.len()));
    }
    let (ours, small) = our_rows(program, traces, &space);
    let (theirs, their_small) = their_rows(json);
    if ours != theirs || small != their_small {
        let at = ours.iter().zip(&theirs).find(|(a, b)| a != b);
        return Err(format!(
            "at the peak: {} and {} rows, small {small} and {their_small}; {at:?}",
            ours.len(),
            theirs.len()
        ));
    }
    let indefinite = list(json, "indefiniteLifetimes").len();
    if color == MemorySpace::HBM && indefinite < space.always_live_buffers.len() {
        return Err(format!("{} always live instead of {indefinite}", space.always_live_buffers.len()));
    }
    Ok(())
}

/// `X.hlo.pb` with its JSON files: (colour, path).
fn jsons(proto: &Path) -> Vec<(MemorySpace, PathBuf)> {
    let stem = proto.to_string_lossy();
    let stem = stem.strip_suffix(".gz").unwrap_or(&stem);
    let stem = stem.strip_suffix(".hlo.pb").unwrap_or(stem);
    let mut found = Vec::new();
    for color in 0..16 {
        let suffix = if color == 0 { String::new() } else { format!(".ms{color}") };
        found.extend(
            common::packed_or_not(&format!("{stem}.memory_viewer{suffix}.json")).map(|path| (MemorySpace(color), path)),
        );
    }
    found
}

/// Compares every memory space of every dump that has XProf's JSON; returns their number.
pub fn compare_memory_spaces(files: &Files) -> usize {
    let mut failures = Vec::new();
    let mut compared = 0;
    for proto in files.named(|name| common::ends_with(name, ".hlo.pb")) {
        let jsons = jsons(&proto);
        if jsons.is_empty() {
            continue;
        }
        let program = common::program(&proto);
        let traces = Traces::new(&program);
        for (color, json) in jsons {
            let parsed: Value =
                serde_json::from_str(&common::text(&json)).unwrap_or_else(|e| panic!("{}: {e}", json.display()));
            compared += 1;
            if let Err(error) = check(&program, &traces, color, &parsed) {
                failures.push(format!("{} colour {color}: {error}", common::name(&proto)));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {compared} differ:\n{}", failures.len(), failures.join("\n"));
    compared
}

#[test]
fn every_memory_space_equals_xprof() {
    assert!(compare_memory_spaces(&Files::of_project()) >= 18);
}

#[test]
fn the_name_of_an_instruction_is_read_on_demand() {
    for proto in Files::of_project().programs().into_iter().take(3) {
        let program = common::program(&proto);
        assert!(!program.text.instruction_name(InstructionId(0)).is_empty(), "{}", proto.display());
        assert!(!program.text.instruction_name(InstructionId(u32::MAX)).contains(' '));
    }
}
