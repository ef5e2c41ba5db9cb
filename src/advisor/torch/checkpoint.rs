//! `torch_checkpoint`: activations of repeated layers, kept for the backward pass.

use super::evidence::{bytes_of, devices, finding, place, replayed, share, whole};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::AllocationCategory;
use crate::model::{Bytes, thousands};

/// Its name.
pub const NAME: &str = "torch_checkpoint";

/// Least share of activations at the peak.
const SHARE: f64 = 0.25;

/// Least part of the peak that is saved.
const SAVED: f64 = 0.02;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let (activations, all) = (bytes_of(device, AllocationCategory::Activation), whole(device));
        // Without a backward pass nothing is recomputed; a cache or kept graphs tell that none comes.
        let is_evaluation = device.kept_graphs.is_some()
            || (!device.has_backward && bytes_of(device, AllocationCategory::Cache) > activations);
        if (activations as f64) < SHARE * all as f64 || all == 0 || is_evaluation {
            continue;
        }
        let Some(found) = device.checkpointed(snapshot) else { continue };
        let before = device.replay.peaks.requested.bytes;
        if (before.saturating_sub(found.after) as f64) < SAVED * before as f64 {
            continue;
        }
        let mut finding = finding(NAME, device, true);
        let sentence = replayed(&mut finding, device, found.after);
        finding.title = format!("Activations hold {}, {}", Bytes(activations).short(), share(device, activations));
        finding.why = format!(
            "{} of them are kept by {} layers for the backward pass, most in {}. Recomputed there one layer at a time, so that only their inputs stay, {sentence}",
            Bytes(found.bytes).short(),
            thousands(found.layers),
            place(snapshot, found.largest)
        );
        if !device.has_backward {
            finding.why =
                format!("{}. The history has no backward pass: this holds if the program trains", finding.why);
        }
        finding.advice = vec![
            "Wrap each repeated layer in `torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)`".to_owned(),
            "Or make the batch smaller and accumulate gradients over several".to_owned(),
        ];
        finding.at_most = Some(
            "about: within 7 % of what was saved in nine of the ten programs that this was worked out on, 11 % too little in a U-Net of unequal layers"
                .to_owned(),
        );
        finding.is_guess = !device.has_backward;
        finding.reference = "torch.utils.checkpoint, docs.pytorch.org/docs/stable/checkpoint.html";
        findings.push(finding);
    }
}
