//! `torch_set_to_none`: gradients that stay through the next forward pass.

use super::evidence::{devices, finding};
use super::unused_gradients;
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::{AllocationCategory, CachingAnalysis};
use crate::model::Bytes;

/// Least share of such gradients at the peak.
const SHARE: f64 = 0.05;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (_, device) in devices(subject) {
        let peak = device.replay.peaks.requested;
        // A step for every backward pass, so that nothing is accumulated; the peak lies between two steps.
        let step = device.spans.iter().rfind(|span| span.end < peak.moment);
        let Some(step) = step.filter(|_| device.spans.len() >= 2) else { continue };
        let lifetimes = &device.replay.lifetimes;
        let first = |wanted: &[AllocationCategory]| {
            let starts = lifetimes.iter().zip(&device.categories);
            starts
                .filter(|(life, (category, _))| life.start > step.end && wanted.contains(category))
                .map(|(life, _)| life.start)
                .next()
        };
        let Some(forward) = first(&[AllocationCategory::Activation, AllocationCategory::ForwardTemp]) else { continue };
        if peak.moment < forward {
            continue;
        }
        // The peak lies in the forward pass, or so far into the backward pass: what is made later there, is not yet there if
        // it is released after the step.
        let backward: Vec<u32> =
            (0..lifetimes.len()).filter(|&row| is_of_backward(device, row)).map(|row| lifetimes[row].start).collect();
        let before = |moment: u32| backward.partition_point(|&start| start <= moment);
        let passed = before(peak.moment).saturating_sub(before(step.end));
        let is_held = |row: usize| {
            let life = &lifetimes[row];
            device.categories[row].0 == AllocationCategory::Gradient
                && life.start <= step.start
                && life.end > forward
                && {
                    let made_in = device.spans.iter().rfind(|span| span.end < life.start).map_or(0, |span| span.end);
                    before(life.start).saturating_sub(before(made_in)) > passed
                }
        };
        let rows: Vec<usize> = device.live_at(peak.moment).filter(|&row| is_held(row)).collect();
        // Gradients that no step releases while it releases others are another matter.
        let releases = unused_gradients::has_released(device);
        let held: u64 = rows.iter().map(|&row| lifetimes[row].requested).sum();
        let is_unused = releases && rows.iter().all(|&row| unused_gradients::crosses_steps(device, row));
        if (held as f64) < SHARE * peak.bytes as f64 || held == 0 || is_unused {
            continue;
        }
        let mut finding = finding("torch_set_to_none", device, true);
        finding.title = format!("{} of gradients stay through the forward pass", Bytes(held).short());
        finding.why = format!(
            "They were made before the optimizer's step and still live at the peak in the next forward or backward pass, where they would not be made yet: up to {} less",
            Bytes(held).short()
        );
        finding.advice = vec![
            "Release gradients right after the step: `optimizer.zero_grad(set_to_none=True)`, the default since PyTorch 2.0".to_owned(),
        ];
        finding.at_stake_bytes = Some(Bytes(held));
        finding.at_most = Some("at most: another moment may then be the peak".to_owned());
        finding.reference = "torch.optim.Optimizer.zero_grad, docs.pytorch.org";
        findings.push(finding);
    }
}

/// Whether a lifetime was made by the backward pass.
fn is_of_backward(device: &CachingAnalysis, row: usize) -> bool {
    matches!(device.categories[row].0, AllocationCategory::Gradient | AllocationCategory::BackwardTemp)
}
