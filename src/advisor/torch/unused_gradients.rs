//! `torch_unused_gradients`: gradients that no optimizer steps on and that nothing releases: parameters that were not frozen.

use std::collections::HashSet;

use super::evidence::{devices, finding, replayed, share, whole};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::{AllocationCategory, CachingAnalysis};
use crate::model::{Bytes, CachingSnapshot, StackId};

/// Least share of such gradients at the main moment.
const SHARE: f64 = 0.02;

/// Steps that a gradient outlives if no optimizer knows it.
const STEPS: usize = 2;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        if !has_released(device) {
            continue;
        }
        let lifetimes = &device.replay.lifetimes;
        let live: Vec<usize> = device.live_at(device.main_moment()).filter(|&row| crosses_steps(device, row)).collect();
        let bytes: u64 = live.iter().map(|&row| lifetimes[row].requested).sum();
        let all = whole(device);
        if all == 0 || (bytes as f64) < SHARE * all as f64 || live.len() < 2 {
            continue;
        }
        let kept_for = kept_for(snapshot, device, &live);
        let is_kept = |row: usize| {
            device.categories[row].0 == AllocationCategory::Activation && kept_for.contains(&lifetimes[row].stack)
        };
        let kept: u64 =
            device.live_at(device.main_moment()).filter(|&row| is_kept(row)).map(|row| lifetimes[row].requested).sum();
        let mut finding = finding("torch_unused_gradients", device, true);
        let after = device.requested_peak_without(|row| crosses_steps(device, row) || is_kept(row));
        let sentence = replayed(&mut finding, device, after);
        finding.title = format!(
            "{} of gradients outlive every step, {}: no optimizer uses them",
            Bytes(bytes).short(),
            share(device, bytes)
        );
        finding.why = format!(
            "Others are released after each step. The activations that are freed while these gradients are made, {} at this moment, are kept for them alone. Replayed without both, {sentence}",
            Bytes(kept).short()
        );
        finding.advice = vec![
            "Freeze what is not trained, such as a teacher: `model.requires_grad_(False)`, and run it under `torch.no_grad()`".to_owned(),
            "If it is meant to be trained, give its parameters to the optimizer, or call `model.zero_grad()`".to_owned(),
        ];
        finding.at_most = Some("about: which activations are kept for them is told by when they are freed".to_owned());
        finding.is_guess = true;
        finding.reference = "Locally disabling gradient computation, docs.pytorch.org/docs/stable/notes/autograd.html";
        findings.push(finding);
    }
}

/// Whether a gradient outlives several steps.
pub fn crosses_steps(device: &CachingAnalysis, row: usize) -> bool {
    let life = &device.replay.lifetimes[row];
    let first = device.spans.partition_point(|span| span.start < life.start);
    device.categories[row].0 == AllocationCategory::Gradient
        && device.spans.get(first + STEPS - 1).is_some_and(|span| life.end > span.end)
}

/// Whether some gradients are released before the next step.
pub fn has_released(device: &CachingAnalysis) -> bool {
    let lifetimes = &device.replay.lifetimes;
    let is_gradient = |row: &usize| device.categories[*row].0 == AllocationCategory::Gradient;
    let ends_early = |row: usize| {
        let life = &lifetimes[row];
        let first = device.spans.partition_point(|span| span.start < life.start);
        device.spans.get(first + 1).is_some_and(|span| life.end <= span.start)
    };
    device.spans.len() > STEPS && (0..lifetimes.len()).filter(is_gradient).filter(|&row| ends_early(row)).count() >= 2
}

/// Stacks of the activations that are freed while some gradients are made.
fn kept_for(snapshot: &CachingSnapshot, device: &CachingAnalysis, gradients: &[usize]) -> HashSet<StackId> {
    let lifetimes = &device.replay.lifetimes;
    let starts = || gradients.iter().map(|&row| lifetimes[row].start);
    let (Some(from), Some(to)) = (starts().min(), starts().max()) else { return HashSet::new() };
    let is_freed = |row: &usize| {
        let life = &lifetimes[*row];
        device.categories[*row].0 == AllocationCategory::Activation && (from..=to).contains(&life.end)
    };
    let freed = (0..lifetimes.len()).filter(is_freed).map(|row| lifetimes[row].stack);
    freed.filter(|&stack| snapshot.frames(stack).next().is_some()).collect()
}
