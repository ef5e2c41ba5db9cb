//! `torch_no_grad`: graphs of forward passes that no backward pass uses.

use super::evidence::{devices, finding, place, replayed, share, whole};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::AllocationCategory;
use crate::model::{Bytes, thousands};

/// Least share at the main moment.
const SHARE: f64 = 0.2;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let Some(kept) = device.kept_graphs else { continue };
        let lifetimes = &device.replay.lifetimes;
        let is_graph = |row: usize| {
            device.categories[row].0 == AllocationCategory::Activation && lifetimes[row].start > kept.since
        };
        let rows: Vec<usize> = device.live_at(device.main_moment()).filter(|&row| is_graph(row)).collect();
        let bytes: u64 = rows.iter().map(|&row| lifetimes[row].requested).sum();
        let all = whole(device);
        let Some(&largest) = rows.iter().max_by_key(|&&row| lifetimes[row].requested) else { continue };
        if all == 0 || (bytes as f64) < SHARE * all as f64 {
            continue;
        }
        let mut finding = finding("torch_no_grad", device, true);
        let sentence = replayed(&mut finding, device, device.requested_peak_without(is_graph));
        finding.title = format!(
            "What {} forward passes save for a backward pass is kept: {}, {}",
            thousands(kept.passes),
            Bytes(bytes).short(),
            share(device, bytes)
        );
        let history =
            if device.has_backward { "No backward pass follows them" } else { "The history has no backward pass" };
        finding.why = format!(
            "{history}, most is made in {}. Replayed without what they keep, {sentence}",
            place(snapshot, lifetimes[largest].stack)
        );
        finding.advice = vec![
            "Evaluate and generate under `torch.inference_mode()` or `torch.no_grad()`; `model.eval()` alone does not switch gradients off".to_owned(),
            "Detach outputs that are kept (`output.detach()`), and move them to the host if they are many: each holds its whole graph".to_owned(),
        ];
        finding.at_most = Some("about: outputs that are kept stay".to_owned());
        finding.reference = "Locally disabling gradient computation, docs.pytorch.org/docs/stable/notes/autograd.html";
        findings.push(finding);
    }
}
