//! `torch_other_process`: memory that something else holds.

use super::evidence::{devices, finding};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::Cause;
use crate::model::{Bytes, MemorySpace};

/// Share of the capacity that must be accounted for.
const KNOWN: f64 = 0.8;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    // The snapshot does not say how much the card has; a message beside it does.
    let said = subject.profile.failures.iter().find_map(|failure| failure.bytes("capacity"));
    let known = subject.profile.device.capacity(MemorySpace::HBM).map(|capacity| capacity.bytes);
    let Some(capacity) = said.or(known) else { return };
    for (_, device) in devices(subject) {
        let Some(failure) = device.failure() else { continue };
        let ours = failure.totals.reserved.saturating_add(failure.device_free);
        let is_ours = ours as f64 >= KNOWN * capacity.0 as f64;
        if is_ours || !matches!(failure.cause, Cause::Shortage | Cause::Limit) {
            continue;
        }
        let rest = capacity.saturating_sub(Bytes(ours));
        let mut finding = finding("torch_other_process", device, true);
        finding.title = format!("{} are in use outside of this allocator", rest.short());
        finding.why = format!(
            "Of {} the allocator had {} and the driver {} free",
            capacity.short(),
            Bytes(failure.totals.reserved).short(),
            Bytes(failure.device_free).short()
        );
        finding.advice = vec![
            "See which processes use the device: `nvidia-smi`; end what is left over from earlier runs".to_owned(),
            "Libraries such as NCCL and cuBLAS reserve memory of their own, too".to_owned(),
        ];
        finding.at_stake_bytes = Some(rest);
        finding.at_most = Some("at most: what the driver and the libraries need themselves cannot be freed".to_owned());
        finding.reference = "PyTorch notes on CUDA memory management, docs.pytorch.org/docs/stable/notes/cuda.html";
        findings.push(finding);
    }
}
