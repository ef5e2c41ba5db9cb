//! What XLA's GPU compiler leaves is read as what the TPU's leaves is: the device and the memory it may use, the layers of
//! a scan, advice for a GPU, and changes that were really made.

use std::fs;

use highwater::advisor;
use highwater::analysis::ProfileAnalysis;
use highwater::analysis::what_if::{Depth, Edit};
use highwater::model::{MemorySpace, Profile};
use highwater::open;
use highwater::source::Progress;
use serde_json::Value;

use crate::common::{self, Files};

/// A training step of an encoder with 24 layers in a scan, compiled by jaxlib 0.11.2 for an H200.
fn encoder() -> Profile {
    let path = Files::of_project().ending("h200/encoder/module_0000.jit_step.sm_9.0a_gpu_after_optimizations.hlo.pb");
    open::open_path(&path, &Progress::default()).expect("opens")
}

/// What the runtime says of the compiled program and of changes to it, in all the bytes that it needs.
fn really(program: &str) -> u64 {
    let text = fs::read_to_string(common::samples().join("h200/encoder.compiled.json")).expect("its statistics");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let bytes = |key: &str| json["programs"][program][key].as_u64().expect("bytes");
    bytes("argument_size_in_bytes") + bytes("output_size_in_bytes") + bytes("temp_size_in_bytes")
        - bytes("alias_size_in_bytes")
}

#[test]
fn the_gpu_and_what_its_allocator_may_take_are_known() {
    let profile = encoder();
    assert_eq!(profile.device.name.as_deref(), Some("NVIDIA H200"));
    let capacity = profile.device.capacity(MemorySpace::HBM).expect("a capacity");
    assert_eq!(capacity.bytes.0, 112_583_507_968, "75 % of what was free");
    assert_eq!(profile.device.all_memory.map(|bytes| bytes.0), Some(150_109_880_320));
}

#[test]
fn the_program_takes_what_the_runtime_says() {
    let profile = encoder();
    let analysis = ProfileAnalysis::new(&profile);
    let scene = analysis.scene(&profile, 0, MemorySpace::HBM).expect("HBM");
    assert!(scene.space.xprof.allocated.0.abs_diff(really("encoder")) < 1 << 28, "{}", scene.space.xprof.allocated.0);
    assert!(analysis.notes.is_empty(), "live ranges agree: {:?}", analysis.notes);
}

#[test]
fn a_scan_over_layers_is_seen_through_fusions_that_run_asynchronously() {
    let profile = encoder();
    let analysis = ProfileAnalysis::new(&profile);
    let found = advisor::advise(&profile, &analysis);
    let titles: Vec<&str> = found.findings.iter().map(|finding| finding.title.as_str()).collect();
    assert!(titles[0].starts_with("The scan over 24 layers saves"), "{titles:?}");
    let attention = found.findings.iter().find(|finding| finding.rule == "attention_scores").expect("scores");
    assert!(attention.advice[0].contains("implementation=\"cudnn\""), "{:?}", attention.advice);
    let words: Vec<String> =
        found.findings.iter().map(|f| format!("{} {} {}", f.why, f.advice.join(" "), f.warnings.join(" "))).collect();
    assert!(!words.iter().any(|words| words.contains("pallas") || words.contains("VMEM")), "{words:?}");
}

#[test]
fn changes_that_were_really_made_are_predicted() {
    let profile = encoder();
    let analysis = ProfileAnalysis::new(&profile);
    let scene = analysis.scene(&profile, 0, MemorySpace::HBM).expect("HBM");
    for (program, edits) in [
        ("encoder_remat", &["remat scan"][..]),
        ("encoder_half", &["batch 0.5"]),
        ("encoder_both", &["remat scan", "batch 2"]),
    ] {
        let edits: Vec<Edit> = edits.iter().map(|edit| edit.parse().expect("an edit")).collect();
        let predicted = scene.memory_against(None).evaluate(scene.program, &edits, Depth::Packed);
        let (low, high) = predicted.allocated_range;
        let real = really(program);
        assert!(low.0 <= real && real <= high.0, "{program}: {real} is not between {low} and {high}");
        assert!(high.0 as f64 <= low.0 as f64 * 1.61, "{program}: {low} to {high} says little");
    }
}
