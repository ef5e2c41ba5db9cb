//! Training state that is divided over the devices of the batch: what the compiler then does, held against changes that were
//! really made and compiled with libtpu 0.0.52.

use highwater::analysis::ProfileAnalysis;
use highwater::analysis::what_if::{Depth, Edit, Prediction, TryVerdict};
use highwater::model::{MemorySpace, Profile};
use highwater::open;
use highwater::source::Progress;

use crate::common::Files;

fn step(folder: &str) -> Profile {
    open::open_path(&Files::of_project().case(folder), &Progress::default()).expect("opens")
}

/// A decoder of four layers that are no scan, on 8 devices that each have all of the training state.
fn whole() -> Profile {
    step("v5e_decoder_whole")
}

fn tried(profile: &Profile, edits: &[&str]) -> Prediction {
    let edits: Vec<Edit> = edits.iter().map(|edit| edit.parse().expect("an edit")).collect();
    let analysis = ProfileAnalysis::new(profile);
    let scene = analysis.scene(profile, 0, MemorySpace::HBM).expect("HBM");
    scene.memory().evaluate(&profile.programs[0], &edits, Depth::Verdict)
}

fn says(prediction: &Prediction, words: &str) -> bool {
    prediction.warnings.iter().any(|warning| warning.contains(words))
}

/// What is said of gradients that are put off.
const PUT_OFF: &str = "puts off the gradients of the weights";

#[test]
fn gradients_are_put_off_where_state_is_divided() {
    let whole = whole();
    let alone = tried(&whole, &["remat *"]);
    assert!(!says(&alone, PUT_OFF), "{:?}", alone.warnings);
    let zero = tried(&whole, &["remat *", "shard opt_state 8"]);
    assert!(says(&zero, "the optimizer's state is divided") && says(&zero, PUT_OFF), "{:?}", zero.warnings);
    // Really 220,993,024 and 258,504,192 bytes: dividing the state takes more, not less.
    assert!(zero.expected() > alone.expected(), "{} and {}", zero.expected(), alone.expected());
    assert!(zero.allocated_range.0.0 <= 258_504_192 && 258_504_192 <= zero.allocated_range.1.0, "{zero:?}");

    let divided = tried(&step("v6e_decoder_fsdp"), &["remat *"]);
    assert!(says(&divided, "the weights are divided") && says(&divided, PUT_OFF), "{:?}", divided.warnings);
    let batch = tried(&step("v6e_decoder_fsdp"), &["batch 0.5"]);
    assert!(!says(&batch, PUT_OFF), "only checkpoints are told so: {:?}", batch.warnings);
}

#[test]
fn a_vocabulary_that_devices_do_not_divide_leaves_logits_the_whole_batch() {
    let whole = whole();
    let now = tried(&whole, &[]).expected();
    let edits = ["shard params 8", "shard opt_state 8"];
    let divided = tried(&whole, &edits);
    // Really 1,864,736,256 bytes, five times as much as now, though each device has an eighth of the state.
    assert!(divided.expected().0 > 2 * now.0, "{} instead of {now}", divided.expected());
    assert!(says(&divided, "8 devices do not divide the vocabulary of 4,100"), "{:?}", divided.warnings);
    assert!(says(&divided, "Pad the vocabulary to 4,104"), "{:?}", divided.warnings);
    let constrained = tried(&whole, &["shard params 8", "shard opt_state 8", "constrain 8"]);
    assert!(constrained.expected() < now && !says(&constrained, "vocabulary"), "{:?}", constrained.warnings);
    assert_eq!(constrained.verdict, TryVerdict::Fits);
}

#[test]
fn a_change_may_name_a_class_of_arguments() {
    let whole = whole();
    let by_name = tried(&whole, &["shard opt_state 8"]);
    let by_class = tried(&whole, &["shard optimizer 8"]);
    assert_eq!(by_class.expected(), by_name.expected());
    assert!(
        says(&by_class, "no argument begins with optimizer, which is taken for a class: opt_state"),
        "{by_class:?}"
    );
    let unknown = tried(&whole, &["shard nothing 8"]);
    assert!(unknown.undecided.is_some(), "{unknown:?}");
}
