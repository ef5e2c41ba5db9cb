//! Predictions compared with the compiler: pairs of real programs that differ by one change, predicted from the first
//! and compared with the second.

use highwater::analysis::what_if::{Depth, Edit, Memory, Prediction, TryVerdict};
use highwater::analysis::{ProgramAnalysis, SpaceAnalysis};
use highwater::model::{Bytes, Capacity, Device, MemorySpace, Program, TpuGeneration};

use crate::common::{self, Files};

/// Tolerance of a prediction.
#[derive(Clone, Copy)]
pub enum Allowed {
    /// A fraction of the real value.
    Share(f64),
    /// A fraction of the real value, or the VMEM size, whichever is larger.
    ShareOrVmem(f64),
}

pub struct Pair {
    name: &'static str,
    generation: &'static str,
    edits: &'static [&'static str],
    /// Tolerance of peak and allocated bytes.
    allowed: Allowed,
    /// Whether always-live bytes must agree to within 0.3 %.
    exact_base: bool,
}

pub const fn pair(
    name: &'static str,
    generation: &'static str,
    edits: &'static [&'static str],
    allowed: Allowed,
    exact_base: bool,
) -> Pair {
    Pair { name, generation, edits, allowed, exact_base }
}

const PAIRS: &[Pair] = &[
    pair("donate_mlp_v4", "v4", &["donate params"], Allowed::Share(0.03), true),
    pair("bf16_mlp_v5p", "v5p", &["dtype * bf16"], Allowed::ShareOrVmem(0.10), true),
    // Ring attention: a loop over hops in each layer, recomputed with it.
    pair("ring_layers_v6e", "v6e", &["remat *"], Allowed::Share(0.05), false),
    // Too large even with the compiler's own recomputation, so that a layer's backward pass begins under forward names.
    pair("scores_over_v5e", "v5e", &["remat *"], Allowed::Share(0.2), false),
    // What the compiler computes again now, as it is short of memory, is kept where half the batch leaves room.
    pair("recomputed_mixer_v5e", "v5e", &["batch 0.5"], Allowed::Share(0.01), true),
    // A decoding step that hands all its state on: the batch is that of the caches.
    pair("decode_caches_v5e", "v5e", &["batch 0.5"], Allowed::Share(0.01), false),
    // Rows of tokens sorted by the expert that each goes to, several for each token.
    pair("experts_scan_v6e", "v6e", &["batch 0.5"], Allowed::Share(0.03), true),
    // A loop works on the donated cache in another layout, so that its state is a copy.
    pair("decode_pages_v5e", "v5e", &["donate cache"], Allowed::Share(0.03), false),
    // A loop works on copies of two donated caches, one in the memory of the other's argument: with room each has its own;
    // of 2 heads in 8 bits the copies take as much as in 16.
    pair("decode_copies_half_v6e", "v6e", &["batch 0.5"], Allowed::Share(0.02), true),
    pair("decode_copies_f8_v6e", "v6e", &["dtype cache f8e4m3fn"], Allowed::Share(0.02), true),
    pair("decode_copies_donated_v6e", "v6e", &["donate cache"], Allowed::Share(0.02), true),
    // A loop over words works on copies of a cache for each layer, made in the order in which its results are written: none can
    // lie in the memory of another's argument, however short of memory it is.
    pair("sampler_copies_v5e", "v5e", &["donate sampling_state"], Allowed::Share(0.01), true),
    // Gradients are added up over four parts of two samples; there are as many heads as samples.
    pair("micro_heads_v5e", "v5e", &["batch 0.5"], Allowed::Share(0.06), true),
    // Layers are checkpointed with `prevent_cse=False` and are no scan, so that all is kept; without it the checkpoint works.
    pair("idle_checkpoint_v5e", "v5e", &["remat layer_*"], Allowed::Share(0.06), true),
    // Two micro-batches in a loop of Python are in memory together, in a scan one after the other.
    pair("written_out_v5e", "v5e", &["micro loop"], Allowed::Share(0.06), true),
    // Weights are gathered beside other work, begun with the layer before; the sums of the softmax are put off.
    pair("gathered_layers_v5e", "v5e", &["remat *"], Allowed::Share(0.25), false),
    // Heads of the caches are divided over the devices, as many on each as have been taken for samples behind points.
    pair("decode_heads_v5e", "v5e", &["batch 0.5"], Allowed::Share(0.02), true),
    // What is learned from is collected from the environments whose state is passed on, and shuffled.
    pair("rollout_v5e", "v5e", &["batch 0.5"], Allowed::Share(0.02), true),
    pair("rollout_short_v5e", "v5e", &["dim 128 64"], Allowed::Share(0.02), true),
    // A memory of what environments were, written in place, counts them behind its places.
    pair("replay_v5e", "v5e", &["batch 2"], Allowed::Share(0.02), true),
    // Environments behind the dimension of a single mapped device write a few rows of a memory of many.
    pair("remembered_v5e", "v5e", &["batch 2"], Allowed::Share(0.02), true),
    // Numbers that are spread over all scores: what a mask fills in, and the scale.
    pair("prefill_masked_v6e", "v6e", &["batch 0.5"], Allowed::Share(0.02), true),
    // A loop over blocks of the positions in each layer: of fewer positions there are fewer blocks.
    pair("blocks_short_v5e", "v5e", &["dim 4096 2048"], Allowed::Share(0.08), true),
    // The larger batch fills the lanes, and the padding of the channels goes.
    pair("batch_lanes_v3", "v3", &["batch 2"], Allowed::Share(0.05), false),
    // Scores by relative position that the compiler moves to the backward pass now, as it is short of memory.
    pair("relative_xl_v4", "v4", &["remat *"], Allowed::Share(0.05), false),
    // The next 2,048 positions of a sequence, whose cache has 131,072 and keeps them.
    pair("prefill_v6e", "v6e", &["dim 2048 512"], Allowed::Share(0.02), true),
    pair("prefill_blocks_v6e", "v6e", &["blockwise *"], Allowed::Share(0.02), true),
    // One sample on each device, whose dimension the compiler leaves out of what windows of it attend to.
    pair("one_sample_v5e", "v5e", &["batch 2"], Allowed::Share(0.15), true),
    // Every device has all of the training state, but for v7x the compiler puts off gradients of weights all the same: without
    // them it would be a fifth less.
    pair("put_off_v7x", "v7x", &["remat *"], Allowed::Share(0.1), false),
    // A policy that no longer keeps what the MLP of each layer of a scan makes.
    pair("part_of_scan_v5e", "v5e", &["remat scan/mlp/*"], Allowed::Share(0.06), true),
    // Two modules applied ten times each, one application at a time computed again.
    pair("applied_v5e", "v5e", &["remat *"], Allowed::Share(0.25), false),
    // A scan over repeats of a scan over layers, with a checkpoint of the inner body.
    pair("nested_scans_v5e", "v5e", &["remat *"], Allowed::Share(0.15), false),
    // Adapters on frozen weights, whose gradients nobody sums; tokens are positions by samples.
    pair("adapters_micro_v5e", "v5e", &["micro 2"], Allowed::Share(0.2), false),
    pair("time_first_v5e", "v5e", &["batch 0.5"], Allowed::Share(0.2), true),
    // Both groups of devices hold the whole batch, which sizes alone do not tell: a part of the width is as long as the
    // sequence, and a device has as many heads as samples.
    pair("wrong_way_v5e", "v5e", &["constrain 2"], Allowed::Share(0.10), true),
    // Two gradients under the same names, the second where the first has led.
    pair("twice_v5e", "v5e", &["remat block_*"], Allowed::ShareOrVmem(0.10), false),
    // The next layer reads the parts of a sum that a checkpoint keeps in one piece; no name shows the layers.
    pair("summed_v5e", "v5e", &["remat *"], Allowed::Share(0.13), false),
    // Does not fit, so that it was never ordered: all gradients wait in the memory of results for their updates.
    pair("tables_v6e", "v6e", &["donate *"], Allowed::Share(0.10), true),
    // Does not fit, so that what is kept lies in a layout with less padding until it is read.
    pair("compressed_v5e", "v5e", &["donate *"], Allowed::Share(0.02), true),
];

fn device(generation: &str) -> Device {
    let row = TpuGeneration::by_name(generation).expect("a generation");
    Device {
        name: Some(row.display_name()),
        capacities: row
            .available_hbm()
            .map(|bytes| Capacity { color: MemorySpace::HBM, bytes, evidence: String::new() })
            .into_iter()
            .collect(),
        ..Device::default()
    }
}

/// The program of the project's dump whose path contains a name.
fn dump_of_project(name: &str) -> Program {
    let dumps = Files::of_project().named(|file| common::ends_with(file, ".hlo.pb"));
    let path = dumps.into_iter().find(|path| path.to_string_lossy().contains(name));
    common::program(&path.expect("a dump of the project"))
}

fn hbm(analysis: &ProgramAnalysis) -> &SpaceAnalysis {
    analysis.space(MemorySpace::HBM).expect("HBM")
}

fn predict(program: &Program, device: &Device, edits: &[&str]) -> (Memory, Prediction) {
    let analysis = ProgramAnalysis::new(program, device);
    let memory = Memory::new(program, &analysis, hbm(&analysis), device);
    let edits: Vec<Edit> = edits.iter().map(|text| text.parse().expect("an edit")).collect();
    let outcome = memory.evaluate(program, &edits, Depth::Packed);
    (memory, outcome)
}

fn error(predicted: u64, real: u64) -> f64 {
    (predicted as f64 - real as f64) / real as f64
}

/// Compares the prediction from the first program of each pair with the second program.
pub fn compare_predictions(files: &Files, pairs: &[Pair]) {
    let mut wrong = Vec::new();
    for pair in pairs {
        let file = |which: &str| files.ending(&format!("pairs/{}/{which}.hlo.pb", pair.name));
        let (before, after) = (file("before"), file("after"));
        let device = device(pair.generation);
        let (memory, outcome) = predict(&common::program(&before), &device, pair.edits);
        let after = common::program(&after);
        let real = ProgramAnalysis::new(&after, &device);
        let real = hbm(&real);
        let (peak, allocated) = (real.xprof.peak.0, real.xprof.allocated.0);
        let errors = [
            error(outcome.peak.0, peak),
            error(outcome.allocated_online.0, allocated),
            error(outcome.allocated.0, allocated),
        ];
        let base = error(outcome.base.0, real.xprof.always_live.0);
        println!(
            "{:<24} peak {} → {} ({:+.2} %), allocated {} ({:+.2} %), best {} ({:+.2} %), base {:+.3} %, {:?}",
            pair.name,
            memory.peak,
            outcome.peak.0,
            errors[0] * 100.0,
            outcome.allocated_online.0,
            errors[1] * 100.0,
            outcome.allocated.0,
            errors[2] * 100.0,
            base * 100.0,
            outcome.warnings
        );
        let limit = |bytes: u64| match pair.allowed {
            Allowed::Share(share) => share,
            Allowed::ShareOrVmem(share) => share.max(memory.vmem as f64 / bytes as f64),
        };
        // For allocated bytes, the nearer of the two packers counts: the prediction is the interval between them.
        let nearer = errors[1].abs().min(errors[2].abs());
        if errors[0].abs() > limit(peak) || nearer > limit(allocated) {
            wrong.push(format!("{}: {errors:?}", pair.name));
        }
        if pair.exact_base && base.abs() > 0.003 {
            wrong.push(format!("{}: what lives throughout is {:+.2} % off", pair.name, base * 100.0));
        }
        let fits = real.capacity.as_ref().map(|c| real.xprof.allocated <= c.bytes);
        if outcome.fits != fits {
            wrong.push(format!("{}: fits {:?} instead of {fits:?}", pair.name, outcome.fits));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn predictions_are_as_good_as_promised() {
    compare_predictions(&Files::of_project(), PAIRS);
}

#[test]
fn what_flash_attention_may_keep_is_not_kept_of_layers_that_are_checkpointed() {
    let device = Device::default();
    for (name, layers) in [("pairs/scores_over_v5e/before.hlo.pb", "remat *"), ("v5e_gpt_scan_oom/", "remat scan")] {
        let program = dump_of_project(name);
        let most = |edits: &[&str]| predict(&program, &device, edits).1.allocated_range.1.0;
        let kept = most(&["blockwise *"]);
        for edits in [["blockwise *", layers], [layers, "blockwise *"]] {
            assert!(most(&edits) < kept / 2, "{name}: {} of {kept}", most(&edits));
        }
        // Half of the batch keeps half of it.
        let half = most(&["blockwise *", "batch 0.5"]);
        assert!(half < kept * 2 / 3, "{name}: {half} of {kept}");
    }
}

/// What loses the memory of a result where an argument is donated to it is listed under its own name.
#[test]
fn what_needs_memory_of_its_own_after_donation_keeps_its_name() {
    let mut checked = 0;
    for pair in PAIRS.iter().filter(|pair| pair.edits.iter().all(|edit| edit.starts_with("donate"))) {
        let program = dump_of_project(&format!("pairs/{}/before.hlo.pb", pair.name));
        let (memory, outcome) = predict(&program, &device(pair.generation), pair.edits);
        let families = memory.families.list.len();
        let rows = outcome.sizes.blocks.iter().zip(&outcome.sizes.family);
        for (block, &row) in rows.filter(|row| *row.1 as usize >= families) {
            let buffer = memory.buffer_of_row(row);
            let bytes = program.buffers.size_of(buffer).0;
            assert!(bytes <= block.size && bytes * 4 >= block.size, "{}: {bytes} of {}", pair.name, block.size);
            checked += 1;
        }
    }
    assert!(checked > 0, "some pair has such values");
}

/// Whether gradients of adapters wait for the end of the backward pass is not known where the weights beside them are divided:
/// here they do. What fits only if they do not may fit.
#[test]
fn what_adapters_may_put_off_is_said() {
    let program = dump_of_project("pairs/adapters_whole_v5p/before.hlo.pb");
    let after = dump_of_project("pairs/adapters_whole_v5p/after.hlo.pb");
    let device = device("v5p");
    let real = hbm(&ProgramAnalysis::new(&after, &device)).xprof.allocated.0;
    let with_room = |bytes: u64| {
        let capacity = Capacity { color: MemorySpace::HBM, bytes: Bytes(bytes), evidence: "of the test".to_owned() };
        predict(&program, &Device { capacities: vec![capacity], ..device.clone() }, &["remat layer_*"]).1
    };
    let outcome = with_room(95 << 30);
    let times = real as f64 / outcome.expected().0 as f64;
    assert!((1.5..1.65).contains(&times), "{times}");
    assert!(outcome.warnings.iter().any(|warning| warning.contains("adapters")), "{:?}", outcome.warnings);
    assert_eq!(outcome.verdict, TryVerdict::Fits);
    assert_eq!(with_room(real - (1 << 20)).verdict, TryVerdict::MayFit);
}

/// A path to layers means them where their names begin at the layer, and a wrong one nothing.
#[test]
fn layers_can_be_named_by_a_path() {
    let program = dump_of_project("v5e_gpt_m_oom/");
    let device = Device::default();
    let peak = |edit: &str| predict(&program, &device, &[edit]).1.peak;
    assert!(peak("remat layer_*") < peak("remat other_*"));
    assert_eq!(peak("remat model.layer_*"), peak("remat layer_*"));
    assert_eq!(peak("remat model.other_*"), peak("remat other_*"));
}

/// With little room, the sums of gradients that micro-batches keep may be too much, whatever is recomputed.
#[test]
fn the_range_of_micro_batches_holds_what_is_expected_and_more() {
    let program = dump_of_project("v5e_gpt_m_oom/");
    let prediction = predict(&program, &device("TPU v5e"), &["micro 2"]).1;
    let high = prediction.allocated_range.1.0;
    assert!(high as f64 >= prediction.expected().0 as f64 * 1.09, "{high} of {}", prediction.expected());
}

/// Checks that a what-if without changes gives the program's own numbers; returns the number of programs.
pub fn unchanged_programs(files: &Files) -> usize {
    let mut checked = 0;
    for path in files
        .named(|name| common::ends_with(name, "after_optimizations.hlo.pb") || common::ends_with(name, "before.hlo.pb"))
    {
        let program = common::program(&path);
        let device = Device::default();
        let analysis = ProgramAnalysis::new(&program, &device);
        let Some(space) = analysis.space(MemorySpace::HBM) else { continue };
        let memory = Memory::new(&program, &analysis, space, &device);
        let outcome = memory.evaluate(&program, &[], Depth::Verdict);
        assert_eq!(outcome.peak, space.xprof.peak, "{}", common::name(&path));
        assert_eq!(outcome.base, space.xprof.always_live, "{}", common::name(&path));
        if memory.correction != 0 {
            println!("{}: {} bytes beyond the families", common::name(&path), memory.correction);
        }
        checked += 1;
    }
    checked
}

#[test]
fn no_change_changes_nothing() {
    assert!(unchanged_programs(&Files::of_project()) >= 24);
}
