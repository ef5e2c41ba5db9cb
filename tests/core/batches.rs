//! Which dimension of the data is the batch, and how much of it a step uses.

use highwater::advisor::advise;
use highwater::analysis::ProfileAnalysis;
use highwater::analysis::class::Class;
use highwater::analysis::what_if::{Depth, Edit};
use highwater::model::{Bytes, Capacity, MemorySpace, Profile};
use highwater::open;
use highwater::source::Progress;

use crate::common::Files;

fn step(folder: &str) -> Profile {
    open::open_path(&Files::of_project().case(folder), &Progress::default()).expect("opens")
}

#[test]
fn several_states_of_one_graph_are_a_batch() {
    let profile = step("v5e_graph_states");
    let analysis = ProfileAnalysis::new(&profile);
    let scene = analysis.scene(&profile, 0, MemorySpace::HBM).expect("HBM");
    let memory = scene.memory();
    // Of 8,192 nodes there are 16 states, 4 on each device.
    assert_eq!(memory.data.first().map(|data| (data.batch(), data.parts)), Some((4, 4)));
    let half = memory.evaluate(&profile.programs[0], &[Edit::Batch(0.5)], Depth::Verdict);
    // Really compiled with 8 states.
    let really = 641_643_520u64;
    assert!(half.expected().0.abs_diff(really) * 10 <= really, "{} instead of {really}", half.expected());
}

#[test]
fn samples_that_are_left_out_are_no_micro_batches() {
    let mut profile = step("v5e_cut_batch");
    let capacity = Capacity { color: MemorySpace::HBM, bytes: Bytes(4 << 30), evidence: "of the test".to_owned() };
    profile.device.capacities.push(capacity);
    let analysis = ProfileAnalysis::new(&profile);
    let advice = advise(&profile, &analysis);
    let batches: Vec<(i64, i64)> = advice.batches.iter().map(|fit| (fit.now, fit.micro_batches)).collect();
    assert_eq!(batches, [(4, 1)], "of 4 samples on each device the first is used");
    let rules: Vec<&str> = advice.findings.iter().map(|finding| finding.rule).collect();
    assert!(rules.contains(&"activations") && !rules.contains(&"unsharded_activations"), "{rules:?}");
    let advice: Vec<&String> = advice.findings.iter().flat_map(|finding| &finding.advice).collect();
    assert!(!advice.iter().any(|words| words.contains("micro-batch")), "{advice:?}");
}

#[test]
fn pages_that_a_table_gives_out_follow_the_batch() {
    let profile = step("v6e_pages");
    let analysis = ProfileAnalysis::new(&profile);
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let scene = analysis.scene(&profile, 0, MemorySpace::HBM).expect("HBM");
    let memory = scene.memory();
    // 96 users of 128 pages each, and one that is nobody's.
    let pages: Vec<(i64, i64)> = memory.data.iter().map(|data| (data.batch(), data.pages)).collect();
    assert_eq!(pages.iter().filter(|row| **row == (96, 96 * 128 + 1)).count(), 2, "{pages:?}");
    let classes = own.classes(program);
    let pools = memory.data.iter().filter(|data| data.pages > 0);
    assert!(pools.map(|data| memory.base[data.base as usize].buffer).all(|own| classes.of(own) == Class::Cache));
    let half = memory.evaluate(program, &[Edit::Batch(0.5)], Depth::Verdict);
    // Really compiled with 48 users.
    let really = 983_836_736u64;
    assert!(half.expected().0.abs_diff(really) * 100 <= really, "{} instead of {really}", half.expected());
}

#[test]
fn places_of_experts_follow_the_batch() {
    let profile = step("v6e_moe_places");
    let analysis = ProfileAnalysis::new(&profile);
    let scene = analysis.scene(&profile, 0, MemorySpace::HBM).expect("HBM");
    // 98,304 places for 16,384 words of which four experts of 32 each take one: 12,288 for each of eight on a device.
    let half = scene.memory().evaluate(&profile.programs[0], &[Edit::Batch(0.5)], Depth::Verdict);
    // Really compiled with half of the words.
    let really = 23_096_864_448u64;
    assert!(half.expected().0.abs_diff(really) * 20 <= really, "{} instead of {really}", half.expected());
}

#[test]
fn places_of_caches_for_other_sequences_do_not_follow_the_batch() {
    let profile = step("v5e_slots");
    let analysis = ProfileAnalysis::new(&profile);
    let scene = analysis.scene(&profile, 0, MemorySpace::HBM).expect("HBM");
    // Six prompts are read into caches for 24 sequences, which are not donated.
    let half = scene.memory().evaluate(&profile.programs[0], &[Edit::Batch(0.5)], Depth::Verdict);
    // Really compiled with half of the prompts.
    let really = 10_635_762_688u64;
    assert!(half.expected().0.abs_diff(really) * 100 <= really, "{} instead of {really}", half.expected());
}
