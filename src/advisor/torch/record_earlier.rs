//! `torch_record_earlier`: much of the peak is older than the history.

use super::evidence::{bytes_of, devices, whole};
use crate::advisor::finding::{Finding, Severity};
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::AllocationCategory;
use crate::model::{Bytes, percent, thousands};

/// Least share at the peak.
const SHARE: f64 = 0.20;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (_, device) in devices(subject) {
        let (bytes, all) = (bytes_of(device, AllocationCategory::Before), whole(device));
        if device.device.events.is_empty() || all == 0 || (bytes as f64) < SHARE * all as f64 {
            continue;
        }
        let mut finding = Finding { severity: Severity::Hint, ..Finding::new("torch_record_earlier") };
        let share = percent(bytes, all);
        finding.title = format!("{} ({share}) are older than the history", Bytes(bytes).short());
        finding.why = format!(
            "The history has {} events and begins with {} blocks already live, so most of them have no stack",
            thousands(device.device.events.len() as u64),
            thousands(device.old_blocks)
        );
        finding.advice = vec![
            "Record from before the model is made, and keep more events: `torch.cuda.memory._record_memory_history(max_entries=1_000_000)`".to_owned(),
        ];
        finding.reference = "Understanding CUDA memory usage, docs.pytorch.org/docs/stable/torch_cuda_memory.html";
        findings.push(finding);
    }
}
