//! `torch_optimizer_state`: a request that failed in the optimizer's first step, which makes its state.

use super::evidence::{bytes_of, devices, finding, share, whole};
use super::optimizer_foreach;
use crate::advisor::finding::{ChangesResults, Finding};
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::AllocationCategory;
use crate::model::Bytes;

/// Least share of the state when the request failed.
const SHARE: f64 = 0.15;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let Some(failure) = device.failure() else { continue };
        let is_step =
            snapshot.frames(failure.stack).any(|frame| snapshot.strings.get(frame.file).contains("torch/optim/"));
        // A step that fails has an end, too.
        let is_first = device.spans.iter().all(|span| span.end >= failure.moment);
        let state = bytes_of(device, AllocationCategory::OptimizerState);
        let still = device.state_to_come(snapshot);
        let to_come = still.unwrap_or(0);
        if !is_step || !is_first || (state.saturating_add(to_come) as f64) < SHARE * whole(device) as f64 {
            continue;
        }
        // The temporaries that were asked for come first where they are much: they need not be.
        let mut finding = finding("torch_optimizer_state", device, !optimizer_foreach::is_cause(snapshot, device));
        finding.title = if to_come > state {
            format!(
                "The optimizer's first step failed: its state takes about {}, of which {} were there",
                Bytes(state.saturating_add(to_come)).short(),
                Bytes(state).short()
            )
        } else {
            format!(
                "The optimizer's first step failed: its state holds {}, {}",
                Bytes(state).short(),
                share(device, state)
            )
        };
        let gradients = bytes_of(device, AllocationCategory::Gradient);
        let when = if still.is_some() {
            "The request that failed is part of it"
        } else {
            "It was there when the step asked for more"
        };
        finding.why = format!(
            "The state is made in the first step and stays; until then less is needed than in every later step. {when}. Gradients hold {}",
            Bytes(gradients).short()
        );
        finding.advice = vec![
            "Keep less state: Adam in 8 bits (bitsandbytes `AdamW8bit`), Adafactor, or SGD; it changes the results a little".to_owned(),
            "Train fewer parameters (LoRA), or divide the state among devices (FSDP, `ZeroRedundancyOptimizer`)".to_owned(),
        ];
        finding.changes_results = ChangesResults::Maybe;
        finding.at_stake_bytes = Some(Bytes(state));
        finding.at_most = Some("at most: the state so far; three quarters of it in 8 bits".to_owned());
        finding.reference = "torch.optim, docs.pytorch.org/docs/stable/optim.html";
        findings.push(finding);
    }
}
