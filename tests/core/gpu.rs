//! What XLA's GPU compiler leaves is read as what the TPU's leaves is: the device and the memory it may use, the layers of
//! a scan, advice for a GPU, and changes that were really made.

use std::fs;

use highwater::advisor;
use highwater::analysis::ProfileAnalysis;
use highwater::analysis::packing::Packer;
use highwater::analysis::what_if::{Depth, Edit};
use highwater::model::{MemorySpace, Profile};
use highwater::open;
use highwater::source::Progress;
use serde_json::Value;

use crate::common::{self, Files};

/// A training step compiled by jaxlib 0.11.2 for an H200: `lora`, of small matrices beside a decoder with 16 layers in a
/// scan, or `gru`, of three recurrent layers, each in a scan over 256 points in time.
fn step(name: &str) -> Profile {
    let file = format!("h200/{name}/module_0000.jit_step.sm_9.0a_gpu_after_optimizations.hlo.pb");
    open::open_path(&Files::of_project().ending(&file), &Progress::default()).expect("opens")
}

/// What the runtime says of the compiled program and of changes to it, in all the bytes that it needs.
fn really(program: &str) -> u64 {
    let text = fs::read_to_string(common::samples().join("h200/compiled.json")).expect("its statistics");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let bytes = |key: &str| json["programs"][program][key].as_u64().expect("bytes");
    bytes("argument_size_in_bytes") + bytes("output_size_in_bytes") + bytes("temp_size_in_bytes")
        - bytes("alias_size_in_bytes")
}

#[test]
fn the_gpu_and_what_its_allocator_may_take_are_known() {
    let profile = step("lora");
    assert_eq!(profile.device.name.as_deref(), Some("NVIDIA H200"));
    let capacity = profile.device.capacity(MemorySpace::HBM).expect("a capacity");
    assert_eq!(capacity.bytes.0, 112_583_507_968, "75 % of what was free");
    assert_eq!(profile.device.all_memory.map(|bytes| bytes.0), Some(150_109_880_320));
}

#[test]
fn the_programs_take_what_the_runtime_says() {
    for name in ["lora", "gru"] {
        let profile = step(name);
        let analysis = ProfileAnalysis::new(&profile);
        let allocated = analysis.scene(&profile, 0, MemorySpace::HBM).expect("HBM").space.xprof.allocated;
        assert!(allocated.0.abs_diff(really(name)) < 1 << 27, "{name}: {allocated} instead of {}", really(name));
        assert!(analysis.notes.is_empty(), "live ranges agree: {:?}", analysis.notes);
    }
}

#[test]
fn heaps_and_every_offset_in_them_are_the_compilers() {
    for name in ["lora", "gru"] {
        let profile = step(name);
        let analysis = ProfileAnalysis::new(&profile);
        let scene = analysis.scene(&profile, 0, MemorySpace::HBM).expect("HBM");
        let packed = scene.packing().expect("a heap");
        assert_eq!((packed.heap, packed.packer), (packed.compiler_heap, Packer::Fallback), "{name}");
        assert!(packed.equal_offsets >= 1.0, "{name}: {} of the offsets", packed.equal_offsets);
        let unchanged = scene.what_if(&[]);
        assert_eq!(unchanged.packer, Packer::Fallback, "{name}");
        assert!(
            unchanged.allocated.0.abs_diff(scene.space.xprof.allocated.0) < 1 << 20,
            "{name}: {:?}",
            unchanged.allocated
        );
    }
}

#[test]
fn scans_are_seen_through_fusions_that_run_asynchronously() {
    let first = |name: &str| {
        let profile = step(name);
        let analysis = ProfileAnalysis::new(&profile);
        advisor::advise(&profile, &analysis).findings
    };
    assert!(
        first("gru")[0].title.starts_with("3 scans, each over 256 steps, together save 15.0 GiB"),
        "{}",
        first("gru")[0].title
    );
    let found = first("lora");
    let titles: Vec<&str> = found.iter().map(|finding| finding.title.as_str()).collect();
    assert!(titles.iter().any(|title| title.starts_with("The scan over 16 layers saves")), "{titles:?}");
    let attention = found.iter().find(|finding| finding.rule == "attention_scores").expect("scores");
    assert!(attention.advice[0].contains("implementation=\"cudnn\""), "{:?}", attention.advice);
    let words = |f: &advisor::Finding| format!("{} {} {}", f.why, f.advice.join(" "), f.warnings.join(" "));
    assert!(!found.iter().map(words).any(|words| words.contains("pallas") || words.contains("VMEM")), "{titles:?}");
}

#[test]
fn changes_that_were_really_made_are_predicted() {
    let profile = step("gru");
    let analysis = ProfileAnalysis::new(&profile);
    let scene = analysis.scene(&profile, 0, MemorySpace::HBM).expect("HBM");
    for (program, edit) in [("gru_remat", "remat scan"), ("gru_half", "batch 0.5"), ("gru_double", "batch 2")] {
        let edits: Vec<Edit> = vec![edit.parse().expect("an edit")];
        let predicted = scene.memory_against(None).evaluate(scene.program, &edits, Depth::Packed);
        let (low, high) = predicted.allocated_range;
        let real = really(program);
        assert!(low.0 <= real && real <= high.0, "{program}: {real} is not between {low} and {high}");
        assert!(high.0 as f64 <= low.0 as f64 * 1.61, "{program}: {low} to {high} says little");
    }
}
