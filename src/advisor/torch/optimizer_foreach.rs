//! `torch_optimizer_foreach`: temporaries of the optimizer's step at the peak.

use super::evidence::{bytes_of, devices, finding, whole, without};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::AllocationCategory;
use crate::model::{Bytes, percent};

/// Least share at the peak.
const SHARE: f64 = 0.10;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (_, device) in devices(subject) {
        let moment = device.main_moment();
        let (bytes, all) = (bytes_of(device, AllocationCategory::OptimizerTemp), whole(device));
        let is_inside = device.spans.iter().any(|span| span.start < moment && moment <= span.end);
        if !is_inside || all == 0 || (bytes as f64) < SHARE * all as f64 {
            continue;
        }
        let (saved, sentence) = without(device, |row| device.categories[row].0 == AllocationCategory::OptimizerTemp);
        let mut finding = finding("torch_optimizer_foreach", device, true);
        let share = percent(bytes, all);
        finding.title =
            format!("The optimizer's step holds {} of temporaries, {share} of the peak", Bytes(bytes).short());
        finding.why = sentence;
        finding.advice = vec![
            "Pass `fused=True` to the optimizer, or `foreach=False`, which is slower: the default holds about a copy of the parameters".to_owned(),
        ];
        finding.at_stake_bytes = Some(saved);
        finding.reference = "torch.optim, docs.pytorch.org/docs/stable/optim.html";
        findings.push(finding);
    }
}
