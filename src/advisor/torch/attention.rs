//! `torch_attention`: attention scores kept in full, by their softmax inside of layers.

use std::collections::BTreeSet;

use super::evidence::{devices, finding, names, place, replayed, share, whole};
use crate::advisor::finding::{ChangesResults, Finding};
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::{AllocationCategory, CachingAnalysis, own_frame};
use crate::model::{Bytes, CachingSnapshot, StackId, counted};

/// Least share at the main moment.
const SHARE: f64 = 0.15;

/// Modules that a softmax of attention is called from: the layer, and the model around it.
const MODULES: usize = 2;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let at = |row: usize| &device.replay.lifetimes[row];
        let is_kept = |row: usize| device.categories[row].0 == AllocationCategory::Activation;
        let live: Vec<usize> = device.live_at(device.main_moment()).filter(|&row| is_kept(row)).collect();
        // Most bytes first among the sizes of what such a softmax makes.
        let softmax: Vec<usize> = live.iter().copied().filter(|&row| is_softmax(snapshot, at(row).stack)).collect();
        let Some(&largest) = softmax.iter().max_by_key(|&&row| at(row).requested) else { continue };
        let sizes: BTreeSet<u64> = softmax.iter().map(|&row| at(row).requested).collect();
        // Scores before it and after dropout are of its size, or of half or twice it in another type.
        let is_scores = |row: usize| {
            let bytes = at(row).requested;
            is_kept(row)
                && is_inside(snapshot, at(row).stack)
                && (sizes.contains(&bytes) || sizes.contains(&bytes.saturating_mul(2)) || sizes.contains(&(bytes / 2)))
                && is_attention(snapshot, device, row, largest)
        };
        let scores: Vec<usize> = live.iter().copied().filter(|&row| is_scores(row)).collect();
        let bytes: u64 = scores.iter().map(|&row| at(row).requested).sum();
        let all = whole(device);
        if all == 0 || (bytes as f64) < SHARE * all as f64 {
            continue;
        }
        let mut finding = finding("torch_attention", device, true);
        let sentence = replayed(&mut finding, device, device.requested_peak_without(is_scores));
        finding.title = format!("Attention scores hold {}, {}", Bytes(bytes).short(), share(device, bytes));
        finding.why = format!(
            "{} of the size of a softmax inside of a layer, in {}: every position with every other. Replayed without them, {sentence}",
            counted(scores.len() as u64, "buffer"),
            place(snapshot, at(largest).stack)
        );
        finding.advice = vec![
            "Call `torch.nn.functional.scaled_dot_product_attention`, which keeps no scores (`attn_implementation=\"sdpa\"` in Transformers)".to_owned(),
        ];
        finding.at_most = Some("about: the fused kernel's own buffers are small".to_owned());
        finding.changes_results = ChangesResults::Maybe;
        finding.is_guess = true;
        finding.reference = "torch.nn.functional.scaled_dot_product_attention, docs.pytorch.org";
        findings.push(finding);
    }
}

/// Modules that a stack is called through.
fn is_inside(snapshot: &CachingSnapshot, stack: StackId) -> bool {
    let calls = snapshot.frames(stack).filter(|frame| snapshot.strings.get(frame.name) == "_call_impl");
    calls.take(MODULES).count() == MODULES
}

/// Whether a stack ends in a softmax inside of a layer.
fn is_softmax(snapshot: &CachingSnapshot, stack: StackId) -> bool {
    let is_wanted = |name: &str| name == "softmax" || name.starts_with("at::_ops::softmax_int::call");
    let is_loss = |name: &str| name.contains("cross_entropy") || name.contains("log_softmax");
    names(snapshot, stack, is_wanted) && !names(snapshot, stack, is_loss) && is_inside(snapshot, stack)
}

/// Whether a buffer is made in the same function as a softmax: the innermost frames of the program's own agree in file and
/// function.
fn is_attention(snapshot: &CachingSnapshot, device: &CachingAnalysis, row: usize, softmax: usize) -> bool {
    let own = |row: usize| {
        let frame = own_frame(snapshot, device.replay.lifetimes[row].stack)?;
        Some((frame.file, frame.name))
    };
    own(row).is_some() && own(row) == own(softmax)
}
