//! `torch_logits`: several buffers of the size of the logits around the loss.

use super::evidence::{devices, finding, place, whole};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::{AllocationCategory, CachingAnalysis, Lifetime};
use crate::model::{Bytes, CachingSnapshot, StackId, counted, percent};

/// Least share of one buffer at the peak.
const SHARE: f64 = 0.15;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let (moment, all) = (device.main_moment(), whole(device));
        let live: Vec<usize> = device.live_at(moment).filter(|&row| is_of_a_pass(device, row)).collect();
        let at = |row: &usize| &device.replay.lifetimes[*row];
        let is_loss = |row: &&usize| names_loss(snapshot, at(row).stack);
        let loss: Option<&Lifetime> = live.iter().filter(is_loss).map(at).max_by_key(|lifetime| lifetime.requested);
        let Some(loss) = loss.filter(|loss| all > 0 && loss.requested as f64 > SHARE * all as f64) else { continue };
        let alike = |&&row: &&usize| {
            let bytes = at(&row).requested;
            is_near(bytes, loss.requested) || is_near(bytes.saturating_mul(2), loss.requested)
        };
        let others: Vec<usize> = live.iter().filter(alike).copied().collect();
        if others.len() < 2 {
            continue;
        }
        let bytes: u64 = others.iter().map(|row| at(row).requested).sum();
        let saved = bytes.saturating_sub(loss.requested);
        let mut finding = finding("torch_logits", device, false);
        finding.title = format!(
            "{} of the size of the logits hold {}, {} of the peak",
            counted(others.len() as u64, "buffer"),
            Bytes(bytes).short(),
            percent(bytes, all)
        );
        finding.why = format!(
            "The loss in {} keeps the logits, their softmax and their gradient at the same time. Computed in pieces, all but one go: up to {}",
            place(snapshot, loss.stack),
            Bytes(saved).short()
        );
        finding.advice = vec![
            "Compute projection and loss in chunks over the sequence, or with a fused linear cross entropy (Liger Kernel, Apple's cut cross entropy)".to_owned(),
        ];
        finding.at_stake_bytes = Some(Bytes(saved));
        finding.at_most = Some("at most: all but one of the buffers".to_owned());
        finding.reference = "torch.nn.functional.cross_entropy, docs.pytorch.org";
        findings.push(finding);
    }
}

/// Whether a lifetime belongs to the forward or the backward pass.
fn is_of_a_pass(device: &CachingAnalysis, row: usize) -> bool {
    matches!(
        device.categories[row].0,
        AllocationCategory::Activation
            | AllocationCategory::ForwardTemp
            | AllocationCategory::BackwardTemp
            | AllocationCategory::Gradient
    )
}

/// Whether a stack goes through a loss over classes.
fn names_loss(snapshot: &CachingSnapshot, stack: StackId) -> bool {
    snapshot.frames(stack).any(|frame| {
        let name = snapshot.strings.get(frame.name);
        name.contains("cross_entropy") || name.contains("log_softmax")
    })
}

/// Whether two sizes differ by less than a hundredth.
fn is_near(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= b / 100
}
