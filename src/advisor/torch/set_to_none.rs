//! `torch_set_to_none`: gradients that stay through the next forward pass.

use super::evidence::{devices, finding};
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
        let first = |wanted: &[AllocationCategory]| {
            let starts = device.replay.lifetimes.iter().zip(&device.categories);
            starts
                .filter(|(life, (category, _))| life.start > step.end && wanted.contains(category))
                .map(|(life, _)| life.start)
                .next()
        };
        let Some(forward) = first(&[AllocationCategory::Activation, AllocationCategory::ForwardTemp]) else { continue };
        let backward = first(&[AllocationCategory::Gradient, AllocationCategory::BackwardTemp]).unwrap_or(u32::MAX);
        if !(forward..backward).contains(&peak.moment) {
            continue;
        }
        let is_held =
            |row: usize| is_gradient_before(device, row, step.start) && device.replay.lifetimes[row].end > forward;
        let held: u64 = device
            .live_at(peak.moment)
            .filter(|&row| is_held(row))
            .map(|row| device.replay.lifetimes[row].requested)
            .sum();
        if (held as f64) < SHARE * peak.bytes as f64 || held == 0 {
            continue;
        }
        let mut finding = finding("torch_set_to_none", device, true);
        finding.title = format!("{} of gradients stay through the forward pass", Bytes(held).short());
        finding.why = format!(
            "They were made before the optimizer's step and still live at the peak in the next forward pass: up to {} less",
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

/// Whether a lifetime is a gradient that was made before a moment.
fn is_gradient_before(device: &CachingAnalysis, row: usize, moment: u32) -> bool {
    device.categories[row].0 == AllocationCategory::Gradient && device.replay.lifetimes[row].start <= moment
}
