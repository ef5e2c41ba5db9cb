//! Allocator histories, from the trace and from XProf's own JSON, equal XProf's `memory_profile`.

use std::fs;
use std::path::{Path, PathBuf};

use highwater::analysis::runtime::AllocatorAnalysis;
use highwater::model::{LiveAllocation, Profile};
use highwater::open;
use highwater::source::{Input, Progress};
use serde_json::Value;

use crate::common::Files;

fn open(path: &Path) -> Profile {
    let input = Input::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    open::open_input(&input, &Progress::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A number in XProf's JSON: a string of digits, or a number.
fn number(value: &Value) -> i64 {
    value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_i64()).unwrap_or(0)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn their_rows(allocator: &Value) -> Vec<LiveAllocation> {
    let list = |key: &str| allocator[key].as_array().cloned().unwrap_or_default();
    let (snapshots, specials) = (list("memoryProfileSnapshots"), list("specialAllocations"));
    list("activeAllocations")
        .iter()
        .map(|active| {
            let special = number(&active["specialIndex"]);
            let row = if special >= 0 {
                &specials[special as usize]
            } else {
                &snapshots[number(&active["snapshotIndex"]) as usize]["activityMetadata"]
            };
            LiveAllocation {
                op: text(&row["tfOpName"]),
                bytes: number(&row["allocationBytes"]),
                requested: number(&row["requestedBytes"]),
                count: number(&active["numOccurrences"]),
                region: text(&row["regionType"]),
                data_type: text(&row["dataType"]),
                shape: text(&row["tensorShape"]),
            }
        })
        .collect()
}

fn json_beside(trace: &Path) -> Option<PathBuf> {
    let name = trace.file_name()?.to_str()?.strip_suffix(".xplane.pb")?;
    Some(trace.with_file_name(format!("{name}.memory_profile.json"))).filter(|path| path.exists())
}

fn check(path: &Path, ours: &AllocatorAnalysis, theirs: &Value) {
    let at = path.display();
    let summary = &theirs["profileSummary"];
    assert_eq!(ours.peak.0 as i64, number(&summary["peakStats"]["peakBytesInUse"]), "{at}: peak");
    assert_eq!(ours.peak_time_ps, number(&summary["peakStatsTimePs"]), "{at}: time of the peak");
    let capacity = ours.capacity.map_or(0, |bytes| bytes.0 as i64);
    assert_eq!(capacity, number(&summary["memoryCapacity"]), "{at}: capacity");
    let lifetime = ours.lifetime_peak.map_or(0, |bytes| bytes.0 as i64);
    assert_eq!(lifetime, number(&summary["peakBytesUsageLifetime"]), "{at}: lifetime peak");
    assert_eq!(ours.fragmentation_at_peak(), summary["peakStats"]["fragmentation"].as_f64(), "{at}: fragmentation");
    let theirs = their_rows(theirs);
    assert_eq!(ours.at_peak, theirs, "{at}: rows at the peak");
}

/// Compares the allocator histories of traces with XProf's JSON; returns the number of histories.
pub fn compare_histories(files: &Files) -> usize {
    let mut compared = 0;
    for trace in files.named(|name| name.ends_with(".xplane.pb")) {
        let Some(json) = json_beside(&trace) else { continue };
        let theirs: Value = serde_json::from_str(&fs::read_to_string(&json).expect("readable")).expect("JSON");
        let profile = open(&trace);
        let ids: Vec<String> = theirs["memoryIds"].as_array().into_iter().flatten().map(text).collect();
        let names: Vec<&str> = profile.runtime.iter().map(|trace| trace.name.as_str()).collect();
        assert_eq!(names, ids, "{}", trace.display());
        for history in &profile.runtime {
            let theirs = &theirs["memoryProfilePerAllocator"][&history.name];
            let ours = AllocatorAnalysis::new(history);
            check(&trace, &ours, theirs);
            check_timeline(&trace, history, &ours, theirs);
            compared += 1;
        }
    }
    compared
}

#[test]
fn traces_equal_xprof() {
    assert!(compare_histories(&Files::of_project()) >= 1);
}

fn check_timeline(path: &Path, history: &highwater::model::AllocatorTrace, ours: &AllocatorAnalysis, theirs: &Value) {
    let at = path.display();
    let points = theirs["sampledTimelineSnapshots"].as_array().cloned().unwrap_or_default();
    assert_eq!(ours.timeline.len(), points.len(), "{at}: points");
    if points.len() != history.events.len() {
        return;
    }
    for ((&row, &step), theirs) in ours.timeline.iter().zip(&ours.steps).zip(&points) {
        let event = &history.events[row as usize];
        assert_eq!(event.time_ps, number(&theirs["timeOffsetPs"]), "{at}");
        assert_eq!(event.stats.heap, number(&theirs["aggregationStats"]["heapAllocatedBytes"]), "{at}");
        assert_eq!(step, number(&theirs["activityMetadata"]["stepId"]), "{at}: step at {}", event.time_ps);
    }
}
