//! `torch_leak`: every step leaves memory behind.

use super::evidence::{devices, finding, place};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::model::{Bytes, thousands};

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let Some(steps) = device.steps.as_ref().filter(|steps| steps.leak > 0) else { continue };
        let mut finding = finding("torch_leak", device, true);
        finding.title = format!("Each step leaves {} behind", Bytes(steps.leak).short());
        let count = steps.live_at_end.len() as u64;
        finding.why = format!(
            "After each of the last {} steps at least {} more are live than after the one before",
            thousands(count.saturating_sub(2)),
            Bytes(steps.leak).short()
        );
        if let Some(&(stack, bytes, _)) = steps.blamed.first() {
            let (bytes, place) = (Bytes(bytes).short(), place(snapshot, stack));
            finding.why = format!("{}; {bytes} of it are allocated in {place}", finding.why);
        }
        finding.advice = vec![
            "Keep numbers, not tensors, across steps: `loss.item()` instead of `loss`, which holds on to the whole graph"
                .to_owned(),
            "Detach what must be kept as a tensor (`tensor.detach()`), and drop references to outputs before the next step".to_owned(),
        ];
        finding.at_stake_bytes = Some(Bytes(steps.leak.saturating_mul(count)));
        finding.at_most = Some("at most: what all steps of the history leave behind".to_owned());
        finding.reference = "PyTorch FAQ, docs.pytorch.org/docs/stable/notes/faq.html";
        findings.push(finding);
    }
}
